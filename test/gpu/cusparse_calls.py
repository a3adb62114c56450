"""cuSPARSE's product of a sparse matrix and a dense one, through ctypes: unlike frameworks it leaves the algorithm open.

Numbers are those of cusparse.h and library_types.h of CUDA 13. Nothing here needs a GPU until a handle is made.
"""
import ctypes

LIBRARIES = ("libcusparse.so.12", "libcusparse.so", "/usr/local/cuda/lib64/libcusparse.so")

# cudaDataType_t; sums are FP32 in all of them.
TYPES = {"fp32": 0, "fp16": 2}
SUMS = 0  # CUDA_R_32F
NOT_TRANSPOSED, INDEX_32, FROM_ZERO = 0, 2, 0
ORDERS = {"column": 1, "row": 2}  # cusparseOrder_t
CSR_ALGORITHMS = {"DEFAULT": 0, "CSR_ALG1": 4, "CSR_ALG2": 6, "CSR_ALG3": 12}  # cusparseSpMMAlg_t
BLOCKED_ELL_ALGORITHMS = {"BLOCKED_ELL_ALG1": 13}

_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_PRODUCT = [_POINTER, _INT, _INT, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _INT, _INT]
FUNCTIONS = {
    "cusparseCreate": [_POINTER],
    "cusparseDestroy": [_POINTER],
    "cusparseSetStream": [_POINTER, _POINTER],
    "cusparseCreateCsr": [_POINTER, _LONG, _LONG, _LONG, _POINTER, _POINTER, _POINTER, _INT, _INT, _INT, _INT],
    "cusparseCreateBlockedEll": [_POINTER, _LONG, _LONG, _LONG, _LONG, _POINTER, _POINTER, _INT, _INT, _INT],
    "cusparseCreateDnMat": [_POINTER, _LONG, _LONG, _LONG, _POINTER, _INT, _INT],
    "cusparseDestroySpMat": [_POINTER],
    "cusparseDestroyDnMat": [_POINTER],
    "cusparseSpMM_bufferSize": [*_PRODUCT, _POINTER],
    "cusparseSpMM_preprocess": [*_PRODUCT, _POINTER],
    "cusparseSpMM": [*_PRODUCT, _POINTER],
}


class CusparseFault(Exception):
    pass


def open_library(candidates=LIBRARIES):
    """The first that opens and has all functions."""
    faults = []
    for candidate in candidates:
        try:
            library = ctypes.CDLL(candidate)
            for name, arguments in FUNCTIONS.items():
                getattr(library, name).argtypes = arguments
            return library
        except (OSError, AttributeError) as error:
            faults.append(str(error))
    raise CusparseFault("no cuSPARSE: " + "; ".join(faults))


class Cusparse:
    """A handle. Matrices are made of device addresses, which must stay as long as they do."""

    def __init__(self, library):
        self._library = library
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)
        self._handle = self._made("cusparseCreate")

    def close(self):
        self._call("cusparseDestroy", self._handle)

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise CusparseFault(f"{name} failed with status {status}")

    def _made(self, name, *arguments):
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made

    def csr(self, rows, cols, nonzeros, offsets, columns, values, precision):
        return self._made("cusparseCreateCsr", rows, cols, nonzeros, offsets, columns, values, INDEX_32, INDEX_32, FROM_ZERO,
                          TYPES[precision])

    def blocked_ell(self, rows, cols, block, ell_cols, columns, values, precision):
        return self._made("cusparseCreateBlockedEll", rows, cols, block, ell_cols, columns, values, INDEX_32, FROM_ZERO,
                          TYPES[precision])

    def dense(self, rows, cols, values, precision, order):
        distance = cols if order == "row" else rows
        return self._made("cusparseCreateDnMat", rows, cols, distance, values, TYPES[precision], ORDERS[order])

    def destroy_sparse(self, matrix):
        self._call("cusparseDestroySpMat", matrix)

    def destroy_dense(self, matrix):
        self._call("cusparseDestroyDnMat", matrix)

    def _product(self, left, right, made, algorithm):
        return (self._handle, NOT_TRANSPOSED, NOT_TRANSPOSED, ctypes.byref(self._one), left, right, ctypes.byref(self._zero),
                made, SUMS, algorithm)

    def workspace_bytes(self, left, right, made, algorithm):
        size = ctypes.c_size_t()
        self._call("cusparseSpMM_bufferSize", *self._product(left, right, made, algorithm), ctypes.byref(size))
        return size.value

    def prepare(self, left, right, made, algorithm, workspace, stream):
        """What cuSPARSE does once for a matrix; nobody counts it."""
        self._call("cusparseSetStream", self._handle, stream)
        self._call("cusparseSpMM_preprocess", *self._product(left, right, made, algorithm), workspace)

    def multiply(self, left, right, made, algorithm, workspace, stream):
        self._call("cusparseSetStream", self._handle, stream)
        self._call("cusparseSpMM", *self._product(left, right, made, algorithm), workspace)
