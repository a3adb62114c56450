"""Tests of feature_maps.py that need no photographs: what it counts on small arrays, and what it refuses."""
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import feature_maps


class FeatureMaps(unittest.TestCase):
    def test_dead_tiles(self):
        zero = np.zeros((2, 5, 5), bool)
        zero[0] = True
        zero[1, 4, 4] = True
        self.assertEqual(feature_maps.dead_tiles(zero, 5, 5).tolist(), [[[True]], [[False]]])
        self.assertEqual(feature_maps.dead_tiles(zero, 4, 4)[1].tolist(), [[False, False], [False, True]])

    def test_products_are_counted_one_by_one(self):
        random = np.random.default_rng(1)
        for groups, stride, pads in ((1, (1, 1), (1, 1, 1, 1)), (2, (2, 1), (0, 1, 2, 0)), (4, (3, 2), (0, 0, 0, 0))):
            live, weights = random.random((4, 7, 6)) < 0.6, random.random((8, 4 // groups, 3, 2)) < 0.5
            padded = np.pad(live, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            rows, columns = (padded.shape[1] - 3) // stride[0] + 1, (padded.shape[2] - 2) // stride[1] + 1
            count = 0
            for k, y, x in np.ndindex(8, rows, columns):
                first = k // (8 // groups) * (4 // groups)
                window = padded[first:first + 4 // groups, y * stride[0]:y * stride[0] + 3,
                                x * stride[1]:x * stride[1] + 2]
                count += int((window & weights[k]).sum())
            self.assertEqual(feature_maps.products(live, weights, stride, pads, groups), count)

    def test_multiplications_that_are_left(self):
        values = np.ones((2, 8, 16), np.float32)
        values[0] = 0  # a dead channel
        values[1, :, :8] = 0  # a dead tile
        values[1, 0, 8] = 0
        weights = np.ones((2, 2, 1, 1), np.float32)
        weights[0, 1] = 0
        found = feature_maps.statistics(values, weights, stride=(1, 1), pads=(0, 0, 0, 0), groups=1)
        live = 63 / 256
        np.testing.assert_allclose(found, [193 / 256, 0.5, 0.75, 0.75, live, live / 2, 0.25, 0.125])

    def test_refusals(self):
        from onnx import TensorProto, helper

        def refusal_of(argument):
            with self.assertRaises(feature_maps.UserError) as caught:
                feature_maps.Model(argument)
            return str(caught.exception)

        with tempfile.TemporaryDirectory() as folder:
            def written(side, initializers=("w",), **attributes):
                image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])
                node = helper.make_node("Conv", ["x", "w"], ["y"], name="c", **attributes)
                graph = helper.make_graph([node], "g", [image], [helper.make_empty_tensor_value_info("y")], [
                    helper.make_tensor(name, TensorProto.FLOAT, [1, 3, 1, 1], [1.0] * 3) for name in initializers])
                path = f"{folder}/model.onnx"
                with open(path, "wb") as file:
                    file.write(helper.make_model(graph).SerializeToString())
                return path

            self.assertEqual(feature_maps.Model("caffe:" + written(8)).side, 8)
            self.assertIn("'other' is none of imagenet, caffe, unit", refusal_of("other:" + written(8)))
            self.assertIn("c: only 2-D convolutions with constant weights", refusal_of(written(8, dilations=[2, 2])))
            self.assertIn("without dilation and auto_pad", refusal_of(written(8, auto_pad="SAME_UPPER")))
            self.assertIn("with constant weights", refusal_of(written(8, initializers=())))
            self.assertIn("no square image of three channels and known size", refusal_of(written("N")))
            self.assertIn("nowhere.onnx", refusal_of(f"{folder}/nowhere.onnx"))
            broken = f"{folder}/broken.onnx"
            with open(broken, "wb") as file:
                file.write(b"\xff" * 9)
            self.assertIn("broken.onnx: ", refusal_of(broken))

    def test_a_missing_folder_is_said_first(self):
        for option, path in (("--json", "/nowhere/at/all.json"), ("--inputs", "/nowhere/at/all")):
            with self.subTest(option):
                ran = subprocess.run([sys.executable, feature_maps.__file__, "none.onnx", option, path],
                                     capture_output=True, text=True)
                self.assertEqual(ran.returncode, 1)
                self.assertEqual(ran.stderr, f"feature_maps.py: error: {option} {path}: there is no such folder\n")


if __name__ == "__main__":
    unittest.main()
