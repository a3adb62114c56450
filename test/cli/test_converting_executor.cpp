// Callers speak NCHW, kernels what they were compiled for.
#include "compiler/cli/converting_executor.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "compiler/reference.h"

using namespace burin;

namespace {

constexpr int kBatch = 2;

KernelRecord record_of(TensorLayout input, TensorLayout output) {
  KernelRecord record;
  record.layer = "conv";
  record.shape.in_channels = 5;
  record.shape.out_channels = 6;
  record.shape.in_h = 2;
  record.shape.in_w = 3;
  record.shape.epilogue.residual = true;
  record.launch.input_layout = input;
  record.launch.output_layout = output;
  return record;
}

// Output channel c is input channel min(c, 4) plus the residual, element by element in the kernel's layouts. Filling
// channels of the output stay as they are.
class Copies : public ConvertingExecutor {
 public:
  std::string name() const override { return "copies"; }
  bool concurrent() const override { return true; }
  bool filling_was_nan = true, output_was_poisoned = true;

 protected:
  void launch(const KernelRecord& record, int batch, std::span<const float> input, std::span<const float> residual,
              std::span<float> output) override {
    const ConvShape& s = record.shape;
    const TensorLayout in = record.launch.input_layout, out = record.launch.output_layout;
    REQUIRE(static_cast<std::int64_t>(input.size()) == batch * image_elements(in, s.in_channels, s.in_h, s.in_w));
    REQUIRE(static_cast<std::int64_t>(output.size()) == batch * image_elements(out, s.out_channels, s.in_h, s.in_w));
    REQUIRE(residual.size() == output.size());
    const auto size = static_cast<std::int64_t>(input.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(output.size()); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const TensorPlace to = place_of(out, s.out_channels, s.in_h, s.in_w, i);
      output_was_poisoned = output_was_poisoned && std::isnan(output[index]);
      if (to.channel >= s.out_channels) {
        filling_was_nan = filling_was_nan && std::isnan(residual[index]);
        continue;
      }
      for (std::int64_t k = 0; k < size; ++k) {
        const TensorPlace from = place_of(in, s.in_channels, s.in_h, s.in_w, k);
        if (from == TensorPlace{to.image, std::min<std::int64_t>(to.channel, 4), to.row, to.col}) {
          output[index] = input[static_cast<std::size_t>(k)] + residual[index];
        }
        if (from.channel >= s.in_channels)
          filling_was_nan = filling_was_nan && std::isnan(input[static_cast<std::size_t>(k)]);
      }
    }
  }
};

}  // namespace

TEST_CASE("every_pair_of_layouts_gives_the_same_nchw_output") {
  const ConvShape shape = record_of(TensorLayout::nchw, TensorLayout::nchw).shape;
  const std::vector<float> input = random_tensor(shape.input_elements() * kBatch, 1);
  const std::vector<float> residual = random_tensor(shape.output_elements() * kBatch, 2);
  std::vector<float> expected(residual);
  constexpr std::size_t kPixels = 6;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t image = i / (6 * kPixels), channel = std::min<std::size_t>(i / kPixels % 6, 4);
    expected[i] += input[(image * 5 + channel) * kPixels + i % kPixels];
  }
  for (const TensorLayout in : {TensorLayout::nchw, TensorLayout::nchw4}) {
    for (const TensorLayout out : {TensorLayout::nchw, TensorLayout::nchw4}) {
      INFO(to_string(in) << " > " << to_string(out));
      std::vector<float> output(expected.size(), std::numeric_limits<float>::quiet_NaN());
      Copies executor;
      executor.run(record_of(in, out), kBatch, input, residual, output);
      CHECK(output == expected);
      CHECK(executor.filling_was_nan);
      CHECK(executor.output_was_poisoned);
    }
  }
}
