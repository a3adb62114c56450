#!/usr/bin/env python3
"""Tables of what networks.py measured: networks_table.py FILE.json ... [--markdown]"""
import argparse
import json
import sys

from measured_rows import UNKNOWN, as_markdown, as_text, geometric_mean, microseconds, ratio_text

PRECISIONS = ("fp32", "tf32", "fp16")
FIGURES = (("back_to_back", "Launches one behind the other, microseconds for each (medians)"),
           ("latency", "One launch on an idle device, microseconds (medians); contains the host's share of a launch"))


def median(times, figure):
    return times[figure]["median_us"] if times else None


def ratio(torch_us, burin_us):
    return torch_us / burin_us if torch_us and burin_us else None


def measured_precisions(rows, side):
    return [name for name in PRECISIONS if any(name in row[side] for row in rows)]


def least(times):
    return min((time for time in times if time is not None), default=None)


def table(rows, figure):
    """The heads, and a list of cells for each row; then the geometric means of each batch size.

    Where burin has one precision, its time is compared with each of PyTorch's; where it has several, its best with PyTorch's."""
    own, precisions = measured_precisions(rows, "burin"), measured_precisions(rows, "torch")
    several = len(own) > 1
    ratios_of = ["best / best"] if several else [f"{name.upper()} / burin" for name in precisions]
    heads = ["network", "batch", *([f"burin {name.upper()}" for name in own] if several else ["burin"]),
             *(f"PyTorch {name.upper()}" for name in precisions), *ratios_of,
             *(f"best {name.upper()}" for name in precisions)]
    cells, ratios = [], {}
    for row in rows:
        burin = [median(row["burin"].get(name), figure) for name in own or ["fp32"]]
        best = [row["torch"].get(name, {}).get(figure) for name in precisions]
        times = [median(entry, figure) for entry in best]
        over = [ratio(time, least(burin)) for time in ([least(times)] if several else times)]
        for name, value in zip(ratios_of, over):
            if value is not None:
                ratios.setdefault((row["batch"], name), []).append(value)
        cells.append([row["network"], str(row["batch"]), *map(microseconds, burin), *map(microseconds, times),
                      *map(ratio_text, over), *(entry["variant"] if entry else UNKNOWN for entry in best)])
    for batch in sorted({batch for batch, _ in ratios}):
        means = [geometric_mean(ratios.get((batch, name))) for name in ratios_of]
        count = max(len(ratios.get((batch, name), [])) for name in ratios_of)
        cells.append([f"geometric mean of {count}", str(batch), *([""] * max(1, len(own))), *([""] * len(precisions)),
                      *map(ratio_text, means), *([""] * len(precisions))])
    return heads, cells


def own_error(row, precision):
    """How far PyTorch's own outputs are off in the same precision, at least; None: that was not measured."""
    errors = [entry["error"] for entry in row["variants"] if entry["precision"] == precision and "error" in entry]
    return min(errors, default=None) if precision != "fp32" else None


def agreement(rows):
    """Errors of burin's outputs against PyTorch's FP32, and what failed."""
    lines = []
    for row in rows:
        for precision, error in row["error"].items():
            own = own_error(row, precision)
            beside = f", PyTorch's {precision.upper()} by {own:.1e}" if own else ""
            lines.append(f"{row['network']}, batch {row['batch']}: outputs in {precision} differ from PyTorch's FP32 by "
                         f"{error:.1e} of the largest{beside}")
        lines += [f"{row['network']}, batch {row['batch']}: FAILED: {fault}" for fault in row["faults"]]
    return lines


def report(document, markdown=False):
    rows = document["rows"]
    environment = ", ".join(f"{name} {value}" for name, value in document["environment"].items())
    parts = [environment]
    for figure, title in FIGURES:
        heads, cells = table(rows, figure)
        left = {heads[0], *(head for head in heads if head.startswith("best") and "/" not in head)}
        parts.append(f"{title}.\n\n" + (as_markdown(heads, cells) if markdown else as_text(heads, cells, left)))
    parts.append(("\n" if not markdown else "\n\n").join(agreement(rows)))
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description="Tables of what networks.py measured.")
    parser.add_argument("files", nargs="+", metavar="FILE.json", help="one session, or several of the same machine")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    documents = []
    for path in options.files:
        with open(path) as file:
            documents.append(json.load(file))
    together = {"environment": documents[0]["environment"], "rows": [row for one in documents for row in one["rows"]]}
    print(report(together, options.markdown))


if __name__ == "__main__":
    sys.exit(main())
