"""Tests of networks.py that need no GPU: its tables, what it makes of burin's figures and of failures, and, where torch
is installed, that a model in torch computes what ONNX Runtime does."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "networks")]

import numpy as np
import onnx

import check_models
import networks_table
import onnxruntime_outputs
import random_graphs

HAS_TORCH = importlib.util.find_spec("torch") is not None

# Answers as burin does: `compile` writes the package, unless the model is named bad, and `bench` a file of figures.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    if "bad" in file:
        sys.exit("burin: error: a bad model")
    open(option("-o"), "w").write("package")
elif command == "bench":
    entries = [{{"batch": int(batch), "latency": {{"median_us": 20.0 * int(batch)}},
                 "back_to_back": {{"median_us": 10.0 * int(batch)}}}} for batch in option("--batch").split(",")]
    json.dump({{"network": entries}}, open(option("--json"), "w"))
"""


def torch_entry(us):
    return {"back_to_back": {"variant": "fused, channels_last", "back_to_back": {"median_us": us}},
            "latency": {"variant": "plain, contiguous", "latency": {"median_us": us + 3}}}


def row(network, batch, burin, fp32, **more):
    burin = burin and {"back_to_back": {"median_us": burin}, "latency": {"median_us": burin + 2}}
    return {"network": network, "batch": batch, "burin": burin, "torch": fp32 and {"fp32": torch_entry(fp32)} or {},
            "variants": [], "error": None, "faults": [], **more}


class Tables(unittest.TestCase):
    document = {"environment": {"device": "a GPU"},
                "rows": [row("lenet5", 1, 5.0, 20.0, error=1.5e-7), row("vgg19", 1, 100.0, 900.0),
                         row("vgg19", 32, None, 8000.0, faults=["bench: exit code 5: no GPU"])]}

    def test_times_and_ratios(self):
        heads, cells = networks_table.table(self.document["rows"], "back_to_back")
        self.assertEqual(heads, ["network", "batch", "burin", "PyTorch FP32", "FP32 / burin", "best FP32"])
        self.assertEqual(cells[0], ["lenet5", "1", "5.00", "20.0", "4.00", "fused, channels_last"])
        self.assertEqual(cells[2], ["vgg19", "32", "-", "8000.0", "-", "fused, channels_last"])
        self.assertEqual(cells[3], ["geometric mean of 2", "1", "", "", "6.00", ""])
        self.assertEqual(len(cells), 4)

    def test_report(self):
        text = networks_table.report(self.document)
        self.assertIn("lenet5, batch 1: outputs differ from PyTorch's FP32 by 1.5e-07 of the largest", text)
        self.assertIn("vgg19, batch 32: FAILED: bench: exit code 5: no GPU", text)
        self.assertIn("| lenet5 | 1 | 7.00 | 23.0 | 3.29 | plain, contiguous |",
                      networks_table.report(self.document, markdown=True))


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.burin = self.folder / "burin"
        self.burin.write_text(FAKE_BURIN.format(python=sys.executable))
        self.burin.chmod(0o755)

    def run_it(self, *arguments):
        command = [sys.executable, str(HERE / "networks.py"), str(self.burin), *map(str, arguments), "--out",
                   str(self.folder / "out"), "--json", str(self.folder / "all.json")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result, json.loads((self.folder / "all.json").read_text())

    def test_a_failure_does_not_stop_the_others(self):
        result, document = self.run_it("bad.onnx", "good.onnx", "--no-torch")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("bad, batch 1: FAILED: compile: ", result.stdout)
        self.assertIn("a bad model", result.stdout)
        self.assertEqual([(entry["network"], entry["batch"]) for entry in document["rows"]],
                         [("bad", 1), ("bad", 32), ("good", 1), ("good", 32)])
        self.assertEqual(document["rows"][3]["burin"]["back_to_back"]["median_us"], 320.0)

    def test_a_package_that_is_there_is_taken(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "bad.burin").write_text("package")
        result, _ = self.run_it("bad.onnx", "--no-torch", "--batch", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn(" compile ", result.stderr)


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


if __name__ == "__main__":
    unittest.main()
