#!/usr/bin/env python3
"""Zeros in the inputs of convolutions, on photographs, and the multiplications that are left without them.

    feature_maps.py [NORMALIZATION:]MODEL.onnx ... [--fit] [--json FILE | --markdown] [--inputs FOLDER]

The models are those of examples/models/make.py --real. Photographs are samples of scikit-learn and scikit-image, cut to a
square, resized and normalised as NORMALIZATION says: `imagenet`, by mean and deviation (default); `caffe`, blue first, less
the mean, 0 to 255 (AlexNet and SqueezeNet of the archive); `unit`, -1 to 1. Products with padding are not counted.
The first table is in percent: zeros, dead channels, dead 8x8 tiles, and multiplications left where one skips zeros of
the weights, of the activations, both, zeros of the weights and dead channels, zeros of the weights and dead 8x8 tiles.
The second says where the zeros are, in percent but for the mean stretch: dead tiles; dead runs, as
ir/activation_zeros.h has them; the mean length of a stretch of zeros along a row, and the share of the zeros that are in
stretches of so many or more; and quantiles of the channels' shares of zeros.
With --fit each map that has 1 % zeros or more is compared with the patterns of compiler/synthetic_zeros.cpp, which
zero_patterns.py makes with many constants (blobs: radius, spread; channels: the share of zeros in dead ones), of the
same share of zeros: how far those with burin's constants are from it, and the nearest one, in points of percent. Over
all maps, of which each counts once, those that fit best follow. That takes minutes.
With --inputs what each model reads is written, too, as FOLDER/MODEL.npy, for burin's --activations. It needs onnx,
onnxruntime, pillow, scikit-image and scikit-learn.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy as np

import zero_patterns
from zero_patterns import BURINS, GROUPS, LEAST_SHARE, STRETCH, dead_tiles

NORMALIZATIONS = {
    "imagenet": lambda pixels: (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
    "caffe": lambda pixels: pixels[:, :, ::-1] - [104, 117, 123],
    "unit": lambda pixels: pixels / 127.5 - 1,
}
COLUMNS = ("zeros", "dead channels", "dead 8x8", "weights", "activations", "both", "weights, channels", "weights, 8x8")
TILE = 8
PLACES = (*GROUPS["tiles"], *GROUPS["runs"], STRETCH, *GROUPS["stretches"], *GROUPS["channels"][1:])
SHOWN = 5  # of the patterns that fit best


class UserError(Exception):
    pass


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
        """For each convolution what it reads, its shape, and the means of its columns."""
        import onnx
        import onnxruntime
        names = sorted({read for _, read, _, _ in self.convolutions} - {self.source.name})
        del self.model.graph.output[:]
        self.model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=["CPUExecutionProvider"])
        rows, shapes = {}, {}
        for photograph in photographs:
            image = self.image(photograph)
            values = dict(zip(names, session.run(names, {self.source.name: image})))
            values[self.source.name] = image
            places = {name: zero_patterns.places(value[0] == 0) for name, value in values.items()}
            for name, read, kernel, geometry in self.convolutions:
                columns = dict(zip(COLUMNS, statistics(values[read][0], kernel, **geometry)))
                rows.setdefault(name, []).append({**places[read], **columns})
                shapes[name] = {"reads": read, "shape": list(values[read].shape[1:])}
        return {name: {**shapes[name], **zero_patterns.mean_of(row)} for name, row in rows.items()}


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


def fit(measured):
    """For each model and map with zeros enough the distances of all patterns."""
    found = {}
    for model, rows in measured.items():
        maps = {row["reads"]: row for row in rows.values() if row["zeros"] >= LEAST_SHARE}
        found[model] = {read: zero_patterns.distances(row, row["zeros"], row["shape"]) for read, row in maps.items()}
    return found


def percent(share):
    return f"{100 * share:.1f}"


def layer_cells(rows, columns):
    lines = [["layer", *columns]]
    for name, row in rows.items():
        cells = [f"{row[column]:.2f}" if column == STRETCH else percent(row[column]) for column in columns]
        lines.append([name.removesuffix(".weight"), *cells])
    return lines


def fit_cells(rows, fitted):
    """For each layer the distances of burin's patterns, and the nearest of all."""
    lines = [["layer", *map(str, BURINS), "nearest", "its distance"]]
    for name, row in rows.items():
        if row["reads"] in fitted:
            found = fitted[row["reads"]]
            best = zero_patterns.nearest(found)
            lines.append([name.removesuffix(".weight"), *(percent(found[pattern][0]) for pattern in BURINS), str(best),
                          percent(found[best][0])])
    return lines


def overall_cells(fitted):
    """Mean distances over all maps, and over each model's, of the best patterns, the best `channels`, and burin's."""
    fitted = {model: maps for model, maps in fitted.items() if maps}
    every = [found for maps in fitted.values() for found in maps.values()]
    if not every:
        return [["pattern"]]

    def mean(maps, pattern, scale=0):
        return float(np.mean([found[pattern][scale] for found in maps]))

    ranked = sorted(every[0], key=lambda pattern: mean(every, pattern))
    shown = {*ranked[:SHOWN], *BURINS, next(pattern for pattern in ranked if pattern.kind == "channels")}
    lines = [["pattern", "all", *(Path(model).stem for model in fitted), "nearest of all", "logarithms"]]
    for pattern in ranked:
        if pattern in shown:
            means = [mean(every, pattern), *(mean(maps.values(), pattern) for maps in fitted.values())]
            times = sum(zero_patterns.nearest(found) == pattern for found in every)
            lines.append([str(pattern), *map(percent, means), str(times), f"{mean(every, pattern, 1):.2f}"])
    return lines


def print_table(lines, markdown):
    print()
    if markdown:
        lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
        print(*("| " + " | ".join(line) + " |" for line in lines), sep="\n")
        return
    wide = max(len(line[0]) for line in lines)
    print(*(line[0].ljust(wide) + "".join(cell.rjust(18) for cell in line[1:]) for line in lines), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="[NORMALIZATION:]MODEL.onnx")
    parser.add_argument("--fit", action="store_true", help="which made-up patterns of zeros come nearest")
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
        print(f"\n{model.path}: means of {len(photographs)} photographs")
        for columns in (COLUMNS, PLACES):
            print_table(layer_cells(measured[model.path], columns), options.markdown)
    if options.fit:
        fitted = fit(measured)
        for path, rows in measured.items():
            print(f"\n{path}: distances of patterns")
            print_table(fit_cells(rows, fitted[path]), options.markdown)
        print(f"\nAll {sum(map(len, fitted.values()))} maps: mean distances")
        print_table(overall_cells(fitted), options.markdown)
        for path, rows in measured.items():
            for row in rows.values():
                found = fitted[path].get(row["reads"], {})
                row["distances"] = {str(pattern): far for pattern, (far, _) in found.items()}
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
