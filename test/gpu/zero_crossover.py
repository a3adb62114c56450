#!/usr/bin/env python3
"""From which share of zeros in its input a convolution with dense weights is faster without them, on a GPU.

    zero_crossover.py BURIN --out FOLDER [--layers SET:NAME,...] [--shares 0.3,0.5,0.7,0.8,0.9,0.95] [--pattern random] [--batch 1]
                      [--plans N] [--half-layout nchw8] [--samples 20] [--budget S] [--json FILE] [--continue] [--markdown]

For each share `burin compile --kernels zero_skip --activation-sparsity SHARE` (with --plans `burin tune` with so many plans)
makes kernels that skip zeros, and `burin bench --activation-sparsity SHARE --baseline cudnn` measures them beside cuDNN's best
FP32 and TF32 algorithms. The same layers with what burin takes where nothing is known of zeros, and in FP16 beside cuDNN's best
of that, are measured once. A crossover is the least share from which on skipping is faster than the other at each share that
was measured, interpolated in the logarithm of the ratio; `<` where it is faster at all of them, `>` where it is not at the last.

All layers of a share go into one file. What fails has its fault in its row, and the others go on. Rows are written to --json
after each share; --continue leaves out those that it has. The exit code is 1 where one failed or was not begun.
Needs nothing but Python 3.
"""
import argparse
import json
import math
import sys
from pathlib import Path

import make_layers
import measured_rows
from measured_rows import UNKNOWN, call, microseconds

ALL = tuple(f"anchors:{layer['name']}" for layer in make_layers.SETS["anchors"])
NO_ZEROS, HALVES = "no zeros", "fp16"  # in place of a share
OTHERS = ("cuDNN FP32", "cuDNN TF32", "cuDNN FP16", "burin FP32")


def measure(options, share):
    """Rows of `burin bench`, of one share or of what stands in place of one."""
    weights = make_layers.write_layers(options.out / "dense.safetensors", options.layers, make_layers.sparsity_of("0"))
    package = options.out / f"{share.replace(' ', '_')}-{options.pattern}.burin"
    measured = package.with_suffix(".json")
    common = [str(weights), "-o", str(package), "--arch", options.arch, "--batch", options.batch, "--activation", "relu", "-q"]
    zeros = []
    if share == HALVES:
        call(options, [options.burin, "compile", *common, "--precision", "fp16", "--layout", options.half_layout])
    elif share == NO_ZEROS:
        call(options, [options.burin, "compile", *common, "--kernels", "dense"])
    else:
        zeros = ["--activation-sparsity", f"{share}:{options.pattern}"]
        how = ["tune", "--plans", str(options.plans)] if options.plans else ["compile"]
        call(options, [options.burin, *how, *common, "--kernels", "zero_skip", *zeros])
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--baseline", "cudnn", "--samples",
                   str(options.samples), "-q", "--json", str(measured), *zeros])
    rows = []
    for row in json.loads(measured.read_text())["rows"]:
        cudnn = {name: row[key]["median_us"] for name, key in (("cuDNN FP32", "cudnn_fp32"), ("cuDNN TF32", "cudnn_tf32"),
                                                               ("cuDNN FP16", "cudnn_fp16")) if row.get(key)}
        rows.append({"layer": row["layer"], "batch": row["batch"], "us": row["cold"]["median_us"], "cudnn": cudnn, "fault": ""})
    return rows


def by_layer(rows):
    """(layer, batch) -> share -> row, of what has no fault."""
    found = {}
    for row in rows:
        if not row["fault"]:
            found.setdefault((row["layer"], row["batch"]), {})[row["share"]] = row
    return found


def others_of(of_layer):
    """What skipping is compared with, in microseconds; cuDNN's times of the run without zeros."""
    plain, halves = of_layer.get(NO_ZEROS), of_layer.get(HALVES)
    times = dict(plain["cudnn"]) if plain else {}
    if halves:
        times["cuDNN FP16"] = halves["cudnn"].get("cuDNN FP16")
    if plain:
        times["burin FP32"] = plain["us"]
    return times


def crossover(times, other):
    """`times`: (share, microseconds) of skipping, by the share. Text."""
    if not times or not other:
        return UNKNOWN
    gains = [(share, math.log(other / us)) for share, us in times]
    if gains[-1][1] <= 0:
        return f"> {gains[-1][0]:.2f}"
    slower = [i for i, (_, gain) in enumerate(gains) if gain <= 0]
    if not slower:
        return f"< {gains[0][0]:.2f}"
    (low, before), (high, after) = gains[slower[-1]], gains[slower[-1] + 1]
    return f"{low + (high - low) * before / (before - after):.2f}"


def cells_of(rows):
    shares = sorted({row["share"] for row in rows} - {NO_ZEROS, HALVES}, key=float)
    heads = ["layer", "batch", *(f"{name} us" for name in OTHERS), *(f"{share} us" for share in shares),
             *(f"from, {name}" for name in OTHERS)]
    cells = []
    for (layer, batch), of_layer in by_layer(rows).items():
        others = others_of(of_layer)
        times = [(float(share), of_layer[share]["us"]) for share in shares if share in of_layer]
        cells.append([layer, str(batch), *(microseconds(others.get(name)) for name in OTHERS),
                      *(microseconds(of_layer[share]["us"] if share in of_layer else None) for share in shares),
                      *(crossover(times, others.get(name)) for name in OTHERS)])
    return heads, cells


def report(document, markdown=False):
    text = measured_rows.table(*cells_of(document["rows"]), {"layer"}, markdown)
    return "\n".join([text, *(f"FAILED: {row['share']}: {row['fault']}" for row in document["rows"] if row["fault"])])


def share(text):
    if not 0 <= float(text) <= 1:
        raise ValueError
    return text


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="From which share of zeros on skipping them is faster.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="weights and packages")
    parser.add_argument("--layers", type=lambda text: text.split(","), default=list(ALL), metavar="LIST",
                        help="SET:NAME of make_layers.py (default: all of anchors)")
    parser.add_argument("--shares", type=lambda text: [share(one) for one in text.split(",")],
                        default=["0.3", "0.5", "0.7", "0.8", "0.9", "0.95"], metavar="LIST", help="of zeros in the input")
    parser.add_argument("--pattern", default="random", help="random (default), channels, blobs or dead")
    parser.add_argument("--batch", default="1", metavar="LIST", help="default 1")
    parser.add_argument("--plans", type=int, metavar="N", help="tune with so many plans (default: the models' choice)")
    parser.add_argument("--half-layout", default="nchw8", metavar="NAME", help="of the layers in FP16 (default nchw8)")
    measured_rows.add_sweep_options(parser, "share")
    options = parser.parse_args(arguments)
    for item in options.layers:
        if not make_layers.is_layer(item):
            parser.error(f"--layers: '{item}' is no layer of make_layers.py")
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    about = {"pattern": options.pattern, "batches": options.batch, "layers": ",".join(options.layers), "plans": options.plans or 0,
             "half_layout": options.half_layout}
    return measured_rows.run_sweep(options, "share", [NO_ZEROS, HALVES, *options.shares], about,
                                   lambda one: measure(options, one), report)


if __name__ == "__main__":
    sys.exit(main())
