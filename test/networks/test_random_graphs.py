"""Tests of random_graphs.py: every seed gives valid graphs, which ONNX Runtime runs and which use every operator."""
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import shape_inference

import onnxruntime_outputs
import random_graphs

SEEDS = range(1, 11)
# What burin imports, of which all but the rejected QuantizeLinear can stand in a graph that runs.
OPERATORS = set("Conv BatchNormalization Relu Clip LeakyRelu Sigmoid HardSigmoid HardSwish Mul Add MaxPool AveragePool "
                "GlobalAveragePool Concat Gemm MatMul Flatten Reshape Squeeze Transpose Softmax LRN Pad Dropout "
                "Identity Constant Split Slice Gather Resize Upsample ConvTranspose DepthToSpace SpaceToDepth Expand Tile "
                "Shape Softplus Tanh Div Erf Elu Selu PRelu ReduceMean Sub Pow Sqrt InstanceNormalization ReduceMax Exp "
                "ReduceSum".split())


class RandomGraphs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_onnxruntime_runs_them(self):
        for seed in SEEDS:
            for path in random_graphs.write_graphs(self.folder / str(seed), seed):
                with self.subTest(seed=seed, graph=path.name):
                    onnx.checker.check_model(str(path))
                    model = onnxruntime_outputs.load(path)
                    inputs = onnxruntime_outputs.make_inputs(model, seed, batch=2)
                    tensors = onnxruntime_outputs.run(model, inputs, all_tensors=True)
                    for name, values in tensors.items():
                        self.assertTrue(np.all(np.isfinite(values)), name)
                        self.assertLess(np.max(np.abs(values)), 1e4, name)
                    for output in model.graph.output:
                        there = [size.dim_param or size.dim_value for size in output.type.tensor_type.shape.dim]
                        self.assertEqual(there[1:], list(tensors[output.name].shape[1:]), output.name)
                    images = next(iter(inputs.values())).shape[0]
                    probabilities = tensors[model.graph.output[0].name]
                    self.assertEqual(probabilities.shape[0], images)
                    np.testing.assert_allclose(probabilities.sum(axis=1), np.ones(images), rtol=1e-5)

    def test_every_seed_uses_every_operator(self):
        for seed in SEEDS:
            used = {node.op_type for model in random_graphs.make_graphs(seed) for node in model.graph.node}
            self.assertEqual(used, OPERATORS, f"seed {seed}")

    def test_forms_of_weights_and_graphs(self):
        paths = random_graphs.write_graphs(self.folder, 1)
        graphs = [onnx.load(str(path), load_external_data=False).graph for path in paths]
        self.assertTrue(any(graph.sparse_initializer for graph in graphs))
        self.assertTrue(any(tensor.external_data for graph in graphs for tensor in graph.initializer))
        self.assertTrue(any(len(graph.input) == 2 for graph in graphs))
        self.assertTrue(any(len(graph.output) == 2 for graph in graphs))
        self.assertTrue(any(not node.name for graph in graphs for node in graph.node))
        batches = {graph.input[0].type.tensor_type.shape.dim[0].dim_param for graph in graphs}
        self.assertEqual(batches, {"", "N"})

    def test_shapes_can_be_inferred(self):
        for model in random_graphs.make_graphs(1):
            if model.graph.sparse_initializer:  # for which ONNX's own inference has no rule
                continue
            inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
            known = {value.name for value in [*inferred.graph.value_info, *inferred.graph.output]}
            self.assertEqual({name for node in model.graph.node for name in node.output} - known, set())

    def test_same_seed_same_bytes(self):
        first, again, other = ([model.SerializeToString() for model in random_graphs.make_graphs(seed)]
                               for seed in (5, 5, 6))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)


if __name__ == "__main__":
    unittest.main()
