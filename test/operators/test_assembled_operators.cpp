// What the assemblers make of operator kernels, at the sizes of real networks: everything stays in registers.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "compiler/assemble/assembler.h"
#include "compiler/emit/ptx.h"
#include "compiler/specialise/operator_module.h"
#include "test/assemble/kernels.h"
#include "test/operators/operator_cases.h"
#include "test/operators/operator_check.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

void check_report(AssemblerOutput output, const std::string& symbol) {
  const AssembledKernel kernel = describe_assembled(std::move(output), symbol);
  INFO(kernel.registers << " registers, " << kernel.spill_bytes << " bytes of spills, " << kernel.stack_bytes
                        << " bytes of stack");
  CHECK(kernel.spill_bytes == 0);
  CHECK(kernel.stack_bytes == 0);
  CHECK(kernel.registers > 0);
}

void check_assembled(const OperatorCase& sample, int batch, const std::string& arch) {
  const auto nvjitlink = open_nvjitlink();
  const auto ptxas = open_ptxas();
  if (!nvjitlink && !ptxas) BURIN_SKIP("no assembler: neither nvJitLink nor ptxas");
  const Network network = network_of(sample);
  const auto check = [&](const OperatorPlan& plan) {
    INFO(sample.name << ", batch " << batch << ", " << arch << ": " << describe(plan));
    const std::string symbol = kernel_symbol(sample.name, plan);
    const std::string ptx = emit_ptx(specialise_operator(plan, symbol), arch);
    CHECK(ptx.find(".local") == std::string::npos);
    if (nvjitlink) check_report(nvjitlink->assemble(ptx, arch), symbol);
    if (ptxas) check_report(ptxas->assemble(ptx, arch), symbol);
  };
  for (const auto& way : ways_to_compute(network, network.operators.back(), {.batch = batch, .arch = arch})) {
    for (const PlannedOperator& kernel : way) check(kernel.plan);
  }
}

}  // namespace

TEST_CASE("assembled operators: the largest of real networks") {
  for (const OperatorCase& sample : network_cases()) {
    for (const int batch : {1, 32}) check_assembled(sample, batch, "sm_90");
  }
}

TEST_CASE("assembled operators: for GPUs without asynchronous copies") {
  for (const OperatorCase& sample : network_cases()) check_assembled(sample, 8, "sm_75");
}
