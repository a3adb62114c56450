// Calls of cuBLASLt as candidates: for which layers, with which algorithms, beside which code. The calls themselves:
// test/runtime/test_cublaslt_call.cpp.

#include <algorithm>

#include "ir/derive_form.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

const Provider& conv_cublas() { return *find_provider(kConvCublasProvider); }
const Provider& linear_cublas() { return *find_provider(kLinearCublasProvider); }

Network pointwise_network(const std::function<void(ConvShape&)>& edit = {}) {
  ConvShape shape;
  shape.in_channels = 8;
  shape.out_channels = 12;
  shape.in_h = shape.in_w = 6;
  shape.epilogue = {.bias = true, .function = function_of(Activation::relu)};
  if (edit) edit(shape);
  return network_of(make_layer("called", shape, 0.4, 3));
}

Network features_network(const std::function<void(Linear&)>& edit = {}) {
  Linear linear{.in_features = 40, .out_features = 12, .weights = {}, .bias = {}};
  linear.function = function_of(Activation::relu);
  for (int i = 0; i < 40 * 12; ++i) linear.weights.push_back(i % 3 == 0 ? 0 : 0.01F * static_cast<float>(i % 17 - 8));
  linear.bias.assign(12, 0.25F);
  if (edit) edit(linear);
  return network_of(linear, {{linear.in_features}});
}

std::vector<std::string> briefs(const Provider& provider, const Network& network, const ProviderCheck& check = {}) {
  const Task task = task_of(network, network.operators.back(), check);
  std::vector<std::string> found;
  for (const Candidate& candidate : provider.propose(task, {.count = 16})) {
    CHECK(candidate.plan == print(parse_library_plan(candidate.plan)));
    CHECK(provider_of(parse_library_plan(candidate.plan)) == provider.name());
    found.push_back(provider.brief(candidate.plan));
  }
  CHECK(provider.can_do(task) == !found.empty());
  return found;
}

LibraryPlan called_plan(const Provider& provider, const Network& network, const ProviderCheck& check = {}) {
  const Task task = task_of(network, network.operators.back(), check);
  return parse_library_plan(candidate_of(task, std::string(provider.name())).plan);
}

}  // namespace

TEST_CASE("cublas: candidates are what the library proposes, one after the other") {
  const std::vector<std::string> all = {"algorithm=heuristic_0", "algorithm=heuristic_1", "algorithm=heuristic_2",
                                        "algorithm=heuristic_3"};
  CHECK(briefs(conv_cublas(), pointwise_network()) == all);
  CHECK(briefs(linear_cublas(), features_network()) == all);
  const Network network = features_network();
  const Task task = task_of(network, network.operators.back(), {});
  CHECK(linear_cublas().propose(task, {.count = 1}).size() == 1);
  CHECK(linear_cublas().propose(task, {.plan = "algorithm=heuristic_3"}).size() == 1);
  CHECK(linear_cublas().library() == Library::cublaslt);
  CHECK(error_of([] { linear_cublas().check_choices("algorithm=gemm"); }, ErrorKind::usage) ==
        "--plan algorithm=gemm: known are heuristic_0, heuristic_1, heuristic_2, heuristic_3");
}

TEST_CASE("cublas: convolutions that are no products of matrices") {
  const auto can = [](const std::function<void(ConvShape&)>& edit) {
    return !briefs(conv_cublas(), pointwise_network(edit)).empty();
  };
  CHECK(can([](ConvShape& shape) { shape.epilogue = {}; }));
  CHECK(can([](ConvShape& shape) { shape.epilogue = {.residual = true}; }));
  CHECK(can([](ConvShape& shape) {
    shape.in_h = shape.in_w = 1;
    shape.epilogue.residual = true;
  }));
  CHECK_FALSE(can([](ConvShape& shape) { shape.epilogue.residual = true; }));  // with a bias
  CHECK_FALSE(can([](ConvShape& shape) { shape.stride_h = 2; }));
  CHECK_FALSE(can([](ConvShape& shape) { shape.pad.top = 1; }));
  CHECK_FALSE(can([](ConvShape& shape) { shape.groups = 4; }));
  CHECK_FALSE(can([](ConvShape& shape) {
    shape.kernel_h = 3;
    shape.pad = {1, 1, 0, 0};
  }));
  CHECK_FALSE(can([](ConvShape& shape) { shape.epilogue.function = function_of(Activation::relu6); }));
  const Network network = pointwise_network();
  Task task = task_of(network, network.operators.back(), {});
  CHECK(conv_cublas().can_do(task));
  task.activity_maps = true;
  CHECK_FALSE(conv_cublas().can_do(task));
  task.activity_maps = false;
  task.writes.layout = TensorLayout::nchw4;
  CHECK_FALSE(conv_cublas().can_do(task));
}

TEST_CASE("cublas: tensors whose channels are last, bias and residual in one product") {
  ConvShape shape;
  shape.in_channels = 8;
  shape.out_channels = 12;
  shape.in_h = shape.in_w = 6;
  shape.epilogue = {.bias = true, .residual = true, .function = function_of(Activation::relu)};
  const ConvLayer layer = make_layer("called", shape, 0.4, 3);
  const auto candidates = [&](const TensorFormat& format, Precision precision) {
    OperatorCase edge{
        .name = layer.name, .kind = Convolution{}, .inputs = {}, .layer = layer, .from = format, .to = format};
    const Network network = network_of(edge);
    Task task = task_of(network, network.operators.back(), {});
    task.precision = is_half(precision) ? precision : Precision::fp32;
    task.factors = factors_of(precision);
    return conv_cublas().propose(task, {.count = 16});
  };
  for (const auto& [format, precision] :
       {std::pair(TensorFormat{ElementType::f16, TensorLayout::nhwc8}, Precision::fp16),
        {TensorFormat{ElementType::bf16, TensorLayout::nhwc8}, Precision::bf16},
        {TensorFormat{ElementType::f32, TensorLayout::nhwc4}, Precision::tf32}}) {
    INFO(to_string(format));
    const std::vector<Candidate> found = candidates(format, precision);
    REQUIRE(found.size() == 4);
    const LibraryPlan plan = parse_library_plan(found.front().plan);
    CHECK(plan.call.factors == factors_of(precision));
    CHECK(plan.call.alignment == 16);
    CHECK(plan.provider == "conv_warpgroup_rows");
  }
  CHECK(candidates({}, Precision::tf32).empty());  // a product of plain images adds one tensor
  CHECK(candidates({ElementType::f16, TensorLayout::nchw8}, Precision::fp16).empty());
}

TEST_CASE("cublas: fully connected layers that it is not called for") {
  CHECK(briefs(linear_cublas(), features_network([](Linear& linear) { linear.bias.clear(); })).size() == 4);
  CHECK(briefs(linear_cublas(), features_network([](Linear& linear) { linear.function.reset(); })).size() == 4);
  const auto silu = [](Linear& linear) { linear.function = function_of(Activation::silu); };
  CHECK(briefs(linear_cublas(), features_network(silu)).empty());
  CHECK(briefs(linear_cublas(), features_network(), {.linear_storage = ElementType::f16}).empty());
  CHECK(briefs(linear_cublas(), pointwise_network()).empty());
  CHECK(briefs(conv_cublas(), features_network()).empty());
}

TEST_CASE("cublas: the code beside a call computes the layer, on slices of larger tensors too") {
  for (const auto& [provider, network] :
       {std::pair{&conv_cublas(), pointwise_network()}, std::pair{&linear_cublas(), features_network()}}) {
    for (const int around : {0, 4, 5}) {
      const ProviderCheck check{.before = around, .behind = around, .tolerance = 1e-5};
      const Operator& op = network.operators.back();
      const Candidate candidate = candidate_of(task_of(network, op, check), std::string(provider->name()));
      CHECK(check_candidate(network, op, candidate, check) == "");
      // A plan that was made for tensors with memory of their own.
      const Candidate whole = candidate_of(task_of(network, op, {}), std::string(provider->name()));
      CHECK(provider->placed(whole.plan, task_of(network, op, check)) == candidate.plan);
    }
  }
}

TEST_CASE("cublas: a call wants its tensors to begin where their places let them") {
  CHECK(called_plan(linear_cublas(), features_network()).call.alignment == 16);
  CHECK(called_plan(linear_cublas(), features_network(), {.before = 4, .behind = 4}).call.alignment == 16);
  CHECK(called_plan(linear_cublas(), features_network(), {.before = 1, .behind = 3}).call.alignment == 4);
  // Images of 9 pixels begin anywhere.
  const auto odd = [](ConvShape& shape) {
    shape.in_h = shape.in_w = 3;
    shape.in_channels = 3;
  };
  CHECK(called_plan(conv_cublas(), pointwise_network(odd)).call.alignment == 4);
  const Network network = features_network();
  const Task task = task_of(network, network.operators.back(), {});
  const Recipe recipe = linear_cublas().make(task, print(called_plan(linear_cublas(), network)));
  CHECK(recipe.form.input().alignment == 16);
  CHECK(recipe.form.output().alignment == 16);
}

TEST_CASE("cublas: a call rounds where the precision lets it") {
  for (const auto& [provider, network] :
       {std::pair{&conv_cublas(), pointwise_network()}, std::pair{&linear_cublas(), features_network()}}) {
    const auto factors_for = [&](FactorType asked) {
      Task task = task_of(network, network.operators.back(), {});
      task.factors = asked;
      return parse_library_plan(candidate_of(task, std::string(provider->name())).plan).call.factors;
    };
    CHECK(factors_for(FactorType::f32) == FactorType::f32);
    for (const FactorType asked : {FactorType::tf32, FactorType::f16, FactorType::bf16}) {
      CHECK(factors_for(asked) == FactorType::tf32);
    }
  }
}

TEST_CASE("cublas: plans that a person edited badly") {
  const Network network = features_network();
  const Task task = task_of(network, network.operators.back(), {.before = 1, .behind = 3});
  const LibraryPlan plan = parse_library_plan(candidate_of(task, std::string(kLinearCublasProvider)).plan);
  const auto fault = [&](const std::function<void(LibraryPlan&)>& edit, ErrorKind kind = ErrorKind::unsupported) {
    LibraryPlan edited = plan;
    edit(edited);
    return error_of([&] { linear_cublas().make(task, print(edited)); }, kind);
  };
  CHECK(fault([](LibraryPlan&) {}) == "no error");
  CHECK(fault([](LibraryPlan& p) { p.call.algorithm = ProductAlgorithm::heuristic_3; }) == "no error");
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.algorithm = ConvolutionAlgorithm::gemm; }),
             Contains("it calls cudnn, and linear_cublas calls cublaslt"));
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.factors = FactorType::tf32; }), Contains("its call rounds to tf32"));
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.alignment = 16; }),
             Contains("alignment is 16, and its tensors begin at multiples of 4 bytes"));
  CHECK_THAT(fault([](LibraryPlan& p) { p.call.alignment = 5; }), Contains("a library's call has 4, 8 or 16"));
  for (const std::string provider : {"conv_baked", "linear_cublas", "linear_none"}) {
    CHECK_THAT(fault([&](LibraryPlan& p) { p.provider = provider; }, ErrorKind::bad_input),
               Contains("no kernel of '" + provider + "' can stand beside a library's call"));
  }
}
