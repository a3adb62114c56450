// What the assemblers make of template kernels, at the sizes of real networks: everything stays in registers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/assemble/assembler.h"
#include "compiler/emit/ptx.h"
#include "compiler/providers/linear/layer_tiles.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/check_cubin.h"
#include "test/assemble/kernels.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/providers/provider_cases.h"
#include "test/providers/provider_check.h"
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

// Plans for so many images go through the library and through the program, others through one of them.
constexpr int kBatchOfBoth = 32;

void check_assembled(const OperatorCase& sample, int batch, const std::string& arch) {
  const auto nvjitlink = open_nvjitlink();
  const auto ptxas = open_ptxas();
  if (!nvjitlink && !ptxas) BURIN_SKIP("no assembler: neither nvJitLink nor ptxas");
  const Network network = network_of(sample);
  ProviderCheck options;
  options.tuned_batch = batch;
  options.arch = arch;
  const Task task = task_of(network, network.operators.back(), options);
  const std::vector<Candidate> candidates = candidates_of(task);
  REQUIRE_FALSE(candidates.empty());
  for (const Candidate& candidate : candidates) {
    const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
    INFO(sample.name << ", batch " << batch << ", " << arch << ": " << recipe.plan_short);
    const std::string ptx = emit_ptx(recipe.specialise(recipe.symbol), arch);
    CHECK(ptx.find(".local") == std::string::npos);
    if (nvjitlink) check_report(nvjitlink->assemble(ptx, arch), recipe.symbol);
    if (ptxas && (!nvjitlink || batch == kBatchOfBoth)) check_report(ptxas->assemble(ptx, arch), recipe.symbol);
  }
}

}  // namespace

TEST_CASE("assembled templates: the largest of real networks") {
  int number = 0;
  for (const OperatorCase& sample : network_cases()) {
    ++number;
    for (const int batch : {1, 32}) {
      if (is_taken(number++, 2)) check_assembled(sample, batch, "sm_90");
    }
  }
}

TEST_CASE("assembled templates: for GPUs without asynchronous copies") {
  int checked = 0, number = 0;
  for (const OperatorCase& sample : network_cases()) {
    if (!sample.layer && !std::holds_alternative<Linear>(sample.kind))
      continue;  // others copy nothing to shared memory
    if (!is_taken(number++, 2)) continue;
    check_assembled(sample, 8, "sm_75");
    ++checked;
  }
  CHECK(checked > 7);
}

TEST_CASE("assembled templates: convolutions of transformed patches fit their registers") {
  const auto ptxas = open_ptxas();
  if (!ptxas) BURIN_SKIP("no assembler: no ptxas");
  constexpr int kMostSpills = 40;  // of a few plans that have no register to spare
  int number = 0, checked = 0;
  for (const auto& [provider, filter] : {std::pair{"conv_winograd", 3}, {"conv_fft", 3}, {"conv_fft", 5}}) {
    const OperatorCase sample = convolution_case("sample", 96, 80, 24, filter, 1, filter / 2);
    const Network network = network_of(sample);
    ProviderCheck options;
    options.tuned_batch = 16;
    const Task task = task_of(network, network.operators.back(), options);
    for (const Candidate& candidate : find_provider(provider)->propose(task, {.count = 1000})) {
      if (!is_taken(number++, 24)) continue;
      const Recipe recipe = find_provider(provider)->make(task, candidate.plan);
      INFO(provider << ": " << find_provider(provider)->brief(candidate.plan));
      const AssembledKernel kernel = describe_assembled(
          ptxas->assemble(emit_ptx(recipe.specialise(recipe.symbol), "sm_90"), "sm_90"), recipe.symbol);
      INFO(kernel.registers << " registers, " << kernel.stack_bytes << " bytes of stack");
      CHECK(kernel.spill_bytes <= kMostSpills);
      ++checked;
    }
  }
  CHECK(checked > 10);
}

TEST_CASE("assembled templates: tiles of fully connected layers leave room for as many blocks as their model says") {
  const auto ptxas = open_ptxas();
  if (!ptxas) BURIN_SKIP("no assembler: no ptxas");
  Linear op;
  op.in_features = 512;
  op.out_features = 512;
  op.weights.assign(std::size_t{512} * 512, 0.5F);
  op.bias.assign(512, 0.5F);
  const Network network = network_of(op, {{512}});
  int number = 0, checked = 0;
  for (const ElementType storage : {ElementType::f32, ElementType::f16}) {
    ProviderCheck options;
    options.tuned_batch = 64;
    options.linear_storage = storage;
    const Task task = task_of(network, network.operators.back(), options);
    for (const Candidate& candidate : find_provider("linear")->propose(task, {.count = 1000})) {
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      if (plan.integers.at("block_rows") != 0 || !is_taken(number++, 12)) continue;
      const Recipe recipe = find_provider("linear")->make(task, candidate.plan);
      INFO(find_provider("linear")->brief(candidate.plan));
      const SpecialisedModule module = recipe.specialise(recipe.symbol);
      const AssembledKernel kernel =
          describe_assembled(ptxas->assemble(emit_ptx(module, "sm_90"), code_arch(module, "sm_90")), recipe.symbol);
      CHECK(kernel.spill_bytes == 0);
      LayerTiles tiles;
      tiles.feature_quads = plan.integers.at("feature_quads");
      tiles.image_quads = plan.integers.at("image_quads");
      CHECK(kernel.registers <= registers_of(tiles));
      ++checked;
    }
  }
  CHECK(checked > 10);
}

namespace {

// Products are of halves in n8c8hw, or of floats in n4c8hw in TF32.
struct GroupProducts {
  OperatorCase sample;
  ProviderCheck options;
  const Provider* provider;

  GroupProducts(const OperatorCase& of, FactorType factors)
      : sample(of), provider(find_provider(factors == FactorType::tf32 ? "conv_warpgroup_tf32" : "conv_warpgroup")) {
    options.tuned_batch = 32;
    sample.from = sample.to = {ElementType::f16, TensorLayout::n8c8hw};
    if (factors != FactorType::tf32) return;
    options.factors = factors;
    sample.from = sample.to = {ElementType::f32, TensorLayout::n4c8hw};
  }
};

// Of up to `count` plans for 32 images, and of one for each of the choices; how many there were.
int check_group_products(const GroupProducts& of, const Ptxas& ptxas, int count,
                         const std::vector<std::string>& choices = {}) {
  const Network network = network_of(of.sample);
  const Task task = task_of(network, network.operators.back(), of.options);
  int checked = 0;
  std::vector<Candidate> candidates = of.provider->propose(task, {.count = count});
  for (const std::string& plan : choices) candidates.push_back(of.provider->propose(task, {.plan = plan}).at(0));
  for (const Candidate& candidate : candidates) {
    const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
    INFO(candidate.plan);
    const SpecialisedModule module = recipe.specialise(recipe.symbol);
    const std::string arch = code_arch(module, "sm_90");
    CHECK(arch == "sm_90a");
    const std::string ptx = emit_ptx(module, "sm_90");
    // The box stays among the parameters, where the GPU looks for it.
    CHECK(ptx.find("cvta.param") != std::string::npos);
    CHECK(ptx.find(".local") == std::string::npos);
    const AssemblerOutput output = ptxas.assemble(ptx, arch);
    INFO(output.log);
    CHECK(output.log.find("serialized") == std::string::npos);
    check_report(output, recipe.symbol);
    const CubinInfo info = read_cubin(output.cubin);
    REQUIRE(info.find(recipe.symbol) != nullptr);
    CHECK(are_parameters_of(info.find(recipe.symbol)->parameters, recipe.form));
    ++checked;
  }
  return checked;
}

}  // namespace

// The assembler says in its log alone that it lets each product wait for the one before: then a kernel takes twice as
// long.
TEST_CASE("assembled templates: products of warpgroups do not wait for each other") {
  const auto ptxas = open_ptxas();
  if (!ptxas) BURIN_SKIP("no ptxas");
  int checked = 0;
  for (const bool residual : {false, true}) {
    for (const int filter : {1, 3}) {
      checked += check_group_products(
          {convolution_case("warpgroup", 256, 256, 14, filter, 1, filter / 2, 0.1, residual, 1), FactorType::f16},
          *ptxas, 6, {"sparse=0,overlap=1", "sparse=0,overlap=1,chunk_channels=16,buffers=3"});
      checked += check_group_products(
          {convolution_case("warpgroup", 256, 256, 14, filter, 1, filter / 2, 0.1, residual, 1), FactorType::tf32},
          *ptxas, 4, {"output_octets=16", "output_octets=2,chunk_channels=8"});
    }
  }
  CHECK(checked == 56);
}

// What a step multiplies lies in registers, which the same step of the next chunk loads into: before that its product
// must have ended. No executor sees registers, so here is the order of the code: of chunks of one step, of two, of
// more.
TEST_CASE("assembled templates: registers of products under way are not written") {
  const GroupProducts of(convolution_case("warpgroup", 256, 256, 14, 1, 1, 0, 0.1, false, 1), FactorType::tf32);
  const Network network = network_of(of.sample);
  const Task task = task_of(network, network.operators.back(), of.options);
  for (const auto& [channels, expected] :
       {std::pair(8, "wait_group.sync.aligned 0;"), {16, "wait_group.sync.aligned 1;"}, {32, "ld.shared.v4"}}) {
    INFO(channels << " channels in a chunk");
    const Candidate candidate = of.provider->propose(task, {.plan = fmt::format("chunk_channels={}", channels)}).at(0);
    const Recipe recipe = of.provider->make(task, candidate.plan);
    const std::string ptx = emit_ptx(recipe.specialise(recipe.symbol), "sm_90");
    const std::size_t commit = ptx.find("wgmma.commit_group");
    REQUIRE(commit != std::string::npos);
    const std::size_t wait = ptx.find("wait_group.sync.aligned", commit), load = ptx.find("ld.shared.v4", commit);
    CHECK(ptx.find(expected, commit) == std::min(wait, load));
  }
}

// A function that is called keeps products from following each other, and so do divisions, which are calls.
TEST_CASE("assembled templates: products of warpgroups do not wait for each other whatever the function behind them") {
  const auto ptxas = open_ptxas();
  if (!ptxas) BURIN_SKIP("no ptxas");
  for (std::size_t i = 0; i < names_of(ElementFunction{}).names.size(); ++i) {
    const Elementwise function{static_cast<ElementFunction>(i), 0.5F, 0.75F};
    if (function.is_user()) continue;  // its code is the user's
    INFO(describe(function));
    OperatorCase sample = convolution_case("warpgroup", 128, 128, 14, 3, 1, 1, 0.3, true, 1);
    sample.layer->shape.epilogue.function = function;
    const auto number = static_cast<int>(i);  // one function in FP16, the next one in TF32
    if (is_taken(number, 2)) CHECK(check_group_products({sample, FactorType::f16}, *ptxas, 1) == 1);
    if (is_taken(number + 1, 2)) CHECK(check_group_products({sample, FactorType::tf32}, *ptxas, 1) == 1);
  }
}

TEST_CASE("assembled templates: products of warpgroups that pool do not wait for each other") {
  const auto ptxas = open_ptxas();
  if (!ptxas) BURIN_SKIP("no ptxas");
  const Pool two{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  Pool three{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}};
  int checked = 0;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    for (Pool pool : {two, three}) {
      pool.kind = kind;
      OperatorCase sample = convolution_case("warpgroup", 64, 64, 56, 3, 1, 1, 0.3, kind == PoolKind::average, 1);
      sample.layer->shape.epilogue.pool = pool;
      INFO(describe(sample.layer->shape));
      checked += check_group_products({sample, FactorType::f16}, *ptxas, 4);
    }
  }
  CHECK(checked == 16);
}
