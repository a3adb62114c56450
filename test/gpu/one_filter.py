#!/usr/bin/env python3
"""Convolutions of one channel with one filter, whose input is mostly zeros: burin beside cuDNN, on a GPU.

    one_filter.py BURIN --out FOLDER [--networks LIST] [--zeros 0.5,0.7,0.8,0.9] [--pattern random] [--batch 1]
                  [--kernels auto,zero_skip] [--samples 30] [--json FILE] [--continue] [--markdown]

Papers on zeros of feature maps (ECR, PECR) compare kernels on single planes: for each convolution of a network one input
channel and one filter, of the sizes that the network has. That is no layer of a network, and what it says of one is little:
nothing is shared between channels. It is measured here because it is what was published.

Layers with a bias and a ReLU, and those before a pool with that pool. All of one network go into one model, which is compiled
for each share of zeros and each of --kernels: with all weights, which are dense. `burin verify` compares it with float64, then
`burin bench --baseline cudnn` measures both in one run: cuDNN's best FP32 algorithm in either layout; of a layer with a pool its
convolution with bias and ReLU in one call, and its pool. The ratio is cuDNN's time over burin's.

The kind `ecr` is the published method itself, written anew (ecr.py): with random zeros, behind another kind of --kernels, whose
times of cuDNN it is compared with.

A network that fails has its fault in its row, and the others go on; --continue leaves out rows that --json has. The exit code is
1 where one failed. Needs onnx and numpy, and for `ecr` torch, cupy and nvcc.
"""
import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import ecr
import measured_rows
from measured_rows import UNKNOWN, Failure, call, geometric_mean, microseconds, ratio_text, save


PUBLISHED = "ecr"  # a kind of kernels that is not burin's


@dataclass(frozen=True)
class Layer:
    name: str
    extent: int  # rows and columns of the input
    kernel: int
    pad: int
    stride: int = 1
    pool: tuple = ()  # window, stride


def vgg(block, count, extent):
    """The last of a block is pooled."""
    return [Layer(f"conv{block}_{i}", extent, 3, 1, pool=(2, 2) if i == count else ()) for i in range(1, count + 1)]


NETWORKS = {
    "lenet": [Layer("conv1", 28, 5, 0, pool=(2, 2)), Layer("conv2", 12, 5, 0, pool=(2, 2))],
    "alexnet": [Layer("conv1", 227, 11, 0, 4, (3, 2)), Layer("conv2", 27, 5, 2, pool=(3, 2)), Layer("conv3", 13, 3, 1),
                Layer("conv4", 13, 3, 1), Layer("conv5", 13, 3, 1, pool=(3, 2))],
    "googlenet": [Layer("conv2", 56, 3, 1, pool=(3, 2)), Layer("3x3_28", 28, 3, 1), Layer("5x5_28", 28, 5, 2),
                  Layer("3x3_14", 14, 3, 1), Layer("5x5_14", 14, 5, 2), Layer("3x3_7", 7, 3, 1), Layer("5x5_7", 7, 5, 2)],
    "vgg19": vgg(1, 2, 224) + vgg(2, 2, 112) + vgg(3, 4, 56) + vgg(4, 4, 28) + vgg(5, 4, 14),
}


def make_model(layers, seed=1):
    """An ONNX model in which each layer has an input and an output of its own."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = numpy.random.default_rng(seed)
    nodes, inputs, outputs, initializers = [], [], [], []
    for layer in layers:
        name = layer.name
        inputs.append(helper.make_tensor_value_info(f"{name}.in", TensorProto.FLOAT, ["N", 1, layer.extent, layer.extent]))
        weights = rng.standard_normal((1, 1, layer.kernel, layer.kernel)) / layer.kernel
        for key, values in ((f"{name}.weight", weights), (f"{name}.bias", rng.standard_normal(1))):
            initializers.append(numpy_helper.from_array(values.astype(numpy.float32), key))
        nodes.append(helper.make_node("Conv", [f"{name}.in", f"{name}.weight", f"{name}.bias"], [f"{name}.sum"], name=name,
                                      pads=[layer.pad] * 4, strides=[layer.stride] * 2))
        nodes.append(helper.make_node("Relu", [f"{name}.sum"], [f"{name}.out" if not layer.pool else f"{name}.relu"]))
        if layer.pool:
            window, stride = layer.pool
            nodes.append(helper.make_node("MaxPool", [f"{name}.relu"], [f"{name}.out"], kernel_shape=[window] * 2,
                                          strides=[stride] * 2))
        outputs.append(helper.make_tensor_value_info(f"{name}.out", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "one filter each", inputs, outputs, initializers)
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))


def measure(options, network, zeros, kernels):
    """A row for each layer and batch."""
    import onnx

    model = options.out / f"{network}.onnx"
    if not model.exists():
        onnx.save(make_model(NETWORKS[network]), str(model))
    package = options.out / f"{network}-{zeros}-{options.pattern}-{kernels}.burin"
    measured = package.with_suffix(".json")
    pattern = f"{zeros}:{options.pattern}"
    call(options, [options.burin, "compile", str(model), "-o", str(package), "--arch", options.arch, "--batch", options.batch,
                   "--activation-sparsity", pattern, "--kernels", kernels, "-q"])
    call(options, [options.burin, "verify", str(package), "--against", str(model), "--device", options.device, "-q"])
    call(options, [options.burin, "bench", str(package), "--device", options.device, "--baseline", "cudnn", "--activation-sparsity",
                   pattern, "--samples", str(options.samples), "-q", "--json", str(measured)])
    rows = rows_of(json.loads(measured.read_text()), NETWORKS[network])
    if not rows:
        raise Failure("bench has no convolution")
    return rows


def rows_of(document, layers):
    """What `burin bench --json` says of the convolutions."""
    by_name = {layer.name: layer for layer in layers}
    rows = []
    for row in document["rows"]:
        if "nonzeros" not in row:
            continue  # a pool that stayed a step of its own: see below
        layer = by_name[row["layer"]]
        cudnn = row.get("cudnn_fp32")
        # What a pool by itself takes is no part of the convolution's row, nor of cuDNN's time then.
        fused = not layer.pool or "pool" in row.get("cudnn_calls", "")
        rows.append({"layer": layer.name, "batch": row["batch"], "kernel": row["symbol"], "us": row["cold"]["median_us"],
                     "pool": bool(layer.pool), "pool_is_fused": bool(layer.pool) and fused,
                     "cudnn_us": cudnn["median_us"] if cudnn else None, "cudnn_calls": row.get("cudnn_calls", "conv")})
    return rows


def published_rows(options, network, zeros, known):
    """Those of the published kernels, beside cuDNN's times that `known` rows of the same network and zeros have."""
    if options.gpu is None:
        options.gpu = ecr.Gpu()
    calls = {(row["layer"], row["batch"]): row for row in known if not row["fault"] and row["pool"] == row["pool_is_fused"]}
    rows = ecr.rows_of(NETWORKS[network], [int(batch) for batch in options.batch.split(",")], float(zeros), options.gpu)
    for row in rows:
        beside = calls.get((row["layer"], row["batch"]), {})
        row.update(cudnn_us=beside.get("cudnn_us"), cudnn_calls=beside.get("cudnn_calls", "not measured"))
    return rows


def ratio(row):
    return row["cudnn_us"] / row["us"] if not row["fault"] and row["cudnn_us"] else None


def cells_of(rows):
    heads = ["network", "layer", "batch", "zeros", "kernels", "kernel", "burin us", "cuDNN us", "cuDNN / burin", "cuDNN's calls"]
    cells = []
    for row in rows:
        start = [row["network"], row.get("layer", "all"), str(row.get("batch", UNKNOWN)), row["zeros"], row["kernels"]]
        if row["fault"]:
            cells.append([*start, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, f"FAILED: {row['fault']}"])
            continue
        calls = row["cudnn_calls"] + (" (the pool is another step)" if row["pool"] and not row["pool_is_fused"] else "")
        cells.append([*start, row["kernel"], microseconds(row["us"]), microseconds(row["cudnn_us"]), ratio_text(ratio(row)), calls])
    return heads, cells


def means(rows):
    """The geometric mean of each network, share of zeros and kind, of layers without and with a pool."""
    groups = {}
    for row in rows:
        if ratio(row) is not None and row["pool"] == row["pool_is_fused"]:
            groups.setdefault((row["network"], row["zeros"], row["kernels"], row["pool"]), []).append(ratio(row))
    heads = ["network", "zeros", "kernels", "pool", "layers", "mean", "least", "most"]
    return heads, [[network, zeros, kernels, "yes" if pool else "no", str(len(values)), ratio_text(geometric_mean(values)),
                    ratio_text(min(values)), ratio_text(max(values))]
                   for (network, zeros, kernels, pool), values in groups.items()]


def report(document, markdown=False):
    rows = document["rows"]
    text = measured_rows.table(*cells_of(rows), {"network", "layer", "kernels", "kernel", "cuDNN's calls"}, markdown)
    return text + "\n\n" + measured_rows.table(*means(rows), {"network", "kernels", "pool"}, markdown)


def run_all(options, document):
    done = {(row["network"], row["zeros"], row["pattern"], row["kernels"]) for row in document["rows"]}
    for network in options.networks:
        for zeros in options.zeros:
            for kernels in options.kernels:
                about = {"network": network, "zeros": zeros, "pattern": options.pattern, "kernels": kernels}
                if tuple(about.values()) in done:
                    continue
                try:
                    if kernels == PUBLISHED:
                        known = [row for row in document["rows"] if (row["network"], row["zeros"]) == (network, zeros)]
                        made = published_rows(options, network, zeros, known)
                    else:
                        made = measure(options, network, zeros, kernels)
                    rows = [{**about, **row, "fault": ""} for row in made]
                except Failure as failure:
                    rows = [{**about, "fault": str(failure)}]
                document["rows"] += rows
                save(options.json, document)


def share(text):
    if not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share from 0 to 1")
    return text


def listed(kind):
    return lambda text: [kind(item) for item in text.split(",")]


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description="Convolutions of one channel with one filter beside cuDNN's.")
    parser.add_argument("burin", help="the tool")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="models and packages")
    parser.add_argument("--networks", type=listed(str), default=list(NETWORKS), metavar="LIST", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--zeros", type=listed(share), default=["0.5", "0.7", "0.8", "0.9"], metavar="LIST",
                        help="shares of the inputs' values (default 0.5,0.7,0.8,0.9)")
    parser.add_argument("--pattern", default="random", help="random (default), channels or blobs")
    parser.add_argument("--kernels", type=listed(str), default=["auto", "zero_skip"], metavar="LIST",
                        help="kinds of kernels, each for all layers, and ecr, the published ones (default auto,zero_skip)")
    parser.add_argument("--batch", default="1", metavar="LIST", help="default 1")
    parser.add_argument("--arch", default="native", help="default native")
    parser.add_argument("--device", default="cuda", help="default cuda")
    parser.add_argument("--samples", type=int, default=30, metavar="N", help="launches behind each figure (default 30)")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of each call of burin (default 600)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--continue", action="store_true", dest="resume", help="leave out what --json has")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    options = parser.parse_args(arguments)
    for network in options.networks:
        if network not in NETWORKS:
            parser.error(f"--networks: '{network}' is none of {', '.join(NETWORKS)}")
    if PUBLISHED in options.kernels and (options.pattern != "random" or options.kernels[0] == PUBLISHED):
        parser.error("--kernels: ecr goes with random zeros, behind another kind")
    measured_rows.check_resuming(parser, options)
    options.gpu = None  # of the published kernels, when they are asked for
    return options


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    document = measured_rows.begin_document(options)
    run_all(options, document)
    print(report(document, options.markdown))
    return 1 if any(row["fault"] for row in document["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
