#!/usr/bin/env python3
"""Markdown rows for docs/performance.md from `burin bench --json` files: test/gpu/table.py FILE.json..."""
import json
import math
import sys


def ratio(baseline, ours):
    return baseline["median_us"] / ours if baseline else None


def text(value):
    return "-" if value is None else f"{value:.2f}"


def us(entry):
    if entry is None:
        return "-"
    value = entry["median_us"]
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


print("| layer | batch | nonzeros | cold | warm | cuDNN FP32 | cuDNN TF32 | FP32 / cold | TF32 / cold |")
print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
ratios = {}
for path in sys.argv[1:]:
    for row in json.load(open(path))["rows"]:
        cold = row["cold"]["median_us"]
        fp32, tf32 = row.get("cudnn_fp32"), row.get("cudnn_tf32")
        print(f"| {row['layer'].removeprefix('features.')}, {row['shape']} | {row['batch']} | {row['nonzeros']} | "
              f"{us(row['cold'])} | {us(row['warm'])} | {us(fp32)} | {us(tf32)} | "
              f"{text(ratio(fp32, cold))} | {text(ratio(tf32, cold))} |")
        for name, baseline in (("FP32", fp32), ("TF32", tf32)):
            if baseline:
                ratios.setdefault((name, row["batch"]), []).append(baseline["median_us"] / cold)
for (name, batch), values in sorted(ratios.items()):
    mean = math.exp(sum(map(math.log, values)) / len(values))
    print(f"\nGeometric mean over {len(values)} kernels, batch {batch}: {mean:.2f} x cuDNN {name}.", end="")
print()
