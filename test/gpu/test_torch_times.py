"""Tests of torch_times.py that need neither torch nor a GPU: what is launched how often, and what is set before."""
import collections
import sys
import types
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np

from host_torch import HostTensor, host_torch


class Network:
    """Doubles its image in a quarter of a millisecond, and counts how often it was called."""

    def __init__(self, torch):
        self.calls, self.moved, self.torch = 0, [], torch

    def __call__(self, image):
        self.calls += 1
        self.torch.clock += 0.25
        return (HostTensor(image.values * 2),)

    def to(self, **options):
        self.moved.append(options)
        return self

    def modules(self):
        return []

    def fused(self):
        return 0


class Times(unittest.TestCase):
    def setUp(self):
        self.torch = host_torch()
        layers = types.SimpleNamespace(FusedConvolution=type(None))
        with unittest.mock.patch.dict(sys.modules, {"torch": self.torch, "torch_layers": layers}):
            sys.modules.pop("torch_times", None)
            import torch_times
            self.times = torch_times
        sys.modules.pop("torch_times", None)

    def measure(self, **more):
        network = Network(self.torch)
        image = np.ones((2, 3, 4, 4), np.float32)
        variant = self.times.Variant("plain", "channels_last", "fp32", **more)
        times, outputs = self.times.measure(network, variant, [image], 20, 2)
        np.testing.assert_array_equal(outputs[0], 2 * image)
        return network, times

    def test_a_graph_is_captured_once_and_replayed(self):
        network, times = self.measure()
        self.assertEqual(network.calls, self.times.WARMUP_RUNS + 1)
        self.assertEqual(times["latency"]["samples"], 20)
        self.assertAlmostEqual(times["back_to_back"]["median_us"], 1000)  # a replay takes a millisecond
        self.assertTrue(self.torch.backends.cudnn.benchmark)

    def test_eager_runs_are_launched_each_time(self):
        network, times = self.measure(graph=False, benchmark=False)
        launches = self.times.WARMUP_LAUNCHES + 2 * times["latency"]["samples"]
        self.assertEqual(network.calls, self.times.WARMUP_RUNS + launches + 1)
        self.assertAlmostEqual(times["latency"]["median_us"], 250)
        self.assertFalse(self.torch.backends.cudnn.benchmark)
        self.assertFalse(self.torch.backends.cudnn.allow_tf32)

    def compile_forms(self, graphs):
        """What is called where torch.compile makes so many graphs of a network."""
        calls = []
        counters = collections.defaultdict(collections.Counter, stats=collections.Counter(unique_graphs=7))
        self.torch._dynamo = types.SimpleNamespace(reset=lambda: calls.append("reset"),
                                                   utils=types.SimpleNamespace(counters=counters))

        def compiled(network, dynamic):
            calls.append(dynamic)
            counters["stats"]["unique_graphs"] += graphs
            return network

        self.torch.compile = compiled
        for precision in ("fp32", "tf32"):
            self.times.measure(Network(self.torch), self.times.Variant("compiled", "contiguous", precision),
                               [np.ones((2, 3, 4, 4), np.float32)], 20, 2)
        return calls

    def test_torch_compile_begins_anew_each_time(self):
        self.assertEqual(self.compile_forms(graphs=1), ["reset", False] * 2)

    def test_what_torch_compile_leaves_as_it_is_is_not_measured_as_compiled(self):
        with self.assertRaisesRegex(RuntimeError, "traced no part of the network"):
            self.compile_forms(graphs=0)

    def test_layout_and_precision(self):
        network, _ = self.measure()
        self.assertEqual(network.moved, [{"device": "cuda", "dtype": np.float32}, {"memory_format": "channels_last"}])
        self.times.set_up(network, "tf32", "contiguous")
        self.assertTrue(self.torch.backends.cuda.matmul.allow_tf32)


if __name__ == "__main__":
    unittest.main()
