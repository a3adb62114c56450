#!/usr/bin/env python3
"""Zeros of weights and of activations, alone and together, layer by layer in whole networks, on a GPU.

    joint_zeros.py BURIN --out FOLDER --model MODEL.onnx=INPUTS.npy ... [--ways LIST] [--batch 1,32] [--samples 20]
                   [--baseline] [--budget S] [--json FILE] [--continue] [--markdown]

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
in one launch; pools that are no part of their convolution, and conversions, count in the network alone. Gains are, in each
precision, the better of the ways that leave out zeros of one kind over that which leaves out both: above 1 both together gain.
A second table has the ways beside each other for all layers of a network: geometric means, the least and the most.
With --baseline each way's layers are measured beside cuDNN, too (`burin bench --baseline cudnn`, which multiplies all weights and
all of the input), and a third table has cuDNN's time over burin's; cuDNN's pool counts where burin's kernel has it inside.
A model that fails has its fault in its row, and the others go on. Rows are written to --json after each way of a model;
--continue leaves out those that it has. The exit code is 1 where one failed or was not begun. Needs nothing but Python 3.
"""
import argparse
import json
import sys
from pathlib import Path

import measured_rows
from measured_rows import UNKNOWN, Failure, call, geometric_mean, microseconds, ratio_text

WAYS = {
    "weights": (),
    "input": ("--kernels", "zero_skip", "--activations"),
    "maps": ("--skip-dead-tiles",),
    "choice": ("--activations",),
    "weights-tf32": ("--precision", "tf32"),
    "dead-tf32": ("--precision", "tf32", "--kernels", "gathered_rows", "--plan", "skip_dead=1", "--activations"),
    "choice-tf32": ("--precision", "tf32", "--activations"),
}
# precision -> what leaves out zeros of one kind, and what leaves out both
GAINS = {"FP32": (("weights", "input"), "maps"), "TF32": (("weights-tf32",), "dead-tf32")}
RATIOS = (("weights", "input"), ("weights", "maps"), ("weights-tf32", "dead-tf32"))
NETWORK = "whole network"
CUDNN = {"cuDNN FP32": "cudnn_fp32", "cuDNN TF32": "cudnn_tf32", "cuDNN FP16": "cudnn_fp16"}
LEAST_US = 0.1  # of a step that takes no longer than the interval around it


def measure(options, model, inputs, way):
    """A row for each convolution and batch, and for the network as a whole."""
    package = options.out / f"{model.stem}-{way}.burin"
    figures = package.with_suffix(".json")
    zeros = [part if part != "--activations" else f"--activations={inputs}" for part in WAYS[way]]
    call(options, [options.burin, "compile", str(model), "-o", str(package), "--arch", options.arch, "--batch", options.batch,
                   "--no-siblings", "-q", *zeros])
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--activations", str(inputs), "--samples",
                   str(options.samples), "-q", "--json", str(figures)])
    beside = cudnn_times(options, package) if options.baseline else {}
    rows = []
    for entry in json.loads(figures.read_text())["network"]:
        times = {NETWORK: entry["latency"]["median_us"]}
        for step in entry["steps"]:
            if step["kind"] == "convolution":
                own = max(step["time"]["median_us"] - entry["empty_interval"]["median_us"], LEAST_US)
                times[step["operator"]] = times.get(step["operator"], 0) + own
        rows += [{"layer": layer, "batch": entry["batch"], "us": us, "cudnn": beside.get((layer, entry["batch"]), {}), "fault": ""}
                 for layer, us in times.items()]
        if len(times) == 1:
            raise Failure(f"{package} has no convolution")
    return rows


def cudnn_times(options, package):
    """(layer, batch) -> what computes it -> cuDNN's microseconds for what the package's kernels of that layer compute."""
    measured = package.with_suffix(".cudnn.json")
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--layer", "*", "--baseline", "cudnn",
                   "--samples", str(options.samples), "-q", "--json", str(measured)])
    found = {}
    for row in json.loads(measured.read_text())["rows"]:
        if row["kind"] == "convolution":
            of_layer = found.setdefault((row["layer"], row["batch"]), {})
            for name, key in CUDNN.items():
                if row.get(key):
                    of_layer[name] = of_layer.get(name, 0) + row[key]["median_us"]
    return found


def gain(times, precision):
    """What both together gain over the better of both alone; None where something was not measured."""
    alone, both = GAINS[precision]
    return min(times[way] for way in alone) / times[both] if both in times and all(way in times for way in alone) else None


def by_layer(rows):
    """(model, layer, batch) -> way -> microseconds, of what has no fault."""
    found = {}
    for row in rows:
        if not row["fault"]:
            found.setdefault((row["model"], row["layer"], row["batch"]), {})[row["way"]] = row["us"]
    return found


def layer_cells(found, ways):
    cells = []
    for (model, layer, batch), times in found.items():
        gains = [None if layer == NETWORK else gain(times, precision) for precision in GAINS]
        cells.append([model, layer, str(batch), *(microseconds(times.get(way)) for way in ways), *map(ratio_text, gains)])
    return ["model", "layer", "batch", *(f"{way} us" for way in ways), *(f"gain {precision}" for precision in GAINS)], cells


def spread(values):
    """Their geometric mean, the least and the most."""
    return f"{geometric_mean(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else UNKNOWN


def network_cells(found):
    networks = {}
    for (model, layer, batch), times in found.items():
        if layer != NETWORK:
            networks.setdefault((model, batch), []).append(times)
    cells = []
    for (model, batch), layers in networks.items():
        cells.append([model, str(batch), str(len(layers)),
                      *(spread([times[one] / times[other] for times in layers if one in times and other in times])
                        for one, other in RATIOS)])
    return ["model", "batch", "layers", *(f"{one} / {other}" for one, other in RATIOS)], cells


def cudnn_cells(rows):
    """For each network, batch and way: cuDNN's time over burin's."""
    ratios = {}
    for row in rows:
        for name, us in row.get("cudnn", {}).items():
            ratios.setdefault((row["model"], row["batch"], row["way"]), {}).setdefault(name, []).append(us / row["us"])
    cells = [[model, str(batch), way, *(spread(of_way.get(name, [])) for name in CUDNN)] for (model, batch, way), of_way in ratios.items()]
    return ["model", "batch", "way", *(f"{name} / way" for name in CUDNN)], cells


def report(document, markdown=False):
    rows = document["rows"]
    found = by_layer(rows)
    ways = [way for way in WAYS if any(way in times for times in found.values())]
    lines = [measured_rows.table(*layer_cells(found, ways), {"model", "layer"}, markdown), "",
             measured_rows.table(*network_cells(found), {"model"}, markdown)]
    if any(row.get("cudnn") for row in rows):
        lines += ["", measured_rows.table(*cudnn_cells(rows), {"model", "way"}, markdown)]
    for precision in GAINS:
        gains = [value for (_, layer, _), times in found.items() if layer != NETWORK and (value := gain(times, precision))]
        if gains:
            lines.append(f"{precision}: both together over the better of both alone, {len(gains)} layers: {spread(gains)}; at least "
                         f"1.3 in {sum(value >= 1.3 for value in gains)}")
    return "\n".join([*lines, *(f"FAILED: {row['job']}: {row['fault']}" for row in rows if row["fault"])])


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Zeros of weights and activations, alone and together.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="packages")
    parser.add_argument("--model", action="append", required=True, metavar="MODEL.onnx=INPUTS.npy", help="several times for several")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), metavar="LIST",
                        help=f"of {', '.join(WAYS)} (default: all)")
    parser.add_argument("--batch", default="1,32", metavar="LIST", help="default 1,32")
    parser.add_argument("--baseline", action="store_true", help="cuDNN beside each layer")
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
        if Path(model).stem in options.models:
            parser.error(f"--model: two are called {Path(model).stem}")
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
