#!/usr/bin/env python3
"""Writes small ONNX graphs with what exporters leave in a model: constants and sizes that the graph computes.

    exporter_graphs.py FOLDER [--seed N]

Each graph is a function of this file: weights that the graph standardises, in the ways of several exporters; a channel
shuffle whose shapes come from Shape; the padding that TensorFlow calls SAME, computed from the image's size; a branch
that depends on a size; a depthwise filter that is repeated for each channel; networks of Keras, whose channels are the last
axis, with the transposes that tf2onnx writes around what ONNX has for channels first; a block of PaddlePaddle. The same seed
gives the same bytes.
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 10
CHANNELS, HEIGHT, WIDTH = 8, 9, 7


class Graph:
    """Nodes whose names are given, and constants that get one."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, values, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype=dtype), name))
        return name

    def normal(self, *shape):
        return self.constant(self.random.standard_normal(shape) * 0.3, np.float32)

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}" + (f".{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind.lower()}{len(self.nodes)}", **attributes))
        return names[0]

    def size(self, tensor, axis):
        """A list of one number, as torch computes x.size(axis)."""
        number = self.node("Gather", self.node("Shape", tensor), self.constant(axis), axis=0)
        return self.node("Unsqueeze", number, self.constant([0]))

    def model(self, output, opset, shape, image=(CHANNELS, HEIGHT, WIDTH)):
        graph = helper.make_graph(
            self.nodes, "exported",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *image])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", *shape])], self.constants)
        return helper.make_model(graph, producer_name="burin test/networks/exporter_graphs.py", ir_version=IR_VERSION,
                                 opset_imports=[helper.make_opsetid("", opset)])


def standardised_by_means(seed):
    """As NF-ResNet's weights: (w - mean) / sqrt(max(variance * fan, eps)) * gain."""
    g = Graph(seed)
    weight, axes = g.normal(4, CHANNELS, 3, 3), g.constant([1, 2, 3])
    mean = g.node("ReduceMean", weight, axes)
    centred = g.node("Sub", weight, mean)
    variance = g.node("ReduceMean", g.node("Pow", centred, g.constant(2.0, np.float32)), axes)
    fan = g.node("Cast", g.node("ReduceProd", g.node("Slice", g.node("Shape", weight), g.constant([1]), g.constant([4])),
                                keepdims=0), to=TensorProto.FLOAT)
    floor = g.node("Max", g.node("Mul", variance, fan), g.constant(1e-4, np.float32))
    scaled = g.node("Mul", g.node("Div", centred, g.node("Sqrt", floor)), g.normal(4, 1, 1, 1))
    return g.model(g.node("Conv", "x", scaled, pads=[1, 1, 1, 1]), 18, [4, HEIGHT, WIDTH])


def standardised_by_a_batch_norm(seed):
    """As timm's StdConv2d: a batch normalization in training mode, of the weights as channels of one image."""
    g = Graph(seed)
    weight = g.normal(4, CHANNELS, 3, 3)
    flat = g.node("Reshape", weight, g.constant([1, 4, -1]))
    still = [g.constant([value] * 4, np.float32) for value in (1, 0, 0, 1)]
    normal = g.node("BatchNormalization", flat, *still, outputs=3, epsilon=1e-6, momentum=0.0, training_mode=1)
    back = g.node("Reshape", normal, g.node("Shape", weight))
    return g.model(g.node("Conv", "x", back, pads=[1, 1, 1, 1]), 17, [4, HEIGHT, WIDTH])


def shuffled(seed):
    """x.view(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w), then x.view(x.size(0), -1)."""
    g = Graph(seed)
    sizes = [g.size("x", axis) for axis in range(4)]
    group = g.node("Div", sizes[1], g.constant([2]))
    split = g.node("Reshape", "x", g.node("Concat", sizes[0], g.constant([2]), group, *sizes[2:], axis=0))
    turned = g.node("Transpose", split, perm=[0, 2, 1, 3, 4])
    shuffled_x = g.node("Reshape", turned, g.node("Concat", sizes[0], g.constant([-1]), *sizes[2:], axis=0))
    flat = g.node("Reshape", shuffled_x, g.node("Concat", sizes[0], g.constant([-1]), axis=0))
    features = CHANNELS * HEIGHT * WIDTH
    return g.model(g.node("MatMul", flat, g.normal(features, 5)), 14, [5])


def same_padding(seed):
    """Padding by max((ceil(size / stride) - 1) * stride + kernel - size, 0), which torch's exporter makes a list of."""
    g = Graph(seed)
    zero, one, two = (g.constant([value]) for value in (0, 1, 2))

    def padding(axis):
        size = g.size("x", axis)
        half = g.node("Div", g.node("Cast", size, to=TensorProto.FLOAT), g.constant([2.0], np.float32))
        steps = g.node("Cast", g.node("Ceil", half), to=TensorProto.INT64)
        reach = g.node("Add", g.node("Mul", g.node("Sub", steps, one), two), g.constant([3]))
        total = g.node("Max", g.node("Sub", reach, size), zero)
        before = g.node("Div", total, two)
        return before, g.node("Sub", total, before)

    (top, bottom), (left, right) = padding(2), padding(3)
    # Last axis first, before and after; turned around as torch's exporter does it.
    pairs = g.node("Concat", left, right, top, bottom, g.node("ConstantOfShape", g.constant([4]), value=numpy_helper.from_array(
        np.array([0], dtype=np.int64))), axis=0)
    table = g.node("Reshape", pairs, g.constant([-1, 2]))
    back = g.node("Slice", table, g.constant([-1]), g.constant([-(2 ** 63) + 1]), g.constant([0]), g.constant([-1]))
    pads = g.node("Reshape", g.node("Transpose", back, perm=[1, 0]), g.constant([-1]))
    padded = g.node("Pad", "x", pads, g.constant(0.0, np.float32))
    return g.model(g.node("Conv", padded, g.normal(4, CHANNELS, 3, 3), strides=[2, 2]), 13,
                   [4, -(-HEIGHT // 2), -(-WIDTH // 2)])


def branched(seed):
    """Squeezes what has one column, as torch exports squeeze(3) of a tensor whose size it does not know."""
    g = Graph(seed)
    pooled = g.node("GlobalAveragePool", "x")
    number = g.node("Gather", g.node("Shape", pooled), g.constant(3), axis=0)
    condition = g.node("Equal", number, g.constant(1))
    axes = g.constant([2, 3])
    def branch(name, kind, inputs):
        return helper.make_graph([helper.make_node(kind, inputs, [name])], name,
                                 [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
    taken = g.node("If", condition, then_branch=branch("squeezed", "Squeeze", [pooled, axes]),
                   else_branch=branch("kept", "Identity", [pooled]))
    return g.model(g.node("Gemm", taken, g.normal(CHANNELS, 3)), 16, [3])


def repeated_filter(seed):
    """As timm's BlurPool: one filter, expanded to as many channels as the image has."""
    g = Graph(seed)
    row = g.constant([1.0, 2.0, 1.0], np.float32)
    product = g.node("Mul", g.node("Unsqueeze", row, g.constant([1])), row)
    blur = g.node("Div", product, g.node("ReduceSum", product))
    count = g.size("x", 1)
    shape = g.node("Concat", count, *(g.constant([value]) for value in (1, -1, -1)), axis=0)
    open_axes = g.node("Equal", shape, g.constant([-1]))
    ones = g.node("ConstantOfShape", g.node("Shape", shape), value=numpy_helper.from_array(np.array([1], dtype=np.int64)))
    filters = g.node("Expand", blur, g.node("Where", open_axes, ones, shape))
    return g.model(g.node("Conv", "x", filters, group=CHANNELS, strides=[2, 2]), 22, [CHANNELS, 4, 3])


def summed_by_labels(seed):
    """Attention, a layer, a gate and sums, as einsum spells them."""
    g = Graph(seed)
    def einsum(equation, *inputs):
        return g.node("Einsum", *inputs, equation=equation)

    queries = einsum("bchw,dc->bdhw", "x", g.normal(6, CHANNELS))
    heads = g.node("Reshape", queries, g.constant([0, 2, 3, -1]))
    scores = g.node("Softmax", einsum("bnci,bncj->bnij", heads, heads), axis=-1)
    mixed = einsum("bnij,bncj->bnci", scores, heads)
    back = g.node("Reshape", mixed, g.constant([0, 6, HEIGHT, WIDTH]))
    means = einsum("b...hw -> b...", back)
    gated = einsum("bchw,bc->bchw", back, g.node("Sigmoid", means))
    rows = einsum("...hw,...kw->...hk", gated, gated)
    both = einsum("bchk,hm,ck->bmc", rows, g.normal(HEIGHT, 4), g.normal(6, HEIGHT))
    return g.model(einsum("bi,bmc->bcim", means, both), 12, [6, 6, 4])


def seldom_functions(seed):
    """Functions that few networks have, each of what it takes, and what depends on them."""
    g = Graph(seed)
    x = g.node("Conv", "x", g.normal(2, CHANNELS, 1, 1))
    sine, above_one = g.node("Sin", x), g.node("Add", g.node("Exp", x), g.constant(1.0, np.float32))
    inside = g.node("Mul", sine, g.constant(0.9, np.float32))
    steep = g.node("Sinh", x)
    made = [g.node("Asin", sine), g.node("Acos", sine), g.node("Atanh", inside), g.node("Acosh", above_one), steep,
            g.node("Cosh", x), g.node("Atan", steep), g.node("Asinh", steep), g.node("Tan", inside),
            g.node("Shrink", x, lambd=0.25, bias=0.125), g.node("Mod", steep, g.constant(0.75, np.float32), fmod=1),
            g.node("Hardmax", x, axis=-1)]
    rest = g.node("Mod", steep, above_one, fmod=1)
    bad = g.node("Or", g.node("IsNaN", rest), g.node("IsInf", rest, detect_negative=0))
    made.append(g.node("Where", bad, g.constant(0.0, np.float32), rest))
    return g.model(g.node("Concat", *made, axis=1), 13, [26, HEIGHT, WIDTH])


class ChannelsLast(Graph):
    """Layers of Keras as tf2onnx writes them before it optimizes: each operator of ONNX between transposes."""

    def first(self, x):
        return self.node("Transpose", x, perm=[0, 3, 1, 2])

    def last(self, x):
        return self.node("Transpose", x, perm=[0, 2, 3, 1])

    def conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1, same=True):
        pad = {"pads": [kernel // 2] * 4} if same else {"auto_pad": "VALID"}
        made = self.node("Conv", self.first(x), self.normal(outputs, inputs // groups, kernel, kernel), strides=[stride] * 2,
                         group=groups, kernel_shape=[kernel] * 2, dilations=[1, 1], **pad)
        return self.node("Add", self.last(made), self.normal(outputs))

    def norm(self, x, count):
        numbers = [self.constant(self.random.uniform(0.7, 1.3, count), np.float32), self.normal(count), self.normal(count),
                   self.constant(self.random.uniform(0.7, 1.3, count), np.float32)]
        return self.last(self.node("BatchNormalization", self.first(x), *numbers, epsilon=1e-3))

    def relu6(self, x):
        return self.node("Min", self.node("Relu", x), self.constant(6.0, np.float32))

    def padded(self, x):
        """ZeroPadding2D(((0, 1), (0, 1)))."""
        return self.node("Pad", x, self.constant([0, 0, 0, 0, 0, 1, 1, 0]))

    def swish(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def max_pool(self, x):
        return self.last(self.node("MaxPool", self.first(x), kernel_shape=[2, 2], strides=[2, 2]))

    def mean(self, x, keepdims):
        return self.node("ReduceMean", x, axes=[1, 2], keepdims=keepdims)

    def dense(self, x, inputs, outputs):
        return self.node("Add", self.node("MatMul", x, self.normal(inputs, outputs)), self.normal(outputs))

    def excited(self, x, channels):
        squeezed = self.swish(self.conv(self.mean(x, 1), channels, 4))
        return self.node("Mul", x, self.node("Sigmoid", self.conv(squeezed, 4, channels)))


def keras_mobilenet(seed):
    """MobileNetV2's blocks, then one of EfficientNet; padding by a layer of its own, a mean and a dense layer."""
    g = ChannelsLast(seed)
    x = g.relu6(g.norm(g.conv(g.padded("x"), 3, 8, 3, 2, same=False), 8))
    for _ in range(2):
        y = g.relu6(g.norm(g.conv(x, 8, 16), 16))
        y = g.relu6(g.norm(g.conv(y, 16, 16, 3, groups=16), 16))
        x = g.node("Add", x, g.norm(g.conv(y, 16, 8), 8))
    y = g.swish(g.norm(g.conv(x, 8, 16), 16))
    y = g.swish(g.norm(g.conv(g.padded(y), 16, 16, 3, 2, groups=16, same=False), 16))
    x = g.norm(g.conv(g.excited(y, 16), 16, 12), 12)
    return g.model(g.node("Softmax", g.dense(g.mean(x, 0), 12, 5), axis=-1), 13, [5], (16, 16, 3))


def keras_resnet_v2(seed):
    """Normalizations before layers, a pooled shortcut, features that are flattened with their channels last."""
    g = ChannelsLast(seed)
    x = g.max_pool(g.conv("x", 3, 8, 3))
    y = g.node("Relu", g.norm(x, 8))
    x = g.node("Add", g.conv(x, 8, 12), g.conv(g.node("Relu", g.norm(g.conv(y, 8, 8, 3), 8)), 8, 12))
    y = g.node("Relu", g.norm(x, 12))
    x = g.node("Add", x, g.conv(g.node("Relu", g.norm(g.conv(y, 12, 8, 3), 8)), 8, 12))
    x = g.max_pool(g.node("Relu", g.norm(x, 12)))
    x = g.node("Relu", g.dense(g.node("Reshape", x, g.constant([-1, 4 * 4 * 12])), 4 * 4 * 12, 10))
    return g.model(g.dense(x, 10, 5), 13, [5], (16, 16, 3))


def keras_unet(seed):
    """An encoder whose stages are joined with what is resized, along the channels; a map as the output."""
    g = ChannelsLast(seed)
    low = g.node("Relu", g.conv("x", 3, 8, 3))
    high = g.node("LeakyRelu", g.conv(g.max_pool(low), 8, 12, 3), alpha=0.3)
    sizes = g.constant([1.0, 1.0, 2.0, 2.0], np.float32)
    large = g.last(g.node("Resize", g.first(high), "", sizes, mode="nearest", nearest_mode="floor",
                          coordinate_transformation_mode="asymmetric"))
    joined = g.node("Relu", g.conv(g.node("Concat", large, low, axis=3), 20, 8, 3))
    return g.model(g.node("Sigmoid", g.conv(joined, 8, 2)), 13, [16, 16, 2], (16, 16, 3))


def keras_splits(seed):
    """Channels that are shared out, an image that is cropped, and coordinates of the pixels beside what was computed."""
    g = ChannelsLast(seed)
    x = g.node("Relu", g.norm(g.conv("x", 3, 16, 3), 16))
    first = g.node("Split", x, g.constant([6, 10]), outputs=2, axis=3)
    y = g.node("Add", g.conv(first, 6, 8, 3), g.conv(f"{first}.1", 10, 8))
    y = g.node("Slice", g.node("Relu", y), g.constant([1, 2]), g.constant([-1, 14]), g.constant([1, 2]), g.constant([1, 1]))
    rows, cols = np.meshgrid(np.linspace(-1, 1, 14), np.linspace(-1, 1, 12), indexing="ij")
    places = g.node("Expand", g.constant(np.stack([rows, cols], axis=2)[np.newaxis], np.float32),
                    g.node("Concat", g.size("x", 0), g.constant([1, 1, 1]), axis=0))
    y = g.node("Relu", g.conv(g.node("Concat", y, places, axis=-1), 10, 8, 3))
    return g.model(g.node("Gather", g.conv(y, 8, 6), g.constant([1, 3, 5]), axis=3), 13, [14, 12, 3], (16, 16, 3))


def paddle_block(seed):
    """Of PaddlePaddle: swish and hard_swish in parts, scales as Mul and Add of lists, axes before the batch is known."""
    g = Graph(seed)
    x = g.node("Conv", "x", g.normal(8, CHANNELS, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], group=1)
    x = g.node("BatchNormalization", x, *(g.constant(g.random.uniform(0.5, 1.5, 8), np.float32) for _ in range(4)),
               epsilon=1e-5, momentum=0.9)
    gate = g.node("Clip", g.node("Add", x, g.constant([3.0], np.float32)), g.constant(0.0, np.float32),
                  g.constant(6.0, np.float32))
    x = g.node("Div", g.node("Mul", x, gate), g.constant([6.0], np.float32))
    pooled = g.node("GlobalAveragePool", x)
    squeezed = g.node("Add", g.node("Conv", pooled, g.normal(4, 8, 1, 1)),
                      g.node("Reshape", g.normal(4), g.constant([1, -1, 1, 1])))
    excited = g.node("Add", g.node("Conv", g.node("Relu", squeezed), g.normal(8, 4, 1, 1)),
                     g.node("Reshape", g.normal(8), g.constant([1, -1, 1, 1])))
    x = g.node("Mul", x, g.node("HardSigmoid", excited, alpha=0.2, beta=0.5))
    shape = g.node("Slice", g.node("Shape", x), g.constant([0]), g.constant([2]), g.constant([0]))
    x = g.node("Reshape", x, g.node("Concat", shape, g.constant([-1]), axis=0))
    x = g.node("Squeeze", g.node("ReduceMean", x, axes=[2], keepdims=1), g.constant([2]))
    scores = g.node("Add", g.node("MatMul", x, g.normal(8, 5)), g.normal(5))
    return g.model(g.node("Softmax", g.node("Identity", scores), axis=1), 13, [5])


CHANNELS_LAST = [keras_mobilenet, keras_resnet_v2, keras_unet, keras_splits]
GRAPHS = [standardised_by_means, standardised_by_a_batch_norm, shuffled, same_padding, branched, repeated_filter,
          summed_by_labels, seldom_functions, paddle_block, *CHANNELS_LAST]


def write_graphs(folder, seed, graphs=None):
    """Writes one file for each graph, of all or of some; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for make in graphs or GRAPHS:
        model = make(seed)
        onnx.checker.check_model(model)
        paths.append(folder / f"{make.__name__}.onnx")
        onnx.save_model(model, str(paths[-1]))
    return paths


def main():
    parser = argparse.ArgumentParser(description="Writes small ONNX graphs with what exporters leave in a model.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    for path in write_graphs(arguments.folder, arguments.seed):
        print(path)


if __name__ == "__main__":
    main()
