#include "test/providers/provider_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/host/executor.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/derive_form.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A tensor of `batch` images in a buffer with `before` and `behind` words around each image, NaN in them.
std::vector<float> surrounded(const std::vector<float>& values, std::int64_t words, const ProviderCheck& check) {
  std::vector<float> buffer;
  for (std::size_t image = 0; image < values.size(); image += static_cast<std::size_t>(words)) {
    buffer.insert(buffer.end(), static_cast<std::size_t>(check.before), kNaN);
    buffer.insert(buffer.end(), values.begin() + static_cast<std::ptrdiff_t>(image),
                  values.begin() + static_cast<std::ptrdiff_t>(image) + words);
    buffer.insert(buffer.end(), static_cast<std::size_t>(check.behind), kNaN);
  }
  return buffer;
}

// What a kernel is given of such a buffer.
auto part_of(auto& buffer, const KernelTensor& tensor, int batch, const ProviderCheck& check) {
  return std::span(buffer).subspan(static_cast<std::size_t>(check.before),
                                   static_cast<std::size_t>(tensor.spanned_words(batch)));
}

KernelTensor tensor_of(const Network& network, int index, TensorRole role, const ProviderCheck& check) {
  KernelTensor tensor =
      whole_tensor(role, network.tensors[static_cast<std::size_t>(index)].shape, ElementType::f32, TensorLayout::nchw);
  tensor.image_words = check.before + tensor.words() + check.behind;
  const bool wide =
      tensor.image_words * kWordBytes % kWideAccessBytes == 0 && check.before * kWordBytes % kWideAccessBytes == 0;
  tensor.alignment = wide ? kWideAccessBytes : kWordBytes;
  return tensor;
}

std::string compare(const std::vector<double>& expected, const std::vector<float>& buffer, std::int64_t words,
                    const ProviderCheck& check) {
  const std::int64_t pitch = check.before + words + check.behind;
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const std::int64_t image = static_cast<std::int64_t>(i) / pitch;
    const std::int64_t word = static_cast<std::int64_t>(i) % pitch - check.before;
    if (word < 0 || word >= words) {
      if (!std::isnan(buffer[i])) return fmt::format("word {} around the output was written", i);
      continue;
    }
    const double wanted = expected[static_cast<std::size_t>(image * words + word)];
    if (std::isinf(wanted) ? buffer[i] == wanted
                           : std::abs(buffer[i] - wanted) <= check.tolerance * (1 + std::abs(wanted))) {
      continue;
    }
    return fmt::format("image {}, word {} is {}, expected {}", image, word, buffer[i], wanted);
  }
  return {};
}

std::string run_batch(const Network& network, const Operator& op, const Recipe& recipe, int batch,
                      const ProviderCheck& check) {
  const auto words_of = [&](int tensor) { return network.tensors[static_cast<std::size_t>(tensor)].elements(); };
  std::vector<std::vector<float>> buffers;
  std::vector<std::vector<double>> values;
  std::vector<std::span<const double>> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::vector<float> tensor = random_tensor(words_of(op.inputs[i]) * batch, 17 * i + 1);
    values.emplace_back(tensor.begin(), tensor.end());
    buffers.push_back(surrounded(tensor, words_of(op.inputs[i]), check));
  }
  for (const auto& tensor : values) inputs.emplace_back(tensor);
  const std::int64_t words = words_of(op.output);
  std::vector<float> output(static_cast<std::size_t>(batch * (words + check.before + check.behind)), kNaN);
  HostLaunchArguments arguments{.batch = batch,
                                .input = {},
                                .output = part_of(output, recipe.form.output(), batch, check),
                                .weights = recipe.weights};
  for (const KernelTensor& tensor : recipe.form.tensors) {
    const auto given = [&] {
      return part_of(std::as_const(buffers[static_cast<std::size_t>(tensor.argument)]), tensor, batch, check);
    };
    if (tensor.exists() && tensor.role == TensorRole::input) arguments.input = given();
    if (tensor.exists() && tensor.role == TensorRole::residual) arguments.residual = given();
  }
  HostKernel(to_bitcode(recipe.specialise(recipe.symbol)), recipe.symbol, recipe.form).run(arguments);
  return compare(run_reference_operator(network, op, batch, inputs), output, words, check);
}

// What a package says of the kernel implies the recipe's form.
std::string check_text(const Task& task, const Candidate& candidate, const Recipe& recipe) {
  Kernel kernel;
  kernel.provider = candidate.provider;
  kernel.plan = candidate.plan;
  kernel.planned_batch = task.batch;
  if (task.layer != nullptr) kernel.layer = KernelLayer{task.layer->shape};
  derive_form(kernel);
  if (kernel.form != recipe.form) return "the plan's text implies another form";
  if (kernel.plan_short != recipe.plan_short) return "the plan's text has another short form";
  if (recipe.symbol != candidate.symbol) return "the recipe has another symbol";
  return {};
}

}  // namespace

Task task_of(const Network& network, const Operator& op, const ProviderCheck& check) {
  Task task;
  task.name = op.name;
  task.kind = kind_name(op.kind);
  task.op = &op;
  task.description = describe(network, op);
  if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
    task.layer = &network.layers[static_cast<std::size_t>(convolution->layer)];
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    task.inputs.push_back(network.tensors[static_cast<std::size_t>(op.inputs[i])].shape);
    task.reads.push_back(tensor_of(network, op.inputs[i], i == 0 ? TensorRole::input : TensorRole::residual, check));
  }
  task.output = network.tensors[static_cast<std::size_t>(op.output)].shape;
  task.writes = tensor_of(network, op.output, TensorRole::output, check);
  task.batch = check.tuned_batch;
  task.archs = {check.arch};
  task.linear_storage = check.linear_storage;
  return task;
}

std::vector<Candidate> candidates_of(const Task& task) {
  std::vector<Candidate> candidates;
  for (const Provider* provider : providers()) {
    if (provider->name() == kBakedProvider) continue;
    for (Candidate& candidate : provider->propose(task, {})) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::set<std::string> providers_of(const Network& network, const ProviderCheck& check) {
  std::set<std::string> names;
  for (const Candidate& candidate : candidates_of(task_of(network, network.operators.back(), check))) {
    names.insert(candidate.provider);
  }
  return names;
}

Candidate candidate_of(const Task& task, const std::string& provider) {
  std::vector<Candidate> candidates = find_provider(provider)->propose(task, {});
  BURIN_CHECK(!candidates.empty(), "{} has no kernel for {}", provider, task.description);
  return std::move(candidates.front());
}

TemplatePlan plan_of(const Network& network, const std::string& provider, const ProviderCheck& check) {
  return parse_template_plan(candidate_of(task_of(network, network.operators.back(), check), provider).plan);
}

std::string check_candidate(const Network& network, const Operator& op, const Candidate& candidate,
                            const ProviderCheck& check) {
  if (check.batches.empty()) return "there is no batch to check";
  const Task task = task_of(network, op, check);
  const std::string what =
      fmt::format("{}, {} before and {} behind: ", describe(network, op), check.before, check.behind);
  try {
    const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
    std::string fault = check_text(task, candidate, recipe);
    for (const int batch : check.batches) {
      if (fault.empty()) fault = run_batch(network, op, recipe, batch, check);
      if (!fault.empty()) return fmt::format("{}batch {}: {}\n{}", what, batch, fault, candidate.plan);
    }
  } catch (const Error& error) {
    return what + error.what() + "\n" + candidate.plan;
  }
  return {};
}

std::string check_operator(const Network& network, const Operator& op, const ProviderCheck& check) {
  const std::vector<Candidate> candidates = candidates_of(task_of(network, op, check));
  if (candidates.empty()) return describe(network, op) + ": no provider computes it, there is nothing to check";
  for (const Candidate& candidate : candidates) {
    std::string fault = check_candidate(network, op, candidate, check);
    if (!fault.empty()) return fault;
  }
  const auto* linear = std::get_if<Linear>(&op.kind);
  if (linear == nullptr || check.linear_storage != ElementType::f32) return {};
  if (rounded(ElementType::f16, linear->weights) != linear->weights) return {};
  ProviderCheck halves = check;
  halves.linear_storage = ElementType::f16;
  return check_operator(network, op, halves);
}

std::string check_operator(const Network& network, const ProviderCheck& check) {
  return check_operator(network, network.operators.back(), check);
}

std::string check_everywhere(const OperatorCase& edge) {
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  std::string fault = check_operator(network, check);
  if (!fault.empty()) return fault;
  check.tuned_batch = 32;  // and in slices
  check.before = 8;
  check.behind = 4;
  fault = check_operator(network, check);
  if (!fault.empty()) return fault;
  check.before = 3;
  check.batches = {2};
  return check_operator(network, check);
}

}  // namespace burin_test
