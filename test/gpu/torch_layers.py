"""The layers of an ONNX graph as layers of torch.nn: one rule for each kind of node. torch_network.py wires them."""
import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional


class UnsupportedModel(Exception):
    pass


def require(condition, node, fault):
    if not condition:
        raise UnsupportedModel(f"{node.op_type} '{node.name or node.output[0]}': {fault}")


def attributes_of(node):
    values = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.type == onnx.AttributeProto.TENSOR:
            value = numpy_helper.to_array(value)
        values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values


def _parameter(values):
    return torch.nn.Parameter(torch.from_numpy(np.array(values, dtype=np.float32)), requires_grad=False)


class Apply(torch.nn.Module):
    """A function of tensors."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def add_to(result, summand):
    """Into `result`. torch.compile traces this, and not torch.Tensor.add_ as a layer's function: then it runs all as it is."""
    return result.add_(summand)


class WithConstant(torch.nn.Module):
    """A function of a tensor and a constant one."""

    def __init__(self, function, constant):
        super().__init__()
        self.function = function
        self.constant = _parameter(constant)

    def forward(self, tensor):
        return self.function(tensor, self.constant)


class FusedConvolution(torch.nn.Module):
    """A convolution with bias, a sum if there are two inputs, and ReLU in one call of cuDNN. Where cuDNN refuses the
    shape, and on the CPU, they are run apart; `fused` then is False."""

    def __init__(self, convolution):
        super().__init__()
        self.convolution = convolution
        self.fused = True

    def forward(self, image, summand=None):
        layer = self.convolution
        if self.fused:
            try:
                geometry = (layer.stride, layer.padding, layer.dilation, layer.groups)
                if summand is None:
                    return torch.cudnn_convolution_relu(image, layer.weight, layer.bias, *geometry)
                return torch.cudnn_convolution_add_relu(image, layer.weight, summand, 1.0, layer.bias, *geometry)
            except (RuntimeError, NotImplementedError):
                self.fused = False
        result = layer(image)
        return torch.relu_(result if summand is None else result.add_(summand))


# --- images -----------------------------------------------------------------------------------------------------------

def _symmetric(pads):
    half = len(pads) // 2
    return list(pads[:half]) == list(pads[half:])


def _torch_pads(pads):
    """ONNX has all begins, then all ends; torch the begin and end of each axis, the last one first."""
    half = len(pads) // 2
    return tuple(size for axis in reversed(range(half)) for size in (pads[axis], pads[half + axis]))


class SamePad(torch.nn.Module):
    """auto_pad: as many outputs as the stride leaves, whatever the image's size."""

    def __init__(self, attributes, kernel, value, upper):
        super().__init__()
        self.axes = list(zip(kernel, attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])))
        self.value, self.upper = value, upper

    def forward(self, image):
        begin, end = [], []
        for extent, (size, stride, dilation) in zip(image.shape[2:], self.axes):
            total = max(0, (-(-extent // stride) - 1) * stride + dilation * (size - 1) + 1 - extent)
            begin.append(total // 2 if self.upper else total - total // 2)
            end.append(total - begin[-1])
        return functional.pad(image, _torch_pads(begin + end), value=self.value)


def _padding(attributes, kernel, outside):
    """(padding on both sides that the layer itself can do, a layer before it that does what it cannot)."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule in ("SAME_UPPER", "SAME_LOWER"):
        return (0, 0), SamePad(attributes, kernel, outside, rule == "SAME_UPPER")
    pads = attributes.get("pads", [0] * 4) if rule == "NOTSET" else [0] * 4
    if _symmetric(pads):
        return tuple(pads[:2]), None
    return (0, 0), torch.nn.ConstantPad2d(_torch_pads(pads), outside)


def convolution(node, attributes, constants):
    require(node.input[1] in constants, node, "the weights are not constant")
    weight = constants[node.input[1]]
    require(weight.ndim == 4, node, f"a filter of {weight.ndim} dimensions")
    has_bias = len(node.input) > 2 and node.input[2] != ""
    group = attributes.get("group", 1)
    sides, before = _padding(attributes, weight.shape[2:], 0.0)
    layer = torch.nn.Conv2d(weight.shape[1] * group, weight.shape[0], tuple(weight.shape[2:]),
                            stride=tuple(attributes.get("strides", [1, 1])), padding=sides,
                            dilation=tuple(attributes.get("dilations", [1, 1])), groups=group, device="meta")
    layer.weight = _parameter(weight)
    layer.bias = _parameter(constants[node.input[2]] if has_bias else np.zeros(weight.shape[0]))
    return layer if before is None else torch.nn.Sequential(before, layer)


def fold(layer, factor, summand):
    """Multiplies what a batch normalization does into the convolution before it."""
    weight = layer.weight.double().numpy() * factor.reshape(-1, 1, 1, 1)
    layer.bias = _parameter(layer.bias.double().numpy() * factor + summand)
    layer.weight = _parameter(weight)


def normalization(node, attributes, constants):
    """The factor and the summand of each channel, in float64."""
    for name in node.input[1:]:
        require(name in constants, node, f"{name} is not constant")
    gamma, beta, mean, variance = (constants[name].astype(np.float64) for name in node.input[1:5])
    factor = gamma / np.sqrt(variance + attributes.get("epsilon", 1e-5))
    return factor, beta - mean * factor


def affine(factor, summand):
    return WithConstant(lambda x, c: x * c[0].view(-1, 1, 1) + c[1].view(-1, 1, 1), np.stack([factor, summand]))


def pool(node, attributes):
    kernel = tuple(attributes["kernel_shape"])
    largest = node.op_type == "MaxPool"
    sides, before = _padding(attributes, kernel, -np.inf if largest else 0.0)
    counted = bool(attributes.get("count_include_pad", 0))
    ceil = bool(attributes.get("ceil_mode", 0))
    require(before is None or not ceil, node, "ceil_mode with padding that is not symmetric")
    require(before is None or largest or counted, node, "padding that is neither symmetric nor counted")
    require(set(attributes.get("dilations", [1])) == {1}, node, "dilations")
    options = {"stride": tuple(attributes.get("strides", [1, 1])), "padding": sides, "ceil_mode": ceil}
    layer = (torch.nn.MaxPool2d(kernel, **options) if largest else
             torch.nn.AvgPool2d(kernel, count_include_pad=counted, **options))
    return layer if before is None else torch.nn.Sequential(before, layer)


def lrn(node, attributes):
    size = attributes["size"]
    require(size % 2 == 1, node, f"an even size, {size}, whose window PyTorch places differently")
    return torch.nn.LocalResponseNorm(size, attributes.get("alpha", 1e-4), attributes.get("beta", 0.75),
                                      attributes.get("bias", 1.0))


def pad(node, attributes, constants):
    require(attributes.get("mode", "constant") == "constant", node, "a mode other than constant")
    pads = attributes["pads"] if "pads" in attributes else [int(size) for size in constants[node.input[1]]]
    value = attributes.get("value", 0.0)
    if len(node.input) > 2 and node.input[2]:
        value = float(constants[node.input[2]])
    return Apply(lambda x: functional.pad(x, _torch_pads(pads), value=value))


# --- the rest ---------------------------------------------------------------------------------------------------------

def _linear(weight, bias):
    """`weight` has a row for each output."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    layer.weight = _parameter(weight)
    layer.bias = _parameter(np.zeros(weight.shape[0]) if bias is None else np.broadcast_to(bias, weight.shape[:1]))
    return layer


def gemm(node, attributes, constants):
    require(node.input[1] in constants and not attributes.get("transA", 0), node, "not a fully connected layer")
    weight = constants[node.input[1]] * np.float32(attributes.get("alpha", 1.0))
    has_bias = len(node.input) > 2 and node.input[2] != ""
    bias = constants[node.input[2]] * np.float32(attributes.get("beta", 1.0)) if has_bias else None
    return _linear(weight if attributes.get("transB", 0) else weight.T, bias)


def matmul(node, constants):
    require(node.input[1] in constants and constants[node.input[1]].ndim == 2, node, "not a fully connected layer")
    return _linear(constants[node.input[1]].T, None)


def clip(node, attributes, constants, inplace):
    low, high = (float(constants[name]) if name else None for name in [*node.input[1:3], "", ""][:2])
    low, high = attributes.get("min", low), attributes.get("max", high)
    if (low, high) == (0.0, 6.0):
        return torch.nn.ReLU6(inplace=inplace)
    return Apply(lambda x: torch.clamp(x, low, high))


def reshape(node, attributes, constants, batch):
    """Shapes that leave the batch alone; `batch` is the model's where it is fixed."""
    if node.op_type == "Flatten":
        require(attributes.get("axis", 1) == 1, node, "an axis other than 1")
        return torch.nn.Flatten()
    if node.op_type == "Squeeze":
        axes = attributes["axes"] if "axes" in attributes else [int(axis) for axis in constants[node.input[1]]]
        return Apply(lambda x: x.reshape([size for at, size in enumerate(x.shape)
                                          if at not in [axis % x.dim() for axis in axes]]))
    shape = [int(size) for size in constants[node.input[1]]]
    keeps_batch = shape[0] in (0, batch) or (shape[0] == -1 and -1 not in shape[1:])
    require(keeps_batch and 0 not in shape[1:], node, f"the shape {shape}")
    return Apply(lambda x: x.reshape(x.shape[0], *shape[1:]))


def sum_or_product(node, constants, inplace):
    constant = [name for name in node.input if name in constants]
    function = {"Add": torch.add, "Mul": torch.mul}[node.op_type]
    if constant:
        return WithConstant(function, constants[constant[0]])
    return Apply(add_to if node.op_type == "Add" and inplace else function)


# Nodes that need nothing but their attributes.
SIMPLE = {
    "GlobalAveragePool": lambda a: torch.nn.AdaptiveAvgPool2d(1),
    "Concat": lambda a: Apply(lambda *tensors: torch.cat(tensors, a["axis"])),
    "Softmax": lambda a: torch.nn.Softmax(a.get("axis", 1)),
    "LeakyRelu": lambda a: torch.nn.LeakyReLU(a.get("alpha", 0.01)),
    "Sigmoid": lambda a: torch.nn.Sigmoid(),
    "HardSwish": lambda a: torch.nn.Hardswish(),
    "HardSigmoid": lambda a: Apply(lambda x: torch.clamp(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1)),
    "Transpose": lambda a: Apply(lambda x: x.permute(*a["perm"]).contiguous()),
    "Identity": lambda a: torch.nn.Identity(),
    "Dropout": lambda a: torch.nn.Identity(),
}
