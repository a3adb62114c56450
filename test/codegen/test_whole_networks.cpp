// Random graphs, compiled as they are for a package, run as a whole on the host executor and step by step.

#include "compiler/compile.h"
#include "compiler/verify/network_verification.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/network/random_graphs.h"

using namespace burin;
using namespace burin_test;

namespace {

Package compile_model(const Network& model, std::vector<int> batches) {
  CompileOptions options;
  options.batches = std::move(batches);
  return compile_network(prepare_graph(model, std::nullopt), options, {}).package;
}

// What is wrong, in words.
std::string first_fault(const NetworkVerification& verification) {
  if (verification.results.empty()) return "nothing was verified";
  for (const NetworkResult& result : verification.results) {
    if (result.passed()) continue;
    if (!result.fault.empty()) return result.fault;
    if (const StepResult* failed = result.first_failed()) {
      return fmt::format("batch {}, step {}: {}", result.batch, failed->step,
                         describe_worst(failed->comparison, failed->fault, failed->shape, result.images));
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

std::string fault_of_seed(std::uint64_t seed) {
  Network model = RandomGraph(seed).make();
  model.source = "random.onnx";
  const Package package = compile_model(model, {1, 3});
  if (const auto faults = verify(package); !faults.empty()) return faults.front();
  const std::unique_ptr<NetworkExecutor> executor = make_network_executor({.host = true}, package);
  NetworkVerifyOptions options;
  options.seed = seed;
  options.steps = true;
  return first_fault(verify_network(package, model, options, *executor));
}

}  // namespace

TEST_CASE("random_networks_compute_what_the_graph_says_as_a_whole_and_step_by_step") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    INFO("RandomGraph(" << seed << ")");
    CHECK(fault_of_seed(seed) == "");
  }
}
