#!/usr/bin/env python3
"""Layers as sparse products on a GPU: cuSPARSE and others beside burin, in the same run.

    sparse_peers.py --out FOLDER [--burin BURIN] [--sets anchors,peers] [--layer GLOB] [--batch 1,32,64]
                    [--sparsities 0.5,...,0.98] [--precisions fp32,fp16] [--im2col] [--sputnik LIBSPUTNIK.so] [--budget S]
                    [--json FILE] [--continue] [--prepare N] [--markdown]

A 1x1 layer of make_layers.py is a product of its weights, sparse, and a dense matrix with a row for each channel and a
column for each pixel of the whole batch (channels first, so that it is one product; nobody's conversions are counted).
With --im2col layers of larger filters are there too, as the product alone: their rows say so, and gathering the columns
is not counted.

Each product is done by cuSPARSE with CSR (every algorithm) and with blocked ELL, by torch.sparse, by cuSPARSELt with a 2:4
pattern of its own where half of the weights are zeros (FP16), by cuBLAS on the dense weights, and by Sputnik where --sputnik
names its library: nobody builds it here, and without it its column is empty. cuSPARSE and cuBLAS have the dense matrices by
rows and by columns. All are checked against float64, and timed by a CUDA graph of many launches, for which four inputs take turns, as
`burin bench` does it; preparation (cusparseSpMM_preprocess) is not counted. burin's own time is the cold one of `burin
bench` for the same weights, after `burin verify`.

What fails has its fault in its row, and the others go on. Rows are written to --json after each product; --continue leaves
out those that it has. --prepare N compiles burin's packages, N at once, and needs no GPU. The exit code is 1 where a
result was wrong, burin failed, or time ran out.

Needs torch with CUDA and numpy.
"""
import argparse
import fnmatch
import functools
import itertools
import json
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import make_layers
import measured_rows
from measured_rows import UNKNOWN, Failure, call, fault_text, geometric_mean, microseconds, ratio_text, save

HERE = Path(__file__).resolve().parent
SPARSITIES = "0.5,0.7,0.8,0.9,0.95,0.98"
PRECISIONS = ("fp32", "fp16")
LARGEST_ERROR = {"fp32": 1e-5, "fp16": 2e-3}  # in the 2-norm, of inputs and weights that were rounded beforehand
INPUTS = 4
# Columns of the table, and the candidates whose names begin so: the fastest that is right counts.
COLUMNS = (("cuSPARSE CSR", "cuSPARSE CSR "), ("cuSPARSE ELL", "cuSPARSE ELL "), ("torch.sparse", "torch.sparse"),
           ("2:4", "cuSPARSELt"), ("Sputnik", "Sputnik"), ("dense cuBLAS", "cuBLAS"))
SEED = 1


@dataclass(frozen=True)
class Product:
    """rows x depth, sparse, times depth x cols."""
    set_name: str
    layer: str
    sparsity: str
    precision: str
    batch: int
    rows: int
    depth: int
    cols: int
    im2col: bool

    def key(self):
        return self.layer, self.sparsity, self.precision, self.batch


def out_extent(extent, kernel, pad, stride):
    return (extent + 2 * pad - kernel) // stride + 1


def products_of(sets, layers, sparsities, precisions, batches, im2col):
    """Each layer once, whatever sets it is in."""
    found, seen = [], set()
    for set_name in sets:
        for layer in make_layers.SETS[set_name]:
            outputs, inputs, height, width = layer["shape"]
            larger = height * width > 1
            if layer["name"] in seen or not fnmatch.fnmatchcase(layer["name"], layers) or (larger and not im2col):
                continue
            seen.add(layer["name"])
            geometry = layer["geometry"]
            pixels = math.prod(out_extent(geometry[axis], size, geometry["pad"], geometry["stride"])
                               for axis, size in (("H", height), ("W", width)))
            for sparsity, precision, batch in itertools.product(sparsities, precisions, batches):
                found.append(Product(set_name, layer["name"], sparsity, precision, batch, outputs, inputs * height * width,
                                     batch * pixels, larger))
    return found


@functools.lru_cache(maxsize=1)  # products that follow each other are often of the same weights
def layer_weights(set_name, name, sparsity):
    layer = next(layer for layer in make_layers.SETS[set_name] if layer["name"] == name)
    return make_layers.random_weights(layer, make_layers.sparsity_of(sparsity), SEED)


def weights_of(product):
    """The values of make_layers.py, row by row."""
    return layer_weights(product.set_name, product.layer, product.sparsity)


# --- burin ------------------------------------------------------------------------------------------------------------

VERIFIED_IMAGES = "2"  # of a batch; the reference of 64 large images takes a minute for each layer
FEW_IMAGES = 4  # up to which halves of burin's are not in n8c8hw


def packages_of(products):
    """(set, sparsity, precision, few images) -> the batch sizes. Baked code of halves compiles for minutes, so FP16 is in
    nchw for few images, and of the kernels on tensor cores for more."""
    packages = {}
    for one in products:
        few = one.precision == "fp16" and one.batch <= FEW_IMAGES
        packages.setdefault((one.set_name, one.sparsity, one.precision, few), set()).add(one.batch)
    return packages


def kernel_options(precision, few):
    if precision == "fp32":
        return []
    more = ["--layout", "nchw"] if few else ["--layout", "n8c8hw", "--kernels", "gathered"]
    return ["--precision", precision, *more]


def stem_of(key):
    set_name, sparsity, precision, few = key
    return f"{set_name}-{sparsity}-{precision}{'-few' if few else ''}"


def glob_of(products, set_name):
    """One layer by its name; several: those of the set."""
    names = {one.layer for one in products if one.set_name == set_name}
    return names.pop() if len(names) == 1 else "*" if any(one.im2col for one in products) else "1x1.*"


def compile_package(options, products, key, batches):
    set_name, sparsity, precision, few = key
    package = options.out / f"{stem_of(key)}.burin"
    if not package.exists():
        weights = options.out / f"{stem_of(key)}.safetensors"
        glob = glob_of(products, set_name)
        call(options, [sys.executable, str(HERE / "make_layers.py"), str(weights), "--set", set_name, "--sparsity", sparsity,
                       "--seed", str(SEED), "--layer", glob])
        call(options, [options.burin, "compile", str(weights), "-o", str(package), "--arch", options.arch, "--batch",
                       ",".join(map(str, sorted(batches))), "-q", *kernel_options(precision, few), *options.burin_option])
    return package


def measure_burin(options, products, key, batches):
    """(layer, batch) -> its row of `burin bench --json`."""
    package = compile_package(options, products, key, batches)
    call(options, [options.burin, "verify", str(package), "--against", str(package.with_suffix(".safetensors")), "--device",
                   options.device, "--no-code", "--images", VERIFIED_IMAGES, "-q"])
    file = package.with_suffix(".bench.json")
    call(options, [options.burin, "bench", str(package), "--device", options.device, "-q", "--json", str(file)])
    return {(row["layer"], row["batch"]): row for row in json.loads(file.read_text())["rows"]}


class BurinTimes:
    """Rows of burin's for products, measured when one of their package is first asked for."""

    def __init__(self, options, products):
        self._options, self._products = options, products
        self._packages = packages_of(products)
        self._measured = {}

    def of(self, product):
        """(cold microseconds, what computes it, fault)"""
        if not self._options.burin:
            return None, "", ""
        few = product.precision == "fp16" and product.batch <= FEW_IMAGES
        key = (product.set_name, product.sparsity, product.precision, few)
        if key not in self._measured:
            try:
                self._measured[key] = measure_burin(self._options, self._products, key, self._packages[key])
            except Failure as failure:
                self._measured[key] = failure
        found = self._measured[key]
        if isinstance(found, Failure):
            return None, "", str(found)
        row = found.get((product.layer, product.batch))
        return (row["cold"]["median_us"], row.get("symbol", ""), "") if row else (None, "", "bench has no row for it")


def prepare(options, products):
    """Compiles all packages, and returns whether all went well."""
    def attempt(item):
        begin = time.monotonic()
        try:
            compile_package(options, products, *item)
            fault = ""
        except Failure as failure:
            fault = f"\n  FAILED: {failure}"
        print(f"{stem_of(item[0])}: {time.monotonic() - begin:.0f} s{fault}", flush=True)
        return not fault

    with ThreadPoolExecutor(options.prepare) as pool:
        return all(list(pool.map(attempt, packages_of(products).items())))


# --- all of them ------------------------------------------------------------------------------------------------------

def measure_candidate(name, run, largest_error):
    entry = {"name": name}
    try:
        entry["us"], entry["error"] = run()
        if not entry["error"] <= largest_error:
            entry.update(wrong=True, fault=f"it is off by {entry['error']:.1e}")
    except Exception as error:  # whatever a library throws, the others may work
        entry["fault"] = fault_text(error)
    return entry


def measure_product(product, peers, burin):
    """`peers`: product -> (name, function that gives microseconds and error) for each candidate."""
    row = {"layer": product.layer, "sparsity": product.sparsity, "precision": product.precision, "batch": product.batch,
           "rows": product.rows, "depth": product.depth, "cols": product.cols, "im2col": product.im2col, "candidates": []}
    row["burin_us"], row["burin_kernel"], row["burin_fault"] = burin.of(product)
    try:
        for name, run in peers(product):
            row["candidates"].append(measure_candidate(name, run, LARGEST_ERROR[product.precision]))
    except Exception as error:  # its tensors could not be made
        row["candidates"].append({"name": "the product", "fault": fault_text(error), "wrong": True})
    return row


def best(row, begins):
    """The fastest candidate without a fault whose name begins so; None: there is none."""
    right = [entry for entry in row["candidates"] if entry["name"].startswith(begins) and "fault" not in entry]
    return min(right, key=lambda entry: entry["us"], default=None)


def ratio_of(row):
    """The fastest sparse library's time over burin's."""
    right = [found["us"] for _, begins in COLUMNS[:-1] if (found := best(row, begins))]
    return min(right) / row["burin_us"] if right and row["burin_us"] else None


def cells_of(rows):
    used = [(title, begins) for title, begins in COLUMNS
            if any(entry["name"].startswith(begins) for row in rows for entry in row["candidates"])]
    heads = ["layer", "zeros", "precision", "batch", *(f"{title} us" for title, _ in used), "algorithm", "burin us",
             "sparse / burin"]
    cells, ratios = [], {}
    for row in rows:
        csr = best(row, "cuSPARSE CSR ")
        times = [found["us"] if (found := best(row, begins)) else None for _, begins in used]
        ratio = ratio_of(row)
        if ratio:
            ratios.setdefault((row["precision"], row["batch"]), []).append(ratio)
        name = row["layer"] + (", im2col not counted" if row["im2col"] else "")
        cells.append([name, row["sparsity"], row["precision"], str(row["batch"]), *map(microseconds, times),
                      csr["name"].removeprefix("cuSPARSE CSR ") if csr else UNKNOWN, microseconds(row["burin_us"]),
                      ratio_text(ratio)])
    for (precision, batch), values in ratios.items():
        cells.append([f"geometric mean of {len(values)}", "", precision, str(batch), *([""] * (len(used) + 2)),
                      ratio_text(geometric_mean(values))])
    return heads, cells


def faults_of(rows):
    """A line for each fault, with the first product that had it and how many had it."""
    seen = {}
    for row in rows:
        product = f"{row['layer']}, {row['sparsity']}, {row['precision']}, batch {row['batch']}"
        faults = [("burin", row["burin_fault"])] if row["burin_fault"] else []
        faults += [(entry["name"], entry["fault"]) for entry in row["candidates"] if "fault" in entry]
        for fault in faults:
            seen.setdefault(fault, []).append(product)
    more = lambda count: f", and {count - 1} more" if count > 1 else ""
    return [f"{name}: {fault} ({products[0]}{more(len(products))})" for (name, fault), products in seen.items()]


def report(document, markdown=False):
    environment = ", ".join(f"{name} {value}" for name, value in document["environment"].items())
    text = (f"{environment}\n\nmedians of CUDA-graph replays; sparse / burin: the fastest sparse library's time over burin's, "
            "cold; conversions and preparation are not counted\n\n")
    text += measured_rows.table(*cells_of(document["rows"]), {"layer", "precision", "algorithm"}, markdown)
    return "\n".join([text, "", *faults_of(document["rows"])]).rstrip()


def run_all(options, products, peers, burin, document):
    """Adds rows to the document; returns how many products there was no time for."""
    started, left = time.monotonic(), 0
    done = {(row["layer"], row["sparsity"], row["precision"], row["batch"]) for row in document["rows"]}
    for product in products:
        if product.key() in done:
            continue
        if options.budget is not None and time.monotonic() - started > options.budget:
            left += 1
            continue
        document["rows"].append(measure_product(product, peers, burin))
        save(options.json, document)
    return left


def has_failed(rows):
    return any(row["burin_fault"] or any(entry.get("wrong") for entry in row["candidates"]) for row in rows)


def listed(text, convert=str):
    return [convert(item) for item in text.split(",")]


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Layers as sparse products: cuSPARSE and others beside burin.")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="weights and packages")
    parser.add_argument("--burin", help="the tool; without it the libraries alone are measured")
    parser.add_argument("--sets", type=listed, default=["anchors", "peers"], metavar="LIST",
                        help="of make_layers.py (default anchors,peers)")
    parser.add_argument("--layer", default="*", metavar="GLOB", help="only layers whose name matches")
    parser.add_argument("--batch", type=lambda text: listed(text, int), default=[1, 32, 64], metavar="LIST",
                        help="default 1,32,64")
    parser.add_argument("--sparsities", type=listed, default=listed(SPARSITIES), metavar="LIST", help=f"default {SPARSITIES}")
    parser.add_argument("--precisions", type=listed, default=list(PRECISIONS), metavar="LIST", help="default fp32,fp16")
    parser.add_argument("--im2col", action="store_true", help="larger filters, too, whose columns are gathered uncounted")
    parser.add_argument("--cusparse", metavar="FILE", help="its library (default: as the loader finds it)")
    parser.add_argument("--sputnik", metavar="FILE", help="Sputnik's library, where somebody built it")
    parser.add_argument("--arch", default="native", help="of compilation (default native)")
    parser.add_argument("--device", default="cuda:0", help="of burin (default cuda:0)")
    parser.add_argument("--burin-option", action="append", default=[], metavar="OPTION", help="for burin compile")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of each call of burin (default 600)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin no product after so many seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out the rows that --json has")
    parser.add_argument("--prepare", type=int, metavar="N", help="compile burin's packages, N at once; measure nothing")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    options = parser.parse_args(arguments)
    for what, values, known in (("--sets", options.sets, make_layers.SETS), ("--precisions", options.precisions, PRECISIONS)):
        for value in values:
            if value not in known:
                parser.error(f"{what}: '{value}' is none of {', '.join(known)}")
    for value in options.sparsities:
        try:
            make_layers.sparsity_of(value)
        except ValueError:
            parser.error(f"--sparsities: '{value}' is no share from 0 to below 1")
    measured_rows.check_resuming(parser, options)
    if options.prepare and not options.burin:
        parser.error("--prepare needs --burin")
    return options


def main():
    options = parse_arguments()
    products = products_of(options.sets, options.layer, options.sparsities, options.precisions, options.batch, options.im2col)
    if not products:
        sys.exit("sparse_peers.py: error: no layer matches; those of larger filters need --im2col")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.prepare:
        return 0 if prepare(options, products) else 1
    import sparse_gpu
    peers = sparse_gpu.Peers(options)
    document = measured_rows.begin_document(options, **peers.versions())
    left = run_all(options, products, peers, BurinTimes(options, products), document)
    print(report(document, options.markdown))
    if left:
        print(f"\nNo time was left for {left} products")
    return 1 if left or has_failed(document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
