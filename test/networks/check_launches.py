#!/usr/bin/env python3
"""How many kernels the small networks of families.py, and those of exporter_graphs.py whose channels are the last axis,
launch for an image, and how many of these are convolutions.

    check_launches.py PROGRAM [--markdown] [NAME ...]

PROGRAM is burin. Exits with 1 where a family's launches are not those of LAUNCHES: nothing becomes more without being seen, and
what becomes less is written down here and in docs/networks.md, whose table --markdown prints.
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import exporter_graphs
import families

# Launches of each family.
LAUNCHES = {
    "resnext": 10, "densenet": 24, "mobilenet_v2": 9, "mobilenet_v3": 14, "mnasnet": 11, "shufflenet_v2": 16,
    "efficientnet": 13, "regnet": 13, "inception_v3": 15, "convnext": 11, "ghostnet": 8, "res2net": 10,
    "nf_resnet": 5, "cspnet": 6, "sknet": 12, "resnest": 11, "fcn": 8, "deeplab_v3": 15, "lraspp": 12, "yolo_v5": 46,
    "yolo_v8": 35, "ssd_lite": 20, "yolo_v11": 14, "vision_transformer": 33, "class_token_transformer": 34,
    "center_net": 23, "unet_nearest": 17, "unet_linear": 17, "unet_transposed": 17,
    "unet_overlapping": 17, "unet_shuffled": 17, "quantized": 6, "keras_mobilenet": 15, "keras_resnet_v2": 13,
    "keras_unet": 8, "keras_splits": 13
}


def steps(program, model):
    shown = subprocess.run([program, "inspect", str(model), "--simplify", "--memory", "--json"], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return collections.Counter(step["kind"] for step in json.loads(shown)["memory"][0]["steps"])


def main():
    parser = argparse.ArgumentParser(description="Counts the launches of small networks.")
    parser.add_argument("program", help="burin")
    parser.add_argument("names", nargs="*", metavar="NAME", help="families (default: all, and what exporters write)")
    parser.add_argument("--markdown", action="store_true", help="print a table and compare nothing")
    options = parser.parse_args()
    wrong = []
    if options.markdown:
        print("| network | launches | convolutions, fully connected layers | other steps |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in families.FAMILIES if name not in families.REFUSED]
        paths = families.write(Path(folder), options.names or names)
        if not options.names:
            paths += exporter_graphs.write_graphs(Path(folder), 1, exporter_graphs.CHANNELS_LAST)
        for path in paths:
            kinds = steps(options.program, path)
            launches, layers = sum(kinds.values()), kinds.pop("convolution", 0) + kinds.pop("linear", 0)
            others = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            print(f"| {path.stem} | {launches} | {layers} | {others} |" if options.markdown else
                  f"{path.stem}: {launches} launches, {layers} layers; {others}", flush=True)
            expected = LAUNCHES.get(path.stem, "none")
            if not options.markdown and launches != expected:
                wrong.append(f"{path.stem}: {launches} launches, {expected} were expected")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
