"""A stand-in for torch, for tests of what runs on a GPU: tensors are those of numpy, a replay of a graph takes a millisecond
of a clock of its own, and nothing is asynchronous. It has what the programs here use, and no more."""
import contextlib
import types

import numpy as np


class HostTensor:
    """What the programs use of a tensor."""

    def __init__(self, values):
        self.values = values

    def uniform_(self, low, high, generator):
        return HostTensor(generator.random(self.values.shape).astype(self.values.dtype) * (high - low) + low)

    def to(self, kind=None, device=None, dtype=None):
        kind = dtype or kind
        return self if kind in (None, "cuda") else HostTensor(self.values.astype(kind))

    def __len__(self):
        return len(self.values)

    def float(self):
        return HostTensor(self.values.astype(np.float32))

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    def dim(self):
        return self.values.ndim

    def data_ptr(self):
        return self.values.ctypes.data

    def t(self):
        return HostTensor(self.values.T)

    def contiguous(self, memory_format=None):
        return HostTensor(np.ascontiguousarray(self.values))

    def double(self):
        return HostTensor(self.values.astype(np.float64))

    def item(self):
        return float(self.values)

    def __matmul__(self, other):
        return HostTensor(self.values @ other.values)

    def __sub__(self, other):
        return HostTensor(self.values - other.values)

    def __truediv__(self, other):
        return HostTensor(self.values / other.values)


class HostGraph:
    def __init__(self, torch):
        self.torch = torch

    def replay(self):
        self.torch.clock += 1.0  # milliseconds


class HostEvent:
    def __init__(self, torch):
        self.torch, self.time = torch, 0

    def record(self):
        self.time = self.torch.clock

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other.time - self.time


class HostStream:
    cuda_stream = 7

    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


def host_torch():
    torch = types.SimpleNamespace(float32=np.float32, float16=np.float16, uint8=np.uint8, clock=0.0, __version__="2.9",
                                  version=types.SimpleNamespace(cuda="13.0"))
    torch.contiguous_format, torch.channels_last = "contiguous", "channels_last"
    torch.compile = lambda network: network
    torch.backends = types.SimpleNamespace(
        cudnn=types.SimpleNamespace(version=lambda: 91900),
        cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)))
    torch.empty = lambda shape, dtype, device: HostTensor(np.zeros(shape, dtype))
    torch.zeros = lambda shape, device, dtype=np.float32: HostTensor(np.zeros(shape, dtype))
    torch.from_numpy = HostTensor
    torch.no_grad = contextlib.nullcontext
    torch.mm = lambda left, right: left @ right
    torch.Generator = lambda device: types.SimpleNamespace(manual_seed=np.random.default_rng)
    torch.linalg = types.SimpleNamespace(vector_norm=lambda one: HostTensor(np.linalg.norm(one.values)))

    def no_sparse(*_, **__):
        raise RuntimeError("sparse tensors are not built\nand so on")

    torch.sparse_csr_tensor = no_sparse
    torch.sparse = types.SimpleNamespace(to_sparse_semi_structured=lambda tensor: tensor)
    torch.cuda = types.SimpleNamespace(
        Stream=HostStream, current_stream=HostStream, stream=lambda stream: contextlib.nullcontext(),
        graph=lambda graph, stream: contextlib.nullcontext(), CUDAGraph=lambda: HostGraph(torch),
        Event=lambda enable_timing: HostEvent(torch), synchronize=lambda: None, get_device_name=lambda index: "a GPU")
    return torch
