// TensorFormat: what a tensor is in memory: its element type and its layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/element_type.h"
#include "ir/tensor_layout.h"

namespace burin {

struct TensorFormat {
  ElementType element = ElementType::f32;
  TensorLayout layout = TensorLayout::nchw;

  bool is_plain() const { return element == ElementType::f32 && layout == TensorLayout::nchw; }
  // Images that share words.
  int images_together() const { return burin::images_together(layout); }
  bool operator==(const TensorFormat&) const = default;
};

// The format in which convolutions of a precision compute. `layout`: where the precision leaves a choice.
TensorFormat format_of(Precision precision, TensorLayout layout = TensorLayout::nchw);

// The words that one image takes, or as many images as share words; filling is included.
std::int64_t image_words(const TensorFormat& format, const std::vector<std::int64_t>& shape);

// "f32 nchw", "f16 n2chw"
std::string to_string(const TensorFormat& format);

}  // namespace burin
