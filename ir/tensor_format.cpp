#include "ir/tensor_format.h"

#include <fmt/format.h>

#include "ir/saturate.h"

namespace burin {

TensorFormat format_of(Precision precision, TensorLayout layout) {
  return {element_of(precision), is_half(precision) ? TensorLayout::n2chw : layout};
}

std::int64_t image_words(const TensorFormat& format, const std::vector<std::int64_t>& shape) {
  if (shape.size() == 3) return image_elements(format.layout, shape[0], shape[1], shape[2]);
  return saturating_product(shape);
}

std::string to_string(const TensorFormat& format) {
  return fmt::format("{} {}", to_string(format.element), to_string(format.layout));
}

}  // namespace burin
