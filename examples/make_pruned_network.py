#!/usr/bin/env python3
"""Writes the weights of a small pruned network as safetensors, to try burin on. Needs nothing but Python 3.

    python3 make_pruned_network.py OUT.safetensors [--seed N] [--sparsity 0.9]

Six convolutions of the kinds a mobile network has: a strided 3x3 stem, a depthwise 3x3, a pointwise 1x1, a strided 3x3,
a grouped 3x3 and a 1x1 head. The weights are Gaussian; of each layer the smallest are set to zero, as magnitude pruning
does. The same seed gives the same bytes.
"""
import argparse
import json
import math
import random
import struct

# name, out channels, in channels, kernel, stride, pad, groups, input height and width, activation, share of the
# sparsity asked for (the stem and the depthwise layer are pruned less, as is usual)
LAYERS = [
    ("stem", 32, 3, 3, 2, 1, 1, 64, "relu", 0.6),
    ("block1.depthwise", 32, 32, 3, 1, 1, 32, 32, "relu", 0.5),
    ("block1.pointwise", 64, 32, 1, 1, 0, 1, 32, "relu", 1.0),
    ("block2.conv", 64, 64, 3, 2, 1, 1, 32, "relu", 1.0),
    ("block3.grouped", 64, 64, 3, 1, 1, 2, 16, "relu6", 1.0),
    ("head", 128, 64, 1, 1, 0, 1, 16, None, 1.0),
]


def pruned_weights(rng, count, fan_in, sparsity):
    """Gaussian weights of He's standard deviation; the `sparsity` share of smallest magnitude is zero."""
    sigma = math.sqrt(2.0 / fan_in)
    weights = [rng.gauss(0.0, sigma) for _ in range(count)]
    by_magnitude = sorted(range(count), key=lambda i: abs(weights[i]))
    for i in by_magnitude[: round(count * sparsity)]:
        weights[i] = 0.0
    return weights


def make_network(seed, sparsity):
    """Returns the tensors (name -> shape, values) and the geometry (layer -> attributes)."""
    rng = random.Random(seed)
    tensors, geometry = {}, {}
    for name, outputs, inputs, kernel, stride, pad, groups, extent, activation, share in LAYERS:
        shape = [outputs, inputs // groups, kernel, kernel]
        fan_in = shape[1] * kernel * kernel
        tensors[f"{name}.weight"] = (shape, pruned_weights(rng, outputs * fan_in, fan_in, sparsity * share))
        tensors[f"{name}.bias"] = ([outputs], [rng.uniform(-0.1, 0.1) for _ in range(outputs)])
        geometry[name] = {"weight": f"{name}.weight", "bias": f"{name}.bias", "stride": stride, "pad": pad,
                          "groups": groups, "H": extent, "W": extent}
        if activation:
            geometry[name]["activation"] = activation
    return tensors, geometry


def write_safetensors(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, (shape, values) in tensors.items():
        blob = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data starts at a multiple of eight bytes
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(blobs)


def main():
    parser = argparse.ArgumentParser(description="Writes the weights of a small pruned network as safetensors.")
    parser.add_argument("output", help="the file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sparsity", type=float, default=0.9, help="share of zeros, 0 to 1 (default 0.9)")
    options = parser.parse_args()
    if not 0.0 <= options.sparsity <= 1.0:
        parser.error("--sparsity must lie between 0 and 1")
    tensors, geometry = make_network(options.seed, options.sparsity)
    write_safetensors(options.output, tensors, {"geometry": json.dumps(geometry)})
    weights = [v for name, (_, values) in tensors.items() if name.endswith(".weight") for v in values]
    zeros = sum(v == 0.0 for v in weights)
    print(f"{options.output}: {len(geometry)} layers, {len(weights)} weights, {100.0 * zeros / len(weights):.1f} % zero")


if __name__ == "__main__":
    main()
