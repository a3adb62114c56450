// Random graphs, compiled as they are for a package, run as a whole on the host executor and step by step.

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/verify/verification.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/network/random_graphs.h"

using namespace burin;
using namespace burin_test;

namespace {

// What is wrong, in words.
std::string first_fault(const Verification& verification) {
  if (verification.results.empty()) return "nothing was verified";
  for (const VerifiedProgram& result : verification.results) {
    if (result.passed()) continue;
    if (!result.fault.empty()) return result.fault;
    if (const StepResult* failed = result.first_failed()) {
      return fmt::format("batch {}, step {}: {}", result.batch, failed->step,
                         describe_worst(*failed, failed->shape, result.images));
    }
    if (!result.step_fault.empty()) return result.step_fault;
    for (const OutputResult& output : result.outputs) {
      if (!output.passed) {
        return fmt::format("batch {}, an output: {}, {:g} times its tolerance", result.batch, output.fault,
                           output.comparison.worst_ratio);
      }
    }
  }
  return {};
}

// What compiled networks consisted of.
struct Seen {
  int conversions = 0, halves = 0;  // steps, buffers
  int maps = 0;                     // that a step reads
};

std::string fault_of_seed(std::uint64_t seed, CompileOptions compile_options, Seen& seen) {
  Network model = RandomGraph(seed).make();
  model.source = "random.onnx";
  compile_options.batches = {1, 3};
  const Package package = compile_network(model, compile_options, {}).package;
  for (const Program& program : package.manifest.programs) {
    for (const Step& step : program.steps) seen.maps += step.input_map ? 1 : 0;
    seen.conversions +=
        static_cast<int>(std::ranges::count(program.steps, std::string(kind_name(Convert{})), &Step::kind));
    seen.halves += static_cast<int>(std::ranges::count_if(
        program.buffers, [](const Buffer& buffer) { return buffer.format.element != ElementType::f32; }));
  }
  if (const auto faults = verify(package); !faults.empty()) return faults.front();
  const std::unique_ptr<Executor> executor = make_executor({.host = true}, package);
  VerifyOptions options;
  options.seed = seed;
  options.steps = true;
  const Network reference = reference_of(model, package.manifest, std::nullopt);
  return first_fault(verify_programs(package, reference, options, *executor));
}

}  // namespace

TEST_CASE("random_networks_compute_what_the_graph_says_as_a_whole_and_step_by_step") {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    INFO("RandomGraph(" << seed << ")");
    CHECK(fault_of_seed(seed, {}, seen) == "");
  }
  CHECK(seen.conversions == 0);
  CHECK(seen.maps == 0);
}

TEST_CASE("random_networks_skip_what_the_layer_before_marked_as_dead") {
  CompileOptions options;
  options.skip_dead_tiles = true;
  options.plan = "tile=1x1x1";  // maps are for kernels of the same tiles
  Seen seen;
  for (std::uint64_t seed = 20; seed < 25; ++seed) {  // which have some
    INFO("RandomGraph(" << seed << ")");
    CHECK(fault_of_seed(seed, options, seen) == "");
  }
  CHECK(seen.maps > 5);
}

TEST_CASE("random_networks_compute_in_half_precision_and_in_other_layouts") {
  constexpr std::uint64_t kGraphs = 2;
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp16x2, Precision::fp32}) {
    CompileOptions options;
    options.precisions = {precision};
    // Of few images all else would be FP32.
    options.layout = precision == Precision::fp32 ? TensorLayout::nchw4 : TensorLayout::n2chw;
    Seen seen;
    for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
      INFO("RandomGraph(" << seed << "), " << to_string(precision));
      CHECK(fault_of_seed(seed, options, seen) == "");
    }
    CHECK(seen.conversions > 3);
    CHECK((seen.halves > 3) == is_half(precision));
  }
}
