#!/usr/bin/env python3
"""Convolutions of whole networks that read the same tensor: they become fewer steps, and nothing is copied for it.

    check_siblings.py PROGRAM NAME FEWER [-- options of make.py]

PROGRAM is burin. Writes the named network of the zoo into a temporary folder, at its reduced size where no other is asked
for, and compares its steps with and without --no-siblings: at least FEWER convolutions less, and of everything else as
many. Exits with 1 where that is not so.
"""
import collections
import json
import subprocess
import sys
import tempfile

import check_models


def steps(program, model, *options):
    shown = subprocess.run([program, "inspect", str(model), "--simplify", "--memory", "--json", *options], check=True,
                           stdout=subprocess.PIPE).stdout
    return collections.Counter(step["kind"] for step in json.loads(shown)["memory"][0]["steps"])


def main():
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    if at != 3:
        sys.exit("usage: check_siblings.py PROGRAM NAME FEWER [-- options of make.py]")
    program, name, fewer = arguments[:at]
    with tempfile.TemporaryDirectory() as folder:
        model, = check_models.make([name], arguments[at + 1:], folder)
        together, apart = steps(program, model), steps(program, model, "--no-siblings")
    saved = apart.pop("convolution") - together.pop("convolution")
    print(f"{name}: {saved} convolutions fewer")
    if saved < int(fewer) or together != apart:
        sys.exit(f"{name}: {saved} convolutions fewer, at least {fewer} were expected; other steps: {dict(together)}, "
                 f"apart {dict(apart)}")


if __name__ == "__main__":
    main()
