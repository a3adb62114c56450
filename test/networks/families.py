#!/usr/bin/env python3
"""Small networks of the families that users bring, with the nodes that exporters write for them.

    families.py FOLDER [NAME ...]      writes NAME.onnx of each (default: all)
    families.py --list

Each has the blocks of its family, in the order and with the operators of the well-known implementations: a stage or two of
each kind instead of all, few channels, a small image. Weights are seeded, and 70 % of a convolution's are zero. Shapes
that an exporter computes in the graph are computed here, too.
"""
import argparse
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 17
IR_VERSION = 8
ZEROS = 0.7


class Graph:
    """Nodes behind each other. Tensors are names; `channels` says how many each has, where that matters."""

    def __init__(self, name, channels=3, image=32, opset=OPSET):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self._name, self._opset, self._count = name, opset, 0
        self._nodes, self._weights = [], []
        self.channels = {"input": channels}
        self._inputs = [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", channels, image, image])]

    def node(self, kind, inputs, outputs=1, channels=None, **attributes):
        """Adds one and returns its output, or a list of them."""
        self._count += 1
        names = [f"{kind.lower()}{self._count}" + (f".{i}" if outputs > 1 else "") for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, name=f"/{kind}_{self._count}", **attributes))
        for name in names:
            self.channels[name] = channels if channels is not None else self.channels.get(inputs[0])
        return names[0] if outputs == 1 else names

    def constant(self, values, kind=np.float32):
        self._count += 1
        name = f"constant{self._count}"
        self._weights.append(numpy_helper.from_array(np.asarray(values, dtype=kind), name))
        return name

    def sizes(self, *values):
        return self.constant(values, np.int64)

    def _drawn(self, shape, fan_in, zeros):
        values = self.random.standard_normal(shape).astype(np.float32)
        values[self.random.random(shape) < zeros] = 0
        return values * np.float32(np.sqrt(2 / (fan_in * (1 - zeros))))

    # --- layers

    def conv(self, x, outputs, kernel=1, stride=1, groups=1, dilation=1, pad=None, bias=True, weights=None):
        rows, cols = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        inputs = self.channels[x] // groups
        shape = (outputs, inputs, rows, cols)
        if weights is None:
            weights = self.constant(self._drawn(shape, inputs * rows * cols, ZEROS if inputs > 1 else 0))
        pads = [dilation * (rows // 2), dilation * (cols // 2)] if pad is None else [pad, pad]
        names = [x, weights]
        if bias:
            names.append(self.constant(0.1 * self.random.standard_normal(outputs)))
        return self.node("Conv", names, channels=outputs, kernel_shape=[rows, cols], strides=[stride] * 2, group=groups,
                         pads=pads * 2, dilations=[dilation] * 2)

    def transposed(self, x, outputs, kernel, stride, pad=0, output_pad=0):
        inputs = self.channels[x]
        weights = self.constant(self._drawn((inputs, outputs, kernel, kernel), inputs * kernel * kernel / stride**2, ZEROS))
        bias = self.constant(0.1 * self.random.standard_normal(outputs))
        return self.node("ConvTranspose", [x, weights, bias], channels=outputs, kernel_shape=[kernel] * 2, group=1,
                         strides=[stride] * 2, pads=[pad] * 4, output_padding=[output_pad] * 2)

    def norm(self, x):
        count = self.channels[x]
        parts = [self.random.uniform(0.7, 1.3, count), 0.1 * self.random.standard_normal(count),
                 0.1 * self.random.standard_normal(count), self.random.uniform(0.7, 1.3, count)]
        return self.node("BatchNormalization", [x, *(self.constant(part) for part in parts)], epsilon=1e-5)

    def linear(self, x, outputs, inputs):
        weights = self.constant(self._drawn((outputs, inputs), inputs, ZEROS))
        return self.node("Gemm", [x, weights, self.constant(np.zeros(outputs))], channels=outputs, transB=1)

    def matmul(self, x, outputs, inputs):
        """Of the last axis, as a linear layer of pixels is written."""
        product = self.node("MatMul", [x, self.constant(self._drawn((inputs, outputs), inputs, ZEROS))], channels=outputs)
        return self.node("Add", [self.constant(0.1 * self.random.standard_normal(outputs)), product], channels=outputs)

    # --- functions

    def relu(self, x):
        return self.node("Relu", [x])

    def relu6(self, x):
        return self.node("Clip", [x, self.constant(0.0), self.constant(6.0)])

    def silu(self, x):
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def hard_swish(self, x):
        return self.node("HardSwish", [x])

    def hard_sigmoid(self, x):
        return self.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5)

    def sigmoid(self, x):
        return self.node("Sigmoid", [x])

    def gelu(self, x):
        inner = self.node("Erf", [self.node("Div", [x, self.constant(np.sqrt(2))])])
        product = self.node("Mul", [x, self.node("Add", [inner, self.constant(1.0)])])
        return self.node("Mul", [product, self.constant(0.5)])

    def same(self, x):
        return x

    def add(self, a, b):
        return self.node("Add", [a, b])

    def multiply(self, a, b):
        return self.node("Mul", [a, b])

    # --- shapes

    def concat(self, parts, axis=1):
        channels = sum(self.channels[part] for part in parts) if axis == 1 else self.channels[parts[0]]
        return self.node("Concat", parts, channels=channels, axis=axis)

    def chunk(self, x, parts=2):
        share = self.channels[x] // parts
        return self.node("Split", [x, self.sizes(*[share] * parts)], outputs=parts, channels=share, axis=1)

    def slice(self, x, begin, end, axis=1, step=1):
        channels = end - begin if axis == 1 else self.channels[x]
        return self.node("Slice", [x, *(self.sizes(value) for value in (begin, end, axis, step))], channels=channels)

    def reshape(self, x, *shape, channels=None):
        return self.node("Reshape", [x, self.sizes(*shape)], channels=channels)

    def transpose(self, x, *order, channels=None):
        return self.node("Transpose", [x], channels=channels or self.channels[x], perm=order)

    def size_of(self, x, axis):
        """As a 1-D tensor, computed in the graph."""
        size = self.node("Gather", [self.node("Shape", [x]), self.constant(axis, np.int64)], axis=0)
        return self.node("Unsqueeze", [size, self.sizes(0)])

    def pool(self, x, kernel, stride, pad=0, kind="MaxPool", **attributes):
        return self.node(kind, [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **attributes)

    def mean(self, x):
        return self.node("GlobalAveragePool", [x])

    def flatten(self, x):
        return self.node("Flatten", [x], axis=1)

    def classify(self, x, classes=10):
        return self.linear(self.flatten(self.mean(x)), classes, self.channels[x])

    def scale(self, x, factor, mode):
        attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {
            "coordinate_transformation_mode": "half_pixel"}
        return self.node("Resize", [x, "", self.constant([1, 1, factor, factor])], mode=mode, **attributes)

    def resize_like(self, x, other, mode="linear", **attributes):
        """To the rows and columns of another tensor, which the graph computes."""
        shape = self.node("Slice", [self.node("Shape", [other]), *(self.sizes(value) for value in (2, 4, 0))])
        own = self.node("Slice", [self.node("Shape", [x]), *(self.sizes(value) for value in (0, 2, 0))])
        sizes = self.node("Concat", [own, shape], axis=0)
        return self.node("Resize", [x, "", "", sizes], channels=self.channels[x], mode=mode,
                         coordinate_transformation_mode="half_pixel", **attributes)

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        unknown = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self._nodes, self._name, self._inputs, unknown, self._weights)
        model = helper.make_model(graph, producer_name="burin test/networks/families.py", ir_version=IR_VERSION,
                                  opset_imports=[helper.make_opsetid("", self._opset)])
        for info, made in zip(infos, shape_inference.infer_shapes(model, data_prop=True).graph.output):
            model.graph.output.remove(model.graph.output[0])
            model.graph.output.append(made if made.type.tensor_type.HasField("shape") else info)
        onnx.checker.check_model(model)
        return model


# --- blocks that several families have

def conv_norm(g, x, outputs, kernel=1, stride=1, groups=1, act=None, **options):
    x = g.norm(g.conv(x, outputs, kernel, stride, groups, bias=False, **options))
    return act(x) if act else x


def squeeze_excite(g, x, inner, act, gate):
    squeezed = act(g.conv(g.mean(x), inner))
    return g.multiply(x, gate(g.conv(squeezed, g.channels[x])))


def bottleneck(g, x, inner, outputs, stride=1, groups=1, dilation=1, se=False):
    main = conv_norm(g, x, inner, act=g.relu)
    main = conv_norm(g, main, inner, 3, stride, groups, act=g.relu, dilation=dilation)
    if se:
        main = squeeze_excite(g, main, 8, g.relu, g.sigmoid)
    main = conv_norm(g, main, outputs)
    if stride != 1 or g.channels[x] != outputs:
        x = conv_norm(g, x, outputs, 1, stride)
    return g.relu(g.add(main, x))


def inverted_residual(g, x, expand, outputs, kernel=3, stride=1, act=None, se=None):
    main = conv_norm(g, x, expand, act=act)
    main = conv_norm(g, main, expand, kernel, stride, expand, act=act)
    if se:
        main = squeeze_excite(g, main, 8, *se)
    main = conv_norm(g, main, outputs)
    return g.add(main, x) if stride == 1 and g.channels[x] == outputs else main


def channel_shuffle(g, x, groups=2):
    """x.view(batch, groups, c // groups, h, w).transpose(1, 2).view(batch, c, h, w), with sizes of the graph's."""
    channels = g.channels[x]
    batch, rows, cols = (g.size_of(x, axis) for axis in (0, 2, 3))
    apart = g.node("Concat", [batch, g.sizes(groups), g.sizes(channels // groups), rows, cols], axis=0)
    together = g.node("Concat", [batch, g.sizes(channels), rows, cols], axis=0)
    x = g.node("Reshape", [x, apart], channels=channels)
    return g.node("Reshape", [g.transpose(x, 0, 2, 1, 3, 4), together], channels=channels)


# --- families

def resnext(g):
    x = g.pool(conv_norm(g, "input", 16, 7, 2, act=g.relu), 3, 2, 1)
    x = bottleneck(g, x, 16, 32, groups=4)
    return g.model(g.classify(bottleneck(g, x, 32, 64, stride=2, groups=4)))


def densenet(g):
    x = g.pool(conv_norm(g, "input", 16, 7, 2, act=g.relu), 3, 2, 1)
    for block in range(2):
        features = [x]
        for _ in range(3):
            joined = g.concat(features) if len(features) > 1 else features[0]
            grown = g.conv(g.relu(g.norm(joined)), 16, bias=False)
            features.append(g.conv(g.relu(g.norm(grown)), 8, 3, bias=False))
        x = g.concat(features)
        if block == 0:
            x = g.pool(g.conv(g.relu(g.norm(x)), 16, bias=False), 2, 2, kind="AveragePool")
    return g.model(g.classify(g.relu(g.norm(x))))


def mobilenet_v2(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu6)
    x = inverted_residual(g, x, 32, 16, act=g.relu6)
    x = inverted_residual(g, x, 48, 24, stride=2, act=g.relu6)
    return g.model(g.classify(conv_norm(g, x, 64, act=g.relu6)))


def mobilenet_v3(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.hard_swish)
    x = inverted_residual(g, x, 16, 16, stride=2, act=g.relu, se=(g.relu, g.hard_sigmoid))
    x = inverted_residual(g, x, 48, 16, kernel=5, act=g.hard_swish, se=(g.relu, g.hard_sigmoid))
    x = g.flatten(g.mean(conv_norm(g, x, 64, act=g.hard_swish)))
    return g.model(g.linear(g.hard_swish(g.linear(x, 64, 64)), 10, 64))


def mnasnet(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    x = conv_norm(g, conv_norm(g, x, 16, 3, groups=16, act=g.relu), 8)
    x = inverted_residual(g, x, 24, 16, stride=2, act=g.relu)
    x = inverted_residual(g, x, 48, 16, kernel=5, act=g.relu)
    x = g.node("ReduceMean", [conv_norm(g, x, 64, act=g.relu)], axes=[2, 3], keepdims=0)
    return g.model(g.linear(x, 10, 64))


def shufflenet_v2(g):
    x = g.pool(conv_norm(g, "input", 16, 3, 2, act=g.relu), 3, 2, 1)
    for stride in (2, 1, 1):
        if stride == 1:
            kept, x = g.chunk(x)
        else:
            kept = conv_norm(g, conv_norm(g, x, 16, 3, 2, 16), 16, act=g.relu)
        x = conv_norm(g, x, 16, act=g.relu)
        x = conv_norm(g, conv_norm(g, x, 16, 3, stride, 16), 16, act=g.relu)
        x = channel_shuffle(g, g.concat([kept, x]))
    x = g.node("ReduceMean", [conv_norm(g, x, 64, act=g.relu)], axes=[2, 3], keepdims=0)
    return g.model(g.linear(x, 10, 64))


def efficientnet(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.silu)
    x = inverted_residual(g, x, 32, 16, act=g.silu, se=(g.silu, g.sigmoid))
    x = inverted_residual(g, x, 48, 24, kernel=5, stride=2, act=g.silu, se=(g.silu, g.sigmoid))
    return g.model(g.classify(conv_norm(g, x, 64, act=g.silu)))


def regnet(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    x = bottleneck(g, x, 24, 24, stride=2, groups=3, se=True)
    return g.model(g.classify(bottleneck(g, x, 24, 24, groups=3, se=True)))


def inception_v3(g):
    parts = []
    for channel in range(3):  # transform_input of torchvision
        one = g.node("Gather", ["input", g.constant(channel, np.int64)], axis=1, channels=1)
        one = g.node("Unsqueeze", [one, g.sizes(1)], channels=1)
        parts.append(g.add(g.multiply(one, g.constant(0.45 + 0.01 * channel)), g.constant(-0.03)))
    x = g.pool(conv_norm(g, g.concat(parts), 16, 3, 2, act=g.relu, pad=0), 3, 2)
    one = conv_norm(g, x, 16, act=g.relu)
    three = conv_norm(g, conv_norm(g, conv_norm(g, x, 16, act=g.relu), 16, (1, 7), act=g.relu), 16, (7, 1), act=g.relu)
    pooled = conv_norm(g, g.pool(x, 3, 1, 1, "AveragePool", count_include_pad=1), 16, act=g.relu)
    x = g.concat([one, three, pooled])
    split = conv_norm(g, x, 16, act=g.relu)
    both = g.concat([conv_norm(g, split, 16, (1, 3), act=g.relu), conv_norm(g, split, 16, (3, 1), act=g.relu)])
    x = g.concat([both, g.pool(x, 3, 1, 1)])
    return g.model(g.classify(g.pool(x, 3, 2)))


def convnext(g):
    x = g.conv("input", 16, 4, 4, pad=0)
    for _ in range(2):
        y = g.transpose(g.conv(x, 16, 7, groups=16), 0, 2, 3, 1)
        y = g.node("LayerNormalization", [y, g.constant(np.linspace(0.8, 1.2, 16)), g.constant(np.linspace(-0.1, 0.1, 16))],
                   axis=-1, epsilon=1e-6)
        y = g.transpose(g.matmul(g.gelu(g.matmul(y, 64, 16)), 16, 64), 0, 3, 1, 2)
        x = g.add(g.multiply(y, g.constant(np.linspace(0.5, 1, 16).reshape(16, 1, 1))), x)
    x = g.flatten(g.mean(x))
    x = g.node("LayerNormalization", [x, g.constant(np.ones(16)), g.constant(np.zeros(16))], axis=-1, epsilon=1e-6)
    return g.model(g.linear(x, 10, 16))


def ghostnet(g):
    def ghost(x, outputs, act):
        half = conv_norm(g, x, outputs // 2, act=act)
        joined = g.concat([half, conv_norm(g, half, outputs // 2, 3, groups=outputs // 2, act=act)])
        return g.slice(joined, 0, outputs)

    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    main = ghost(ghost(x, 32, g.relu), 16, g.same)
    return g.model(g.classify(g.add(main, x)))


def res2net(g):
    x = g.pool(conv_norm(g, "input", 32, 7, 2, act=g.relu), 3, 2, 1)
    parts = g.chunk(conv_norm(g, x, 32, act=g.relu), 4)
    made, last = [], None
    for part in parts[:3]:
        last = conv_norm(g, part if last is None else g.add(last, part), 8, 3, act=g.relu)
        made.append(last)
    joined = g.concat([*made, parts[3]])
    return g.model(g.classify(g.relu(g.add(conv_norm(g, joined, 32), x))))


def nf_resnet(g):
    """Weights that the graph standardises: none of these nodes depends on the input."""
    def standardised(x, outputs, kernel):
        shape = (outputs, g.channels[x], kernel, kernel)
        weights = g.constant(np.random.default_rng(outputs).standard_normal(shape))
        mean = g.node("ReduceMean", [weights], axes=[1, 2, 3], keepdims=1)
        centred = g.node("Sub", [weights, mean])
        variance = g.node("ReduceMean", [g.node("Mul", [centred, centred])], axes=[1, 2, 3], keepdims=1)
        scaled = g.node("Div", [centred, g.node("Sqrt", [g.node("Add", [variance, g.constant(1e-4)])])])
        gain = g.constant(np.full((outputs, 1, 1, 1), 1 / np.sqrt(shape[1] * kernel**2)))
        return g.conv(x, outputs, kernel, weights=g.node("Mul", [scaled, gain]))

    x = g.pool(g.relu(standardised("input", 16, 3)), 2, 2)
    x = g.add(standardised(g.relu(x), 16, 3), x)
    return g.model(g.classify(x))


def cspnet(g):
    x = conv_norm(g, "input", 32, 3, 2, act=lambda y: g.node("LeakyRelu", [y], alpha=0.01))
    kept, main = g.chunk(x)
    main = g.add(conv_norm(g, conv_norm(g, main, 16, act=g.relu), 16, 3, act=g.relu), main)
    return g.model(g.classify(conv_norm(g, g.concat([kept, main]), 32, act=g.relu)))


def sknet(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    paths = [conv_norm(g, x, 16, 3, dilation=dilation, act=g.relu) for dilation in (1, 2)]
    stacked = g.node("Concat", [g.node("Unsqueeze", [path, g.sizes(1)]) for path in paths], axis=1, channels=16)
    total = g.node("ReduceSum", [stacked, g.sizes(1)], keepdims=0, channels=16)
    chosen = g.conv(g.relu(conv_norm(g, g.mean(total), 8)), 32)
    gates = g.node("Softmax", [g.reshape(chosen, -1, 2, 16, 1, 1, channels=16)], axis=1)
    x = g.node("ReduceSum", [g.multiply(stacked, gates), g.sizes(1)], keepdims=0, channels=16)
    return g.model(g.classify(x))


def resnest(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    split = conv_norm(g, x, 32, 3, groups=4, act=g.relu)
    apart = g.reshape(split, -1, 2, 16, 16, 16, channels=16)
    total = g.node("ReduceSum", [apart, g.sizes(1)], keepdims=0, channels=16)
    gates = g.conv(g.relu(conv_norm(g, g.mean(total), 8)), 32)
    gates = g.node("Softmax", [g.transpose(g.reshape(gates, -1, 1, 2, 16), 0, 2, 1, 3)], axis=1)
    gates = g.reshape(g.reshape(gates, -1, 32), -1, 2, 16, 1, 1)
    x = g.node("ReduceSum", [g.node("Mul", [apart, gates]), g.sizes(1)], keepdims=0, channels=16)
    return g.model(g.classify(x))


def unet(up):
    def make(g):
        def double(x, outputs):
            return conv_norm(g, conv_norm(g, x, outputs, 3, act=g.relu), outputs, 3, act=g.relu)

        first = double("input", 16)
        second = double(g.pool(first, 2, 2), 24)
        x = double(g.pool(second, 2, 2), 32)
        for skip, outputs in ((second, 24), (first, 16)):
            x = double(g.concat([skip, up(g, x, outputs)]), outputs)
        return g.model(g.conv(x, 4))
    return make


unet_nearest = unet(lambda g, x, outputs: g.conv(g.scale(x, 2, "nearest"), outputs))
unet_linear = unet(lambda g, x, outputs: g.conv(g.scale(x, 2, "linear"), outputs))
unet_transposed = unet(lambda g, x, outputs: g.transposed(x, outputs, 2, 2))
unet_overlapping = unet(lambda g, x, outputs: g.transposed(x, outputs, 3, 2, 1, 1))
unet_shuffled = unet(lambda g, x, outputs: g.node("DepthToSpace", [g.conv(x, 4 * outputs)], channels=outputs, blocksize=2,
                                                  mode="CRD"))


def fcn(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    x = bottleneck(g, x, 16, 32, dilation=2)
    x = g.conv(conv_norm(g, x, 16, 3, act=g.relu), 5)
    return g.model(g.resize_like(x, "input"))


def deeplab_v3(g):
    x = conv_norm(g, "input", 16, 3, 2, act=g.relu)
    x = bottleneck(g, x, 16, 32, stride=2, dilation=2)
    parts = [conv_norm(g, x, 16, act=g.relu)]
    parts += [conv_norm(g, x, 16, 3, dilation=dilation, act=g.relu) for dilation in (2, 3)]
    parts.append(g.resize_like(conv_norm(g, g.mean(x), 16, act=g.relu), x))
    x = conv_norm(g, conv_norm(g, g.concat(parts), 16, act=g.relu), 16, 3, act=g.relu)
    return g.model(g.resize_like(g.conv(x, 5), "input"))


def lraspp(g):
    low = conv_norm(g, "input", 16, 3, 2, act=g.hard_swish)
    high = inverted_residual(g, low, 32, 24, stride=2, act=g.hard_swish)
    gate = g.sigmoid(g.conv(g.mean(high), 16, bias=False))
    x = g.multiply(conv_norm(g, high, 16, act=g.relu), gate)
    x = g.add(g.conv(low, 5), g.conv(g.resize_like(x, low), 5))
    return g.model(g.resize_like(x, "input"))


def yolo_conv(g, x, outputs, kernel=1, stride=1, groups=1):
    return conv_norm(g, x, outputs, kernel, stride, groups, act=g.silu)


def spatial_pyramid(g, x, outputs):
    pools = [yolo_conv(g, x, outputs // 2)]
    for _ in range(3):
        pools.append(g.pool(pools[-1], 5, 1, 2))
    return yolo_conv(g, g.concat(pools), outputs)


def yolo_v5(g):
    def c3(x, outputs):
        main = yolo_conv(g, x, outputs // 2)
        main = g.add(yolo_conv(g, yolo_conv(g, main, outputs // 2), outputs // 2, 3), main)
        return yolo_conv(g, g.concat([main, yolo_conv(g, x, outputs // 2)]), outputs)

    # Version 5.0's first layer: four slices of every second pixel.
    corners = [g.slice(g.slice("input", row, 2**31 - 1, 2, 2), col, 2**31 - 1, 3, 2) for row, col in ((0, 0), (1, 0),
                                                                                                  (0, 1), (1, 1))]
    x = yolo_conv(g, g.concat(corners), 16, 3)
    low = c3(yolo_conv(g, x, 24, 3, 2), 24)
    high = spatial_pyramid(g, yolo_conv(g, low, 32, 3, 2), 32)
    merged = c3(g.concat([g.scale(yolo_conv(g, high, 24), 2, "nearest"), low]), 24)
    outputs = []
    for x, cells, stride in ((merged, 8, 4.0), (high, 4, 8.0)):
        anchors, values = 3, 7
        y = g.reshape(g.conv(x, anchors * values), -1, anchors, values, cells, cells)
        y = g.sigmoid(g.transpose(y, 0, 1, 3, 4, 2))
        places = np.stack(np.meshgrid(np.arange(cells), np.arange(cells)), axis=2).reshape(1, 1, cells, cells, 2)
        centre, size, rest = g.node("Split", [y, g.sizes(2, 2, values - 4)], outputs=3, axis=4)
        centre = g.node("Mul", [g.node("Add", [g.node("Mul", [centre, g.constant(2.0)]), g.constant(places - 0.5)]),
                                g.constant(stride)])
        size = g.node("Pow", [g.node("Mul", [size, g.constant(2.0)]), g.constant(2.0)])
        size = g.node("Mul", [size, g.constant(np.linspace(4, 14, 6).reshape(1, 3, 1, 1, 2))])
        outputs.append(g.reshape(g.node("Concat", [centre, size, rest], axis=4), -1, anchors * cells * cells, values))
    return g.model(g.node("Concat", outputs, axis=1))


def yolo_v8(g):
    def c2f(x, outputs):
        parts = g.chunk(yolo_conv(g, x, outputs))
        made = g.add(yolo_conv(g, yolo_conv(g, parts[1], outputs // 2, 3), outputs // 2, 3), parts[1])
        return yolo_conv(g, g.concat([*parts, made]), outputs)

    low = c2f(yolo_conv(g, yolo_conv(g, "input", 16, 3, 2), 24, 3, 2), 24)
    high = spatial_pyramid(g, yolo_conv(g, low, 32, 3, 2), 32)
    merged = c2f(g.concat([g.scale(high, 2, "nearest"), low]), 24)
    bins, classes = 4, 5
    flat = []
    for x in (merged, high):
        y = g.concat([g.conv(yolo_conv(g, x, 16, 3), 4 * bins), g.conv(yolo_conv(g, x, 16, 3), classes)])
        flat.append(g.reshape(y, -1, 4 * bins + classes, 64 if x == merged else 16, channels=4 * bins + classes))
    joined = g.node("Concat", flat, axis=2)
    boxes, scores = g.node("Split", [joined, g.sizes(4 * bins, classes)], outputs=2, axis=1)
    shares = g.node("Softmax", [g.transpose(g.reshape(boxes, -1, 4, bins, 80), 0, 2, 1, 3, channels=bins)], axis=1)
    distances = g.reshape(g.conv(shares, 1, bias=False, weights=g.constant(np.arange(bins).reshape(1, bins, 1, 1))), -1, 4, 80)
    near, far = g.node("Split", [distances, g.sizes(2, 2)], outputs=2, axis=1)
    grid = g.constant(np.stack([np.arange(80) % 8, np.arange(80) // 8]).reshape(1, 2, 80) + 0.5)
    near, far = g.node("Sub", [grid, near]), g.node("Add", [grid, far])
    centre = g.node("Div", [g.node("Add", [near, far]), g.constant(2.0)])
    place = g.node("Mul", [g.node("Concat", [centre, g.node("Sub", [far, near])], axis=1),
                           g.constant(np.repeat([4.0, 8.0], [64, 16]).reshape(1, 1, 80))])
    return g.model(g.node("Concat", [place, g.sigmoid(scores)], axis=1))


def ssd_lite(g):
    def separable(x, outputs):
        return g.conv(conv_norm(g, x, g.channels[x], 3, groups=g.channels[x], act=g.relu6), outputs)

    x = conv_norm(g, "input", 16, 3, 2, act=g.relu6)
    levels = [inverted_residual(g, x, 48, 24, stride=2, act=g.relu6)]
    levels.append(inverted_residual(g, levels[0], 48, 32, stride=2, act=g.relu6))
    outputs = []
    for count in (4, 5):
        flat = [g.reshape(g.transpose(separable(level, 6 * count), 0, 2, 3, 1), -1, cells * cells * 6, count)
                for level, cells in zip(levels, (8, 4))]
        outputs.append(g.node("Concat", flat, axis=1))
    return g.model(outputs[0], g.node("Softmax", [outputs[1]], axis=-1))


def detections(g):
    """What follows a network on the CPU: the boxes that stay, the best scores, the class of each pixel."""
    x = conv_norm(g, conv_norm(g, "input", 16, 3, 2, act=g.relu6), 24, 3, 2, act=g.relu6)
    boxes = g.reshape(g.transpose(g.conv(x, 4), 0, 2, 3, 1), -1, 64, 4, channels=64)
    scores = g.node("Softmax", [g.reshape(g.transpose(g.conv(x, 5), 0, 2, 3, 1), -1, 64, 5, channels=64)], axis=-1)
    kept = g.node("NonMaxSuppression", [boxes, g.transpose(scores, 0, 2, 1, channels=5), g.constant(10, np.int64),
                                        g.constant(0.5), g.constant(0.1)])
    best = g.node("TopK", [g.node("ReduceMax", [scores], axes=[2], keepdims=0), g.sizes(8)], outputs=2, axis=1)
    classes = g.node("ArgMax", [g.scale(g.conv(x, 3), 2, "linear")], axis=1)
    return g.model(kept, best[0], classes)


def yolo_v11(g):
    """Its stage of attention: each pixel looks at all others, in heads; positions come from a depthwise layer."""
    heads, key, value, pixels = 2, 4, 8, 64
    channels = heads * value
    x = yolo_conv(g, yolo_conv(g, "input", channels, 3, 2), channels, 3, 2)
    apart = g.reshape(conv_norm(g, x, heads * (2 * key + value)), -1, heads, 2 * key + value, pixels, channels=heads)
    q, k, v = g.node("Split", [apart, g.sizes(key, key, value)], outputs=3, axis=2)
    scores = g.node("MatMul", [g.transpose(q, 0, 1, 3, 2), k])
    shares = g.node("Softmax", [g.node("Mul", [scores, g.constant(key**-0.5)])], axis=-1)
    seen = g.reshape(g.node("MatMul", [v, g.transpose(shares, 0, 1, 3, 2)]), -1, channels, 8, 8, channels=channels)
    places = conv_norm(g, g.reshape(v, -1, channels, 8, 8, channels=channels), channels, 3, groups=channels)
    x = g.add(x, conv_norm(g, g.add(seen, places), channels))
    x = g.add(x, conv_norm(g, yolo_conv(g, x, 2 * channels), channels))
    return g.model(g.classify(x))


def vision_transformer(g):
    """Patches as tokens, with heads between tokens and features; the grid's own similarities beside them."""
    heads, size, tokens = 2, 8, 16
    features = heads * size
    x = g.transpose(g.reshape(g.conv("input", features, 8, 8, pad=0), -1, features, tokens), 0, 2, 1, channels=features)

    def normal(x):
        numbers = [g.constant(np.linspace(0.8, 1.2, features)), g.constant(np.linspace(-0.1, 0.1, features))]
        return g.node("LayerNormalization", [x, *numbers], axis=-1, epsilon=1e-6)

    for _ in range(2):
        y = normal(x)
        q, k, v = (g.transpose(g.reshape(g.matmul(y, features, features), -1, tokens, heads, size), 0, 2, *last, channels=heads)
                   for last in ((1, 3), (3, 1), (1, 3)))
        scores = g.node("Mul", [g.node("MatMul", [q, k]), g.constant(size**-0.5)])
        ones = g.node("ConstantOfShape", [g.sizes(1, 1, tokens, tokens)], value=numpy_helper.from_array(np.ones(1, np.float32)))
        mask = g.node("Cast", [g.node("Trilu", [ones], upper=0)], to=TensorProto.BOOL)
        shares = g.node("Softmax", [g.node("Where", [mask, scores, g.constant(-np.inf)])], axis=-1)
        seen = g.transpose(g.node("MatMul", [shares, v]), 0, 2, 1, 3, channels=tokens)
        x = g.add(x, g.matmul(g.reshape(seen, -1, tokens, features, channels=tokens), features, features))
        x = g.add(x, g.matmul(g.gelu(g.matmul(normal(x), 2 * features, features)), features, 2 * features))
    mixed = g.node("MatMul", [g.constant(g.random.standard_normal((3, tokens)) / 4), x], channels=3)
    return g.model(g.linear(g.flatten(mixed), 10, 3 * features))


def class_token_transformer(g):
    """Large patches, a token more that is the same for each image, and heads whose parts come before the batch: as timm."""
    heads, size, tokens = 2, 8, 5
    features = heads * size
    patches = g.conv("input", features, 16, 16, pad=0)
    x = g.transpose(g.reshape(patches, 0, features, -1, channels=tokens - 1), 0, 2, 1, channels=tokens - 1)
    wanted = g.node("Concat", [g.size_of(x, 0), g.sizes(-1, -1)], axis=0)
    ones = g.node("ConstantOfShape", [g.sizes(3)], value=numpy_helper.from_array(np.ones(1, np.int64)))
    open_axes = g.node("Equal", [wanted, g.node("Mul", [ones, g.constant(-1, np.int64)])])
    token = g.node("Expand", [g.constant(g.random.standard_normal((1, 1, features))), g.node("Where", [open_axes, ones, wanted])])
    x = g.add(g.node("Concat", [token, x], channels=tokens, axis=1),
              g.constant(0.1 * g.random.standard_normal((1, tokens, features))))
    for _ in range(2):
        numbers = [g.constant(np.linspace(0.8, 1.2, features)), g.constant(np.linspace(-0.1, 0.1, features))]
        y = g.node("LayerNormalization", [x, *numbers], axis=-1, epsilon=1e-6)
        y = g.reshape(g.matmul(y, 3 * features, features), -1, tokens, 3, heads, size, channels=tokens)
        parts = g.node("Split", [g.transpose(y, 2, 0, 3, 1, 4, channels=3), g.sizes(1, 1, 1)], outputs=3, axis=0)
        q, k, v = (g.node("Squeeze", [part, g.sizes(0)], channels=heads) for part in parts)
        scores = g.node("MatMul", [g.node("Mul", [q, g.constant(size**-0.25)]),
                                   g.node("Mul", [g.transpose(k, 0, 1, 3, 2), g.constant(size**-0.25)])])
        seen = g.transpose(g.node("MatMul", [g.node("Softmax", [scores], axis=-1), v]), 0, 2, 1, 3, channels=tokens)
        x = g.add(x, g.matmul(g.reshape(seen, -1, tokens, features, channels=tokens), features, features))
        x = g.add(x, g.matmul(g.gelu(g.matmul(x, 2 * features, features)), features, 2 * features))
    return g.model(g.linear(g.node("Gather", [x, g.constant(0, np.int64)], axis=1), 10, features))


def center_net(g):
    """Boxes by their centres: peaks of a heat map are what the largest of each neighbourhood leaves as it is."""
    x = conv_norm(g, conv_norm(g, "input", 16, 3, 2, act=g.relu), 24, 3, 2, act=g.relu)
    x = conv_norm(g, g.transposed(x, 16, 4, 2, 1), 16, act=g.relu)
    heat = g.sigmoid(g.conv(conv_norm(g, x, 16, 3, act=g.relu), 5))
    peaks = g.node("Equal", [heat, g.pool(heat, 3, 1, 1)])
    strong = g.node("Greater", [heat, g.constant(0.45)])
    found = g.multiply(heat, g.node("Cast", [g.node("And", [peaks, strong])], to=TensorProto.FLOAT))
    sizes, offsets = g.conv(conv_norm(g, x, 16, 3, act=g.relu), 2), g.conv(conv_norm(g, x, 16, 3, act=g.relu), 2)
    # Where one class is above the mean of its map, its offsets; elsewhere what the size is, at most.
    above = g.node("GreaterOrEqual", [offsets, g.mean(offsets)])
    none = g.node("Not", [g.node("Or", [above, g.node("LessOrEqual", [sizes, g.constant(np.zeros((2, 1, 1)))])])])
    places = g.node("Where", [above, offsets, g.node("Min", [sizes, offsets])])
    return g.model(found, g.concat([g.node("Where", [none, g.constant(-1.0), places]), sizes]))


def quantized(g):
    """As the quantizer of ONNX Runtime writes it: activations in uint8, weights in int8 with a scale for each output."""
    def pair(x, scale, zero, kind, **attributes):
        numbers = [g.constant(scale), g.constant(zero, kind)]
        integers = g.node("QuantizeLinear", [x, *numbers], **attributes)
        return g.node("DequantizeLinear", [integers, *numbers], **attributes)

    def conv(x, outputs, kernel=1, stride=1, groups=1):
        inputs = g.channels[x] // groups
        values = g.random.integers(-127, 128, (outputs, inputs, kernel, kernel))
        values[g.random.random(values.shape) < (ZEROS if inputs > 1 else 0)] = 0
        scales = g.random.uniform(0.5, 1.5, outputs) / (127 * np.sqrt(inputs * kernel * kernel / 4))
        weights = g.node("DequantizeLinear", [g.constant(values, np.int8), g.constant(scales),
                                              g.constant(np.zeros(outputs), np.int8)], axis=0)
        bias = g.node("DequantizeLinear", [g.constant(g.random.integers(-100, 100, outputs), np.int32),
                                           g.constant(scales * 0.02), g.constant(np.zeros(outputs), np.int32)], axis=0)
        return g.node("Conv", [x, weights, bias], channels=outputs, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                      group=groups, pads=[kernel // 2] * 4)

    x = pair("input", 0.03, 128, np.uint8)
    x = pair(conv(x, 16, 3, 2), 0.02, 0, np.uint8)  # cuts off below zero: the ReLU before it has been left out
    y = pair(g.relu(conv(x, 16, 3, groups=16)), 0.02, 0, np.uint8)
    y = pair(conv(y, 16), 0.02, 0, np.int8)
    x = pair(g.relu(g.add(x, y)), 0.03, -128, np.int8)
    return g.model(conv(x, 12, 3))


FAMILIES = {make.__name__: make for make in (
    resnext, densenet, mobilenet_v2, mobilenet_v3, mnasnet, shufflenet_v2, efficientnet, regnet, inception_v3, convnext,
    ghostnet, res2net, nf_resnet, cspnet, sknet, resnest, fcn, deeplab_v3, lraspp, yolo_v5, yolo_v8, ssd_lite,
    detections, yolo_v11, vision_transformer, class_token_transformer, center_net, quantized)}
FAMILIES |= {"unet_nearest": unet_nearest, "unet_linear": unet_linear, "unet_transposed": unet_transposed,
             "unet_overlapping": unet_overlapping, "unet_shuffled": unet_shuffled}

# Those that burin refuses, and what the error says of the reason. Where it says how to cut the model, that must do.
REFUSED = {"detections": "burin does not know 3 of its operators: ArgMax"}

# Errors against ONNX Runtime that are larger than those of float32: a value at the edge of a step may become either.
TOLERANCES = {"quantized": 0.02}

# Other ways to read one, beside which ONNX Runtime has nothing: options of `burin compile`.
ALSO_READ_WITH = {"quantized": [["--quantized", "drop"]]}


def write(folder, names):
    """Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        paths.append(folder / f"{name}.onnx")
        onnx.save(FAMILIES[name](Graph(name)), str(paths[-1]))
    return paths


def main():
    parser = argparse.ArgumentParser(description="Writes small networks of the families that users bring.")
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of these families (default: all)")
    parser.add_argument("--list", action="store_true", help="print their names")
    options = parser.parse_args()
    if options.list:
        print("\n".join(FAMILIES))
        return 0
    unknown = [name for name in options.names if name not in FAMILIES]
    if options.folder is None or unknown:
        parser.error(f"there is no family {', '.join(unknown)}" if unknown else "name a folder")
    for path in write(options.folder, options.names or FAMILIES):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
