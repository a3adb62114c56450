#!/usr/bin/env python3
"""The table of test/gpu/dense.sh. Needs nothing but Python 3.

    dense_table.py NAME...     reads NAME.inspect.json and NAME.bench.json of each
"""
import json
import math
import sys

CUDNN, CUBLASLT = "conv_cudnn", "conv_cublas"
CALLS = (CUDNN, CUBLASLT)


def best(candidates, is_asked):
    """The fastest candidate without a fault whose provider is asked for; none: None."""
    right = [c for c in candidates if not c.get("fault") and is_asked(c["provider"])]
    return min(right, key=lambda c: c["us"], default=None)


def text_of(candidate):
    if candidate is None:
        return "-"
    plan = candidate["plan"].removeprefix("algorithm=") if candidate["provider"] in CALLS else candidate["provider"]
    return f"{candidate['us']:.2f} {plan}"


def rows_of(name):
    with open(name + ".inspect.json", encoding="utf-8") as file:
        inspected = json.load(file)
    with open(name + ".bench.json", encoding="utf-8") as file:
        measured = {row["symbol"]: row for row in json.load(file)["rows"]}
    zeros, precision = name.rsplit("-", 2)[1:]
    for layer in inspected["rows"]:
        tuning, row = layer["tuning"], measured[layer["symbol"]]
        baseline = row.get("cudnn_" + precision)
        if not tuning or not baseline:
            continue
        candidates = tuning["candidates"]
        yield {"layer": layer["layer"], "zeros": float(zeros), "batch": layer["batch"], "precision": precision,
               "chosen": candidates[tuning["chosen"]], "own": best(candidates, lambda p: p not in CALLS),
               "cudnn": best(candidates, CUDNN.__eq__), "cublaslt": best(candidates, CUBLASLT.__eq__),
               "cold": row["cold"]["median_us"], "chained": row["chained"]["median_us"], "baseline": baseline,
               "ratio": baseline["median_us"] / row["cold"]["median_us"],
               "chained_ratio": baseline["median_us"] / row["chained"]["median_us"]}


def summary(ratios):
    behind = sum(ratio < 0.97 for ratio in ratios)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{behind} are under 0.97 of the baseline, the least {min(ratios):.2f}; geometric mean {mean:.2f}"


def main(names):
    rows = [row for name in names for row in rows_of(name)]
    if not rows:
        sys.exit("dense_table.py: error: no layer was both tuned and measured beside cuDNN")
    print("| layer | zeros | batch | precision | chosen | burin's best, tuned us | cuDNN's best, tuned us | "
          "cuBLASLt's best, tuned us | chosen, cold us | chained us | baseline us | baseline / cold | baseline / chained |")
    print("| --- |" + " --- |" * 12)
    for row in sorted(rows, key=lambda r: (r["precision"], r["batch"], r["layer"], r["zeros"])):
        baseline = row["baseline"]
        print(f"| {row['layer']} | {100 * row['zeros']:.0f} % | {row['batch']} | {row['precision']} "
              f"| {row['chosen']['provider']} | {text_of(row['own'])} | {text_of(row['cudnn'])} "
              f"| {text_of(row['cublaslt'])} | {row['cold']:.2f} | {row['chained']:.2f} "
              f"| {baseline['median_us']:.2f} {baseline['algorithm']} {baseline['layout']} | {row['ratio']:.2f} "
              f"| {row['chained_ratio']:.2f} |")
    calls = sum(row["chosen"]["provider"] in CALLS for row in rows)
    print(f"\n{len(rows)} rows, {calls} of which call a library. Cold {summary([row['ratio'] for row in rows])}. "
          f"Chained {summary([row['chained_ratio'] for row in rows])}.")


if __name__ == "__main__":
    main(sys.argv[1:])
