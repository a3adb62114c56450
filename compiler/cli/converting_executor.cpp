#include "compiler/cli/converting_executor.h"

#include <algorithm>
#include <limits>

#include "ir/element_type.h"
#include "ir/tensor_layout.h"

namespace burin {
namespace {

constexpr float kFilling = std::numeric_limits<float>::quiet_NaN();

// A tensor as the kernel has it, in words; of float32 in nchw there is no copy.
class Packed {
 public:
  Packed(ElementType element, TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols)
      : words_(nchw) {
    if (element == ElementType::f32 && layout == TensorLayout::nchw) return;
    copy_ = pack_words(element, from_nchw(layout, nchw, channels, rows, cols, kFilling));
    words_ = copy_;
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  std::span<const float> words() const { return words_; }

 private:
  std::vector<float> copy_;
  std::span<const float> words_;
};

// A slice of a larger tensor: `batch` images that are `image_words` apart, with NaN in between.
std::vector<float> spread(std::span<const float> dense, int batch, std::int64_t image_words, std::int64_t words) {
  std::vector<float> slice(static_cast<std::size_t>(words), kFilling);
  const std::size_t image = dense.size() / static_cast<std::size_t>(batch);
  for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n) {
    std::ranges::copy(dense.subspan(n * image, image), slice.begin() + static_cast<std::ptrdiff_t>(n) * image_words);
  }
  return slice;
}

void gather(std::span<const float> slice, int batch, std::int64_t image_words, std::span<float> dense) {
  const std::size_t image = dense.size() / static_cast<std::size_t>(batch);
  for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n) {
    std::ranges::copy(slice.subspan(n * static_cast<std::size_t>(image_words), image),
                      dense.begin() + static_cast<std::ptrdiff_t>(n * image));
  }
}

}  // namespace

void ConvertingExecutor::run(const KernelRecord& kernel, int batch, std::span<const float> input,
                             std::span<const float> residual, std::span<float> output, const ActivityMaps& maps) {
  const ConvShape& shape = kernel.shape;
  const LaunchGeometry& tensors = kernel.launch;
  const int channels = shape.out_channels, rows = shape.out_h(), cols = shape.out_w();
  const ElementType element = tensors.output_element;
  const TensorLayout layout = tensors.output_layout;
  const Packed packed_input(tensors.input_element, tensors.input_layout, input, shape.in_channels, shape.in_h,
                            shape.in_w);
  const Packed packed_residual(element, layout, residual, channels, shape.conv_h(), shape.conv_w());
  if (element == ElementType::f32 && layout == TensorLayout::nchw) {
    std::vector<float> own_residual, own_output;
    std::span<const float> given_residual = packed_residual.words();
    if (tensors.residual_image_words != 0 && !residual.empty()) {
      given_residual = own_residual =
          spread(residual, batch, tensors.residual_image_words, residual_words(tensors, shape, batch));
    }
    if (tensors.output_image_words == 0) {
      launch(kernel, batch, packed_input.words(), given_residual, output, maps);
      return;
    }
    own_output = spread(output, batch, tensors.output_image_words, output_words(tensors, shape, batch));
    launch(kernel, batch, packed_input.words(), given_residual, own_output, maps);
    gather(own_output, batch, tensors.output_image_words, output);
    return;
  }
  std::vector<float> words = pack_words(element, from_nchw(layout, output, channels, rows, cols, kFilling));
  launch(kernel, batch, packed_input.words(), packed_residual.words(), words, maps);
  std::ranges::copy(to_nchw(layout, unpack_words(element, words), channels, rows, cols, batch), output.begin());
}

}  // namespace burin
