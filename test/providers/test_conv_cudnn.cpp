// Calls of cuDNN as candidates: for which layers, with which algorithms, beside which code. The calls themselves:
// test/runtime/test_library_call.cpp.

#include <algorithm>

#include "ir/derive_form.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

const Provider& cudnn() { return *find_provider(kCudnnProvider); }

ConvLayer called_layer(const std::function<void(ConvShape&)>& edit = {}) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 8;
  shape.in_h = shape.in_w = 9;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.epilogue = {.bias = true, .function = function_of(Activation::relu)};
  if (edit) edit(shape);
  return make_layer("called", shape, 0.4, 3);
}

std::vector<ConvolutionAlgorithm> algorithms_for(const std::function<void(ConvShape&)>& edit = {},
                                                 const ProviderCheck& check = {}) {
  const Network network = network_of(called_layer(edit));
  const Task task = task_of(network, network.operators.back(), check);
  std::vector<ConvolutionAlgorithm> found;
  for (const Candidate& candidate : cudnn().propose(task, {.count = 16})) {
    const LibraryPlan plan = parse_library_plan(candidate.plan);
    CHECK(candidate.plan == print(plan));
    CHECK(cudnn().brief(candidate.plan) == "algorithm=" + std::string(to_string(plan.call.algorithm)));
    found.push_back(std::get<ConvolutionAlgorithm>(plan.call.algorithm));
  }
  CHECK(cudnn().can_do(task) == !found.empty());
  return found;
}

bool has(const std::vector<ConvolutionAlgorithm>& algorithms, ConvolutionAlgorithm algorithm) {
  return std::ranges::find(algorithms, algorithm) != algorithms.end();
}

}  // namespace

TEST_CASE("conv_cudnn: the algorithms that cuDNN has for a layer") {
  using enum ConvolutionAlgorithm;
  CHECK(algorithms_for().size() == 8);
  CHECK(algorithms_for().front() == implicit_precomp_gemm);
  CHECK(algorithms_for([](ConvShape& shape) { shape.epilogue.function.reset(); }) ==
        std::vector{implicit_precomp_gemm});
  CHECK(algorithms_for([](ConvShape& shape) { shape.epilogue = {}; }).size() == 8);
  const auto strided = algorithms_for([](ConvShape& shape) { shape.stride_h = 2; });
  CHECK((!has(strided, fft) && !has(strided, fft_tiling) && !has(strided, winograd) && has(strided, gemm)));
  const auto wide = algorithms_for([](ConvShape& shape) {
    shape.kernel_h = shape.kernel_w = 5;
    shape.pad = {2, 2, 2, 2};
  });
  CHECK((!has(wide, winograd) && has(wide, winograd_nonfused)));
}

TEST_CASE("conv_cudnn: tensors whose channels are last") {
  const auto candidates = [](const ConvLayer& layer, const TensorFormat& from, const TensorFormat& to,
                             Precision precision) {
    OperatorCase edge{.name = layer.name, .kind = Convolution{}, .inputs = {}, .layer = layer, .from = from, .to = to};
    const Network network = network_of(edge);
    Task task = task_of(network, network.operators.back(), {});
    task.precision = is_half(precision) ? precision : Precision::fp32;
    task.factors = factors_of(precision);
    return cudnn().propose(task, {.count = 16});
  };
  const ConvLayer layer = called_layer(), grouped = called_layer([](ConvShape& shape) { shape.groups = 2; });
  const TensorFormat halves = {ElementType::f16, TensorLayout::nhwc8}, floats = {ElementType::f32, TensorLayout::nhwc4};
  for (const auto& [format, precision] : {std::pair(halves, Precision::fp16), {floats, Precision::tf32}}) {
    const std::vector<Candidate> found = candidates(layer, format, format, precision);
    REQUIRE(found.size() == 5);
    CHECK(parse_library_plan(found[1].plan).call.algorithm == CallAlgorithm(ConvolutionAlgorithm::engine_0));
    const LibraryPlan plan = parse_library_plan(found.front().plan);
    CHECK(plan.call.algorithm == CallAlgorithm(ConvolutionAlgorithm::implicit_precomp_gemm));
    CHECK(plan.call.factors == factors_of(precision));
    CHECK(plan.provider == "conv_warpgroup_rows");
  }
  CHECK(candidates(grouped, floats, floats, Precision::tf32).size() == 5);
  CHECK(candidates(grouped, halves, halves, Precision::fp16).empty());
  CHECK(candidates(layer, halves, {ElementType::f16, TensorLayout::nchw8}, Precision::fp16).empty());
  CHECK(candidates(layer, floats, {}, Precision::tf32).empty());
  ConvLayer large = layer;
  large.bias.at(1) = 1e5F;
  CHECK(candidates(large, halves, halves, Precision::fp16).empty());
  CHECK(candidates(large, floats, floats, Precision::tf32).size() == 5);
}

TEST_CASE("conv_cudnn: what it cannot do") {
  CHECK(algorithms_for([](ConvShape& shape) { shape.pad.bottom = 0; }).empty());
  CHECK(algorithms_for([](ConvShape& shape) { shape.epilogue.function = function_of(Activation::relu6); }).empty());
  const Network network = network_of(called_layer());
  Task task = task_of(network, network.operators.back(), {});
  CHECK(cudnn().can_do(task));
  task.activity_maps = true;
  CHECK(!cudnn().can_do(task));
  task.activity_maps = false;
  task.writes.layout = TensorLayout::nchw4;
  CHECK(!cudnn().can_do(task));
}

TEST_CASE("conv_cudnn: the code beside a call computes the layer, on slices of larger tensors too") {
  for (const int around : {0, 4, 5}) {
    const ProviderCheck check{.before = around, .behind = around, .tolerance = 1e-5};
    const Network network = network_of(called_layer([](ConvShape& shape) { shape.epilogue.residual = true; }));
    const Operator& op = network.operators.back();
    const Candidate candidate = candidate_of(task_of(network, op, check), std::string(kCudnnProvider));
    CHECK(check_candidate(network, op, candidate, check) == "");
    // A plan that was made for tensors with memory of their own.
    const Candidate whole = candidate_of(task_of(network, op, {}), std::string(kCudnnProvider));
    CHECK(cudnn().placed(whole.plan, task_of(network, op, check)) == candidate.plan);
  }
}

TEST_CASE("conv_cudnn: a call rounds where the precision lets it") {
  const Network network = network_of(called_layer());
  const auto factors_for = [&](FactorType asked) {
    Task task = task_of(network, network.operators.back(), {});
    task.factors = asked;
    return parse_library_plan(candidate_of(task, std::string(kCudnnProvider)).plan).call.factors;
  };
  CHECK(factors_for(FactorType::f32) == FactorType::f32);
  for (const FactorType asked : {FactorType::tf32, FactorType::f16, FactorType::bf16}) {
    CHECK(factors_for(asked) == FactorType::tf32);
  }
}

TEST_CASE("conv_cudnn: plans that a person edited badly") {
  const Network network = network_of(called_layer());
  const Task task = task_of(network, network.operators.back(), {});
  const LibraryPlan plan = parse_library_plan(candidate_of(task, std::string(kCudnnProvider)).plan);
  const auto fault = [&](const std::function<void(LibraryPlan&)>& edit, ErrorKind kind = ErrorKind::unsupported) {
    LibraryPlan edited = plan;
    edit(edited);
    return error_of([&] { cudnn().make(task, print(edited)); }, kind);
  };
  CHECK(fault([](LibraryPlan&) {}) == "no error");
  CHECK(fault([](LibraryPlan& p) { p.call.algorithm = ConvolutionAlgorithm::fft; }) == "no error");
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.factors = FactorType::tf32; }),
             Contains("layer 'tested': this plan cannot be used: its call rounds to tf32"));
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.workspace_limit = -1; }), Contains("workspace_limit"));
  for (const std::string provider : {"conv_baked", "conv_cudnn", "conv_none"}) {
    CHECK_THAT(fault([&](LibraryPlan& p) { p.provider = provider; }, ErrorKind::bad_input),
               Contains("no kernel of '" + provider + "' can stand beside a library's call"));
  }
  const std::string other = plan.provider == "conv_dense" ? "conv_streamed" : "conv_dense";
  CHECK_THAT(fault([&](LibraryPlan& p) { p.provider = other; }),
             Contains("it is of " + plan.provider + ", not of " + other));
}
