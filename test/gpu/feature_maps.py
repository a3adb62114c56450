#!/usr/bin/env python3
"""Zeros in the inputs of convolutions, on photographs, and the multiplications that are left without them.

    feature_maps.py [NORMALIZATION:]MODEL.onnx ... [--json FILE | --markdown] [--inputs FOLDER]

The models are those of examples/models/make.py --real. Photographs are samples of scikit-learn and scikit-image, cut to a
square, resized and normalised as NORMALIZATION says: `imagenet`, by mean and deviation (default); `caffe`, blue first, less
the mean, 0 to 255 (AlexNet and SqueezeNet of the archive); `unit`, -1 to 1. Products with padding are not counted.
Columns are in percent: zeros, dead channels, dead 8x8 tiles, and multiplications left where one skips zero weights (w),
zero activations (a), both, w and dead channels, w and dead 8x8 tiles. With --inputs what each model reads is written, too, as
FOLDER/MODEL.npy, for burin's --activations. It needs onnx, onnxruntime, pillow, scikit-image and
scikit-learn.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy as np

NORMALIZATIONS = {
    "imagenet": lambda pixels: (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
    "caffe": lambda pixels: pixels[:, :, ::-1] - [104, 117, 123],
    "unit": lambda pixels: pixels / 127.5 - 1,
}
COLUMNS = ("zeros", "dead channels", "dead 8x8", "w", "a", "both", "w+channels", "w+8x8")
TILE = 8


class UserError(Exception):
    pass


def dead_tiles(zero, rows, columns):
    """Which tiles of each channel are zero everywhere; what the border cuts off a tile counts as zero."""
    channels, height, width = zero.shape
    padded = np.pad(zero, ((0, 0), (0, -height % rows), (0, -width % columns)), constant_values=True)
    tiles = padded.reshape(channels, padded.shape[1] // rows, rows, padded.shape[2] // columns, columns)
    return tiles.all(axis=(2, 4))


def products(live, weights, stride, pads, groups):
    """Multiplications with nonzero `weights` (OIHW, bool) and `live` activations, without those with padding."""
    out, per_group, kh, kw = weights.shape
    counts = weights.reshape(groups, out // groups, per_group, kh, kw).sum(axis=1).reshape(len(live), kh, kw)
    padded = np.pad(live, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows, columns = (padded.shape[1] - kh) // stride[0] + 1, (padded.shape[2] - kw) // stride[1] + 1
    total = 0
    for y in range(kh):
        for x in range(kw):
            met = padded[:, y:y + stride[0] * rows:stride[0], x:x + stride[1] * columns:stride[1]]
            total += int((counts[:, y, x] * met.sum(axis=(1, 2))).sum())
    return total


def statistics(values, weights, **geometry):
    """The columns, as shares, of a convolution that reads `values` (channels, rows, columns)."""
    zero, kept = values == 0, weights != 0
    every, dense = np.ones_like(zero), np.ones_like(kept)
    _, height, width = zero.shape
    channels, tiles = dead_tiles(zero, height, width), dead_tiles(zero, TILE, TILE)
    without_channels = np.broadcast_to(~channels, zero.shape)
    without_tiles = ~tiles.repeat(TILE, axis=1).repeat(TILE, axis=2)[:, :height, :width]
    whole = products(every, dense, **geometry)
    left = [products(live, w, **geometry) / whole for live, w in
            [(every, kept), (~zero, dense), (~zero, kept), (without_channels, kept), (without_tiles, kept)]]
    return [zero.mean(), channels.mean(), tiles.mean(), *left]


class Model:
    """A model whose every convolution's input can be had."""

    def __init__(self, argument):
        import onnx
        from google.protobuf.message import DecodeError
        normalization, self.path = argument.split(":", 1) if ":" in argument else ("imagenet", argument)
        if normalization not in NORMALIZATIONS:
            raise UserError(f"{normalization!r} is none of {', '.join(NORMALIZATIONS)}")
        self.normalised = NORMALIZATIONS[normalization]
        try:
            self.model = onnx.load(self.path)
        except (OSError, DecodeError) as error:
            raise UserError(f"{self.path}: {error}") from None
        weights = {one.name: onnx.numpy_helper.to_array(one) for one in self.model.graph.initializer}
        self.convolutions = []  # name, input, weights, geometry
        for node in self.model.graph.node:
            if node.op_type != "Conv":
                continue
            given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            kernel = weights.get(node.input[1])
            dilated = any(step != 1 for step in given.get("dilations", []))
            if kernel is None or kernel.ndim != 4 or dilated or given.get("auto_pad", b"NOTSET") != b"NOTSET":
                raise UserError(f"{self.path}: {node.name or node.output[0]}: only 2-D convolutions with constant weights, "
                                "without dilation and auto_pad are counted")
            geometry = {"stride": given.get("strides", [1, 1]), "pads": given.get("pads", [0] * 4),
                        "groups": given.get("group", 1)}
            self.convolutions.append((node.input[1], node.input[0], kernel, geometry))
        if not self.convolutions:
            raise UserError(f"{self.path}: it has no convolution")
        self.source = self.model.graph.input[0]
        shape = [one.dim_value for one in self.source.type.tensor_type.shape.dim]
        if len(shape) != 4 or shape[1] != 3 or shape[2] != shape[3] or shape[2] < 1:
            raise UserError(f"{self.path}: its input is no square image of three channels and known size")
        self.side = shape[2]

    def image(self, photograph):
        """What the model reads of it: (1, 3, rows, columns)."""
        pixels = np.asarray(photograph.resize((self.side, self.side)), np.float32)
        return self.normalised(pixels).transpose(2, 0, 1)[None].astype(np.float32)

    def measure(self, photographs):
        """For each convolution the means of its columns."""
        import onnx
        import onnxruntime
        names = sorted({read for _, read, _, _ in self.convolutions} - {self.source.name})
        del self.model.graph.output[:]
        self.model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=["CPUExecutionProvider"])
        rows = {}
        for photograph in photographs:
            image = self.image(photograph)
            values = dict(zip(names, session.run(names, {self.source.name: image})))
            values[self.source.name] = image
            for name, read, kernel, geometry in self.convolutions:
                rows.setdefault(name, []).append(statistics(values[read][0], kernel, **geometry))
        return {name: dict(zip(COLUMNS, np.mean(row, axis=0).tolist())) for name, row in rows.items()}


def sample_photographs():
    from PIL import Image
    from skimage import data
    from sklearn.datasets import load_sample_images
    photographs = []
    for image in [*load_sample_images().images, data.astronaut(), data.chelsea(), data.coffee()]:
        edge = min(image.shape[:2])
        top, left = (image.shape[0] - edge) // 2, (image.shape[1] - edge) // 2
        photographs.append(Image.fromarray(image[top:top + edge, left:left + edge]))
    return photographs


def print_table(rows, markdown):
    lines = [["layer", *COLUMNS]]
    lines += [[name.removesuffix(".weight"), *(f"{100 * value:.1f}" for value in row.values())]
              for name, row in rows.items()]
    if markdown:
        lines.insert(1, ["---"] * len(lines[0]))
        print(*("| " + " | ".join(line) + " |" for line in lines), sep="\n")
        return
    wide = max(len(line[0]) for line in lines)
    print(*(line[0].ljust(wide) + "".join(cell.rjust(15) for cell in line[1:]) for line in lines), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="[NORMALIZATION:]MODEL.onnx")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured, as shares")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/feature-maps.md")
    parser.add_argument("--inputs", type=Path, metavar="FOLDER", help="what each model reads, as FOLDER/MODEL.npy")
    options = parser.parse_args()
    try:
        if options.inputs and not options.inputs.is_dir():
            raise UserError(f"--inputs {options.inputs}: there is no such folder")
        if options.json and not options.json.absolute().parent.is_dir():
            raise UserError(f"--json {options.json}: there is no such folder")
        import onnxruntime  # noqa: F401  what is missing is said before work begins
        photographs = sample_photographs()
        models = [Model(argument) for argument in options.models]
    except (ImportError, UserError) as error:
        sys.exit(f"feature_maps.py: error: {error}")
    measured = {}
    for model in models:
        if options.inputs:
            np.save(options.inputs / (Path(model.path).stem + ".npy"), np.concatenate([model.image(p) for p in photographs]))
        measured[model.path] = model.measure(photographs)
        print(f"{model.path}: percent, means of {len(photographs)} photographs")
        print_table(measured[model.path], options.markdown)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
