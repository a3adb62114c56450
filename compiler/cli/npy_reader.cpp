#include "compiler/cli/npy_reader.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {

NpyTensor read_npy(const std::string& path) {
  const MappedFile file(path);
  const WeightsTensor tensor = parse_npy(file.bytes(), path, path);
  if (!is_float(tensor.type))
    fail(ErrorKind::bad_input, "{}: holds {}, not floating-point numbers", path, tensor.type_name);
  return {tensor.shape, float_values(tensor)};
}

int images_of(const NpyTensor& tensor, const std::string& path, const std::string& what,
              const std::vector<std::int64_t>& image) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  const bool batched = shape.size() == image.size() + 1;
  const bool fits =
      (batched || shape.size() == image.size()) && std::equal(image.rbegin(), image.rend(), shape.rbegin());
  if (!fits || (batched && (shape[0] < 1 || shape[0] > kMaxBatch))) {
    fail(ErrorKind::bad_input, "{}: has shape [{}], but {} is [N,{}] or [{}]", path, fmt::join(shape, ","), what,
         fmt::join(image, ","), fmt::join(image, ","));
  }
  return batched ? static_cast<int>(shape[0]) : 1;
}

}  // namespace burin
