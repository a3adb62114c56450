#!/usr/bin/env python3
"""What a convolution could gain from input channels that are zero, at most: burin alone, on a GPU.

    dead_channel_bound.py BURIN --out FOLDER [--layers SET:NAME,...] [--dead 0,0.3,0.6,0.8] [--sparsity 0.9] [--precision fp32]
                          [--batch 1] [--option OPTION ...] [--samples 20] [--budget S] [--json FILE] [--continue] [--markdown]

Layers of make_layers.py are compiled once as they are, and once for each share of --dead without so many of their input
channels: nothing looks for these, loads them or branches around them, and the kernel is chosen for what is left. So no kernel
of these kinds that finds out at run time which channels are dead can be faster, and time with all channels over that time
bounds what it gains over the zeros of the weights alone. Times are those of `burin bench`, cold and chained.

All layers of a share go into one file. What fails has its fault in its row, and the others go on. Rows are written to --json
after each share; --continue leaves out those that it has. The exit code is 1 where one failed or was not begun.
Needs nothing but Python 3.
"""
import argparse
import json
import sys
from pathlib import Path

import make_layers
import measured_rows
from measured_rows import call, geometric_mean, microseconds, ratio_text

# Late layers of the networks: most of their inputs are zeros.
LATE = ("anchors:1x1.1024-256.14", "anchors:1x1.512-512.14", "anchors:1x1.512-1024.7", "anchors:1x1.2048-512.7",
        "anchors:3x3.256-256.14", "anchors:3x3.512-512.7", "vgg:3x3.512-512.14")


def about(options):
    return {"sparsity": options.sparsity, "precision": options.precision, "options": " ".join(options.option),
            "batches": options.batch, "layers": ",".join(options.layers), "arch": options.arch, "samples": options.samples}


def measure_share(options, dead):
    """A row for each layer and batch."""
    weights = make_layers.write_layers(options.out / f"late-{options.sparsity}-{dead}.safetensors", options.layers,
                                       make_layers.sparsity_of(options.sparsity), make_layers.sparsity_of(dead))
    package = options.out / f"{weights.stem}-{options.precision}.burin"
    measured = package.with_suffix(".json")
    call(options, [options.burin, "compile", str(weights), "-o", str(package), "--arch", options.arch, "--batch", options.batch,
                   "--precision", options.precision, "--activation", "relu", "-q", *options.option])
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--samples", str(options.samples), "-q",
                   "--json", str(measured)])
    return [{"layer": row["layer"], "batch": row["batch"], "kernel": row["symbol"].removeprefix("burin_"),
             **{figure: row[figure]["median_us"] for figure in ("cold", "chained")}, "fault": ""}
            for row in json.loads(measured.read_text())["rows"]]


def cells_of(rows):
    """A line for each layer and batch: the times of all shares, and the first share's over each other one's."""
    shares = list(dict.fromkeys(row["dead"] for row in rows))
    heads = ["layer", "batch", "zeros", "precision", "options", *(f"{share} dead us" for share in shares), *(f"gain {share}" for share in shares[1:]),
             *(f"chained {share}" for share in shares[1:])]
    found = {}
    for row in rows:
        if not row["fault"]:
            found.setdefault((row["layer"], row["batch"], row["sparsity"], row["precision"], row["options"]), {})[row["dead"]] = row
    cells = []
    for (layer, batch, sparsity, precision, options), by_share in found.items():
        cells.append([layer, str(batch), sparsity, precision, options or "none",
                      *(microseconds(by_share.get(share, {}).get("cold")) for share in shares),
                      *(ratio_text(gain(by_share, shares[0], share, figure))
                        for figure in ("cold", "chained") for share in shares[1:])])
    return heads, cells


def gain(by_share, first, share, figure):
    before, after = by_share.get(first, {}).get(figure), by_share.get(share, {}).get(figure)
    return before / after if before and after else None


def means(rows):
    """Of layers that were measured with all channels, which the first share is."""
    heads = ["batch", "zeros", "precision", "options", "dead", "layers", "gain, geometric mean", "least", "most"]
    right = [row for row in rows if not row["fault"] and "cold" in row]
    of_layer = lambda row: (row["layer"], row["batch"], row["sparsity"], row["precision"], row["options"])
    firsts = {of_layer(row): row for row in right if row["dead"] == rows[0]["dead"]}
    groups = {}
    for row in right:
        first = firsts.get(of_layer(row))
        if first and first is not row:
            group = (row["batch"], row["sparsity"], row["precision"], row["options"] or "none", row["dead"])
            groups.setdefault(group, []).append(first["cold"] / row["cold"])
    return heads, [[*map(str, key), str(len(gains)), ratio_text(geometric_mean(gains)), ratio_text(min(gains)), ratio_text(max(gains))]
                   for key, gains in groups.items()]


def report(document, markdown=False):
    rows = document["rows"]
    text = (measured_rows.table(*cells_of(rows), {"layer", "precision", "options"}, markdown) + "\n\n"
            + measured_rows.table(*means(rows), {"precision", "options"}, markdown))
    return "\n".join([text, *(f"FAILED: {row['dead']} dead, {row['precision']}: {row['fault']}" for row in rows if row["fault"])])


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="What a convolution could gain from dead input channels, at most.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="weights and packages")
    parser.add_argument("--layers", type=lambda text: text.split(","), default=list(LATE), metavar="LIST",
                        help="SET:NAME of make_layers.py (default: seven late layers)")
    parser.add_argument("--dead", type=lambda text: text.split(","), default=["0", "0.3", "0.6", "0.8"], metavar="LIST",
                        help="shares of the input channels; the others are compared with the first (default 0,0.3,0.6,0.8)")
    parser.add_argument("--sparsity", default="0.9", metavar="S", help="of the weights (default 0.9)")
    parser.add_argument("--precision", default="fp32", help="default fp32")
    parser.add_argument("--batch", default="1", metavar="LIST", help="default 1")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION", help="of burin compile: --option=--layout=nchw8")
    measured_rows.add_sweep_options(parser, "share")
    options = parser.parse_args(arguments)
    for item in options.layers:
        if not make_layers.is_layer(item):
            parser.error(f"--layers: '{item}' is no layer of make_layers.py")
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    return measured_rows.run_sweep(options, "dead", options.dead, about(options), lambda dead: measure_share(options, dead), report)


if __name__ == "__main__":
    sys.exit(main())
