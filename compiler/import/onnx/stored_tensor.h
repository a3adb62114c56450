// The constants of a model: initializers, sparse initializers and the values of Constant nodes.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/import/mapped_file.h"
#include "compiler/import/weights_tensor.h"

namespace burin {

// A sparse tensor may have kSparseFloor values whatever it holds, and kSparseExpansion more for each that it holds:
// otherwise some bytes of a file could ask for any amount of memory.
inline constexpr std::int64_t kSparseFloor = std::int64_t{1} << 22;
inline constexpr std::int64_t kSparseExpansion = 4096;

struct StoredTensor {
  WeightsTensor view;                 // of the model, of an external file, or of `owned`
  std::shared_ptr<const void> owned;  // what holds bytes that lie nowhere in this form

  const std::vector<std::int64_t>& shape() const { return view.shape; }
  std::int64_t elements() const { return view.elements(); }
  bool is_float() const { return burin::is_float(view.type); }
  bool is_integer() const { return view.type == StoredType::i32 || view.type == StoredType::i64; }
};

// Where tensors come from: the model's path, for messages too, and those files beside it that tensors lie in.
struct TensorSource {
  std::string path;
  std::map<std::string, std::unique_ptr<MappedFile>> files = {};  // by the name that the model gives them
};

// `name` is used in messages where the tensor has none of its own. The view lives as long as `tensor` and `source` do.
// Of other files only those in the model's folder or below it are opened, links followed. Throws Error(bad_input) for
// data that do not fit type and shape, and for types that burin has no use for.
StoredTensor read_tensor(const ::onnx::TensorProto& tensor, const std::string& name, TensorSource& source);

// Fills in the zeros. Indices may have both forms: positions in the dense tensor, or coordinates.
StoredTensor read_sparse_tensor(const ::onnx::SparseTensorProto& tensor, const std::string& name, TensorSource& source);

StoredTensor float_tensor(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values,
                          const std::string& path);
StoredTensor integer_tensor(const std::string& name, std::vector<std::int64_t> shape,
                            const std::vector<std::int64_t>& values, const std::string& path);

// The tensor must be is_integer().
std::vector<std::int64_t> integer_values(const StoredTensor& tensor);

}  // namespace burin
