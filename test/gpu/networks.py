#!/usr/bin/env python3
"""Whole networks on a GPU, burin beside PyTorch in the same run.

    networks.py BURIN MODEL.onnx|torchvision:NAME|timm:NAME|own:NAME ... --out FOLDER [--batch 1,32] [--fp16] [--compile]
                [--precisions fp32,fp16] [--json FILE] [--markdown]
    networks.py BURIN --all-exports --out FOLDER [the same]

For each model: compiles it unless FOLDER/NAME.burin is there, measures it with `burin bench`, and runs the same network
in PyTorch as a CUDA graph: in FP32 without tensor cores, in TF32, with --fp16 in FP16; contiguous and channels_last; as
torch.nn has it and with bias, sum and ReLU in cuDNN's convolutions; with --compile as torch.compile makes it, too. The
fastest of these counts. A random batch goes through both; burin's outputs must be those of PyTorch's FP32 within
TOLERANCE of the precision, or be no more than MOST_OF_TORCH times as far off as PyTorch's own of that precision: some
networks with random weights magnify any rounding. A network that fails is reported at the end, and the exit code is then 1.

A network of torchvision, timm or torch_models.py (own:) is pruned, exported to FOLDER/NAME.onnx (torch_exports.py), and
runs in PyTorch as the library has it. --all-exports takes one of each family, ALL_EXPORTS below.

Many networks take long. --prepare N exports and compiles them, N at once, and measures nothing; then the same command
without it finds them in FOLDER. With --verify it verifies the packages too, by `burin verify`. What failed there is in a
file beside the package, NAME.burin.failed, and is not tried again; what took longer than --timeout is, and goes on from the
kernels in burin's cache. No network is begun --budget seconds after the start; with --continue those that the file of --json
has are left out.

Needs torch with CUDA, onnx and numpy. --no-torch measures burin alone. networks_table.py prints the tables again.
"""
import argparse
import json
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx

import networks_table
import measured_rows
from measured_rows import Failure, TookTooLong, call

# Of an output's largest magnitude, for each precision of burin's. PyTorch computes in float32; its algorithms may transform
# their tiles.
TOLERANCE = {"fp32": 1e-3, "tf32": 1e-2}
HALF_TOLERANCE = 5e-2
MOST_OF_TORCH = 1.5
SEED = 1

LIBRARIES = ("torchvision:", "timm:", "own:")

# One network of each family, those that take little time first.
ALL_EXPORTS = (
    "torchvision:squeezenet1_1", "torchvision:shufflenet_v2_x1_0", "torchvision:mobilenet_v2",
    "torchvision:mobilenet_v3_large", "torchvision:mnasnet1_0", "torchvision:efficientnet_b0", "torchvision:regnet_y_400mf",
    "own:ssd_lite", "torchvision:alexnet", "torchvision:googlenet", "torchvision:resnet50", "torchvision:resnext50_32x4d",
    "torchvision:densenet121", "torchvision:lraspp_mobilenet_v3_large", "torchvision:convnext_tiny", "own:yolo_v5s",
    "own:yolo_v8s", "torchvision:inception_v3", "torchvision:vgg16", "torchvision:wide_resnet50_2", "own:unet_transposed",
    "own:unet_shuffled", "own:unet_nearest", "own:unet_bilinear", "torchvision:fcn_resnet50",
    "torchvision:deeplabv3_resnet50", "torchvision:maxvit_t")


# --- burin ------------------------------------------------------------------------------------------------------------

def package_of(options, path, precision):
    return options.out / f"{path.stem}{'' if precision == 'fp32' else '.' + precision}.burin"


def failed_file(made):
    return made.with_name(made.name + ".failed")


def once(made, make, *arguments):
    """Makes what `made` names, unless it is there; what failed once fails again, from the file that says how."""
    failed = failed_file(made)
    if failed.exists():
        raise Failure(failed.read_text())
    if made.exists():
        return made
    try:
        make(made, *arguments)
    except Failure as failure:
        made.unlink(missing_ok=True)
        if not isinstance(failure, TookTooLong):
            failed.write_text(str(failure))
        raise
    return made


def compile_package(package, options, path, precision):
    print(call(options, [options.burin, "tune" if options.tune else "compile", str(path), "-o", str(package), "--batch", options.batch, "--arch",
                         options.arch, *([] if precision == "fp32" else ["--precision", precision]),
                         *options.compile_option]), end="", file=sys.stderr)


def compile_model(options, path, precision):
    return once(package_of(options, path, precision), compile_package, options, path, precision)


def verify_package(report, options, package, path):
    report.write_text(call(options, [options.burin, "verify", str(package), "--against", str(path), "--device",
                                     options.device, "--seed", str(SEED), *options.verify_option]))


def bench_package(options, package):
    """The entry of burin's JSON for each batch size."""
    file = options.out / f"{package.stem}.bench.json"
    text = call(options, [options.burin, "bench", str(package), "--batch", options.batch, "--samples",
                          str(options.samples), "--json", str(file), *options.bench_option])
    (options.out / f"{package.stem}.bench.txt").write_text(text)
    document = json.loads(file.read_text())
    return {entry["batch"]: entry for entry in document["network"]}


def run_package(options, package, names, images, outputs):
    """burin's outputs of these images, in the order of `outputs`."""
    arguments = []
    for index, (name, image) in enumerate(zip(names, images)):
        np.save(options.out / f"input{index}.npy", image)
        arguments += ["--input", f"{name}={options.out / f'input{index}.npy'}"]
    files = [options.out / f"output{index}.npy" for index in range(len(outputs))]
    for name, file in zip(outputs, files):
        arguments += ["--output", f"{name}={file}"]
    call(options, [options.burin, "run", str(package), "--device", options.device, *arguments])
    return [np.load(file) for file in files]


# --- the model --------------------------------------------------------------------------------------------------------

def random_images(model, batch):
    """For each input; of the standard deviation that the zoo's models were made for."""
    std = float({entry.key: entry.value for entry in model.metadata_props}.get("input_std", 1.0))
    weights = {tensor.name for tensor in model.graph.initializer}
    random = np.random.default_rng(SEED)
    images = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        sizes = [size.dim_value for size in value.type.tensor_type.shape.dim]
        images[value.name] = np.float32(std) * random.standard_normal([batch, *sizes[1:]], dtype=np.float32)
    return images


def largest_error(outputs, expected):
    """Of the largest magnitude of each output; NaN where there is one."""
    return float(max(np.max(np.abs(one - other)) / np.max(np.abs(other)) for one, other in zip(outputs, expected)))


# --- PyTorch ----------------------------------------------------------------------------------------------------------

def variants(options):
    """Forms of a network, each with the precisions and layouts that it is tried in."""
    import torch_times
    forms = ["plain", "fused", *(["compiled"] if options.compile else [])]
    # FP16 comes last: the weights are rounded.
    precisions = ["fp32", "tf32", *(["fp16"] if options.fp16 else [])]
    return {form: [torch_times.Variant(form, layout, precision) for precision in precisions
                   for layout in torch_times.LAYOUTS] for form in forms}


def measure_torch(options, model, make_network, rows):
    """Adds to each row the times of all variants, and of those the best; returns FP32's outputs by batch."""
    import torch
    import torch_times
    expected = {}
    for form, tried in variants(options).items():
        network = make_network()
        if form == "fused" and network.fuse() == 0:
            continue
        for variant in tried:
            for batch, row in rows.items():
                images = list(random_images(model, batch).values())
                name = f"{form}, {variant.layout}"
                try:
                    times, outputs = torch_times.measure(network, variant, images, options.samples, options.seconds)
                except Exception as error:  # whatever torch throws, the others may work
                    row["faults"].append(f"PyTorch {variant.precision}, {name}: {str(error).splitlines()[0]}")
                    continue
                if variant.precision == "fp32":
                    expected.setdefault(batch, outputs)  # the first is plain and contiguous
                error = largest_error(outputs, expected.get(batch, outputs))
                row["variants"].append({"precision": variant.precision, "variant": name, "error": error, **times})
                torch.cuda.empty_cache()
    for row in rows.values():
        for entry in row["variants"]:
            for figure, _ in networks_table.FIGURES:
                best = row["torch"].setdefault(entry["precision"], {})
                if figure not in best or entry[figure]["median_us"] < best[figure][figure]["median_us"]:
                    best[figure] = {"variant": entry["variant"], figure: entry[figure]}
    return expected


class FileSource:
    """A model that is a file: PyTorch runs the same graph."""

    def __init__(self, text):
        self.path = Path(text)

    def export(self):
        return self.path

    def network(self):
        from torch_network import TorchNetwork
        return TorchNetwork(onnx.load(str(self.path))).eval()


class LibrarySource:
    """A network of a library of PyTorch's: written to a file unless that is there."""

    def __init__(self, options, text):
        self._options, self._text = options, text
        self.path = options.out / f"{text.partition(':')[2]}.onnx"

    def _made(self):
        from torch_exports import ExportedNetwork
        return ExportedNetwork(self._text, self._options.sparsity, self._options.image, self.path.with_suffix(".pt"))

    def export(self):
        """In a process of its own, which may fail or take too long."""
        options = self._options
        return once(self.path, lambda _: call(options, [
            sys.executable, __file__, options.burin, self._text, "--out", str(options.out), "--sparsity",
            str(options.sparsity), "--export-only", *(["--image", str(options.image)] if options.image else [])]))

    def write(self):
        self._made().export(self.path)

    def network(self):
        return self._made().folded()


def source_of(options, text):
    return LibrarySource(options, text) if text.startswith(LIBRARIES) else FileSource(text)


# --- both -------------------------------------------------------------------------------------------------------------

def attempt(rows, what, function, *arguments):
    """The function's result; where it fails, None, and all rows say so."""
    try:
        return function(*arguments)
    except Exception as error:
        if not isinstance(error, Failure):
            traceback.print_exc()
        for row in rows.values():
            row["faults"].append(f"{what}: {error}")
        return None


def precisions_of(options):
    return options.precisions.split(",")


def report_of(package):
    """Where the verification of a package says what it found."""
    return package.with_name(package.name + ".verified")


def prepare(options, source, start):
    """Exports, compiles and, if asked for, verifies; what of this failed, and how long it took."""
    begin, faults = time.monotonic(), []
    if options.budget and begin - start > options.budget:
        return ["no time was left to begin it (--budget)"], 0
    try:
        source.export()
        for precision in precisions_of(options):
            try:
                package = compile_model(options, source.path, precision)
                if options.verify:
                    once(report_of(package), verify_package, options, package, source.path)
            except Failure as failure:
                faults.append(f"{precision}: {failure}")
    except Failure as failure:
        faults.append(f"export: {failure}")
    return faults, time.monotonic() - begin


def prepare_all(options, sources):
    """Prints a line for each; returns whether all went well."""
    well, start = True, time.monotonic()
    with ThreadPoolExecutor(options.prepare) as pool:
        done = pool.map(lambda source: prepare(options, source, start), sources)
        for source, (faults, seconds) in zip(sources, done):
            print(f"{source.path.stem}: {seconds:.0f} s" + "".join(f"\n  FAILED: {fault}" for fault in faults), flush=True)
            well = well and not faults
    return well


def allowed_error(row, precision):
    """Of the largest value, of a precision of burin's."""
    own = networks_table.own_error(row, precision)
    return max(TOLERANCE.get(precision, HALF_TOLERANCE), MOST_OF_TORCH * own if own else 0)


def compare_outputs(options, model, package, precision, expected, rows):
    names = [value.name for value in model.graph.output]
    for batch, outputs in expected.items():
        images = random_images(model, batch)
        got = attempt({batch: rows[batch]}, f"run {precision}", run_package, options, package, list(images), images.values(),
                      names)
        if not got:
            continue
        row = rows[batch]
        error = row["error"][precision] = largest_error(got, outputs)
        if not error <= allowed_error(row, precision):
            row["faults"].append(f"outputs in {precision} differ from PyTorch's FP32 by {error:.1e} of the largest")


def measure_model(options, source):
    path = source.path
    batches = [int(batch) for batch in options.batch.split(",")]
    rows = {batch: {"network": path.stem, "batch": batch, "burin": {}, "torch": {}, "variants": [], "error": {},
                    "faults": []} for batch in batches}
    packages = {}
    if attempt(rows, "export", source.export) is None:
        return list(rows.values())
    for precision in precisions_of(options):
        package = attempt(rows, f"compile {precision}", compile_model, options, path, precision)
        if package:
            packages[precision] = package
            verified = failed_file(report_of(package))
            if verified.exists():
                for row in rows.values():
                    row["faults"].append(f"verify {precision}: {verified.read_text()}")
            measured = attempt(rows, f"bench {precision}", bench_package, options, package)
            for batch, entry in (measured or {}).items():
                rows[batch]["burin"][precision] = entry
    if options.no_torch:
        return list(rows.values())
    model = attempt(rows, "reading the model", onnx.load, str(path))
    expected = attempt(rows, "PyTorch", measure_torch, options, model, source.network, rows) if model else None
    for precision, package in packages.items():
        compare_outputs(options, model, package, precision, expected or {}, rows)
    return list(rows.values())


def measure_all(options, sources, document):
    """Adds the rows of each network to the document; returns the names of those that there was no time for."""
    begin, left = time.monotonic(), []
    done = {row["network"] for row in document["rows"]}
    for source in sources:
        if source.path.stem in done:
            continue
        if options.budget and time.monotonic() - begin > options.budget:
            left.append(source.path.stem)
            continue
        document["rows"] += measure_model(options, source)
        if options.json:  # after each network, so that what is measured is kept whatever comes
            options.json.write_text(json.dumps(document, indent=1) + "\n")
    return left


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures whole networks, burin beside PyTorch.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("models", nargs="*", metavar="MODEL.onnx|LIBRARY:NAME", help="libraries: torchvision, timm, own")
    parser.add_argument("--all-exports", action="store_true", help="one network of each family of the libraries")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="packages and what bench printed")
    parser.add_argument("--batch", default="1,32", metavar="LIST", help="default 1,32")
    parser.add_argument("--sparsity", type=float, default=0.9, help="of a library's networks (default 0.9)")
    parser.add_argument("--image", type=int, help="rows and columns of their images (default: what each is made for)")
    parser.add_argument("--export-only", action="store_true", help="write the libraries' networks, measure nothing")
    parser.add_argument("--prepare", type=int, metavar="N", help="export and compile them, N at once; measure nothing")
    parser.add_argument("--verify", action="store_true", help="with --prepare: burin verify, too")
    parser.add_argument("--timeout", type=float, default=900, metavar="S",
                        help="of each call of burin and each export, in seconds (default 900)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin no network after so many seconds")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out those that --json has")
    parser.add_argument("--precisions", default="fp32", metavar="LIST", help="burin's, such as fp32,fp16 (default fp32)")
    parser.add_argument("--samples", type=int, default=100, metavar="N", help="of each figure (default 100)")
    parser.add_argument("--seconds", type=float, default=2, metavar="S",
                        help="that PyTorch's samples of a figure may take (default 2); ten are taken in any case")
    parser.add_argument("--fp16", action="store_true", help="PyTorch in FP16, too")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too")
    parser.add_argument("--no-torch", action="store_true", help="burin alone")
    parser.add_argument("--arch", default="native", help="of compilation (default native)")
    parser.add_argument("--device", default="cuda:0", help="of burin run (default cuda:0)")
    parser.add_argument("--tune", action="store_true", help="packages by burin tune in place of burin compile")
    parser.add_argument("--compile-option", action="append", default=[], metavar="OPTION",
                        help="for burin compile or tune: --compile-option=--no-siblings")
    parser.add_argument("--verify-option", action="append", default=[], metavar="OPTION",
                        help="for burin verify: --verify-option=--images=1")
    parser.add_argument("--bench-option", action="append", default=[], metavar="OPTION",
                        help="for burin bench: --bench-option=--no-overlap")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    options = parser.parse_args()
    options.models += ALL_EXPORTS if options.all_exports else ()
    if not options.models:
        parser.error("name a model, or --all-exports")
    measured_rows.check_resuming(parser, options)
    return options


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = [source_of(options, text) for text in options.models]
    if options.export_only:
        for source in sources:
            if not source.path.exists():
                source.write()
        return 0
    if options.prepare:
        return 0 if prepare_all(options, sources) else 1
    document = measured_rows.begin_document(options)
    if not options.no_torch:
        import torch_times
        document["environment"].update(torch_times.versions())
    left = measure_all(options, sources, document)
    print(networks_table.report(document, options.markdown))
    if left:
        print(f"No time was left for {', '.join(left)}")
    return 1 if left or any(row["faults"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
