"""The published kernels of zeros in feature maps (ECR, and PECR with the pool inside), as one_filter.py measures them: written
anew after the papers (ecr.cu), compiled by nvcc for each layer, checked against float64 and timed by graph replay.

As in the cold times of `burin bench` launches take turns among COPIES loaded copies of the code, and among inputs.
"""
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from measured_rows import Failure

SOURCE = Path(__file__).resolve().parent / "ecr.cu"
COPIES, INPUTS, SEED = 8, 4, 1
TOLERANCE = 1e-5  # of the largest output
STATIC_SHARED_BYTES, PAIR_BYTES = 48 * 1024, 8


def threads_of(layer):
    """As many as keep their lists in shared memory, up to 128."""
    threads = 128
    while layer.kernel ** 2 * threads * PAIR_BYTES > STATIC_SHARED_BYTES:
        threads //= 2
    return threads


def extents_of(layer):
    """Rows of the convolution's result, and of the output."""
    convolved = (layer.extent + 2 * layer.pad - layer.kernel) // layer.stride + 1
    return convolved, (convolved - layer.pool[0]) // layer.pool[1] + 1 if layer.pool else convolved


def definitions_of(layer):
    convolved, output = extents_of(layer)
    defined = {"EXTENT": layer.extent, "KERNEL": layer.kernel, "PAD": layer.pad, "STRIDE": layer.stride, "CONV": convolved,
               "OUT": output, "THREADS": threads_of(layer)}
    if layer.pool:
        defined.update(POOL=layer.pool[0], POOL_STRIDE=layer.pool[1])
    return [f"-D{name}={value}" for name, value in defined.items()]


def expected(layer, plane, weights, bias):
    """The convolution with bias and ReLU, and the pool behind it, in float64."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(plane.astype(np.float64), layer.pad), weights.shape)
    made = np.maximum(0, np.einsum("ijrs,rs->ij", windows[::layer.stride, ::layer.stride], weights.astype(np.float64)) + bias)
    if not layer.pool:
        return made
    window, stride = layer.pool
    return np.lib.stride_tricks.sliding_window_view(made, (window, window))[::stride, ::stride].max(axis=(2, 3))


def inputs_of(layer, batch, zeros, rng):
    """Planes with a share of zeros at random, INPUTS times."""
    planes = np.maximum(rng.standard_normal((INPUTS, batch, layer.extent, layer.extent)), 1e-3).astype(np.float32)
    planes[rng.random(planes.shape) < zeros] = 0
    return planes


def compile_layer(layer, arch, folder, nvcc="nvcc"):
    cubin = Path(folder) / f"{layer.name}.cubin"
    made = subprocess.run([nvcc, "-cubin", f"-arch={arch}", "-O3", *definitions_of(layer), str(SOURCE), "-o", str(cubin)],
                          capture_output=True, text=True)
    if made.returncode != 0:
        raise Failure(f"nvcc: {made.stderr.strip()}")
    return cubin


class Gpu:
    """What runs on a GPU, by cupy's launches on torch's streams."""

    def __init__(self):
        import cupy
        import torch

        import sparse_gpu

        self.cupy, self.torch = cupy, torch
        self.time = sparse_gpu.Timer(torch)
        self.arch = "sm_{}{}".format(*torch.cuda.get_device_capability())

    def microseconds(self, layer, batch, zeros):
        cupy, rng = self.cupy, np.random.default_rng(SEED)
        weights = (rng.standard_normal((layer.kernel, layer.kernel)) / layer.kernel).astype(np.float32)
        bias = np.float32(rng.standard_normal())
        planes = inputs_of(layer, batch, zeros, rng)
        output = extents_of(layer)[1]
        with tempfile.TemporaryDirectory() as folder:
            cubin = compile_layer(layer, self.arch, folder)
            kernels = [cupy.RawModule(path=str(cubin)).get_function("ecr") for _ in range(COPIES)]
        inputs, filters = [cupy.asarray(planes[i]) for i in range(INPUTS)], cupy.asarray(weights)
        made = cupy.full((batch, output, output), np.nan, cupy.float32)
        blocks = (-(-output * output // threads_of(layer)), batch)

        def launch(turn):
            with cupy.cuda.ExternalStream(self.torch.cuda.current_stream().cuda_stream):
                kernels[turn % COPIES](blocks, (threads_of(layer),), (inputs[turn % INPUTS], filters, bias, made))

        launch(0)
        self.torch.cuda.synchronize()
        right = np.stack([expected(layer, plane, weights, bias) for plane in planes[0]])
        error = np.abs(made.get() - right).max() / max(np.abs(right).max(), 1e-30)
        if not error <= TOLERANCE:
            raise Failure(f"ECR's kernel is off by {error:.1e} of the largest output")
        return self.time(launch)


def rows_of(layers, batches, zeros, gpu):
    """Rows like those of burin's kernels."""
    return [{"layer": layer.name, "batch": batch, "kernel": "PECR" if layer.pool else "ECR",
             "us": gpu.microseconds(layer, batch, zeros), "pool": bool(layer.pool), "pool_is_fused": bool(layer.pool)}
            for layer in layers for batch in batches]
