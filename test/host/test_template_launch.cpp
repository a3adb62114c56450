// Kernels of templates, written by hand: slices of larger tensors, and weights as data.
#include <fmt/format.h>

#include "ir/error.h"
#include "ir/template_plan.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kImageWords = 8;

// Of each of two images of eight words the kernel has the first `words`. A block of 32 threads for each image.
KernelForm form_of_slice(int words = 4) {
  TemplatePlan plan;
  for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
    tensor->run_words = words;
    tensor->image_words = kImageWords;
  }
  plan.weights().run_words = 1;
  plan.launch() = {.threads = 32, .shared_bytes = 144};
  return plan.form;
}

// %place: bytes to the word of this thread in this image; `body` runs in the first `threads`.
std::string kernel_of(const std::string& body, int threads = 4) {
  return assemble_module(R"(
define void @k(ptr %in, ptr %out, ptr %second, ptr %weights, i32 %batch) {
  %t = call i32 @burin_dev_thread()
  %b = call i32 @burin_dev_block_x()
  %image = mul i32 %b, 8
  %word = add i32 %image, %t
  %bytes = mul i32 %word, 4
  %place = zext i32 %bytes to i64
  %mine = icmp ult i32 %t, )" +
                         std::to_string(threads) + R"(
  br i1 %mine, label %run, label %done
run:
)" + body + R"(
  br label %done
done:
  ret void
}
)");
}

// The two images end with the slice of the second.
std::string fault_of_slice(const std::string& body, std::vector<float>& output,
                           const KernelForm& form = form_of_slice(), int threads = 4) {
  HostKernel host(kernel_of(body, threads), "k", form);
  std::vector<float> input(static_cast<std::size_t>(form.input().spanned_words(2)));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i + 2);
  const std::vector<std::uint32_t> weights = {0x3F000000};  // 0.5
  output.assign(input.size(), -1);
  return error_of([&] { host.run({2, input, output, {}, weights}); }, ErrorKind::verification);
}

const std::string kHalve = R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %place)
  %w = call float @burin_dev_global_load(ptr %weights, i64 0)
  %y = fmul float %x, %w
  call void @burin_dev_global_store(ptr %out, i64 %place, float %y)
)";

}  // namespace

TEST_CASE("template launch: a slice of each image, and weights") {
  std::vector<float> output;
  CHECK(fault_of_slice(kHalve, output) == "no error");
  CHECK(output == std::vector<float>{1, 1.5, 2, 2.5, -1, -1, -1, -1, 5, 5.5, 6, 6.5});
}

TEST_CASE("template launch: a word beside the slice") {
  const auto fault_at = [](int bytes) {
    std::vector<float> output;
    return fault_of_slice(fmt::format(R"(
  %beside = add i64 %place, {}
  call void @burin_dev_global_store(ptr %out, i64 %beside, float 1.0)
)",
                                      bytes),
                          output);
  };
  CHECK_THAT(fault_at(4), burin_test::Contains("store to output element") &&
                              burin_test::Contains("(image 0, word 4), which is not the kernel's"));
  CHECK_THAT(fault_at(-4), burin_test::Contains("element -1, before the 12 of the launch") ||
                               burin_test::Contains("element 7 (image 0, word 7), which is not the kernel's"));
}

TEST_CASE("template launch: several runs of each image") {
  // Words 0 and 1, 4 and 5.
  KernelForm form = form_of_slice(2);
  for (KernelTensor* tensor : {&form.tensors[0], &form.tensors[1]}) {
    tensor->runs = 2;
    tensor->run_pitch = 4;
  }
  const std::string in_run =
      "  %low = and i32 %t, 2\n  %there = icmp eq i32 %low, 0\n"
      "  br i1 %there, label %copy, label %done\ncopy:\n";
  std::vector<float> output;
  CHECK(fault_of_slice(in_run + kHalve, output, form, 6) == "no error");
  CHECK(output == std::vector<float>{1, 1.5, -1, -1, 3, 3.5, -1, -1, 5, 5.5, -1, -1, 7, 7.5});
  CHECK_THAT(fault_of_slice(kHalve, output, form, 6), burin_test::Contains("word 2), which is not the kernel's"));
  CHECK_THAT(fault_of_slice(in_run + kHalve, output, form, 4),
             burin_test::Contains("output element 4 (image 0, word 4) was not written by any thread; 4 of 14"));
}

TEST_CASE("template launch: nothing is written") {
  std::vector<float> output;
  CHECK_THAT(fault_of_slice("", output),
             burin_test::Contains("output element 0 (image 0, word 0) was not written by any thread; 8 of 12"));
}

TEST_CASE("template launch: weights beyond their end") {
  std::vector<float> output;
  CHECK_THAT(fault_of_slice("  %w = call float @burin_dev_global_load(ptr %weights, i64 4)\n", output),
             burin_test::Contains("load from weights out of bounds: element 1, past the 1 of the launch"));
}

TEST_CASE("template launch: weights are copied before the launch is awaited, and nothing else is") {
  const auto copied_from = [](const std::string& source) {
    return "  call void @burin_dev_copy_async(i32 0, i32 0, ptr " + source + R"(, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_await_launch()
  call void @burin_dev_copy_wait(i32 0)
  %w = call float @burin_dev_shared_load(i32 0, i32 0)
  call void @burin_dev_global_store(ptr %out, i64 %place, float %w)
)";
  };
  // One thread copies: that of the only word that the kernel has.
  const auto fault = [&](const std::string& source) {
    std::vector<float> output;
    return fault_of_slice(copied_from(source), output, form_of_slice(1), 1);
  };
  CHECK(fault("%weights") == "no error");
  CHECK_THAT(fault("%in"), burin_test::Contains("asynchronous copy before the thread has awaited its launch"));
}

TEST_CASE("template launch: weights of another number") {
  HostKernel host(kernel_of(kHalve), "k", form_of_slice());
  const std::vector<float> input(12);
  std::vector<float> output(12);
  const std::vector<std::uint32_t> weights(2);
  CHECK_THAT(error_of([&] { host.run({2, input, output, {}, weights}); }),
             burin_test::Contains("tensor 'weights' has 2 words; batch 2 needs 1"));
  CHECK_THAT(error_of([&] { host.run({2, input, output}); }), burin_test::Contains("tensor 'weights' has 0 words"));
}

TEST_CASE("template launch: a kernel of another form") {
  const std::string fault =
      error_of([] { HostKernel(assemble_kernel(kStoreOne + "  ret void\n"), "k", form_of_slice()); });
  CHECK_THAT(fault,
             burin_test::Contains("kernel 'k' does not have the parameters (input, output, residual, weights, batch)"));
  CHECK_THAT(refusal_of(kernel_of("")),
             burin_test::Contains(
                 "kernel 'k' does not have the parameters (input, output, residual, partials, counters, batch)"));
}
