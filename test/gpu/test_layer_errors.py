"""Tests of layer_errors.py that need no GPU: what its table says, and which layers it reads."""
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import layer_errors


class LayerErrors(unittest.TestCase):
    def test_within_what_cudnn_is_off_by(self):
        out = io.StringIO()
        self.assertTrue(layer_errors.print_table([("a", 3e-4, True, 2.1e-4), ("b", 1e-7, True, 2e-4)], out))
        self.assertIn("| a | 3.00e-04 | 2.10e-04 | 1.43 |", out.getvalue())
        self.assertIn("2 layers; burin / cuDNN: geometric mean 0.03, largest 1.43, at most 1.5 allowed", out.getvalue())

    def test_too_much_and_wrong_fail(self):
        for error, passed, mark in ((4e-4, True, "**too much**"), (1e-4, False, "**wrong**")):
            out = io.StringIO()
            self.assertFalse(layer_errors.print_table([("a", error, passed, 2e-4), ("b", 1e-4, True, 2e-4)], out))
            self.assertEqual(out.getvalue().count("**"), 2)
            self.assertIn(mark, out.getvalue())

    def test_no_layer_fails(self):
        out = io.StringIO()
        self.assertFalse(layer_errors.print_table([], out))
        self.assertEqual(out.getvalue(), "")

    def test_layers_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "w.safetensors"
            subprocess.run([sys.executable, str(HERE / "make_layers.py"), str(path), "--set", "anchors", "--sparsity", "0.9",
                            "--layer", "3x3.64*"], check=True, stdout=subprocess.DEVNULL)
            layers = layer_errors.layers_of(path)
        self.assertEqual(list(layers), ["3x3.64-64.56"])
        shape, values, geometry = layers["3x3.64-64.56"]
        self.assertEqual(shape, [64, 64, 3, 3])
        self.assertEqual(len(values), 64 * 64 * 9)
        self.assertEqual((geometry["H"], geometry["W"], geometry["pad"]), (56, 56, 1))


if __name__ == "__main__":
    unittest.main()
