"""Tests of strategies.py that need no GPU: which strategies there are, what becomes of one that fails, and the table."""
import argparse
import json
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "networks")]

import strategies
from tool_case import ToolCase

# Answers as burin does, which has no kernels of Winograd's here.
FAKE_BURIN = """#!{python}
import json, sys
import numpy as np
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command in ("compile", "tune"):
    if "winograd" in options:
        sys.exit("burin: error: no Winograd today")
    if command == "tune" and "--budget" not in options:
        sys.exit("burin: error: tuning without an end")
    open(option("-o"), "w").write(" ".join([command, *options]))
elif command == "bench":
    made = open(file).read().split()
    us = 5.0 if made[0] == "tune" else 20.0 if "dense" in made else 10.0
    steps = [{{"kind": "convolution", "kernel": "conv_dense, 8 blocks of 32"}}, {{"kind": "pool", "kernel": "pool, 1 block"}},
             {{"kind": "convolution", "kernel": "tile 1x4x4, 2 groups"}},
             {{"kind": "convolution", "kernel": "conv_dense, 4 blocks of 32"}}]
    entries = [{{"batch": int(batch), "steps": steps, "latency": {{"median_us": us * int(batch) + 2}},
                 "back_to_back": {{"median_us": us * int(batch)}}}} for batch in option("--batch").split(",")]
    json.dump({{"network": entries}}, open(option("--json"), "w"))
"""


def row(strategy, us, batch=1, precision="fp32", **more):
    times = {"back_to_back": us, "latency": us + 1} if us else {}
    return {"network": "alexnet", "batch": batch, "precision": precision, "strategy": strategy, "fault": "", **times, **more}


class Choices(unittest.TestCase):
    def test_each_precision_has_the_choice_and_both_halves_of_it(self):
        for precision in strategies.PRECISIONS:
            made = strategies.burin_strategies(precision)
            names = [one.name for one in made]
            self.assertEqual(len(set(names)), len(names))
            self.assertEqual(made[0], strategies.Strategy(strategies.CHOICE, precision))
            alone = next(one for one in made if one.name == "choice alone, by models")
            self.assertEqual(alone.options, ("--layout", "nchw"))
            everything = strategies.strategies_of([precision], [], True)
            self.assertEqual([one.name for one in everything[-2:]], ["both, tuned", "choice alone, tuned"])
            self.assertEqual([one for one in everything if one.tune], everything[-2:])

    def test_layouts_alone_differ_from_one_kind_by_the_layout(self):
        for precision in ("fp32", "fp16"):
            made = strategies.burin_strategies(precision)
            free = next(one for one in made if one.name.startswith("layouts alone"))
            kind = free.options[free.options.index("--kernels") + 1]
            pinned = [one for one in made if one.name.startswith(f"all {kind}")]
            self.assertEqual(len(pinned), 1)
            self.assertNotEqual(pinned[0].options, free.options)

    def test_cudnn_has_all_algorithms_where_burin_calls_it(self):
        for precision, count in (("fp32", 8), ("tf32", 8), ("fp16", 0)):
            calls = [one for one in strategies.burin_strategies(precision) if "cudnn" in one.options]
            self.assertEqual(len(calls), count)
            self.assertEqual(len({one.options for one in calls}), count)

    def test_pytorch_has_heuristics_and_measurement(self):
        made = strategies.torch_strategies("fp32")
        self.assertEqual(len(made), 18)
        self.assertEqual(len({one.torch for one in made}), 18)
        for one in made:
            self.assertEqual("measured" in one.name, one.torch[2])
            self.assertEqual("graph" in one.name, one.torch[3])

    def test_only_and_order(self):
        made = strategies.strategies_of(["fp16", "fp32"], ["both*", "PyTorch plain*eager"], True)
        self.assertEqual(made[0].precision, "fp32")
        self.assertEqual(made[-1].precision, "fp16")
        self.assertEqual(sum(bool(one.torch) for one in made), 8)
        self.assertFalse(any(one.torch for one in strategies.strategies_of(["fp32"], [], False)))

    def test_packages_have_names_of_their_own(self):
        made = strategies.strategies_of(strategies.PRECISIONS, [], False)
        names = {strategies.package_of(Path("out"), "alexnet", one) for one in made}
        self.assertEqual(len(names), len(made))

    def test_kernels_of_convolutions(self):
        steps = [{"kind": "convolution", "kernel": text} for text in
                 ("cuDNN 9.19.0 WINOGRAD", "tile 1x2x3, 4 groups", "cuDNN 9.19.0 WINOGRAD")]
        self.assertEqual(strategies.kernels_of({"steps": [*steps, {"kind": "pool", "kernel": "pool, 2"}]}),
                         "2 cuDNN 9.19.0 WINOGRAD, 1 conv_baked")


class Table(unittest.TestCase):
    def test_ratios_are_to_the_choice_of_the_same_precision_and_batch(self):
        rows = [row(strategies.CHOICE, 10.0, kernels="5 conv_dense", error=1e-6), row("all dense", 25.0),
                row("all dense", 30.0, precision="tf32"), row(strategies.CHOICE, 60.0, batch=128),
                row("all streamed", None, fault="exit code 4: no plan"), row("all dense", 90.0, batch=128)]
        heads, cells = strategies.cells_of(rows)
        self.assertEqual(heads[4:7], ["us", "latency us", "/ choice"])
        self.assertEqual(cells[0][3:], [strategies.CHOICE, "10.0", "11.0", "1.00", "1.0e-06", "5 conv_dense"])
        self.assertEqual(cells[1][4:7], ["25.0", "26.0", "2.50"])
        self.assertEqual(cells[2][4:9], ["-", "-", "-", "-", "FAILED: exit code 4: no plan"])
        self.assertEqual(cells[3][4:7], ["30.0", "31.0", "-"])
        self.assertEqual(cells[5][4:7], ["90.0", "91.0", "1.50"])

    def test_columns_are_aligned(self):
        text = strategies.report({"environment": {"device": "a GPU"}, "rows": [row("a", 5.0), row("all dense", 1000.0)]})
        lines = text.splitlines()
        self.assertEqual(lines[0], "device a GPU")
        self.assertTrue(lines[-2].startswith("alexnet      1  fp32       a            5.00"), lines[-2])
        self.assertTrue(lines[-1].startswith("alexnet      1  fp32       all dense  1000.0"), lines[-1])
        self.assertIn("| alexnet | 1 | fp32 | a | 5.00 | 6.00 | - | - |  |",
                      strategies.report({"environment": {}, "rows": [row("a", 5.0)]}, markdown=True))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.options = argparse.Namespace(batch="1,128", budget=None, json=self.folder / "all.json")
        self.document = {"environment": {}, "rows": []}

    def run_all(self, made, measure, started=0):
        return strategies.run_all(self.options, "alexnet", made, measure, self.document, started)

    def test_a_fault_is_in_its_rows_and_the_others_go_on(self):
        def measure(strategy, rows):
            for batch, entry in rows.items():
                if strategy.name == "bad" and batch == 128:
                    raise RuntimeError("out of memory\nand a long story")
                entry.update(back_to_back=1.0, latency=2.0, error=1.0 if strategy.name == "wrong" else 0.0)

        made = [strategies.Strategy(name, "fp32") for name in ("good", "bad", "wrong")]
        self.assertEqual(self.run_all(made, measure), [])
        faults = [(entry["strategy"], entry["batch"], entry["fault"]) for entry in self.document["rows"]]
        self.assertEqual(faults[:4], [("good", 1, ""), ("good", 128, ""), ("bad", 1, ""), ("bad", 128, "out of memory")])
        self.assertIn("outputs differ from PyTorch's FP32 by 1.0e+00", faults[4][2])
        self.assertEqual(json.loads(self.options.json.read_text()), self.document)

    def test_nan_is_a_fault(self):
        def measure(_, rows):
            for entry in rows.values():
                entry.update(back_to_back=1.0, latency=2.0, error=float("nan"))
        self.run_all([strategies.Strategy("a", "fp16")], measure)
        self.assertIn("differ", self.document["rows"][0]["fault"])

    def test_what_is_there_is_left_out_and_time_ends(self):
        calls = []
        made = [strategies.Strategy(name, "fp32") for name in ("one", "two")]
        self.document["rows"] = [row("one", 3.0)]
        self.run_all(made, lambda strategy, _: calls.append(strategy.name))
        self.assertEqual(calls, ["two"])
        self.options.budget = 0.0
        left = self.run_all([strategies.Strategy("three", "tf32")], lambda *_: calls.append("never"))
        self.assertEqual(left, ["alexnet, tf32: three"])
        self.assertEqual(calls, ["two"])


class Driver(ToolCase):
    program = "strategies.py"
    tool = FAKE_BURIN

    def setUp(self):
        super().setUp()
        import onnx
        values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2]) for name in "xy"]
        node = onnx.helper.make_node("Relu", ["x"], ["y"])
        self.model = self.folder / "net.onnx"
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:])), str(self.model))
        self.asked = (self.model, "--no-torch", "--precisions", "fp32")

    def test_all_of_burins(self):
        result, document = self.run_it("--batch", "1,8")
        self.assertEqual(result.returncode, 1, result.stderr)  # Winograd failed
        made = strategies.strategies_of(["fp32"], [], False)
        self.assertEqual(len(document["rows"]), 2 * len(made))
        failed = {entry["strategy"] for entry in document["rows"] if entry["fault"]}
        self.assertEqual(failed, {"all winograd"})
        line = next(line for line in result.stdout.splitlines() if "both, tuned" in line and "  8  " in line)
        self.assertRegex(line, r"both, tuned +40\.0 +42\.0 +0\.50 +- +2 conv_dense, 1 conv_baked$")
        self.assertIn("FAILED: exit code 1: burin: error: no Winograd today", result.stdout)
        self.assertIn("--budget 3m", result.stderr)

    def test_prepared_then_measured(self):
        result, document = self.run_it("--prepare", "2", "--only", "all *", "--only", "both*")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIsNone(document)
        self.assertRegex(result.stdout, "net, fp32: all winograd: . s\n  FAILED: exit code 1")
        self.assertNotIn("tuned", result.stdout)
        result, document = self.run_it("--only", "all dense", "--batch", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn(" compile ", result.stderr)
        self.assertEqual([entry["back_to_back"] for entry in document["rows"]], [20.0])

    def test_bad_values(self):
        result, _ = self.run_it("--only", "nothing")
        self.assertIn("no strategy matches --only", result.stderr)
        result, _ = self.run_it("--precisions", "fp8")
        self.assertIn("'fp8' is none of fp32, tf32, fp16", result.stderr)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
