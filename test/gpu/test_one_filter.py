"""Tests of one_filter.py that need no GPU: the models, what is asked of burin, what is compared, and the tables."""
import ctypes
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numpy
import onnx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ecr
import one_filter
from tool_case import ToolCase

# Measures as burin does: zero_skip takes half the time of the models' choice, and leaves no pool to a step of its own.
FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    if "alexnet" in file:
        sys.exit("burin: error: no plan serves it")
    open(option("-o"), "w").write(option("--kernels"))
elif command == "bench":
    skips = open(file).read() == "zero_skip"
    timed = lambda us: {{"median_us": us}}
    rows = []
    for name in ("conv1", "conv2"):
        row = {{"layer": name, "symbol": "burin_" + name, "batch": 1, "nonzeros": 25, "cold": timed(2.0 if skips else 4.0),
                "cudnn_fp32": timed(8.0), "cudnn_calls": "conv+bias+relu, max pool"}}
        if name == "conv2" and not skips:
            row.update(cudnn_calls="conv", cudnn_fp32=timed(100.0))
            rows.append({{"layer": "pool2", "symbol": "burin_pool2", "batch": 1, "cold": timed(3.0), "cudnn_fp32": timed(3.0),
                          "cudnn_calls": "max pool"}})
        rows.append(row)
    json.dump({{"rows": rows}}, open(option("--json"), "w"))
"""


# The kernels' threads, one after the other on the host: none waits for another.
ON_THE_HOST = r"""
#include <cmath>
#define __shared__ static
#define __device__
#define __global__
#define __launch_bounds__(threads)
struct float2 { float x, y; };
static float2 make_float2(float x, float y) { return {x, y}; }
static struct { int x, y; } threadIdx, blockIdx;
#include "ecr.cu"
extern "C" void run(const float* planes, const float* weights, float bias, float* outputs, int batch) {
  for (blockIdx.y = 0; blockIdx.y < batch; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x * THREADS < OUT * OUT; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x) ecr(planes, weights, bias, outputs);
}
"""


def run_on_host(layer, planes, weights, bias, folder):
    library = Path(folder) / f"{layer.name}.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-O1", "-w", *ecr.definitions_of(layer), f"-I{HERE}", "-x", "c++", "-", "-o",
                    str(library)], input=ON_THE_HOST, text=True, check=True)
    extent = ecr.extents_of(layer)[1]
    made = numpy.full((len(planes), extent, extent), numpy.nan, numpy.float32)
    pointer = ctypes.POINTER(ctypes.c_float)
    ctypes.CDLL(str(library)).run(planes.ctypes.data_as(pointer), weights.ctypes.data_as(pointer), ctypes.c_float(bias),
                                  made.ctypes.data_as(pointer), len(planes))
    return made


class Models(unittest.TestCase):
    def test_each_layer_has_one_channel_and_one_filter(self):
        for network, layers in one_filter.NETWORKS.items():
            graph = one_filter.make_model(layers).graph
            onnx.checker.check_graph(graph)
            self.assertEqual(len(graph.input), len(layers))
            shapes = {value.name: [one.dim_value for one in value.type.tensor_type.shape.dim[1:]] for value in graph.output}
            for layer in layers:
                extent = (layer.extent + 2 * layer.pad - layer.kernel) // layer.stride + 1
                if layer.pool:
                    extent = (extent - layer.pool[0]) // layer.pool[1] + 1
                self.assertEqual(shapes[f"{layer.name}.out"], [1, extent, extent], f"{network} {layer.name}")

    def test_vgg19_has_sixteen_of_which_five_are_pooled(self):
        layers = one_filter.NETWORKS["vgg19"]
        self.assertEqual(len(layers), 16)
        self.assertEqual([layer.name for layer in layers if layer.pool], ["conv1_2", "conv2_2", "conv3_4", "conv4_4", "conv5_4"])


class PublishedKernels(unittest.TestCase):
    def test_what_is_expected_of_them_is_what_the_models_compute(self):
        from onnx.reference import ReferenceEvaluator

        rng = numpy.random.default_rng(2)
        for layers in one_filter.NETWORKS.values():
            model = one_filter.make_model(layers)
            held = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
            for layer in [layer for layer in layers if layer.extent < 100]:
                planes = ecr.inputs_of(layer, 1, 0.7, rng)[0]
                self.assertAlmostEqual(float((planes == 0).mean()), 0.7, delta=0.15)
                inputs = {value.name: numpy.zeros((1, 1, *[d.dim_value for d in value.type.tensor_type.shape.dim[2:]]),
                                                  numpy.float32) for value in model.graph.input}
                inputs[f"{layer.name}.in"] = planes[:, None]
                made = ReferenceEvaluator(model).run([f"{layer.name}.out"], inputs)[0][0, 0]
                right = ecr.expected(layer, planes[0], held[f"{layer.name}.weight"][0, 0], held[f"{layer.name}.bias"][0])
                self.assertEqual(right.shape, (ecr.extents_of(layer)[1],) * 2)
                numpy.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-5)

    def test_they_compute_it(self):
        rng = numpy.random.default_rng(3)
        alexnet, vgg19 = one_filter.NETWORKS["alexnet"], one_filter.NETWORKS["vgg19"]
        with tempfile.TemporaryDirectory() as folder:
            for layer in (alexnet[0], alexnet[1], alexnet[2], vgg19[-1]):
                weights = rng.standard_normal((layer.kernel, layer.kernel)).astype(numpy.float32)
                bias = numpy.float32(rng.standard_normal())
                for zeros in (0, 0.7, 1):
                    planes = ecr.inputs_of(layer, 2, zeros, rng)[0]
                    made = run_on_host(layer, planes, weights, bias, folder)
                    right = numpy.stack([ecr.expected(layer, plane, weights, bias) for plane in planes])
                    numpy.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-4, err_msg=f"{layer} {zeros}")

    def test_lists_fit_in_shared_memory(self):
        for layers in one_filter.NETWORKS.values():
            for layer in layers:
                self.assertLessEqual(ecr.threads_of(layer) * layer.kernel ** 2 * 8, 48 * 1024)
                self.assertGreaterEqual(ecr.threads_of(layer), 32)
        defined = ecr.definitions_of(one_filter.NETWORKS["alexnet"][0])
        self.assertEqual(defined, ["-DEXTENT=227", "-DKERNEL=11", "-DPAD=0", "-DSTRIDE=4", "-DCONV=55", "-DOUT=27", "-DTHREADS=32",
                                   "-DPOOL=3", "-DPOOL_STRIDE=2"])

    def test_they_are_compared_with_the_same_times_of_cudnn(self):
        class Gpu:
            def microseconds(self, layer, batch, zeros):
                return {"conv1": 1.0, "conv2": 2.0}[layer.name] * batch * zeros

        options = types.SimpleNamespace(gpu=Gpu(), batch="1,2")
        known = [{"layer": "conv1", "batch": 1, "fault": "", "pool": True, "pool_is_fused": True, "cudnn_us": 8.0,
                  "cudnn_calls": "conv, max pool"},
                 {"layer": "conv2", "batch": 1, "fault": "", "pool": True, "pool_is_fused": False, "cudnn_us": 4.0,
                  "cudnn_calls": "conv"}]
        rows = one_filter.published_rows(options, "lenet", "0.5", known)
        self.assertEqual([(row["layer"], row["batch"], row["us"], row["cudnn_us"]) for row in rows],
                         [("conv1", 1, 0.5, 8.0), ("conv1", 2, 1.0, None), ("conv2", 1, 1.0, None), ("conv2", 2, 2.0, None)])
        self.assertTrue(all(row["pool_is_fused"] for row in rows))


class Runs(ToolCase):
    program = "one_filter.py"
    tool = FAKE_BURIN

    def test_two_kinds_and_a_network_that_fails(self):
        result, document = self.run_it("--networks", "alexnet,lenet", "--zeros", "0.8")
        self.assertEqual(result.returncode, 1, result.stderr)
        faults = [row for row in document["rows"] if row["fault"]]
        self.assertEqual([(row["network"], row["kernels"], row["fault"]) for row in faults],
                         [("alexnet", kind, "exit code 1: burin: error: no plan serves it") for kind in ("auto", "zero_skip")])
        rows = [row for row in document["rows"] if not row["fault"]]
        self.assertEqual([(row["layer"], row["kernels"], row["us"], row["pool_is_fused"]) for row in rows],
                         [("conv1", "auto", 4.0, True), ("conv2", "auto", 4.0, False),
                          ("conv1", "zero_skip", 2.0, True), ("conv2", "zero_skip", 2.0, True)])
        # What cuDNN takes for a convolution alone is not compared with a layer that is to be pooled.
        self.assertRegex(result.stdout, r"lenet +0\.8 +auto +yes +1 +2\.00 +2\.00 +2\.00")
        self.assertRegex(result.stdout, r"lenet +0\.8 +zero_skip +yes +2 +4\.00 +4\.00 +4\.00")
        self.assertIn("conv (the pool is another step)", result.stdout)
        self.assertIn("--activation-sparsity 0.8:random --kernels zero_skip -q", result.stderr)
        self.assertIn(" verify ", result.stderr)

    def test_continue_goes_on(self):
        asked = ["--networks", "lenet", "--kernels", "auto"]
        self.assertEqual(self.run_it(*asked, "--zeros", "0.5")[0].returncode, 0)
        result, document = self.run_it(*asked, "--zeros", "0.5,0.9", "--continue", "--markdown")
        self.assertEqual(result.stderr.count(" bench "), 1)
        self.assertEqual([row["zeros"] for row in document["rows"]], ["0.5", "0.5", "0.9", "0.9"])
        self.assertIn("| lenet | conv1 | 1 | 0.9 | auto |", result.stdout)

    def test_bad_values(self):
        for arguments, message in ((["--networks", "resnet"], "'resnet' is none of"), (["--zeros", "2"], "no share from 0 to 1"),
                                   (["--kernels", "ecr,auto"], "behind another kind")):
            result, _ = self.run_it(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
