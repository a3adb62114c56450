#include "compiler/verify/network_verification.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "compiler/compile.h"
#include "compiler/import/import.h"
#include "compiler/import/names.h"
#include "compiler/network/operator_error.h"
#include "compiler/network/reference_network.h"
#include "compiler/verify/layer_verification.h"
#include "ir/error.h"

namespace burin {
namespace {

void check_arguments(const Network& model, const char* what, const std::vector<int>& have,
                     const std::vector<NetworkArgument>& want) {
  const auto describe = [](const std::string& name, const std::vector<std::int64_t>& shape) {
    return fmt::format("{} ({})", name, shape_text(shape));
  };
  std::vector<std::string> has, wants;
  for (const int index : have) {
    const Activations& tensor = model.tensors[static_cast<std::size_t>(index)];
    has.push_back(describe(tensor.name, tensor.shape));
  }
  for (const NetworkArgument& argument : want) wants.push_back(describe(argument.name, argument.shape));
  if (has == wants) return;
  fail(ErrorKind::bad_input, "{}: its {} are {}, those of the package {}", model.source, what, fmt::join(has, ", "),
       fmt::join(wants, ", "));
}

// The model with the package's size of images. That nobody typed, so a model that has no use for it is another one.
Network import_for(const Manifest& manifest, const std::string& path, const ImportOptions& options) {
  try {
    return import_network(path, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
  }
  const NetworkArgument& input = manifest.network->inputs.front();
  fail(ErrorKind::bad_input, "{}: its inputs cannot be those of the package, which has {} ({})", path, input.name,
       shape_text(input.shape));
}

// Every element of the compared images, measured by their largest; and that nothing of the others was left unwritten.
OutputResult compare_output(const std::vector<float>& output, int batch, const std::vector<int>& images,
                            const std::vector<double>& expected, std::int64_t deepest, double half_rounding) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  OutputResult result;
  result.comparison =
      compare_within(pick_images(output, batch, images), expected, network_tolerance(deepest, largest, half_rounding));
  const auto unwritten = std::ranges::find_if(output, [](float value) { return std::isnan(value); });
  if (result.comparison.within && unwritten != output.end()) {
    const auto image = (unwritten - output.begin()) / (static_cast<std::ptrdiff_t>(output.size()) / batch);
    result.fault = fmt::format("image {}: an element was not written, or is NaN", image);
  }
  result.passed = result.comparison.within && result.fault.empty();
  return result;
}

// What the plan was made by.
GraphChoices choices_of(const NetworkPlan& plan) {
  const auto find_step = [&plan](const std::string& op) {
    return std::ranges::find_if(plan.steps, [&](const Step& step) { return step.name == op; });
  };
  const auto format = [&plan](const Place& place) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(place.buffer)];
    return TensorFormat{buffer.element, buffer.layout};
  };
  return {
      // A pool that has a step of its own was compiled as one.
      [=, &plan](const std::string& op, const ConvLayer&, const Pool&) { return find_step(op) != plan.steps.end(); },
      [=, &plan](const Operator& op, const ConvLayer&) {
        const auto step = find_step(op.name);
        if (step == plan.steps.end()) return ConvolutionFormats{};
        return ConvolutionFormats{format(step->reads.front()), format(step->writes)};
      }};
}

bool same_bits(const NetworkTensors& a, const NetworkTensors& b) {
  const auto same = [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); };
  return std::ranges::equal(
      a, b, [&](const std::vector<float>& x, const std::vector<float>& y) { return std::ranges::equal(x, y, same); });
}

// Runs `work`; a fault of verification becomes the text.
std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::verification) throw;
    return error.what();
  }
  return {};
}

class NetworkVerifier {
 public:
  NetworkVerifier(const Package& package, const Network& model, const NetworkVerifyOptions& options,
                  NetworkExecutor& executor, const StepProgress& progress)
      : record_(*package.manifest.network),
        manifest_(package.manifest),
        model_(model),
        options_(options),
        executor_(executor),
        progress_(progress),
        deepest_(deepest_reduction(model)) {}

  std::int64_t deepest() const { return deepest_; }

  NetworkResult verify(const NetworkProgram& program, int batch) {
    NetworkResult result;
    result.program = &program;
    result.batch = batch;
    result.images = choose_images(batch, options_.images, options_.seed);
    const NetworkTensors inputs = random_inputs(record_, model_.input_std, batch, options_.seed);
    NetworkTensors outputs;
    begin(fmt::format("batch {} runs", batch));
    result.fault = fault_of([&] { outputs = executor_.run(program, batch, inputs); });
    if (result.fault.empty()) compare_outputs(result, inputs, outputs);
    if (options_.steps || !result.outputs_passed()) look_at_steps(result, inputs, outputs);
    return result;
  }

 private:
  void begin(const std::string& what) const {
    if (progress_) progress_(0, 0, what);
  }

  void compare_outputs(NetworkResult& result, const NetworkTensors& inputs, const NetworkTensors& outputs) const {
    begin(fmt::format("batch {}, {} images in float64", result.batch, result.images.size()));
    std::vector<std::vector<float>> chosen;
    for (const std::vector<float>& input : inputs) chosen.push_back(pick_images(input, result.batch, result.images));
    const std::vector<std::vector<double>> expected =
        run_reference(model_, static_cast<int>(result.images.size()), {chosen.begin(), chosen.end()});
    const double rounding = half_rounding(arithmetic_of(manifest_, *result.program));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      result.outputs.push_back(
          compare_output(outputs[i], result.batch, result.images, expected[i], deepest_, rounding));
    }
  }

  void look_at_steps(NetworkResult& result, const NetworkTensors& inputs, const NetworkTensors& outputs) {
    const std::vector<Step>& steps = result.program->plan.steps;
    begin(fmt::format("batch {} runs step by step", result.batch));
    if (!compiled_) compiled_ = prepare_graph(model_, std::nullopt, choices_of(result.program->plan));
    StepComparison comparison(*compiled_, *result.program, result.batch, result.images,
                              arithmetic_of(manifest_, *result.program));
    result.stepped = true;
    result.step_fault = fault_of([&] {
      const NetworkTensors again = executor_.run(*result.program, result.batch, inputs, [&](const StepValues& values) {
        const Step& step = steps[static_cast<std::size_t>(values.step)];
        comparison.see(values, matches(options_.layer, step.name));
        if (progress_) progress_(values.step + 1, static_cast<int>(steps.size()), step.name);
      });
      if (result.fault.empty() && !same_bits(again, outputs)) {
        fail(ErrorKind::verification, "the steps one after the other give other outputs than the network as a whole");
      }
    });
    result.steps = comparison.results();
  }

  const NetworkRecord& record_;
  const Manifest& manifest_;
  const Network& model_;
  const NetworkVerifyOptions& options_;
  NetworkExecutor& executor_;
  const StepProgress& progress_;
  std::int64_t deepest_;
  std::optional<Network> compiled_;  // as prepare_graph() left it
};

}  // namespace

bool NetworkResult::outputs_passed() const {
  return fault.empty() && std::ranges::all_of(outputs, &OutputResult::passed);
}

const StepResult* NetworkResult::first_failed() const {
  const auto found = std::ranges::find_if_not(steps, &StepResult::passed);
  return found == steps.end() ? nullptr : &*found;
}

bool NetworkResult::passed() const { return outputs_passed() && step_fault.empty() && first_failed() == nullptr; }

bool NetworkVerification::passed() const { return std::ranges::all_of(results, &NetworkResult::passed); }

Network import_model(const std::string& path, const Manifest& manifest) {
  const std::vector<NetworkArgument>& inputs = manifest.network->inputs;
  if (!has_ending(path, ".onnx")) {
    fail(ErrorKind::bad_input, "{}: is no .onnx file, but the package holds a network: it is compared with its model",
         path);
  }
  ImportOptions options;
  options.zero_threshold = manifest.zero_threshold;
  // A model may leave its image's size open, or have been compiled for another.
  if (inputs.size() == 1 && inputs.front().shape.size() == 3) {
    options.flags.input_shape = fmt::format("{}", fmt::join(inputs.front().shape, "x"));
  }
  Network model = import_for(manifest, path, options);
  check_arguments(model, "inputs", model.inputs, inputs);
  check_arguments(model, "outputs", model.outputs, manifest.network->outputs);
  return model;
}

NetworkTensors random_inputs(const NetworkRecord& network, double input_std, int batch, std::uint64_t seed) {
  // random_tensor() is uniform in [-1, 1], whose standard deviation is 1 / sqrt(3).
  const auto scale = static_cast<float>(input_std * std::sqrt(3.0));
  NetworkTensors inputs;
  for (const NetworkArgument& argument : network.inputs) {
    inputs.push_back(random_tensor(elements(argument) * batch, seed_for(seed, argument.name, batch, 0)));
    for (float& value : inputs.back()) value *= scale;
  }
  return inputs;
}

std::vector<int> choose_images(int batch, int count, std::uint64_t seed) {
  std::set<int> chosen = {0};
  if (count > 1) chosen.insert(batch - 1);
  const auto wanted = static_cast<std::size_t>(std::min(batch, std::max(1, count)));
  for (int draw = 0; chosen.size() < wanted; ++draw) {
    chosen.insert(static_cast<int>(seed_for(seed, "images", batch, draw) % static_cast<std::uint64_t>(batch)));
  }
  return {chosen.begin(), chosen.end()};
}

NetworkVerification verify_network(const Package& package, const Network& model, const NetworkVerifyOptions& options,
                                   NetworkExecutor& executor, const StepProgress& progress) {
  const NetworkRecord& network = *package.manifest.network;
  const auto is_asked_for = [&](const Step& step) { return matches(options.layer, step.name); };
  if (std::ranges::none_of(network.programs.front().plan.steps, is_asked_for)) {
    fail(ErrorKind::usage, "no operator of the package's network matches --layer '{}'", options.layer.value_or(""));
  }
  NetworkVerifier verifier(package, model, options, executor, progress);
  NetworkVerification verification;
  verification.deepest_reduction = verifier.deepest();
  const std::vector<StepArithmetic> steps = arithmetic_of(package.manifest, network.programs.front());
  verification.half_rounding = half_rounding(steps);
  verification.half_steps = static_cast<int>(
      std::ranges::count_if(steps, [](const StepArithmetic& step) { return step.half_rounding() > 0; }));
  if (!options.batch) {
    for (const NetworkProgram& program : network.programs) {
      verification.results.push_back(verifier.verify(program, program.plan.batch));
    }
    return verification;
  }
  const NetworkProgram& program = program_for(network, *options.batch);
  if (program.plan.batch < *options.batch) {
    fail(ErrorKind::usage, "--batch {}: the package's largest program is for {} images; compile it with --batch {}",
         *options.batch, program.plan.batch, *options.batch);
  }
  verification.results.push_back(verifier.verify(program, *options.batch));
  return verification;
}

}  // namespace burin
