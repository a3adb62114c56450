"""A model that was compiled before and differs in one convolution: the kernels of all other operators come from the cache,
whoever made them, and the package is what a compilation without a cache makes."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

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
        """The model's file."""
        return check_models.make([network], ["--width", "0.5"], str(self.folder))[0]

    def burin(self, *arguments, expect=0):
        # BURIN_CACHE names the cache; an option overrides it.
        environment = {**os.environ, "BURIN_CACHE": str(self.folder / "cache"), "NO_COLOR": "1"}
        result = subprocess.run([BURIN, *map(str, arguments)], capture_output=True, text=True, check=False,
                                env=environment)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def cached(self, model, package, *options):
        """Compiles; how many kernels came from the cache, and how many there are."""
        text = self.burin("compile", model, "-o", self.folder / package, "--arch", "sm_90", *options)
        found = re.search(r"(\d+) kernels?(?: \((\d+) from the cache\))?,", text)
        return int(found.group(2) or 0), int(found.group(1))

    def bytes_of(self, package):
        return (self.folder / package).read_bytes()

    def test_all_but_the_changed_layer(self):
        for kinds in ("auto", "baked"):
            model = self.make("lenet5")
            other = self.folder / "other.onnx"
            onnx.save(changed(onnx.load(str(model))), str(other))
            options = ["--kernels", kinds, "--cache", self.folder / kinds]
            found, kernels = self.cached(model, "first.burin", *options)
            self.assertLess(found, kernels)
            self.assertEqual(self.cached(model, "again.burin", *options), (kernels, kernels))
            self.assertEqual(self.bytes_of("first.burin"), self.bytes_of("again.burin"))

            self.assertEqual(self.cached(other, "other.burin", *options), (kernels - 1, kernels))
            verify = ["verify", self.folder / "other.burin", "--device", "host", "--seed", 1, "--against"]
            self.burin(*verify, other)
            self.assertRegex(self.burin(*verify, model, expect=1),
                             r"the first step that differs: \d+, convolution 'conv2'")

    def test_operators_that_differ_in_numbers_alone(self):
        """Models of one node each, which text describes alike: each gets its own kernel."""
        def model(name, node, constants):
            graph = helper.make_graph(
                [node], "one", [helper.make_tensor_value_info("x", 1, ["n", 2, 4, 4])],
                [helper.make_tensor_value_info("y", 1, None)],
                [numpy_helper.from_array(array, key) for key, array in constants.items()])
            path = self.folder / f"{name}.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
            return path

        scales = {"scales": np.array([1, 1, 2, 2], np.float32)}
        pads = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}
        numbers = np.arange(1, 5, dtype=np.float32)
        pairs = {
            "resize": [(helper.make_node("Resize", ["x", "", "scales"], ["y"], name="up", mode="linear",
                                         coordinate_transformation_mode=mode), scales)
                       for mode in ("half_pixel", "align_corners")],
            "pad": [(helper.make_node("Pad", ["x", "pads"], ["y"], name="pad", mode=mode), pads)
                    for mode in ("reflect", "edge")],
            "normalize": [(helper.make_node("LayerNormalization", ["x", "s"], ["y"], name="norm", axis=2),
                           {"s": numbers.reshape(shape)}) for shape in ((4, 1), (1, 4))],
        }
        for name, models in pairs.items():
            for i, (node, constants) in enumerate(models):
                path, package = model(f"{name}{i}", node, constants), f"{name}{i}.burin"
                self.assertEqual(self.cached(path, package)[0], 0, f"{name}: the other one's kernel")
                self.burin("verify", self.folder / package, "--device", "host", "--seed", 1, "--against", path)

    def test_where_it_is(self):
        model = self.make("lenet5")
        self.assertEqual(self.cached(model, "first.burin", "--no-cache")[0], 0)
        self.assertFalse((self.folder / "cache").exists())
        self.assertEqual(self.cached(model, "second.burin")[0], 0)
        self.assertEqual(self.cached(model, "third.burin", "--no-cache")[0], 0)
        self.assertEqual(self.bytes_of("second.burin"), self.bytes_of("third.burin"))
        self.assertEqual(self.cached(model, "fourth.burin", "--cache", self.folder / "another")[0], 0)
        found, kernels = self.cached(model, "fourth.burin", "--cache", self.folder / "another")
        self.assertEqual(found, kernels)


if __name__ == "__main__":
    unittest.main()
