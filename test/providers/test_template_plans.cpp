// Plans that are wrong, and kernels that do not do what their plan says.
#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/host/executor.h"
#include "compiler/specialise/template_module.h"
#include "ir/operators.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_cases.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

TemplatePlan relu_plan() { return plan_of(network_of(Elementwise{ElementFunction::relu}, {{4, 6, 6}}), "elementwise"); }

Pool small_pool() {
  Pool op;
  op.kernel_h = op.kernel_w = op.stride_h = op.stride_w = 2;
  return op;
}

TemplatePlan pool_plan() { return plan_of(network_of(small_pool(), {{3, 8, 8}}), "pool"); }

// All faults in one text.
std::string faults_of(const TemplatePlan& plan) {
  std::string text;
  for (const std::string& fault : verify(plan)) text += fault + "\n";
  return text;
}

// What the provider says of the plan of a relu that somebody has edited.
std::string refusal_of(const std::string& text) {
  const Network network = network_of(Elementwise{ElementFunction::relu}, {{4, 6, 6}});
  const Task task = task_of(network, network.operators.back(), {});
  return error_of([&] { find_provider("elementwise")->make(task, text); }, ErrorKind::unsupported);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The fault of a run of `plan`'s code, the executor told that it has `told`.
std::string fault_of_run(const TemplatePlan& plan, const TemplatePlan& told, int batch = 1) {
  const std::vector<float> input(static_cast<std::size_t>(told.input().spanned_words(batch)), 1.0F);
  std::vector<float> output(static_cast<std::size_t>(told.output().spanned_words(batch)),
                            std::numeric_limits<float>::quiet_NaN());
  HostKernel host(to_bitcode(specialise_template(plan, "tested")), "tested", told.form);
  return error_of([&] { host.run({.batch = batch, .input = input, .output = output}); }, ErrorKind::verification);
}

}  // namespace

TEST_CASE("template plan: text and back") {
  TemplatePlan plan = relu_plan();
  plan.output().image_words = 400;
  plan.output().run_words = 36;
  plan.output().runs = 4;
  plan.output().run_pitch = 72;
  plan.output().channels = plan.output().rows = plan.output().cols = 0;
  plan.reals["beta"] = std::numeric_limits<float>::infinity();
  CHECK(parse_template_plan(print(plan)) == plan);
}

TEST_CASE("template plan: templates have every function, wherever they apply one") {
  const auto check = [](const Network& network, const char* name, const ProviderCheck& asked = {}) {
    const Provider& provider = *find_provider(name);
    const Task task = task_of(network, network.operators.back(), asked);
    const std::vector<Candidate> found = provider.propose(task, {.count = 1});
    REQUIRE(!found.empty());
    CHECK_NOTHROW(provider.make(task, found.front().plan));
  };
  ConvLayer filtered = make_layer("filtered", small_shape(), 0.2);
  ProviderCheck rounded;
  rounded.factors = FactorType::f16;
  for (int i = 0; i < static_cast<int>(ElementFunction::user); ++i) {
    const Elementwise function{static_cast<ElementFunction>(i), 0.5F, 1};
    INFO(describe(function));
    check(network_of(function, {{4, 6, 6}}), "elementwise");
    Excite excite{{}, function, {3, 4, std::vector<float>(12, 1.0F), {}, function}};
    check(network_of(excite, {{4, 6, 6}, {1, 3}}), "excite");
    add_filters(filtered, {.kernel_h = 3, .kernel_w = 3}, 1, function);
    const OperatorCase layer{filtered.name, Convolution{}, {}, 0, filtered};
    check(network_of(layer), "conv_warpgroup_rows", rounded);
  }
  for (int i = 0; i < static_cast<int>(Combination::user); ++i) {
    check(network_of(Combine{static_cast<Combination>(i)}, {{4, 6, 6}, {4, 6, 6}}), "combine");
  }
}

TEST_CASE("template plan: text that is none") {
  const std::string text = print(relu_plan());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return error_of([&] { parse_template_plan(changed); });
  };
  CHECK(has(with("threads: 64", "threads: many"), "'many' of 'threads' is not an integer"));
  CHECK(has(with("144 words", "144 of"), "is not of the form 'ROLE[ ARGUMENT], ELEMENT LAYOUT"));
  CHECK(has(with("tensor 0: input", "tensor 0: inlet"), "'inlet' is not a role of a tensor"));
  CHECK(has(with("tensor 1", "tensor 5"), "'tensor 5' stands where 'tensor 1' is expected"));
  CHECK(has(with("real alpha", "real beta"), "'real beta'"));
  CHECK(has(with("real alpha", "imaginary alpha"), "imaginary alpha"));
  CHECK(has(with("tile_images: 1\n", ""), "there is no line 'tile_images: ...'"));
}

TEST_CASE("template plan: constants") {
  TemplatePlan plan = relu_plan();
  plan.integers.erase("steps");
  CHECK(has(refusal_of(print(plan)),
            "operator 'tested': this plan cannot be used: the template elementwise needs an "
            "integer 'steps'"));
  plan = relu_plan();
  plan.integers["leaps"] = 1;
  CHECK(has(refusal_of(print(plan)), "the template elementwise has no integer 'leaps'"));
  plan = relu_plan();
  plan.integers["function"] = 99;
  const std::size_t functions = names_of(ElementFunction{}).names.size();
  CHECK(has(refusal_of(print(plan)), "integer function is 99, allowed is 0 to " + std::to_string(functions)));
}

TEST_CASE("template plan: what was edited follows from the operator and the other choices") {
  TemplatePlan plan = relu_plan();
  plan.integers["function"] = 2;
  CHECK(has(refusal_of(print(plan)),
            "'integer function: 2' does not follow from the operator and the other choices; "
            "'integer function: 1' would"));
  plan = relu_plan();
  plan.launch().tiles_per_image = 9;
  CHECK(has(refusal_of(print(plan)), "'tiles_per_image: 9' does not follow"));
  plan = relu_plan();
  plan.output().image_words = 400;
  CHECK(has(refusal_of(print(plan)), "144 words of 400, aligned 16' does not follow"));
  plan = relu_plan();
  plan.template_name = "pool";
  CHECK(has(refusal_of(print(plan)), "it is of pool, not of elementwise"));
}

// What a person writes into a plan is theirs, whatever it is: never a fault of burin's own, and no crash.
TEST_CASE("template plan: numbers that were edited are never an internal fault") {
  std::vector<OperatorCase> cases;
  for (const auto& list : {pool_cases(), channel_cases(), linear_cases(), normalization_cases(), copy_cases()}) {
    cases.insert(cases.end(), list.begin(), list.begin() + std::min<std::ptrdiff_t>(2, std::ssize(list)));
  }
  Linear sparse{.in_features = 400, .out_features = 20};
  for (int i = 0; i < 8000; ++i) sparse.weights.push_back(i % 10 == 0 ? 1.0F : 0.0F);
  cases.push_back({"sparse", sparse, {{400}}});
  int refused = 0;
  for (const OperatorCase& edge : cases) {
    const Network network = network_of(edge);
    const Task task = task_of(network, network.operators.back(), {});
    for (const Candidate& candidate : candidates_of(task)) {
      const Provider& provider = *find_provider(candidate.provider);
      std::size_t end = 0;
      for (std::size_t at = candidate.plan.find_first_of("0123456789"); at != std::string::npos;
           at = candidate.plan.find_first_of("0123456789", end)) {
        end = std::min(candidate.plan.find_first_not_of("0123456789", at), candidate.plan.size());
        for (const char* number : {"0", "1", "3", "64", "65536", "2147483647", "99999999999999999999"}) {
          std::string edited = candidate.plan;
          edited.replace(at, end - at, number);
          const auto thrown = thrown_by([&] { (void)provider.make(task, edited); });
          if (!thrown) continue;
          ++refused;
          INFO(edge.name << ", " << candidate.provider << ": " << thrown->text << "\n" << edited);
          REQUIRE((thrown->kind == ErrorKind::bad_input || thrown->kind == ErrorKind::unsupported));
        }
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("template plan: how many words of weights there are follows from the weights") {
  Linear op{.in_features = 400, .out_features = 20};
  for (int i = 0; i < 8000; ++i) op.weights.push_back(i % 10 == 0 ? 1.0F : 0.0F);
  const Network network = network_of(op, {{400}});
  TemplatePlan plan = plan_of(network, "linear_sparse");
  const std::int64_t words = plan.weights().run_words;
  plan.weights().run_words += 1;
  const Task task = task_of(network, network.operators.back(), {});
  CHECK(
      error_of([&] { find_provider("linear_sparse")->make(task, print(plan)); }) ==
      fmt::format("operator 'tested': the plan says that the weights take {} words, and they take {}: correct the line "
                  "of its tensor 'weights'",
                  words + 1, words));
}

TEST_CASE("template plan: tensors") {
  TemplatePlan plan = relu_plan();
  plan.output().image_words = 140;
  CHECK(has(faults_of(plan), "the tensor 'output' reaches word 144 of images that are 140 words apart"));
  plan = relu_plan();
  plan.input().image_words = 146;
  CHECK(has(faults_of(plan), "the tensor 'input' is aligned to 16 bytes: the distances 146 between images"));
  plan = relu_plan();
  plan.output().runs = 2;
  plan.output().run_pitch = 100;
  CHECK(has(faults_of(plan), "runs of 144 words are 100 apart: they would overlap"));
  plan = relu_plan();
  plan.input() = {};
  CHECK(has(faults_of(plan), "its tensors are not an input, an output, a residual and weights"));
}

TEST_CASE("template plan: the launch") {
  TemplatePlan plan = relu_plan();
  plan.launch().threads = 48;
  CHECK(has(faults_of(plan), "threads is 48, whole warps of 32 are needed"));
  CHECK(has(error_of([&] { specialise_template(plan, "tested"); }), "template kernel 'tested': threads is 48"));
  plan = relu_plan();
  plan.launch().shared_bytes = 60;
  CHECK(has(faults_of(plan), "shared_bytes is 60: 0, or a multiple of 16 above the 128 that are reserved"));
  plan = relu_plan();
  plan.launch().tiles_per_image = 0;
  CHECK(has(faults_of(plan), "tiles_per_image is 0, allowed is 1 to"));
}

TEST_CASE("template plan: clusters") {
  TemplatePlan plan = relu_plan();
  plan.launch().tiles_per_image = 6;
  plan.launch().cluster_tiles = 3;
  CHECK(faults_of(plan).empty());
  CHECK(parse_template_plan(print(plan)) == plan);
  CHECK(has(describe(plan), "clusters of 3"));
  plan.launch().cluster_tiles = 4;
  CHECK(has(faults_of(plan), "tiles_per_image is 6, which clusters of 4 blocks do not divide"));
  plan.launch().cluster_tiles = 9;
  CHECK(has(faults_of(plan), "cluster_tiles is 9, allowed is 1 to 8"));
  plan.launch().cluster_tiles = 3;
  plan.arch = "sm_80";
  CHECK(has(faults_of(plan), "cluster_tiles is 3, but sm_80 has no clusters"));
}

TEST_CASE("template plan: boxes") {
  TemplatePlan plan = relu_plan();
  KernelTensor& input = plan.input();
  input.element = ElementType::f16;
  input.layout = TensorLayout::n8c8hw;
  input.run_words = input.image_words = image_words(input.format(), {input.channels, input.rows, input.cols});
  input.alignment = kWideAccessBytes;
  plan.launch().tile_images = 8;
  plan.form.boxes = {{.image_rows = input.rows, .image_cols = input.cols, .octets = 1, .rows = 2, .cols = 3}};
  CHECK(faults_of(plan) == "");
  CHECK(parse_template_plan(print(plan)) == plan);
  plan.arch = "sm_89";
  CHECK(faults_of(plan) == "it copies boxes, which sm_89 cannot\n");
}

TEST_CASE("template plan: limits of the architecture") {
  TemplatePlan plan = relu_plan();
  plan.arch = "sm_75";
  plan.launch().shared_bytes = 96 << 10;
  CHECK(has(faults_of(plan), "shared_bytes is 98304, allowed is 0 to 65536 (of a block of sm_75)"));
  plan.arch = "sm_1";
  CHECK(has(faults_of(plan), "arch is 'sm_1', which is not known"));
}

TEST_CASE("template kernel: an output that it should have written") {
  TemplatePlan plan = pool_plan();
  plan.launch().tiles_per_image = 1;
  plan.launch().threads = 32;
  CHECK(has(fault_of_run(plan, plan), "was not written by any thread; 16 of 48 elements are missing"));
}

TEST_CASE("template kernel: an output that is another's") {
  TemplatePlan told = pool_plan(), plan = told;
  told.output().image_words = 100;
  plan.output().image_words = 60;
  CHECK(has(fault_of_run(plan, told, 2), "(image 0, word 60), which is not the kernel's"));
}

TEST_CASE("template kernel: reads beyond the input") {
  TemplatePlan told = pool_plan(), plan = told;
  plan.input().image_words = 300;
  CHECK(has(fault_of_run(plan, told, 2), "load from input out of bounds"));
}

TEST_CASE("template kernel: weights that it does not have") {
  ChannelAffine affine;
  affine.scale = affine.shift = {1, 2, 3, 4};
  const TemplatePlan plan = plan_of(network_of(affine, {{4, 6, 6}}), "elementwise");
  TemplatePlan told = plan;
  told.weights().run_words = 0;
  CHECK(has(fault_of_run(plan, told), "which belongs to no buffer of the launch"));
}

TEST_CASE("template kernel: a launch of other sizes") {
  const TemplatePlan plan = pool_plan();
  HostKernel host(to_bitcode(specialise_template(plan, "tested")), "tested", plan.form);
  std::vector<float> output(48);
  const std::vector<float> input(100);
  CHECK(has(error_of([&] { host.run({.batch = 1, .input = input, .output = output}); }),
            "tensor 'input' has 100 words; batch 1 needs 192"));
  CHECK(
      has(error_of([&] { host.run({.batch = 0, .input = input, .output = output}); }), "batch 0 is not between 1 and"));
}

namespace {

// What the fully connected layer gets.
TemplatePlan best_plan(const Linear& op, const ProviderCheck& check) {
  const Network network = network_of(op, {{op.in_features}});
  const std::vector<Candidate> candidates = candidates_of(task_of(network, network.operators.front(), check));
  const auto us = [](const Candidate& candidate) { return candidate.estimate.us; };
  return parse_template_plan(std::ranges::min_element(candidates, {}, us)->plan);
}

struct Planned {
  TemplatePlan plan;
  std::vector<std::uint32_t> weights;
};

}  // namespace

TEST_CASE("fully connected: whichever form of a layer streams fewer bytes") {
  Linear op;
  op.in_features = 1000;
  op.out_features = 20;
  op.weights.assign(20'000, 1.0F);
  const auto best_of = [&](int batch) {
    ProviderCheck check;
    check.tuned_batch = batch;
    return best_plan(op, check);
  };
  CHECK(best_of(1).template_name == "linear");
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 10 == 0 ? 1.0F : 0.0F;
  const auto sparse_of = [&](int batch) {
    ProviderCheck check;
    check.tuned_batch = batch;
    return plan_of(network_of(op, {{op.in_features}}), "linear_sparse", check);
  };
  const TemplatePlan sparse = sparse_of(1);
  // 100 nonzeros of an output: four for each lane. Each has a value and a byte; a lane has its first feature.
  const std::int64_t output_words = 32 + 128 + 32, table_words = 24;
  CHECK(sparse.weights().run_words == table_words + 20 * output_words);
  CHECK(sparse.integers.at("delta_words") == 1);
  CHECK(sparse_of(32).launch().tile_images == 4);
  // As many bytes as a network's layer has count.
  op.in_features = op.out_features = 2048;
  op.weights.assign(std::size_t{2048} * 2048, 0.0F);
  for (std::size_t i = 0; i < op.weights.size(); i += 10) op.weights[i] = 1;
  for (const int batch : {1, 32}) CHECK(best_of(batch).template_name == "linear_sparse");
  // Of three quarters, the dense form serves eight images at a time.
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 4 != 0 ? 1.0F : 0.0F;
  CHECK(best_of(32).template_name == "linear");
}

TEST_CASE("fully connected: distances that need sixteen bits") {
  Linear op;
  op.in_features = 60'000;
  op.out_features = 1;
  op.weights.assign(60'000, 0.0F);
  for (std::size_t i = 0; i < op.weights.size(); i += 400) op.weights[i] = 1;
  // Too many features for shared memory.
  CHECK(providers_of(network_of(op, {{op.in_features}})) == std::set<std::string>{"linear"});
  op.in_features = 50'000;
  op.weights.resize(50'000);
  const Network smaller = network_of(op, {{op.in_features}});
  CHECK(plan_of(smaller, "linear_sparse").integers.at("delta_words") == 2);
  CHECK(check_operator(smaller) == "");
}

TEST_CASE("fully connected: layers stored in FP16") {
  Linear op;
  op.in_features = 1000;
  op.out_features = 20;
  op.bias.assign(20, 0.1F);
  for (int i = 0; i < 20'000; ++i) op.weights.push_back(i % 10 == 0 ? 1 + static_cast<float>(i % 7) / 3 : 0.0F);
  const auto planned = [&](const char* provider, int before = 0) {
    ProviderCheck check;
    check.before = before;
    check.linear_storage = ElementType::f16;
    const Network network = network_of(op, {{op.in_features}});
    const Task task = task_of(network, network.operators.front(), check);
    const TemplatePlan plan = plan_of(network, provider, check);
    return Planned{plan, find_provider(provider)->make(task, print(plan)).weights};
  };
  const auto half = [](float value) { return std::uint32_t{to_half(ElementType::f16, value)}; };
  const Planned sparse = planned("linear_sparse");
  CHECK(stored_weights(sparse.plan) == FactorType::f16);
  CHECK(describe(sparse.plan).starts_with("linear_sparse fp16, "));
  // As with FP32, but two words of values for each lane in place of four.
  const std::int64_t output_words = 32 + 64 + 32, tables = 24 + 20;
  REQUIRE(sparse.plan.weights().run_words == tables + 20 * output_words);
  const std::uint32_t start = sparse.weights[0];
  CHECK(start == tables);
  CHECK(sparse.weights[24] == std::bit_cast<std::uint32_t>(0.1F));  // biases stay as they are
  // Lane 1 has the nonzeros of features 40, 50, 60 and 70.
  CHECK(sparse.weights[start + 1] == 40);
  CHECK(sparse.weights[start + 32 + 1] == (half(op.weights[40]) | half(op.weights[50]) << 16));
  CHECK(sparse.weights[start + 64 + 1] == (half(op.weights[60]) | half(op.weights[70]) << 16));
  CHECK(sparse.weights[start + 96 + 1] == (10U << 8 | 10U << 16 | 10U << 24));

  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 5 < 3 ? 1 + static_cast<float>(i % 7) : 0.0F;
  const Planned dense = planned("linear");
  CHECK(describe(dense.plan).starts_with("linear fp16, "));
  CHECK(dense.plan.integers.at("row_words") == 500);
  REQUIRE(dense.plan.weights().run_words == 20 * 500 + 20);
  const std::vector<float>& w = op.weights;
  CHECK(dense.weights[1] == (half(w[4]) | half(w[5]) << 16));  // pieces of four: their first words, then the second
  CHECK(dense.weights[251] == (half(w[6]) | half(w[7]) << 16));
  CHECK(planned("linear", 1).weights[251] == (half(w[502]) | half(w[503]) << 16));  // pieces of one

  // What rounds to zero is not stored.
  for (std::size_t i = 0; i < op.weights.size(); ++i) op.weights[i] = i % 10 == 0 ? 1.0F : 1e-9F;
  CHECK(planned("linear_sparse").plan == sparse.plan);

  op.weights[1234] = -65519;
  CHECK(stored_weights(planned("linear").plan) == FactorType::f16);
  op.weights[1234] = -65520;
  CHECK_THAT(BURIN_THROWN(unsupported, planned("linear")).text,
             burin_test::Contains("linear layer 'tested': its weight -65520 is too large for FP16, whose "
                                  "largest number is 65504: compile it with --linear-storage fp32"));
}
