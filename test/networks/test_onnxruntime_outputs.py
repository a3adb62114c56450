"""Tests of onnxruntime_outputs.py: what the comparison with ONNX Runtime reads."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import check_models
import onnxruntime_outputs


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.path = check_models.make(["squeezenet"], ["--reduced", "--width", "0.25"], folder.name)[0]

    def test_every_tensor_is_written(self):
        out = self.folder / "all"
        tensors = onnxruntime_outputs.write(self.path, out, seed=3, batch=2, all_tensors=True)
        model = onnxruntime_outputs.load(self.path)
        index = json.loads((out / "index.json").read_text())
        self.assertEqual([entry["name"] for entry in index["tensors"]],
                         [name for node in model.graph.node for name in node.output])
        for entry in index["tensors"]:
            np.testing.assert_array_equal(np.load(out / entry["file"]), tensors[entry["name"]])
        self.assertEqual(index["outputs"], ["prob"])
        image = np.load(out / index["inputs"][0]["file"])
        self.assertEqual(image.shape, (2, 3, 67, 67))
        self.assertAlmostEqual(float(image.std()), 58.0, delta=2.0)

    def test_outputs_do_not_depend_on_who_else_is_an_output(self):
        model = onnxruntime_outputs.load(self.path)
        inputs = onnxruntime_outputs.make_inputs(model, 1, 3)
        alone = onnxruntime_outputs.run(model, inputs)
        self.assertEqual(list(alone), ["prob"])
        together = onnxruntime_outputs.run(model, inputs, all_tensors=True)
        np.testing.assert_allclose(alone["prob"], together["prob"], rtol=1e-3)
        self.assertEqual(len(model.graph.output), 1)

    def test_seed_decides_the_inputs(self):
        model = onnxruntime_outputs.load(self.path)
        first, again, other = (onnxruntime_outputs.make_inputs(model, seed, 1)["input"] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertGreater(np.abs(first - other).max(), 1.0)

    def test_file_names_are_safe_and_unique(self):
        files = onnxruntime_outputs.file_names(["a/b", "a:b", "..", "", "fire2.concat"])
        self.assertEqual(list(files.values()), ["a_b.npy", "a_b.2.npy", "tensor.npy", "tensor.2.npy",
                                                "fire2.concat.npy"])

    def test_not_an_onnx_file(self):
        garbage = self.folder / "garbage.onnx"
        garbage.write_bytes(b"\xff\xff\xff\xff")
        result = subprocess.run([sys.executable, onnxruntime_outputs.__file__, str(garbage), "--out",
                                 str(self.folder / "none")], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"error: {garbage}: is not an ONNX file", result.stderr)


if __name__ == "__main__":
    unittest.main()
