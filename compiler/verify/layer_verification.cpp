#include "compiler/verify/layer_verification.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/dead_channels.h"
#include "compiler/import/names.h"
#include "compiler/import/suggest.h"
#include "ir/baked_plan_activity.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

constexpr std::uint8_t kUnwrittenActivity = 0xFF;

const ConvLayer& find_layer(const Network& network, const std::string& name) {
  std::vector<std::string> names;
  for (const ConvLayer& layer : network.layers) {
    if (layer.name == name) return layer;
    names.push_back(layer.name);
  }
  fail(ErrorKind::bad_input, "{}: has no layer '{}', which the package was compiled from{}", network.source, name,
       did_you_mean(name, names));
}

}  // namespace

std::uint64_t seed_for(std::uint64_t seed, const std::string& name, int batch, int tensor) {
  constexpr std::uint64_t kBasis = 14695981039346656037ULL, kPrime = 1099511628211ULL;
  std::uint64_t hash = kBasis ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char c : name + "/" + std::to_string(batch) + "/" + std::to_string(tensor)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  }
  return hash;
}

std::vector<VerificationTask> pair_with_weights(const Manifest& manifest, const Network& network,
                                                const std::optional<std::string>& layer_glob,
                                                std::optional<int> batch) {
  std::vector<std::string> layers;
  for (const Kernel& kernel : manifest.kernels) {
    if (!kernel.is_convolution()) continue;
    if (std::find(layers.begin(), layers.end(), kernel.op) == layers.end()) layers.push_back(kernel.op);
  }
  const bool only_one = layers.size() == 1 && network.layers.size() == 1;

  std::vector<VerificationTask> tasks;
  for (const Kernel& kernel : manifest.kernels) {
    if (!kernel.is_convolution() || !matches(layer_glob, kernel.op)) continue;
    const ConvLayer& source = only_one ? network.layers.front() : find_layer(network, kernel.op);
    const ConvShape& have = source.shape;
    const ConvShape& want = kernel.layer->shape;
    const bool same_weights = have.out_channels == want.out_channels &&
                              have.channels_per_group() == want.channels_per_group() &&
                              have.kernel_h == want.kernel_h && have.kernel_w == want.kernel_w;
    if (!same_weights) {
      fail(ErrorKind::bad_input,
           "{}: weights of layer '{}' are [{},{},{},{}], but the package was compiled from [{},{},{},{}]",
           network.source, source.name, have.out_channels, have.channels_per_group(), have.kernel_h, have.kernel_w,
           want.out_channels, want.channels_per_group(), want.kernel_h, want.kernel_w);
    }
    if (have.epilogue.bias != want.epilogue.bias) {
      fail(ErrorKind::bad_input, "{}: layer '{}' has {} bias, but the package was compiled with {}", network.source,
           source.name, have.epilogue.bias ? "a" : "no", want.epilogue.bias ? "one" : "none");
    }
    VerificationTask task;
    task.kernel = &kernel;
    task.layer = source;
    task.layer.shape = want;
    task.batch = batch.value_or(kernel.planned_batch);
    tasks.push_back(std::move(task));
  }
  if (tasks.empty() && layer_glob) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer_glob);
  return tasks;
}

std::string tolerance_text(Precision precision) {
  const ElementType element = element_of(precision);
  // Powers of two: eps(fp32) is 2^-23.
  const auto power = [](double value) { return fmt::format("2^{}", std::ilogb(value)); };
  constexpr const char* kMagnitude = "sum |weight * input|";
  std::string text = fmt::format("{:g} * {} * sqrt(terms + 1) * {}", kToleranceFactor,
                                 power(epsilon_of(ElementType::f32)), kMagnitude);
  if (precision == Precision::fp16x2) {
    text += fmt::format(" + {:g} * {} * sqrt(terms of an FP16 sum + 1) * {}", kHalfToleranceFactor,
                        power(epsilon_of(ElementType::f16)), kMagnitude);
  }
  if (element != ElementType::f32) text += fmt::format(" + {} * |expected|", power(epsilon_of(element) / 2));
  return text;
}

VerificationResult verify_kernel(const VerificationTask& task, std::uint64_t seed, Executor& executor) {
  const ConvShape& shape = task.layer.shape;
  const KernelForm& form = task.kernel->form;
  const std::string& name = task.kernel->op;
  std::vector<float> input = rounded(
      form.input().element, random_tensor(shape.input_elements() * task.batch, seed_for(seed, name, task.batch, 0)));
  std::vector<float> residual;
  if (shape.epilogue.residual) {
    residual = rounded(form.output().element,
                       random_tensor(shape.conv_elements() * task.batch, seed_for(seed, name, task.batch, 1)));
  }
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements() * task.batch),
                            std::numeric_limits<float>::quiet_NaN());
  // A kernel with activity maps gets an input of which half is dead, and its map.
  std::vector<std::uint8_t> input_activity, output_activity;
  const ActivityExtent in = input_extent(shape, task.batch), out = output_extent(shape, task.batch);
  if (const KernelTensor* map = form.find(TensorRole::input_map)) {
    constexpr double kDead = 0.5;
    kill_channels(*map->map, in, input, kDead, seed_for(seed, name, task.batch, 2));
    input_activity = activity_of(*map->map, in, input);
  }
  const KernelTensor* marked = form.find(TensorRole::output_map);
  if (marked != nullptr) {
    output_activity.assign(static_cast<std::size_t>(map_bytes(*marked->map, out)), kUnwrittenActivity);
  }
  VerificationResult result;
  result.arithmetic = arithmetic_of(*task.kernel);
  result.arithmetic.longest_reduction = longest_reduction(analyse(task.layer), shape.epilogue);
  try {
    executor.run(*task.kernel, task.batch, input, residual, output, {input_activity, output_activity});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::verification) throw;
    result.fault = error.what();
    return result;
  }
  result.comparison = compare(output, reference_convolution(task.layer, task.batch, input, residual),
                              reference_magnitude(task.layer, task.batch, input, residual), result.arithmetic);
  result.passed = result.comparison.within;
  if (result.passed && marked != nullptr) {
    result.fault = map_fault(*marked->map, out, output_activity, output, kUnwrittenActivity);
    result.passed = result.fault.empty();
  }
  return result;
}

std::string error_ratio_text(double ratio) {
  constexpr double kManyTimes = 100;
  return ratio < kManyTimes ? fmt::format("{:.3f}", ratio) : fmt::format("{:.1e}", ratio);
}

std::string describe_worst(const VerificationTask& task, const VerificationResult& result) {
  if (!result.fault.empty()) return result.fault;
  const Comparison& c = result.comparison;
  return fmt::format("{}: {:.8g}, expected {:.8g} +- {:.2g}", describe_output_index(task.layer.shape, c.worst_index),
                     c.worst_value, c.worst_expected, c.worst_tolerance);
}

}  // namespace burin
