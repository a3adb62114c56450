#include "ir/tensor_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "ir/error.h"
#include "ir/factor_type.h"
#include "ir/parallel_for.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Calls visit(position in nchw, position in the layout) for every value of every image; those of several images at
// once where there are many.
template <typename Visit>
void for_each_value(TensorLayout layout, std::size_t images, int channels, int rows, int cols, Visit visit) {
  const auto channels_side = static_cast<std::size_t>(channels_side_by_side(layout, channels));
  const auto images_side = static_cast<std::size_t>(images_together(layout));
  const std::size_t pixels = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  const std::size_t image = static_cast<std::size_t>(image_elements(layout, channels, rows, cols));
  const std::size_t step = channels_side * images_side;
  parallel_for(static_cast<int>(images), static_cast<double>(images * image), [&](int index) {
    const auto n = static_cast<std::size_t>(index);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      const std::size_t plain = (n * channels + c) * pixels;
      const std::size_t packed = n / images_side * images_side * image + c / channels_side * pixels * step +
                                 c % channels_side * images_side + n % images_side;
      for (std::size_t p = 0; p < pixels; ++p) visit(plain + p, packed + p * step);
    }
  });
}

// Calls visit(element) for each one that fills up the channels of an image, of all images that `elements` are.
template <typename Visit>
void for_each_filling(TensorLayout layout, std::size_t elements, int channels, int rows, int cols, Visit visit) {
  const std::int64_t side = channels_side_by_side(layout, channels);
  if (channels % side == 0) return;
  const std::int64_t images_side = images_together(layout), block = side * images_side * rows * cols;
  const std::int64_t group = images_side * image_elements(layout, channels, rows, cols);
  for (std::int64_t end = group; end <= static_cast<std::int64_t>(elements); end += group) {
    for (std::int64_t element = end - block; element < end; ++element) {
      if (element / images_side % side >= channels % side) visit(element);
    }
  }
}

std::size_t whole_images(std::size_t values, std::int64_t image) {
  BURIN_CHECK(image > 0 && values % static_cast<std::size_t>(image) == 0, "{} values are no whole images of {}", values,
              image);
  return values / static_cast<std::size_t>(image);
}

}  // namespace

std::int64_t image_elements(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols) {
  const int together = channels_together(layout);
  return saturating_product({ceil_div(channels, together), together, rows, cols});
}

std::int64_t tensor_elements(TensorLayout layout, std::int64_t images, std::int64_t channels, std::int64_t rows,
                             std::int64_t cols) {
  const int together = images_together(layout);
  return saturating_product({ceil_div(images, together), together, image_elements(layout, channels, rows, cols)});
}

bool can_be_parts(TensorLayout layout, std::span<const std::int64_t> channels) {
  const std::int64_t together = channels_together(layout);
  return can_be_slices(layout) &&
         std::ranges::all_of(channels.first(channels.size() - 1), [&](std::int64_t c) { return c % together == 0; });
}

bool can_compute_in(ElementType element, TensorLayout layout) {
  return can_lie_in(element, layout) && !TensorFormat{element, layout}.is_loose();
}

TensorFormat format_of(Precision precision, TensorLayout layout) {
  const ElementType element = element_of(precision);
  if (can_compute_in(element, layout)) return {element, layout};
  return {element, is_half(precision) ? TensorLayout::n2chw : TensorLayout::nchw};
}

bool can_ask_for(TensorLayout layout, Precision precision) {
  if (layout == TensorLayout::n4c8hw || layout == TensorLayout::nhwc4) return precision == Precision::tf32;
  return can_compute_in(element_of(precision), layout) ||
         (layout == TensorLayout::nchw && factors_of(precision) != FactorType::f32);
}

std::int64_t image_elements(const TensorFormat& format, const std::vector<std::int64_t>& shape) {
  if (shape.size() != 3) return saturating_product(shape);
  return image_elements(format.layout, shape[0], shape[1], shape[2]);
}

int element_bytes(const TensorFormat& format) { return images_together(format.layout) * bytes_of(format.element); }

std::int64_t image_words(const TensorFormat& format, const std::vector<std::int64_t>& shape) {
  return saturating_product({image_elements(format, shape), element_bytes(format)}) / format.word_bytes();
}

int access_bytes(const TensorFormat& format, std::int64_t distance) {
  constexpr int kWideBytes = 16;
  if (distance % kWideBytes == 0) return kWideBytes;
  return distance % kWordBytes == 0 ? kWordBytes : format.word_bytes();
}

std::string to_string(const TensorFormat& format) {
  return fmt::format("{} {}", to_string(format.element), to_string(format.layout));
}

TensorPlace place_of(TensorLayout layout, std::int64_t channels, std::int64_t rows, std::int64_t cols,
                     std::int64_t element) {
  const std::int64_t channels_side = channels_side_by_side(layout, channels), images_side = images_together(layout);
  const std::int64_t blocks = ceil_div(channels, channels_side);
  const std::int64_t pixel = element / (channels_side * images_side);
  const std::int64_t block = pixel / (rows * cols);
  return {.image = block / blocks * images_side + element % images_side,
          .channel = block % blocks * channels_side + element / images_side % channels_side,
          .row = pixel / cols % rows,
          .col = pixel % cols};
}

std::vector<float> from_nchw(TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols,
                             float filling) {
  const std::size_t images = whole_images(nchw.size(), image_elements(TensorLayout::nchw, channels, rows, cols));
  std::vector<float> packed(
      static_cast<std::size_t>(tensor_elements(layout, static_cast<std::int64_t>(images), channels, rows, cols)),
      filling);
  for_each_value(layout, images, channels, rows, cols,
                 [&](std::size_t plain, std::size_t at) { packed[at] = nchw[plain]; });
  if (fills_with_zeros(layout)) {
    for_each_filling(layout, packed.size(), channels, rows, cols,
                     [&](std::int64_t at) { packed[static_cast<std::size_t>(at)] = 0; });
  }
  return packed;
}

std::vector<float> to_nchw(TensorLayout layout, std::span<const float> values, int channels, int rows, int cols,
                           std::optional<std::int64_t> images) {
  const auto side = static_cast<std::size_t>(images_together(layout));
  const std::int64_t image = image_elements(layout, channels, rows, cols);
  const std::size_t groups = whole_images(values.size(), saturating_product({image, images_together(layout)}));
  const std::size_t wanted = images ? static_cast<std::size_t>(*images) : groups * side;
  BURIN_CHECK(wanted <= groups * side && wanted + side > groups * side, "{} images of {} in {} values", wanted, image,
              values.size());
  std::vector<float> nchw(wanted * static_cast<std::size_t>(image_elements(TensorLayout::nchw, channels, rows, cols)));
  for_each_value(layout, wanted, channels, rows, cols,
                 [&](std::size_t plain, std::size_t at) { nchw[plain] = values[at]; });
  return nchw;
}

std::optional<std::int64_t> nonzero_filling(TensorLayout layout, std::span<const float> values, int channels, int rows,
                                            int cols, std::int64_t images) {
  std::optional<std::int64_t> found;
  if (!fills_with_zeros(layout)) return found;
  const std::int64_t side = images_together(layout);
  const std::int64_t group = side * image_elements(layout, channels, rows, cols);
  for_each_filling(layout, values.size(), channels, rows, cols, [&](std::int64_t at) {
    const std::int64_t image = at / group * side + at % side;
    if (!found && image < images && values[static_cast<std::size_t>(at)] != 0) found = at;
  });
  return found;
}

}  // namespace burin
