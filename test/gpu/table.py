#!/usr/bin/env python3
"""Markdown for docs/performance.md from `burin bench --json` files: test/gpu/table.py FILE.json...

One table of all kernels, then geometric means of cuDNN's time over ours, cold, of convolutions: for each file and batch
size, and over all files together; then what their code takes.
"""
import json
import math
import sys

BASELINES = [("FP32", "cudnn_fp32"), ("TF32", "cudnn_tf32"), ("FP16", "cudnn_fp16"), ("BF16", "cudnn_bf16")]
UNKNOWN = "-"


def microseconds(entry):
    if entry is None:
        return UNKNOWN
    value = entry["median_us"]
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def size(count):
    if count is None:
        return UNKNOWN
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def ratio(row, key):
    return row[key]["median_us"] / row["cold"]["median_us"] if row.get(key) else None


def geometric_mean(rows, key):
    logs = [math.log(value) for row in rows if (value := ratio(row, key)) is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None


def number(value):
    return UNKNOWN if value is None else f"{value:.2f}"


def print_table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("| " + " | ".join(["---"] * len(heads)) + " |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def convolutions(rows):
    """Those that have weights: a pool of a network is a row, too."""
    return [row for row in rows if "nonzeros" in row]


def precision(row):
    return row.get("precision", "fp32")


def calls(row):
    """What cuDNN's time consists of."""
    return row.get("cudnn_calls", "conv")


def kernel_cells(row, baselines, with_precision, with_calls):
    return [f"{row['layer'].removeprefix('features.')}, {row['shape']}", *([precision(row)] if with_precision else []),
            row["batch"], row.get("nonzeros", UNKNOWN), *([calls(row)] if with_calls else []),
            microseconds(row["cold"]), microseconds(row["warm"]),
            *(microseconds(row.get(key)) for _, key in baselines),
            *(number(ratio(row, key)) for _, key in baselines),
            *(size(row.get(key)) for key in ("code_bytes", "csr_bytes", "dense_bytes"))]


def mean_cells(name, batch, rows, baselines):
    return [name, batch, len(rows), *(number(geometric_mean(rows, key)) for _, key in baselines)]


def mean_rows(files, baselines):
    files = {name: convolutions(rows) for name, rows in files.items()}
    everything = [row for rows in files.values() for row in rows]
    named = list(files.items()) + ([("together", everything)] if len(files) > 1 else [])
    for name, rows in named:
        batches = sorted({row["batch"] for row in rows})
        for batch in batches:
            yield mean_cells(name, batch, [row for row in rows if row["batch"] == batch], baselines)
        if len(batches) > 1:
            yield mean_cells(name, "all", rows, baselines)


def size_rows(documents):
    """Of each file and batch size; the package holds the kernels of all batch sizes, PTX too."""
    for name, document in documents.items():
        measured = convolutions(document["rows"])
        for batch in sorted({row["batch"] for row in measured}):
            rows = [row for row in measured if row["batch"] == batch]
            sums = [None if any(row.get(key) is None for row in rows) else sum(row[key] for row in rows)
                    for key in ("code_bytes", "csr_bytes", "dense_bytes")]
            yield [name, batch, *map(size, sums), size(document.get("package_bytes"))]


def main(paths):
    if not paths:
        sys.exit("usage: table.py FILE.json...")
    documents = {}
    for path in paths:
        with open(path) as file:
            documents[path.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".bench")] = json.load(file)
    files = {name: document["rows"] for name, document in documents.items()}
    everything = [row for rows in files.values() for row in rows]
    baselines = [(name, key) for name, key in BASELINES if any(row.get(key) for row in everything)]
    names = [name for name, _ in baselines]
    ratios = [f"{name} / cold" for name in names]
    with_precision = any(precision(row) != "fp32" for row in everything)
    with_calls = any(calls(row) != "conv" for row in everything)
    for name, rows in files.items():
        if len(files) > 1:
            print(f"## {name}\n")
        print_table(["layer", *(["precision"] if with_precision else []), "batch", "nonzeros",
                     *(["cuDNN's calls"] if with_calls else []), "cold", "warm",
                     *(f"cuDNN {name}" for name in names), *ratios, "code", "CSR", "dense"],
                    [kernel_cells(row, baselines, with_precision, with_calls) for row in rows])
    if len(files) > 1:
        print("## Together\n")
    if baselines:
        print("Geometric means of cuDNN's time over ours, cold.\n")
        print_table(["file", "batch", "kernels", *ratios], mean_rows(files, baselines))
    print("Bytes of the weights: as code in device memory, as CSR and dense; and the package on disk.\n")
    print_table(["file", "batch", "code", "CSR", "dense", "package"], size_rows(documents))


if __name__ == "__main__":
    main(sys.argv[1:])
