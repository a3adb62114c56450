// Tensors in nchw4: sizes, places and the channels that fill the last four up.
#include <fmt/format.h>

#include <cmath>

#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

constexpr int kChannels = 5, kTogether = 4, kBlocks = 2;  // five channels lie in two blocks of four
constexpr int kElements = kBlocks * kCols * kTogether;

// 1 channel in, 5 channels out in nchw4.
RunOptions five_out() {
  RunOptions options;
  options.shape.out_channels = kChannels;
  options.output_layout = burin::TensorLayout::nchw4;
  return options;
}

// This thread's pixel of output channel `channel` gets `value`.
std::string store(int channel, const std::string& value) {
  const int bytes = (channel / kTogether * kCols * kTogether + channel % kTogether) * 4;
  return fmt::format(
      "  %p{0} = shl i64 %off, 2\n  %o{0} = add i64 %p{0}, {1}\n"
      "  call void @burin_dev_global_store(ptr %out, i64 %o{0}, float {2})\n",
      channel, bytes, value);
}

// Channel c gets c + 0.5.
std::string store_channels(int first, int count) {
  std::string body;
  for (int c = first; c < first + count; ++c) body += store(c, fmt::format("{}.5", c));
  return body;
}

void check_five(const std::vector<float>& output) {
  REQUIRE(output.size() == kElements);
  for (int i = 0; i < kElements; ++i) {
    const int channel = i / (kCols * kTogether) * kTogether + i % kTogether;
    INFO("element " << i << ", channel " << channel);
    if (channel < kChannels) {
      CHECK(output[static_cast<std::size_t>(i)] == static_cast<float>(channel) + 0.5F);
    } else {
      CHECK(std::isnan(output[static_cast<std::size_t>(i)]));  // as it was
    }
  }
}

}  // namespace

TEST_CASE("layouts: filling channels may stay unwritten") {
  const Run run = run_kernel(store_channels(0, kChannels) + "  ret void", five_out());
  CHECK(run.fault.empty());
  check_five(run.output);
}

TEST_CASE("layouts: filling channels may be written, more than once, to no effect") {
  // Both blocks write channel 7 of pixel 0.
  const std::string twice = "  call void @burin_dev_global_store(ptr %out, i64 140, float 1.0)\n";
  const Run run = run_kernel(store_channels(0, 8) + twice + "  ret void", five_out());
  CHECK(run.fault.empty());
  check_five(run.output);
}

TEST_CASE("layouts: a real channel that nobody writes is named") {
  CHECK_THAT(
      fault_of(store_channels(0, kChannels - 1) + "  ret void", five_out()),
      burin_test::Contains("output element 32 (image 0, channel 4, row 0, col 0) was not written by any thread; 8 of "
                           "64 elements are missing"));
}

TEST_CASE("layouts: a real channel written twice is named") {
  const std::string again = "  call void @burin_dev_global_store(ptr %out, i64 8, float 1.0)\n";
  CHECK_THAT(fault_of(store_channels(0, kChannels) + again + "  ret void", five_out()),
             burin_test::Contains("output element 2 (image 0, channel 2, row 0, col 0) a second time"));
}

TEST_CASE("layouts: behind the filling the output ends") {
  CHECK_THAT(fault_of(store_channels(0, kChannels + kTogether) + "  ret void", five_out()),
             burin_test::Contains("store to output out of bounds: element 64, past the 64 of the launch"));
}

TEST_CASE("layouts: four channels that are all real have no filling") {
  RunOptions options = five_out();
  options.shape.out_channels = kTogether;
  CHECK(run_kernel(store_channels(0, kTogether) + "  ret void", options).fault.empty());
  CHECK_THAT(fault_of(store_channels(0, kTogether - 1) + "  ret void", options),
             burin_test::Contains("output element 3 (image 0, channel 3, row 0, col 0) was not written"));
}

TEST_CASE("layouts: the input may be loaded up to the end of its filling") {
  RunOptions options;
  options.shape.in_channels = kChannels;
  options.input_layout = burin::TensorLayout::nchw4;
  const auto load_from = [](int bytes) {
    return fmt::format(
        "  %p = shl i64 %off, 2\n  %i = add i64 %p, {}\n  %x = call float @burin_dev_global_load(ptr %in, i64 %i)\n"
        "  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)\n  ret void",
        bytes);
  };
  const Run run = run_kernel(load_from(kCols * kTogether * 4 + 3 * 4), options);  // channel 7
  CHECK(run.fault.empty());
  for (int i = 0; i < kCols; ++i) {
    CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>(kCols * kTogether + i * kTogether + 3 + 1));
  }
  CHECK_THAT(fault_of(load_from(2 * kCols * kTogether * 4), options),
             burin_test::Contains("load from input out of bounds: element 64, past the 64 of the launch"));
}

TEST_CASE("layouts: tensors of the other layout's size are refused") {
  RunOptions options = five_out();
  options.shape.epilogue.residual = true;
  burin::HostKernel kernel(assemble_kernel("  ret void"), "k", form_of_row_kernel(options));
  const std::vector<float> input(kCols), nchw(kChannels * kCols), packed(kElements);
  std::vector<float> output(kElements), small(kChannels * kCols);
  CHECK_THROWS_WITH(kernel.run({1, input, small, packed}),
                    burin_test::Contains("tensor 'output' has 40 words") && burin_test::Contains("needs 64 in nchw4"));
  CHECK_THROWS_WITH(kernel.run({1, input, output, nchw}), burin_test::Contains("tensor 'residual' has 40 words") &&
                                                              burin_test::Contains("needs 64 in nchw4"));
}
