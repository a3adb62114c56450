#include "compiler/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/arch.h"
#include "ir/error.h"

namespace burin {

std::string lowest_arch(const std::vector<std::string>& archs) {
  return *std::ranges::min_element(archs, {}, [](const std::string& name) { return arch_by_name(name).compute; });
}

std::int64_t values_of(const std::vector<std::int64_t>& shape, std::size_t first_axis) {
  std::int64_t product = 1;
  for (std::size_t axis = first_axis; axis < shape.size(); ++axis) product *= shape[axis];
  return product;
}

std::int64_t nonzeros_of(const Task& task) {
  const auto count = [](const std::vector<float>& weights) {
    return static_cast<std::int64_t>(std::ranges::count_if(weights, [](float weight) { return weight != 0; }));
  };
  if (task.layer != nullptr) return count(task.layer->weights);
  if (const Squeeze* squeeze = task.get<Squeeze>()) return count(squeeze->weights);
  if (const Excite* excite = task.get<Excite>()) return count(excite->expand.weights);
  const Linear* linear = task.get<Linear>();
  return linear == nullptr ? 0 : count(linear->weights);
}

std::vector<SharedFunction> functions_of(const Task& task) {
  std::vector<SharedFunction> functions;
  const auto add = [&](const SharedFunction& function) {
    const auto is_it = [&](const SharedFunction& known) { return is_same(known, function); };
    if (function != nullptr && std::ranges::none_of(functions, is_it)) functions.push_back(function);
  };
  const auto add_end = [&](const std::optional<Elementwise>& end) {
    if (end) add(end->user);
  };
  if (task.layer != nullptr) add_end(task.layer->shape.epilogue.function);
  if (const auto* element = task.get<Elementwise>()) add(element->user);
  if (const auto* combine = task.get<Combine>()) add(combine->user);
  if (const auto* linear = task.get<Linear>()) add_end(linear->function);
  if (const auto* excite = task.get<Excite>()) {
    add_end(excite->function);
    add_end(excite->expand.function);
  }
  if (task.op == nullptr) return functions;
  if (const Elementwise* then = then_of(task.op->kind)) add(then->user);
  return functions;
}

ConvShape called_shape(const Task& task) {
  if (task.layer != nullptr) return task.layer->shape;
  const Linear& linear = *task.get<Linear>();
  return fully_connected_shape(linear.in_features, linear.out_features, !linear.bias.empty(), linear.function);
}

ConvLayer called_layer(const Task& task) {
  if (task.layer != nullptr) return *task.layer;
  const Linear& linear = *task.get<Linear>();
  return {.name = task.name, .shape = called_shape(task), .weights = linear.weights, .bias = linear.bias};
}

std::optional<CalledLinear> called_linear(const Task& task) {
  const Linear* linear = task.get<Linear>();
  if (linear == nullptr) return std::nullopt;
  return CalledLinear{.bias = !linear->bias.empty(), .relu = is_relu(linear->function)};
}

Linear stored_linear(const Task& task) {
  Linear stored = *task.get<Linear>();
  if (task.linear_storage == ElementType::f32) return stored;
  for (float& weight : stored.weights) {
    const float value = rounded(task.linear_storage, weight);
    if (std::isinf(value)) {
      fail(ErrorKind::unsupported,
           "linear layer '{}': its weight {} is too large for FP16, whose largest number is {}: compile it with "
           "--linear-storage fp32",
           task.name, weight, largest_of(task.linear_storage));
    }
    weight = value;
  }
  return stored;
}

KernelTensor whole_tensor(TensorRole role, const std::vector<std::int64_t>& shape, ElementType element,
                          TensorLayout layout) {
  KernelTensor tensor{
      .role = role, .argument = role == TensorRole::residual ? 1 : 0, .element = element, .layout = layout};
  tensor.run_words = values_of(shape);
  if (shape.size() == 3) {
    tensor.channels = static_cast<int>(shape[0]);
    tensor.rows = static_cast<int>(shape[1]);
    tensor.cols = static_cast<int>(shape[2]);
    tensor.run_words = image_words({element, layout}, shape);
  }
  tensor.image_words = tensor.run_words;
  // Memory of its own begins where anything may; its images, where the one before ends.
  const std::int64_t image_bytes = tensor.image_words * tensor.word_bytes();
  tensor.alignment = std::max(access_bytes(tensor.format(), image_bytes), words_together(layout) * tensor.word_bytes());
  return tensor;
}

std::string print(const Task& task) {
  std::string text = fmt::format("name: {}\n", task.name);
  if (task.layer != nullptr) return text + print(task.layer->shape);
  text += fmt::format("kind: {}\n", task.kind);
  if (!task.description.empty()) text += fmt::format("what: {}\n", task.description);
  for (const auto& input : task.inputs) text += fmt::format("input: {}\n", shape_text(input));
  return text + fmt::format("output: {}\n", shape_text(task.output));
}

}  // namespace burin
