#!/usr/bin/env python3
"""Errors of convolutions against float64, burin's beside cuDNN's own at the same precision.

    layer_errors.py BURIN WEIGHTS.safetensors --precision fp16|bf16|tf32 [--batch N] [--compile-option=OPTION ...]

Compiles the layers, lets `burin verify` compute their relative errors (in the 2-norm, on the GPU), and runs the same layers
in PyTorch on inputs of its own in that precision, which are rounded to it beforehand, as those of `burin verify` are where
tensors are halves; the reference is PyTorch's convolution of the unrounded weights in float64. Prints a table, and exits
with 1 where burin is off by more than MOST times what cuDNN is, or wrong.
"""
import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import make_layers

MOST = 1.5
SEED = 1


def cudnn_error(torch, shape, values, geometry, precision, batch):
    """Of one layer: ||made - exact|| / ||exact||."""
    weights = torch.tensor(values, dtype=torch.float64, device="cuda").reshape(shape)
    generator = torch.Generator(device="cuda").manual_seed(SEED)
    image = (batch, shape[1] * geometry.get("groups", 1), geometry["H"], geometry["W"])
    inputs = torch.empty(image, dtype=torch.float32, device="cuda").uniform_(-1, 1, generator=generator)
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}[precision]
    inputs = inputs.to(kind)
    numbers = {"stride": geometry.get("stride", 1), "padding": geometry.get("pad", 0),
               "groups": geometry.get("groups", 1)}
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    made = torch.nn.functional.conv2d(inputs, weights.to(kind), **numbers).double()
    exact = torch.nn.functional.conv2d(inputs.double(), weights, **numbers)
    return (torch.linalg.vector_norm(made - exact) / torch.linalg.vector_norm(exact)).item()


def layers_of(path):
    """name -> weights' shape, values, geometry."""
    tensors, metadata = make_layers.read_safetensors(path)
    return {name: (*tensors[entry["weight"]], entry) for name, entry in json.loads(metadata["geometry"]).items()}


def burin_errors(burin, weights, folder, options):
    """By layer: the relative error, and whether it is right."""
    package = str(Path(folder) / "layers.burin")
    subprocess.run([burin, "compile", weights, "-o", package, "--precision", options.precision, "--batch",
                    str(options.batch), "-q", *options.compile_option], check=True)
    result = subprocess.run([burin, "verify", package, "--against", weights, "--device", "cuda:0", "--json", "-q",
                             "--no-code"], check=False, capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise SystemExit(f"layer_errors.py: {result.stderr.strip()}")
    return {made["program"]: (made["outputs"][0]["relative_error"], made["passed"])
            for made in json.loads(result.stdout)["programs"]}


def print_table(rows, out=sys.stdout):
    """rows: (layer, burin's error, whether it is right, cuDNN's). Whether all are within MOST times cuDNN's."""
    if not rows:
        print("layer_errors.py: no layer was measured", file=sys.stderr)
        return False
    print("| layer | burin | cuDNN | burin / cuDNN |\n| --- | --- | --- | --- |", file=out)
    sound = True
    for layer, error, passed, own in rows:
        within = passed and error <= MOST * own
        sound = sound and within
        mark = "" if within else " **too much**" if passed else " **wrong**"
        print(f"| {layer} | {error:.2e} | {own:.2e} | {error / own:.2f}{mark} |", file=out)
    ratios = [error / own for _, error, _, own in rows]
    print(f"\n{len(rows)} layers; burin / cuDNN: geometric mean {statistics.geometric_mean(ratios):.2f}, "
          f"largest {max(ratios):.2f}, at most {MOST} allowed", file=out)
    return sound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("burin")
    parser.add_argument("weights")
    parser.add_argument("--precision", choices=("fp16", "bf16", "tf32"), required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--compile-option", action="append", default=[])
    options = parser.parse_args()
    import torch  # takes its time

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        errors = burin_errors(options.burin, options.weights, folder, options)
    rows = [(name, *errors[name], cudnn_error(torch, *layer, options.precision, options.batch))
            for name, layer in layers_of(options.weights).items()]
    return 0 if print_table(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
