#include <catch2/catch.hpp>

#include "compiler/cli/verification.h"
#include "ir/error.h"

using namespace burin;

namespace {

ConvLayer small_layer(const std::string& name) {
  ConvLayer layer;
  layer.name = name;
  layer.shape.in_channels = 2;
  layer.shape.out_channels = 3;
  layer.shape.kernel_h = layer.shape.kernel_w = 3;
  layer.shape.pad = {1, 1, 1, 1};
  layer.shape.in_h = layer.shape.in_w = 5;
  layer.weights.assign(static_cast<std::size_t>(layer.shape.weight_elements()), 0.25F);
  return layer;
}

Manifest manifest_of(const ConvLayer& layer) {
  KernelRecord kernel;
  kernel.layer = layer.name;
  kernel.shape = layer.shape;
  kernel.planned_batch = 2;
  Manifest manifest;
  manifest.kernels.push_back(kernel);
  return manifest;
}

// Computes with the reference itself, then spoils the result in one way.
class FakeExecutor : public Executor {
 public:
  enum class Fault { none, wrong_element, unwritten_element, fault_found };

  FakeExecutor(ConvLayer layer, Fault fault) : layer_(std::move(layer)), fault_(fault) {}
  std::string name() const override { return "fake"; }
  bool concurrent() const override { return true; }
  void run(const KernelRecord&, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override {
    if (fault_ == Fault::fault_found) fail(ErrorKind::verification, "block 3 read outside its input");
    const std::vector<double> result = reference_convolution(layer_, batch, input, residual);
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (fault_ == Fault::unwritten_element && i == kSpoiled) continue;
      output[i] = static_cast<float>(result[i]);
    }
    if (fault_ == Fault::wrong_element) output[kSpoiled] += 0.01F;
  }
  static constexpr std::size_t kSpoiled = 75 + 2 * 25 + 3 * 5 + 4;  // image 1, channel 2, row 3, col 4

 private:
  ConvLayer layer_;
  Fault fault_;
};

VerificationResult verify_with(FakeExecutor::Fault fault) {
  const ConvLayer layer = small_layer("conv");
  const Manifest manifest = manifest_of(layer);
  Network network;
  network.layers = {layer};
  const std::vector<VerificationTask> tasks = pair_with_weights(manifest, network, std::nullopt, std::nullopt);
  REQUIRE(tasks.size() == 1);
  CHECK(tasks[0].batch == 2);
  FakeExecutor executor(layer, fault);
  return verify_kernel(tasks[0], 7, executor);
}

}  // namespace

TEST_CASE("a_right_kernel_passes") {
  const VerificationResult result = verify_with(FakeExecutor::Fault::none);
  CHECK(result.passed);
  CHECK(result.fault.empty());
  CHECK(result.longest_reduction == 18);
}

TEST_CASE("one_wrong_element_fails_and_is_the_worst") {
  const VerificationResult result = verify_with(FakeExecutor::Fault::wrong_element);
  CHECK_FALSE(result.passed);
  CHECK(result.comparison.worst_index == static_cast<std::int64_t>(FakeExecutor::kSpoiled));
}

TEST_CASE("one_unwritten_element_fails") {
  const VerificationResult result = verify_with(FakeExecutor::Fault::unwritten_element);
  CHECK_FALSE(result.passed);
  CHECK(result.comparison.worst_index == static_cast<std::int64_t>(FakeExecutor::kSpoiled));
}

TEST_CASE("a_fault_that_the_executor_finds_is_a_result") {
  const VerificationResult result = verify_with(FakeExecutor::Fault::fault_found);
  CHECK_FALSE(result.passed);
  CHECK(result.fault == "block 3 read outside its input");
}

TEST_CASE("weights_of_another_shape_are_refused") {
  const ConvLayer layer = small_layer("conv");
  const Manifest manifest = manifest_of(layer);
  Network network;
  ConvLayer other = layer;
  other.shape.kernel_h = 1;
  network.layers = {other};
  CHECK_THROWS_WITH(pair_with_weights(manifest, network, std::nullopt, std::nullopt),
                    Catch::Contains("[3,2,1,3]") && Catch::Contains("[3,2,3,3]"));
}

TEST_CASE("a_layer_that_the_weights_lack_is_named") {
  const Manifest manifest = manifest_of(small_layer("conv1"));
  Network network;
  network.source = "net.safetensors";
  network.layers = {small_layer("conv2"), small_layer("other")};
  CHECK_THROWS_WITH(pair_with_weights(manifest, network, std::nullopt, std::nullopt),
                    Catch::Contains("net.safetensors") && Catch::Contains("'conv1'") && Catch::Contains("'conv2'"));
}

TEST_CASE("one_layer_is_paired_with_one_layer_of_any_name") {
  const Manifest manifest = manifest_of(small_layer("old"));
  Network network;
  network.layers = {small_layer("new")};
  CHECK(pair_with_weights(manifest, network, std::nullopt, 5).at(0).batch == 5);
}

TEST_CASE("a_glob_without_a_match_is_a_usage_error") {
  const ConvLayer layer = small_layer("conv");
  Network network;
  network.layers = {layer};
  CHECK_THROWS_WITH(pair_with_weights(manifest_of(layer), network, "x*", std::nullopt), Catch::Contains("'x*'"));
}
