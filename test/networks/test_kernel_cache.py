"""A model that was compiled before and differs in one convolution: the kernels of all others come from the cache, and the
package is what a compilation without a cache makes. (Kernels of other operators are made anew; they take no time.)"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import check_models

BURIN = sys.argv.pop(1)
LAYER = "conv2.weight"


def changed(model):
    """The same nonzeros, with other values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    tensor = next(tensor for tensor in copy.graph.initializer if tensor.name == LAYER)
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), LAYER))
    return copy


class KernelCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def make(self, network):
        """The model's file, and how many convolutions it has."""
        path = check_models.make([network], ["--width", "0.125"], str(self.folder))[0]
        return path, sum(node.op_type == "Conv" for node in onnx.load(str(path)).graph.node)

    def burin(self, *arguments, expect=0):
        # BURIN_CACHE names the cache; an option overrides it.
        environment = {**os.environ, "BURIN_CACHE": str(self.folder / "cache"), "NO_COLOR": "1"}
        result = subprocess.run([BURIN, *map(str, arguments)], capture_output=True, text=True, check=False,
                                env=environment)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def cached(self, model, package, *options):
        """Compiles; how many kernels came from the cache. All convolutions are baked: others are made anew, too."""
        text = self.burin("compile", model, "-o", self.folder / package, "--arch", "sm_90", "--kernels", "baked",
                          *options)
        found = re.search(r"\d+ kernels(?: \((\d+) from the cache\))?,", text)
        return int(found.group(1) or 0)

    def bytes_of(self, package):
        return (self.folder / package).read_bytes()

    def test_all_but_the_changed_layer(self):
        model, convolutions = self.make("alexnet")
        other = self.folder / "other.onnx"
        onnx.save(changed(onnx.load(str(model))), str(other))
        self.assertEqual(self.cached(model, "first.burin"), 0)
        self.assertEqual(self.cached(model, "again.burin"), convolutions)
        self.assertEqual(self.bytes_of("first.burin"), self.bytes_of("again.burin"))

        self.assertEqual(self.cached(other, "other.burin"), convolutions - 1)
        verify = ["verify", self.folder / "other.burin", "--device", "host", "--seed", 1, "--against"]
        self.burin(*verify, other)
        self.assertRegex(self.burin(*verify, model, expect=1),
                         r"the first step that differs: \d+, convolution 'conv2'")

    def test_where_it_is(self):
        model, convolutions = self.make("lenet5")
        self.assertEqual(self.cached(model, "first.burin", "--no-cache"), 0)
        self.assertFalse((self.folder / "cache").exists())
        self.assertEqual(self.cached(model, "second.burin"), 0)
        self.assertEqual(self.cached(model, "third.burin", "--no-cache"), 0)
        self.assertEqual(self.bytes_of("second.burin"), self.bytes_of("third.burin"))
        self.assertEqual(self.cached(model, "fourth.burin", "--cache", self.folder / "another"), 0)
        self.assertEqual(self.cached(model, "fourth.burin", "--cache", self.folder / "another"), convolutions)


if __name__ == "__main__":
    unittest.main()
