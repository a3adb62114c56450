"""Tests of activation_patterns.py: its statistics on small arrays, and the zeros of each pattern."""
import unittest

import numpy as np

import activation_patterns as patterns


class FeatureMaps(unittest.TestCase):
    def test_statistics(self):
        zero = np.zeros((2, 5, 5), bool)
        zero[0] = True
        zero[1, 4, 4] = True
        self.assertEqual(patterns.dead_channels(zero), 0.5)
        self.assertEqual(patterns.dead_tiles(zero, 4), 5 / 8)
        self.assertEqual(patterns.mean_run(zero), 26 / 6)
        self.assertEqual(patterns.mean_run(np.zeros((1, 2, 2), bool)), 0)

    def test_patterns_have_the_asked_zeros(self):
        for name, pattern in patterns.PATTERNS.items():
            for share in (0, 0.3, 0.7, 1):
                with self.subTest(name, share=share):
                    zero = pattern((16, 13, 14), share, 1)
                    self.assertLessEqual(abs(zero.mean() - share), 0.5 / zero.size + 1e-12)
                    np.testing.assert_array_equal(zero, pattern((16, 13, 14), share, 1))


if __name__ == "__main__":
    unittest.main()
