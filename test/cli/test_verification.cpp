
#include "compiler/verify/verification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/cli/verify_report.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::Contains;

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

constexpr int kImageOutputs = 3 * 5 * 5;

Network weights_of(std::vector<ConvLayer> layers) {
  Network network;
  network.source = "net.safetensors";
  network.layers = std::move(layers);
  separate_layers(network);
  return network;
}

// Adds a kernel of the layer and its program, for two images, without code.
void add_kernel_of(Package& package, const ConvLayer& layer, Precision precision = Precision::fp32,
                   const std::optional<ActivityMap>& map = {}) {
  Kernel kernel;
  kernel.op = layer.name;
  kernel.symbol = layer.name + "_b2";
  kernel.kind = "convolution";
  kernel.layer = KernelLayer{layer.shape};
  BakedPlan plan = burin_test::sample_plan(
      layer.shape, {.tile = {is_half(precision) ? 2 : 1, layer.shape.out_h(), layer.shape.out_w()},
                    .precision = precision,
                    .batch = 2,
                    .skips = map,
                    .marks = map.has_value()});
  if (precision == Precision::fp16x2) plan.promote_every = 12;
  burin_test::set_plan(kernel, plan);
  package.manifest.programs.push_back(program_of(kernel, 2));
  package.manifest.kernels.push_back(std::move(kernel));
}

Package package_for(const ConvLayer& layer, Precision precision = Precision::fp32,
                    const std::optional<ActivityMap>& map = {}) {
  Package package;
  add_kernel_of(package, layer, precision, map);
  return package;
}

// Computes with the reference itself, then spoils the outputs in one way.
class FakeExecutor : public Executor {
 public:
  using Spoil = std::function<void(Tensors& outputs)>;

  FakeExecutor(std::vector<ConvLayer> layers, Spoil spoil = {})
      : layers_(std::move(layers)), spoil_(std::move(spoil)) {}
  bool input_was_rounded = true;  // to the element type of the program
  std::vector<int> batches;       // that were run
  Tensors inputs;                 // of the last run
  std::string name() const override { return "fake"; }
  bool concurrent() const override { return false; }

  Tensors run(const Program& program, int batch, const Tensors& given, const StepVisitor&) override {
    batches.push_back(batch);
    inputs = given;
    const ElementType element = program.inputs().front()->format.element;
    for (const float value : given[0]) {
      input_was_rounded = input_was_rounded && (std::isnan(value) || value == rounded(element, value));
    }
    const auto layer = std::ranges::find(layers_, program.name, &ConvLayer::name);
    REQUIRE(layer != layers_.end());
    Tensors outputs;
    for (const Buffer* output : program.outputs()) {
      outputs.emplace_back();
      if (output->map) {
        const ActivityExtent extent = {batch, static_cast<int>(output->shape[0]), static_cast<int>(output->shape[1]),
                                       static_cast<int>(output->shape[2])};
        const std::vector<std::uint8_t> marks = activity_of(*output->map, extent, outputs[0]);
        outputs.back().assign(marks.begin(), marks.end());
        continue;
      }
      for (const double value : reference_convolution(*layer, batch, given[0], {})) {
        outputs.back().push_back(rounded(output->format.element, static_cast<float>(value)));
      }
    }
    if (spoil_) spoil_(outputs);
    return outputs;
  }

 private:
  std::vector<ConvLayer> layers_;
  Spoil spoil_;
};

constexpr std::size_t kSpoiled = kImageOutputs + 2 * 25 + 3 * 5 + 4;  // image 1, channel 2, row 3, col 4
constexpr float kNotWritten = std::numeric_limits<float>::quiet_NaN();

void wrong_element(Tensors& outputs) { outputs[0][kSpoiled] += 0.01F; }
void unwritten_element(Tensors& outputs) { outputs[0][kSpoiled] = kNotWritten; }
void finds_fault(Tensors&) { fail(ErrorKind::verification, "block 3 read outside its input"); }

// They are one program's.
VerifiedProgram verify_with(const FakeExecutor::Spoil& spoil, Precision precision = Precision::fp32,
                            const std::optional<ActivityMap>& map = {}, VerifyOptions options = {}) {
  ConvLayer layer = small_layer("conv");
  if (map) layer.shape.epilogue.function = function_of(Activation::relu);
  const Package package = package_for(layer, precision, map);
  FakeExecutor executor({layer}, spoil);
  options.seed = 7;
  const Verification verification =
      verify_programs(package, reference_of(weights_of({layer}), package.manifest, std::nullopt), options, executor);
  REQUIRE(verification.results.size() == 1);
  CHECK(verification.passed() == verification.results[0].passed());
  CHECK(executor.input_was_rounded);
  VerifiedProgram result = verification.results[0];
  CHECK(result.program == &package.manifest.programs[0]);
  result.program = nullptr;  // it has gone with the package
  return result;
}

}  // namespace

TEST_CASE("a_right_kernel_passes") {
  const VerifiedProgram result = verify_with({});
  CHECK(result.passed());
  CHECK(result.fault.empty());
  CHECK(result.batch == 2);
  CHECK(result.images == std::vector<int>{0, 1});
  REQUIRE(result.outputs.size() == 1);
  CHECK(result.outputs[0].passed);
  REQUIRE(result.steps.size() == 1);
  CHECK(result.steps[0].passed);
  CHECK(result.steps[0].longest_reduction == 18);
}

TEST_CASE("a_kernel_is_judged_by_its_precision") {
  for (const Precision precision : kPrecisions) {
    if (precision == Precision::tf32) continue;  // no kernel's: those of gathered_rows are in fp32, and round
    CAPTURE(to_string(precision));
    const Arithmetic arithmetic = arithmetic_of(package_for(small_layer("conv"), precision).manifest.kernels[0]);
    CHECK(arithmetic.precision == precision);
    CHECK(arithmetic.promote_every == (precision == Precision::fp16x2 ? 12 : 0));
    const VerifiedProgram right = verify_with({}, precision);
    CHECK(right.passed());
    Arithmetic expected = arithmetic;
    expected.longest_reduction = 18;
    const Comparison& worst = right.steps.at(0).comparison;
    // Magnitudes are at most 18 * 0.25; where the tolerance is another precision's it is far from this.
    CHECK(worst.worst_tolerance <= tolerance_of(expected, std::abs(worst.worst_expected), 18 * 0.25));
    CHECK(worst.worst_tolerance > tolerance_of(expected, std::abs(worst.worst_expected), 0.25));
    // An error of 0.01 is more than FP16 outputs may have, whose values are about 1.
    const VerifiedProgram wrong = verify_with(wrong_element, precision);
    if (precision == Precision::fp32 || precision == Precision::fp16) CHECK_FALSE(wrong.passed());
    CHECK_FALSE(verify_with(unwritten_element, precision).passed());
  }
}

TEST_CASE("biases_of_a_call_on_halves_are_halves") {
  Kernel kernel = package_for(small_layer("conv"), Precision::fp16).manifest.kernels.front();
  CHECK(arithmetic_of(kernel).biases == ElementType::f32);
  kernel.call = LibraryCall{.algorithm = ProductAlgorithm::heuristic_0, .factors = FactorType::f16};
  CHECK(arithmetic_of(kernel).biases == ElementType::f16);
}

TEST_CASE("what_the_relu_of_a_call_makes_of_nan_is_the_librarys") {
  Kernel kernel = package_for(small_layer("conv"), Precision::fp32).manifest.kernels.front();
  CHECK_FALSE(arithmetic_of(kernel).relu_drops_nan);
  CHECK(arithmetic_of(kernel).biases == ElementType::f32);
  for (const CallAlgorithm& algorithm :
       {CallAlgorithm(ProductAlgorithm::heuristic_1), CallAlgorithm(ConvolutionAlgorithm::implicit_precomp_gemm),
        CallAlgorithm(ConvolutionAlgorithm::engine_2), CallAlgorithm(ConvolutionAlgorithm::winograd)}) {
    kernel.call = LibraryCall{.algorithm = algorithm};
    CHECK(arithmetic_of(kernel).relu_drops_nan);
    CHECK(arithmetic_of(kernel).biases == ElementType::f32);
    CHECK(arithmetic_of(kernel).reach == (may_transform(algorithm) ? NonFiniteReach::image : NonFiniteReach::window));
  }
}

TEST_CASE("a_plan_that_cannot_be_read_is_bad_input_where_the_tolerance_depends_on_it") {
  Kernel kernel = package_for(small_layer("conv"), Precision::fp16x2).manifest.kernels.front();
  CHECK(arithmetic_of(kernel).promote_every == 12);
  kernel.plan = "template: conv_baked\n";
  CHECK_THAT(BURIN_THROWN(bad_input, arithmetic_of(kernel)).text, Contains("layer 'conv'") && Contains("kernel plan"));
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
  const VerifiedProgram result = verify_with(wrong_element);
  CHECK_FALSE(result.passed());
  CHECK_FALSE(result.outputs.at(0).passed);
  CHECK(result.outputs[0].comparison.worst_index == static_cast<std::int64_t>(kSpoiled));
  REQUIRE(result.first_failed() != nullptr);
  CHECK(result.first_failed()->comparison.worst_index == static_cast<std::int64_t>(kSpoiled));
}

TEST_CASE("one_unwritten_element_fails") {
  const VerifiedProgram result = verify_with(unwritten_element);
  CHECK_FALSE(result.passed());
  CHECK(result.outputs.at(0).comparison.worst_index == static_cast<std::int64_t>(kSpoiled));
}

TEST_CASE("an_unwritten_element_of_an_image_that_is_not_compared_fails_and_a_wrong_one_is_not_seen") {
  VerifyOptions options;
  options.images = 1;
  CHECK(verify_with(wrong_element, Precision::fp32, {}, options).passed());
  const VerifiedProgram result = verify_with(unwritten_element, Precision::fp32, {}, options);
  CHECK(result.images == std::vector<int>{0});
  CHECK_FALSE(result.passed());
  CHECK(result.first_failed() == nullptr);
  CHECK(result.outputs.at(0).fault == "image 1: an element was not written, or is NaN");
}

TEST_CASE("a_fault_that_the_executor_finds_is_a_result") {
  const VerifiedProgram result = verify_with(finds_fault);
  CHECK_FALSE(result.passed());
  CHECK(result.fault == "block 3 read outside its input");
  CHECK(result.outputs.empty());
  CHECK(result.steps.empty());
}

TEST_CASE("reports_name_what_is_wrong_in_the_table_and_for_machines") {
  const std::vector<ConvLayer> layers = {small_layer("right"), small_layer("wrong")};
  Package package;
  add_kernel_of(package, layers[0]);
  add_kernel_of(package, layers[1], Precision::fp16);
  const auto verify_both = [&](const FakeExecutor::Spoil& spoil) {
    int runs = 0;
    FakeExecutor executor(layers, [&](Tensors& outputs) {
      if (++runs == 2) spoil(outputs);
    });
    VerifyOptions options;
    options.batch = 3;
    return verify_programs(package, reference_of(weights_of(layers), package.manifest, std::nullopt), options,
                           executor);
  };
  const Verification fault = verify_both(finds_fault);
  std::string text = verification_text(fault, package.manifest);
  CHECK_THAT(text, Contains("FAILED") && Contains("block 3 read outside its input"));
  CHECK_THAT(text, Contains("1 of 2 kernels FAILED") && !Contains("verified"));
  nlohmann::json json = verification_json(fault);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["passed"] == true);
  CHECK(json[1]["program"] == "wrong");
  CHECK(json[1]["batch"] == 3);
  CHECK(json[1]["planned_batch"] == 2);
  CHECK(json[1]["passed"] == false);
  CHECK(json[1]["fault"] == "block 3 read outside its input");
  CHECK(json[1]["outputs"].empty());
  CHECK(json[1]["steps"].empty());

  const Verification wrong = verify_both(unwritten_element);
  text = verification_text(wrong, package.manifest);
  CHECK_THAT(text, Contains("image 1, channel 2, row 3, col 4: nan, expected "));
  CHECK_THAT(text, Contains("tolerance of an element: ") && Contains("tolerance of an element, fp16: "));
  json = verification_json(wrong);
  CHECK(json[1]["outputs"][0]["passed"] == false);
  CHECK(json[1]["outputs"][0]["worst"]["at"] == "image 1, channel 2, row 3, col 4");
  CHECK(nlohmann::json::parse(json.dump())[1]["outputs"][0]["worst"]["value"].is_null());
  CHECK(json[1]["steps"][0]["passed"] == false);
  CHECK(json[1]["steps"][0]["kernel"] == "wrong_b2");

  text = verification_text(verify_both([](Tensors&) {}), package.manifest);
  CHECK_THAT(text, Contains("all 2 kernels verified") && !Contains("FAILED"));
}

TEST_CASE("errors_of_other_kinds_are_no_results") {
  CHECK_THAT(BURIN_THROWN(device, verify_with([](Tensors&) { fail(ErrorKind::device, "the GPU has gone"); })).text,
             Contains("has gone"));
}

TEST_CASE("a_map_that_a_kernel_writes_must_say_what_its_output_holds") {
  const ActivityMap map = {1, 5, 5};
  const VerifiedProgram right = verify_with({}, Precision::fp32, map);
  CHECK(right.passed());
  REQUIRE(right.outputs.size() == 2);
  CHECK(right.outputs[1].passed);

  for (const float mark : {0.0F, 255.0F}) {  // it says that a live channel is dead; nothing
    CAPTURE(mark);
    const VerifiedProgram wrong = verify_with([mark](Tensors& outputs) { outputs[1][4] = mark; }, Precision::fp32, map);
    CHECK_FALSE(wrong.passed());
    CHECK(wrong.outputs.at(0).passed);
    CHECK_FALSE(wrong.outputs.at(1).passed);
    CHECK_FALSE(wrong.outputs.at(1).fault.empty());
  }
}

TEST_CASE("each_layer_is_run_for_its_own_batch_or_for_the_one_that_is_asked_for") {
  const std::vector<ConvLayer> layers = {small_layer("a"), small_layer("b")};
  Package package;
  for (const ConvLayer& layer : layers) add_kernel_of(package, layer);
  const Network reference = reference_of(weights_of(layers), package.manifest, std::nullopt);
  FakeExecutor executor(layers);
  VerifyOptions options;
  std::vector<std::string> told;
  const Verification verification =
      verify_programs(package, reference, options, executor, [&](int done, int all, const std::string& what) {
        CHECK(all == 2);
        CHECK(done == static_cast<int>(told.size()) + 1);
        told.push_back(what);
      });
  CHECK(verification.passed());
  REQUIRE(verification.results.size() == 2);
  CHECK(verification.results[1].program == &package.manifest.programs[1]);
  CHECK(told == std::vector<std::string>{"a b2", "b b2"});
  options.batch = 5;
  CHECK(verify_programs(package, reference, options, executor).passed());
  CHECK(executor.batches == std::vector<int>{2, 2, 5, 5});
}

TEST_CASE("a_layer_that_the_package_lacks_fails") {
  const std::vector<ConvLayer> layers = {small_layer("a"), small_layer("lost"), small_layer("b")};
  Package package;
  for (const std::size_t layer : {0, 2}) add_kernel_of(package, layers[layer]);
  FakeExecutor executor(layers);
  const auto verify_layers = [&](const std::optional<std::string>& glob) {
    return verify_programs(package, reference_of(weights_of(layers), package.manifest, glob), {}, executor);
  };
  const Verification all = verify_layers(std::nullopt);
  CHECK(all.results.size() == 2);
  CHECK(all.missing == std::vector<std::string>{"lost"});
  CHECK_FALSE(all.passed());
  CHECK_THAT(verification_text(all, package.manifest),
             Contains("1 layer of the weights is not in the package: 'lost'") && Contains("FAILED"));
  CHECK(verify_layers("?").passed());
  CHECK_FALSE(verify_layers("lost").passed());
}

TEST_CASE("only_layers_that_match_are_looked_at") {
  const std::vector<ConvLayer> layers = {small_layer("a1"), small_layer("b"), small_layer("a2")};
  Package package;
  for (const ConvLayer& layer : layers) add_kernel_of(package, layer);
  // The file need not have the others.
  const Network reference = reference_of(weights_of({layers[2], layers[0]}), package.manifest, "a*");
  FakeExecutor executor(layers);
  const Verification verification = verify_programs(package, reference, {}, executor);
  REQUIRE(verification.results.size() == 2);
  CHECK(verification.results[0].program->name == "a1");
  CHECK(verification.results[1].program->name == "a2");
}

TEST_CASE("weights_of_another_shape_are_refused") {
  const Manifest manifest = package_for(small_layer("conv")).manifest;
  ConvLayer other = small_layer("conv");
  other.shape.kernel_h = 1;
  CHECK_THAT(BURIN_THROWN(bad_input, reference_of(weights_of({other}), manifest, std::nullopt)).text,
             Contains("[3,2,1,3]") && Contains("[3,2,3,3]"));
  other = small_layer("conv");
  other.shape.epilogue.bias = true;
  other.bias.assign(3, 1.0F);
  CHECK_THAT(BURIN_THROWN(bad_input, reference_of(weights_of({other}), manifest, std::nullopt)).text,
             Contains("'conv' has a bias, but the package was compiled with none"));
}

TEST_CASE("the_package_says_what_the_weights_do_not") {
  ConvLayer compiled = small_layer("conv");
  compiled.shape.stride_h = compiled.shape.stride_w = 2;
  compiled.shape.epilogue.function = function_of(Activation::relu);
  const Network reference =
      reference_of(weights_of({small_layer("conv")}), package_for(compiled).manifest, std::nullopt);
  REQUIRE(reference.layers.size() == 1);
  CHECK(reference.layers[0].shape == compiled.shape);
  CHECK(reference.separate);
  CHECK(verify(reference).empty());
}

TEST_CASE("a_layer_that_the_weights_lack_is_named") {
  const Manifest manifest = package_for(small_layer("conv1")).manifest;
  const Network network = weights_of({small_layer("conv2"), small_layer("other")});
  CHECK_THAT(BURIN_THROWN(bad_input, reference_of(network, manifest, std::nullopt)).text,
             Contains("net.safetensors") && Contains("'conv1'") && Contains("'conv2'"));
}

TEST_CASE("one_layer_is_paired_with_one_layer_of_any_name") {
  const Package package = package_for(small_layer("old"));
  const Network reference = reference_of(weights_of({small_layer("new")}), package.manifest, std::nullopt);
  REQUIRE(reference.layers.size() == 1);
  CHECK(reference.layers[0].name == "old");
  FakeExecutor executor({small_layer("old")});
  CHECK(verify_programs(package, reference, {}, executor).results.size() == 1);
}

TEST_CASE("a_glob_without_a_match_is_a_usage_error") {
  const ConvLayer layer = small_layer("conv");
  CHECK_THAT(BURIN_THROWN(usage, reference_of(weights_of({layer}), package_for(layer).manifest, "x*")).text,
             Contains("'x*'"));
}

TEST_CASE("random_inputs_depend_on_the_seed_the_name_and_the_batch_alone") {
  const Program program = package_for(small_layer("conv")).manifest.programs[0];
  const Tensors inputs = random_inputs(program, 1, 2, 7);
  REQUIRE(inputs.size() == 1);
  CHECK(inputs[0].size() == 2 * 2 * 5 * 5);
  CHECK(random_inputs(program, 1, 2, 7) == inputs);
  CHECK(random_inputs(program, 1, 2, 8) != inputs);
  CHECK(random_inputs(package_for(small_layer("other")).manifest.programs[0], 1, 2, 7) != inputs);
  const std::vector<float> more = random_inputs(program, 1, 3, 7)[0];
  CHECK_FALSE(std::equal(inputs[0].begin(), inputs[0].end(), more.begin()));
  // Uniform, with the standard deviation that was asked for.
  const std::vector<float> wide = random_inputs(program, 2, 2, 7)[0];
  for (std::size_t i = 0; i < wide.size(); ++i) CHECK(wide[i] == Approx(2 * inputs[0][i]));
  CHECK(std::ranges::all_of(inputs[0], [](float value) { return std::abs(value) <= std::sqrt(3.0F); }));
}

TEST_CASE("half_of_a_random_input_with_a_map_is_dead_and_the_map_says_where") {
  const ActivityMap map = {1, 5, 5};
  const Program program = package_for(small_layer("conv"), Precision::fp32, map).manifest.programs[0];
  const Tensors inputs = random_inputs(program, 1, 2, 7);
  REQUIRE(inputs.size() == 2);
  const std::vector<std::uint8_t> marks = activity_of(map, {2, 2, 5, 5}, inputs[0]);
  CHECK(std::vector<float>(marks.begin(), marks.end()) == inputs[1]);
  CHECK(std::ranges::count(inputs[0], 0.0F) == 50);
}

TEST_CASE("a_share_of_random_inputs_is_not_finite_and_one_value_at_least") {
  const Program program = package_for(small_layer("conv")).manifest.programs[0];
  const auto spoilt = [&](double share, int batch) {
    const std::vector<float> values = random_inputs(program, 1, batch, 7, {}, share)[0];
    return std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
  };
  CHECK(spoilt(0, 2) == 0);
  CHECK(spoilt(1e-9, 2) == 1);
  CHECK(spoilt(0.1, 200) == Approx(1000).margin(100));
  CHECK(spoilt(1, 2) == 100);
  const std::vector<float> values = random_inputs(program, 1, 200, 7, {}, 0.1)[0];
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, -kInfinity}) CHECK(std::ranges::count(values, value) > 200);
  CHECK(std::ranges::count_if(values, [](float value) { return std::isnan(value); }) > 200);
}

TEST_CASE("outputs_of_inputs_that_are_not_finite_are_judged_by_what_they_read") {
  VerifyOptions options;
  options.non_finite = 0.02;
  CHECK(verify_with({}, Precision::fp32, {}, options).passed());
  CHECK(verify_with({}, Precision::fp16, {}, options).passed());
  const auto with_first = [&](const auto& is_meant, float value) {
    bool found = false;
    const VerifiedProgram result = verify_with(
        [&](Tensors& outputs) {
          const auto first = std::ranges::find_if(outputs[0], is_meant);
          found = first != outputs[0].end();
          if (found) *first = value;
        },
        Precision::fp32, {}, options);
    CHECK(found);
    return result.passed();
  };
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const auto is_nan = [](float value) { return std::isnan(value); };
  CHECK_FALSE(with_first(is_finite, kNotWritten));
  CHECK_FALSE(with_first(is_finite, std::numeric_limits<float>::infinity()));
  CHECK_FALSE(with_first(is_nan, 1));
}

TEST_CASE("chosen_images_are_the_first_the_last_and_others") {
  CHECK(choose_images(1, 4, 7) == std::vector<int>{0});
  CHECK(choose_images(9, 1, 7) == std::vector<int>{0});
  CHECK(choose_images(3, 3, 7) == std::vector<int>{0, 1, 2});
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> images = choose_images(32, 4, seed);
    REQUIRE(images.size() == 4);
    CHECK(std::ranges::is_sorted(images));
    CHECK(images.front() == 0);
    CHECK(images.back() == 31);
    CHECK(choose_images(32, 4, seed) == images);
    seen.insert(images);
  }
  CHECK(seen.size() > 10);
}
