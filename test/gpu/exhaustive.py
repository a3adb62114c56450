#!/usr/bin/env python3
"""How good the tuner's pick is: `burin tune --plans 12` against `--plans 100`, layer by layer, on a GPU.

    exhaustive.py BURIN --out FOLDER [--layers SET:NAME,...] [--sparsity 0.9] [--batch 1,32] [--precision fp32]
                  [--plans 12] [--most 100] [--tune-budget 2m] [--most-budget 8m] [--tune-option OPTION] [--budget S]
                  [--json FILE] [--continue] [--markdown]

Ten layers of make_layers.py, unless --layers names others. Each is tuned twice in one go, with nothing from earlier runs
(--anew): as by default, and with as many candidates and steps from the best of them as the tuner takes at most. The pick's
time is that of the second run, where both were measured beside each other, or that of the first where the second has not
tried the same plan. A ratio of 1 says that the pick was the best of all; below 1 the second run found nothing as good.
Where the second run used all of --most-budget it is called cut short: there may be better plans.

Halves need other kernels than baked ones, or `nchw`, since baked code of halves compiles for minutes:
--precision fp16 adds `--layout nchw`, unless --tune-option says otherwise.

A layer that fails has its fault in its row, and the others go on. Rows are written to --json after each layer; --continue
leaves out those that it has. No layer is begun --budget seconds after the start. The exit code is 1 where one failed or was
not begun. Needs nothing but Python 3.
"""
import argparse
import json
import re
import sys
import time
from pathlib import Path

import make_layers
import measured_rows
from measured_rows import UNKNOWN, Failure, call, geometric_mean, microseconds, save

HERE = Path(__file__).resolve().parent
TEN = tuple(f"anchors:{name}" for name in (
    "1x1.64-256.56", "1x1.512-128.28", "1x1.256-1024.14", "1x1.2048-512.7", "1x1.512-512.14", "1x1.512-1024.7", "3x3.64-64.56",
    "3x3.128-128.28", "3x3.256-256.14", "3x3.512-512.7"))
SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds_of(text):
    """90s, 5m, 1h"""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no time, such as 90s or 5m")
    return float(found[1]) * SECONDS[found[2]]


def precision_options(options):
    if options.precision == "fp32":
        return options.tune_option
    given = any(option.partition("=")[0] in ("--layout", "--kernels") for option in options.tune_option)
    layout = ["--layout", "nchw"] if options.precision in ("fp16", "bf16") and not given else []
    return ["--precision", options.precision, *layout, *options.tune_option]


def tune(options, weights, package, plans, budget):
    """(batch -> the tuning that `burin inspect` shows, seconds)"""
    begin = time.monotonic()
    call(options, [options.burin, "tune", str(weights), "-o", str(package), "--batch", options.batch, "--arch", options.arch,
                   "--plans", str(plans), "--budget", budget, "--anew", "-q", *precision_options(options)])
    seconds = time.monotonic() - begin
    document = json.loads(call(options, [options.burin, "inspect", str(package), "--tuning", "--json"]))
    return {row["batch"]: row["tuning"] for row in document["rows"] if row["tuning"]}, seconds


def measured(tuning):
    """The candidates without a fault: (provider, plan) -> microseconds."""
    return {(one["provider"], one["plan"]): one["us"] for one in tuning["candidates"] if not one.get("fault")}


def compare(few, many):
    """What a row says of the two tunings of one layer and batch."""
    pick = few["candidates"][few["chosen"]]
    if pick.get("fault"):
        raise Failure(f"the pick has no time: {pick['fault']}")
    everything, models = measured(many), many["candidates"][0]
    if not everything:
        raise Failure("no candidate of the second run was measured")
    key = (pick["provider"], pick["plan"])
    best = min(everything, key=everything.get)
    beside = key in everything
    pick_us = everything[key] if beside else pick["us"]
    return {"pick": " ".join(key), "pick_us": pick_us, "beside": beside, "pick_first_us": pick["us"],
            "best": " ".join(best), "best_us": everything[best], "ratio": pick_us / everything[best],
            "models_us": None if models.get("fault") else models["us"],
            "few": len(measured(few)), "many": len(everything),
            "faults": sum(bool(one.get("fault")) for one in many["candidates"])}


def measure_layer(options, item):
    """A row for each batch size."""
    set_name, layer = item.split(":")
    batches = [int(batch) for batch in options.batch.split(",")]
    rows = {batch: {"layer": layer, "sparsity": options.sparsity, "precision": options.precision, "batch": batch, "fault": ""}
            for batch in batches}
    stem = options.out / f"{layer}-{options.sparsity}-{options.precision}"
    weights = stem.with_name(stem.name + ".safetensors")
    try:
        call(options, [sys.executable, str(HERE / "make_layers.py"), str(weights), "--set", set_name, "--sparsity",
                       options.sparsity, "--layer", layer])
        few, few_s = tune(options, weights, stem.with_name(stem.name + ".few.burin"), options.plans, options.tune_budget)
        many, many_s = tune(options, weights, stem.with_name(stem.name + ".many.burin"), options.most, options.most_budget)
    except Failure as failure:
        for row in rows.values():
            row["fault"] = str(failure)
        return list(rows.values())
    for batch, row in rows.items():
        row.update(few_s=round(few_s, 1), many_s=round(many_s, 1), cut_short=many_s >= seconds_of(options.most_budget))
        try:
            if batch not in few or batch not in many:
                raise Failure("it was not tuned: the time was up")
            row.update(compare(few[batch], many[batch]))
        except Failure as failure:
            row["fault"] = str(failure)
    return list(rows.values())


def cells_of(rows):
    heads = ["layer", "batch", "models us", "pick us", "best us", "pick / best", "plans", "seconds", "pick", "best"]
    cells = []
    for row in rows:
        if row["fault"]:
            cells.append([row["layer"], str(row["batch"]), *([UNKNOWN] * 6), f"FAILED: {row['fault']}", ""])
            continue
        marks = ("" if row["beside"] else " (not tried again)") + (" (cut short)" if row["cut_short"] else "")
        best = "the same" if row["best"] == row["pick"] else row["best"]
        cells.append([row["layer"], str(row["batch"]), microseconds(row["models_us"]), microseconds(row["pick_us"]),
                      microseconds(row["best_us"]), f"{row['ratio']:.3f}", f"{row['few']} / {row['many']}",
                      f"{row['few_s']:.0f} / {row['many_s']:.0f}", row["pick"] + marks, best])
    return heads, cells


def summary(rows):
    right = [row for row in rows if not row["fault"]]
    if not right:
        return "nothing was measured"
    ratios = [row["ratio"] for row in right]
    same = sum(row["best"] == row["pick"] for row in right)
    text = (f"{len(right)} of {len(rows)} rows: pick / best has the geometric mean {geometric_mean(ratios):.3f}, at most "
            f"{max(ratios):.3f}; the pick is the best plan in {same}, within 5 % of it in "
            f"{sum(ratio <= 1.05 for ratio in ratios)}")
    cut = sum(row["cut_short"] for row in right)
    return text + (f"; {cut} were cut short, and are not exhaustive" if cut else "")


def report(document, markdown=False):
    rows = document["rows"]
    return measured_rows.table(*cells_of(rows), {"layer", "pick", "best"}, markdown) + "\n\n" + summary(rows)


def run_all(options, document):
    """Adds rows to the document; returns the layers that there was no time for."""
    started, left = time.monotonic(), []
    done = {(row["layer"], row["sparsity"], row["precision"]) for row in document["rows"]}
    for item in options.layers:
        layer = item.split(":")[1]
        if (layer, options.sparsity, options.precision) in done:
            continue
        if options.budget is not None and time.monotonic() - started > options.budget:
            left.append(layer)
            continue
        document["rows"] += measure_layer(options, item)
        save(options.json, document)
    return left


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="The tuner's pick against many more plans, layer by layer.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="weights and packages")
    parser.add_argument("--layers", type=lambda text: text.split(","), default=list(TEN), metavar="SET:NAME,...",
                        help="of make_layers.py (default: ten of anchors)")
    parser.add_argument("--sparsity", default="0.9", help="default 0.9")
    parser.add_argument("--batch", default="1,32", metavar="LIST", help="default 1,32")
    parser.add_argument("--precision", default="fp32", help="default fp32")
    parser.add_argument("--plans", type=int, default=12, metavar="N", help="of the first run (default 12)")
    parser.add_argument("--most", type=int, default=100, metavar="N", help="of the second run (default 100)")
    parser.add_argument("--tune-budget", default="2m", metavar="TIME", help="of the first run of a layer (default 2m)")
    parser.add_argument("--most-budget", default="8m", metavar="TIME", help="of the second run of a layer (default 8m)")
    parser.add_argument("--tune-option", action="append", default=[], metavar="OPTION",
                        help="for burin tune: --tune-option=--layout=nchw")
    parser.add_argument("--arch", default="native", help="default native")
    parser.add_argument("--timeout", type=float, default=1800, metavar="S", help="of each call of burin (default 1800)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin no layer after so many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out the layers that --json has")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    options = parser.parse_args(arguments)
    for item in options.layers:
        set_name, _, layer = item.partition(":")
        if layer not in [one["name"] for one in make_layers.SETS.get(set_name, [])]:
            parser.error(f"--layers: '{item}' is no layer of make_layers.py; one is {TEN[0]}")
    for name, text in (("--tune-budget", options.tune_budget), ("--most-budget", options.most_budget)):
        try:
            seconds_of(text)
        except argparse.ArgumentTypeError as error:
            parser.error(f"{name}: {error}")
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    document = measured_rows.begin_document(options)
    left = run_all(options, document)
    print(report(document, options.markdown))
    if left:
        print(f"No time was left for {', '.join(left)}")
    return 1 if left or any(row["fault"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
