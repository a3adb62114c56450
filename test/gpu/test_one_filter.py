"""Tests of one_filter.py that need no GPU: the models, what is asked of burin, what is compared, and the tables."""
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import one_filter
from tool_case import ToolCase

# Measures as burin does: zero_skip takes half the time of the models' choice, and leaves no pool to a step of its own.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    if "alexnet" in file:
        sys.exit("burin: error: no plan serves it")
    open(option("-o"), "w").write(option("--kernels"))
elif command == "bench":
    skips = open(file).read() == "zero_skip"
    timed = lambda us: {{"median_us": us}}
    rows = []
    for name in ("conv1", "conv2"):
        row = {{"layer": name, "symbol": "burin_" + name, "batch": 1, "nonzeros": 25, "cold": timed(2.0 if skips else 4.0),
                "cudnn_fp32": timed(8.0), "cudnn_calls": "conv+bias+relu, max pool"}}
        if name == "conv2" and not skips:
            row.update(cudnn_calls="conv", cudnn_fp32=timed(100.0))
            rows.append({{"layer": "pool2", "symbol": "burin_pool2", "batch": 1, "cold": timed(3.0), "cudnn_fp32": timed(3.0),
                          "cudnn_calls": "max pool"}})
        rows.append(row)
    json.dump({{"rows": rows}}, open(option("--json"), "w"))
"""


class Models(unittest.TestCase):
    def test_each_layer_has_one_channel_and_one_filter(self):
        import onnx

        for network, layers in one_filter.NETWORKS.items():
            graph = one_filter.make_model(layers).graph
            onnx.checker.check_graph(graph)
            self.assertEqual(len(graph.input), len(layers))
            shapes = {value.name: [one.dim_value for one in value.type.tensor_type.shape.dim[1:]] for value in graph.output}
            for layer in layers:
                extent = (layer.extent + 2 * layer.pad - layer.kernel) // layer.stride + 1
                if layer.pool:
                    extent = (extent - layer.pool[0]) // layer.pool[1] + 1
                self.assertEqual(shapes[f"{layer.name}.out"], [1, extent, extent], f"{network} {layer.name}")

    def test_vgg19_has_sixteen_of_which_five_are_pooled(self):
        layers = one_filter.NETWORKS["vgg19"]
        self.assertEqual(len(layers), 16)
        self.assertEqual([layer.name for layer in layers if layer.pool], ["conv1_2", "conv2_2", "conv3_4", "conv4_4", "conv5_4"])


class Runs(ToolCase):
    program = "one_filter.py"
    tool = FAKE_BURIN

    def test_two_kinds_and_a_network_that_fails(self):
        result, document = self.run_it("--networks", "alexnet,lenet", "--zeros", "0.8")
        self.assertEqual(result.returncode, 1, result.stderr)
        faults = [row for row in document["rows"] if row["fault"]]
        self.assertEqual([(row["network"], row["kernels"], row["fault"]) for row in faults],
                         [("alexnet", kind, "exit code 1: burin: error: no plan serves it") for kind in ("auto", "zero_skip")])
        rows = [row for row in document["rows"] if not row["fault"]]
        self.assertEqual([(row["layer"], row["kernels"], row["us"], row["pool_is_fused"]) for row in rows],
                         [("conv1", "auto", 4.0, True), ("conv2", "auto", 4.0, False),
                          ("conv1", "zero_skip", 2.0, True), ("conv2", "zero_skip", 2.0, True)])
        # What cuDNN takes for a convolution alone is not compared with a layer that is to be pooled.
        self.assertRegex(result.stdout, r"lenet +0\.8 +auto +yes +1 +2\.00 +2\.00 +2\.00")
        self.assertRegex(result.stdout, r"lenet +0\.8 +zero_skip +yes +2 +4\.00 +4\.00 +4\.00")
        self.assertIn("conv (the pool is another step)", result.stdout)
        self.assertIn("--activation-sparsity 0.8:random --kernels zero_skip -q", result.stderr)
        self.assertIn(" verify ", result.stderr)

    def test_continue_goes_on(self):
        asked = ["--networks", "lenet", "--kernels", "auto"]
        self.assertEqual(self.run_it(*asked, "--zeros", "0.5")[0].returncode, 0)
        result, document = self.run_it(*asked, "--zeros", "0.5,0.9", "--continue", "--markdown")
        self.assertEqual(result.stderr.count(" bench "), 1)
        self.assertEqual([row["zeros"] for row in document["rows"]], ["0.5", "0.5", "0.9", "0.9"])
        self.assertIn("| lenet | conv1 | 1 | 0.9 | auto |", result.stdout)

    def test_bad_values(self):
        for arguments, message in ((["--networks", "resnet"], "'resnet' is none of"), (["--zeros", "2"], "no share from 0 to 1")):
            result, _ = self.run_it(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
