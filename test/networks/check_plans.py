#!/usr/bin/env python3
"""Memory plans of whole networks, run step by step through their places, beside the interpreter.

    check_plans.py PROGRAM NAME ... [-- options of make.py]

PROGRAM is burin_check_plans of the build. Writes the named networks of the zoo into a temporary folder, at their reduced
size where no other is asked for. Exits with 1 where a plan is wrong.
"""
import subprocess
import sys
import tempfile

import check_models


def main():
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    if at < 2:
        sys.exit("usage: check_plans.py PROGRAM NAME ... [-- options of make.py]")
    program, *names = arguments[:at]
    with tempfile.TemporaryDirectory() as folder:
        models = check_models.make(names, arguments[at + 1:], folder)
        return subprocess.run([program, *map(str, models)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
