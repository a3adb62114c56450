// Plans that are wrong, and kernels that do not do what their plan says.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "compiler/host/operator_executor.h"
#include "compiler/specialise/operator_module.h"
#include "ir/operators.h"
#include "test/operators/operator_cases.h"
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

TEST_CASE("operator plan: clusters") {
  OperatorPlan plan = relu_plan();
  plan.group_blocks = 6;
  plan.cluster_blocks = 3;
  CHECK(faults_of(plan).empty());
  CHECK(parse_operator_plan(print(plan)) == plan);
  CHECK(has(describe(plan), "clusters of 3"));
  plan.cluster_blocks = 4;
  CHECK(has(faults_of(plan), "group_blocks is 6, which clusters of 4 blocks do not divide"));
  plan.cluster_blocks = 9;
  CHECK(has(faults_of(plan), "cluster_blocks is 9, allowed is 1 to 8"));
  plan.cluster_blocks = 3;
  plan.arch = "sm_80";
  CHECK(has(faults_of(plan), "cluster_blocks is 3, but sm_80 has no clusters"));
}

TEST_CASE("operator plan: limits of the architecture") {
  OperatorPlan plan = relu_plan();
  plan.arch = "sm_75";
  plan.shared_bytes = 96 << 10;
  CHECK(has(faults_of(plan), "shared_bytes is 98304, allowed is 0 to 65536 (of a block of sm_75)"));
  plan.arch = "sm_1";
  CHECK(has(faults_of(plan), "arch is 'sm_1', which is not known"));
  const Network network = network_of(Elementwise{}, {{4, 6, 6}});
  CHECK(has(
      error_of([&] { plan_operator(network, network.operators.front(), {.arch = "sm_1"}); }, ErrorKind::unsupported),
      "sm_1"));
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
  CHECK(has(fault_of_run(plan, told), "(image 0, word 3), which is not the kernel's"));
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

TEST_CASE("operator planner: whichever form of a layer streams fewer bytes") {
  Linear op;
  op.in_features = 1000;
  op.out_features = 20;
  op.weights.assign(20'000, 1.0F);
  const auto plan_of = [&](int batch) {
    const Network network = network_of(op, {{op.in_features}});
    return plan_operator(network, network.operators.front(), {.batch = batch}).front().plan;
  };
  CHECK(plan_of(1).template_name == "linear");
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 10 == 0 ? 1.0F : 0.0F;
  const OperatorPlan sparse = plan_of(1);
  CHECK(sparse.template_name == "linear_sparse");
  // 100 nonzeros of an output: four for each lane. Each has a value and a byte; a lane has its first feature.
  const std::int64_t output_words = 32 + 128 + 32, table_words = 24;
  CHECK(sparse.weight_words == table_words + 20 * output_words);
  CHECK(sparse.integers.at("delta_words") == 1);
  CHECK(plan_of(32).block_images == 4);
  // Of three quarters, the dense form serves eight images at a time.
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 4 != 0 ? 1.0F : 0.0F;
  CHECK(plan_of(32).template_name == "linear");
}

TEST_CASE("operator planner: distances that need sixteen bits") {
  Linear op;
  op.in_features = 60'000;
  op.out_features = 1;
  op.weights.assign(60'000, 0.0F);
  for (std::size_t i = 0; i < op.weights.size(); i += 400) op.weights[i] = 1;
  const Network network = network_of(op, {{op.in_features}});
  const PlannedOperator planned = plan_operator(network, network.operators.front()).front();
  // Too many features for shared memory.
  CHECK(planned.plan.template_name == "linear");
  op.in_features = 50'000;
  op.weights.resize(50'000);
  const Network smaller = network_of(op, {{op.in_features}});
  const OperatorPlan plan = plan_operator(smaller, smaller.operators.front()).front().plan;
  CHECK(plan.template_name == "linear_sparse");
  CHECK(plan.integers.at("delta_words") == 2);
  CHECK(check_operator(smaller) == "");
}

TEST_CASE("operator planner: fully connected layers stored in FP16") {
  Linear op;
  op.in_features = 1000;
  op.out_features = 20;
  op.bias.assign(20, 0.1F);
  for (int i = 0; i < 20'000; ++i) op.weights.push_back(i % 10 == 0 ? 1 + static_cast<float>(i % 7) / 3 : 0.0F);
  const auto planned = [&](int batch, const BufferPlace& input = {}) {
    const Network network = network_of(op, {{op.in_features}});
    return plan_operator(network, network.operators.front(),
                         {.batch = batch, .inputs = {input}, .linear_storage = ElementType::f16})
        .front();
  };
  const auto half = [](float value) { return std::uint32_t{to_half(ElementType::f16, value)}; };
  const PlannedOperator sparse = planned(1);
  CHECK(sparse.plan.template_name == "linear_sparse");
  CHECK(stores_halves(sparse.plan));
  CHECK(describe(sparse.plan).starts_with("linear_sparse fp16, "));
  // As with FP32, but two words of values for each lane in place of four.
  const std::int64_t output_words = 32 + 64 + 32, tables = 24 + 20;
  REQUIRE(sparse.plan.weight_words == tables + 20 * output_words);
  const std::uint32_t start = sparse.weights[0];
  CHECK(start == tables);
  CHECK(sparse.weights[24] == std::bit_cast<std::uint32_t>(0.1F));  // biases stay as they are
  // Lane 1 has the nonzeros of features 40, 50, 60 and 70.
  CHECK(sparse.weights[start + 1] == 40);
  CHECK(sparse.weights[start + 32 + 1] == (half(op.weights[40]) | half(op.weights[50]) << 16));
  CHECK(sparse.weights[start + 64 + 1] == (half(op.weights[60]) | half(op.weights[70]) << 16));
  CHECK(sparse.weights[start + 96 + 1] == (10U << 8 | 10U << 16 | 10U << 24));

  // Half of the weights: a value and a byte are more than two values of two bytes.
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 5 < 3 ? 1 + static_cast<float>(i % 7) : 0.0F;
  const PlannedOperator dense = planned(1);
  CHECK(describe(dense.plan).starts_with("linear fp16, "));
  CHECK(dense.plan.integers.at("row_words") == 500);
  REQUIRE(dense.plan.weight_words == 20 * 500 + 20);
  const std::vector<float>& w = op.weights;
  CHECK(dense.weights[1] == (half(w[4]) | half(w[5]) << 16));  // pieces of four: their first words, then the second
  CHECK(dense.weights[251] == (half(w[6]) | half(w[7]) << 16));
  CHECK(planned(1, {1001, 1}).weights[251] == (half(w[502]) | half(w[503]) << 16));  // pieces of one

  // What rounds to zero is not stored.
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 10 == 0 ? 1.0F : 1e-9F;
  CHECK(planned(1).plan == sparse.plan);

  op.weights[1234] = -65519;
  CHECK_NOTHROW(planned(1));
  op.weights[1234] = -65520;
  CHECK_THAT(BURIN_THROWN(unsupported, planned(1)).text,
             Catch::Contains("linear layer 'tested': its weight -65520 is too large for FP16, whose "
                             "largest number is 65504: compile it with --linear-storage fp32"));
}

TEST_CASE("operator planner: a function behind a sum") {
  const Network network = network_of(Combine{}, {{2, 4, 4}, {2, 4, 4}});
  OperatorPlan plan = plan_operator(network, network.operators.front()).front().plan;
  REQUIRE(fuse_function(plan, Elementwise{ElementFunction::relu}));
  CHECK_FALSE(fuse_function(plan, Elementwise{ElementFunction::silu}));
  HostOperator host(to_bitcode(specialise_operator(plan, "tested")), "tested", plan);
  std::vector<float> input(32), second(32), output(32);
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = static_cast<float>(i);
    second[i] = -16;
  }
  host.run({1, input, output, second, {}});
  for (std::size_t i = 0; i < output.size(); ++i) CHECK(output[i] == std::max(0.0F, input[i] - 16));
  OperatorPlan pool = pool_plan();
  CHECK_FALSE(fuse_function(pool, Elementwise{ElementFunction::relu}));
}

TEST_CASE("operator kernel: an output in the place of an input") {
  const Network sum = network_of(Combine{}, {{3, 7, 5}, {3, 7, 5}});
  const OperatorPlan plan = plan_operator(sum, sum.operators.front()).front().plan;
  REQUIRE(may_overwrite_input(plan));
  CHECK_FALSE(may_overwrite_input(pool_plan()));
  HostOperator host(to_bitcode(specialise_operator(plan, "tested")), "tested", plan);
  std::vector<float> first(105, 1.0F), second(105, 2.0F);
  host.run({1, first, first, second, {}});
  CHECK(first == std::vector<float>(105, 3.0F));
  host.run({1, first, second, second, {}});
  CHECK(second == std::vector<float>(105, 5.0F));
}
