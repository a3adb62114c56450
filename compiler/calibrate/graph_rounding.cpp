#include "compiler/calibrate/graph_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/choose/choose.h"
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

const ConvLayer* layer_of(const Network& network, const Operator& op) {
  const auto* convolution = std::get_if<Convolution>(&op.kind);
  return convolution == nullptr ? nullptr : &network.layers[static_cast<std::size_t>(convolution->layer)];
}

const TensorFormat& format_of(const Network& network, int tensor) {
  return network.tensors[static_cast<std::size_t>(tensor)].format;
}

// A graph in the formats of a batch size, with what its convolutions round to.
class RoundedGraph {
 public:
  RoundedGraph(const Network& graph, const CompileOptions& options, const LayerPrecisions& precisions)
      : graph_(graph), factors_(graph.layers.size(), FactorType::f32) {
    for (Operator& op : graph_.operators) {
      if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
        const auto index = static_cast<std::size_t>(convolution->layer);
        ConvLayer& layer = graph_.layers[index];
        // Kernels on FP32 tensors may round or not: here they do.
        factors_[index] = factors_of(precisions.of(layer.name), format_of(graph_, op.output).element);
        round_weights(layer.weights, factors_[index]);
      } else if (auto* linear = std::get_if<Linear>(&op.kind)) {
        round_weights(linear->weights, factors_of(options.linear_storage));
      }
    }
  }

  std::vector<std::vector<double>> run(std::vector<std::vector<double>> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = stored(format_of(graph_, graph_.inputs[i]).element, inputs[i]);
    }
    return run_graph(graph_, std::move(inputs), [&](const Operator& op, const auto& read) {
      return stored(format_of(graph_, op.output).element, evaluate(op, read));
    });
  }

 private:
  std::vector<double> evaluate(const Operator& op, const std::vector<std::span<const double>>& read) const {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution == nullptr) return run_reference_operator(graph_, op, 1, read);
    const std::vector<double> input = multiplied(factors_[static_cast<std::size_t>(convolution->layer)], read.front());
    std::vector<std::span<const double>> rounded_read = read;
    rounded_read.front() = input;
    return run_reference_operator(graph_, op, 1, rounded_read);
  }

  Network graph_;
  std::vector<FactorType> factors_;  // of each layer
};

// Sums of squares over all images.
struct LayerSquares {
  double error = 0, exact = 0;
};

// The convolutions that make a tensor, through what works on halves as they come.
std::set<std::string> makers_of(const Network& network, const std::vector<bool>& halves, int tensor) {
  std::set<std::string> layers;
  std::set<int> wanted = {tensor};
  // Each operator stands behind those that make its inputs.
  for (auto op = network.operators.rbegin(); op != network.operators.rend(); ++op) {
    if (!wanted.contains(op->output)) continue;
    if (const ConvLayer* layer = layer_of(network, *op)) {
      layers.insert(layer->name);
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
                             std::function<void()> step)
    : network_(network),
      options_(options),
      images_(images),
      step_(std::move(step)),
      halves_(network.tensors.size(), false) {
  std::map<std::string, int> outputs;  // of the operators, whose tensors may be others once they are formatted
  for (const Operator& op : network.operators) outputs[op.name] = op.output;
  for (const Network& graph : graphs_of(options.precisions)) {
    for (const Operator& op : graph.operators) {
      const auto known = outputs.find(op.name);
      if (known == outputs.end() || format_of(graph, op.output).element == ElementType::f32) continue;
      halves_[static_cast<std::size_t>(known->second)] = true;
    }
  }
  measure();
}

// What a convolution rounds to where its tensors are those of its precision.
FactorType GraphRounding::factors_of(const ConvLayer& layer) const {
  const Precision precision = options_.precisions.of(layer.name);
  return burin::factors_of(precision, element_of(precision));
}

// Those of all batch sizes, each once.
std::vector<Network> GraphRounding::graphs_of(const LayerPrecisions& precisions) const {
  CompileOptions options = options_;
  options.precisions = precisions;
  std::vector<Network> graphs;
  for (const int batch : options.batches) {
    Network made = in_formats(network_, options, batch);
    const auto is_same = [&](const Network& graph) {
      return std::ranges::equal(graph.tensors, made.tensors, {}, &Activations::format, &Activations::format);
    };
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
  std::map<std::string, ConvLayer> rounded_layers;
  for (const Operator& op : network_.operators) {
    const ConvLayer* layer = layer_of(network_, op);
    if (layer == nullptr || !rounds(options_.precisions.of(layer->name))) continue;
    ConvLayer& made = rounded_layers[layer->name] = *layer;
    round_weights(made.weights, factors_of(*layer));
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
      const ConvLayer* layer = layer_of(network_, op);
      const auto rounded_layer = layer == nullptr ? rounded_layers.end() : rounded_layers.find(layer->name);
      if (rounded_layer == rounded_layers.end()) return exact;
      const ElementType element = element_of(options_.precisions.of(layer->name));
      const ElementType written = halves_[static_cast<std::size_t>(op.output)] ? element : ElementType::f32;
      const std::vector<double> input = multiplied(factors_of(*layer), read.front());
      const std::vector<double> residual = read.size() > 1 ? stored(written, read.back()) : std::vector<double>();
      const std::vector<double> made =
          stored(written, reference_convolution_f64(rounded_layer->second, 1, input, residual));
      LayerSquares& sum = sums[layer->name];
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
  std::map<int, std::set<std::string>> users;  // of each tensor, the convolutions that need it in half precision
  const auto is_half_tensor = [&](int tensor) { return halves_[static_cast<std::size_t>(tensor)]; };
  for (const Operator& op : network_.operators) {
    const ConvLayer* layer = layer_of(network_, op);
    if (layer == nullptr) {
      const bool overflows = largest[static_cast<std::size_t>(op.output)] > largest_of(ElementType::f16);
      if (overflows && is_half_tensor(op.output)) users[op.output].merge(makers_of(network_, halves_, op.output));
      continue;
    }
    const Precision precision = options_.precisions.of(layer->name);
    if (!is_half(precision)) continue;  // TF32 has the range of FP32
    users[op.inputs.front()].insert(layer->name);
    if (is_half_tensor(op.output)) {
      users[op.output].insert(layer->name);
      if (op.inputs.size() > 1) users[op.inputs.back()].insert(layer->name);
    }
    const ElementType element = element_of(precision);
    const double weight = largest_magnitude(layer->weights);
    if (weight > largest_of(element)) {
      overflows_.push_back({layer->name, true, weight, element, {layer->name}});
    }
  }
  for (const auto& [tensor, layers] : users) {
    // Convolutions around a tensor may compute in different types: it overflows for those whose numbers end below it.
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
