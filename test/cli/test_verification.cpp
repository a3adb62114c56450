
#include "compiler/verify/layer_verification.h"
#include "ir/derive_form.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "test/catch.h"

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

Manifest manifest_of(const ConvLayer& layer, Precision precision = Precision::fp32) {
  Kernel kernel;
  kernel.op = layer.name;
  kernel.precision = to_string(precision);
  BakedPlan plan;
  plan.precision = precision;
  if (precision == Precision::fp16x2) plan.promote_every = 12;
  kernel.plan = print(plan);
  kernel.layer = KernelLayer{layer.shape};
  plan.input_layout = plan.output_layout = is_half(precision) ? TensorLayout::n2chw : TensorLayout::nchw;
  kernel.form = form_of(plan, layer.shape);
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
  bool input_was_rounded = true;  // to the kernel's element type
  std::string name() const override { return "fake"; }
  bool concurrent() const override { return true; }
  void run(const Kernel& kernel, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output, const ActivityMaps& maps) override {
    const ElementType element = kernel.form.input().element;
    for (const float value : input) input_was_rounded = input_was_rounded && value == rounded(element, value);
    if (fault_ == Fault::fault_found) fail(ErrorKind::verification, "block 3 read outside its input");
    const std::vector<double> result = reference_convolution(layer_, batch, input, residual);
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (fault_ == Fault::unwritten_element && i == kSpoiled) continue;
      output[i] = rounded(kernel.form.output().element, static_cast<float>(result[i]));
    }
    if (fault_ == Fault::wrong_element) output[kSpoiled] += 0.01F;
  }
  static constexpr std::size_t kSpoiled = 75 + 2 * 25 + 3 * 5 + 4;  // image 1, channel 2, row 3, col 4

 private:
  ConvLayer layer_;
  Fault fault_;
};

VerificationResult verify_with(FakeExecutor::Fault fault, Precision precision = Precision::fp32) {
  const ConvLayer layer = small_layer("conv");
  const Manifest manifest = manifest_of(layer, precision);
  Network network;
  network.layers = {layer};
  const std::vector<VerificationTask> tasks = pair_with_weights(manifest, network, std::nullopt, std::nullopt);
  REQUIRE(tasks.size() == 1);
  CHECK(tasks[0].batch == 2);
  FakeExecutor executor(layer, fault);
  VerificationResult result = verify_kernel(tasks[0], 7, executor);
  CHECK(executor.input_was_rounded);
  return result;
}

}  // namespace

TEST_CASE("a_right_kernel_passes") {
  const VerificationResult result = verify_with(FakeExecutor::Fault::none);
  CHECK(result.passed);
  CHECK(result.fault.empty());
  CHECK(result.arithmetic.longest_reduction == 18);
  CHECK(result.arithmetic.precision == Precision::fp32);
}

TEST_CASE("a_kernel_is_judged_by_its_precision") {
  for (const Precision precision : kPrecisions) {
    CAPTURE(to_string(precision));
    const VerificationResult right = verify_with(FakeExecutor::Fault::none, precision);
    CHECK(right.passed);
    CHECK(right.arithmetic.precision == precision);
    CHECK(right.arithmetic.promote_every == (precision == Precision::fp16x2 ? 12 : 0));
    // An error of 0.01 is more than FP16 outputs may have, whose values are about 1.
    const VerificationResult wrong = verify_with(FakeExecutor::Fault::wrong_element, precision);
    if (precision == Precision::fp32 || precision == Precision::fp16) CHECK_FALSE(wrong.passed);
    CHECK_FALSE(verify_with(FakeExecutor::Fault::unwritten_element, precision).passed);
  }
}

TEST_CASE("a_plan_that_cannot_be_read_is_bad_input_where_the_tolerance_depends_on_it") {
  Manifest manifest = manifest_of(small_layer("conv"), Precision::fp16x2);
  Kernel& kernel = manifest.kernels.front();
  CHECK(arithmetic_of(kernel).promote_every == 12);
  kernel.plan = "template: conv_baked\n";
  try {
    arithmetic_of(kernel);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    CHECK_THAT(error.what(), burin_test::Contains("layer 'conv'") && burin_test::Contains("kernel plan"));
  }
  kernel.precision = "fp16";
  CHECK(arithmetic_of(kernel).promote_every == 0);
}

TEST_CASE("tolerances_as_formulas") {
  const std::string sums = "4 * 2^-23 * sqrt(terms + 1) * sum |weight * input|";
  CHECK(tolerance_text(Precision::fp32) == sums);
  CHECK(tolerance_text(Precision::fp16) == sums + " + 2^-11 * |expected|");
  CHECK(tolerance_text(Precision::bf16) == sums + " + 2^-8 * |expected|");
  CHECK(tolerance_text(Precision::fp16x2) ==
        sums + " + 1 * 2^-10 * sqrt(terms of an FP16 sum + 1) * sum |weight * input| + 2^-11 * |expected|");
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
                    burin_test::Contains("[3,2,1,3]") && burin_test::Contains("[3,2,3,3]"));
}

TEST_CASE("a_layer_that_the_weights_lack_is_named") {
  const Manifest manifest = manifest_of(small_layer("conv1"));
  Network network;
  network.source = "net.safetensors";
  network.layers = {small_layer("conv2"), small_layer("other")};
  CHECK_THROWS_WITH(
      pair_with_weights(manifest, network, std::nullopt, std::nullopt),
      burin_test::Contains("net.safetensors") && burin_test::Contains("'conv1'") && burin_test::Contains("'conv2'"));
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
  CHECK_THROWS_WITH(pair_with_weights(manifest_of(layer), network, "x*", std::nullopt), burin_test::Contains("'x*'"));
}
