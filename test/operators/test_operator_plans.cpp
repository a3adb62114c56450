// Plans that are wrong, and kernels that do not do what their plan says.
#include <catch2/catch.hpp>
#include <limits>

#include "compiler/host/operator_executor.h"
#include "compiler/specialise/operator_module.h"
#include "ir/operators.h"
#include "test/operators/operator_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

OperatorPlan relu_plan() {
  const Network network = network_of(Elementwise{ElementFunction::relu}, {{4, 6, 6}});
  return plan_operator(network, network.operators.front()).front().plan;
}

Pool small_pool() {
  Pool op;
  op.kernel_h = op.kernel_w = op.stride_h = op.stride_w = 2;
  return op;
}

OperatorPlan pool_plan() {
  const Network network = network_of(small_pool(), {{3, 8, 8}});
  return plan_operator(network, network.operators.front()).front().plan;
}

// All faults in one text.
std::string faults_of(const OperatorPlan& plan) {
  std::string text;
  for (const std::string& fault : verify(plan)) text += fault + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The fault of a run of `plan`'s code, the executor told that it has `told`.
std::string fault_of_run(const OperatorPlan& plan, const OperatorPlan& told, int batch = 1) {
  const std::vector<float> input(static_cast<std::size_t>(batch * told.input.image_words), 1.0F);
  std::vector<float> output(static_cast<std::size_t>(batch * told.output.image_words),
                            std::numeric_limits<float>::quiet_NaN());
  HostOperator host(to_bitcode(specialise_operator(plan, "tested")), "tested", told);
  return error_of([&] { host.run({batch, input, output, {}, {}}); }, ErrorKind::verification);
}

}  // namespace

TEST_CASE("operator plan: text and back") {
  OperatorPlan plan = relu_plan();
  plan.output = {400, 8, 36, 4, 72, 4};
  plan.reals["beta"] = std::numeric_limits<float>::infinity();
  CHECK(parse_operator_plan(print(plan)) == plan);
}

TEST_CASE("operator plan: text that is none") {
  const std::string text = print(relu_plan());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return error_of([&] { parse_operator_plan(changed); });
  };
  CHECK(has(with("threads: 64", "threads: many"), "'many' of 'threads' is not an integer"));
  CHECK(has(with("input: 144 at 0 of 144", "input: 144 from 0"), "is not of the form 'WORDS at OFFSET"));
  CHECK(has(with("real alpha", "real beta"), "'real beta'"));
  CHECK(has(with("real alpha", "imaginary alpha"), "imaginary alpha"));
  CHECK(has(with("second: none\n", ""), "there is no line 'second: ...'"));
}

TEST_CASE("operator plan: an unknown template") {
  OperatorPlan plan = relu_plan();
  plan.template_name = "convolve";
  CHECK(has(faults_of(plan), "there is no operator template 'convolve'; known are pool, "));
}

TEST_CASE("operator plan: constants") {
  OperatorPlan plan = relu_plan();
  plan.integers.erase("steps");
  plan.integers["leaps"] = 1;
  plan.integers["function"] = 99;
  plan.reals["alpha"] = std::numeric_limits<float>::quiet_NaN();
  const std::string faults = faults_of(plan);
  CHECK(has(faults, "the template elementwise needs an integer 'steps'"));
  CHECK(has(faults, "the template elementwise has no integer 'leaps'"));
  CHECK(has(faults, "integer function is 99, allowed is 0 to 7"));
  CHECK(has(faults, "real alpha is not a number"));
}

TEST_CASE("operator plan: tensors") {
  OperatorPlan plan = relu_plan();
  plan.output.offset = 8;
  CHECK(has(faults_of(plan), "the output reaches word 152 of images that are 144 words apart"));
  plan = relu_plan();
  plan.input.image_words = 146;
  CHECK(has(faults_of(plan), "the input is aligned to 4 words"));
  plan.input.aligned = 1;
  CHECK(has(faults_of(plan), "integer vector is 4, but the input is not aligned"));
  plan = relu_plan();
  plan.output.runs = 2;
  plan.output.run_pitch = 100;
  CHECK(has(faults_of(plan), "runs of 144 words are 100 apart: they would overlap"));
  plan = relu_plan();
  plan.second = plan.input;
  CHECK(has(faults_of(plan), "the template elementwise takes no second input"));
  plan.input = {};
  CHECK(has(faults_of(plan), "it has no input"));
}

TEST_CASE("operator plan: the launch") {
  OperatorPlan plan = relu_plan();
  plan.threads = 48;
  plan.shared_bytes = 60;
  plan.group_blocks = 0;
  const std::string faults = faults_of(plan);
  CHECK(has(faults, "threads is 48, whole warps of 32 are needed"));
  CHECK(has(faults, "shared_bytes is 60: 0, or a multiple of 16 above the 128 that are reserved"));
  CHECK(has(faults, "group_blocks is 0, allowed is 1 to"));
  CHECK(has(error_of([&] { specialise_operator(plan, "tested"); }), "operator kernel 'tested': threads is 48"));
}

TEST_CASE("operator kernel: an output that it should have written") {
  OperatorPlan plan = pool_plan();
  plan.group_blocks = 1;
  plan.threads = 32;
  CHECK(has(fault_of_run(plan, plan), "was not written by any thread; 16 of 48 elements are missing"));
}

TEST_CASE("operator kernel: an output that is another's") {
  OperatorPlan told = pool_plan(), plan = told;
  told.output = {100, 4, 48, 1, 0, 1};
  plan.output = {100, 3, 48, 1, 0, 1};
  CHECK(has(fault_of_run(plan, told), "(image 0, word 3), which is not the operator's"));
}

TEST_CASE("operator kernel: reads beyond the input") {
  OperatorPlan told = pool_plan(), plan = told;
  plan.input.image_words = 300;
  CHECK(has(fault_of_run(plan, told, 2), "load from input out of bounds"));
}

TEST_CASE("operator kernel: weights that it does not have") {
  ChannelAffine affine;
  affine.scale = affine.shift = {1, 2, 3, 4};
  const Network network = network_of(affine, {{4, 6, 6}});
  const OperatorPlan plan = plan_operator(network, network.operators.front()).front().plan;
  OperatorPlan told = plan;
  told.weight_words = 0;
  CHECK(has(fault_of_run(plan, told), "which belongs to no buffer of the launch"));
}

TEST_CASE("operator kernel: a launch of other sizes") {
  const OperatorPlan plan = pool_plan();
  HostOperator host(to_bitcode(specialise_operator(plan, "tested")), "tested", plan);
  std::vector<float> output(48);
  const std::vector<float> input(100);
  CHECK(has(error_of([&] { host.run({1, input, output, {}, {}}); }), "the input has 100 values; batch 1 needs 192"));
  CHECK(has(error_of([&] { host.run({0, input, output, {}, {}}); }), "batch 0 is not between 1 and"));
}

TEST_CASE("operator planner: a convolution is none of its operators") {
  Network network = network_of(Elementwise{}, {{4, 6, 6}});
  network.operators.front().kind = Convolution{};
  CHECK(has(error_of([&] { plan_operator(network, network.operators.front()); }, ErrorKind::unsupported),
            "operator 'tested': there is no operator template for a convolution"));
}
