#!/usr/bin/env python3
"""Whole networks against ONNX Runtime: what burin makes of a model, tensor by tensor, beside what that computes.

    against_onnxruntime.py PROGRAM MODEL.onnx ... [--batch N] [--seed N]
    against_onnxruntime.py PROGRAM --random SEED ...
    against_onnxruntime.py PROGRAM --make NAME ... [-- options of make.py]
    against_onnxruntime.py PROGRAM --exported SEED ...

PROGRAM is burin_against_tensors of the build: it imports the model, runs it in float64 and compares with the tensors
that ONNX Runtime has left in a folder. Exits with 1 where a model differs.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import check_models
import exporter_graphs
import onnxruntime_outputs
import random_graphs


def compare(program, model, folder, seed, batch):
    """Whether burin and ONNX Runtime agree about every tensor of the model that both have."""
    onnxruntime_outputs.write(model, folder, seed=seed, batch=batch, all_tensors=True)
    return subprocess.run([program, str(model), str(folder)], check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description="Compares burin with ONNX Runtime, tensor by tensor.")
    parser.add_argument("program", help="burin_against_tensors")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--random", nargs="+", type=int, default=[], metavar="SEED", help="ten random graphs of each")
    parser.add_argument("--exported", nargs="+", type=int, default=[], metavar="SEED",
                        help="the graphs of exporter_graphs.py")
    parser.add_argument("--make", nargs="+", metavar="NAME", help="networks of the zoo, reduced")
    parser.add_argument("--batch", type=int, default=2, metavar="N", help="images (default 2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the inputs (default 1)")
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        models = list(options.models)
        for seed in options.random:
            models += random_graphs.write_graphs(scratch / f"random{seed}", seed)
        for seed in options.exported:
            models += exporter_graphs.write_graphs(scratch / f"exported{seed}", seed)
        if options.make:
            models += check_models.make(options.make, arguments[at + 1:], scratch / "models")
        if not models:
            parser.error("name models, --random or --exported seeds, or --make networks")
        failed = []
        for number, model in enumerate(models):
            try:
                same = compare(options.program, model, scratch / f"tensors{number}", options.seed, options.batch)
            except onnxruntime_outputs.ModelError as error:
                print(f"error: {model}: {error}", file=sys.stderr)
                same = False
            if not same:
                failed.append(model.name)
    exceptions = f"; not {', '.join(failed)}" if failed else ""
    print(f"{len(models) - len(failed)} of {len(models)} models agree{exceptions}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
