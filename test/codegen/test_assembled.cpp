// What the assemblers make of the code: everything stays in registers, as many as the plan allows.
#include <fmt/format.h>

#include "compiler/assemble/assembler.h"
#include "compiler/emit/ptx.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "ir/cubin_info.h"
#include "test/assemble/kernels.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

struct Sample {
  const char* name;
  int in, out, kernel, extent;
  int stride = 1, pad = 0, groups = 1;
  double density = 0.1;
};

constexpr Sample k192At14 = {"3x3 192@14", 192, 192, 3, 14, 1, 1};
constexpr Sample k512At14 = {"1x1 512@14", 512, 512, 1, 14};
constexpr Sample k96At14 = {"3x3 96@14", 96, 96, 3, 14, 1, 1};
constexpr Sample k256At14 = {"1x1 256@14", 256, 256, 1, 14};
constexpr Sample k64At56 = {"3x3 64@56", 64, 64, 3, 56, 1, 1};
constexpr Sample kDense = {"dense 3x3 64@28", 64, 64, 3, 28, 1, 1, 1, 1.0};
constexpr Sample kDepthwise = {"depthwise 512@14", 512, 512, 3, 14, 1, 1, 512, 1.0};
constexpr Sample kFirst11x11 = {"11x11 stride 4", 3, 96, 11, 227, 4, 0, 1, 0.8};
constexpr Sample kFirst7x7 = {"7x7 stride 2", 3, 64, 7, 224, 2, 3, 1, 0.9};
constexpr Sample kFirst7x7Half = {"7x7 stride 2, few outputs", 3, 16, 7, 224, 2, 3, 1, 0.9};

ConvLayer layer_of(const Sample& sample) {
  ConvShape shape;
  shape.in_channels = sample.in;
  shape.out_channels = sample.out;
  shape.kernel_h = shape.kernel_w = sample.kernel;
  shape.stride_h = shape.stride_w = sample.stride;
  shape.pad = {sample.pad, sample.pad, sample.pad, sample.pad};
  shape.groups = sample.groups;
  shape.in_h = shape.in_w = sample.extent;
  shape.epilogue.bias = true;
  shape.epilogue.function = function_of(Activation::relu);
  return make_layer(sample.name, shape, sample.density);
}

// Arguments of a slice that find no place in registers.
constexpr int kArgumentBytes = 40;

// The entry passes some of a slice's arguments on the stack; a slice has no frame.
void check_frames(const CubinInfo& info, const std::string& symbol, const BakedPlan& plan) {
  int slices = 0;
  for (const CubinFunction& function : info.functions) {
    INFO(function.name << ": " << function.frame_bytes << " bytes of frame");
    CHECK(function.entry == (function.name == symbol));
    CHECK(function.frame_bytes >= 0);
    CHECK(function.frame_bytes <= (function.entry ? kArgumentBytes : 0));
    slices += function.entry ? 0 : 1;
  }
  CHECK(slices == static_cast<int>(plan.slices.size()));
}

void check_report(const std::string& assembler, AssemblerOutput output, const std::string& symbol,
                  const BakedPlan& plan) {
  const CubinInfo info = read_cubin(output.cubin);
  const AssembledKernel kernel = describe_assembled(std::move(output), symbol);
  INFO(assembler << ": " << kernel.registers << " registers of " << plan.max_registers << ", " << kernel.spill_bytes
                 << " bytes of spills, " << kernel.stack_bytes << " bytes of stack, " << kernel.code_bytes
                 << " bytes of code");
  CHECK(kernel.spill_bytes == 0);
  CHECK(kernel.stack_bytes <= kArgumentBytes);
  check_frames(info, symbol, plan);
  CHECK(kernel.registers > 0);
  CHECK(kernel.registers <= plan.max_registers);
  CHECK(kernel.code_bytes > 0);
}

constexpr std::int64_t kManyNonzeros = 3'000;

// Both the library and the program, of large layers one of them: they take seconds for those.
void check_assembled(const Sample& sample, int batch, const std::string& arch = "sm_90",
                     Precision precision = Precision::fp32) {
  const auto nvjitlink = open_nvjitlink();
  auto ptxas = open_ptxas();
  if (ptxas && !ptxas->links()) ptxas.reset();  // a whole program may spill: compiler/assemble/ptxas.h
  if (!nvjitlink && !ptxas) BURIN_SKIP("no assembler: neither nvJitLink, nor ptxas with nvlink beside it");

  const ConvLayer layer = layer_of(sample);
  const SparsePattern pattern = analyse(layer);
  PlanRequest request;
  request.batch = batch;
  request.archs = {arch};
  request.precision = precision;
  const BakedPlan plan = make_plan(layer, pattern, request);
  INFO(sample.name << ", " << to_string(precision) << ", batch " << batch << ": " << describe(plan));
  const std::string symbol = kernel_symbol(layer.name, plan);
  const std::string ptx = emit_ptx(specialise_baked(layer, pattern, plan, symbol), arch);
  if (nvjitlink) check_report("nvJitLink " + nvjitlink->version(), nvjitlink->assemble(ptx, arch), symbol, plan);
  if (ptxas && (!nvjitlink || pattern.statistics.nonzeros < kManyNonzeros))
    check_report("ptxas " + ptxas->version(), ptxas->assemble(ptx, arch), symbol, plan);
}

}  // namespace

TEST_CASE("assembled: 3x3 192@14, batch 1") { check_assembled(k192At14, 1); }
TEST_CASE("assembled: 3x3 192@14, batch 32") { check_assembled(k192At14, 32); }
TEST_CASE("assembled: 1x1 512@14, batch 32") { check_assembled(k512At14, 32); }
TEST_CASE("assembled: 3x3 64@56, batch 1") { check_assembled(k64At56, 1); }
TEST_CASE("assembled: 3x3 64@56, batch 32") { check_assembled(k64At56, 32); }
TEST_CASE("assembled: dense, batch 1") { check_assembled(kDense, 1); }
TEST_CASE("assembled: depthwise, batch 32") { check_assembled(kDepthwise, 32); }
TEST_CASE("assembled: 11x11 stride 4, batch 32") { check_assembled(kFirst11x11, 32); }
TEST_CASE("assembled: 7x7 stride 2, batch 1") { check_assembled(kFirst7x7, 1); }
TEST_CASE("assembled: for GPUs without asynchronous copies") {
  check_assembled(k64At56, 1, "sm_75");
  check_assembled(k64At56, 32, "sm_75");
}
// Half precision takes several instructions for each nonzero, so these layers have fewer of them.
TEST_CASE("assembled: fp16, 3x3 96@14") { check_assembled(k96At14, 32, "sm_90", Precision::fp16); }
TEST_CASE("assembled: fp16x2, 3x3 96@14") {
  check_assembled(k96At14, 1, "sm_90", Precision::fp16x2);
  check_assembled(k96At14, 32, "sm_90", Precision::fp16x2);
}
TEST_CASE("assembled: bf16, 1x1 256@14") { check_assembled(k256At14, 32, "sm_90", Precision::bf16); }
TEST_CASE("assembled: fp16x2, 1x1 256@14") { check_assembled(k256At14, 32, "sm_90", Precision::fp16x2); }
TEST_CASE("assembled: halves, 3x3 64@56") {
  check_assembled(k64At56, 1, "sm_90", Precision::fp16);
  check_assembled(k64At56, 32, "sm_90", Precision::bf16);
  check_assembled(k64At56, 32, "sm_90", Precision::fp16x2);
}
TEST_CASE("assembled: halves, depthwise and 7x7 stride 2") {
  for (const Precision precision : {Precision::fp16, Precision::fp16x2}) {
    check_assembled(kDepthwise, 32, "sm_90", precision);
    check_assembled(kFirst7x7Half, 32, "sm_90", precision);
  }
}
TEST_CASE("assembled: halves, for older GPUs") {
  check_assembled(k64At56, 32, "sm_75", Precision::fp16);
  check_assembled(k64At56, 32, "sm_80", Precision::bf16);
  for (const char* arch : {"sm_75", "sm_80"}) check_assembled(k64At56, 32, arch, Precision::fp16x2);
}
