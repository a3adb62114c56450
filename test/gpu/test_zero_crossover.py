"""Tests of zero_crossover.py that need no GPU: what is asked of burin, where curves cross, and the table."""
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import zero_crossover
from tool_case import ToolCase

# Skipping takes 10 us without zeros, and as much less as there are zeros; cuDNN 6, 4 and 3 us, in FP32, TF32 and FP16.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1] if name in options else None
timed = lambda us: {{"median_us": us}}
if command in ("compile", "tune"):
    if command == "tune":
        file, options = next(one for one in sys.argv if one.endswith("safetensors")), sys.argv[2:]
    if option("--activation-sparsity") == "0.9:blobs":
        sys.exit("burin: error: no plan serves it")
    open(option("-o"), "w").write(option("--precision") or "fp32")
elif command == "bench":
    zeros = option("--activation-sparsity")
    half = open(file).read() == "fp16"
    cudnn = {{"cudnn_fp16": timed(3.0)}} if half else {{"cudnn_fp32": timed(6.0), "cudnn_tf32": timed(4.0)}}
    us = 10 * (1 - float(zeros.split(":")[0])) if zeros else 5.0
    json.dump({{"rows": [{{"layer": "1x1.512-512.14", "batch": 1, "cold": timed(us), **cudnn}}]}}, open(option("--json"), "w"))
"""


class Crossovers(unittest.TestCase):
    def test_between_two_shares(self):
        self.assertEqual(zero_crossover.crossover([(0.5, 8.0), (0.7, 2.0)], 4.0), "0.60")

    def test_before_the_first_and_behind_the_last(self):
        self.assertEqual(zero_crossover.crossover([(0.5, 3.0), (0.7, 2.0)], 4.0), "< 0.50")
        self.assertEqual(zero_crossover.crossover([(0.5, 9.0), (0.7, 4.0)], 4.0), "> 0.70")

    def test_the_last_crossing_counts(self):
        self.assertEqual(zero_crossover.crossover([(0.3, 3.0), (0.5, 8.0), (0.7, 2.0)], 4.0), "0.60")

    def test_nothing_to_compare(self):
        self.assertEqual(zero_crossover.crossover([], 4.0), "-")
        self.assertEqual(zero_crossover.crossover([(0.5, 3.0)], None), "-")


class Runs(ToolCase):
    program = "zero_crossover.py"
    tool = FAKE_BURIN
    asked = ("--layers", "anchors:1x1.512-512.14")

    def test_a_table(self):
        result, document = self.run_it("--shares", "0.2,0.5,0.8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row["share"] for row in document["rows"]], ["no zeros", "fp16", "0.2", "0.5", "0.8"])
        # 8, 5 and 2 us: over 6 us before the half, 4 and 3 us behind it, and 5 us at it.
        self.assertRegex(result.stdout, r"1x1\.512-512\.14 +1 +6\.00 +4\.00 +3\.00 +5\.00 +8\.00 +5\.00 +2\.00 +0\.38 +0\.57 +0\.67 +0\.50")
        self.assertIn("--kernels zero_skip --activation-sparsity 0.5:random", result.stderr)
        self.assertIn("--precision fp16 --layout nchw8", result.stderr)

    def test_tuned_and_a_share_that_fails(self):
        result, document = self.run_it("--shares", "0.8,0.9", "--pattern", "blobs", "--plans", "9", "--markdown")
        self.assertEqual(result.returncode, 1)
        self.assertIn("tune --plans 9 ", result.stderr)
        self.assertIn("FAILED: 0.9: exit code 1: burin: error: no plan serves it", result.stdout)
        self.assertIn("| < 0.80 |", result.stdout)
        again, _ = self.run_it("--shares", "0.8,0.7", "--pattern", "blobs", "--plans", "9", "--continue", "--budget", "-1")
        self.assertIn("not begun: 0.7 (--budget)", again.stdout)
        self.assertEqual(again.stderr.count("+ "), 0)

    def test_bad_values(self):
        for arguments, message in ((["--shares", "2"], "invalid"), (["--layers", "anchors:x"], "'anchors:x' is no layer")):
            result, _ = self.run_it(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
