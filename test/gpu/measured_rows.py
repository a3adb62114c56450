"""What the programs here share that measure row after row: calls of burin, faults as texts, files that are whole, tables.
Needs nothing but Python 3."""
import datetime
import json
import math
import subprocess
import sys
import time
from pathlib import Path

UNKNOWN = "-"


class Failure(Exception):
    pass


class TookTooLong(Failure):
    pass


def call(options, command):
    """What the command prints. Throws Failure with its error."""
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        raise TookTooLong(f"it was not done after {options.timeout} seconds (--timeout)") from None
    if result.returncode != 0:
        said = result.stderr.strip() or result.stdout.strip()
        errors = [line for line in said.splitlines() if ": error: " in line]
        if errors:
            said = errors[-1]  # without the notes around it
        elif "Traceback (most recent call last)" in said:
            said = said.splitlines()[-1]  # the error itself
        raise Failure(f"exit code {result.returncode}: {said}")
    return result.stdout


def fault_text(error):
    """In one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def save(file, document):
    """Nothing where no file was asked for."""
    if not file:
        return
    partial = file.with_name(file.name + ".partial")
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.replace(file)  # whoever is stopped here leaves the last whole one


def check_resuming(parser, options):
    """For programs with --continue."""
    if options.resume and not options.json:
        parser.error("--continue needs --json")


def begin_document(options, **environment):
    """With the rows of --json where it is to be continued."""
    document = {"environment": {"measured": datetime.date.today().isoformat(), **environment}, "rows": []}
    if options.resume and options.json.exists():
        document["rows"] = json.loads(options.json.read_text())["rows"]
    return document


def add_sweep_options(parser, what):
    """Options of programs that measure one thing after the other: run_sweep() goes by them."""
    parser.add_argument("--samples", type=int, default=20, metavar="N", help="launches behind each figure (default 20)")
    parser.add_argument("--arch", default="native", help="default native")
    parser.add_argument("--device", default="cuda:0", help="default cuda:0")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of each call of burin (default 600)")
    parser.add_argument("--budget", type=float, metavar="S", help=f"begin no {what} after so many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out what --json has")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/feature-maps.md")


def run_sweep(options, name, values, about, measure, report):
    """measure(value) gives rows for each of `values`, which have it under `name` beside what `about` says; what fails is a row
    with its fault. Prints report(document, markdown), and returns the exit code: 1 where one failed or was not begun."""
    options.out.mkdir(parents=True, exist_ok=True)
    document, started, left = begin_document(options), time.monotonic(), []
    done = {tuple(row[key] for key in (name, *about)) for row in document["rows"]}
    for value in values:
        own = {name: value, **about}
        if tuple(own.values()) in done:
            continue
        if options.budget is not None and time.monotonic() - started > options.budget:
            left.append(value)
            continue
        try:
            rows = [{**own, **row} for row in measure(value)]
        except Failure as failure:
            rows = [{**own, "fault": str(failure)}]
        document["rows"] += rows
        save(options.json, document)
    print(report(document, options.markdown))
    if left:
        print(f"not begun: {', '.join(left)} (--budget)")
    return 1 if left or any(row["fault"] for row in document["rows"]) else 0


def microseconds(value):
    return UNKNOWN if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_text(value):
    return UNKNOWN if value is None else f"{value:.2f}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def as_text(heads, cells, left):
    """Columns whose heads are in `left` begin where their heads do; the others end there."""
    widths = [max(len(row[column]) for row in [heads, *cells]) for column in range(len(heads))]
    lines = [[text.ljust(width) if head in left else text.rjust(width) for text, width, head in zip(row, widths, heads)]
             for row in [heads, *cells]]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def as_markdown(heads, cells):
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *cells])


def table(heads, cells, left, markdown):
    return as_markdown(heads, cells) if markdown else as_text(heads, cells, left)
