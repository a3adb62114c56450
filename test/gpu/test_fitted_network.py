"""Tests of fitted_network.py: recorded shares between layers, the channels' shares, and a network of two convolutions."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import fitted_network

HERE = Path(__file__).resolve().parent
RECORDED = {
    "one.onnx": {"first": {"zeros": 0.9, "dead channels": 0.9}, "second": {"zeros": 0.2, "dead channels": 0.0},
                 "third": {"zeros": 0.6, "dead channels": 0.25}},
    "other.onnx": {"first": {"zeros": 0.9, "dead channels": 0.9}, "second": {"zeros": 0.4, "dead channels": 0.0},
                   "third": {"zeros": 0.8, "dead channels": 0.25}},
}


def network():
    """Two convolutions with ReLU, the second one with a bias; 3 -> 8 -> 16 channels."""
    rng = np.random.default_rng(1)
    weights = {"a": rng.normal(size=(8, 3, 3, 3)), "b": rng.normal(size=(16, 8, 1, 1)), "of_b": np.full(16, 7.0)}
    nodes = [onnx.helper.make_node("Conv", ["image", "a"], ["sums_a"], name="conv_a", pads=[1, 1, 1, 1]),
             onnx.helper.make_node("Relu", ["sums_a"], ["map_a"]),
             onnx.helper.make_node("Conv", ["map_a", "b", "of_b"], ["sums_b"], name="conv_b"),
             onnx.helper.make_node("Relu", ["sums_b"], ["map_b"])]
    graph = onnx.helper.make_graph(
        nodes, "net", [onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [None, 3, 20, 20])],
        [onnx.helper.make_tensor_value_info("map_b", onnx.TensorProto.FLOAT, [None, 16, 20, 20])],
        [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


class Shares(unittest.TestCase):
    def test_between_recorded_layers(self):
        self.assertAlmostEqual(fitted_network.at_part(RECORDED, "zeros", 0), 0.3)  # the first layer reads an image
        self.assertAlmostEqual(fitted_network.at_part(RECORDED, "zeros", 0.5), 0.5)
        self.assertAlmostEqual(fitted_network.at_part(RECORDED, "zeros", 1), 0.7)

    def test_of_channels(self):
        shares = fitted_network.channel_shares(100, 0.4, 0.1, "seed")
        self.assertEqual(shares.count(1.0), 10)
        self.assertAlmostEqual(np.mean(shares), 0.4)
        self.assertAlmostEqual(max(share for share in shares if share < 1), 1 / 3 + 0.3)
        self.assertEqual(shares, fitted_network.channel_shares(100, 0.4, 0.1, "seed"))
        self.assertNotEqual(shares, sorted(shares))

    def test_that_cannot_all_be_dead(self):
        self.assertEqual(fitted_network.channel_shares(4, 1.0, 1.0, "seed"), [1.0] * 4)
        self.assertAlmostEqual(np.mean(fitted_network.channel_shares(10, 0.1, 0.5, "seed")), 0.1)


class Networks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        onnx.save(network(), self.folder / "net.onnx")
        self.images = np.random.default_rng(2).normal(size=(3, 3, 20, 20)).astype(np.float32)
        np.save(self.folder / "images.npy", self.images)
        (self.folder / "maps.json").write_text(json.dumps(RECORDED))

    def fit(self, *names):
        return subprocess.run([sys.executable, HERE / "fitted_network.py", *(self.folder / name for name in names), "-o",
                               self.folder / "fitted.onnx"], capture_output=True, text=True, check=False)

    def test_maps_have_the_zeros(self):
        result = self.fit("net.onnx", "images.npy", "maps.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"conv_a +zeros  30\.0 % asked for,  30\.\d % there")
        model = onnx.load(self.folder / "fitted.onnx")
        model.graph.output.append(onnx.helper.make_tensor_value_info("map_a", onnx.TensorProto.FLOAT, None))
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        last, first = session.run(["map_b", "map_a"], {"image": self.images})
        self.assertAlmostEqual((first == 0).mean(), 0.3, delta=0.01)
        self.assertAlmostEqual((last == 0).mean(), 0.7, delta=0.01)
        self.assertEqual((last == 0).all(axis=(0, 2, 3)).sum(), 4)  # a quarter of 16
        before = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in network().graph.initializer}
        for tensor in model.graph.initializer:
            if tensor.name in ("a", "b"):
                np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), before[tensor.name])

    def test_weights_that_are_computed(self):
        model = network()
        model.graph.node[0].input[1] = "map_b"
        onnx.save(model, self.folder / "computed.onnx")
        result = self.fit("computed.onnx", "images.npy", "maps.json")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "fitted_network.py: error: conv_a: its weights are no initializer of the model\n")
        self.assertFalse((self.folder / "fitted.onnx").exists())

    def test_a_file_that_is_missing(self):
        result = self.fit("net.onnx", "nothing.npy", "maps.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing.npy: no such file", result.stderr)
        self.assertFalse((self.folder / "fitted.onnx").exists())


if __name__ == "__main__":
    unittest.main()
