#!/usr/bin/env python3
"""Checks models that examples/models/make.py wrote: are they valid ONNX, is every layer as sparse as was asked for,
does ONNX Runtime get sensible numbers out of them?

    check_models.py MODEL.onnx ...
    check_models.py --make NAME ... [-- options of make.py]

The second form writes the named networks into a temporary folder first, at their reduced size where no other is asked
for. Prints a table of layers for each model; exits with 1 and names what is wrong where something is.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

import onnxruntime_outputs

MAKE = Path(__file__).resolve().parents[2] / "examples" / "models" / "make.py"
BATCH = 2
SEED = 1
# Root mean square of a layer's outputs relative to the network's inputs.
LEAST_RMS, MOST_RMS = 1e-3, 100.0
LEAST_DIFFERENCE = 1e-3  # between the outputs of two images, relative to the largest output


class Fault(Exception):
    pass


def require(condition, fault):
    if not condition:
        raise Fault(fault)


def weights_of(model):
    """Every initializer, dense or sparse, as a dense array by name."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for sparse in model.graph.sparse_initializer:
        values = np.zeros(int(np.prod(sparse.dims)), dtype=np.float32)
        values[numpy_helper.to_array(sparse.indices)] = numpy_helper.to_array(sparse.values)
        weights[sparse.values.name] = values.reshape(sparse.dims)
    return weights


def check_shapes(model, tensors):
    """The shapes that ONNX infers are those that ONNX Runtime computed, with the batch left symbolic."""
    if model.graph.sparse_initializer:  # for which ONNX's own inference has no rule
        return
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    known = {value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
             for value in values}
    for name, tensor in tensors.items():
        require(known.get(name) == ["N", *tensor.shape[1:]],
                f"{name}: the shape {known.get(name)} was inferred, {list(tensor.shape)} computed for {BATCH} images")


def check_outputs(model, tensors):
    outputs = [value.name for value in model.graph.output]
    require(len(outputs) == 1, f"{len(outputs)} outputs instead of one")
    for name, tensor in tensors.items():
        require(np.all(np.isfinite(tensor)), f"{name}: holds values that are not finite")
    output = tensors[outputs[0]]
    difference = np.max(np.abs(output[0] - output[1])) / np.max(np.abs(output))
    require(difference > LEAST_DIFFERENCE, f"two images give nearly the same outputs: they differ by {difference}")
    if model.graph.node[-1].op_type == "Softmax":
        require(np.allclose(output.sum(axis=1), 1.0, atol=1e-5), "the probabilities do not add up to 1")


def check_layers(model, weights, tensors):
    """Rows of the table: layer, weights' shape, zeros asked for and there, root mean square of the outputs."""
    properties = onnxruntime_outputs.properties(model)
    asked = json.loads(properties["sparsity"])
    weighted = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
    layers = {node.input[1].removesuffix(".weight"): node for node in weighted}
    require(list(asked) == list(layers), "the layers of the property sparsity are not those of the graph")
    std = float(properties["input_std"])
    rows = []
    for layer, node in layers.items():
        values = weights[node.input[1]]
        zeros = values.size - int(np.count_nonzero(values))
        # Dense layers may draw a zero by chance.
        require(abs(zeros - round(asked[layer] * values.size)) <= 1 + 1e-6 * values.size,
                f"{layer}: {asked[layer]:.2%} zeros were asked for, {zeros / values.size:.2%} are there")
        rms = float(np.sqrt(np.mean(np.square(tensors[node.output[0]], dtype=np.float64))))
        require(LEAST_RMS < rms / std < MOST_RMS, f"{layer}: outputs of {rms:.3g} for inputs of {std:.3g}")
        rows.append((layer, "x".join(map(str, values.shape)), f"{asked[layer]:.2%}", f"{zeros / values.size:.2%}",
                     f"{rms:.3g}"))
    return rows


def print_table(rows):
    rows = [("layer", "weights", "asked", "zero", "output rms"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        names = "  ".join(text.ljust(width) for text, width in zip(row[:2], widths))
        print("  " + names + "  " + "  ".join(text.rjust(width) for text, width in zip(row[2:], widths[2:])))


def check(path):
    onnx.checker.check_model(str(path))
    model = onnxruntime_outputs.load(path)
    inputs = onnxruntime_outputs.make_inputs(model, SEED, BATCH)
    tensors = onnxruntime_outputs.run(model, inputs, all_tensors=True)
    check_shapes(model, tensors)
    check_outputs(model, tensors)
    rows = check_layers(model, weights_of(model), tensors)
    image = "x".join(map(str, next(iter(inputs.values())).shape[1:]))
    properties = onnxruntime_outputs.properties(model)
    print(f"{path.name}: {properties['title']}, image {image}, sparsities: {properties['sparsity_source']}; "
          f"weights: {properties['weights']}")
    print_table(rows)


def make(names, options, folder):
    if not any(option in options for option in ("--image", "--reduced")):
        options = [*options, "--reduced"]
    subprocess.run([sys.executable, str(MAKE), "--out", folder, "--model", *names, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return sorted(Path(folder).glob("*.onnx"))


def main():
    parser = argparse.ArgumentParser(description="Checks models that examples/models/make.py wrote.")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--make", nargs="+", metavar="NAME", help="write and check these networks")
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    if not options.models and not options.make:
        parser.error("name models or --make networks")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        paths = options.models + (make(options.make, arguments[at + 1:], folder) if options.make else [])
        for path in paths:
            try:
                check(path)
            except (Fault, onnxruntime_outputs.ModelError, onnx.checker.ValidationError,
                    shape_inference.InferenceError) as fault:
                print(f"{path.name}: {fault}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
