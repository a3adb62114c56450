"""Tests of examples/models/make.py: what its options promise, and that the networks are those of the papers."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx

import check_models
import onnxruntime_outputs

sys.path.insert(0, str(check_models.MAKE.parent))
from graph import GraphBuilder  # noqa: E402
from networks import NETWORKS, FullyConnected, weighted_rows  # noqa: E402
from weights import prune  # noqa: E402

SMALL = ["--reduced", "--width", "0.25"]


class OnesWithoutMemory:
    """Stands in for weights.Weights: every weight is one, so that a network of full size costs nothing."""

    def random(self, layer, kind):
        return np.random.default_rng(0)

    def real(self, layer, kind, shape):
        return None

    def pruned(self, layer, shape, sparsity, gain):
        return np.broadcast_to(np.float32(1), shape)

    def bias(self, layer, count, scale):
        return np.zeros(count, dtype=np.float32)


def run_make(folder, *options):
    return subprocess.run([sys.executable, str(check_models.MAKE), "--out", str(folder), *options],
                          capture_output=True, text=True, check=False)


class Make(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def make(self, name, *options, subfolder=""):
        folder = self.folder / subfolder
        result = run_make(folder, "--model", name, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder / f"{name}.onnx"

    def zeros(self, path):
        """Layer to the share of zeros that is there."""
        model = onnxruntime_outputs.load(path)
        weights = check_models.weights_of(model)
        layers = json.loads(onnxruntime_outputs.properties(model)["sparsity"])
        return {layer: float(np.mean(weights[f"{layer}.weight"] == 0)) for layer in layers}

    def outputs(self, path):
        model = onnxruntime_outputs.load(path)
        return onnxruntime_outputs.run(model, onnxruntime_outputs.make_inputs(model, 1, 2))

    def test_same_arguments_give_the_same_bytes(self):
        first = self.make("squeezenet", *SMALL, subfolder="a").read_bytes()
        self.assertEqual(first, self.make("squeezenet", *SMALL, subfolder="b").read_bytes())
        self.assertNotEqual(first, self.make("squeezenet", *SMALL, "--seed", "2", subfolder="c").read_bytes())

    def test_sparsity_replaces_all_but_the_first_layer(self):
        zeros = self.zeros(self.make("alexnet", *SMALL, "--sparsity", "0.95"))
        self.assertEqual(zeros.pop("conv1"), 0)
        for layer, share in zeros.items():
            self.assertAlmostEqual(share, 0.95, delta=1e-3, msg=layer)

    def test_sparsity_leaves_depthwise_layers_dense(self):
        zeros = self.zeros(self.make("mobilenet_v1", *SMALL, "--sparsity", "0.5"))
        for layer, share in zeros.items():
            dense = layer == "initial_conv" or layer.startswith("depthwise")
            self.assertAlmostEqual(share, 0 if dense else 0.5, delta=1e-2, msg=layer)

    def test_fc_dense(self):
        zeros = self.zeros(self.make("lenet5", "--fc-dense"))
        self.assertLess(max(zeros["fc1"], zeros["fc2"]), 1e-5)
        self.assertAlmostEqual(zeros["conv2"], 0.88, delta=1e-3)

    def test_all_forms_of_weights_mean_the_same(self):
        plain = self.outputs(self.make("squeezenet", *SMALL, subfolder="plain"))
        for name, options in {"sparse": ["--sparse-initializers"], "external": ["--external-over", "0"],
                              "both": ["--sparse-initializers", "--external-over", "0"]}.items():
            with self.subTest(name):
                path = self.make("squeezenet", *SMALL, *options, subfolder=name)
                onnx.checker.check_model(str(path))
                graph = onnx.load(str(path), load_external_data=False).graph
                self.assertEqual(len(graph.sparse_initializer) > 0, "sparse" in options[0])
                self.assertEqual(any(tensor.external_data for tensor in graph.initializer), name != "sparse")
                np.testing.assert_array_equal(self.outputs(path)["prob"], plain["prob"])

    def test_classes_and_image(self):
        model = onnxruntime_outputs.load(self.make("googlenet", "--width", "0.25", "--image", "96", "--classes", "7"))
        sizes = [size.dim_param or size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
        self.assertEqual(sizes, ["N", 3, 96, 96])
        self.assertEqual(self.outputs(self.folder / "googlenet.onnx")["prob"].shape, (2, 7))

    def test_readable_by_onnx_1_12(self):
        model = onnxruntime_outputs.load(self.make("lenet5"))
        self.assertLessEqual(model.ir_version, 8)
        self.assertLessEqual(max(opset.version for opset in model.opset_import), 17)

    def test_image_too_small(self):
        for name, image, fault in [("alexnet", "10", "nothing would be left of it in layer conv1"),
                                   ("vgg19", "16", "nothing would be left of it in pool5")]:
            with self.subTest(name):
                result = run_make(self.folder, "--model", name, "--image", image)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr, f"error: {name}: the image is too small: {fault}\n")

    def test_bad_arguments(self):
        for options, fault in [(["--sparsity", "1"], "argument --sparsity: must be at least 0 and less than 1"),
                               (["--model", "lenet6"], "invalid choice: 'lenet6'"),
                               (["--image", "0"], "argument --image: must be greater than 0"),
                               (["--seed", "-1"], "--seed must not be negative"),
                               (["--real", "x", "--model", "vgg19"], "there are no real weights for vgg19"),
                               (["--real", "x", "--width", "2"], "--width and --classes do not go with it")]:
            with self.subTest(options):
                result = run_make(self.folder, *options)
                self.assertEqual(result.returncode, 2)
                self.assertIn(fault, result.stderr)

    def test_real_weights_missing(self):
        result = run_make(self.folder, "--real", str(self.folder / "nothing"), "--model", "squeezenet")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: squeezenet: ", result.stderr)
        self.assertIn("squeezenet_v1.0_deep_compression.safetensors", result.stderr)


class Networks(unittest.TestCase):
    def test_sizes_of_the_papers(self):
        # weights and biases (without those of batch normalization), in the layers that have them; and how many of those
        expected = {"lenet5": (431_080, 4), "alexnet": (60_965_224, 8), "vgg19": (143_667_240, 19),
                    "googlenet": (6_998_552, 58), "squeezenet": (1_248_424, 26), "resnet50": (25_503_912, 54),
                    "mobilenet_v1": (4_210_088, 28)}
        for name, make in NETWORKS.items():
            with self.subTest(name):
                network = make()
                builder = GraphBuilder(network, OnesWithoutMemory(), lambda row, first: 0.0, image=network.image)
                builder.apply(network.rows)
                count = sum(values.size for key, values in builder.weights.items()
                            if key.endswith((".weight", ".bias")))
                self.assertEqual((count, len(builder.sparsity)), expected[name])

    def test_fully_connected_layer_sees_all_features(self):
        network = NETWORKS["vgg19"]()
        builder = GraphBuilder(network, OnesWithoutMemory(), lambda row, first: 0.0, image=network.image)
        builder.apply(network.rows)
        self.assertEqual(builder.weights["fc6.weight"].shape, (4096, 512 * 7 * 7))

    def test_names_are_unique(self):
        for name, make in NETWORKS.items():
            rows = list(weighted_rows(make().rows))
            self.assertEqual(len(rows), len({row.name for row in rows}), name)
            self.assertTrue(rows[-1].classes, name)
            self.assertEqual([row.name for row in rows if isinstance(row, FullyConnected) and row.classes],
                             [rows[-1].name] if isinstance(rows[-1], FullyConnected) else [], name)


class Prune(unittest.TestCase):
    def test_exact_count_of_the_smallest(self):
        weights = np.random.default_rng(1).standard_normal(1000, dtype=np.float32)
        pruned = weights.copy()
        prune(pruned, 0.873)
        self.assertEqual(np.count_nonzero(pruned), 127)
        self.assertGreaterEqual(np.abs(weights[pruned != 0]).min(), np.abs(weights[pruned == 0]).max())

    def test_equal_magnitudes(self):
        weights = np.array([1, -1, 1, -1, 2, -2], dtype=np.float32)
        prune(weights, 0.5)
        np.testing.assert_array_equal(weights, [0, 0, 0, -1, 2, -2])

    def test_everything_and_nothing(self):
        weights = np.array([3, -1], dtype=np.float32)
        prune(weights, 0.0)
        np.testing.assert_array_equal(weights, [3, -1])
        prune(weights, 1.0)
        np.testing.assert_array_equal(weights, [0, 0])


if __name__ == "__main__":
    unittest.main()
