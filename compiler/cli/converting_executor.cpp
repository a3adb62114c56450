#include "compiler/cli/converting_executor.h"

#include <algorithm>
#include <limits>

#include "ir/tensor_layout.h"

namespace burin {
namespace {

// A tensor in a kernel's layout; of nchw there is no copy.
class Packed {
 public:
  Packed(TensorLayout layout, std::span<const float> nchw, int channels, int rows, int cols) : values_(nchw) {
    if (layout == TensorLayout::nchw) return;
    copy_ = from_nchw(layout, nchw, channels, rows, cols, std::numeric_limits<float>::quiet_NaN());
    values_ = copy_;
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

}  // namespace

void ConvertingExecutor::run(const KernelRecord& kernel, int batch, std::span<const float> input,
                             std::span<const float> residual, std::span<float> output) {
  const ConvShape& shape = kernel.shape;
  const int channels = shape.out_channels, rows = shape.out_h(), cols = shape.out_w();
  const TensorLayout layout = kernel.launch.output_layout;
  const Packed packed_input(kernel.launch.input_layout, input, shape.in_channels, shape.in_h, shape.in_w);
  const Packed packed_residual(layout, residual, channels, rows, cols);
  if (layout == TensorLayout::nchw) {
    launch(kernel, batch, packed_input.values(), packed_residual.values(), output);
    return;
  }
  std::vector<float> packed_output =
      from_nchw(layout, output, channels, rows, cols, std::numeric_limits<float>::quiet_NaN());
  launch(kernel, batch, packed_input.values(), packed_residual.values(), packed_output);
  std::ranges::copy(to_nchw(layout, packed_output, channels, rows, cols), output.begin());
}

}  // namespace burin
