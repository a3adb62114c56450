"""Writes an ONNX model whose weights are held apart, in one of the forms that ONNX has for weights."""
import numpy as np
from onnx import TensorProto, helper

_INDEX_BYTES = 8  # ONNX's sparse tensors have 64-bit indices
_ALIGNMENT = 4096  # of tensors in a file of external data, so that they can be mapped


def _describe(tensor, name, values):
    tensor.name = name
    tensor.data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor.dims.extend(values.shape)


def _fill(tensor, name, values):
    """Fills a tensor where it stands: protobuf copies what is appended."""
    _describe(tensor, name, values)
    tensor.raw_data = values.tobytes()


def _fill_sparse(sparse, name, values):
    flat = values.reshape(-1)
    indices = np.flatnonzero(flat).astype(np.int64)
    sparse.dims.extend(values.shape)
    _fill(sparse.values, name, flat[indices])
    _fill(sparse.indices, "", indices)


def _fill_external(tensor, name, values, file, location):
    offset = file.tell() + -file.tell() % _ALIGNMENT
    file.write(b"\0" * (offset - file.tell()))
    file.write(np.ascontiguousarray(values).data)
    _describe(tensor, name, values)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", values.nbytes)):
        tensor.external_data.add(key=key, value=str(value))


def write_model(path, model, weights, *, sparse=False, external_over=1536 * 10**6):
    """Adds the weights to the model and writes it; consumes `weights`, so that no more than two copies of them are in
    memory. Returns the bytes written."""
    size = sum(values.nbytes for values in weights.values())
    data_path = path.with_name(path.name + ".data")
    data_path.unlink(missing_ok=True)
    data_file = open(data_path, "wb") if size > external_over else None
    for name in list(weights):
        values = weights.pop(name)
        if sparse and np.count_nonzero(values) * (values.itemsize + _INDEX_BYTES) < values.nbytes:
            _fill_sparse(model.graph.sparse_initializer.add(), name, values)
        elif data_file and values.ndim > 0:
            _fill_external(model.graph.initializer.add(), name, values, data_file, data_path.name)
        else:
            _fill(model.graph.initializer.add(), name, values)
    written = 0
    if data_file:
        written = data_file.tell()
        data_file.close()
    with open(path, "wb") as file:
        return written + file.write(model.SerializeToString())
