#!/usr/bin/env python3
"""Gives a network feature maps with as many zeros as recorded ones have, where there are no trained weights of it.

    fitted_network.py MODEL.onnx INPUTS.npy FEATURE_MAPS.json -o FITTED.onnx

FEATURE_MAPS.json is what feature_maps.py writes (--json): of each layer of its networks the share of zeros in the input and of
channels that are dead. The n-th convolution of MODEL is to write what the recorded layers at the same part of their networks
read, in the mean over the networks. For that its bias is set, channel by channel: the output of a channel on INPUTS, before ReLU,
is moved until the channel's share is not above zero. The shares of the channels lie evenly around the layer's, within SPREAD of
it, and are dealt out at random, always in the same way; dead channels are zero everywhere. Weights stay as they are.

The network's convolutions have ReLU behind them. Needs numpy, onnx and onnxruntime.
"""
import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

SPREAD = 0.3  # between the layer's share of zeros and that of its channels, at most


def at_part(recorded, key, part):
    """What is recorded at this part, from 0 to 1, of each network, in the mean over the networks."""
    found = []
    for layers in recorded.values():
        values = [layer[key] for layer in layers.values()][1:]  # the first layer reads the image
        found.append(np.interp(part, np.linspace(0, 1, len(values)), values))
    return float(np.mean(found))


def channel_shares(count, zeros, dead, seed):
    """The share of zeros that each of the channels is to have: in the mean `zeros`, of which the dead ones have 1 each."""
    dead_count = round(min(dead, zeros) * count)
    live = count - dead_count
    middle = (zeros * count - dead_count) / live if live else 0.0
    reach = min(SPREAD, middle, 1 - middle)
    shares = [1.0] * dead_count + list(np.linspace(middle - reach, middle + reach, live))
    random.Random(seed).shuffle(shares)
    return shares


def biases_for(sums, shares):
    """For sums [N,C,H,W] without a bias: the bias with which the share of each channel is zero or less."""
    biases = np.zeros(sums.shape[1], np.float32)
    for channel, share in enumerate(shares):
        values = sums[:, channel].ravel()
        biases[channel] = -values.max() * 2 - 1 if share >= 1 else -np.quantile(values, share)
    return biases


def run(model, name, inputs):
    """The tensor of that name."""
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run([name], {session.get_inputs()[0].name: inputs})[0]


def set_bias(graph, node, values):
    if len(node.input) < 3:
        node.input.append(f"{node.output[0]}_bias")
    name = node.input[2]
    kept = [tensor for tensor in graph.initializer if tensor.name != name]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    graph.initializer.append(onnx.numpy_helper.from_array(values.astype(np.float32), name))


def fit(model, inputs, recorded):
    """Sets the biases; returns for each convolution its name, the share that is asked for and the one that there is."""
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    outputs = list(model.graph.output)
    rows = []
    for index, node in enumerate(convolutions):
        part = index / max(len(convolutions) - 1, 1)
        zeros, dead = at_part(recorded, "zeros", part), at_part(recorded, "dead channels", part)
        channels = weights_of(model.graph, node).dims[0]
        set_bias(model.graph, node, np.zeros(channels))
        sums = run(model, node.output[0], inputs)
        biases = biases_for(sums, channel_shares(channels, zeros, dead, node.name))
        set_bias(model.graph, node, biases)
        rows.append((node.name, zeros, float((sums + biases[:, None, None] <= 0).mean())))
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return rows


def weights_of(graph, node):
    for tensor in graph.initializer:
        if tensor.name == node.input[1]:
            return tensor
    raise SystemExit(f"fitted_network.py: error: {node.name or node.output[0]}: its weights are no initializer of the model")


def main():
    parser = argparse.ArgumentParser(description="Biases with which feature maps have as many zeros as recorded ones.")
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("inputs", type=Path, metavar="INPUTS.npy")
    parser.add_argument("recorded", type=Path, metavar="FEATURE_MAPS.json")
    parser.add_argument("-o", dest="out", type=Path, required=True, metavar="FITTED.onnx")
    options = parser.parse_args()
    for path in (options.model, options.inputs, options.recorded):
        if not path.is_file():
            parser.error(f"{path}: no such file")
    model = onnx.load(options.model)
    rows = fit(model, np.load(options.inputs), json.loads(options.recorded.read_text()))
    if not rows:
        parser.error(f"{options.model} has no convolution")
    onnx.checker.check_model(model)
    onnx.save(model, options.out)
    for name, asked, reached in rows:
        print(f"{name:20} zeros {100 * asked:5.1f} % asked for, {100 * reached:5.1f} % there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
