#!/usr/bin/env python3
"""Zeros of weights and of activations, alone and together, layer by layer in whole networks, on a GPU.

    joint_zeros.py BURIN --out FOLDER --model MODEL.onnx=INPUTS.npy ... [--ways LIST] [--batch 1,32] [--samples 20]
                   [--budget S] [--json FILE] [--continue] [--markdown]

Each model is compiled in several ways, and each network then runs on INPUTS (test/gpu/feature_maps.py --inputs), so that every
layer reads what the layers before make of them:

    weights        FP32, as the models choose where nothing is known of activations
    input          FP32, conv_zero_skip for all layers that it serves: weights are data, and zeros of the input are left out
    maps           FP32, --skip-dead-tiles: baked code without zero weights, which jumps over channels that are dead in a tile
    choice         FP32, as the models choose with --activations
    weights-tf32   TF32, as the models choose where nothing is known of activations
    dead-tf32      TF32, conv_gathered_rows with skip_dead: no column of a zero weight, nor of a dead channel
    choice-tf32    TF32, as the models choose with --activations

Times are what `burin bench` says of steps, without what an interval takes that has no kernel in it, and of the whole network
in one launch; pools that are no part of their convolution, and conversions, count in the network alone. The last column is the
best of what leaves out zeros of one kind over the better of what leaves out both: above 1 both together gain.
A model that fails has its fault in its row, and the others go on. Rows are written to --json after each way of a model;
--continue leaves out those that it has. The exit code is 1 where one failed or was not begun. Needs nothing but Python 3.
"""
import argparse
import json
import sys
from pathlib import Path

import measured_rows
from measured_rows import Failure, call, geometric_mean, microseconds, ratio_text

WAYS = {
    "weights": (),
    "input": ("--kernels", "zero_skip", "--activations"),
    "maps": ("--skip-dead-tiles",),
    "choice": ("--activations",),
    "weights-tf32": ("--precision", "tf32"),
    "dead-tf32": ("--precision", "tf32", "--kernels", "gathered_rows", "--plan", "skip_dead=1", "--activations"),
    "choice-tf32": ("--precision", "tf32", "--activations"),
}
ALONE, BOTH = ("weights", "input", "weights-tf32"), ("maps", "dead-tf32")
NETWORK = "whole network"


def measure(options, model, inputs, way):
    """A row for each convolution and batch, and for the network as a whole."""
    package = options.out / f"{model.stem}-{way}.burin"
    figures = package.with_suffix(".json")
    zeros = [part if part != "--activations" else f"--activations={inputs}" for part in WAYS[way]]
    call(options, [options.burin, "compile", str(model), "-o", str(package), "--arch", options.arch, "--batch", options.batch,
                   "--no-siblings", "-q", *zeros])
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--activations", str(inputs), "--samples",
                   str(options.samples), "-q", "--json", str(figures)])
    rows = []
    for entry in json.loads(figures.read_text())["network"]:
        times = {NETWORK: entry["latency"]["median_us"]}
        for step in entry["steps"]:
            if step["kind"] == "convolution":
                own = step["time"]["median_us"] - entry["empty_interval"]["median_us"]
                times[step["operator"]] = times.get(step["operator"], 0) + own
        rows += [{"layer": layer, "batch": entry["batch"], "us": us, "fault": ""} for layer, us in times.items()]
        if len(times) == 1:
            raise Failure(f"{package} has no convolution")
    return rows


def gain(times):
    """What both together gain over the better of both alone."""
    alone, both = ([times[way] for way in ways if way in times] for ways in (ALONE, BOTH))
    return min(alone) / min(both) if alone and both else None


def cells_of(rows, ways):
    found = {}
    for row in rows:
        if not row["fault"]:
            found.setdefault((row["model"], row["layer"], row["batch"]), {})[row["way"]] = row["us"]
    cells = []
    for (model, layer, batch), times in found.items():
        cells.append([model, layer, str(batch), *(microseconds(times.get(way)) for way in ways),
                      ratio_text(None if layer == NETWORK else gain(times))])
    gains = [value for (_, layer, _), times in found.items() if layer != NETWORK and (value := gain(times))]
    return ["model", "layer", "batch", *(f"{way} us" for way in ways), "gain"], cells, gains


def report(document, markdown=False):
    rows = document["rows"]
    ways = [way for way in WAYS if any(row["way"] == way for row in rows if not row["fault"])]
    heads, cells, gains = cells_of(rows, ways)
    lines = [measured_rows.table(heads, cells, {"model", "layer"}, markdown)]
    if gains:
        lines.append(f"{len(gains)} layers: both together over the better of both alone: geometric mean "
                     f"{geometric_mean(gains):.2f}, least {min(gains):.2f}, most {max(gains):.2f}; at least 1.3 in "
                     f"{sum(value >= 1.3 for value in gains)}")
    return "\n".join([*lines, *(f"FAILED: {row['job']}: {row['fault']}" for row in rows if row["fault"])])


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Zeros of weights and activations, alone and together.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="packages")
    parser.add_argument("--model", action="append", required=True, metavar="MODEL.onnx=INPUTS.npy", help="several times for several")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), metavar="LIST",
                        help=f"of {', '.join(WAYS)} (default: all)")
    parser.add_argument("--batch", default="1,32", metavar="LIST", help="default 1,32")
    measured_rows.add_sweep_options(parser, "way of a model")
    options = parser.parse_args(arguments)
    for way in options.ways:
        if way not in WAYS:
            parser.error(f"--ways: '{way}' is none of {', '.join(WAYS)}")
    options.models = {}
    for text in options.model:
        model, equals, inputs = text.partition("=")
        if not equals or not Path(model).is_file() or not Path(inputs).is_file():
            parser.error(f"--model: '{text}' is not MODEL.onnx=INPUTS.npy, of files that there are")
        options.models[Path(model).stem] = (Path(model), Path(inputs))
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    jobs = {f"{way} {name}": (name, way) for name in options.models for way in options.ways}

    def measure_job(job):
        name, way = jobs[job]
        return [{"model": name, "way": way, **row} for row in measure(options, *options.models[name], way)]

    return measured_rows.run_sweep(options, "job", list(jobs), {"batches": options.batch}, measure_job, report)


if __name__ == "__main__":
    sys.exit(main())
