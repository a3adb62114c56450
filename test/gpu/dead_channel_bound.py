#!/usr/bin/env python3
"""What a convolution could gain from input channels that are zero, at most: burin alone, on a GPU.

    dead_channel_bound.py BURIN --out FOLDER [--layers SET:NAME,...] [--dead 0,0.3,0.6,0.8] [--sparsity 0.9] [--precision fp32]
                          [--batch 1] [--option OPTION ...] [--samples 30] [--budget S] [--json FILE] [--continue] [--markdown]

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
import time
from pathlib import Path

import make_layers
import measured_rows
from measured_rows import Failure, call, geometric_mean, microseconds, ratio_text, save

HERE = Path(__file__).resolve().parent
# Late layers of the networks: most of their inputs are zeros.
LATE = ("anchors:1x1.1024-256.14", "anchors:1x1.512-512.14", "anchors:1x1.512-1024.7", "anchors:1x1.2048-512.7",
        "anchors:3x3.256-256.14", "anchors:3x3.512-512.7", "vgg:3x3.512-512.14")


def make_weights(options, dead):
    """One file with all layers."""
    tensors, geometry = {}, {}
    for item in options.layers:
        set_name, layer = item.split(":")
        part = options.out / f"{layer}-{options.sparsity}-{dead}.safetensors"
        call(options, [sys.executable, str(HERE / "make_layers.py"), str(part), "--set", set_name, "--sparsity", options.sparsity,
                       "--layer", layer, "--dead-channels", dead])
        some, metadata = make_layers.read_safetensors(part)
        tensors.update(some)
        geometry.update(json.loads(metadata["geometry"]))
    weights = options.out / f"late-{options.sparsity}-{dead}.safetensors"
    make_layers.write_safetensors(weights, tensors, {"geometry": json.dumps(geometry)})
    return weights


def about(options):
    return {"sparsity": options.sparsity, "precision": options.precision, "options": " ".join(options.option),
            "batches": options.batch, "layers": ",".join(options.layers), "arch": options.arch, "samples": options.samples}


def measure_share(options, dead):
    """A row for each layer and batch."""
    weights = make_weights(options, dead)
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
    parser.add_argument("--samples", type=int, default=30, metavar="N", help="launches behind each figure (default 30)")
    parser.add_argument("--arch", default="native", help="default native")
    parser.add_argument("--device", default="cuda:0", help="default cuda:0")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of each call of burin (default 600)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin no share after so many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out what --json has")
    parser.add_argument("--markdown", action="store_true", help="the tables for docs/feature-maps.md")
    options = parser.parse_args(arguments)
    for item in options.layers:
        set_name, _, layer = item.partition(":")
        if layer not in [one["name"] for one in make_layers.SETS.get(set_name, [])]:
            parser.error(f"--layers: '{item}' is no layer of make_layers.py")
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    document, started, left = measured_rows.begin_document(options), time.monotonic(), []
    done = {tuple(row[name] for name in ("dead", *about(options))) for row in document["rows"]}
    for dead in options.dead:
        own = {"dead": dead, **about(options)}
        if tuple(own.values()) in done:
            continue
        if options.budget is not None and time.monotonic() - started > options.budget:
            left.append(dead)
            continue
        try:
            rows = [{**own, **row} for row in measure_share(options, dead)]
        except Failure as failure:
            rows = [{**own, "fault": str(failure)}]
        document["rows"] += rows
        save(options.json, document)
    print(report(document, options.markdown))
    if left:
        print(f"not begun: {', '.join(left)} (--budget)")
    return 1 if left or any(row["fault"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
