#!/usr/bin/env python3
"""What ONNX Runtime makes of a model on the CPU: seeded inputs and the outputs, or every tensor between them, as .npy.

    onnxruntime_outputs.py MODEL.onnx --out FOLDER [--seed N] [--batch N] [--all]

FOLDER then holds inputs/NAME.npy, tensors/NAME.npy and index.json, which gives the graph's names in the order of
computation with their files. As a module: make_inputs() and run().
"""
import argparse
import json
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto

_MESSAGE_LIMIT = 2**31 - 1  # of protobuf, and so of a model handed over in memory


class ModelError(Exception):
    pass


def load(path):
    """The model with its external data."""
    try:
        return onnx.load(str(path))
    except (OSError, ValueError, TypeError, onnx.onnx_cpp2py_export.checker.ValidationError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    except Exception as error:  # protobuf's DecodeError stands in another module in every version
        if type(error).__name__ != "DecodeError":
            raise
        raise ModelError(f"{path}: is not an ONNX file: {error}") from error


def properties(model):
    return {entry.key: entry.value for entry in model.metadata_props}


def make_inputs(model, seed, batch):
    """Normal values for every input of the graph, of the standard deviation that the model's properties name
    ("input_std", else 1); `batch` stands for every symbolic size."""
    std = float(properties(model).get("input_std", 1.0))
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        if value.type.tensor_type.elem_type != TensorProto.FLOAT:
            raise ModelError(f"input {value.name}: only float32 inputs can be made here")
        shape = [size.dim_value if size.HasField("dim_value") else batch for size in value.type.tensor_type.shape.dim]
        random = np.random.default_rng([seed, zlib.crc32(value.name.encode())])
        inputs[value.name] = np.float32(std) * random.standard_normal(shape, dtype=np.float32)
    return inputs


def computed_tensors(model):
    """The names of all tensors that nodes compute, in the order of the nodes."""
    return [name for node in model.graph.node for name in node.output if name]


def run(model, inputs, all_tensors=False):
    """The graph's outputs, or all tensors that its nodes compute, by name. The model itself is left as it is."""
    names = [value.name for value in model.graph.output]
    if all_tensors:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        model = copy
        for name in computed_tensors(model):
            if name not in names:
                model.graph.output.add(name=name)  # ONNX Runtime finds type and shape by itself
        names = computed_tensors(model)
    if model.ByteSize() > _MESSAGE_LIMIT:
        raise ModelError("the model is larger than 2 GB, more than ONNX Runtime takes from memory")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if all_tensors:  # else optimization would fuse tensors away
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    elif any(node.op_type == "QuantizeLinear" for node in model.graph.node):  # more would compute in integers
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, inputs)))


def file_names(names):
    """A different file name for each, with what file systems do not like replaced."""
    taken = {}
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".") or "tensor"
        file, number = f"{stem}.npy", 1
        while file in taken.values():
            number += 1
            file = f"{stem}.{number}.npy"
        taken[name] = file
    return taken


def save(folder, tensors):
    """Writes each tensor, booleans as 0 and 1; returns the list of names and files, in the given order."""
    folder.mkdir(parents=True, exist_ok=True)
    files = file_names(tensors)
    for name, values in tensors.items():
        if values.dtype == bool:
            values = values.astype(np.float32)
        np.save(folder / files[name], np.ascontiguousarray(values))
    return [{"name": name, "file": f"{folder.name}/{files[name]}"} for name in tensors]


def write(path, out, *, seed=1, batch=1, all_tensors=False):
    """Runs the model and writes inputs, tensors and index.json; returns the tensors."""
    model = load(path)
    inputs = make_inputs(model, seed, batch)
    tensors = run(model, inputs, all_tensors)
    index = {"model": str(path), "seed": seed, "batch": batch, "inputs": save(out / "inputs", inputs),
             "tensors": save(out / "tensors", tensors), "outputs": [value.name for value in model.graph.output]}
    (out / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    return tensors


def main():
    parser = argparse.ArgumentParser(description="Runs a model with ONNX Runtime and writes its tensors as .npy.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the inputs (default 1)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="images (default 1)")
    parser.add_argument("--all", action="store_true", help="every tensor, not only the outputs")
    options = parser.parse_args()
    try:
        tensors = write(options.model, options.out, seed=options.seed, batch=options.batch, all_tensors=options.all)
    except ModelError as error:
        sys.exit(f"error: {error}")
    print(f"{options.out}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
