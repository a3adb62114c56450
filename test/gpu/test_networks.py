"""Tests of networks.py that need no GPU: its tables, what it makes of burin's figures and of failures, and, where torch
is installed, that a model in torch computes what ONNX Runtime does."""
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "networks")]

import numpy as np
import onnx

import check_models
import networks
import networks_table
import onnxruntime_outputs
import random_graphs
from tool_case import ToolCase

HAS_TORCH = importlib.util.find_spec("torch") is not None

# Answers as burin does: `compile` writes the package, unless the model is named bad, and `bench` a file of figures.
FAKE_BURIN = """#!{python}
import json, sys, time
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    if "bad" in file:
        sys.exit("burin: error: a bad model")
    if "slow" in file:
        time.sleep(600)
    open(option("-o"), "w").write("package")
elif command == "verify":
    if "wrong" in file:
        sys.exit("burin: error: a wrong package")
    print("the network verified")
elif command == "bench":
    entries = [{{"batch": int(batch), "latency": {{"median_us": 20.0 * int(batch)}},
                 "back_to_back": {{"median_us": 10.0 * int(batch)}}}} for batch in option("--batch").split(",")]
    json.dump({{"network": entries}}, open(option("--json"), "w"))
"""


def torch_entry(us):
    return {"back_to_back": {"variant": "fused, channels_last", "back_to_back": {"median_us": us}},
            "latency": {"variant": "plain, contiguous", "latency": {"median_us": us + 3}}}


def burin_entry(us):
    return {"back_to_back": {"median_us": us}, "latency": {"median_us": us + 2}}


def row(network, batch, burin, fp32, **more):
    return {"network": network, "batch": batch, "burin": {"fp32": burin_entry(burin)} if burin else {},
            "torch": {"fp32": torch_entry(fp32)} if fp32 else {}, "variants": [], "error": {}, "faults": [], **more}


class Tables(unittest.TestCase):
    document = {"environment": {"device": "a GPU"},
                "rows": [row("lenet5", 1, 5.0, 20.0, error={"fp32": 1.5e-7}), row("vgg19", 1, 100.0, 900.0),
                         row("vgg19", 32, None, 8000.0, faults=["bench: exit code 5: no GPU"])]}

    def test_times_and_ratios(self):
        heads, cells = networks_table.table(self.document["rows"], "back_to_back")
        self.assertEqual(heads, ["network", "batch", "burin", "PyTorch FP32", "FP32 / burin", "best FP32"])
        self.assertEqual(cells[0], ["lenet5", "1", "5.00", "20.0", "4.00", "fused, channels_last"])
        self.assertEqual(cells[2], ["vgg19", "32", "-", "8000.0", "-", "fused, channels_last"])
        self.assertEqual(cells[3], ["geometric mean of 2", "1", "", "", "6.00", ""])
        self.assertEqual(len(cells), 4)

    def test_several_precisions_are_compared_by_their_best(self):
        both = row("vgg19", 1, 100.0, 900.0)
        both["burin"]["fp16"], both["torch"]["tf32"] = burin_entry(50.0), torch_entry(400.0)
        heads, cells = networks_table.table([both, row("lenet5", 1, 5.0, 20.0)], "back_to_back")
        self.assertEqual(heads[2:7], ["burin FP32", "burin FP16", "PyTorch FP32", "PyTorch TF32", "best / best"])
        self.assertEqual(cells[0][2:7], ["100.0", "50.0", "900.0", "400.0", "8.00"])
        self.assertEqual(cells[1][2:7], ["5.00", "-", "20.0", "-", "4.00"])
        self.assertEqual(cells[2][2:7], ["", "", "", "", "5.66"])

    def test_errors_beside_those_of_pytorch(self):
        halves = row("fcn", 1, 5.0, 20.0, error={"fp16": 0.13})
        halves["variants"] = [{"precision": "fp32", "error": 0.0}, {"precision": "fp16", "error": 0.19},
                              {"precision": "fp16", "error": 0.17}]
        self.assertEqual(networks_table.own_error(halves, "fp16"), 0.17)
        self.assertIsNone(networks_table.own_error(halves, "fp32"))
        self.assertIsNone(networks_table.own_error(halves, "bf16"))
        self.assertIn("fp16 differ from PyTorch's FP32 by 1.3e-01 of the largest, PyTorch's FP16 by 1.7e-01",
                      networks_table.report({"environment": {}, "rows": [halves]}))
        self.assertAlmostEqual(networks.allowed_error(halves, "fp16"), 1.5 * 0.17)
        self.assertEqual(networks.allowed_error(halves, "bf16"), networks.HALF_TOLERANCE)
        self.assertEqual(networks.allowed_error(halves, "fp32"), networks.TOLERANCE["fp32"])

    def test_report(self):
        text = networks_table.report(self.document)
        self.assertIn("lenet5, batch 1: outputs in fp32 differ from PyTorch's FP32 by 1.5e-07 of the largest", text)
        self.assertIn("vgg19, batch 32: FAILED: bench: exit code 5: no GPU", text)
        self.assertIn("| lenet5 | 1 | 7.00 | 23.0 | 3.29 | plain, contiguous |",
                      networks_table.report(self.document, markdown=True))


class Driver(ToolCase):
    program = "networks.py"
    tool = FAKE_BURIN

    def test_a_failure_does_not_stop_the_others(self):
        result, document = self.run_it("bad.onnx", "good.onnx", "--no-torch")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("bad, batch 1: FAILED: compile fp32: ", result.stdout)
        self.assertIn("a bad model", result.stdout)
        self.assertEqual([(entry["network"], entry["batch"]) for entry in document["rows"]],
                         [("bad", 1), ("bad", 32), ("good", 1), ("good", 32)])
        self.assertEqual(document["rows"][3]["burin"]["fp32"]["back_to_back"]["median_us"], 320.0)

    def test_a_package_that_is_there_is_taken(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "bad.burin").write_text("package")
        result, _ = self.run_it("bad.onnx", "--no-torch", "--batch", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn(" compile ", result.stderr)

    def test_precisions_have_packages_of_their_own(self):
        result, document = self.run_it("good.onnx", "--no-torch", "--batch", "8", "--precisions", "fp32,fp16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(document["rows"][0]["burin"]), ["fp32", "fp16"])
        self.assertIn("good.fp16.burin --batch 8 --arch native --precision fp16", result.stderr)

    def test_prepared_packages_are_measured_afterwards(self):
        models = ["bad.onnx", "wrong.onnx", "good.onnx"]
        result, document = self.run_it(*models, "--prepare", "2", "--verify")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIsNone(document)
        self.assertRegex(result.stdout, "bad: . s\n  FAILED: fp32: .*a bad model\nwrong: . s\n  FAILED: fp32: "
                                        ".*a wrong package\ngood: . s\n$")
        self.assertEqual((self.folder / "out" / "good.burin.verified").read_text(), "the network verified\n")
        result, document = self.run_it(*models, "--no-torch", "--batch", "1")
        self.assertNotIn(" compile ", result.stderr)
        self.assertEqual([bool(entry["burin"]) for entry in document["rows"]], [False, True, True])
        self.assertIn("wrong, batch 1: FAILED: verify fp32: exit code 1: burin: error: a wrong package", result.stdout)

    def test_what_takes_too_long_is_given_up(self):
        result, document = self.run_it("slow.onnx", "good.onnx", "--no-torch", "--batch", "1", "--timeout", "3")
        self.assertIn("slow, batch 1: FAILED: compile fp32: it was not done after 3.0 seconds", result.stdout)
        self.assertFalse((self.folder / "out" / "slow.burin.failed").exists())  # it may be done another time
        self.assertEqual([bool(entry["burin"]) for entry in document["rows"]], [False, True])

    def test_a_budget_ends_early_and_continue_goes_on(self):
        result, document = self.run_it("one.onnx", "two.onnx", "--no-torch", "--batch", "1", "--budget", "0.0001")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("No time was left for two", result.stdout)
        self.assertEqual([entry["network"] for entry in document["rows"]], ["one"])
        result, document = self.run_it("one.onnx", "two.onnx", "--no-torch", "--batch", "1", "--continue")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("one.burin", result.stderr)
        self.assertEqual([entry["network"] for entry in document["rows"]], ["one", "two"])
        result, _ = self.run_it("three.onnx", "four.onnx", "--prepare", "1", "--budget", "0.0001")
        self.assertRegex(result.stdout, "four: 0 s\\n  FAILED: no time was left to begin it")

    def test_every_family_is_exported_once(self):
        self.assertEqual(len(set(networks.ALL_EXPORTS)), len(networks.ALL_EXPORTS))
        own = {name.removeprefix("own:") for name in networks.ALL_EXPORTS if name.startswith("own:")}
        text = (HERE / "torch_models.py").read_text()
        for name in own:
            self.assertIn(f'"{name}": ', text)
        result, _ = self.run_it()
        self.assertIn("name a model, or --all-exports", result.stderr)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class AgainstOnnxRuntime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, path):
        import torch
        import torch_network
        model = onnxruntime_outputs.load(path)
        inputs = onnxruntime_outputs.make_inputs(model, 1, 2)
        expected = list(onnxruntime_outputs.run(model, inputs).values())
        for fuse in (False, True):
            network = torch_network.TorchNetwork(model).eval()
            if fuse:
                network.fuse()
            with torch.no_grad():
                outputs = network(*map(torch.from_numpy, inputs.values()))
            for output, values in zip(outputs, expected, strict=True):
                error = np.max(np.abs(output.numpy() - values)) / np.max(np.abs(values))
                self.assertLess(error, 1e-5, f"{path.name}, fused: {fuse}")

    def test_zoo(self):
        names = ["lenet5", "alexnet", "vgg19", "googlenet", "squeezenet", "resnet50", "mobilenet_v1"]
        for path in check_models.make(names, ["--width", "0.125"], str(self.folder)):
            with self.subTest(path.name):
                self.check(path)

    def test_random_graphs(self):
        for seed in range(1, 11):
            for path in random_graphs.write_graphs(self.folder / str(seed), seed):
                with self.subTest(seed=seed, graph=path.name):
                    self.check(path)

    def test_fused_layers(self):
        import torch_network
        counts = {"resnet50": 49, "vgg19": 16, "squeezenet": 26, "lenet5": 0}
        for path in check_models.make(list(counts), ["--width", "0.125"], str(self.folder)):
            self.assertEqual(torch_network.TorchNetwork(onnx.load(str(path))).fuse(), counts[path.stem], path.stem)

    def test_what_has_no_rule_is_refused(self):
        import torch_network
        node = onnx.helper.make_node("Einsum", ["x"], ["y"], name="product")
        values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2]) for name in "xy"]
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]))
        with self.assertRaisesRegex(torch_network.UnsupportedModel, "Einsum 'product': there is no rule"):
            torch_network.TorchNetwork(model)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class OwnNetworks(unittest.TestCase):
    """Those of torch_models.py, on small images."""

    def test_outputs_and_what_is_pruned(self):
        import torch
        import torch_exports
        import torch_models
        torch_exports.STATISTICS_BATCH = 2
        shapes = {"yolo_v5s": (1, 252, 85), "yolo_v8s": (1, 84, 84), "ssd_lite": (1, 3234, 4)}
        for name in torch_models.IMAGES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                image = 320 if name == "ssd_lite" else 64
                network = torch_exports.ExportedNetwork(f"own:{name}", 0.9, image, Path(folder) / "weights.pt")
                images = torch.randn(1, 3, image, image)
                with torch.no_grad():
                    outputs = network(images)
                    folded = network.folded()(images)
                self.assertEqual(tuple(outputs[0].shape), shapes.get(name, (1, 2, image, image)))
                for output, other in zip(outputs, folded, strict=True):
                    self.assertLess(float((output - other).abs().max() / output.abs().max()), 1e-4)
                self.assertFalse(any(isinstance(layer, torch.nn.BatchNorm2d) for layer in network.modules()))
                layers = [layer.weight for layer in network.modules() if isinstance(layer, torch.nn.Conv2d)]
                if name == "yolo_v8s":
                    self.assertEqual(layers[-1].flatten().tolist(), list(range(16)))
                    layers.pop()
                zeros = [float((weights == 0).float().mean()) for weights in layers if weights.shape[1] > 3]
                self.assertGreater(min(zeros), 0.89)


if __name__ == "__main__":
    unittest.main()
