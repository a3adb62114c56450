"""Tests of dead_channel_bound.py that need no GPU: the layers without channels, what is asked of burin, and the tables."""
import math
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import make_layers
from tool_case import ToolCase

# Takes as many microseconds as a layer has input channels, half of that in a chain.
FAKE_BURIN = """#!{python}
import json, struct, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    with open(file, "rb") as weights:
        header = json.loads(weights.read(struct.unpack("<Q", weights.read(8))[0]))
    shapes = {{name.removesuffix(".weight"): entry["shape"] for name, entry in header.items() if name != "__metadata__"}}
    if shapes["1x1.512-512.14"][1] < 150:
        sys.exit("burin: error: no plan serves it")
    json.dump({{"shapes": shapes, "batches": option("--batch").split(","), "options": options}}, open(option("-o"), "w"))
elif command == "bench":
    made = json.load(open(file))
    timed = lambda us: {{"median_us": us}}
    json.dump({{"rows": [{{"layer": layer, "batch": int(batch), "symbol": "burin_" + layer, "cold": timed(shape[1]),
                           "chained": timed(shape[1] / 2)}}
                         for layer, shape in made["shapes"].items() for batch in made["batches"]]}}, open(option("--json"), "w"))
"""


class Layers(unittest.TestCase):
    def test_a_share_of_the_channels_and_their_weights_are_gone(self):
        layer = {"name": "a", "shape": [3, 10, 2, 1]}
        weights = make_layers.random_weights(layer, make_layers.sparsity_of("0"), 1)
        shape, kept = make_layers.without_channels(layer, weights, make_layers.sparsity_of("0.3"), 1)
        self.assertEqual(shape, [3, 7, 2, 1])
        rows = lambda values, channels: [tuple(values[first:first + 2 * channels]) for first in range(0, len(values), 2 * channels)]
        pairs = lambda row: [row[i:i + 2] for i in range(0, len(row), 2)]
        for before, after in zip(rows(weights, 10), rows(kept, 7), strict=True):
            left = [pair for pair in pairs(before) if pair in pairs(after)]
            self.assertEqual(left, pairs(after))  # in their order

    def test_none_and_nearly_all(self):
        layer = {"name": "a", "shape": [2, 4, 1, 1]}
        weights = make_layers.random_weights(layer, make_layers.sparsity_of("0"), 1)
        self.assertEqual(make_layers.without_channels(layer, weights, make_layers.sparsity_of("0"), 1), ([2, 4, 1, 1], weights))
        self.assertEqual(make_layers.without_channels(layer, weights, make_layers.sparsity_of("0.99"), 1)[0], [2, 1, 1, 1])


class Runs(ToolCase):
    program = "dead_channel_bound.py"
    tool = FAKE_BURIN
    asked = ("--layers", "anchors:1x1.512-512.14,anchors:1x1.1024-256.14", "--sparsity", "0.98")

    def test_gains_and_a_share_that_fails(self):
        result, document = self.run_it("--dead", "0,0.5,0.8", "--batch", "1,32", "--precision", "tf32", "--option=--layout=n4c8hw")
        self.assertEqual(result.returncode, 1, result.stderr)
        right = [row for row in document["rows"] if not row["fault"]]
        self.assertEqual(len(right), 2 * 2 * 2)
        self.assertEqual({row["cold"] for row in right}, {512, 256, 1024})
        self.assertRegex(result.stdout, r"1x1\.512-512\.14 +1 +0\.98 +tf32 +--layout=n4c8hw +512\.0 +256\.0 +- +2\.00 +- +2\.00 +-")
        self.assertRegex(result.stdout, r"32 +0\.98 +tf32 +--layout=n4c8hw +0\.5 +2 +2\.00 +2\.00 +2\.00")
        self.assertIn("FAILED: 0.8 dead, tf32: exit code 1: burin: error: no plan serves it", result.stdout)
        self.assertIn("--activation relu -q --layout=n4c8hw", result.stderr)

    def test_continue_and_budget(self):
        self.assertEqual(self.run_it("--dead", "0")[0].returncode, 0)
        result, document = self.run_it("--dead", "0,0.5", "--continue", "--markdown")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count(" compile "), 1)
        self.assertTrue(all(math.isclose(row["cold"], 2 * row["chained"]) for row in document["rows"]))
        self.assertIn("| 1x1.1024-256.14 | 1 | 0.98 | fp32 | none | 1024.0 | 512.0 | 2.00 | 2.00 |", result.stdout)
        late, _ = self.run_it("--dead", "0,0.5,0.6", "--continue", "--budget", "-1")
        self.assertEqual(late.returncode, 1)
        self.assertIn("not begun: 0.6", late.stdout)

    def test_nothing_is_compared_with_a_share_that_failed(self):
        result, _ = self.run_it("--dead", "0.8,0,0.5")
        self.assertNotIn("2.00", result.stdout)

    def test_bad_layers(self):
        result, _ = self.run_it("--layers", "anchors:9x9.1-1.1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'anchors:9x9.1-1.1' is no layer of make_layers.py", result.stderr)


if __name__ == "__main__":
    unittest.main()
