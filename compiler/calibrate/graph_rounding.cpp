#include "compiler/calibrate/graph_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "compiler/choose/choose.h"
#include "compiler/network/passes.h"
#include "compiler/network/reference_network.h"
#include "compiler/reference.h"
#include "ir/element_type.h"

namespace burin {
namespace {

double stored(ElementType element, double value) {
  return element == ElementType::f32 ? static_cast<float>(value) : from_half(element, to_half(element, value));
}

std::vector<double> stored(ElementType element, std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value = stored(element, value);
  return result;
}

// The same of what is multiplied.
std::vector<double> multiplied(FactorType factors, std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value = rounded(factors, static_cast<float>(value));
  return result;
}

void round_weights(std::vector<float>& weights, FactorType factors) { weights = rounded(factors, weights); }

double largest_magnitude(const auto& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double squares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

double squared_distance(std::span<const double> values, std::span<const double> exact) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += (values[i] - exact[i]) * (values[i] - exact[i]);
  return sum;
}

// The root of `error` / `exact`, both sums of squares.
double share(double error, double exact) {
  if (error == 0) return 0;
  const double result = std::sqrt(error / exact);
  return std::isfinite(result) ? result : std::numeric_limits<double>::infinity();
}

// The weights of an operator, and the name for which a precision is asked for.
struct NamedWeights {
  std::string name;
  const std::vector<float>* weights = nullptr;
  bool is_linear = false;  // whose tensors are FP32
};
std::optional<NamedWeights> named_weights(const Network& network, const Operator& op) {
  if (const auto* linear = std::get_if<Linear>(&op.kind)) return NamedWeights{op.name, &linear->weights, true};
  const auto* convolution = std::get_if<Convolution>(&op.kind);
  if (convolution == nullptr) return std::nullopt;
  const ConvLayer& layer = network.layers[static_cast<std::size_t>(convolution->layer)];
  return NamedWeights{layer.name, &layer.weights, false};
}

// What an operator with weights multiplies, where its output is stored in `element`. Kernels on FP32 tensors may round
// or not: here they do.
FactorType multiplied_factors(const NamedWeights& op, const LayerPrecisions& precisions, ElementType element) {
  const Precision precision = precisions.of(op.name);
  return op.is_linear ? linear_factors(precision) : factors_of(precision, element);
}

// The operator with its weights rounded to what is multiplied, or stored.
class RoundedOperator {
 public:
  RoundedOperator(const Network& network, const Operator& op, FactorType factors, ElementType linear_storage)
      : op_(op), factors_(factors) {
    if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
      layer_ = network.layers[static_cast<std::size_t>(convolution->layer)];
      round_weights(layer_.weights, factors);
    } else {
      round_weights(std::get<Linear>(op_.kind).weights,
                    factors == FactorType::f32 ? factors_of(linear_storage) : factors);
    }
  }

  std::vector<double> run(const Network& network, const std::vector<std::span<const double>>& read) const {
    const std::vector<double> input = multiplied(factors_, read.front());
    std::vector<std::span<const double>> rounded_read = read;
    rounded_read.front() = input;
    if (std::holds_alternative<Linear>(op_.kind)) return run_reference_operator(network, op_, 1, rounded_read);
    return reference_convolution_f64(layer_, 1, input, read.size() > 1 ? read.back() : std::span<const double>());
  }

 private:
  Operator op_;
  ConvLayer layer_;  // of a convolution
  FactorType factors_;
};

const TensorFormat& format_of(const Network& network, int tensor) {
  return network.tensors[static_cast<std::size_t>(tensor)].format;
}

// A graph in the formats of a batch size, with what its operators with weights round to.
class RoundedGraph {
 public:
  RoundedGraph(const Network& graph, const CompileOptions& options, const LayerPrecisions& precisions) : graph_(graph) {
    for (const Operator& op : graph_.operators) {
      const std::optional<NamedWeights> of = named_weights(graph_, op);
      if (!of) continue;
      const FactorType factors = multiplied_factors(*of, precisions, format_of(graph_, op.output).element);
      operators_.try_emplace(op.name, graph_, op, factors, options.linear_storage);
    }
  }

  std::vector<std::vector<double>> run(std::vector<std::vector<double>> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = stored(format_of(graph_, graph_.inputs[i]).element, inputs[i]);
    }
    return run_graph(graph_, std::move(inputs), [&](const Operator& op, const auto& read) {
      const auto rounded_op = operators_.find(op.name);
      return stored(format_of(graph_, op.output).element, rounded_op == operators_.end()
                                                              ? run_reference_operator(graph_, op, 1, read)
                                                              : rounded_op->second.run(graph_, read));
    });
  }

 private:
  const Network& graph_;
  std::map<std::string, RoundedOperator> operators_;  // by name
};

// Sums of squares over all images.
struct LayerSquares {
  double error = 0, exact = 0;
};

// The layers that make a tensor, through what works on halves as they come.
std::set<std::string> makers_of(const Network& network, const std::vector<bool>& halves, int tensor) {
  std::set<std::string> layers;
  std::set<int> wanted = {tensor};
  // Each operator stands behind those that make its inputs.
  for (auto op = network.operators.rbegin(); op != network.operators.rend(); ++op) {
    if (!wanted.contains(op->output)) continue;
    if (const std::optional<NamedWeights> of = named_weights(network, *op)) {
      layers.insert(of->name);
      continue;
    }
    for (const int input : op->inputs) {
      if (halves[static_cast<std::size_t>(input)]) wanted.insert(input);
    }
  }
  return layers;
}

}  // namespace

GraphRounding::GraphRounding(const Network& network, const CompileOptions& options, const SampleImages& images,
                             StoredHalves stored, std::function<void()> step)
    : network_(network),
      options_(options),
      images_(images),
      step_(std::move(step)),
      halves_(network.tensors.size(), false) {
  std::map<std::string, int> outputs;  // of the operators, whose tensors may be others once they are formatted
  for (const Operator& op : network.operators) outputs[op.name] = op.output;
  std::vector<Network> graphs = graphs_of(options.precisions);
  if (stored == StoredHalves::where_possible) graphs.push_back(in_usual_formats(network, options, kLeastImages));
  for (const Network& graph : graphs) {
    for (const Operator& op : graph.operators) {
      const auto known = outputs.find(op.name);
      if (known == outputs.end() || format_of(graph, op.output).element == ElementType::f32) continue;
      halves_[static_cast<std::size_t>(known->second)] = true;
    }
  }
  measure();
}

// Those of all batch sizes, each once.
std::vector<Network> GraphRounding::graphs_of(const LayerPrecisions& precisions) const {
  CompileOptions options = options_;
  options.precisions = precisions;
  std::vector<Network> graphs;
  for (const int batch : options_.batches) {
    Network made = in_formats(network_, options, batch);
    const auto is_same = [&](const Network& graph) { return has_same_formats(graph, made); };
    if (std::ranges::none_of(graphs, is_same)) graphs.push_back(std::move(made));
  }
  return graphs;
}

std::vector<std::vector<double>> GraphRounding::inputs_of(int image) const {
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < images_.inputs.size(); ++i) {
    const std::int64_t elements = network_.tensors[static_cast<std::size_t>(network_.inputs[i])].elements();
    const auto begin = images_.inputs[i].begin() + image * elements;
    values.emplace_back(begin, begin + elements);
  }
  return values;
}

void GraphRounding::measure() {
  std::vector<double> largest(network_.tensors.size(), 0.0);
  std::map<std::string, LayerSquares> sums;
  std::map<std::string, RoundedOperator> rounded_operators;  // where tensors are those of their precision
  for (const Operator& op : network_.operators) {
    const std::optional<NamedWeights> of = named_weights(network_, op);
    if (!of) continue;
    const FactorType factors =
        multiplied_factors(*of, options_.precisions, element_of(options_.precisions.of(of->name)));
    if (of->is_linear ? factors == FactorType::f32 : !rounds(options_.precisions.of(of->name))) continue;
    rounded_operators.try_emplace(op.name, network_, op, factors, options_.linear_storage);
  }
  const auto see = [&](int tensor, std::span<const double> values) {
    double& known = largest[static_cast<std::size_t>(tensor)];
    known = std::max(known, largest_magnitude(values));
  };
  for (int image = 0; image < images_.count; ++image) {
    std::vector<std::vector<double>> inputs = inputs_of(image);
    for (std::size_t i = 0; i < inputs.size(); ++i) see(network_.inputs[i], inputs[i]);
    exact_.push_back(run_graph(network_, std::move(inputs), [&](const Operator& op, const auto& read) {
      std::vector<double> exact = run_reference_operator(network_, op, 1, read);
      see(op.output, exact);
      const auto rounded_op = rounded_operators.find(op.name);
      if (rounded_op == rounded_operators.end()) return exact;
      const std::string name = named_weights(network_, op)->name;
      const ElementType element = element_of(options_.precisions.of(name));
      const ElementType written = halves_[static_cast<std::size_t>(op.output)] ? element : ElementType::f32;
      std::vector<std::span<const double>> rounded_read = read;
      const std::vector<double> residual = read.size() > 1 ? stored(written, read.back()) : std::vector<double>();
      if (read.size() > 1) rounded_read.back() = residual;
      const std::vector<double> made = stored(written, rounded_op->second.run(network_, rounded_read));
      LayerSquares& sum = sums[name];
      sum.error += squared_distance(made, exact);
      sum.exact += squares(exact);
      return exact;
    }));
    if (step_) step_();
  }
  for (const auto& [layer, sum] : sums) layer_errors_[layer] = share(sum.error, sum.exact);
  find_overflows(largest);
}

void GraphRounding::find_overflows(const std::vector<double>& largest) {
  std::map<int, std::set<std::string>> users;  // of each tensor, the layers that need it in half precision
  const auto is_half_tensor = [&](int tensor) { return halves_[static_cast<std::size_t>(tensor)]; };
  for (const Operator& op : network_.operators) {
    const std::optional<NamedWeights> of = named_weights(network_, op);
    if (!of) {
      const bool overflows = largest[static_cast<std::size_t>(op.output)] > largest_of(ElementType::f16);
      if (overflows && is_half_tensor(op.output)) users[op.output].merge(makers_of(network_, halves_, op.output));
      continue;
    }
    const Precision precision = options_.precisions.of(of->name);
    // TF32 has the range of FP32; FP16x2 is what baked convolutions add up in.
    if (of->is_linear ? linear_factors(precision) == FactorType::f32 : !is_half(precision)) continue;
    users[op.inputs.front()].insert(of->name);
    if (is_half_tensor(op.output)) {
      users[op.output].insert(of->name);
      if (op.inputs.size() > 1) users[op.inputs.back()].insert(of->name);
    }
    const ElementType element = element_of(precision);
    const double weight = largest_magnitude(*of->weights);
    // A fully connected layer whose weights are too large is computed in FP32.
    if (!of->is_linear && weight > largest_of(element)) {
      overflows_.push_back({of->name, true, weight, element, {of->name}});
    }
  }
  for (const auto& [tensor, layers] : users) {
    // Layers around a tensor may compute in different types: it overflows for those whose numbers end below it.
    std::map<ElementType, std::vector<std::string>> beyond;
    const double value = largest[static_cast<std::size_t>(tensor)];
    for (const std::string& layer : layers) {
      const ElementType element = element_of(options_.precisions.of(layer));
      if (value > largest_of(element)) beyond[element].push_back(layer);
    }
    const std::string& name = network_.tensors[static_cast<std::size_t>(tensor)].name;
    for (const auto& [element, beyond_layers] : beyond)
      overflows_.push_back({name, false, value, element, beyond_layers});
  }
}

double GraphRounding::error(const LayerPrecisions& precisions) const {
  double worst = 0;
  for (const Network& graph : graphs_of(precisions)) {
    const RoundedGraph rounded_graph(graph, options_, precisions);
    for (int image = 0; image < images_.count; ++image) {
      const std::vector<std::vector<double>> made = rounded_graph.run(inputs_of(image));
      const std::vector<std::vector<double>>& exact = exact_[static_cast<std::size_t>(image)];
      for (std::size_t i = 0; i < made.size(); ++i) {
        worst = std::max(worst, share(squared_distance(made[i], exact[i]), squares(exact[i])));
      }
      if (step_) step_();
    }
  }
  return worst;
}

}  // namespace burin
