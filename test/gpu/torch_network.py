"""An ONNX model as a torch.nn.Module: what PyTorch runs beside burin in networks.py.

Batch normalization behind a convolution is folded into it, as deployed networks have it; activations and sums write over
an input that nothing else reads; a tensor is given up as soon as its last reader has run. `fuse()` goes further and has
cuDNN apply bias, sum and ReLU in the convolution itself. Refuses what it has no rule for.
"""
import numpy as np
import torch
from onnx import numpy_helper

import torch_layers as layers
from torch_layers import UnsupportedModel

__all__ = ["TorchNetwork", "UnsupportedModel"]


def _dense(sparse):
    values = np.zeros(int(np.prod(sparse.dims)), dtype=np.float32)
    values[numpy_helper.to_array(sparse.indices)] = numpy_helper.to_array(sparse.values)
    return values.reshape(sparse.dims)


class _Step:
    def __init__(self, layer, reads, writes):
        self.layer, self.reads, self.writes = layer, reads, writes

    def convolution(self):
        """The convolution that this step is, perhaps behind padding of its own; else None."""
        layer = self.layer[-1] if isinstance(self.layer, torch.nn.Sequential) else self.layer
        return layer if isinstance(layer, torch.nn.Conv2d) else None

    def adds(self):
        return isinstance(self.layer, layers.Apply) and self.layer.function in (torch.add, layers.add_to)


class TorchNetwork(torch.nn.Module):
    """The model's graph; call it with the inputs in the order of the model, get a tuple of the outputs."""

    def __init__(self, model):
        super().__init__()
        graph = model.graph
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._constants.update({sparse.values.name: _dense(sparse) for sparse in graph.sparse_initializer})
        self.inputs = [value.name for value in graph.input if value.name not in self._constants]
        self.outputs = [value.name for value in graph.output]
        self._shapes = {value.name: [size.dim_value for size in value.type.tensor_type.shape.dim]
                        for value in [*graph.input, *graph.value_info]}
        self._readers = {}
        for name in [*self.outputs, *(name for node in graph.node for name in node.input)]:
            self._readers[name] = self._readers.get(name, 0) + 1
        self._steps = []
        for node in graph.node:
            self._convert(node)
        del self._constants
        self._finish()

    def _writer(self, name):
        """The step that computes a tensor which has one reader; else None."""
        if self._readers.get(name) != 1:
            return None
        return next((step for step in self._steps if step.writes == name), None)

    def _may_write_over(self, name):
        """Not where the tensor could be another one's memory, as a reshaped one is."""
        writer = self._writer(name)
        return writer is not None and (writer.convolution() is not None or writer.adds()
                                       or isinstance(writer.layer, (torch.nn.Linear, layers.WithConstant)))

    def _convert(self, node):
        kind, attributes, constants = node.op_type, layers.attributes_of(node), self._constants
        reads = [name for name in node.input if name and name not in constants]
        shape = self._shapes.get(node.input[0] if node.input else "", [])
        inplace = bool(node.input) and self._may_write_over(node.input[0])
        if kind == "Constant":
            constants[node.output[0]] = attributes["value"]
            return
        if kind == "Transpose" and not reads:  # of weights
            constants[node.output[0]] = constants[node.input[0]].transpose(attributes["perm"])
            return
        if kind == "BatchNormalization":
            self._normalize(node, attributes)
            return
        if kind == "Conv":
            layer = layers.convolution(node, attributes, constants)
        elif kind in ("MaxPool", "AveragePool"):
            layer = layers.pool(node, attributes)
        elif kind == "Gemm":
            layer = layers.gemm(node, attributes, constants)
        elif kind == "MatMul":
            layer = layers.matmul(node, constants)
        elif kind == "Relu":
            layer = torch.nn.ReLU(inplace=inplace)
        elif kind == "Clip":
            layer = layers.clip(node, attributes, constants, inplace)
        elif kind == "LRN":
            layer = layers.lrn(node, attributes)
        elif kind in ("Flatten", "Reshape", "Squeeze"):
            layer = layers.reshape(node, attributes, constants, shape[0] if shape else None)
        elif kind == "Pad":
            layer = layers.pad(node, attributes, constants)
        elif kind in ("Add", "Mul"):
            layer = layers.sum_or_product(node, constants, inplace)
        else:
            layers.require(kind in layers.SIMPLE, node, "there is no rule for this operator")
            layer = layers.SIMPLE[kind](attributes)
        self._steps.append(_Step(layer, reads, node.output[0]))

    def _normalize(self, node, attributes):
        factor, summand = layers.normalization(node, attributes, self._constants)
        before = self._writer(node.input[0])
        if before is not None and before.convolution() is not None:
            layers.fold(before.convolution(), factor, summand)
            before.writes = node.output[0]
        else:
            self._steps.append(_Step(layers.affine(factor, summand), [node.input[0]], node.output[0]))

    def fuse(self):
        """Has cuDNN apply bias, sum and ReLU in its convolutions; returns how many are so."""
        for relu in [step for step in self._steps if isinstance(step.layer, torch.nn.ReLU)]:
            last = self._writer(relu.reads[0])
            if last is None:
                continue
            convolution, gone, summand = last, [last], []
            if last.adds():
                # Of the two tensors the later one is this convolution's; the other must be there before it.
                writers = [step for step in self._steps if step.writes in last.reads]
                convolution = writers[-1] if len(set(last.reads)) == 2 and writers else last
                if self._writer(convolution.writes) is None:
                    continue
                gone, summand = [convolution, last], [name for name in last.reads if name != convolution.writes]
            if not isinstance(convolution.layer, torch.nn.Conv2d):
                continue
            self._steps = [step for step in self._steps if step not in gone]
            relu.layer, relu.reads = layers.FusedConvolution(convolution.layer), [*convolution.reads, *summand]
        self._finish()
        return sum(isinstance(step.layer, layers.FusedConvolution) for step in self._steps)

    def fused(self):
        """Of those, how many cuDNN has not refused; known once it ran."""
        return sum(isinstance(step.layer, layers.FusedConvolution) and step.layer.fused for step in self._steps)

    def _finish(self):
        """The layers for torch, and which tensors nobody reads after a step."""
        self.layers = torch.nn.ModuleList(step.layer for step in self._steps)
        last = {name: at for at, step in enumerate(self._steps) for name in step.reads}
        self._done = [[name for name in set(step.reads) if last[name] == at and name not in self.outputs]
                      for at, step in enumerate(self._steps)]

    def forward(self, *images):
        values = dict(zip(self.inputs, images))
        for step, done in zip(self._steps, self._done):
            values[step.writes] = step.layer(*(values[name] for name in step.reads))
            for name in done:
                del values[name]
        return tuple(values[name] for name in self.outputs)
