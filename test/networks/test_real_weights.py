"""Tests of make.py --real: the networks with real weights of the archive, at a small image, in ONNX Runtime and burin.

    test_real_weights.py BURIN_AGAINST_TENSORS
"""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from safetensors import safe_open

import against_onnxruntime
import check_models
import onnxruntime_outputs

PROGRAM = sys.argv.pop(1)
SKIPPED = 77
SOURCE_TREE = Path(__file__).resolve().parents[2]
ARCHIVE = Path(os.environ.get("BURIN_SHARED", SOURCE_TREE.parent / "shared")) / "data" / "pruned-weights.tar.xz"


class RealWeights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.archive, cls.models = Path(folder.name) / "archive", Path(folder.name) / "models"
        cls.archive.mkdir()
        subprocess.run(["tar", "-xJf", str(ARCHIVE), "-C", str(cls.archive)], check=True)
        subprocess.run([sys.executable, str(check_models.MAKE), "--out", str(cls.models), "--real", str(cls.archive),
                        "--reduced"], check=True, stdout=subprocess.DEVNULL)

    def test_onnxruntime_gets_sensible_numbers(self):
        for name in ("squeezenet", "mobilenet_v1", "alexnet"):
            with self.subTest(name):
                check_models.check(self.models / f"{name}_real.onnx")

    def test_burin_agrees_with_onnxruntime(self):
        for name in ("squeezenet", "mobilenet_v1", "alexnet"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model = self.models / f"{name}_real.onnx"
                self.assertTrue(against_onnxruntime.compare(PROGRAM, model, Path(folder), seed=1, batch=2))

    def test_weights_are_those_of_the_archive(self):
        for name, file, seeded in [("squeezenet", "squeezenet_v1.0_deep_compression", []),
                                   ("mobilenet_v1", "mobilenet_v1_90", ["pointwise_12"]),
                                   ("alexnet", "alexnet_skimcaffe_0.56256_l1_9.0e-5", ["fc6", "fc7", "fc8"])]:
            with self.subTest(name), safe_open(self.archive / f"{file}.safetensors", framework="numpy") as real:
                model = onnxruntime_outputs.load(self.models / f"{name}_real.onnx")
                there = {key: value for key, value in check_models.weights_of(model).items() if key.endswith(".weight")}
                for key in real.keys():
                    if key.endswith(".weight"):
                        layer = key.removeprefix("features.").replace("classifier.conv_final", "conv_final")
                        np.testing.assert_array_equal(there.pop(layer), real.get_tensor(key), key)
                self.assertEqual(list(there), [f"{layer}.weight" for layer in seeded])

    def test_missing_layer_is_as_sparse_as_its_neighbours(self):
        model = onnxruntime_outputs.load(self.models / "mobilenet_v1_real.onnx")
        values = check_models.weights_of(model)["pointwise_12.weight"]
        self.assertAlmostEqual(float(np.mean(values == 0)), 0.9, delta=1e-4)
        self.assertFalse(any(node.op_type == "BatchNormalization" for node in model.graph.node))


if __name__ == "__main__":
    if not ARCHIVE.is_file():
        print(f"SKIPPED: {ARCHIVE} is not there (BURIN_SHARED names the folder that holds data/)")
        sys.exit(SKIPPED)
    unittest.main()
