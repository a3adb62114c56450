#include "compiler/import/onnx/permute.h"

#include "ir/error.h"

namespace burin {

StoredTensor permuted(const StoredTensor& tensor, const std::vector<std::int64_t>& order) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  const std::size_t rank = shape.size();
  BURIN_CHECK(order.size() == rank, "{} axes in an order of {}", rank, order.size());
  std::vector<std::int64_t> stride(rank, 1);  // in elements, of the tensor
  for (std::size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * shape[d];

  StoredTensor result = tensor;
  for (std::size_t i = 0; i < rank; ++i) result.view.shape[i] = shape[static_cast<std::size_t>(order[i])];
  const auto width = static_cast<std::size_t>(tensor.view.element_bytes);
  const std::int64_t count = tensor.elements();
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(static_cast<std::size_t>(count) * width);
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bytes->append(tensor.view.bytes.substr(static_cast<std::size_t>(position) * width, width));
    for (std::size_t d = rank; d-- > 0;) {
      const std::int64_t step = stride[static_cast<std::size_t>(order[d])];
      position += step;
      if (++index[d] < result.view.shape[d]) break;
      position -= step * result.view.shape[d];
      index[d] = 0;
    }
  }
  result.owned = bytes;
  result.view.bytes = *result.owned;
  return result;
}

}  // namespace burin
