#!/usr/bin/env python3
"""Whole networks on a GPU, burin beside PyTorch in the same run.

    networks.py BURIN MODEL.onnx|torchvision:NAME|timm:NAME ... --out FOLDER [--batch 1,32] [--fp16] [--compile]
                [--json FILE] [--markdown]

For each model: compiles it unless FOLDER/NAME.burin is there, measures it with `burin bench`, and runs the same network
in PyTorch as a CUDA graph: in FP32 without tensor cores, in TF32, with --fp16 in FP16; contiguous and channels_last; as
torch.nn has it and with bias, sum and ReLU in cuDNN's convolutions; with --compile as torch.compile makes it, too. The
fastest of these counts. A random batch goes through both; burin's outputs must be those of PyTorch's FP32 within
TOLERANCE. A network that fails is reported at the end, and the exit code is then 1.

A network of torchvision or timm is pruned, exported to FOLDER/NAME.onnx (torch_exports.py), and runs in PyTorch as the
library has it.

Needs torch with CUDA, onnx and numpy. --no-torch measures burin alone. networks_table.py prints the tables again.
"""
import argparse
import datetime
import json
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import onnx

import networks_table

# Of an output's largest magnitude. Both sides compute in float32; PyTorch's algorithms may transform their tiles.
TOLERANCE = 1e-3
SEED = 1


class Failure(Exception):
    pass


def call(command):
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"exit code {result.returncode}: {result.stderr.strip() or result.stdout}")
    return result.stdout


# --- burin ------------------------------------------------------------------------------------------------------------

def compile_model(options, path):
    package = options.out / f"{path.stem}.burin"
    if not package.exists():
        print(call([options.burin, "compile", str(path), "-o", str(package), "--batch", options.batch, "--arch",
                    options.arch, *options.compile_option]), end="", file=sys.stderr)
    return package


def bench_package(options, package):
    """The entry of burin's JSON for each batch size."""
    file = options.out / f"{package.stem}.bench.json"
    text = call([options.burin, "bench", str(package), "--batch", options.batch, "--samples", str(options.samples),
                 "--json", str(file), *options.bench_option])
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
    call([options.burin, "run", str(package), "--device", options.device, *arguments])
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
                    times, outputs = torch_times.measure(network, variant, images, options.samples)
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
        if not self.path.exists():
            self._made().export(self.path)

    def network(self):
        return self._made().folded()


def source_of(options, text):
    return LibrarySource(options, text) if text.startswith(("torchvision:", "timm:")) else FileSource(text)


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


def measure_model(options, source):
    path = source.path
    batches = [int(batch) for batch in options.batch.split(",")]
    rows = {batch: {"network": path.stem, "batch": batch, "burin": None, "torch": {}, "variants": [], "error": None,
                    "faults": []} for batch in batches}
    if isinstance(source, LibrarySource):
        attempt(rows, "export", source.export)
    package = attempt(rows, "compile", compile_model, options, path)
    if package:
        for batch, entry in (attempt(rows, "bench", bench_package, options, package) or {}).items():
            rows[batch]["burin"] = entry
    if options.no_torch:
        return list(rows.values())
    model = attempt(rows, "reading the model", onnx.load, str(path))
    expected = attempt(rows, "PyTorch", measure_torch, options, model, source.network, rows) if model else None
    for batch, outputs in (expected or {}).items():
        row, names = rows[batch], [value.name for value in model.graph.output]
        images = random_images(model, batch)
        got = package and attempt({batch: row}, "run", run_package, options, package, list(images), images.values(),
                                  names)
        if got:
            row["error"] = largest_error(got, outputs)
            if not row["error"] <= TOLERANCE:
                row["faults"].append(f"outputs differ from PyTorch's FP32 by {row['error']:.1e} of the largest")
    return list(rows.values())


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures whole networks, burin beside PyTorch.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx|LIBRARY:NAME", help="libraries: torchvision, timm")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="packages and what bench printed")
    parser.add_argument("--batch", default="1,32", metavar="LIST", help="default 1,32")
    parser.add_argument("--sparsity", type=float, default=0.9, help="of a library's networks (default 0.9)")
    parser.add_argument("--image", type=int, default=224, help="rows and columns of their images (default 224)")
    parser.add_argument("--export-only", action="store_true", help="write the libraries' networks, measure nothing")
    parser.add_argument("--samples", type=int, default=100, metavar="N", help="of each figure (default 100)")
    parser.add_argument("--fp16", action="store_true", help="PyTorch in FP16, too")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too")
    parser.add_argument("--no-torch", action="store_true", help="burin alone")
    parser.add_argument("--arch", default="native", help="of compilation (default native)")
    parser.add_argument("--device", default="cuda:0", help="of burin run (default cuda:0)")
    parser.add_argument("--compile-option", action="append", default=[], metavar="OPTION",
                        help="for burin compile: --compile-option=--tune")
    parser.add_argument("--bench-option", action="append", default=[], metavar="OPTION",
                        help="for burin bench: --bench-option=--no-overlap")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    return parser.parse_args()


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"environment": {"measured": datetime.date.today().isoformat()}, "rows": []}
    if not options.no_torch:
        import torch_times
        document["environment"].update(torch_times.versions())
    sources = [source_of(options, text) for text in options.models]
    if options.export_only:
        for source in sources:
            source.export()
        return 0
    for source in sources:
        document["rows"] += measure_model(options, source)
        if options.json:  # after each network, so that what is measured is kept whatever comes
            options.json.write_text(json.dumps(document, indent=1) + "\n")
    print(networks_table.report(document, options.markdown))
    return 1 if any(row["faults"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
