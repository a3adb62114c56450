#!/usr/bin/env python3
"""ONNX's own test cases of operators, on the host executor: what burin computes right, and what it refuses and why.

    onnx_cases.py BURIN [--only GLOB ...] [--jobs N] [--markdown FILE | --check FILE] [--verbose]

The cases are those that the package `onnx` brings: a model of a node or two, its inputs, and the outputs that it must have.
A case is taken where its first input and all outputs are FP32; that input is the model's, with the first axis as the batch,
and the others become constants of the model, as they are in networks. Each is compiled, run and compared. A case is right, or
refused (exit code 4, with a reason); everything else fails: other numbers, another shape, another exit code.

--markdown writes the table of operators and the list of refusals; --check compares them with a file that has them between
its marks. Exits with 1 where a case fails or the file is another.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SETS = ("node", "simple", "pytorch-converted", "pytorch-operator")
BEGIN, END = "<!-- cases: begin -->", "<!-- cases: end -->"
# Some cases have outputs of four digits. Beside that, FP32 sums are off by a share of the largest output.
RELATIVE, OF_LARGEST = 3e-4, 4e-6
SECONDS = 120

Case = collections.namedtuple("Case", "name folder operator")
Outcome = collections.namedtuple("Outcome", "case kind reason")


def cases(patterns):
    """Those whose name matches, in the order of their names."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    found = []
    for folder in sorted(path for name in SETS for path in (data / name).glob("test_*")):
        if patterns and not any(fnmatch.fnmatch(folder.name, pattern) for pattern in patterns):
            continue
        model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
        kinds = collections.Counter(node.op_type for node in model.graph.node if node.op_type != "Constant")
        # What a function is made of follows in its own case; the operator is what the case is called by.
        found.append(Case(folder.name, folder, kinds.most_common(1)[0][0] if kinds else "Constant"))
    return found


def load_values(path, info):
    """A tensor; None for what is none."""
    if not info.type.HasField("tensor_type"):
        return None
    return onnx.load_tensor(str(path))


def is_fp32(tensor):
    return tensor is not None and tensor.data_type == onnx.TensorProto.FLOAT


class OutOfScope(Exception):
    pass


def prepare(case, target):
    """Writes the model with all inputs but the first as constants; returns that input and the outputs it must have."""
    model = onnx.load(str(case.folder / "model.onnx"))
    graph = model.graph
    known = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in known]
    data = case.folder / "test_data_set_0"
    given = [load_values(data / f"input_{i}.pb", info) for i, info in enumerate(inputs)]
    wanted = [load_values(data / f"output_{i}.pb", info) for i, info in enumerate(graph.output)]
    if not given or not is_fp32(given[0]):
        raise OutOfScope("its first input is not FP32")
    if not all(is_fp32(tensor) for tensor in wanted):
        raise OutOfScope("an output is not FP32")
    if any(tensor is None for tensor in given):
        raise OutOfScope("an input is no tensor")
    if len(given[0].dims) == 0 or 0 in given[0].dims:
        raise OutOfScope("its input has no values, or no axes")
    for info, tensor in zip(inputs[1:], given[1:]):
        tensor.name = info.name
        graph.initializer.append(tensor)
        graph.input.remove(info)
    onnx.save(model, str(target))
    expected = {info.name: numpy_helper.to_array(tensor) for info, tensor in zip(graph.output, wanted)}
    return inputs[0].name, numpy_helper.to_array(given[0]), expected


def burin(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=SECONDS,
                            env={**os.environ, "BURIN_CACHE": "off", "BURIN_ASSEMBLER": "none", "NO_COLOR": "1"})
    lines = [line for line in result.stderr.splitlines() if line.startswith("burin: error: ")]
    return result.returncode, lines[0].removeprefix("burin: error: ") if lines else result.stderr.strip()[-300:]


def difference(got, expected):
    """In words; None where the two are as good as equal."""
    if got.shape != expected.shape:
        return f"{list(got.shape)} instead of {list(expected.shape)}"
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return "other infinities or NaNs"
    largest = np.max(np.abs(expected[finite]), initial=0)
    error = np.abs(got[finite] - expected[finite])
    beyond = error > RELATIVE * np.abs(expected[finite]) + OF_LARGEST * largest
    # Written so that a NaN fails.
    if beyond.any() or not np.isfinite(got[finite]).all():
        return f"{int(beyond.sum())} of {expected.size} values differ, by {float(np.max(error)):.2e} at most"
    return None


def run(program, case, folder):
    model, package = folder / "model.onnx", folder / "case.burin"
    name, values, expected = prepare(case, model)
    code, error = burin(program, "compile", model, "-o", package, "--arch", "sm_90", "--batch", values.shape[0], "-q")
    if code == 4:
        return "refused", error.replace(f"{model}: ", "")
    if code != 0:
        return "failed", f"compile: exit code {code}: {error}"
    np.save(folder / "in.npy", values)
    outputs = {output: folder / f"out{i}.npy" for i, output in enumerate(expected)}
    arguments = [argument for output, file in outputs.items() for argument in ("--output", f"{output}={file}")]
    code, error = burin(program, "run", package, "--device", "host", "--input", f"{name}={folder / 'in.npy'}", *arguments)
    if code != 0:
        return "failed", f"run: exit code {code}: {error}"
    for output, file in outputs.items():
        different = difference(np.load(file), expected[output])
        if different:
            return "failed", f"{output}: {different}"
    return "right", ""


def outcome(program, case):
    try:
        with tempfile.TemporaryDirectory() as folder:
            return Outcome(case, *run(program, case, Path(folder)))
    except OutOfScope as reason:
        return Outcome(case, "out of scope", str(reason))
    except subprocess.TimeoutExpired:
        return Outcome(case, "failed", f"not done after {SECONDS} s")


def without_names(reason):
    """What the reasons of cases have in common: a node is named as its operator alone."""
    reason = re.sub(r"^(node|input) '[^']*'( \(\w+\))?: ", "", reason)
    reason = re.sub(r"; \d+ of the \d+ nodes are before that, .*", "", reason)
    return re.sub(r" \(nodes? '[^)]*\)", "", reason)


def markdown(outcomes):
    """A row for each operator, and a line for each reason with the cases that have it."""
    rows = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(list)
    for each in outcomes:
        rows[each.case.operator][each.kind] += 1
        if each.kind == "refused":
            reasons[(each.case.operator, without_names(each.reason))].append(each.case.name.removeprefix("test_"))
    known = {operator: counts for operator, counts in sorted(rows.items()) if counts["right"] > 0}
    lines = ["| operator | cases right | refused |", "| --- | --- | --- |"]
    lines += [f"| `{operator}` | {counts['right']} | {counts['refused'] or ''} |" for operator, counts in known.items()]
    lines += ["", "Refused, of operators that others of the cases are right of:", ""]
    for (operator, reason), names in sorted(reasons.items()):
        if operator in known:
            lines.append(f"- `{operator}`: {reason} ({', '.join(names)})")
    unknown = sorted(operator for operator, counts in rows.items() if counts["right"] == 0 and counts["refused"] > 0)
    lines += ["", f"All cases refused: {', '.join(f'`{operator}`' for operator in unknown)}."]
    return "\n".join(lines) + "\n"


def between_marks(text):
    before, found, rest = text.partition(BEGIN + "\n")
    inner, ended, after = rest.partition(END)
    if not found or not ended:
        sys.exit(f"onnx_cases.py: error: the file has no lines {BEGIN} and {END}")
    return before + BEGIN + "\n", inner, END + after


def main():
    parser = argparse.ArgumentParser(description="Runs ONNX's test cases of operators on the host executor.")
    parser.add_argument("program", help="burin")
    parser.add_argument("--only", nargs="+", default=[], metavar="GLOB", help="cases whose names match")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at once (default 1)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between the file's marks")
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare the tables with those between its marks")
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    options = parser.parse_args()
    found = cases(options.only)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda case: outcome(options.program, case), found))
    counts = collections.Counter(each.kind for each in outcomes)
    for each in outcomes:
        if options.verbose or each.kind == "failed":
            print(f"{each.case.name} ({each.case.operator}): {each.kind} {each.reason}".rstrip(),
                  file=sys.stderr if each.kind == "failed" else sys.stdout)
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("right", "refused", "failed", "out of scope")))
    failed = counts["failed"] > 0 or counts["right"] == 0
    if options.markdown or options.check:
        page = options.markdown or options.check
        before, inner, after = between_marks(page.read_text(encoding="utf-8"))
        made = markdown(outcomes)
        if options.markdown:
            page.write_text(before + made + after, encoding="utf-8")
        elif inner != made:
            print(f"{page} shows other cases than there are; onnx_cases.py --markdown writes it anew", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
