"""Tests of activation_patterns.py: its statistics on small arrays, and the zeros of each pattern."""
import unittest

import numpy as np

import activation_patterns as patterns
import feature_maps


class FeatureMaps(unittest.TestCase):
    def test_statistics(self):
        zero = np.zeros((2, 5, 5), bool)
        zero[0] = True
        zero[1, 4, 4] = True
        self.assertEqual(patterns.dead_channels(zero), 0.5)
        self.assertEqual(patterns.dead_tiles(zero, 4), 5 / 8)
        self.assertEqual(patterns.mean_run(zero), 26 / 6)
        self.assertEqual(patterns.mean_run(np.zeros((1, 2, 2), bool)), 0)

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

    def test_patterns_have_the_asked_zeros(self):
        for name, pattern in patterns.PATTERNS.items():
            for share in (0, 0.3, 0.7, 1):
                with self.subTest(name, share=share):
                    zero = pattern((16, 13, 14), share, 1)
                    self.assertLessEqual(abs(zero.mean() - share), 0.5 / zero.size + 1e-12)
                    np.testing.assert_array_equal(zero, pattern((16, 13, 14), share, 1))


if __name__ == "__main__":
    unittest.main()
