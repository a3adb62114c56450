#!/usr/bin/env python3
"""Ways to run one network on a GPU, beside each other: which part of burin's time is due to which choice.

    strategies.py BURIN --out FOLDER [MODEL.onnx ...] [--batch 1,128] [--precisions fp32,tf32,fp16] [--only GLOB ...]
                  [--budget S] [--timeout S] [--tune-budget TIME] [--json FILE] [--continue] [--prepare N] [--list] [--markdown]

Without a model: AlexNet of examples/models/make.py, dense and pruned as published. Strategies are, in each precision:

- one kind of kernel for all convolutions that it can compute (`burin compile --kernels`), one of them each of cuDNN's
  algorithms; the others are baked, or what burin chooses where that stands in the name;
- layouts alone: one kind, with the tensors in another layout than `nchw`, or in those that burin chooses;
- the choice alone: kernels as the models or `burin tune` choose them, with `--layout nchw`;
- both, which is what burin does where nobody asks for anything else: by the models, which the ratios refer to, and tuned;
- PyTorch: eager and as a CUDA graph, with cuDNN's heuristics (cudnn.benchmark False) and with measurement, contiguous and
  channels_last, with bias and ReLU in the convolutions, and as torch.compile makes it.

Outputs of a random batch must be those of PyTorch's FP32 as networks.py asks for. A strategy that fails has its fault in
its row, and the others go on. Rows are written to --json after each strategy; --continue leaves out those that it has.
--prepare N compiles what needs no GPU, N at once, and measures nothing. No strategy is begun --budget seconds after the
start. The exit code is 1 where one failed or was not begun.

Needs torch with CUDA, onnx and numpy.
"""
import argparse
import collections
import copy
import fnmatch
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import measured_rows
import networks
import networks_table
from measured_rows import UNKNOWN, Failure, fault_text

HERE = Path(__file__).resolve().parent
MAKE = HERE.parent.parent / "examples" / "models" / "make.py"
PRECISIONS = ("fp32", "tf32", "fp16")
CUDNN_ALGORITHMS = ("implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd",
                    "winograd_nonfused")
CHOICE = "both, by models"  # what the ratios refer to


@dataclass(frozen=True)
class Strategy:
    name: str
    precision: str
    options: tuple = ()  # of burin compile or tune
    tune: bool = False
    torch: tuple = ()  # of PyTorch: form, layout, benchmark, graph; burin: none


def burin_strategies(precision):
    """Of one precision, the choice first."""
    def one(name, *options):
        return Strategy(name, precision, options)

    made = [one(CHOICE), one("choice alone, by models", "--layout", "nchw")]
    if precision == "fp32":
        made += [one(f"all {kind}", "--kernels", kind) for kind in ("dense", "streamed", "winograd", "baked")]
        made += [one("layouts alone: all baked, nchw4", "--kernels", "baked", "--layout", "nchw4")]
    if precision == "tf32":
        made += [one(f"all {kind}", "--kernels", kind, "--layout", layout)
                 for kind, layout in (("gathered_rows", "nchw"), ("warpgroup_rows", "nchw"), ("warpgroup_tf32", "n4c8hw"))]
    if precision == "fp16":
        made += [one(f"all {kind}, nchw", "--kernels", kind, "--layout", "nchw")
                 for kind in ("gathered_rows", "warpgroup_rows")]
        made += [one("layouts alone: all warpgroup_rows", "--kernels", "warpgroup_rows")]
        made += [one(f"all {kind}, n8c8hw", "--kernels", kind, "--layout", "n8c8hw") for kind in ("gathered", "warpgroup")]
    else:
        made += [one(f"all cuDNN {name}", "--kernels", "cudnn", "--plan", f"algorithm={name}") for name in CUDNN_ALGORITHMS]
    return made


def tuned_strategies(precision):
    """What takes minutes."""
    return [Strategy("both, tuned", precision, (), tune=True),
            Strategy("choice alone, tuned", precision, ("--layout", "nchw"), tune=True)]


def torch_strategies(precision):
    made = []
    for form in ("plain", "fused"):
        for layout in ("contiguous", "channels_last"):
            for benchmark in (False, True):
                for graph in (False, True):
                    name = (f"PyTorch {form}, {layout}, {'measured' if benchmark else 'heuristics'}, "
                            f"{'graph' if graph else 'eager'}")
                    made.append(Strategy(name, precision, torch=(form, layout, benchmark, graph)))
    return made + [Strategy(f"PyTorch compiled, {layout}, measured, graph", precision,
                            torch=("compiled", layout, True, True)) for layout in ("contiguous", "channels_last")]


def strategies_of(precisions, only, with_torch):
    """What is tuned comes last of a precision, so that a budget leaves out as few as it must."""
    made = [strategy for precision in sorted(precisions, key=PRECISIONS.index)
            for strategy in [*burin_strategies(precision), *(torch_strategies(precision) if with_torch else []),
                             *tuned_strategies(precision)]]
    return [one for one in made if not only or any(fnmatch.fnmatchcase(one.name, glob) for glob in only)]


# --- burin ------------------------------------------------------------------------------------------------------------

def package_of(out, network, strategy):
    name = "".join(char if char.isalnum() else "_" for char in strategy.name)
    return out / f"{network}.{strategy.precision}.{name}.burin"


def options_of(options, strategy):
    """Those that networks.py's functions take, for one strategy."""
    own = copy.copy(options)
    own.tune = strategy.tune
    own.compile_option = [*strategy.options, *(["--budget", options.tune_budget] if strategy.tune else [])]
    own.bench_option = []
    return own


def compile_strategy(options, path, strategy):
    package = package_of(options.out, path.stem, strategy)
    return networks.once(package, networks.compile_package, options_of(options, strategy), path, strategy.precision)


def kernels_of(entry):
    """What the convolutions of a batch run as, the most frequent first: "4 conv_dense, 1 cuDNN 9.19.0 WINOGRAD"."""
    names = [step["kernel"].split(",")[0] for step in entry.get("steps", []) if step["kind"] == "convolution"]
    names = ["conv_baked" if name.startswith("tile ") else name for name in names]
    return ", ".join(f"{count} {name}" for name, count in collections.Counter(names).most_common())


def measure_burin(options, model, path, strategy, expected, rows):
    package = compile_strategy(options, path, strategy)
    own = options_of(options, strategy)
    for batch, entry in networks.bench_package(own, package).items():
        rows[batch].update({figure: entry[figure]["median_us"] for figure, _ in networks_table.FIGURES},
                           kernels=kernels_of(entry))
    names = [value.name for value in model.graph.output]
    for batch, row in rows.items():
        if batch not in expected:
            continue
        images = networks.random_images(model, batch)
        got = networks.run_package(own, package, list(images), images.values(), names)
        row["error"] = networks.largest_error(got, expected[batch])


# --- PyTorch ----------------------------------------------------------------------------------------------------------

def measure_torch(options, model, make_network, strategy, expected, rows):
    import torch
    import torch_times
    form, layout, benchmark, graph = strategy.torch
    network = make_network()
    if form == "fused" and network.fuse() == 0:
        raise Failure("cuDNN has nothing to fuse here")
    variant = torch_times.Variant(form, layout, strategy.precision, benchmark, graph)
    for batch, row in rows.items():
        images = list(networks.random_images(model, batch).values())
        times, outputs = torch_times.measure(network, variant, images, options.samples, options.seconds)
        row.update({figure: times[figure]["median_us"] for figure, _ in networks_table.FIGURES})
        if batch in expected:
            row["error"] = networks.largest_error(outputs, expected[batch])
        torch.cuda.empty_cache()


def reference_outputs(options, model, make_network):
    """PyTorch's FP32 outputs of each batch size, contiguous."""
    import torch_times
    made = {}
    for batch in batches_of(options):
        network = make_network()
        torch_times.set_up(network, "fp32", "contiguous")
        images = torch_times.place(list(networks.random_images(model, batch).values()), "fp32", "contiguous")
        made[batch] = torch_times.EagerRun(network, images).outputs()
    return made


# --- all of them ------------------------------------------------------------------------------------------------------

def batches_of(options):
    return [int(batch) for batch in options.batch.split(",")]


def allowed_error(precision):
    return networks.TOLERANCE.get(precision, networks.HALF_TOLERANCE)


def key_of(row):
    return row["network"], row["precision"], row["strategy"]


def measure_strategy(strategy, network, batches, measure):
    """A row for each batch size. `measure` fills them in; what it throws is the fault of those that have no time."""
    rows = {batch: {"network": network, "batch": batch, "precision": strategy.precision, "strategy": strategy.name,
                    "fault": ""} for batch in batches}
    begin = time.monotonic()
    try:
        measure(strategy, rows)
    except Exception as error:  # whatever PyTorch throws, the others may work
        if not isinstance(error, Failure):
            traceback.print_exc()
        for row in rows.values():
            if "back_to_back" not in row or "error" not in row:
                row["fault"] = fault_text(error)
    for row in rows.values():
        row["seconds"] = round(time.monotonic() - begin, 1)
        if not row["fault"] and not row.get("error", 0) <= allowed_error(strategy.precision):
            row["fault"] = f"outputs differ from PyTorch's FP32 by {row['error']:.1e} of the largest"
    return list(rows.values())


def run_all(options, network, strategies, measure, document, started):
    """Adds rows to the document; returns the names of the strategies that there was no time for."""
    done, left = {key_of(row) for row in document["rows"]}, []
    for strategy in strategies:
        if (network, strategy.precision, strategy.name) in done:
            continue
        if options.budget is not None and time.monotonic() - started > options.budget:
            left.append(f"{network}, {strategy.precision}: {strategy.name}")
            continue
        document["rows"] += measure_strategy(strategy, network, batches_of(options), measure)
        measured_rows.save(options.json, document)
    return left


# --- the table --------------------------------------------------------------------------------------------------------

def cells_of(rows):
    """Heads and cells; ratios are to burin's own choice in the same precision, above 1 it is faster."""
    choice = {(row["network"], row["batch"], row["precision"]): row.get("back_to_back")
              for row in rows if row["strategy"] == CHOICE}
    heads = ["network", "batch", "precision", "strategy", "us", "latency us", "/ choice", "error", "kernels of convolutions"]
    order = sorted(rows, key=lambda row: (row["network"], row["batch"], PRECISIONS.index(row["precision"])))
    cells = []
    for row in order:
        ratio = networks_table.ratio(row.get("back_to_back"), choice.get((row["network"], row["batch"], row["precision"])))
        error = row.get("error")
        last = f"FAILED: {row['fault']}" if row["fault"] else row.get("kernels", "")
        cells.append([row["network"], str(row["batch"]), row["precision"], row["strategy"],
                      measured_rows.microseconds(row.get("back_to_back")), measured_rows.microseconds(row.get("latency")),
                      measured_rows.ratio_text(ratio), UNKNOWN if error is None else f"{error:.1e}", last])
    return heads, cells


def report(document, markdown=False):
    environment = ", ".join(f"{name} {value}" for name, value in document["environment"].items())
    heads, cells = cells_of(document["rows"])
    return (f"{environment}\n\nus: launches one behind the other; latency: one launch on an idle device (medians); / choice: "
            f"time over that of burin's own choice ('{CHOICE}') in the same precision\n\n"
            + measured_rows.table(heads, cells, {"network", "precision", "strategy", "kernels of convolutions"}, markdown))


# --- the program ------------------------------------------------------------------------------------------------------

def make_models(options):
    """AlexNet, dense and pruned."""
    paths = []
    for folder, arguments in (("dense", ["--sparsity", "0"]), ("pruned", [])):
        path = options.out / f"alexnet_{folder}.onnx"
        if not path.exists():
            made = options.out / folder
            command = [sys.executable, str(MAKE), "--out", str(made), "--model", "alexnet", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            (made / "alexnet.onnx").rename(path)
        paths.append(path)
    return paths


def prepare(options, paths, strategies):
    """Compiles what needs no GPU; returns whether all went well."""
    work = [(path, one) for path in paths for one in strategies if not one.torch and not one.tune]

    def attempt(item):
        path, strategy = item
        begin = time.monotonic()
        try:
            compile_strategy(options, path, strategy)
            fault = ""
        except Failure as failure:
            fault = f"\n  FAILED: {failure}"
        print(f"{path.stem}, {strategy.precision}: {strategy.name}: {time.monotonic() - begin:.0f} s{fault}", flush=True)
        return not fault

    with ThreadPoolExecutor(options.prepare) as pool:
        return all(list(pool.map(attempt, work)))


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Ways to run one network on a GPU, beside each other.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx", help="default: AlexNet, dense and pruned")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="models and packages")
    parser.add_argument("--batch", default="1,128", metavar="LIST", help="default 1,128")
    parser.add_argument("--precisions", default="fp32,tf32,fp16", metavar="LIST", help="default fp32,tf32,fp16")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="strategies whose name matches")
    parser.add_argument("--list", action="store_true", help="print the strategies and what they ask of burin")
    parser.add_argument("--no-torch", action="store_true", help="burin alone; outputs are not compared")
    parser.add_argument("--prepare", type=int, metavar="N", help="compile what needs no GPU, N at once; measure nothing")
    parser.add_argument("--timeout", type=float, default=600, metavar="S",
                        help="of each call of burin, in seconds (default 600)")
    parser.add_argument("--tune-budget", default="3m", metavar="TIME", help="of each burin tune (default 3m)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin no strategy after so many seconds")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out the rows that --json has")
    parser.add_argument("--samples", type=int, default=100, metavar="N", help="of each figure (default 100)")
    parser.add_argument("--seconds", type=float, default=2, metavar="S",
                        help="that PyTorch's samples of a figure may take (default 2)")
    parser.add_argument("--arch", default="native", help="of compilation (default native)")
    parser.add_argument("--device", default="cuda:0", help="of burin run (default cuda:0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    options = parser.parse_args(arguments)
    options.precisions = options.precisions.split(",")
    unknown = [name for name in options.precisions if name not in PRECISIONS]
    if unknown:
        parser.error(f"--precisions: '{unknown[0]}' is none of {', '.join(PRECISIONS)}")
    measured_rows.check_resuming(parser, options)
    return options


def describe(strategy):
    if strategy.torch:
        return f"{strategy.precision}  {strategy.name}"
    command = " ".join(["tune" if strategy.tune else "compile", *strategy.options])
    return f"{strategy.precision}  {strategy.name}: burin {command}"


def measure_network(options, path, strategies, document, started):
    import onnx
    model = onnx.load(str(path))
    expected, make_network = {}, None
    if not options.no_torch:
        from torch_network import TorchNetwork
        make_network = lambda: TorchNetwork(model).eval()
        try:
            expected = reference_outputs(options, model, make_network)
        except Exception as error:  # the times can be taken all the same
            document["environment"]["outputs"] = f"not compared: {fault_text(error)}"

    def measure(strategy, rows):
        if strategy.torch:
            measure_torch(options, model, make_network, strategy, expected, rows)
        else:
            measure_burin(options, model, path, strategy, expected, rows)

    return run_all(options, path.stem, strategies, measure, document, started)


def main():
    options = parse_arguments()
    strategies = strategies_of(options.precisions, options.only, not options.no_torch)
    if options.list:
        print("\n".join(map(describe, strategies)))
        return 0
    if not strategies:
        sys.exit("strategies.py: error: no strategy matches --only")
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    paths = options.models or make_models(options)
    if options.prepare:
        return 0 if prepare(options, paths, strategies) else 1
    document = measured_rows.begin_document(options)
    if not options.no_torch:
        import torch_times
        document["environment"].update(torch_times.versions())
    left = []
    for path in paths:
        left += measure_network(options, path, strategies, document, started)
    print(report(document, options.markdown))
    if left:
        print(f"\nNo time was left for {len(left)} strategies: " + "; ".join(left))
    return 1 if left or any(row["fault"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
