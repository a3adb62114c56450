#!/usr/bin/env python3
"""Writes a small model with operators of a domain of its own: own.onnx. It needs the packages numpy and onnx."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DENSITY = 0.2


def weights(name, outputs, inputs, random):
    values = random.uniform(0.5, 1.5, (outputs, inputs, 3, 3)) * random.choice([-1, 1], (outputs, inputs, 3, 3))
    values = (values / np.sqrt(inputs * 9 * DENSITY)).astype(np.float32)
    values[random.random(values.shape) >= DENSITY] = 0
    return numpy_helper.from_array(values, name)


def make_model():
    random = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["image", "conv1_w"], ["conv1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Swish", ["conv1"], ["swish1"], "swish1", domain="my.Domain", beta=1.5),
        helper.make_node("Conv", ["swish1", "conv2_w"], ["conv2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Gate", ["conv2", "swish1"], ["y"], "gate", domain="my.Domain"),
    ]
    graph = helper.make_graph(
        nodes, "own", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 16, 16, 16])],
        [weights("conv1_w", 16, 3, random), weights("conv2_w", 16, 16, random)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.Domain", 1)])
    model.ir_version = 8
    return model


if __name__ == "__main__":
    onnx.save(make_model(), sys.argv[1] if len(sys.argv) > 1 else "own.onnx")
