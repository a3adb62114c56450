"""Tests of burin_against_tensors: that it finds what differs.

    test_against_onnxruntime.py PROGRAM
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import check_models
import onnxruntime_outputs

PROGRAM = sys.argv.pop(1)


class Differences(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = check_models.make(["lenet5"], [], folder.name)[0]
        onnxruntime_outputs.write(self.model, self.folder, batch=2, all_tensors=True)

    def change(self, name, values_of):
        path = self.folder / "tensors" / f"{name}.npy"
        np.save(path, values_of(np.load(path)))

    def compare(self, model=None):
        return subprocess.run([PROGRAM, str(model or self.model), str(self.folder)], capture_output=True, text=True,
                              check=False)

    def test_nothing_differs(self):
        result = self.compare()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("10 tensors agree, 0 differ", result.stdout)

    def test_first_difference_is_named(self):
        def one_value(tensor):
            tensor.flat[7] += 1e-3 * np.abs(tensor).max()
            return tensor
        self.change("conv2", one_value)
        self.change("fc2", one_value)
        result = self.compare()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the first that differs: conv2 ", result.stderr)
        self.assertIn("8 tensors agree, 2 differ", result.stdout)

    def test_not_a_number(self):
        def one_nan(tensor):
            tensor.flat[0] = np.nan
            return tensor
        self.change("pool1", one_nan)
        result = self.compare()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the first that differs: pool1 ", result.stderr)

    def test_other_shape(self):
        self.change("conv1", lambda tensor: tensor[:, :-1])
        result = self.compare()
        self.assertEqual(result.returncode, 1)
        self.assertIn("conv1: the shape is 2x20x24x24, expected 2x19x24x24", result.stderr)

    def test_output_that_is_not_computed(self):
        index = json.loads((self.folder / "index.json").read_text())
        index["outputs"].append("nothing")
        (self.folder / "index.json").write_text(json.dumps(index))
        result = self.compare()
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing: not computed", result.stderr)

    def test_not_a_model(self):
        garbage = self.folder / "garbage.onnx"
        garbage.write_bytes(b"\xff" * 64)
        result = self.compare(garbage)
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: ", result.stderr)
        self.assertIn("garbage.onnx", result.stderr)


if __name__ == "__main__":
    unittest.main()
