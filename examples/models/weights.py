"""Where a layer's weights come from: seeded and pruned by magnitude, or real ones of a file.

Every tensor has a random stream of its own, named by model, layer and seed: what one layer gets does not depend on the
others, and the same arguments give the same bytes.
"""
import zlib

import numpy as np
from safetensors import safe_open


class WeightsError(Exception):
    pass


class RealWeights:
    """The tensors of a safetensors file that belong to a layer; the names there begin with the part of the network."""

    def __init__(self, path):
        self._file = safe_open(path, framework="numpy")
        self._path = path
        self._names = set(self._file.keys())
        self.source = (self._file.metadata() or {}).get("source", str(path))

    def tensor(self, layer, kind, shape):
        """The layer's weights or biases ("weight", "bias"), or None where the file does not have them."""
        for name in (f"{layer}.{kind}", f"features.{layer}.{kind}", f"classifier.{layer}.{kind}"):
            if name in self._names:
                values = self._file.get_tensor(name).astype(np.float32)
                if values.shape != tuple(shape):
                    raise WeightsError(f"{self._path}: {name} has the shape {list(values.shape)}, "
                                       f"the model wants {list(shape)}")
                return values
        return None


def prune(weights, sparsity):
    """Sets the round(size * sparsity) weights of smallest magnitude to zero, in place."""
    zeros = round(weights.size * sparsity)
    if zeros == 0:
        return
    flat = weights.reshape(-1)
    magnitude = np.abs(flat)
    if zeros < weights.size:
        threshold = np.partition(magnitude, zeros)[zeros]
        flat[magnitude < threshold] = 0
        # Equal magnitudes at the threshold: the first of them, so that the count is exact.
        missing = zeros - int(np.count_nonzero(magnitude < threshold))
        flat[np.flatnonzero(magnitude == threshold)[:missing]] = 0
    else:
        flat[:] = 0


class Weights:
    def __init__(self, model, seed, real=None):
        self._model, self._seed, self._real = model, seed, real

    def random(self, layer, kind):
        return np.random.default_rng([self._seed, zlib.crc32(f"{self._model}/{layer}.{kind}".encode())])

    def real(self, layer, kind, shape):
        return self._real.tensor(layer, kind, shape) if self._real else None

    def pruned(self, layer, shape, sparsity, gain):
        """Normal weights, pruned, then scaled so that outputs have `gain` times the inputs' root mean square."""
        weights = self.random(layer, "weight").standard_normal(shape, dtype=np.float32)
        prune(weights, sparsity)
        fan_in = weights.size // shape[0]
        mean_square = float(np.vdot(weights, weights)) / weights.size
        if mean_square > 0:
            weights *= np.float32(gain / np.sqrt(fan_in * mean_square))
        return weights

    def bias(self, layer, count, scale):
        return (scale * self.random(layer, "bias").standard_normal(count)).astype(np.float32)
