"""Tests of joint_zeros.py that need no GPU: what is asked of burin, how steps become layers, and the table."""
import unittest

import joint_zeros
from tool_case import ToolCase

# Each interval has 1 us too many; conv2 is two steps. With weights alone it takes 10 us, with the input alone 20, with maps 8.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1] if name in options else None
timed = lambda us: {{"median_us": us}}
if command == "compile":
    way = 20 if option("--kernels") == "zero_skip" else 8 if "--skip-dead-tiles" in options else 10
    if option("--precision"):
        sys.exit("burin: error: no plan serves it")
    open(option("-o"), "w").write(str(way))
elif command == "bench" and option("--baseline"):
    row = lambda layer, kind, us: {{"layer": layer, "kind": kind, "batch": 1, "cudnn_fp32": timed(us), "cudnn_tf32": None}}
    rows = [row("conv2", "convolution", 10.0), row("pool", "pool", 7.0), row("conv2", "convolution", 5.0)]
    json.dump({{"rows": rows}}, open(option("--json"), "w"))
elif command == "bench":
    us = float(open(file).read())
    step = lambda name, kind, us: {{"operator": name, "kind": kind, "time": timed(us)}}
    steps = [step("conv2", "convolution", us / 2 + 1), step("pool", "pool", 5.0), step("conv2", "convolution", us / 2 + 1)]
    network = [{{"batch": int(batch), "latency": timed(us + 3), "empty_interval": timed(1.0), "steps": steps}} for batch in (1, 32)]
    json.dump({{"network": network}}, open(option("--json"), "w"))
"""


class Gains(unittest.TestCase):
    def test_over_the_better_of_both_alone(self):
        times = {"weights": 12.0, "input": 10.0, "maps": 8.0, "weights-tf32": 6.0, "dead-tf32": 5.0}
        self.assertEqual(joint_zeros.gain(times, "FP32"), 1.25)
        self.assertEqual(joint_zeros.gain(times, "TF32"), 1.2)

    def test_of_what_was_not_measured(self):
        self.assertIsNone(joint_zeros.gain({"weights": 12.0, "maps": 8.0}, "FP32"))
        self.assertIsNone(joint_zeros.gain({"weights-tf32": 12.0}, "TF32"))


class Runs(ToolCase):
    program = "joint_zeros.py"
    tool = FAKE_BURIN

    def setUp(self):
        super().setUp()
        for name in ("net.onnx", "net.npy"):
            (self.folder / name).touch()
        self.asked = ("--model", f"{self.folder / 'net.onnx'}={self.folder / 'net.npy'}")

    def test_a_table(self):
        result, document = self.run_it("--ways", "weights,input,maps")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(document["rows"]), 12)  # three ways, two batches, a layer and the network
        self.assertRegex(result.stdout, r"net +conv2 +1 +10\.0 +20\.0 +8\.00 +1\.25 +-")
        self.assertRegex(result.stdout, r"net +whole network +32 +13\.0 +23\.0 +11\.0 +- +-")
        self.assertRegex(result.stdout, r"net +32 +1 +0\.50 \(0\.50 to 0\.50\) +1\.25 \(1\.25 to 1\.25\) +-")
        self.assertIn("FP32: both together over the better of both alone, 2 layers: 1.25 (1.25 to 1.25); at least 1.3 in 0", result.stdout)
        self.assertIn(f"--kernels zero_skip --activations={self.folder / 'net.npy'}", result.stderr)

    def test_cudnn_beside_them(self):
        result, document = self.run_it("--ways", "weights,input", "--baseline", "--batch", "1,32")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"net +1 +weights +1\.50 \(1\.50 to 1\.50\) +- +-")
        self.assertRegex(result.stdout, r"net +1 +input +0\.75 \(0\.75 to 0\.75\) +- +-")
        self.assertNotRegex(result.stdout, r"net +32 +weights +1\.50")  # there were no times of 32 images
        self.assertEqual(sum(bool(row["cudnn"]) for row in document["rows"]), 2)  # neither the network nor the pool

    def test_a_fault_is_a_row(self):
        result, document = self.run_it("--ways", "weights,weights-tf32")
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAILED: weights-tf32 net: exit code 1: burin: error: no plan serves it", result.stdout)
        self.assertEqual(sum(not row["fault"] for row in document["rows"]), 4)

    def test_what_is_no_way_or_no_model(self):
        result, _ = self.run_it("--ways", "all")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--ways: 'all' is none of weights, input", result.stderr)
        result, _ = self.run_it("--model", "net.onnx=nothing.npy")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'net.onnx=nothing.npy' is not MODEL.onnx=INPUTS.npy", result.stderr)
        result, _ = self.run_it(*self.asked)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--model: two are called net", result.stderr)


if __name__ == "__main__":
    unittest.main()
