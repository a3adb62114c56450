#!/usr/bin/env python3
"""Writes weights for the layers of docs/performance.md as safetensors. Needs nothing but Python 3.

    make_layers.py OUT.safetensors --set anchors --sparsity 0.91 [--seed N] [--layer GLOB] [--dead-channels 0.3]
    make_layers.py OUT.safetensors --from WEIGHTS.safetensors --sparsity 0.95 [--layer GLOB]

With --set: seeded random patterns and values; with --dead-channels without this share of the input channels and their
weights: what is left to do for a kernel that knows beforehand which channels of its input are zero. With --from: the weights of
that file, of each layer the smallest set to zero; geometry, biases and the other metadata stay. Of each layer exactly
round(weights * (1 - sparsity)) weights are not zero, before channels are left out. The same arguments give the same bytes.
"""
import argparse
import array
import fnmatch
import json
import math
import random
import struct
import sys
from fractions import Fraction


def conv(kernel, inputs, outputs, extent, pad=None):
    """A square layer of stride 1; padded to keep its size where `pad` is not given."""
    return {"name": f"{kernel}x{kernel}.{inputs}-{outputs}.{extent}", "shape": [outputs, inputs, kernel, kernel],
            "geometry": {"stride": 1, "pad": kernel // 2 if pad is None else pad, "H": extent, "W": extent}}


SETS = {
    # ResNet-50's and MobileNetV1's layers
    "anchors": [conv(1, 64, 256, 56), conv(1, 256, 64, 56), conv(1, 128, 512, 28), conv(1, 512, 128, 28),
                conv(1, 256, 1024, 14), conv(1, 1024, 256, 14), conv(1, 512, 2048, 7), conv(1, 2048, 512, 7),
                conv(3, 64, 64, 56), conv(3, 128, 128, 28), conv(3, 256, 256, 14), conv(3, 512, 512, 7),
                conv(1, 512, 512, 14), conv(1, 512, 1024, 7)],
    "vgg": [conv(3, 64, 64, 224), conv(3, 128, 128, 112), conv(3, 256, 256, 56), conv(3, 512, 512, 28),
            conv(3, 512, 512, 14)],
    # 1x1 layers for which times of SparseRT and Sputnik are on record
    "peers": [conv(1, 128, 128, 56), conv(1, 256, 256, 28), conv(1, 512, 512, 14), conv(1, 512, 1024, 7)],
    # Dong et al. 2020: LeNet (without padding), CIFAR-10's quick network, VGG-like layers
    "dong": [conv(5, 1, 20, 24, pad=0), conv(5, 20, 50, 8, pad=0), conv(5, 3, 32, 32), conv(5, 32, 32, 16),
             conv(5, 32, 64, 8), conv(3, 64, 64, 56), conv(3, 128, 128, 28), conv(3, 3, 64, 224),
             conv(3, 64, 64, 224), conv(3, 64, 128, 112)],
}


class UserError(Exception):
    pass


def kept_count(weights, sparsity):
    return max(1, round(weights * (1 - sparsity)))


def choose(rng, count, most):
    """`count` different numbers below `most`, uniformly. Only rng.random() gives the same on every Python 3."""
    if count > most // 2:
        return set(range(most)) - choose(rng, most - count, most)
    chosen = set()
    while len(chosen) < count:
        chosen.add(int(rng.random() * most))
    return chosen


def random_weights(layer, sparsity, seed):
    rng = random.Random(f"{seed}/{layer['name']}/{sparsity}")  # a layer does not depend on its neighbours
    total = math.prod(layer["shape"])
    kept = kept_count(total, sparsity)
    # What pruning leaves: no magnitude near zero. Outputs have the inputs' size.
    largest = 1.2 / math.sqrt(kept / layer["shape"][0])
    weights = array.array("f", bytes(4 * total))
    for i in sorted(choose(rng, kept, total)):
        magnitude = largest * (0.25 + 0.75 * rng.random())
        weights[i] = magnitude if rng.random() < 0.5 else -magnitude
    return weights


def without_channels(layer, weights, share, seed):
    """The shape and the weights without a share of the input channels."""
    outputs, inputs, *filter_shape = layer["shape"]
    taps = math.prod(filter_shape)
    dead = choose(random.Random(f"{seed}/{layer['name']}/dead/{share}"), min(round(inputs * share), inputs - 1), inputs)
    left = [channel for channel in range(inputs) if channel not in dead]
    kept = array.array("f")
    for row in range(outputs):
        for channel in left:
            first = (row * inputs + channel) * taps
            kept.extend(weights[first:first + taps])
    return [outputs, len(left), *filter_shape], kept


def make_set(name, sparsity, seed, glob, dead_share):
    tensors, geometry = {}, {}
    for layer in SETS[name]:
        if not fnmatch.fnmatchcase(layer["name"], glob):
            continue
        weight = layer["name"] + ".weight"
        tensors[weight] = without_channels(layer, random_weights(layer, sparsity, seed), dead_share, seed)
        geometry[layer["name"]] = {"weight": weight, **layer["geometry"]}
    dead = f" --dead-channels {float(dead_share)}" if dead_share else ""
    metadata = {"source": f"make_layers.py --set {name} --sparsity {float(sparsity)} --seed {seed}{dead}"}
    return tensors, geometry, metadata


def is_layer(item):
    """SET:NAME"""
    set_name, _, name = item.partition(":")
    return name in [layer["name"] for layer in SETS.get(set_name, [])]


def write_layers(path, items, sparsity, dead_share=Fraction(0), seed=1):
    """Layers of any sets, each SET:NAME, in one file."""
    tensors, geometry = {}, {}
    for item in items:
        set_name, name = item.split(":")
        some, of_layer, _ = make_set(set_name, sparsity, seed, name, dead_share)
        tensors.update(some)
        geometry.update(of_layer)
    write_safetensors(path, tensors, {"geometry": json.dumps(geometry)})
    return path


def read_safetensors(path):
    """Returns the tensors (name -> shape, values) and the metadata."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise UserError(f"{path}: tensor '{name}' is {entry['dtype']}; only F32 is read")
        values = array.array("f", data[slice(*entry["data_offsets"])])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = (entry["shape"], values)
    return tensors, metadata


def prune(name, weights, sparsity):
    """Sets all but the largest to zero; of equal ones the first stay."""
    kept = kept_count(len(weights), sparsity)
    nonzeros = sum(w != 0 for w in weights)
    if nonzeros < kept:
        raise UserError(f"layer '{name}' has {nonzeros} nonzeros of {len(weights)} weights already, fewer than the "
                        f"{kept} that --sparsity {float(sparsity)} leaves; a larger one, or --layer without it, helps")
    order = sorted(range(len(weights)), key=lambda i: -abs(weights[i]))
    for i in order[kept:]:
        weights[i] = 0.0


def prune_file(path, sparsity, glob):
    source, metadata = read_safetensors(path)
    if "geometry" not in metadata:
        raise UserError(f"{path}: has no metadata 'geometry', which says where its layers are")
    tensors, geometry = {}, {}
    for name, attributes in json.loads(metadata.pop("geometry")).items():
        if not fnmatch.fnmatchcase(name, glob):
            continue
        geometry[name] = attributes
        weight = attributes.get("weight", name + ".weight")
        if weight not in source:
            raise UserError(f"{path}: layer '{name}' has no tensor '{weight}'")
        prune(name, source[weight][1], sparsity)
        tensors[weight] = source[weight]
        bias = attributes.get("bias", weight.removesuffix(".weight") + ".bias")
        if bias in source:
            tensors[bias] = source[bias]
    metadata["pruned"] = f"by magnitude to {float(sparsity)} in each layer"
    return tensors, geometry, metadata


def write_safetensors(path, tensors, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * len(values)]}
        offset += 4 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data starts at a multiple of eight bytes
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            little = array.array("f", values)
            if sys.byteorder == "big":
                little.byteswap()
            little.tofile(file)


def sparsity_of(text):
    value = Fraction(text)  # 0.9 is 9/10, so that counts are exact
    if not 0 <= value < 1:
        raise ValueError
    return value


def main():
    parser = argparse.ArgumentParser(description="Writes weights for the layers of docs/performance.md.")
    parser.add_argument("output", help="the file to write")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--set", choices=sorted(SETS), help="seeded random weights for these layers")
    source.add_argument("--from", dest="weights", metavar="FILE", help="the weights of this safetensors file, pruned")
    parser.add_argument("--sparsity", type=sparsity_of, required=True, help="share of zeros, from 0 to below 1")
    parser.add_argument("--seed", type=int, default=1, help="of --set (default 1)")
    parser.add_argument("--dead-channels", type=sparsity_of, default=Fraction(0), metavar="SHARE",
                        help="of --set: the share of the input channels that is left out (default 0)")
    parser.add_argument("--layer", metavar="GLOB", default="*", help="only layers whose name matches")
    options = parser.parse_args()
    if options.weights and options.dead_channels:
        parser.error("--dead-channels is for --set")
    try:
        if options.set:
            tensors, geometry, metadata = make_set(options.set, options.sparsity, options.seed, options.layer,
                                                  options.dead_channels)
        else:
            tensors, geometry, metadata = prune_file(options.weights, options.sparsity, options.layer)
        if not geometry:
            raise UserError(f"no layer matches --layer '{options.layer}'")
        write_safetensors(options.output, tensors, {**metadata, "geometry": json.dumps(geometry)})
    except (UserError, OSError) as error:
        sys.exit(f"make_layers.py: error: {error}")
    weights = [tensors[attributes.get("weight", name + ".weight")][1] for name, attributes in geometry.items()]
    total, nonzeros = sum(map(len, weights)), sum(w != 0 for values in weights for w in values)
    print(f"{options.output}: {len(geometry)} layers, {total} weights, {nonzeros} nonzeros")


if __name__ == "__main__":
    main()
