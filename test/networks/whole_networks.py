#!/usr/bin/env python3
"""Whole networks from the command line, as a user has them: compile a model, verify the package, run it.

    whole_networks.py BURIN MODEL.onnx ... [--batch LIST] [--images N ...] [--layers]
    whole_networks.py BURIN --random SEED ... [the same]
    whole_networks.py BURIN --make NAME ... [the same] [-- options of make.py]
    whole_networks.py BURIN --family NAME ... | all [the same]
    whole_networks.py BURIN --exported SEED ... [the same]

On the host executor: `burin compile`, `burin verify` of every program against the model in float64 (with --layers step
by step), and `burin run` on as many images as --images says, whose outputs must be those of ONNX Runtime. Exits with 1
where a network fails, and says what failed; the others are tried all the same. A family that families.py says is refused must
be, for the reason that is said there.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import check_models
import exporter_graphs
import families
import onnxruntime_outputs
import random_graphs

# Of an output's largest magnitude: both sides compute in float32.
TOLERANCE = 2e-5


class Failure(Exception):
    pass


def burin(program, *arguments, **environment):
    """What it prints. Kernels of another test must not be taken for this one's."""
    command = [program, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            env={**os.environ, "BURIN_CACHE": "off", "NO_COLOR": "1", **environment})
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)}\nexit code {result.returncode}\n{result.stdout}{result.stderr}".rstrip())
    return result.stdout


def run_package(program, package, inputs, outputs, folder):
    """The outputs of `burin run` on these inputs, by name."""
    arguments = ["run", package, "--device", "host"]
    for entry in onnxruntime_outputs.save(folder / "in", inputs):
        arguments += ["--input", f"{entry['name']}={folder / entry['file']}"]
    (folder / "out").mkdir(parents=True, exist_ok=True)
    files = {name: folder / "out" / file for name, file in onnxruntime_outputs.file_names(outputs).items()}
    for name, file in files.items():
        arguments += ["--output", f"{name}={file}"]
    burin(program, *arguments)
    return {name: np.load(file) for name, file in files.items()}


def compare(outputs, expected, tolerance):
    """The largest error, of the largest magnitude of its output."""
    worst = 0.0
    for name, values in expected.items():
        if outputs[name].shape != values.shape:
            raise Failure(f"{name}: {outputs[name].shape} instead of {values.shape}")
        # Written so that a NaN fails.
        error = float(np.max(np.abs(outputs[name] - values)) / np.max(np.abs(values)))
        if not error <= tolerance:
            raise Failure(f"{name}: an error of {error:.1e} of its largest magnitude against ONNX Runtime")
        worst = max(worst, error)
    return worst


def compile_and_verify(program, path, package, options, more=()):
    compiled = burin(program, "compile", path, "-o", package, "--arch", "sm_90", "--batch", options.batch, "--jobs",
                     options.jobs, *more, **({"BURIN_ASSEMBLER": "none"} if options.ptx_only else {}))
    burin(program, "verify", package, "--against", path, "--device", "host", "--seed", options.seed, "--jobs",
          options.jobs, *(["--layers"] if options.layers else []))
    return compiled


def check_refusal(program, path, folder, reason, options):
    try:
        burin(program, "compile", path, "-o", folder / "network.burin", "--arch", "sm_90")
    except Failure as failure:
        if "exit code 4" not in str(failure) or reason not in str(failure):
            raise Failure(f"is refused for another reason than '{reason}': {failure}") from None
        print(f"{path.name}: refused: {reason}", flush=True)
        cut = re.search(r"--outputs (\S+)", str(failure))
        if cut:
            compile_and_verify(program, path, folder / "cut.burin", options, ["--outputs", cut[1]])
            print(f"{path.name}: verified with --outputs {cut[1]}", flush=True)
        return
    raise Failure(f"compiles, and families.py says it is refused: {reason}")


def check(program, path, folder, options):
    for more in families.ALSO_READ_WITH.get(path.stem, []):
        compile_and_verify(program, path, folder / "other.burin", options, more)
        print(f"{path.name}: verified with {' '.join(more)}")
    package = folder / "network.burin"
    compiled = compile_and_verify(program, path, package, options)
    tolerance = families.TOLERANCES.get(path.stem, TOLERANCE)
    model = onnxruntime_outputs.load(path)
    for images in options.images:
        inputs = onnxruntime_outputs.make_inputs(model, options.seed, images)
        expected = onnxruntime_outputs.run(model, inputs)
        got = run_package(program, package, inputs, list(expected), folder / f"run{images}")
        print(f"{path.name}: {compiled.splitlines()[0].split(': ', 1)[1]}; verified; "
              f"{next(iter(inputs.values())).shape[0]} images as ONNX Runtime has them, error "
              f"{compare(got, expected, tolerance):.1e}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description="Compiles, verifies and runs whole networks on the host executor.")
    parser.add_argument("program", help="burin")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--exported", nargs="+", type=int, default=[], metavar="SEED",
                        help="what exporters leave in a model (exporter_graphs.py), of each")
    parser.add_argument("--random", nargs="+", type=int, default=[], metavar="SEED", help="random graphs of each")
    parser.add_argument("--graphs", type=int, default=10, metavar="N", help="of a seed, at most 10 (default 10)")
    parser.add_argument("--make", nargs="+", metavar="NAME", help="networks of the zoo, reduced")
    parser.add_argument("--family", nargs="+", choices=[*families.FAMILIES, "all"], default=[], metavar="NAME",
                        help="small networks of families.py")
    parser.add_argument("--part", nargs=2, type=int, default=[0, 1], metavar=("I", "N"),
                        help="of the families, every Nth from the Ith on")
    parser.add_argument("--batch", default="1", metavar="LIST", help="batch sizes to compile for (default 1)")
    parser.add_argument("--images", nargs="+", type=int, default=[1], metavar="N", help="batches to run (default 1)")
    parser.add_argument("--ptx-only", action="store_true", help="the packages have no machine code")
    parser.add_argument("--layers", action="store_true", help="verify step by step, too")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the inputs (default 1)")
    # Tests run side by side: each takes one processor.
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="kernels compiled at once (default 1)")
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        models = list(options.models)
        for seed in options.random:
            models += random_graphs.write_graphs(scratch / f"random{seed}", seed)[:options.graphs]
        if options.make:
            models += check_models.make(options.make, arguments[at + 1:], str(scratch / "zoo"))
        names = list(families.FAMILIES) if "all" in options.family else options.family
        part, parts = options.part
        for seed in options.exported:
            models += exporter_graphs.write_graphs(scratch / f"exported{seed}", seed)
        of_families = families.write(scratch / "families", names[part::parts])
        models += of_families
        if not models:
            parser.error("name models, --random or --exported seeds, --make networks or --family networks")
        failed = 0
        for index, path in enumerate(models):
            folder = scratch / f"{index}"
            folder.mkdir()
            try:
                reason = families.REFUSED.get(path.stem) if path in of_families else None
                if reason:
                    check_refusal(options.program, path, folder, reason, options)
                else:
                    check(options.program, path, folder, options)
            except (Failure, onnxruntime_outputs.ModelError) as failure:
                print(f"{path.name}: {failure}", file=sys.stderr)
                failed += 1
    print(f"{len(models) - failed} of {len(models)} networks are as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
