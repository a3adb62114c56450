// Kernels of the operators beside the convolutions, written by hand: what is taken for one, and its memory.
#include <catch2/catch.hpp>

#include "compiler/host/operator_executor.h"
#include "ir/error.h"
#include "test/host/kernel_text.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// Two images of eight words; the operator has words 2 to 5 of each. A block of 32 threads for each image.
OperatorPlan plan_of_copy() {
  OperatorPlan plan;
  plan.template_name = "global_average";
  plan.integers = {{"channels", 4}, {"plane", 1}, {"vector", 1}};
  plan.input = {8, 2, 4};
  plan.output = {8, 2, 4};
  plan.weight_words = 1;
  plan.threads = 32;
  return plan;
}

// %place: bytes to the word of this thread in this image; `body` runs in the first `threads`.
std::string kernel_of(const std::string& body, int threads = 4) {
  return assemble_module(R"(
define void @k(ptr %in, ptr %out, ptr %second, ptr %weights, i32 %batch) {
  %t = call i32 @burin_dev_thread()
  %b = call i32 @burin_dev_block_x()
  %image = mul i32 %b, 8
  %first = add i32 %image, 2
  %word = add i32 %first, %t
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

std::string fault_of_operator(const std::string& body, std::vector<float>& output) {
  HostOperator host(kernel_of(body), "k", plan_of_copy());
  const std::vector<float> input = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const std::vector<std::uint32_t> weights = {0x3F000000};  // 0.5
  output.assign(16, -1);
  return error_of([&] { host.run({2, input, output, {}, weights}); }, ErrorKind::verification);
}

}  // namespace

TEST_CASE("operator launch: a slice of each image, and weights") {
  std::vector<float> output;
  CHECK(fault_of_operator(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %place)
  %w = call float @burin_dev_global_load(ptr %weights, i64 0)
  %y = fmul float %x, %w
  call void @burin_dev_global_store(ptr %out, i64 %place, float %y)
)",
                          output) == "no error");
  CHECK(output == std::vector<float>{-1, -1, 1, 1.5, 2, 2.5, -1, -1, -1, -1, 5, 5.5, 6, 6.5, -1, -1});
}

TEST_CASE("operator launch: a word beside the slice") {
  std::vector<float> output;
  const std::string fault = fault_of_operator(R"(
  %beside = sub i64 %place, 4
  call void @burin_dev_global_store(ptr %out, i64 %beside, float 1.0)
)",
                                              output);
  CHECK_THAT(fault,
             Catch::Contains("store to output element") && Catch::Contains("word 1), which is not the kernel's"));
}

TEST_CASE("operator launch: nothing is written") {
  std::vector<float> output;
  CHECK_THAT(fault_of_operator("", output),
             Catch::Contains("output element 2 (image 0, word 2) was not written by any thread; 8 of 16"));
}

TEST_CASE("operator launch: weights beyond their end") {
  std::vector<float> output;
  CHECK_THAT(fault_of_operator("  %w = call float @burin_dev_global_load(ptr %weights, i64 4)\n", output),
             Catch::Contains("load from weights out of bounds: element 1, past the 1 of the launch"));
}

TEST_CASE("operator launch: weights are copied before the launch is awaited, and nothing else is") {
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
  OperatorPlan plan = plan_of_copy();
  plan.input = plan.output = {8, 2, 1};
  plan.shared_bytes = 144;
  const auto fault = [&](const std::string& source) {
    std::string text = copied_from(source);
    HostOperator host(kernel_of(text, 1), "k", plan);
    const std::vector<float> input(16, 2);
    const std::vector<std::uint32_t> weights = {0x3F000000};
    std::vector<float> output(16);
    return error_of([&] { host.run({2, input, output, {}, weights}); }, ErrorKind::verification);
  };
  CHECK(fault("%weights") == "no error");
  CHECK_THAT(fault("%in"), Catch::Contains("asynchronous copy before the thread has awaited its launch"));
}

TEST_CASE("operator launch: a convolution's kernel") {
  const std::string fault =
      error_of([] { HostOperator(assemble_kernel(kStoreOne + "  ret void\n"), "k", plan_of_copy()); });
  CHECK_THAT(fault, Catch::Contains("does not have the parameters (input, output, second input, weights, batch)"));
}

TEST_CASE("operator launch: an operator's kernel for a convolution") {
  CHECK_THAT(refusal_of(kernel_of("")), Catch::Contains("does not have the parameters (input, output, residual,"));
}
