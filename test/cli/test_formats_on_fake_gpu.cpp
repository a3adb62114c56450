// Callers speak NCHW, kernels what they were compiled for: on a driver whose memory the test computes in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "compiler/execute/executor.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/kernel_program.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kFormatBatch = 3;  // the last images that lie side by side are filled up
constexpr int kChannelsIn = 5, kChannelsOut = 6, kRows = 2, kCols = 3;

constexpr std::array kFormats = {TensorFormat{},
                                 TensorFormat{ElementType::f32, TensorLayout::nchw4},
                                 TensorFormat{ElementType::f16, TensorLayout::n2chw},
                                 TensorFormat{ElementType::bf16, TensorLayout::n2chw},
                                 TensorFormat{ElementType::f16, TensorLayout::n8c8hw},
                                 TensorFormat{ElementType::f32, TensorLayout::n4c8hw}};

// One kernel, with a residual, whose tensors are in these formats.
Package package_of(const TensorFormat& input, const TensorFormat& output) {
  const auto sample = sample_package({}, [&](std::vector<Kernel>& kernels) {
    kernels.erase(kernels.begin(), kernels.end() - 1);
    Kernel& kernel = kernels.front();
    ConvShape& shape = kernel.layer->shape;
    shape = {};
    shape.in_channels = kChannelsIn;
    shape.out_channels = kChannelsOut;
    shape.in_h = kRows;
    shape.in_w = kCols;
    shape.epilogue.residual = true;
    kernel.layer->nonzeros = 7;
    edit_template(kernel, [&](TemplatePlan& plan) {
      const auto tensor = [](TensorRole role, int channels, const TensorFormat& format) {
        return image_tensor(role, channels, kRows, kCols, format.layout, format.element);
      };
      plan.input() = tensor(TensorRole::input, kChannelsIn, input);
      plan.output() = tensor(TensorRole::output, kChannelsOut, output);
      plan.residual() = tensor(TensorRole::residual, kChannelsOut, output);
      plan.launch().tile_images = 8;
    });
  });
  Package package = *sample;
  package.manifest.programs = {program_of(package.manifest.kernels.front(), 4)};
  REQUIRE(verify(package) == std::vector<std::string>{});
  return package;
}

// What a launch's tensor holds, as values.
std::vector<float> values_at(const void* address, const TensorFormat& format, int channels) {
  const std::int64_t elements = tensor_elements(format.layout, kFormatBatch, channels, kRows, kCols);
  const auto words = static_cast<std::size_t>(elements / elements_per_word(format.element));
  return unpack_words(format.element, std::span(static_cast<const float*>(address), words));
}

TensorPlace place_at(const TensorFormat& format, int channels, std::size_t element) {
  return place_of(format.layout, channels, kRows, kCols, static_cast<std::int64_t>(element));
}

bool is_filling(const TensorPlace& place, int channels) {
  return place.channel >= channels || place.image >= kFormatBatch;
}

// What a caller fills up with: NaN that no kernel may read, or channels of zeros.
bool is_well_filled(float value, const TensorPlace& place, int channels, const TensorFormat& format) {
  return place.channel >= channels && fills_with_zeros(format.layout) ? value == 0 : std::isnan(value);
}

// Output channel c is input channel min(c, 4) plus the residual, value by value in the kernel's formats. What fills up
// the output stays as it is, but for channels that must be zero. Checks what it is given.
void compute(const FakeLaunch& launch, const TensorFormat& in, const TensorFormat& out) {
  REQUIRE(launch.batch == kFormatBatch);
  const std::vector<float> x = values_at(launch.input, in, kChannelsIn);
  const std::vector<float> r = values_at(launch.residual, out, kChannelsOut);
  std::vector<float> y = values_at(launch.output, out, kChannelsOut);
  bool was_well_filled = true, output_was_poisoned = true;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const TensorPlace to = place_at(out, kChannelsOut, i);
    output_was_poisoned = output_was_poisoned && std::isnan(y[i]);
    if (is_filling(to, kChannelsOut)) {
      was_well_filled = was_well_filled && is_well_filled(r[i], to, kChannelsOut, out);
      if (to.channel >= kChannelsOut && fills_with_zeros(out.layout)) y[i] = 0;
      continue;
    }
    for (std::size_t k = 0; k < x.size(); ++k) {
      const TensorPlace from = place_at(in, kChannelsIn, k);
      if (from == TensorPlace{to.image, std::min<std::int64_t>(to.channel, 4), to.row, to.col}) y[i] = x[k] + r[i];
      if (is_filling(from, kChannelsIn)) {
        was_well_filled = was_well_filled && is_well_filled(x[k], from, kChannelsIn, in);
      }
    }
  }
  CHECK(was_well_filled);
  CHECK(output_was_poisoned);
  std::ranges::copy(pack_words(out.element, y), static_cast<float*>(launch.output));
}

}  // namespace

TEST_CASE("gpu_executor_gives_the_same_nchw_output_for_every_pair_of_formats") {
  constexpr std::size_t kPixels = kRows * kCols;
  const std::vector<float> input = random_tensor(std::int64_t{kFormatBatch} * kChannelsIn * kPixels, 1);
  const std::vector<float> residual = random_tensor(std::int64_t{kFormatBatch} * kChannelsOut * kPixels, 2);
  for (const TensorFormat& in : kFormats) {
    for (const TensorFormat& out : kFormats) {
      std::vector<float> expected;
      for (std::size_t i = 0; i < residual.size(); ++i) {
        const std::size_t image = i / (kChannelsOut * kPixels);
        const std::size_t channel = std::min<std::size_t>(i / kPixels % kChannelsOut, 4);
        const float x = rounded(in.element, input[(image * kChannelsIn + channel) * kPixels + i % kPixels]);
        expected.push_back(rounded(out.element, x + rounded(out.element, residual[i])));
      }
      INFO(to_string(in) << " > " << to_string(out));
      const Package package = package_of(in, out);
      FakeDriver driver;
      {
        const auto executor = make_executor({.host = false, .ordinal = 0, .note = {}}, package);
        const Tensors outputs = executor->run(
            package.manifest.programs.front(), kFormatBatch, {input, residual}, [&](const StepValues& values) {
              REQUIRE(values.reads.size() == 2);
              CHECK(values.reads[0] == rounded(in.element, input));
              CHECK(values.reads[1] == rounded(out.element, residual));
              CHECK(std::ranges::all_of(values.output, [](float value) { return std::isnan(value); }));
              CHECK(values.fault.empty() == !fills_with_zeros(out.layout));  // nobody has written it yet
              compute(driver.launches().back(), in, out);
            });
        REQUIRE(outputs.size() == 1);
        CHECK(outputs[0] == expected);
      }
      CHECK(driver.live().empty());
    }
  }
}

TEST_CASE("gpu_executor_finds_filling_channels_that_are_not_zero") {
  const std::int64_t pixels = std::int64_t{kFormatBatch} * kRows * kCols;
  const Tensors inputs = {random_tensor(pixels * kChannelsIn, 1), random_tensor(pixels * kChannelsOut, 2)};
  const TensorFormat octets = {ElementType::f16, TensorLayout::n8c8hw};
  const Package package = package_of({}, octets);
  FakeDriver driver;
  const auto executor = make_executor({.host = false, .ordinal = 0, .note = {}}, package);
  const auto leave_poison = [](const StepValues& values) {
    CHECK(values.fault.find("image 0, filling channel 6, row 0, col 0: ") == 0);
    CHECK(values.fault.find(", and what fills up channels in n8c8hw is zero") != std::string::npos);
  };
  const std::string fault =
      error_of([&] { executor->run(package.manifest.programs.front(), kFormatBatch, inputs, leave_poison); },
               ErrorKind::verification);
  CHECK(fault.find("image 0, filling channel 6, row 0, col 0: ") != std::string::npos);
}
