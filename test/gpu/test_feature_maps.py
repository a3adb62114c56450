"""Tests of feature_maps.py and zero_patterns.py that need no photographs: what they count on small arrays, patterns next to
those of the C++, which pattern is nearest, and what is refused."""
import math
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import feature_maps
import zero_patterns
from zero_patterns import Pattern


class FeatureMaps(unittest.TestCase):
    def test_dead_tiles(self):
        zero = np.zeros((2, 5, 5), bool)
        zero[0] = True
        zero[1, 4, 4] = True
        self.assertEqual(zero_patterns.dead_tiles(zero, 5, 5).tolist(), [[[True]], [[False]]])
        self.assertEqual(zero_patterns.dead_tiles(zero, 4, 4)[1].tolist(), [[False, False], [False, True]])

    def test_products_are_counted_one_by_one(self):
        random = np.random.default_rng(1)
        for groups, stride, pads in ((1, (1, 1), (1, 1, 1, 1)), (2, (2, 1), (0, 1, 2, 0)), (4, (3, 2), (0, 0, 0, 0))):
            live, weights = random.random((4, 7, 6)) < 0.6, random.random((8, 4 // groups, 3, 2)) < 0.5
            padded = np.pad(live, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            rows, columns = (padded.shape[1] - 3) // stride[0] + 1, (padded.shape[2] - 2) // stride[1] + 1
            count = 0
            for k, y, x in np.ndindex(8, rows, columns):
                first = k // (8 // groups) * (4 // groups)
                window = padded[first:first + 4 // groups, y * stride[0]:y * stride[0] + 3,
                                x * stride[1]:x * stride[1] + 2]
                count += int((window & weights[k]).sum())
            self.assertEqual(feature_maps.products(live, weights, stride, pads, groups), count)

    def test_multiplications_that_are_left(self):
        values = np.ones((2, 8, 16), np.float32)
        values[0] = 0  # a dead channel
        values[1, :, :8] = 0  # a dead tile
        values[1, 0, 8] = 0
        weights = np.ones((2, 2, 1, 1), np.float32)
        weights[0, 1] = 0
        found = feature_maps.statistics(values, weights, stride=(1, 1), pads=(0, 0, 0, 0), groups=1)
        live = 63 / 256
        np.testing.assert_allclose(found, [193 / 256, 0.5, 0.75, 0.75, live, live / 2, 0.25, 0.125])

    def test_refusals(self):
        from onnx import TensorProto, helper

        def refusal_of(argument):
            with self.assertRaises(feature_maps.UserError) as caught:
                feature_maps.Model(argument)
            return str(caught.exception)

        with tempfile.TemporaryDirectory() as folder:
            def written(side, initializers=("w",), **attributes):
                image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])
                node = helper.make_node("Conv", ["x", "w"], ["y"], name="c", **attributes)
                graph = helper.make_graph([node], "g", [image], [helper.make_empty_tensor_value_info("y")], [
                    helper.make_tensor(name, TensorProto.FLOAT, [1, 3, 1, 1], [1.0] * 3) for name in initializers])
                path = f"{folder}/model.onnx"
                with open(path, "wb") as file:
                    file.write(helper.make_model(graph).SerializeToString())
                return path

            self.assertEqual(feature_maps.Model("caffe:" + written(8)).side, 8)
            self.assertIn("'other' is none of imagenet, caffe, unit", refusal_of("other:" + written(8)))
            self.assertIn("c: only 2-D convolutions with constant weights", refusal_of(written(8, dilations=[2, 2])))
            self.assertIn("without dilation and auto_pad", refusal_of(written(8, auto_pad="SAME_UPPER")))
            self.assertIn("with constant weights", refusal_of(written(8, initializers=())))
            self.assertIn("no square image of three channels and known size", refusal_of(written("N")))
            self.assertIn("nowhere.onnx", refusal_of(f"{folder}/nowhere.onnx"))
            broken = f"{folder}/broken.onnx"
            with open(broken, "wb") as file:
                file.write(b"\xff" * 9)
            self.assertIn("broken.onnx: ", refusal_of(broken))

    def test_models_are_measured_and_maps_fitted_once(self):
        from onnx import TensorProto, helper

        class Photograph:
            def resize(self, size):
                return np.full((*size, 3), 255, np.float32)

        def weights(name, values):
            return helper.make_tensor(name, TensorProto.FLOAT, [len(values) // 3, 3, 1, 1], values)

        with tempfile.TemporaryDirectory() as folder:
            # All is 1: of the first layer's three channels two are dead behind ReLU, and two others read them.
            names = ("first.weight", "left.weight", "right.weight")
            nodes = [helper.make_node("Conv", ["x", names[0]], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                     helper.make_node("Conv", ["b", names[1]], ["c"]), helper.make_node("Conv", ["b", names[2]], ["d"])]
            values = ([1.0] * 3 + [-1.0] * 6, [1.0] * 3, [1.0, 0.0, 0.0])
            image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])
            result = helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 1, 4, 4])
            graph = helper.make_graph(nodes, "g", [image], [result], list(map(weights, names, values)))
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
            path = f"{folder}/model.onnx"
            with open(path, "wb") as file:
                file.write(model.SerializeToString())
            rows = feature_maps.Model("unit:" + path).measure([Photograph(), Photograph()])
        self.assertEqual(list(rows), list(names))
        self.assertEqual((rows["first.weight"]["zeros"], rows["first.weight"]["dead 4x4"]), (0, 0))
        for name in names[1:]:
            self.assertEqual((rows[name]["reads"], rows[name]["shape"]), ("b", [3, 4, 4]))
            self.assertAlmostEqual(rows[name]["zeros"], 2 / 3)
            self.assertAlmostEqual(rows[name]["dead 16x16"], 2 / 3)
            self.assertEqual(rows[name][zero_patterns.STRETCH], 4)
        self.assertAlmostEqual(rows["right.weight"]["weights"], 1 / 3)
        fitted = feature_maps.fit({path: rows})[path]
        self.assertEqual(list(fitted), ["b"])  # the image has no zeros, and the others read one map
        self.assertEqual(zero_patterns.nearest(fitted["b"]), Pattern("dead"))

    def test_tables(self):
        rows = {"a.weight": {"reads": "x", "stretch": 1.25, "zeros": 0.5},
                "b": {"reads": "y", "stretch": 0, "zeros": 0.0004}}
        self.assertEqual(feature_maps.layer_cells(rows, ("stretch", "zeros")),
                         [["layer", "stretch", "zeros"], ["a", "1.25", "50.0"], ["b", "0.00", "0.0"]])
        random, channels, blobs, dead = zero_patterns.BURINS
        other, more = Pattern("channels", of_dead=0.3), Pattern("blobs", radius=3)
        here = {random: (0.3, 3), channels: (0.4, 4), blobs: (0.1, 1), dead: (0.5, 5), other: (0.35, 0.5),
                more: (0.12, 2)}
        there = {**here, blobs: (0.2, 2), more: (0.11, 1)}
        head = ["layer", "random", "channels 0.5", "blobs 2, 1", "dead", "nearest", "its distance"]
        self.assertEqual(feature_maps.fit_cells(rows, {"x": there}),
                         [head, ["a", "30.0", "40.0", "20.0", "50.0", "blobs 3, 1", "11.0"]])
        many = {Pattern("blobs", radius=8, spread=spread): (0.2 + spread, 1) for spread in range(1, 9)}
        cells = feature_maps.overall_cells({"m/one.onnx": {"x": {**here, **many}}, "none.onnx": {},
                                            "two.onnx": {"y": {**there, **many}, "z": {**there, **many}}})
        self.assertEqual(cells[0], ["pattern", "all", "one", "two", "nearest of all", "logarithms"])
        self.assertEqual(cells[1], ["blobs 3, 1", "11.3", "12.0", "11.0", "2", "1.33"])
        self.assertEqual(cells[2], ["blobs 2, 1", "16.7", "10.0", "20.0", "1", "1.67"])
        self.assertEqual([line[0] for line in cells[3:]], ["random", "channels 0.3", "channels 0.5", "dead"])
        self.assertEqual(feature_maps.overall_cells({"none.onnx": {}}), [["pattern"]])

    def test_a_missing_folder_is_said_first(self):
        for option, path in (("--json", "/nowhere/at/all.json"), ("--inputs", "/nowhere/at/all")):
            with self.subTest(option):
                ran = subprocess.run([sys.executable, feature_maps.__file__, "none.onnx", option, path],
                                     capture_output=True, text=True)
                self.assertEqual(ran.returncode, 1)
                self.assertEqual(ran.stderr, f"feature_maps.py: error: {option} {path}: there is no such folder\n")


def zeros_of(*rows):
    return np.array([[digit == "0" for digit in row] for row in rows])


class Places(unittest.TestCase):
    zero = np.stack([zeros_of("11110", "00011", "10000"), np.ones((3, 5), bool)])

    def test_runs_go_on_into_the_next_row(self):
        runs = zero_patterns.dead_runs(self.zero, 4)
        self.assertEqual(runs.tolist(), [[False, True, False, True], [True] * 4])  # the last one has three values

    def test_stretches_end_with_their_row(self):
        self.assertEqual(zero_patterns.stretches(self.zero).tolist(), [1, 3, 4, 5, 5, 5])

    def test_all_columns(self):
        found = zero_patterns.places(self.zero)
        expected = {"dead 4x4": 2 / 4, "dead 8x8": 1 / 2, "dead 16x16": 1 / 2, "runs of 2": 12 / 16, "runs of 4": 6 / 8,
                    "runs of 8": 2 / 4, "in 2+": 22 / 23, "in 4+": 19 / 23, "in 8+": 0, "dead channels": 1 / 2,
                    "channels 10 %": 8.7 / 15, "channels 50 %": 11.5 / 15, "channels 90 %": 14.3 / 15,
                    "stretch": 23 / 6}
        self.assertEqual(list(found), list(expected))
        for column, share in expected.items():
            self.assertAlmostEqual(found[column], share, msg=column)

    def test_nothing_is_zero(self):
        self.assertEqual(set(zero_patterns.places(np.zeros((2, 3, 3), bool)).values()), {0})

    def test_distance(self):
        one = dict.fromkeys(zero_patterns.places(self.zero), 0.25)
        self.assertEqual(zero_patterns.distance(one, one), 0)
        # One of four groups; one of its three columns, and one of another's four.
        self.assertAlmostEqual(zero_patterns.distance(one, {**one, "runs of 4": 0.37}), 0.12 / math.sqrt(12))
        self.assertAlmostEqual(zero_patterns.distance(one, {**one, "dead channels": 0.65}), 0.1)
        self.assertAlmostEqual(zero_patterns.distance(one, {**one, "dead channels": 0.51}, zero_patterns.logarithm),
                               math.log(2) / 4)


class Patterns(unittest.TestCase):
    def test_random_numbers(self):
        # The first numbers of splitmix64 with these seeds, as published.
        for seed, numbers in ((0, [0xe220a8397b1dcdaf]), (1234567, [6457827717110365317, 3203168211198807973])):
            expected = [(2 * (number >> 40) + 1) / 2 ** 24 - 1 for number in numbers]
            self.assertEqual(zero_patterns.random_tensor(len(numbers), seed).tolist(), expected)

    def test_patterns_are_those_of_the_compiler(self):
        # What count_synthetic (compiler/synthetic_zeros.cpp) counts: dead runs of 2, 4 and 8, and dead channels.
        counted = {
            Pattern("random"): (0.40507413903061223, 0.1646404655612245, 0.026088169642857144, 0),
            Pattern("channels", of_dead=0.5): (0.46588508450255101, 0.34680923150510207, 0.31417410714285715, 0.3125),
            Pattern("blobs", radius=2, spread=1): (0.5721261160714286, 0.48573022959183676, 0.37007732780612246, 0),
            Pattern("dead"): (0.62539859693877553, 0.625, 0.625, 0.625),
        }
        for pattern, expected in counted.items():
            with self.subTest(str(pattern)):
                made = zero_patterns.set_zeros(pattern, 0.637, (64, 56, 56), images=2)
                self.assertEqual([zero.sum() for zero in made], [127848, 127848])
                found = zero_patterns.mean_of([zero_patterns.places(zero) for zero in made])
                columns = ("runs of 2", "runs of 4", "runs of 8", "dead channels")
                np.testing.assert_allclose([found[column] for column in columns], expected, rtol=1e-12)

    def test_constants_are_those_of_the_compiler(self):
        source = (Path(__file__).parents[2] / "compiler" / "synthetic_zeros.cpp").read_text()

        def constant(name):
            return float(re.search(rf"constexpr \w+ {name} = ([0-9.]+)F?;", source)[1])

        expected = constant("kBlobRadius"), constant("kChannelSpread"), constant("kOfDeadChannels")
        self.assertEqual(Pattern("blobs")[1:], expected)

    def test_every_share(self):
        for pattern in (*zero_patterns.BURINS, Pattern("blobs", radius=0, spread=3)):
            for share, zeros in ((0, 0), (0.51, 15), (0.52, 16), (1, 30)):  # 30 values
                made, = zero_patterns.set_zeros(pattern, share, (2, 3, 5))
                self.assertEqual((made.shape, made.sum()), ((2, 3, 5), zeros), f"{pattern}, {share}")

    def test_the_pattern_that_made_a_map_is_nearest(self):
        shape = (128, 14, 14)
        for pattern in (Pattern("random"), Pattern("dead"), Pattern("channels", of_dead=0.8),
                        Pattern("blobs", radius=2, spread=0.5), Pattern("blobs", radius=1, spread=2)):
            made, = zero_patterns.set_zeros(pattern, 0.6, shape, seed=77)
            found = zero_patterns.distances(zero_patterns.places(made), 0.6, shape)
            self.assertEqual(zero_patterns.nearest(found), pattern)
            self.assertLess(found[pattern][0], 0.03)


if __name__ == "__main__":
    unittest.main()
