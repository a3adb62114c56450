"""What the programs here share that measure row after row: calls of burin, faults as texts, files that are whole, tables.
Needs nothing but Python 3."""
import datetime
import json
import math
import subprocess
import sys

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
