#!/usr/bin/env python3
"""Writes ten small seeded random ONNX graphs which together use every operator that burin imports.

    random_graphs.py FOLDER [--seed N]

Each graph is a body of feature maps, grown operator by operator, and a head. The plan of the ten (`PLANS`) says what
each must have, so that every seed covers everything: operators, heads, opsets from 7 to 17 with their different forms,
sparse initializers, external data, nodes without names, several inputs and outputs, fixed and symbolic batches.
Attributes, sizes, order and weights are random. The same seed gives the same bytes.
"""
import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 8
# Bodies draw from these; the names are those of the methods that add them.
BODY = ["conv", "depthwise", "batch_norm", "relu", "clip", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish",
        "silu", "residual", "squeeze_excite", "max_pool", "average_pool", "concat", "lrn", "pad", "dropout", "identity",
        "there_and_back", "channel_softmax", "split", "shuffle", "gather", "slice", "resize", "conv_transpose", "depth_and_space",
        "repeating_pad", "repeat", "mish", "gelu", "units", "prelu", "channel_norm", "instance_norm", "spelled_softmax",
        "by_column"]
HEADS = ["pooled_gemm", "squeezed_matmul", "flat_gemm", "reshaped_matmul"]


@dataclass(frozen=True)
class Plan:
    opset: int
    head: str
    fixed_batch: int = 0  # 0: symbolic
    sparse: bool = False
    external: bool = False
    unnamed: bool = False
    second_input: bool = False
    second_output: bool = False


PLANS = [
    Plan(7, "pooled_gemm", fixed_batch=1), Plan(9, "reshaped_matmul", unnamed=True), Plan(10, "flat_gemm"),
    Plan(11, "squeezed_matmul", sparse=True), Plan(12, "pooled_gemm", second_output=True),
    Plan(13, "squeezed_matmul", external=True), Plan(13, "flat_gemm", second_input=True, fixed_batch=1),
    Plan(15, "reshaped_matmul", sparse=True), Plan(16, "squeezed_matmul", unnamed=True, second_output=True),
    Plan(17, "flat_gemm", second_input=True),
]
OPERATORS_OF_A_BODY = 14  # three graphs of the newest opsets use all of BODY
LARGEST = 40  # rows or columns that are made larger still


@dataclass(frozen=True)
class Maps:
    name: str
    channels: int
    height: int
    width: int


class RandomGraph:
    def __init__(self, plan, random):
        self.plan, self.random = plan, random
        self.nodes, self.weights, self.sparse_weights = [], [], []

    # --- pieces -------------------------------------------------------------------------------------------------------

    def node(self, kind, inputs, **attributes):
        output = f"t{len(self.nodes)}"
        name = "" if self.plan.unnamed else f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def weight(self, values, sparse=False):
        name = f"w{len(self.weights) + len(self.sparse_weights)}"
        if sparse and self.plan.sparse:
            flat = values.reshape(-1)
            indices = np.flatnonzero(flat)
            self.sparse_weights.append(helper.make_sparse_tensor(
                numpy_helper.from_array(flat[indices], name), numpy_helper.from_array(indices.astype(np.int64)),
                values.shape))
        else:
            self.weights.append(numpy_helper.from_array(values, name))
        return name

    def scalar(self, value):
        """Half of them initializers, half Constant nodes."""
        values = np.array(value, dtype=np.float32)
        if self.random.random() < 0.5:
            return self.weight(values)
        return self.node("Constant", [], value=numpy_helper.from_array(values))

    def choice(self, options):
        return options[self.random.integers(len(options))]

    def normal(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape)).astype(np.float32)

    def pruned(self, *shape):
        """Of He's standard deviation for what is left; now and then a whole filter is empty."""
        sparsity = self.choice([0.5, 0.8, 0.95])
        values = self.normal(*shape) * (self.random.random(shape) >= sparsity)
        if self.random.random() < 0.3:
            values[self.random.integers(shape[0])] = 0
        fan_in = max(1.0, np.count_nonzero(values) / shape[0])
        return (values * np.sqrt(2 / fan_in)).astype(np.float32)

    def convolve(self, maps, outputs, kernel, *, stride=1, groups=1, dilation=1, pads=None, bias=None):
        """Padded to keep its size at stride 1 where `pads` is not given."""
        span = dilation * (kernel - 1)
        pads = pads or [span // 2, span // 2, span - span // 2, span - span // 2]
        inputs = [maps.name, self.weight(self.pruned(outputs, maps.channels // groups, kernel, kernel), sparse=True)]
        if bias if bias is not None else self.random.random() < 0.6:
            inputs.append(self.weight(self.normal(outputs, scale=0.1)))
        name = self.node("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=groups,
                         dilations=[dilation] * 2, pads=pads)
        height = (maps.height + pads[0] + pads[2] - span - 1) // stride + 1
        width = (maps.width + pads[1] + pads[3] - span - 1) // stride + 1
        return Maps(name, outputs, height, width)

    def same(self, maps, kind, *inputs, **attributes):
        return Maps(self.node(kind, [maps.name, *inputs], **attributes), maps.channels, maps.height, maps.width)

    # --- operators of the body ----------------------------------------------------------------------------------------

    def conv(self, maps):
        stride = self.choice([1, 1, 2]) if min(maps.height, maps.width) >= 7 else 1
        if self.random.random() < 0.25:
            values = self.pruned(12, maps.channels, 3, 3)
            name = self.node("Conv", [maps.name, self.weight(values)], auto_pad="SAME_UPPER", strides=[stride] * 2,
                             kernel_shape=[3, 3])
            return Maps(name, 12, -(-maps.height // stride), -(-maps.width // stride))
        groups = self.choice([group for group in (1, 1, 2, 4) if maps.channels % group == 0])
        return self.convolve(maps, self.choice([8, 12, 16]), self.choice([1, 3, 3, 5]), stride=stride, groups=groups,
                             dilation=self.choice([1, 1, 2]))

    def depthwise(self, maps):
        return self.convolve(maps, maps.channels, 3, groups=maps.channels, pads=[1, 0, 1, 2])

    def batch_norm(self, maps):
        maps = self.convolve(maps, 8, 3, bias=False)
        count = maps.channels
        parts = [self.random.uniform(0.5, 1.5, count), self.random.normal(0, 0.2, count),
                 self.random.normal(0, 0.2, count), self.random.uniform(0.5, 1.5, count)]
        return self.same(maps, "BatchNormalization", *(self.weight(part.astype(np.float32)) for part in parts),
                         epsilon=1e-3)

    def relu(self, maps):
        return self.same(maps, "Relu")

    def clip(self, maps):
        low, high = self.choice([(0.0, 6.0), (-1.0, 1.0), (0.0, None)])
        if self.plan.opset < 11:
            return self.same(maps, "Clip", min=low, **({} if high is None else {"max": high}))
        return self.same(maps, "Clip", self.scalar(low), *([] if high is None else [self.scalar(high)]))

    def leaky_relu(self, maps):
        return self.same(maps, "LeakyRelu", alpha=self.choice([0.01, 0.1, 0.2]))

    def sigmoid(self, maps):
        return self.same(maps, "Sigmoid")

    def hard_sigmoid(self, maps):
        return self.same(maps, "HardSigmoid", **self.choice([{}, {"alpha": 1 / 6, "beta": 0.5}]))

    def hard_swish(self, maps):
        if self.plan.opset >= 14:
            return self.same(maps, "HardSwish")
        return self.same(maps, "Mul", self.same(maps, "HardSigmoid", alpha=1 / 6, beta=0.5).name)

    def silu(self, maps):
        return self.same(maps, "Mul", self.same(maps, "Sigmoid").name)

    def residual(self, maps):
        inner = self.convolve(maps, 8, 1)
        branch = self.convolve(self.relu(inner), maps.channels, 3)
        inputs = [branch.name, maps.name] if self.random.random() < 0.5 else [maps.name, branch.name]
        return self.relu(Maps(self.node("Add", inputs), maps.channels, maps.height, maps.width))

    def squeeze_excite(self, maps):
        pooled = Maps(self.node("GlobalAveragePool", [maps.name]), maps.channels, 1, 1)
        inner = self.relu(self.convolve(pooled, 4, 1, bias=True))
        gate = self.same(self.convolve(inner, maps.channels, 1, bias=True), self.choice(["Sigmoid", "HardSigmoid"]))
        return self.same(maps, "Mul", gate.name)

    def _pooled(self, kind, maps, kernel, stride, pad, **attributes):
        name = self.node(kind, [maps.name], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                         **attributes)
        up = stride - 1 if attributes.get("ceil_mode") else 0
        height, width = ((extent + 2 * pad - kernel + up) // stride + 1 for extent in (maps.height, maps.width))
        return Maps(name, maps.channels, height, width)

    def max_pool(self, maps):
        stride = 2 if min(maps.height, maps.width) >= 7 else 1
        if stride == 2 and self.plan.opset >= 10 and self.random.random() < 0.5:
            return self._pooled("MaxPool", maps, 3, stride, 0, ceil_mode=1)
        return self._pooled("MaxPool", maps, 3, stride, 1)

    def average_pool(self, maps):
        return self._pooled("AveragePool", maps, 3, 1, 1, count_include_pad=int(self.random.integers(2)))

    def concat(self, maps):
        branches = [self.convolve(maps, 4, 1), self.relu(self.convolve(maps, 8, 3)),
                    self._pooled("MaxPool", maps, 3, 1, 1)]
        branches = [branches[at] for at in self.random.permutation(3)]
        name = self.node("Concat", [branch.name for branch in branches], axis=1)
        return Maps(name, sum(branch.channels for branch in branches), maps.height, maps.width)

    def lrn(self, maps):
        return self.same(maps, "LRN", size=self.choice([3, 5]), alpha=0.05, beta=0.75, bias=1.0)

    def pad(self, maps):
        pads = [0, 0, 1, 0, 0, 0, 1, 2]
        value = self.choice([0.0, 0.5])
        if self.plan.opset < 11:
            name = self.node("Pad", [maps.name], pads=pads, value=value)
        else:
            name = self.node("Pad", [maps.name, self.weight(np.array(pads, dtype=np.int64)), self.scalar(value)])
        return Maps(name, maps.channels, maps.height + 2, maps.width + 2)

    def dropout(self, maps):
        if self.plan.opset < 12:
            return self.same(maps, "Dropout", ratio=0.5)
        return self.same(maps, "Dropout", self.scalar(0.5))

    def identity(self, maps):
        return self.same(maps, "Identity")

    def there_and_back(self, maps):
        """To NHWC, something element-wise, and back."""
        there = self.same(maps, "Transpose", perm=[0, 2, 3, 1])
        return self.same(self.relu(there), "Transpose", perm=[0, 3, 1, 2])

    def channel_softmax(self, maps):
        # Before opset 13 Softmax of more than two axes means another thing: all that follows the axis, flattened.
        return self.same(maps, "Softmax", axis=1) if self.plan.opset >= 13 else self.sigmoid(maps)

    def integers(self, values):
        return self.weight(np.array(values, dtype=np.int64))

    def split(self, maps):
        """Parts of the channels, of which some are computed on, side by side again in another order."""
        sizes = self.choice([[maps.channels // 2, maps.channels - maps.channels // 2],
                             [1, maps.channels - 3, 2]])
        outputs = [f"t{len(self.nodes)}.{part}" for part in range(len(sizes))]
        attributes = {"split": sizes} if self.plan.opset < 13 else {}
        inputs = [maps.name] + ([self.integers(sizes)] if self.plan.opset >= 13 else [])
        name = "" if self.plan.unnamed else f"split{len(self.nodes)}"
        self.nodes.append(helper.make_node("Split", inputs, outputs, name=name, axis=1, **attributes))
        parts = [Maps(output, size, maps.height, maps.width) for output, size in zip(outputs, sizes)]
        parts[0] = self.relu(self.convolve(parts[0], parts[0].channels, 3))
        name = self.node("Concat", [part.name for part in reversed(parts)], axis=1)
        return Maps(name, maps.channels, maps.height, maps.width)

    def shuffle(self, maps):
        """Channels of two groups in turn."""
        maps = self.convolve(maps, 8, 1)
        there = self.node("Reshape", [maps.name, self.integers([0, 2, 4, maps.height, maps.width])])
        turned = self.node("Transpose", [there], perm=[0, 2, 1, 3, 4])
        back = self.node("Reshape", [turned, self.integers([0, 8, maps.height, maps.width])])
        return Maps(back, 8, maps.height, maps.width)

    def gather(self, maps):
        """An axis in another order."""
        axis = int(self.random.integers(1, 4))
        extent = (maps.channels, maps.height, maps.width)[axis - 1]
        order = self.choice([self.random.permutation(extent), np.arange(extent)[::-1]])
        return self.same(maps, "Gather", self.integers(order), axis=axis)

    def slice(self, maps):
        """Every second row, some columns from the end, and all channels but the first."""
        if self.plan.opset < 10:
            name = self.node("Slice", [maps.name], axes=[1, 3], starts=[1, -6], ends=[maps.channels, 1 << 30])
            return Maps(name, maps.channels - 1, maps.height, min(6, maps.width))
        step, rows = self.choice([(2, -(-maps.height // 2)), (-1, maps.height)])
        start, end = (0, 1 << 30) if step > 0 else (-1, -(1 << 30))
        name = self.node("Slice", [maps.name, self.integers([start, 1, -6]), self.integers([end, maps.channels, 1 << 30]),
                                   self.integers([2, 1, 3]), self.integers([step, 1, 1])])
        return Maps(name, maps.channels - 1, rows, min(6, maps.width))

    def resize(self, maps):
        if max(maps.height, maps.width) > LARGEST:
            return self.max_pool(maps)
        opset = self.plan.opset
        scales = np.array([1, 1, 2, 2], dtype=np.float32)
        if opset < 10:  # of ONNX Runtime, Upsample
            inputs = [self.weight(scales)] if opset == 9 else []
            attributes = {"scales": [1.0, 1.0, 2.0, 2.0]} if opset < 9 else {}
            name = self.node("Upsample", [maps.name, *inputs], mode=self.choice(["nearest", "linear"]), **attributes)
            return Maps(name, maps.channels, 2 * maps.height, 2 * maps.width)
        if opset == 10:
            name = self.node("Resize", [maps.name, self.weight(scales)], mode=self.choice(["nearest", "linear"]))
            return Maps(name, maps.channels, 2 * maps.height, 2 * maps.width)
        height, width = (int(size) for size in self.random.integers(5, 24, 2))
        roi = self.weight(np.zeros(0, dtype=np.float32))
        none = self.weight(np.zeros(0, dtype=np.float32))
        attributes = {"mode": self.choice(["nearest", "linear", "cubic"]),
                      "coordinate_transformation_mode": self.choice(["half_pixel", "pytorch_half_pixel", "asymmetric",
                                                                     "align_corners"])}
        if attributes["mode"] == "cubic":
            attributes["cubic_coeff_a"] = self.choice([-0.5, -0.75])
        batch = self.node("Slice", [self.node("Shape", [maps.name]), *(self.integers([at]) for at in (0, 1, 0))])
        sizes = self.node("Concat", [batch, self.integers([maps.channels, height, width])], axis=0)
        return Maps(self.node("Resize", [maps.name, roi, none, sizes], **attributes), maps.channels, height, width)

    def conv_transpose(self, maps):
        if max(maps.height, maps.width) > LARGEST:
            return self.average_pool(maps)
        kernel, pad, more = self.choice([(2, 0, 0), (3, 1, 1), (4, 1, 0), (3, 0, 0), (5, 2, 1)])
        groups = self.choice([1, maps.channels])
        outputs = maps.channels if groups > 1 else 8
        values = self.pruned(outputs, maps.channels // groups, kernel, kernel)
        values = np.ascontiguousarray(values.reshape(groups, outputs // groups, maps.channels // groups, kernel, kernel)
                                      .swapaxes(1, 2).reshape(maps.channels, outputs // groups, kernel, kernel))
        inputs = [maps.name, self.weight(values), self.weight(self.normal(outputs, scale=0.1))]
        name = self.node("ConvTranspose", inputs, kernel_shape=[kernel] * 2, strides=[2, 2], group=groups,
                         pads=[pad] * 4, output_padding=[more] * 2)
        height, width = (2 * (extent - 1) + more + kernel - 2 * pad for extent in (maps.height, maps.width))
        return self.relu(Maps(name, outputs, height, width))

    def depth_and_space(self, maps):
        """Pixels of 2x2 blocks as channels and back, where the rows and columns are even."""
        maps = self.convolve(maps, 8, 1)
        mode = {"mode": self.choice(["DCR", "CRD"])} if self.plan.opset >= 11 else {}
        space = Maps(self.node("DepthToSpace", [maps.name], blocksize=2, **mode), 2, 2 * maps.height, 2 * maps.width)
        depth = self.node("SpaceToDepth", [self.relu(space).name], blocksize=2)
        return Maps(depth, 8, maps.height, maps.width)

    def repeating_pad(self, maps):
        pads, mode = [0, 0, 1, 2, 0, 0, 2, 1], self.choice(["reflect", "edge"])
        if self.plan.opset < 11:
            name = self.node("Pad", [maps.name], pads=pads, mode=mode)
        else:
            name = self.node("Pad", [maps.name, self.integers(pads)], mode=mode)
        return Maps(name, maps.channels, maps.height + 3, maps.width + 3)

    def repeat(self, maps):
        """Means of channels as large as the image again, added; or two columns in place of each."""
        mean = Maps(self.node("GlobalAveragePool", [maps.name]), maps.channels, 1, 1)
        if self.plan.opset < 8:
            return self.same(maps, "Add", mean.name)
        whole = self.node("Expand", [mean.name, self.integers([1, 1, maps.height, maps.width])])
        maps = self.same(maps, "Add", whole)
        if max(maps.height, maps.width) > LARGEST:
            return maps
        name = self.node("Tile", [maps.name, self.integers([1, 1, 1, 2])])
        return Maps(name, maps.channels, maps.height, 2 * maps.width)

    def mish(self, maps):
        return self.same(maps, "Mul", self.same(self.same(maps, "Softplus"), "Tanh").name)

    def gelu(self, maps):
        """As exporters write it before opset 20; Erf is there since 9."""
        if self.plan.opset < 9:
            return self.sigmoid(maps)
        inner = self.same(self.same(maps, "Div", self.scalar(np.sqrt(2))), "Erf")
        product = self.same(maps, "Mul", self.same(inner, "Add", self.scalar(1)).name)
        return self.same(product, "Mul", self.scalar(0.5))

    def units(self, maps):
        return self.same(self.same(maps, "Elu", alpha=0.5), "Selu")

    def prelu(self, maps):
        return self.same(maps, "PRelu", self.weight(self.normal(maps.channels, 1, 1, scale=0.3)))

    def channel_norm(self, maps):
        """The deviation from the mean over channels, as exporters write it before opset 17."""
        centered = self.same(maps, "Sub", self.node("ReduceMean", [maps.name], axes=[1]))
        variance = self.node("ReduceMean", [self.same(centered, "Pow", self.scalar(2)).name], axes=[1])
        return self.same(centered, "Div", self.node("Sqrt", [self.node("Add", [variance, self.scalar(0.01)])]))

    def instance_norm(self, maps):
        numbers = [self.weight(self.normal(maps.channels)) for _ in range(2)]
        return self.same(maps, "InstanceNormalization", *numbers, epsilon=0.01)

    def spelled_softmax(self, maps):
        """Over the columns."""
        powers = self.same(self.same(maps, "Sub", self.node("ReduceMax", [maps.name], axes=[3])), "Exp")
        if self.plan.opset < 13:
            total = self.node("ReduceSum", [powers.name], axes=[3])
        else:
            total = self.node("ReduceSum", [powers.name, self.weight(np.array([3], dtype=np.int64))])
        return self.same(powers, "Div", total)

    def by_column(self, maps):
        """With constants that are the same for all rows and channels."""
        return self.same(maps, self.choice(["Add", "Mul", "Sub"]), self.weight(self.normal(maps.width)))

    # --- heads: from maps to the name of a matrix, and its width ------------------------------------------------------

    def gemm(self, name, features, outputs):
        transposed = int(self.random.integers(2))
        values = self.pruned(outputs, features)
        values = values if transposed else np.ascontiguousarray(values.T)
        return self.node("Gemm", [name, self.weight(values), self.weight(self.normal(outputs, scale=0.1))],
                         transB=transposed)

    def matmul(self, name, features, outputs):
        """The weights, transposed by a node half of the time, and a bias added by another."""
        values = self.pruned(outputs, features)
        if self.random.random() < 0.5:
            weights = self.node("Transpose", [self.weight(values)], perm=[1, 0])
        else:
            weights = self.weight(np.ascontiguousarray(values.T))
        product = self.node("MatMul", [name, weights])
        return self.node("Add", [product, self.weight(self.normal(outputs, scale=0.1))])

    def pooled_gemm(self, maps):
        flat = self.node("Flatten", [self.node("GlobalAveragePool", [maps.name])])
        return self.gemm(flat, maps.channels, 10), 10

    def squeezed_matmul(self, maps):
        pooled = self.node("GlobalAveragePool", [maps.name])
        if self.plan.opset < 13:
            flat = self.node("Squeeze", [pooled], axes=[2, 3])
        else:
            flat = self.node("Squeeze", [pooled, self.weight(np.array([2, 3], dtype=np.int64))])
        return self.matmul(flat, maps.channels, 6), 6

    def flat_gemm(self, maps):
        features = maps.channels * maps.height * maps.width
        hidden = self.node("Relu", [self.gemm(self.node("Flatten", [maps.name], axis=1), features, 24)])
        return self.gemm(hidden, 24, 10), 10

    def reshaped_matmul(self, maps):
        features = maps.channels * maps.height * maps.width
        shape = self.choice([[0, -1], [-1, features]])
        flat = self.node("Reshape", [maps.name, self.weight(np.array(shape, dtype=np.int64))])
        return self.matmul(flat, features, 8), 8

    # --- the whole ----------------------------------------------------------------------------------------------------

    def grow(self, body):
        batch = self.plan.fixed_batch or "N"
        maps = Maps("image", 3, *(int(size) for size in self.random.integers(11, 18, 2)))
        inputs, outputs = [maps], []
        if self.plan.second_input:
            second = Maps("second", 2, maps.height, maps.width)
            inputs.append(second)
            maps = Maps(self.node("Concat", [maps.name, second.name], axis=1), 5, maps.height, maps.width)
        maps = self.convolve(maps, 8, 3, bias=True)
        for at, operator in enumerate(body):
            maps = getattr(self, operator)(maps)
            if self.plan.second_output and at == len(body) // 2:
                outputs.append(helper.make_tensor_value_info(maps.name, TensorProto.FLOAT,
                                                             [batch, maps.channels, maps.height, maps.width]))
        name, width = getattr(self, self.plan.head)(maps)
        name = self.node("Softmax", [name], axis=1)
        outputs.insert(0, helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, width]))
        graph = helper.make_graph(
            self.nodes, "random",
            [helper.make_tensor_value_info(m.name, TensorProto.FLOAT, [batch, m.channels, m.height, m.width])
             for m in inputs], outputs, self.weights, sparse_initializer=self.sparse_weights)
        return helper.make_model(graph, producer_name="burin test/networks/random_graphs.py", ir_version=IR_VERSION,
                                 opset_imports=[helper.make_opsetid("", self.plan.opset)])


def make_graphs(seed):
    """The ten models, in the order of PLANS. Bodies take turns in one shuffled list, so that each operator is used."""
    random = np.random.default_rng([seed, len(PLANS)])
    order = [BODY[at] for at in random.permutation(len(BODY))]
    models = []
    for index, plan in enumerate(PLANS):
        body = [order[(index * OPERATORS_OF_A_BODY + step) % len(order)] for step in range(OPERATORS_OF_A_BODY)]
        body = [body[at] for at in random.permutation(len(body))]
        if plan.opset < 10:
            body.append("resize")  # which is Upsample there alone
        models.append(RandomGraph(plan, np.random.default_rng([seed, index])).grow(body))
    return models


def write_graphs(folder, seed):
    """Writes random_0.onnx to random_9.onnx; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index, (plan, model) in enumerate(zip(PLANS, make_graphs(seed))):
        path = folder / f"random_{index}.onnx"
        data = folder / f"{path.name}.data"
        data.unlink(missing_ok=True)  # onnx would append
        onnx.save_model(model, str(path), save_as_external_data=plan.external, location=data.name, size_threshold=256)
        paths.append(path)
    return paths


def main():
    parser = argparse.ArgumentParser(description="Writes ten small random ONNX graphs that use every operator.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default 1")
    options = parser.parse_args()
    for plan, path in zip(PLANS, write_graphs(options.folder, options.seed)):
        nodes = onnx.load(str(path), load_external_data=False).graph.node
        print(f"{path}: opset {plan.opset}, {len(nodes)} nodes: {', '.join(sorted({node.op_type for node in nodes}))}")


if __name__ == "__main__":
    main()
