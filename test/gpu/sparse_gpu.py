"""What sparse_peers.py runs on a GPU: the candidates for a product, checked against float64 and timed by graph replay.

Everything of torch goes through the module that is given, so that tests can see what is asked of it.
"""
import ctypes
import statistics

import numpy as np

import cusparse_calls
import sparse_peers

ELL_BLOCKS = (16, 32)
GRAPH_MICROSECONDS, LEAST_LAUNCHES, MOST_LAUNCHES = 500, 8, 2000  # as of `burin bench`
SAMPLES, WARMUP = 50, 5
# sputnik::CudaSpmm(int, int, int, int, const int*, const float*, const int*, const int*, const float*, float*, CUstream_st*)
SPUTNIK_FUNCTION = "_ZN7sputnik8CudaSpmmEiiiiPKiPKfS1_S1_S3_PfP11CUstream_st"


def csr_of(weights):
    """Offsets, columns and values of a matrix, as numpy has them."""
    rows, columns = np.nonzero(weights)
    offsets = np.zeros(weights.shape[0] + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=weights.shape[0]), out=offsets[1:])
    return offsets, columns.astype(np.int32), weights[rows, columns]


def blocked_ell_of(weights, block):
    """Columns of blocks, and values, of a matrix whose sides are multiples of the block: each row of blocks has as many as
    the fullest; what fills up has the column -1. None: no block is left."""
    rows, cols = (size // block for size in weights.shape)
    blocks = weights.reshape(rows, block, cols, block)
    used = [np.flatnonzero(blocks[row].any(axis=(0, 2))) for row in range(rows)]
    width = max(map(len, used))
    if width == 0:
        return None
    columns = np.full((rows, width), -1, np.int32)
    values = np.zeros((rows, block, width, block), weights.dtype)
    for row, its in enumerate(used):
        columns[row, :len(its)] = its
        values[row, :, :len(its)] = blocks[row][:, its]
    return columns, values.reshape(rows * block, width * block)


def two_of_four(weights):
    """The larger two of each four weights in a row."""
    fours = weights.reshape(weights.shape[0], -1, 4)
    smaller = np.argsort(np.abs(fours), axis=2)[:, :, :2]
    kept = fours.copy()
    np.put_along_axis(kept, smaller, 0, axis=2)
    return kept.reshape(weights.shape)


def launches_for(microseconds):
    return int(min(max(GRAPH_MICROSECONDS / max(microseconds, 1e-3), LEAST_LAUNCHES), MOST_LAUNCHES))


class Timer:
    def __init__(self, torch):
        self._torch = torch

    def _captured(self, stream, launch, launches):
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, stream=stream):
            for turn in range(launches):
                launch(turn)
        return graph

    def _replays(self, stream, graph, count):
        """Microseconds of each of as many replays, which were all enqueued at once."""
        with self._torch.cuda.stream(stream):
            events = [self._torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
            events[0].record()
            for event in events[1:]:
                graph.replay()
                event.record()
            events[-1].synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in zip(events, events[1:])]

    def __call__(self, launch):
        """The median of a launch; `launch(turn)` enqueues on the current stream and reads one of INPUTS inputs."""
        stream = self._torch.cuda.Stream()
        stream.wait_stream(self._torch.cuda.current_stream())
        with self._torch.cuda.stream(stream):
            for turn in range(sparse_peers.INPUTS):
                launch(turn)
        stream.synchronize()
        first = self._captured(stream, launch, LEAST_LAUNCHES)
        launches = launches_for(min(self._replays(stream, first, 3)) / LEAST_LAUNCHES)
        graph = self._captured(stream, launch, launches)
        return statistics.median(self._replays(stream, graph, WARMUP + SAMPLES)[WARMUP:]) / launches


class Problem:
    """A product on the device: weights, INPUTS dense matrices by rows, and what float64 makes of the first of them."""

    def __init__(self, torch, product):
        self.torch, self.product = torch, product
        self.dtype = {"fp32": torch.float32, "fp16": torch.float16}[product.precision]
        values = np.array(sparse_peers.weights_of(product), np.float32).reshape(product.rows, product.depth)
        self.weights = values.astype({"fp32": np.float32, "fp16": np.float16}[product.precision])
        generator = torch.Generator(device="cuda").manual_seed(sparse_peers.SEED)
        self.inputs = [torch.empty((product.depth, product.cols), dtype=torch.float32, device="cuda")
                       .uniform_(-1, 1, generator=generator).to(self.dtype) for _ in range(sparse_peers.INPUTS)]

    def on_device(self, values):
        return self.torch.from_numpy(np.ascontiguousarray(values)).to("cuda")

    def error_of(self, made, weights=None):
        """||made - exact|| / ||exact||, of the first input."""
        exact = self.on_device(self.weights if weights is None else weights).double() @ self.inputs[0].double()
        norm = self.torch.linalg.vector_norm
        return (norm(made.double() - exact) / norm(exact)).item()


class Peers:
    """Called with a product: its candidates, each a name and a function that gives microseconds and the error."""

    def __init__(self, options, torch=None, library=None):
        if torch is None:
            import torch
        self._torch, self._timer = torch, Timer(torch)
        torch.backends.cuda.matmul.allow_tf32 = False
        self._cusparse, self._no_cusparse = None, ""
        try:
            candidates = (options.cusparse,) if options.cusparse else cusparse_calls.LIBRARIES
            torch.zeros(1, device="cuda")  # so that there is a context
            self._cusparse = cusparse_calls.Cusparse(library or cusparse_calls.open_library(candidates))
        except cusparse_calls.CusparseFault as fault:
            self._no_cusparse = str(fault)
        self._sputnik = getattr(ctypes.CDLL(options.sputnik), SPUTNIK_FUNCTION) if options.sputnik else None

    def versions(self):
        return {"device": self._torch.cuda.get_device_name(0), "torch": self._torch.__version__,
                "cuda": self._torch.version.cuda, "Sputnik": "as given" if self._sputnik else "not built",
                **({"cuSPARSE": self._no_cusparse} if self._no_cusparse else {})}

    def __call__(self, product):
        problem = Problem(self._torch, product)
        yield from self._csr(problem)
        yield from self._ell(problem)
        yield "torch.sparse", lambda: self._framework(problem)
        if product.precision == "fp16" and float(product.sparsity) == 0.5:
            yield "cuSPARSELt 2:4, a pattern of its own", lambda: self._semi_structured(problem)
        if self._sputnik and product.precision == "fp32":
            yield "Sputnik", lambda: self._sputnik_time(problem)
        for order in cusparse_calls.ORDERS:
            yield f"cuBLAS, dense, by {order}s", lambda order=order: self._dense(problem, order)

    def _stream(self):
        return ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)

    def _csr(self, problem):
        for order in cusparse_calls.ORDERS:
            for name, algorithm in cusparse_calls.CSR_ALGORITHMS.items():
                yield f"cuSPARSE CSR {name}, by {order}s", lambda order=order, algorithm=algorithm: self._cusparse_time(
                    problem, order, algorithm, self._csr_matrix)

    def _ell(self, problem):
        product = problem.product
        for block in ELL_BLOCKS:
            if product.rows % block != 0 or product.depth % block != 0:
                continue
            for name, algorithm in cusparse_calls.BLOCKED_ELL_ALGORITHMS.items():
                for order in cusparse_calls.ORDERS:
                    yield f"cuSPARSE ELL {name}, blocks of {block}, by {order}s", (
                        lambda order=order, algorithm=algorithm, block=block: self._cusparse_time(
                            problem, order, algorithm, lambda one: self._ell_matrix(one, block)))

    def _csr_matrix(self, problem):
        arrays = [problem.on_device(values) for values in csr_of(problem.weights)]
        product = problem.product
        pointers = [array.data_ptr() for array in arrays]
        return self._cusparse.csr(product.rows, product.depth, len(arrays[2]), *pointers, product.precision), arrays

    def _ell_matrix(self, problem, block):
        product, made = problem.product, blocked_ell_of(problem.weights, block)
        if made is None:
            raise sparse_peers.Failure("there is no nonzero")
        arrays = [problem.on_device(values) for values in made]
        return self._cusparse.blocked_ell(product.rows, product.depth, block, made[1].shape[1], arrays[0].data_ptr(),
                                          arrays[1].data_ptr(), product.precision), arrays

    def _cusparse_time(self, problem, order, algorithm, make_matrix):
        if self._cusparse is None:
            raise sparse_peers.Failure(self._no_cusparse)
        torch, product, of = self._torch, problem.product, self._cusparse
        sparse, arrays = make_matrix(problem)  # the arrays must live as long
        made = []
        try:
            inputs = [one if order == "row" else one.t().contiguous() for one in problem.inputs]
            shape = (product.rows, product.cols) if order == "row" else (product.cols, product.rows)
            output = torch.zeros(shape, dtype=problem.dtype, device="cuda")
            for one in inputs:
                made.append(of.dense(product.depth, product.cols, one.data_ptr(), product.precision, order))
            target = of.dense(product.rows, product.cols, output.data_ptr(), product.precision, order)
            made.append(target)
            size = of.workspace_bytes(sparse, made[0], target, algorithm)
            workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
            of.prepare(sparse, made[0], target, algorithm, workspace.data_ptr(), self._stream())

            def launch(turn):
                of.multiply(sparse, made[turn % sparse_peers.INPUTS], target, algorithm, workspace.data_ptr(),
                            self._stream())

            us = self._timer(launch)
            launch(0)
            torch.cuda.synchronize()
            del arrays
            return us, problem.error_of(output if order == "row" else output.t())
        finally:
            for matrix in made:
                of.destroy_dense(matrix)
            of.destroy_sparse(sparse)

    def _time_and_error(self, problem, multiply, weights=None):
        """Of a function of a dense matrix."""
        with self._torch.no_grad():
            us = self._timer(lambda turn: multiply(problem.inputs[turn % sparse_peers.INPUTS]))
            return us, problem.error_of(multiply(problem.inputs[0]), weights)

    def _framework(self, problem):
        offsets, columns, values = (problem.on_device(array) for array in csr_of(problem.weights))
        matrix = self._torch.sparse_csr_tensor(offsets, columns, values, size=problem.weights.shape)
        return self._time_and_error(problem, lambda dense: matrix @ dense)

    def _semi_structured(self, problem):
        weights = two_of_four(problem.weights)
        matrix = self._torch.sparse.to_sparse_semi_structured(problem.on_device(weights))
        return self._time_and_error(problem, lambda dense: self._torch.mm(matrix, dense), weights)

    def _dense(self, problem, order):
        weights = problem.on_device(problem.weights)
        if order == "row":
            return self._time_and_error(problem, lambda dense: weights @ dense)
        # Matrices by columns are their transposes by rows.
        inputs = [one.t().contiguous() for one in problem.inputs]
        with self._torch.no_grad():
            us = self._timer(lambda turn: inputs[turn % sparse_peers.INPUTS] @ weights.t())
            return us, problem.error_of((inputs[0] @ weights.t()).t())

    def _sputnik_time(self, problem):
        torch, product = self._torch, problem.product
        offsets, columns, values = csr_of(problem.weights)
        longest_first = np.argsort(-np.diff(offsets), kind="stable").astype(np.int32)
        arrays = [problem.on_device(array) for array in (longest_first, values, offsets, columns)]
        output = torch.zeros((product.rows, product.cols), dtype=torch.float32, device="cuda")
        pointer = ctypes.c_void_p

        def launch(turn):
            status = self._sputnik(product.rows, product.depth, product.cols, len(values),
                                   *(pointer(array.data_ptr()) for array in arrays),
                                   pointer(problem.inputs[turn % sparse_peers.INPUTS].data_ptr()),
                                   pointer(output.data_ptr()), self._stream())
            if status != 0:
                raise sparse_peers.Failure(f"CudaSpmm failed with error {status}")

        us = self._timer(launch)
        launch(0)
        torch.cuda.synchronize()
        return us, problem.error_of(output)
