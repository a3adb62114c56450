#include "test/providers/provider_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/host/executor.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "compiler/specialise/specialised_module.h"
#include "compiler/synthetic_zeros.h"
#include "ir/derive_form.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/saturate.h"

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
                                   static_cast<std::size_t>(tensor.spanned_memory(batch)));
}

// Around tensors that cannot be slices there is nothing; around others, whole elements. Where channels lie side by
// side, it is one whole octet of channels before and two behind, whatever was asked for.
ProviderCheck around(const Activations& tensor, ProviderCheck check) {
  const TensorLayout layout = tensor.format.layout;
  const int together = channels_together(layout);
  std::int64_t words = can_be_slices(layout) && !tensor.format.is_loose() ? element_words(layout) : 0;
  if (words != 0 && together > 1) {
    words = image_words(tensor.format, {together, tensor.shape.at(1), tensor.shape.at(2)});
    check.before = std::min<std::int64_t>(check.before, 1);
    check.behind = std::min<std::int64_t>(check.behind, 2);
  }
  check.before *= words;
  check.behind *= words;
  return check;
}

KernelTensor tensor_of(const Network& network, int index, TensorRole role, const ProviderCheck& asked) {
  const Activations& activations = network.tensors[static_cast<std::size_t>(index)];
  KernelTensor tensor = whole_tensor(role, activations.shape, activations.format.element, activations.format.layout);
  const ProviderCheck check = around(activations, asked);
  tensor.image_words = check.before + tensor.words() + check.behind;
  tensor.alignment = access_bytes(tensor.format(), std::gcd(tensor.image_words, check.before) * tensor.word_bytes());
  return tensor;
}

// Whole tensors as the words that are in memory, and back.
std::vector<float> in_words(const Activations& tensor, const std::vector<float>& values) {
  if (tensor.format.is_plain()) return values;
  if (tensor.format.is_loose()) {  // an odd number of them ends in the middle of a word
    std::vector<float> filled = values;
    if (filled.size() % 2 != 0) filled.push_back(kNaN);
    return pack_words(tensor.format.element, filled);
  }
  const auto extent = [&](std::size_t axis) { return static_cast<int>(tensor.shape.at(axis)); };
  return pack_words(tensor.format.element,
                    from_nchw(tensor.format.layout, values, extent(0), extent(1), extent(2), kNaN));
}

std::vector<float> from_words(const Activations& tensor, const std::vector<float>& words, int batch) {
  if (tensor.format.is_plain()) return words;
  if (tensor.format.is_loose()) {
    std::vector<float> values = unpack_words(tensor.format.element, words);
    values.resize(static_cast<std::size_t>(batch * tensor.elements()));
    return values;
  }
  const auto extent = [&](std::size_t axis) { return static_cast<int>(tensor.shape.at(axis)); };
  return to_nchw(tensor.format.layout, unpack_words(tensor.format.element, words), extent(0), extent(1), extent(2),
                 batch);
}

// The words of a tensor from its buffer. `fault`: what is around them was written.
std::vector<float> without_surroundings(const std::vector<float>& buffer, std::int64_t words,
                                        const ProviderCheck& check, std::string& fault) {
  const std::int64_t pitch = check.before + words + check.behind;
  std::vector<float> inner;
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const std::int64_t word = static_cast<std::int64_t>(i) % pitch - check.before;
    if (word >= 0 && word < words) {
      inner.push_back(buffer[i]);
    } else if (!std::isnan(buffer[i])) {
      fault = fmt::format("word {} around the output was written", i);
    }
  }
  return inner;
}

std::string compare(const std::vector<double>& expected, const std::vector<float>& values, const Activations& tensor,
                    double tolerance) {
  const ElementType element = tensor.format.element;
  const double rounding = element == ElementType::f32 ? 0 : epsilon_of(element) / 2;
  const double smallest = element == ElementType::f32 ? 0 : smallest_of(element) / 2;
  if (values.size() != expected.size()) return fmt::format("{} values, expected {}", values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = expected[i];
    const double allowed = tolerance * (1 + std::abs(wanted)) + rounding * std::abs(wanted) + smallest;
    const bool is_right = std::isnan(wanted)   ? std::isnan(values[i])
                          : std::isinf(wanted) ? values[i] == wanted
                                               : std::abs(values[i] - wanted) <= allowed;
    if (is_right) continue;
    const auto image = static_cast<std::int64_t>(i) / tensor.elements();
    return fmt::format("image {}, value {} is {}, expected {}", image, static_cast<std::int64_t>(i) % tensor.elements(),
                       values[i], wanted);
  }
  return {};
}

std::string run_batch(const Network& network, const Operator& op, const Recipe& recipe, HostKernel& kernel, int batch,
                      const ProviderCheck& asked) {
  const auto tensor_at = [&](int tensor) -> const Activations& {
    return network.tensors[static_cast<std::size_t>(tensor)];
  };
  // Of loose halves, whose images may begin in the middle of a word, those of all images.
  const auto words_of = [&](int tensor) {
    const std::int64_t words = image_words(tensor_at(tensor).format, tensor_at(tensor).shape);
    return tensor_at(tensor).format.is_loose() ? ceil_div(batch * words, 2) : words;
  };
  const auto check_of = [&](int tensor) { return around(tensor_at(tensor), asked); };
  std::vector<std::vector<float>> buffers;
  std::vector<std::vector<double>> values;
  std::vector<std::span<const double>> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int input = op.inputs[i];
    const ElementType element = tensor_at(input).format.element;
    std::vector<float> tensor = rounded(element == ElementType::f32 ? asked.factors : factors_of(element),
                                        random_tensor(tensor_at(input).elements() * batch, 17 * i + 1));
    if (i == 0 && asked.zeros.share > 0) {
      const auto extent = [&](std::size_t axis) { return static_cast<int>(tensor_at(input).shape.at(axis)); };
      set_zeros(asked.zeros, tensor, extent(0), extent(1), extent(2), 1);
    }
    if (i == 0) std::ranges::copy(asked.special, tensor.begin());
    values.emplace_back(tensor.begin(), tensor.end());
    buffers.push_back(surrounded(in_words(tensor_at(input), tensor), words_of(input), check_of(input)));
  }
  for (const auto& tensor : values) inputs.emplace_back(tensor);
  const Activations& made = tensor_at(op.output);
  const ProviderCheck check = check_of(op.output);
  const std::int64_t words = words_of(op.output);
  const std::int64_t groups = made.format.is_loose() ? 1 : ceil_div(batch, made.format.images_together());
  std::vector<float> output(static_cast<std::size_t>(groups * (words + check.before + check.behind)), kNaN);
  HostLaunchArguments arguments{.batch = batch,
                                .input = {},
                                .output = part_of(output, recipe.form.output(), batch, check),
                                .weights = recipe.weights};
  for (const KernelTensor& tensor : recipe.form.tensors) {
    const auto given = [&] {
      const auto argument = static_cast<std::size_t>(tensor.argument);
      return part_of(std::as_const(buffers[argument]), tensor, batch, check_of(op.inputs[argument]));
    };
    if (tensor.exists() && tensor.role == TensorRole::input) arguments.input = given();
    if (tensor.exists() && tensor.role == TensorRole::residual) arguments.residual = given();
  }
  kernel.run(arguments);
  std::string fault;
  const std::vector<float> inner = without_surroundings(output, words, check, fault);
  if (!fault.empty()) return fault;
  return compare(run_reference_operator(network, op, batch, inputs), from_words(made, inner, batch), made,
                 check.tolerance);
}

// What a package says of the kernel implies the recipe's form.
std::string check_text(const Task& task, const Candidate& candidate, const Recipe& recipe) {
  Kernel kernel;
  kernel.provider = candidate.provider;
  kernel.plan = candidate.plan;
  kernel.precision = to_string(recipe.precision);
  kernel.planned_batch = task.batch;
  if (task.layer != nullptr) kernel.layer = KernelLayer{task.layer->shape};
  if (const Linear* linear = task.get<Linear>()) {
    kernel.linear = WeightMatrix{linear->out_features, linear->in_features, nonzeros_of(task)};
    if (recipe.call) kernel.called = called_linear(task);
  }
  derive_form(kernel);
  if (kernel.form != recipe.form) return "the plan's text implies another form";
  if (kernel.plan_short != recipe.plan_short) return "the plan's text has another short form";
  if (recipe.symbol != candidate.symbol) return "the recipe has another symbol";
  return {};
}

ProviderCheck check_for(const OperatorCase& edge) {
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  if (edge.from.images_together() > 3 || edge.to.images_together() > 3) check.batches = {1, 9};
  return check;
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
  task.factors = check.factors;
  return task;
}

std::vector<Candidate> candidates_of(const Task& task) {
  std::vector<Candidate> candidates;
  for (const Provider* provider : providers()) {
    if (provider->name() == kBakedProvider || provider->needs_measuring()) continue;
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
    if (!fault.empty()) return what + fault + "\n" + candidate.plan;
    HostKernel kernel(to_bitcode(recipe.specialise(recipe.symbol)), recipe.symbol, recipe.form);
    for (const int batch : check.batches) {
      fault = run_batch(network, op, recipe, kernel, batch, check);
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

std::string check_whole(const OperatorCase& edge) { return check_operator(network_of(edge), check_for(edge)); }

std::string check_slices(const OperatorCase& edge, SlicesBegin begin) {
  ProviderCheck check = check_for(edge);
  check.tuned_batch = 32;
  check.before = begin == SlicesBegin::aligned ? 8 : 3;
  check.behind = 4;
  if (begin == SlicesBegin::anywhere) check.batches = {2};
  return check_operator(network_of(edge), check);
}

std::string check_everywhere(const OperatorCase& edge) {
  std::string fault = check_whole(edge);
  if (fault.empty()) fault = check_slices(edge, SlicesBegin::aligned);
  return fault.empty() ? check_slices(edge, SlicesBegin::anywhere) : fault;
}

}  // namespace burin_test
