#!/usr/bin/env python3
"""Runs the commands that the pages of docs/ show and compares what they print with what the pages say.

    check_samples.py BURIN [--update]

A sample is a block of a page whose first line begins with "$ ". The lines from one "$ " to the next are what that
command prints; a line "..." stands for any number of lines, and a command without lines is run for its effect. Seconds
and seeds that were drawn are not compared; numbers are not where another assembler is found than the pages are of, whose
code has other sizes, or where numpy makes another model. A block behind the line <!-- by hand --> is left out: what it needs is not made here. The samples of
all pages run in one folder, in the order of PAGES, so that later ones find what earlier ones have made. --update writes
what comes out into the pages.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PAGES = ["networks.md", "cli.md", "pipeline.md"]
BY_HAND = "<!-- by hand -->"
ASSEMBLER = "13.0"  # of which the pages are
# Of the model that most pages show, as numpy made it for them: on other processors it may round otherwise.
MODEL_SHA256 = "66a8b135579469dfa8896c0eec1a9fe92643dd7e97c499c69dfda600a0bc32f4"
LEAST_COMMANDS = 30  # fewer were found: the pages have changed their form, and nothing was checked


compares_numbers = True


def masked(line):
    line = re.sub(r"\bseed \d{5,}", "seed DRAWN", re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", line.rstrip()))
    return line if compares_numbers else re.sub(r"[ -]+", " ", re.sub(r"\d[\d.,]*", "N", line))


def matches(expected, actual):
    """Whether the lines are the same, where "..." is any number of lines."""
    if "..." not in expected:
        return [masked(line) for line in expected] == [masked(line) for line in actual]
    at = expected.index("...")
    before, behind = expected[:at], expected[at + 1:]
    if len(actual) < len(before) + len(behind) or not matches(before, actual[:at]):
        return False
    return any(matches(behind, actual[i:]) for i in range(at, len(actual) + 1))


def renewed(expected, actual):
    """What came out, with as many lines before and behind each "..." as there were."""
    if "..." not in expected:
        return actual
    at, behind = expected.index("..."), expected[::-1].index("...")
    return actual[:at] + ["..."] + (actual[-behind:] if behind else [])


def commands_of(block):
    """Pairs of a command and the indices of the lines that it prints."""
    starts = [i for i, line in enumerate(block) if line.startswith("$ ")]
    return [(block[start][2:], (start + 1, end)) for start, end in zip(starts, starts[1:] + [len(block)])]


def run(command, folder, environment):
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # How long things take says whether there is progress to tell.
    lines = [line for line in result.stdout.splitlines() if not re.match(r"burin: \w+: \d+ of \d+ after", line)]
    # In columns, as a terminal shows it.
    return in_columns(lines) if command.startswith("ls ") else lines


def in_columns(lines):
    result, names = [], []
    for line in lines + [""]:
        if line and not line.endswith(":"):
            names.append(line)
            continue
        if names:
            result.append("  ".join(names))
        result.append(line)
        names = []
    return result[:-1]


def prepare(folder, burin):
    """What the pages take for granted: the tool on the path, the examples, small.safetensors."""
    (folder / "bin").mkdir()
    (folder / "bin" / "burin").symlink_to(burin)
    (folder / "examples").symlink_to(SOURCE / "examples")
    (folder / ".venv" / "bin").mkdir(parents=True)
    # A link to an interpreter would not find its packages: the name must stay what it is.
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "bin" / "python3").symlink_to(python)
    environment = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", BURIN_CACHE=str(folder / "cache"),
                       COLUMNS="200")
    def make(*command):
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    make("python3", "examples/make_pruned_network.py", "small.safetensors")
    make("burin", "compile", "small.safetensors", "--arch", "sm_90", "--no-cache", "--quiet")
    return environment


def assembler_version(environment):
    report = json.loads(subprocess.run(["burin", "doctor", "--json"], env=environment, text=True, check=False,
                                       stdout=subprocess.PIPE).stdout)
    return report["assembler"].split()[-1]  # "nvJitLink 13.0"


def model_sha256(environment, folder):
    probe = folder / "probe"
    subprocess.run(["python3", "examples/models/make.py", "--out", str(probe), "--model", "lenet5"], cwd=folder,
                   env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return hashlib.sha256((probe / "lenet5.onnx").read_bytes()).hexdigest()


def check_page(path, folder, environment, update):
    """The number of commands, and what is wrong with them."""
    lines, faults, commands = path.read_text().splitlines(), [], 0
    result, i = [], 0
    while i < len(lines):
        result.append(lines[i])
        i += 1
        if result[-1] != "```" or not lines[i].startswith("$ "):
            continue
        by_hand = len(result) > 1 and result[-2] == BY_HAND
        end = lines.index("```", i)
        block = lines[i:end]
        first = i
        i = end + 1
        if by_hand:
            result += block + ["```"]
            continue
        for command, (begin, stop) in commands_of(block):
            commands += 1
            expected, actual = block[begin:stop], run(command, folder, environment)
            result.append("$ " + command)
            if not expected or matches(expected, actual):
                result += expected
                continue
            faults.append(f"{path.name}:{first + begin}: $ {command}\n  the page says\n    " + "\n    ".join(expected) +
                          "\n  it prints\n    " + "\n    ".join(actual))
            result += renewed(expected, actual)
        result.append("```")
    if update and faults:
        path.write_text("\n".join(result) + "\n")
    return commands, faults


def main():
    global compares_numbers
    burin, update = Path(sys.argv[1]).resolve(), "--update" in sys.argv[2:]
    commands, faults = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = prepare(folder, burin)
        compares_numbers = (assembler_version(environment) == ASSEMBLER and
                            model_sha256(environment, folder) == MODEL_SHA256)
        for page in PAGES:
            found, wrong = check_page(SOURCE / "docs" / page, folder, environment, update)
            commands += found
            faults += wrong
    if commands < LEAST_COMMANDS:
        sys.exit(f"only {commands} commands were found on {', '.join(PAGES)}")
    print("\n".join(faults) + f"\n{commands} commands, {len(faults)} print something else than the pages say"
          + (", which were brought up to date" if update and faults else ""))
    sys.exit(bool(faults) and not update)


if __name__ == "__main__":
    main()
