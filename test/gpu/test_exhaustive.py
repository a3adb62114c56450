"""Tests of exhaustive.py that need no GPU: what is asked of burin, how two tunings are compared, and the table."""
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import exhaustive
from tool_case import ToolCase

# Tunes as burin does: with many plans it finds one that takes half the time.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "tune":
    if "3x3" in file:
        sys.exit("burin: note: something\\nburin: error: no plan serves it")
    open(option("-o"), "w").write(" ".join(options))
elif command == "inspect":
    made = open(file).read().split()
    plans, batches = int(made[made.index("--plans") + 1]), made[made.index("--batch") + 1].split(",")
    candidates = [{{"provider": "conv_dense", "plan": "splits=1", "us": 9.0}}, {{"provider": "conv_baked", "plan": "tile=1x1x1",
                    "us": 6.0}}, {{"provider": "conv_cudnn", "plan": "algorithm=fft", "fault": "it refuses"}}]
    if plans > 12:
        candidates.append({{"provider": "conv_streamed", "plan": "cluster=2", "us": 3.0}})
    rows = [{{"layer": "a", "batch": int(batch), "tuning": {{"chosen": 1, "candidates": candidates}}}} for batch in batches]
    json.dump({{"rows": rows}}, sys.stdout)
"""


def candidate(plan, us=None, fault=None):
    return {"provider": "conv_baked", "plan": plan, **({"us": us} if us else {}), **({"fault": fault} if fault else {})}


def tuning(chosen, *candidates):
    return {"chosen": chosen, "candidates": list(candidates)}


class Comparison(unittest.TestCase):
    def test_the_pick_has_the_time_of_the_second_run(self):
        row = exhaustive.compare(tuning(1, candidate("a", 8.0), candidate("b", 5.0)),
                                 tuning(0, candidate("c", 4.0), candidate("b", 4.4), candidate("d", fault="wrong")))
        self.assertEqual((row["pick"], row["pick_us"], row["pick_first_us"], row["beside"]), ("conv_baked b", 4.4, 5.0, True))
        self.assertEqual((row["best"], row["best_us"]), ("conv_baked c", 4.0))
        self.assertAlmostEqual(row["ratio"], 1.1)
        self.assertEqual((row["few"], row["many"], row["faults"], row["models_us"]), (2, 2, 1, 4.0))

    def test_a_pick_that_was_not_tried_again(self):
        row = exhaustive.compare(tuning(0, candidate("a", 3.0)), tuning(0, candidate("b", 4.0)))
        self.assertFalse(row["beside"])
        self.assertAlmostEqual(row["ratio"], 0.75)

    def test_what_has_no_time_is_a_fault(self):
        with self.assertRaisesRegex(exhaustive.Failure, "the time was up"):
            exhaustive.compare(tuning(0, candidate("a", fault="the time was up")), tuning(0, candidate("b", 4.0)))
        with self.assertRaisesRegex(exhaustive.Failure, "no candidate"):
            exhaustive.compare(tuning(0, candidate("a", 1.0)), tuning(0, candidate("b", fault="wrong")))

    def test_the_models_choice_may_have_failed(self):
        row = exhaustive.compare(tuning(0, candidate("a", 3.0)), tuning(1, candidate("b", fault="no"), candidate("a", 2.0)))
        self.assertIsNone(row["models_us"])

    def test_times(self):
        self.assertEqual([exhaustive.seconds_of(text) for text in ("90s", "2.5m", "1h")], [90, 150, 3600])
        with self.assertRaises(exhaustive.argparse.ArgumentTypeError):
            exhaustive.seconds_of("5 minutes")


class Runs(ToolCase):
    program = "exhaustive.py"
    tool = FAKE_BURIN

    def test_two_layers_one_of_which_fails(self):
        result, document = self.run_it("--layers", "anchors:3x3.64-64.56,anchors:1x1.512-1024.7", "--sparsity", "0.95")
        self.assertEqual(result.returncode, 1, result.stderr)
        rows = document["rows"]
        self.assertEqual([(row["layer"], row["batch"], row["fault"]) for row in rows],
                         [("3x3.64-64.56", 1, "exit code 1: burin: error: no plan serves it"),
                          ("3x3.64-64.56", 32, "exit code 1: burin: error: no plan serves it"),
                          ("1x1.512-1024.7", 1, ""), ("1x1.512-1024.7", 32, "")])
        self.assertAlmostEqual(rows[2]["ratio"], 2.0)
        self.assertRegex(result.stdout, r"1x1\.512-1024\.7 +32 +9\.00 +6\.00 +3\.00 +2\.000 +2 / 3 +0 / 0 +"
                                        r"conv_baked tile=1x1x1 +conv_streamed cluster=2")
        self.assertIn("FAILED: exit code 1: burin: error: no plan serves it", result.stdout)
        self.assertIn("2 of 4 rows: pick / best has the geometric mean 2.000, at most 2.000; the pick is the best plan in 0, "
                      "within 5 % of it in 0", result.stdout)
        for plans, budget in (("12", "2m"), ("100", "8m")):
            self.assertIn(f"--plans {plans} --budget {budget} --anew -q", result.stderr)
        self.assertNotIn("--layout", result.stderr)

    def test_halves_are_in_nchw_unless_told_otherwise(self):
        result, _ = self.run_it("--layers", "anchors:1x1.512-1024.7", "--precision", "fp16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--precision fp16 --layout nchw", result.stderr)
        result, _ = self.run_it("--layers", "anchors:1x1.512-1024.7", "--precision", "fp16",
                                "--tune-option=--kernels=gathered")
        self.assertIn("--precision fp16 --kernels=gathered", result.stderr)

    def test_a_budget_ends_early_and_continue_goes_on(self):
        layers = ["--layers", "anchors:1x1.512-1024.7,anchors:1x1.512-512.14"]
        result, document = self.run_it(*layers, "--budget", "0.001")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No time was left for 1x1.512-512.14", result.stdout)
        self.assertEqual(len(document["rows"]), 2)
        result, document = self.run_it(*layers, "--continue")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(document["rows"]), 4)
        self.assertEqual(result.stderr.count(" tune "), 2)

    def test_what_used_all_its_time_is_not_exhaustive(self):
        result, document = self.run_it("--layers", "anchors:1x1.512-1024.7", "--batch", "1", "--most-budget", "0s",
                                       "--markdown")
        self.assertTrue(document["rows"][0]["cut_short"])
        self.assertIn("(cut short)", result.stdout)
        self.assertIn("1 were cut short, and are not exhaustive", result.stdout)
        self.assertIn("| 1x1.512-1024.7 | 1 | 9.00 | 6.00 | 3.00 | 2.000 |", result.stdout)

    def test_ten_layers_by_default(self):
        options = exhaustive.parse_arguments(["burin", "--out", "out"])
        self.assertEqual(len(set(options.layers)), 10)

    def test_bad_values(self):
        for arguments, message in ((["--layers", "anchors:none"], "'anchors:none' is no layer"),
                                   (["--most-budget", "soon"], "--most-budget: 'soon' is no time")):
            result, _ = self.run_it(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
