#!/usr/bin/env python3
"""Zeros in the inputs of convolutions, on photographs, and the multiplications that are left without them.

    feature_maps.py [NORMALIZATION:]MODEL.onnx ... [--json FILE]

The models are those of examples/models/make.py --real. Photographs are samples of scikit-learn and scikit-image, cut to a
square, resized and normalised as NORMALIZATION says: `imagenet`, by mean and deviation (default); `caffe`, blue first, less
the mean, 0 to 255 (AlexNet and SqueezeNet of the archive); `unit`, -1 to 1. Products with padding are not counted.
Columns are in percent: zeros, dead channels, dead 8x8 tiles, and multiplications left where one skips zero weights (w),
zero activations (a), both, w and dead channels, w and dead 8x8 tiles.
"""
import argparse
import json
import sys

import numpy as np

import activation_patterns as patterns

NORMALIZATIONS = ("imagenet", "caffe", "unit")
COLUMNS = ("zeros", "dead channels", "dead 8x8", "w", "a", "both", "w+channels", "w+8x8")


def normalised(pixels, normalization):
    if normalization == "caffe":
        return pixels[:, :, ::-1] - np.array([104, 117, 123], np.float32)
    if normalization == "unit":
        return pixels / 127.5 - 1
    return (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]


def photographs(side, normalization):
    from PIL import Image
    from skimage import data
    from sklearn.datasets import load_sample_images
    images = list(load_sample_images().images) + [data.astronaut(), data.chelsea(), data.coffee()]
    for image in images:
        edge = min(image.shape[:2])
        top, left = (image.shape[0] - edge) // 2, (image.shape[1] - edge) // 2
        cut = Image.fromarray(image[top:top + edge, left:left + edge]).resize((side, side))
        scaled = normalised(np.asarray(cut, np.float32), normalization)
        yield scaled.transpose(2, 0, 1)[None].astype(np.float32)


def products(live, weights, stride, pads, groups):
    """Multiplications with nonzero `weights` (OIHW, bool) and `live` activations, without those with padding."""
    out, per_group, kh, kw = weights.shape
    channels, height, width = live.shape
    counts = weights.reshape(groups, out // groups, per_group, kh, kw).sum(axis=1).reshape(channels, kh, kw)
    padded = np.pad(live, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows, columns = ((padded.shape[1] - kh) // stride[0] + 1, (padded.shape[2] - kw) // stride[1] + 1)
    return sum(int((counts[:, y, x] * padded[:, y:y + stride[0] * rows:stride[0], x:x + stride[1] * columns:stride[1]]
                    .sum(axis=(1, 2))).sum()) for y in range(kh) for x in range(kw))


def statistics(values, weights, **geometry):
    zero, kept = values == 0, weights != 0
    every, dense = np.ones_like(zero), np.ones_like(kept)
    alive = np.broadcast_to(~zero.all(axis=(1, 2), keepdims=True), zero.shape)
    tiles = np.zeros_like(zero)
    for y in range(0, zero.shape[1], 8):
        for x in range(0, zero.shape[2], 8):
            tiles[:, y:y + 8, x:x + 8] = ~zero[:, y:y + 8, x:x + 8].all(axis=(1, 2), keepdims=True)
    whole = products(every, dense, **geometry)
    left = [products(live, w, **geometry) / whole
            for live, w in [(every, kept), (~zero, dense), (~zero, kept), (alive, kept), (tiles, kept)]]
    return [zero.mean(), patterns.dead_channels(zero), patterns.dead_tiles(zero, 8), *left]


def measure(argument):
    import onnx
    import onnxruntime
    normalization, path = argument.split(":", 1) if ":" in argument else ("imagenet", argument)
    if normalization not in NORMALIZATIONS:
        sys.exit(f"feature_maps.py: error: {normalization!r} is none of {', '.join(NORMALIZATIONS)}")
    model = onnx.load(path)
    convs = [node for node in model.graph.node if node.op_type == "Conv"]
    if not convs:
        sys.exit(f"feature_maps.py: error: {path}: it has no convolution")
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    source = model.graph.input[0]
    names = sorted({node.input[0] for node in convs} - {source.name})
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = {}
    for image in photographs(source.type.tensor_type.shape.dim[2].dim_value, normalization):
        values = dict(zip(names, session.run(names, {source.name: image})))
        values[source.name] = image
        for node in convs:
            given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            rows.setdefault(node.input[1], []).append(statistics(
                values[node.input[0]][0], weights[node.input[1]], stride=given.get("strides", [1, 1]),
                pads=given.get("pads", [0] * 4), groups=given.get("group", 1)))
    return {name: dict(zip(COLUMNS, np.mean(row, axis=0).tolist())) for name, row in rows.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        from google.protobuf.message import DecodeError
    except ImportError as error:
        sys.exit(f"feature_maps.py: error: {error}; it needs onnx, onnxruntime, pillow, scikit-image and scikit-learn")
    try:
        measured = {path: measure(path) for path in options.models}
    except (ImportError, OSError, DecodeError) as error:
        sys.exit(f"feature_maps.py: error: {error}")
    for path, rows in measured.items():
        print(path, f"{'layer, %':32}" + "".join(f"{name:>14}" for name in COLUMNS), sep="\n")
        for name, row in rows.items():
            print(f"{name:32}" + "".join(f"{100 * value:14.1f}" for value in row.values()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(measured, file, indent=1)


if __name__ == "__main__":
    main()
