"""Tests of sparse_peers.py that need no GPU: which products there are, what is asked of cuSPARSE, which does them here on the
host from the addresses that it is given, what becomes of faults, and the table."""
import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np

import cusparse_calls
from host_torch import host_torch
import sparse_gpu
import sparse_peers
from sparse_peers import Product
from tool_case import ToolCase

FAKE_BURIN = """#!{python}
import json, sys
command, file, options = sys.argv[1], sys.argv[2], sys.argv[3:]
option = lambda name: options[options.index(name) + 1]
if command == "compile":
    if "bad" in options:
        sys.exit("burin: error: a bad option")
    open(option("-o"), "w").write(" ".join(options))
elif command == "bench":
    made = open(file).read().split()
    batches = made[made.index("--batch") + 1].split(",")
    rows = [{{"layer": "1x1.512-512.14", "symbol": "burin_x", "batch": int(batch), "cold": {{"median_us": 2.0 * int(batch)}}}}
            for batch in batches]
    json.dump({{"rows": rows}}, open(option("--json"), "w"))
"""


def product(precision="fp32", sparsity="0.5", batch=1, rows=32, depth=64, cols=24, **more):
    return Product("anchors", "1x1.512-512.14", sparsity, precision, batch, rows, depth, cols, more.get("im2col", False))


class Products(unittest.TestCase):
    def test_layers_of_one_by_one_once(self):
        found = sparse_peers.products_of(["anchors", "peers"], "*", ["0.9"], ["fp32"], [1], False)
        names = [one.layer for one in found]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(name.startswith("1x1.") for name in names))
        self.assertEqual(len(names), 10 + 2)  # two of the peers are anchors
        first = found[0]
        self.assertEqual((first.rows, first.depth, first.cols), (256, 64, 56 * 56))

    def test_batches_sparsities_and_precisions(self):
        found = sparse_peers.products_of(["anchors"], "1x1.512-512*", ["0.5", "0.98"], ["fp32", "fp16"], [1, 32, 64], False)
        self.assertEqual(len(found), 12)
        self.assertEqual({one.cols for one in found}, {196, 196 * 32, 196 * 64})

    def test_larger_filters_are_asked_for(self):
        self.assertEqual(sparse_peers.products_of(["dong"], "*", ["0.9"], ["fp32"], [1], False), [])
        found = sparse_peers.products_of(["dong"], "5x5.1-20.24", ["0.9"], ["fp32"], [2], True)
        self.assertEqual([(one.rows, one.depth, one.cols, one.im2col) for one in found], [(20, 25, 2 * 20 * 20, True)])

    def test_weights_are_those_of_the_file(self):
        import make_layers
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "w.safetensors"
            subprocess.run([sys.executable, str(HERE / "make_layers.py"), str(path), "--set", "peers", "--sparsity", "0.95",
                            "--layer", "1x1.128-128.56"], check=True, stdout=subprocess.DEVNULL)
            tensors, _ = make_layers.read_safetensors(path)
        one = sparse_peers.products_of(["peers"], "1x1.128-128.56", ["0.95"], ["fp32"], [1], False)[0]
        self.assertEqual(sparse_peers.weights_of(one), tensors["1x1.128-128.56.weight"][1])

    def test_packages_of_halves_avoid_baked_code(self):
        found = sparse_peers.products_of(["anchors"], "1x1.512-512*", ["0.9"], ["fp32", "fp16"], [1, 32, 64], False)
        packages = sparse_peers.packages_of(found)
        self.assertEqual(packages, {("anchors", "0.9", "fp32", False): {1, 32, 64}, ("anchors", "0.9", "fp16", True): {1},
                                    ("anchors", "0.9", "fp16", False): {32, 64}})
        self.assertIn("nchw", sparse_peers.kernel_options("fp16", True))
        self.assertIn("gathered", sparse_peers.kernel_options("fp16", False))


class Formats(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(1)
        self.weights = random.standard_normal((32, 64)).astype(np.float32) * (random.random((32, 64)) < 0.1)
        self.weights[5] = 0
        self.weights[16:, :16] = 0

    def test_csr(self):
        offsets, columns, values = sparse_gpu.csr_of(self.weights)
        again = np.zeros_like(self.weights)
        for row in range(32):
            for at in range(offsets[row], offsets[row + 1]):
                again[row, columns[at]] = values[at]
        np.testing.assert_array_equal(again, self.weights)
        self.assertEqual(offsets[5], offsets[6])
        self.assertEqual((offsets.dtype, columns.dtype, values.dtype), (np.int32, np.int32, np.float32))

    def test_blocked_ell(self):
        columns, values = sparse_gpu.blocked_ell_of(self.weights, 16)
        self.assertEqual(columns.shape, (2, 4))
        self.assertEqual(list(columns[1]), [1, 2, 3, -1])
        again = np.zeros_like(self.weights)
        for row, its in enumerate(columns):
            for at, block in enumerate(its):
                if block >= 0:
                    again[row * 16:row * 16 + 16, block * 16:block * 16 + 16] = (
                        values[row * 16:row * 16 + 16, at * 16:at * 16 + 16])
        np.testing.assert_array_equal(again, self.weights)
        self.assertIsNone(sparse_gpu.blocked_ell_of(np.zeros((32, 32), np.float32), 16))

    def test_two_of_four(self):
        kept = sparse_gpu.two_of_four(np.array([[1, -4, 2, 3, 5, 6, -7, 8]], np.float16))
        self.assertEqual(kept.tolist(), [[0, -4, 0, 3, 0, 0, -7, 8]])
        self.assertEqual(kept.dtype, np.float16)

    def test_launches_fill_half_a_millisecond(self):
        self.assertEqual(sparse_gpu.launches_for(5), 100)
        self.assertEqual(sparse_gpu.launches_for(1000), sparse_gpu.LEAST_LAUNCHES)
        self.assertEqual(sparse_gpu.launches_for(0), sparse_gpu.MOST_LAUNCHES)


# --- a cuSPARSE on the host -------------------------------------------------------------------------------------------

def at(address, count, kind):
    if isinstance(address, ctypes.c_void_p):
        address = address.value
    size = np.dtype(kind).itemsize * count
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=kind) if count else np.zeros(0, kind)


class HostCusparse:
    """Multiplies on the host when it is called. `refuses`: an algorithm that it does not have."""
    KINDS = {0: np.float32, 2: np.float16}

    def __init__(self, refuses=()):
        self.refuses, self.matrices, self.algorithms, self.prepared, self.streams = refuses, {}, [], 0, set()

    def _give(self, out, matrix):
        key = len(self.matrices) + 1
        self.matrices[key] = matrix
        out._obj.value = key
        return 0

    def cusparseCreate(self, out):
        out._obj.value = 99
        return 0

    def cusparseSetStream(self, handle, stream):
        self.streams.add(stream.value)
        return 0 if handle.value == 99 else 1

    def cusparseCreateCsr(self, out, rows, cols, nonzeros, offsets, columns, values, offset_type, column_type, base, kind):
        if (offset_type, column_type, base) != (2, 2, 0):
            return 3
        offsets, columns = at(offsets, rows + 1, np.int32), at(columns, nonzeros, np.int32)
        values, dense = at(values, nonzeros, self.KINDS[kind]), np.zeros((rows, cols))
        for row in range(rows):
            its = slice(offsets[row], offsets[row + 1])
            dense[row, columns[its]] = values[its]
        return self._give(out, (dense, kind))

    def cusparseCreateBlockedEll(self, out, rows, cols, block, ell_cols, columns, values, column_type, base, kind):
        if (column_type, base) != (2, 0):
            return 3
        columns = at(columns, rows // block * (ell_cols // block), np.int32).reshape(rows // block, -1)
        values, dense = at(values, rows * ell_cols, self.KINDS[kind]).reshape(rows, ell_cols), np.zeros((rows, cols))
        for row, its in enumerate(columns):
            for place, found in enumerate(its):
                if found >= 0:
                    dense[row * block:(row + 1) * block, found * block:(found + 1) * block] = (
                        values[row * block:(row + 1) * block, place * block:(place + 1) * block])
        return self._give(out, (dense, kind))

    def cusparseCreateDnMat(self, out, rows, cols, distance, values, kind, order):
        if distance != (cols if order == 2 else rows):
            return 3
        shape = (rows, cols) if order == 2 else (cols, rows)
        matrix = at(values, rows * cols, self.KINDS[kind]).reshape(shape)
        return self._give(out, (matrix if order == 2 else matrix.T, kind))

    def _destroy(self, matrix):
        del self.matrices[matrix.value]
        return 0

    cusparseDestroySpMat = cusparseDestroyDnMat = _destroy

    def cusparseSpMM_bufferSize(self, handle, *rest):
        rest[-1]._obj.value = 64
        return 10 if rest[-2] in self.refuses else 0

    def cusparseSpMM_preprocess(self, *_):
        self.prepared += 1
        return 0

    def cusparseSpMM(self, handle, op_left, op_right, one, left, right, zero, made, sums, algorithm, workspace):
        if (op_left, op_right, sums) != (0, 0, 0) or (one._obj.value, zero._obj.value) != (1, 0) or not workspace:
            return 3
        self.algorithms.append(algorithm)
        target = self.matrices[made.value][0]
        target[...] = self.matrices[left.value][0] @ self.matrices[right.value][0].astype(np.float64)
        return 0


class OnTheHost(unittest.TestCase):
    def measured(self, one, library=None, **options):
        library = library or HostCusparse()
        peers = sparse_gpu.Peers(argparse.Namespace(cusparse=None, sputnik=None, **options), host_torch(), library)
        burin = types.SimpleNamespace(of=lambda _: (4.0, "burin_x", ""))
        with unittest.mock.patch.object(sparse_peers, "weights_of", self.weights):
            return sparse_peers.measure_product(one, peers, burin), library

    @staticmethod
    def weights(one):
        random = np.random.default_rng(3)
        values = random.standard_normal(one.rows * one.depth)
        return (values * (random.random(values.shape) > float(one.sparsity))).astype(np.float32)

    def test_every_candidate_of_cusparse_is_right(self):
        for precision in sparse_peers.PRECISIONS:
            row, library = self.measured(product(precision))
            names = [entry["name"] for entry in row["candidates"]]
            self.assertEqual(len(set(names)), len(names))
            self.assertEqual([name for name in names if name.startswith("cuBLAS")],
                             ["cuBLAS, dense, by columns", "cuBLAS, dense, by rows"])
            faults = {entry["name"]: entry["fault"] for entry in row["candidates"] if "fault" in entry}
            self.assertEqual(faults, {"torch.sparse": "sparse tensors are not built"})
            self.assertEqual(set(library.algorithms), {0, 4, 6, 12, 13})
            self.assertEqual(library.prepared, 8 + 4)
            self.assertEqual(library.streams, {7})
            self.assertEqual(library.matrices, {})
            csr = [entry for entry in row["candidates"] if entry["name"].startswith("cuSPARSE CSR")]
            self.assertEqual(len(csr), 8)
            # A replay of the graph takes a millisecond, and has as many launches as fill half of one, or the fewest.
            for entry in csr:
                self.assertAlmostEqual(entry["us"], 1000 / sparse_gpu.LEAST_LAUNCHES)

    def test_halves_of_the_weights_have_a_structured_rival(self):
        row, _ = self.measured(product("fp16", "0.5"))
        self.assertIn("cuSPARSELt 2:4, a pattern of its own", [entry["name"] for entry in row["candidates"]])
        for one in (product("fp16", "0.9"), product("fp32", "0.5")):
            row, _ = self.measured(one)
            self.assertFalse(any("2:4" in entry["name"] for entry in row["candidates"]))

    def test_what_a_library_refuses_is_in_its_entry(self):
        row, library = self.measured(product(), HostCusparse(refuses=(6,)))
        faults = [entry for entry in row["candidates"] if "CSR_ALG2" in entry["name"]]
        self.assertEqual(len(faults), 2)
        for entry in faults:
            self.assertEqual(entry["fault"], "cusparseSpMM_bufferSize failed with status 10")
            self.assertNotIn("us", entry)
        self.assertEqual(library.matrices, {})
        self.assertFalse(sparse_peers.has_failed([row]))

    def test_a_wrong_result_is_a_failure(self):
        library = HostCusparse()
        right = library.cusparseSpMM

        def wrong(*arguments):
            status = right(*arguments)
            library.matrices[arguments[7].value][0][0, 0] += 100
            return status
        library.cusparseSpMM = wrong
        row, _ = self.measured(product(), library)
        self.assertIn("it is off by", row["candidates"][0]["fault"])
        self.assertTrue(sparse_peers.has_failed([row]))
        self.assertIsNone(sparse_peers.best(row, "cuSPARSE CSR "))

    def test_a_product_for_which_memory_is_short_does_not_stop_the_others(self):
        def short_of_memory(_):
            raise RuntimeError("out of memory")
            yield
        row = sparse_peers.measure_product(product(), short_of_memory, types.SimpleNamespace(of=lambda _: (4.0, "", "")))
        self.assertEqual(row["candidates"], [{"name": "the product", "fault": "out of memory", "wrong": True}])
        self.assertTrue(sparse_peers.has_failed([row]))

    def test_sides_that_are_no_multiples_have_no_blocks(self):
        row, _ = self.measured(product(rows=20, depth=25))
        self.assertFalse(any("ELL" in entry["name"] for entry in row["candidates"]))

    def test_without_cusparse_each_entry_says_so(self):
        peers = sparse_gpu.Peers(argparse.Namespace(cusparse="/nowhere/libcusparse.so", sputnik=None), host_torch())
        self.assertIn("no cuSPARSE: /nowhere", peers.versions()["cuSPARSE"])
        self.assertEqual(peers.versions()["Sputnik"], "not built")
        with unittest.mock.patch.object(sparse_peers, "weights_of", self.weights):
            name, run = next(iter(peers(product())))
            self.assertTrue(name.startswith("cuSPARSE CSR"))
            with self.assertRaisesRegex(sparse_peers.Failure, "no cuSPARSE"):
                run()

    def test_the_real_library_has_the_functions(self):
        try:
            library = cusparse_calls.open_library((*cusparse_calls.LIBRARIES,
                                                   "/usr/local/cuda-13.0/lib/libcusparse.so.12"))
        except cusparse_calls.CusparseFault as fault:
            self.skipTest(str(fault))
        for name in cusparse_calls.FUNCTIONS:
            self.assertTrue(hasattr(library, name), name)


# --- the table and the program ----------------------------------------------------------------------------------------

def row(layer="1x1.a", batch=1, burin=4.0, candidates=(), **more):
    return {"layer": layer, "sparsity": "0.9", "precision": "fp32", "batch": batch, "im2col": False, "burin_us": burin,
            "burin_fault": "", "candidates": [{"name": name, "us": us, "error": 1e-7} for name, us in candidates], **more}


class Table(unittest.TestCase):
    candidates = [("cuSPARSE CSR CSR_ALG2, by rows", 8.0), ("cuSPARSE CSR DEFAULT, by columns", 12.5), ("torch.sparse", 9.0),
                  ("cuBLAS, dense", 3.0)]

    def test_the_fastest_counts_and_dense_products_do_not(self):
        heads, cells = sparse_peers.cells_of([row(candidates=self.candidates), row("1x1.b", burin=None,
                                                                                  candidates=self.candidates)])
        self.assertEqual(heads, ["layer", "zeros", "precision", "batch", "cuSPARSE CSR us", "torch.sparse us",
                                 "dense cuBLAS us", "algorithm", "burin us", "sparse / burin"])
        self.assertEqual(cells[0], ["1x1.a", "0.9", "fp32", "1", "8.00", "9.00", "3.00", "CSR_ALG2, by rows", "4.00", "2.00"])
        self.assertEqual(cells[1][-2:], ["-", "-"])
        self.assertEqual(cells[2], ["geometric mean of 1", "", "fp32", "1", "", "", "", "", "", "2.00"])

    def test_means_of_each_batch(self):
        rows = [row(batch=batch, candidates=[("torch.sparse", us)]) for batch, us in ((1, 4.0), (1, 16.0), (32, 4.0))]
        _, cells = sparse_peers.cells_of(rows)
        self.assertEqual([cell[-1] for cell in cells[3:]], ["2.00", "1.00"])

    def test_report(self):
        bad = row("3x3.c", im2col=True, candidates=self.candidates, burin=None, burin_fault="exit code 4: no")
        bad["candidates"].append({"name": "Sputnik", "fault": "CudaSpmm failed with error 1"})
        other = {**bad, "batch": 8, "burin_fault": ""}
        text = sparse_peers.report({"environment": {"device": "a GPU", "Sputnik": "not built"}, "rows": [bad, other]})
        self.assertIn("3x3.c, im2col not counted", text)
        self.assertIn("burin: exit code 4: no (3x3.c, 0.9, fp32, batch 1)", text)
        self.assertIn("Sputnik: CudaSpmm failed with error 1 (3x3.c, 0.9, fp32, batch 1, and 1 more)", text)
        self.assertIn("| 1x1.a | 0.9 | fp32 | 1 | 8.00 |", sparse_peers.report(
            {"environment": {}, "rows": [row(candidates=self.candidates)]}, markdown=True))


class Runs(ToolCase):
    program = "sparse_peers.py"
    tool = FAKE_BURIN

    def options(self, *more):
        return sparse_peers.parse_arguments(["--out", str(self.folder), "--burin", str(self.burin), *more])

    def test_burins_times(self):
        options = self.options("--layer", "1x1.512-512.14", "--sparsities", "0.9", "--batch", "1,32")
        products = sparse_peers.products_of(["anchors"], options.layer, ["0.9"], ["fp32", "fp16"], [1, 32], False)
        times = sparse_peers.BurinTimes(options, products)
        self.assertEqual([times.of(one) for one in products],
                         [(2.0, "burin_x", ""), (64.0, "burin_x", ""), (2.0, "burin_x", ""), (64.0, "burin_x", "")])
        self.assertIn("--layout nchw", (self.folder / "anchors-0.9-fp16-few.burin").read_text())
        self.assertIn("--batch 1,32", (self.folder / "anchors-0.9-fp32.burin").read_text())
        other = sparse_peers.products_of(["anchors"], "1x1.512-1024.7", ["0.9"], ["fp32"], [1], False)[0]
        self.assertEqual(times.of(other)[2], "bench has no row for it")

    def test_a_fault_of_burins_is_in_the_row(self):
        options = self.options("--burin-option=bad")
        one = sparse_peers.products_of(["anchors"], "1x1.512-512.14", ["0.9"], ["fp32"], [1], False)
        us, _, fault = sparse_peers.BurinTimes(options, one).of(one[0])
        self.assertIsNone(us)
        self.assertEqual(fault, "exit code 1: burin: error: a bad option")

    def test_rows_are_kept_and_not_measured_again(self):
        options = self.options("--json", str(self.folder / "all.json"), "--budget", "1000")
        products = [product(batch=batch) for batch in (1, 32, 64)]
        document = {"environment": {}, "rows": [row("1x1.512-512.14", sparsity="0.5")]}
        calls = []
        peers = lambda one: calls.append(one.batch) or [("torch.sparse", lambda: (5.0, 0.0))]
        burin = types.SimpleNamespace(of=lambda _: (4.0, "", ""))
        self.assertEqual(sparse_peers.run_all(options, products, peers, burin, document), 0)
        self.assertEqual(calls, [32, 64])
        self.assertEqual(json.loads((self.folder / "all.json").read_text()), document)
        options.budget = 0.0
        self.assertEqual(sparse_peers.run_all(options, [product(batch=2)], peers, burin, document), 1)

    def test_prepare(self):
        command = [sys.executable, str(HERE / "sparse_peers.py"), "--out", str(self.folder), "--burin", str(self.burin),
                   "--layer", "1x1.512-512.14", "--sparsities", "0.9", "--sets", "peers", "--prepare", "2"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 3)
        result = subprocess.run([*command, "--burin-option=bad", "--precisions", "fp16", "--sparsities", "0.8"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAILED: exit code 1: burin: error: a bad option", result.stdout)

    def test_bad_values(self):
        for arguments, message in ((["--sets", "none"], "'none' is none of"), (["--sparsities", "2"], "'2' is no share"),
                                   (["--precisions", "fp8"], "'fp8' is none of fp32, fp16"),
                                   (["--continue"], "--continue needs --json"),
                                   (["--prepare", "1"], "--prepare needs --burin")):
            result = subprocess.run([sys.executable, str(HERE / "sparse_peers.py"), "--out", str(self.folder), *arguments],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)
        result = subprocess.run([sys.executable, str(HERE / "sparse_peers.py"), "--out", str(self.folder), "--sets", "dong"],
                                capture_output=True, text=True, check=False)
        self.assertIn("larger filters need --im2col", result.stderr)


if __name__ == "__main__":
    unittest.main()
