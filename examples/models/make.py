#!/usr/bin/env python3
"""Writes the networks of the papers on pruning as ONNX files: their layers, seeded weights, published sparsities.

    make.py --out FOLDER [--model NAME ...] [--sparsity S] [--image N | --reduced] [--width W] [--seed N]
    make.py --out FOLDER --real ARCHIVE_FOLDER

Needs the packages of requirements.txt beside this file; `make models` installs them and writes all networks into
build/models. docs/models.md says what each network is. The same arguments give the same bytes.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy as np
from onnx import helper

import sparsity
from graph import IR_VERSION, OPSET, GraphBuilder, GraphError, graph_inputs_and_outputs
from networks import NETWORKS, FullyConnected
from onnx_file import write_model
from weights import RealWeights, Weights, WeightsError

# Real weights: the archive's file, and whether batch normalization is folded into what is there.
REAL = {"squeezenet": ("squeezenet_v1.0_deep_compression.safetensors", False),
        "mobilenet_v1": ("mobilenet_v1_90.safetensors", True),
        "alexnet": ("alexnet_skimcaffe_0.56256_l1_9.0e-5.safetensors", False)}


def make_model(name, *, seed=1, asked=None, image=None, width=1.0, classes=None, fc_dense=False, real=None):
    """The ONNX model without its weights, the weights (name to array), and the share of zeros that was asked for in
    each layer. `asked` overrides the published sparsities, `real` is a folder with the files of REAL."""
    network = NETWORKS[name]()
    file, folded = REAL[name] if real else (None, False)
    source = RealWeights(Path(real) / file) if real else None

    def layer_sparsity(row, first):
        if fc_dense and isinstance(row, FullyConnected):
            return 0.0
        return sparsity.published(name, row, first) if asked is None else sparsity.overridden(row, first, asked)

    builder = GraphBuilder(network, Weights(name, seed, source), layer_sparsity, image=image or network.image,
                           width=width, classes=classes, batch_norm=not folded)
    builder.apply(network.rows)
    inputs, outputs = graph_inputs_and_outputs(builder)
    graph = helper.make_graph(builder.nodes, name, inputs, outputs)
    model = helper.make_model(graph, producer_name="burin examples/models/make.py", ir_version=IR_VERSION,
                              opset_imports=[helper.make_opsetid("", OPSET)])
    origin = f"{sparsity.source(name)} in examples/models/sparsity.py" if asked is None else f"{asked} asked for"
    provenance = f"seeded with {seed}"
    if real:
        real_ones, all_of_them = len(builder.real_layers), len(builder.sparsity)
        provenance = f"{real_ones} of {all_of_them} layers from {source.source}" + (
            "" if real_ones == all_of_them else f", the others {provenance}")
    helper.set_model_props(model, {
        "title": network.title,
        "input_std": str(network.input_std),  # of the inputs the weights were scaled for
        "sparsity": json.dumps(builder.sparsity),  # layer to the share of zeros asked for
        "sparsity_source": origin,
        "weights": provenance,
    })
    return model, builder.weights, builder.sparsity


def share(text):
    value = float(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError("must be at least 0 and less than 1")
    return value


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be greater than 0")
        return value
    return parse


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description="Writes the networks of the papers on pruning as ONNX files.")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files go")
    parser.add_argument("--model", nargs="+", choices=NETWORKS, metavar="NAME",
                        help="of " + ", ".join(NETWORKS) + " (default: all)")
    parser.add_argument("--sparsity", type=share, metavar="S",
                        help="this share of zeros in every layer but the first and depthwise ones, instead of the"
                             " published ones")
    parser.add_argument("--fc-dense", action="store_true", help="leave the fully connected layers dense")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--image", type=positive(int), metavar="N",
                      help="height and width of the input; a fully connected layer behind feature maps shrinks with it")
    size.add_argument("--reduced", action="store_true", help="each network's small image, 28 to 67")
    parser.add_argument("--width", type=positive(float), default=1.0, metavar="W",
                        help="multiplies the channels of all layers but the last (default 1)")
    parser.add_argument("--classes", type=positive(int), metavar="N", help="classes instead of 1000 (LeNet-5: 10)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the weights (default 1)")
    parser.add_argument("--real", type=Path, metavar="FOLDER",
                        help="the unpacked archive of real pruned weights: writes NAME_real.onnx for "
                             + ", ".join(REAL) + "; layers it does not have are seeded")
    parser.add_argument("--sparse-initializers", action="store_true",
                        help="write weights as ONNX's sparse_initializer where that is smaller")
    parser.add_argument("--external-over", type=float, default=1536, metavar="MB",
                        help="weights of larger models go to NAME.onnx.data (default 1536; 0: always)")
    options = parser.parse_args(arguments)
    if options.real:
        if options.width != 1.0 or options.classes:
            parser.error("--real weights have their width and classes; --width and --classes do not go with it")
        options.model = options.model or list(REAL)
        if unknown := [name for name in options.model if name not in REAL]:
            parser.error(f"there are no real weights for {', '.join(unknown)}, only for {', '.join(REAL)}")
    if options.seed < 0:
        parser.error("--seed must not be negative")
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.model or NETWORKS:
        try:
            image = NETWORKS[name]().reduced_image if options.reduced else options.image
            model, weights, zeros = make_model(name, seed=options.seed, asked=options.sparsity, image=image,
                                               width=options.width, classes=options.classes,
                                               fc_dense=options.fc_dense, real=options.real)
        except (GraphError, WeightsError, OSError) as error:
            sys.exit(f"error: {name}: {error}")
        path = options.out / f"{name}{'_real' if options.real else ''}.onnx"
        layers = [weights[f"{layer}.weight"] for layer in zeros]
        total, kept = sum(layer.size for layer in layers), sum(int(np.count_nonzero(layer)) for layer in layers)
        del layers  # so that write_model can free the weights as it goes
        size = write_model(path, model, weights, sparse=options.sparse_initializers,
                           external_over=int(options.external_over * 1e6))
        print(f"{path}: {len(zeros)} layers, {total / 1e6:.2f} million weights, {100 * (1 - kept / total):.1f} % zero,"
              f" {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
