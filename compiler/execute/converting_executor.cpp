#include "compiler/execute/converting_executor.h"

#include <algorithm>
#include <limits>

#include "ir/element_type.h"
#include "ir/tensor_layout.h"

namespace burin {
namespace {

constexpr float kFilling = std::numeric_limits<float>::quiet_NaN();

bool is_plain(const KernelTensor& tensor) {
  return tensor.element == ElementType::f32 && tensor.layout == TensorLayout::nchw;
}

// A tensor as the kernel has it, in words; of whole float32 images in nchw there is no copy.
class Packed {
 public:
  Packed(const KernelTensor& tensor, int batch, std::span<const float> nchw) : words_(nchw) {
    if (is_plain(tensor) && tensor.image_words == tensor.words()) return;
    copy_ = is_plain(tensor) ? spread(nchw, batch, tensor) : packed(tensor, nchw);
    words_ = copy_;
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  std::span<const float> words() const { return words_; }

 private:
  static std::vector<float> packed(const KernelTensor& tensor, std::span<const float> nchw) {
    return pack_words(tensor.element,
                      from_nchw(tensor.layout, nchw, tensor.channels, tensor.rows, tensor.cols, kFilling));
  }

  // Images of a larger tensor, with NaN in between.
  static std::vector<float> spread(std::span<const float> dense, int batch, const KernelTensor& tensor) {
    std::vector<float> slice(static_cast<std::size_t>(tensor.spanned_words(batch)), kFilling);
    const std::size_t image = dense.size() / static_cast<std::size_t>(batch);
    for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n) {
      std::ranges::copy(dense.subspan(n * image, image),
                        slice.begin() + static_cast<std::ptrdiff_t>(n) * tensor.image_words);
    }
    return slice;
  }

  std::vector<float> copy_;
  std::span<const float> words_;
};

void gather(std::span<const float> slice, int batch, std::int64_t image_words, std::span<float> dense) {
  const std::size_t image = dense.size() / static_cast<std::size_t>(batch);
  for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n) {
    std::ranges::copy(slice.subspan(n * static_cast<std::size_t>(image_words), image),
                      dense.begin() + static_cast<std::ptrdiff_t>(n * image));
  }
}

}  // namespace

void ConvertingExecutor::run(const Kernel& kernel, int batch, std::span<const float> input,
                             std::span<const float> residual, std::span<float> output, const ActivityMaps& maps) {
  const KernelTensor& tensor = kernel.form.output();
  const Packed packed_input(kernel.form.input(), batch, input);
  const KernelTensor* added = kernel.form.find(TensorRole::residual);
  const Packed packed_residual(added == nullptr ? KernelTensor{} : *added, batch, residual);
  if (is_plain(tensor) && tensor.image_words == tensor.words()) {
    launch(kernel, batch, packed_input.words(), packed_residual.words(), output, maps);
    return;
  }
  const Packed before(tensor, batch, output);
  std::vector<float> words(before.words().begin(), before.words().end());
  launch(kernel, batch, packed_input.words(), packed_residual.words(), words, maps);
  if (is_plain(tensor)) {
    gather(words, batch, tensor.image_words, output);
    return;
  }
  std::ranges::copy(
      to_nchw(tensor.layout, unpack_words(tensor.element, words), tensor.channels, tensor.rows, tensor.cols, batch),
      output.begin());
}

}  // namespace burin
