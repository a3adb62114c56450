// Callers speak NCHW, kernels what they were compiled for.
#include "compiler/execute/converting_executor.h"
#include "compiler/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/reference.h"
#include "ir/element_type.h"
#include "test/catch.h"

using namespace burin;

namespace {

constexpr int kBatch = 3;  // the last pair is filled up

// An element type and the layouts that its tensors have.
struct Form {
  ElementType element;
  TensorLayout layout;
};

constexpr std::array kForms = {Form{ElementType::f32, TensorLayout::nchw}, Form{ElementType::f32, TensorLayout::nchw4},
                               Form{ElementType::f16, TensorLayout::n2chw},
                               Form{ElementType::bf16, TensorLayout::n2chw}};

std::string describe(const Form& form) { return fmt::format("{} {}", to_string(form.element), to_string(form.layout)); }

Kernel record_of(const Form& input, const Form& output) {
  Kernel record;
  record.op = "conv";
  ConvShape shape;
  shape.in_channels = 5;
  shape.out_channels = 6;
  shape.in_h = 2;
  shape.in_w = 3;
  shape.epilogue.residual = true;
  record.layer = KernelLayer{shape};
  const auto tensor = [](TensorRole role, int channels, const Form& form) {
    return whole_tensor(role, {channels, 2, 3}, form.element, form.layout);
  };
  record.form.tensors = {tensor(TensorRole::input, 5, input), tensor(TensorRole::output, 6, output),
                         tensor(TensorRole::residual, 6, output)};
  return record;
}

// Output channel c is input channel min(c, 4) plus the residual, value by value in the kernel's element types and
// layouts. What fills up the output stays as it is.
class Copies : public ConvertingExecutor {
 public:
  std::string name() const override { return "copies"; }
  bool concurrent() const override { return true; }
  bool filling_was_nan = true, output_was_poisoned = true;

 protected:
  void launch(const Kernel& record, int batch, std::span<const float> input, std::span<const float> residual,
              std::span<float> output, const ActivityMaps& maps) override {
    CHECK(maps.input.empty());
    const ConvShape& s = record.layer->shape;
    const TensorLayout in = record.form.input().layout, out = record.form.output().layout;
    REQUIRE(static_cast<std::int64_t>(input.size()) == tensor_words(in, batch, s.in_channels, s.in_h, s.in_w));
    REQUIRE(static_cast<std::int64_t>(output.size()) == tensor_words(out, batch, s.out_channels, s.in_h, s.in_w));
    REQUIRE(residual.size() == output.size());
    const std::vector<float> x = unpack_words(record.form.input().element, input);
    const std::vector<float> r = unpack_words(record.form.output().element, residual);
    std::vector<float> y = unpack_words(record.form.output().element, output);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const TensorPlace to = place_of(out, s.out_channels, s.in_h, s.in_w, static_cast<std::int64_t>(i));
      output_was_poisoned = output_was_poisoned && std::isnan(y[i]);
      if (to.channel >= s.out_channels || to.image >= batch) {
        filling_was_nan = filling_was_nan && std::isnan(r[i]);
        continue;
      }
      for (std::size_t k = 0; k < x.size(); ++k) {
        const TensorPlace from = place_of(in, s.in_channels, s.in_h, s.in_w, static_cast<std::int64_t>(k));
        if (from == TensorPlace{to.image, std::min<std::int64_t>(to.channel, 4), to.row, to.col}) y[i] = x[k] + r[i];
        if (from.channel >= s.in_channels || from.image >= batch) filling_was_nan = filling_was_nan && std::isnan(x[k]);
      }
    }
    std::ranges::copy(pack_words(record.form.output().element, y), output.begin());
  }
};

}  // namespace

TEST_CASE("every_pair_of_forms_gives_the_same_nchw_output") {
  const ConvShape shape = record_of(kForms[0], kForms[0]).layer->shape;
  const std::vector<float> input = random_tensor(shape.input_elements() * kBatch, 1);
  const std::vector<float> residual = random_tensor(shape.output_elements() * kBatch, 2);
  constexpr std::size_t kPixels = 6;
  for (const Form& in : kForms) {
    for (const Form& out : kForms) {
      std::vector<float> expected;
      for (std::size_t i = 0; i < residual.size(); ++i) {
        const std::size_t image = i / (6 * kPixels), channel = std::min<std::size_t>(i / kPixels % 6, 4);
        const float x = rounded(in.element, input[(image * 5 + channel) * kPixels + i % kPixels]);
        expected.push_back(rounded(out.element, x + rounded(out.element, residual[i])));
      }
      INFO(describe(in) << " > " << describe(out));
      std::vector<float> output(expected.size(), std::numeric_limits<float>::quiet_NaN());
      Copies executor;
      executor.run(record_of(in, out), kBatch, input, residual, output);
      CHECK(output == expected);
      CHECK(executor.filling_was_nan);
      CHECK(executor.output_was_poisoned);
    }
  }
}
