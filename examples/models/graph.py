"""From a network's rows (networks.py) to an ONNX graph with its weights.

The batch is symbolic ("N"). While rows become nodes, the builder keeps an estimate of the root mean square of every
tensor and scales seeded weights by it (He et al. 2015): activations keep the range of the inputs through the network,
and the last layer's outputs, before a softmax, come out at a few units.
"""
import math
from dataclasses import dataclass, replace
from functools import singledispatchmethod

import numpy as np
from onnx import TensorProto, helper

import networks

OPSET = 13
IR_VERSION = 8
_LOGITS_RMS = 3.0
_BIAS_SHARE = 0.1  # of the root mean square of what the bias is added to
_BATCH_NORM_EPSILON = 1e-5
_AVERAGE_SHRINKS = 0.65  # root mean square of a mean of activations, relative to theirs


class GraphError(Exception):
    pass


@dataclass(frozen=True)
class Tensor:
    name: str
    channels: int
    height: int  # 0: flat
    width: int
    rms: float
    positive: bool = False  # hardly any value is negative, so that an activation leaves the sum of squares as it is

    @property
    def features(self):
        return self.channels * (self.height * self.width if self.height else 1)


def _rms(values):
    return math.sqrt(float(np.mean(np.square(values, dtype=np.float64))))


def _pooled(extent, row):
    steps = (extent + 2 * row.pad - row.kernel) / row.stride
    size = (math.ceil(steps) if row.ceil else math.floor(steps)) + 1
    # A window must begin in the image or before it.
    return size - 1 if row.ceil and (size - 1) * row.stride >= extent + row.pad else size


class GraphBuilder:
    """Feed it rows with apply(); it then has nodes, weights (name to array, in order) and sparsity (layer to the share
    of zeros asked for)."""

    def __init__(self, network, weights, sparsity, *, image, width=1.0, classes=None, batch_norm=True):
        """`sparsity(row, first)` says how much of a layer shall be zero. Without `batch_norm` convolutions have biases
        instead: that is how networks come whose normalization was folded."""
        self._source, self._sparsity = weights, sparsity
        self._width, self._classes, self._batch_norm = width, classes, batch_norm
        self._rms = network.input_std
        self._poolings = 0
        self.nodes, self.weights, self.sparsity, self.real_layers = [], {}, {}, []
        self.input = self.output = Tensor("input", network.channels, image, image, network.input_std)

    def apply(self, rows):
        for row in rows:
            self.output = self._apply(row, self.output)

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def _weight(self, name, values):
        self.weights[name] = values
        return name

    def _outputs(self, row):
        """A layer's output channels: the classes asked for, else the row's by the width, in steps of eight."""
        if row.classes:
            return self._classes or row.outputs
        return row.outputs if self._width == 1.0 else max(8, round(row.outputs * self._width / 8) * 8)

    def _pool_name(self):
        self._poolings += 1
        return f"pool{self._poolings}"

    def _weighted(self, row, shape, rms_in):
        """The layer's weights, and the root mean square of what they give before bias, normalization and activation."""
        values = self._source.real(row.name, "weight", shape)
        if values is not None:
            self.real_layers.append(row.name)
            asked = float(np.mean(values == 0))
        else:
            asked = self._sparsity(row, not self.sparsity)
            target = _LOGITS_RMS if row.classes else self._rms * (math.sqrt(2) if row.relu else 1)
            if (real_bias := self._source.real(row.name, "bias", shape[:1])) is not None:
                target = _rms(real_bias)
            values = self._source.pruned(row.name, shape, asked, target / rms_in)
        self.sparsity[row.name] = asked
        self._weight(f"{row.name}.weight", values)
        return values, rms_in * math.sqrt(float(np.vdot(values, values)) / shape[0])

    def _biased(self, row, count, rms):
        """The layer's biases, and the root mean square of the sums. Real biases tell it better than real weights: where
        a normalization was folded, channels that are always zero hold weights of any size."""
        values = self._source.real(row.name, "bias", (count,))
        if values is None:
            values = self._source.bias(row.name, count, _BIAS_SHARE * rms)
            rms = math.hypot(rms, _rms(values))
        else:
            rms = _rms(values)
        return self._weight(f"{row.name}.bias", values), rms

    def _activated(self, tensor, relu):
        if not relu:
            return tensor
        rms = tensor.rms if tensor.positive else tensor.rms / math.sqrt(2)
        return replace(tensor, name=self._node("Relu", [tensor.name], f"{tensor.name}.relu"), rms=rms, positive=True)

    def _normalized(self, row, tensor, weights, rms_in):
        """Statistics as training would have left them: near what each channel's weights make of their inputs."""
        random = self._source.random(row.name, "batch_norm")
        count = tensor.channels
        variance = rms_in**2 * np.sum(np.square(weights.reshape(count, -1), dtype=np.float64), axis=1)
        mean = random.normal(0, 0.1, count) * np.sqrt(variance)
        variance *= random.uniform(0.8, 1.25, count)
        gamma = row.gamma * random.uniform(0.6, 1.4, count)
        beta = row.gamma * random.normal(0, 0.2, count)
        names = [self._weight(f"{row.name}.bn.{part}", values.astype(np.float32)) for part, values in
                 (("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance))]
        name = self._node("BatchNormalization", [tensor.name, *names], f"{row.name}.bn", epsilon=_BATCH_NORM_EPSILON)
        return replace(tensor, name=name, rms=math.sqrt(float(np.mean(gamma**2 + beta**2))))

    # --- rows ---------------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _apply(self, row, tensor):
        raise TypeError(f"no rule for {row}")

    @_apply.register
    def _(self, row: networks.Conv, tensor):
        depthwise = row.groups == networks.DEPTHWISE
        groups = tensor.channels if depthwise else row.groups
        outputs = tensor.channels if depthwise else self._outputs(row)
        height, width = ((extent + 2 * row.pad - row.kernel) // row.stride + 1
                         for extent in (tensor.height, tensor.width))
        if min(height, width) < 1:
            raise GraphError(f"the image is too small: nothing would be left of it in layer {row.name}")
        shape = (outputs, tensor.channels // groups, row.kernel, row.kernel)
        weights, rms = self._weighted(row, shape, tensor.rms)
        inputs = [tensor.name, f"{row.name}.weight"]
        normalize = row.batch_norm and self._batch_norm
        if not normalize:
            bias, rms = self._biased(row, outputs, rms)
            inputs.append(bias)
        name = self._node("Conv", inputs, row.name, kernel_shape=[row.kernel] * 2, strides=[row.stride] * 2,
                          pads=[row.pad] * 4, group=groups)
        output = Tensor(name, outputs, height, width, rms)
        if normalize:
            output = self._normalized(row, output, weights, tensor.rms)
        return self._activated(output, row.relu)

    @_apply.register
    def _(self, row: networks.FullyConnected, tensor):
        outputs = self._outputs(row)
        _, rms = self._weighted(row, (outputs, tensor.features), tensor.rms)
        bias, rms = self._biased(row, outputs, rms)
        name = self._node("Gemm", [tensor.name, f"{row.name}.weight", bias], row.name, transB=1)
        return self._activated(Tensor(name, outputs, 0, 0, rms), row.relu)

    @_apply.register
    def _(self, row: networks.MaxPool, tensor):
        name = self._pool_name()
        height, width = (_pooled(extent, row) for extent in (tensor.height, tensor.width))
        if min(height, width) < 1:
            raise GraphError(f"the image is too small: nothing would be left of it in {name}")
        attributes = {"ceil_mode": 1} if row.ceil else {}
        self._node("MaxPool", [tensor.name], name, kernel_shape=[row.kernel] * 2, strides=[row.stride] * 2,
                   pads=[row.pad] * 4, **attributes)
        # The largest of k * k activations, of which neighbours are alike.
        growth = math.sqrt(1 + 0.4 * (row.kernel**2 - 1))
        return replace(tensor, name=name, height=height, width=width, rms=tensor.rms * growth)

    @_apply.register
    def _(self, row: networks.GlobalAveragePool, tensor):
        name = self._node("GlobalAveragePool", [tensor.name], self._pool_name())
        return replace(tensor, name=name, height=1, width=1, rms=tensor.rms * _AVERAGE_SHRINKS)

    @_apply.register
    def _(self, row: networks.Lrn, tensor):
        name = self._node("LRN", [tensor.name], f"{tensor.name}.norm", size=row.size, alpha=row.alpha, beta=row.beta,
                          bias=row.bias)
        return replace(tensor, name=name, rms=tensor.rms / (row.bias + row.alpha * tensor.rms**2) ** row.beta)

    @_apply.register
    def _(self, row: networks.Dropout, tensor):
        name = f"{tensor.name}.dropout"
        ratio = self._weight(f"{name}.ratio", np.array(row.ratio, dtype=np.float32))
        return replace(tensor, name=self._node("Dropout", [tensor.name, ratio], name))

    @_apply.register
    def _(self, row: networks.Flatten, tensor):
        name = self._node("Flatten", [tensor.name], f"{tensor.name}.flat", axis=1)
        return Tensor(name, tensor.features, 0, 0, tensor.rms)

    @_apply.register
    def _(self, row: networks.Softmax, tensor):
        return replace(tensor, name=self._node("Softmax", [tensor.name], "prob", axis=1), rms=1 / tensor.features)

    @_apply.register
    def _(self, row: networks.Branches, tensor):
        results = []
        for rows in row.rows:
            result = tensor
            for step in rows:
                result = self._apply(step, result)
            results.append(result)
        names = [result.name for result in results]
        first = results[0]
        if row.join == "add":
            name = self._node("Add", names, f"{row.name}.sum")
            total = replace(first, name=name, rms=math.hypot(*(result.rms for result in results)),
                            positive=any(result.positive for result in results))  # mostly, where one of them is
            return self._activated(total, row.relu)
        name = self._node("Concat", names, f"{row.name}.concat", axis=1)
        channels = sum(result.channels for result in results)
        mean_square = sum(result.channels * result.rms**2 for result in results) / channels
        return replace(first, name=name, channels=channels, rms=math.sqrt(mean_square))


def graph_inputs_and_outputs(builder):
    """The graph's input and output with their shapes; the batch is "N"."""
    def info(tensor):
        extents = [tensor.height, tensor.width] if tensor.height else []
        return helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, ["N", tensor.channels, *extents])
    return [info(builder.input)], [info(builder.output)]
