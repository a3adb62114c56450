#include "compiler/network/reference_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/element_functions.h"
#include "compiler/network/groups.h"
#include "compiler/reference.h"
#include "ir/error.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

using Values = std::vector<double>;
using Shape = std::vector<std::int64_t>;

// Elements from one step along an axis to the next.
Shape pitches(const Shape& shape) {
  Shape pitch(shape.size(), 1);
  for (std::size_t axis = shape.size() - 1; axis > 0; --axis) pitch[axis - 1] = pitch[axis] * shape[axis];
  return pitch;
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t axis = begin; axis < end; ++axis) result *= shape[axis];
  return result;
}

// Elements of one channel: what is behind axis 0.
std::int64_t plane_of(const Shape& shape) { return product(shape, 1, shape.size()); }

double then(const std::optional<Elementwise>& function, double x) {
  return function ? reference_element(*function, x) : x;
}

// One operator over all images, written to be read. Each function returns the values of its output.
class Interpreter {
 public:
  Interpreter(const Network& network, const Operator& op, int batch, const std::vector<std::span<const double>>& inputs)
      : network_(network), op_(op), batch_(batch), inputs_(inputs), output_(tensor(op.output).shape) {}

  Values operator()(const Convolution& op) const {
    const std::span<const double> residual = inputs_.size() > 1 ? inputs_[1] : std::span<const double>();
    return reference_convolution_f64(network_.layers[static_cast<std::size_t>(op.layer)], batch_, inputs_[0], residual);
  }

  Values operator()(const Linear& op) const { return linear(op, inputs_[0]); }

  Values operator()(const Squeeze& op) const {
    const std::vector<std::int64_t>& image = input_shape(0);
    const auto channels = static_cast<std::size_t>(image[0]), plane = static_cast<std::size_t>(plane_of(image)),
               features = static_cast<std::size_t>(op.features),
               pixel_parts = static_cast<std::size_t>(op.pixel_parts(image)),
               parts = static_cast<std::size_t>(op.parts(image));
    Values result(static_cast<std::size_t>(batch_) * parts * features, 0.0);
    for (std::size_t i = 0; i < inputs_[0].size(); ++i) {
      const std::size_t n = i / plane / channels, c = i / plane % channels;
      const std::size_t part = c / static_cast<std::size_t>(op.part_channels) * pixel_parts +
                               i % plane / static_cast<std::size_t>(op.part_pixels);
      double* sums = result.data() + (n * parts + part) * features;
      const double share = inputs_[0][i] / static_cast<double>(plane);
      for (std::size_t m = 0; m < features; ++m) sums[m] += op.weights[m * channels + c] * share;
    }
    return result;
  }

  Values operator()(const Excite& op) const {
    Values result = gates(op);
    const auto plane = static_cast<std::size_t>(plane_of(input_shape(0)));
    Values products(inputs_[0].size());
    for (std::size_t i = 0; i < products.size(); ++i) products[i] = inputs_[0][i] * result[i / plane];
    return products;
  }

  // What it multiplies channels by.
  Values gates(const Excite& op) const {
    const auto features = static_cast<std::size_t>(op.expand.in_features);
    const std::size_t parts = inputs_[1].size() / features / static_cast<std::size_t>(batch_);
    Values values(static_cast<std::size_t>(batch_) * features);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double sum = op.bias.empty() ? 0.0 : op.bias[i % features];
      for (std::size_t part = 0; part < parts; ++part) {
        sum += inputs_[1][(i / features * parts + part) * features + i % features];
      }
      values[i] = reference_function(op.function, sum);
    }
    return linear(op.expand, values);
  }

  Values linear(const Linear& op, std::span<const double> features) const {
    const auto in = static_cast<std::size_t>(op.in_features), out = static_cast<std::size_t>(op.out_features);
    Values result(static_cast<std::size_t>(batch_) * out);
    const double multiply_adds = static_cast<double>(op.weights.size()) * batch_;
    parallel_for(op.out_features, multiply_adds, [&](int feature) {
      const auto k = static_cast<std::size_t>(feature);
      const float* weights = op.weights.data() + k * in;
      for (int n = 0; n < batch_; ++n) {
        const double* x = features.data() + static_cast<std::size_t>(n) * in;
        double sum = op.bias.empty() ? 0.0 : op.bias[k];
        for (std::size_t c = 0; c < in; ++c) sum += weights[c] * x[c];
        result[static_cast<std::size_t>(n) * out + k] = reference_function(op.function, sum);
      }
    });
    return result;
  }

  Values operator()(const ChannelAffine& op) const {
    Values result(inputs_[0].begin(), inputs_[0].end());
    for_each_channel([&](std::int64_t, std::size_t channel, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        double& x = result[static_cast<std::size_t>(i)];
        x = then(op.then, x * op.scale[channel] + op.shift[channel]);
      }
    });
    return result;
  }

  Values operator()(const Elementwise& op) const {
    Values result(inputs_[0].begin(), inputs_[0].end());
    for (double& x : result) x = reference_element(op, x);
    return result;
  }

  Values operator()(const Combine& op) const {
    Values result(inputs_[0].begin(), inputs_[0].end());
    const Values constant = op.constant ? Values(op.constant->values.begin(), op.constant->values.end()) : Values();
    const std::span<const double> others = op.constant ? std::span<const double>(constant) : inputs_[1];
    const Shape& shape = op.constant ? op.constant->shape : input_shape(1);
    for_each_repeated(shape, !op.constant, [&](std::size_t i, std::size_t other) {
      const double a = result[i], b = others[other];
      const double both = op.swapped ? reference_combination(op, b, a) : reference_combination(op, a, b);
      result[i] = then(op.then, both);
    });
    return result;
  }

  Values operator()(const MatMul& op) const {
    const Values constant = op.constant ? Values(op.constant->values.begin(), op.constant->values.end()) : Values();
    const Matrices left = matrices(op, true, constant), right = matrices(op, false, constant);
    const std::size_t rank = output_.size();
    const Shape to = pitches(output_);
    const std::int64_t image = product(output_, 0, rank), terms = left.extents.back();
    Values result(elements());
    for (std::int64_t i = 0; i < batch_ * image; ++i) {
      std::int64_t a = i / image * left.image, b = i / image * right.image;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        const std::int64_t at = i % image / to[axis] % output_[axis];
        if (axis != rank - 1) a += at * left.steps[axis];
        if (axis != rank - 2) b += at * right.steps[axis];
      }
      double sum = 0;
      for (std::int64_t term = 0; term < terms; ++term) {
        sum += left.values[static_cast<std::size_t>(a + term * left.steps[rank - 1])] *
               right.values[static_cast<std::size_t>(b + term * right.steps[rank - 2])];
      }
      result[static_cast<std::size_t>(i)] = then(op.then, op.scale * sum);
    }
    return result;
  }

  Values operator()(const Reduce& op) const {
    Values result(elements());
    for_each_group(input_shape(0), batch_, op.axes, [&](std::size_t made, const std::vector<std::size_t>& group) {
      result[made] = then(op.then, statistic(op.statistic, group));
    });
    return result;
  }

  Values operator()(const Normalize& op) const {
    Values result(elements());
    for_each_group(input_shape(0), batch_, op.axes,
                   [&](std::size_t, const std::vector<std::size_t>& group) { normalize(op, group, result); });
    if (op.scale) {
      for_each_repeated(op.scale->shape, false,
                        [&](std::size_t i, std::size_t of) { result[i] *= op.scale->values[of]; });
    }
    if (op.shift) {
      for_each_repeated(op.shift->shape, false,
                        [&](std::size_t i, std::size_t of) { result[i] += op.shift->values[of]; });
    }
    for (double& x : result) x = then(op.then, x);
    return result;
  }

  Values operator()(const Pool& op) const {
    return reference_pool(op, input_shape(0)[1], input_shape(0)[2], inputs_[0]);
  }

  Values operator()(const GlobalAveragePool&) const { return channel_means(); }

  Values channel_means() const {
    const auto plane = static_cast<std::size_t>(plane_of(input_shape(0)));
    Values result(inputs_[0].size() / plane);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::span<const double> pixels = inputs_[0].subspan(i * plane, plane);
      result[i] = std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(plane);
    }
    return result;
  }

  Values operator()(const Lrn& op) const {
    const std::int64_t channels = output_[0], plane = plane_of(output_);
    Values result(elements());
    for_each_vector(channels, plane, [&](std::int64_t first) {
      for (std::int64_t c = 0; c < channels; ++c) {
        double squares = 0;
        const std::int64_t begin = std::max<std::int64_t>(0, c - (op.size - 1) / 2);
        const std::int64_t end = std::min<std::int64_t>(channels, c + op.size / 2 + 1);
        for (std::int64_t other = begin; other < end; ++other) {
          const double x = inputs_[0][static_cast<std::size_t>(first + other * plane)];
          squares += x * x;
        }
        const auto i = static_cast<std::size_t>(first + c * plane);
        result[i] = inputs_[0][i] / std::pow(op.bias + op.alpha / op.size * squares, op.beta);
      }
    });
    return result;
  }

  Values operator()(const Softmax&) const {
    const std::int64_t channels = output_[0], plane = plane_of(output_);
    Values result(elements());
    for_each_vector(channels, plane, [&](std::int64_t first) {
      const auto at = [&](std::int64_t c) { return static_cast<std::size_t>(first + c * plane); };
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) largest = std::max(largest, inputs_[0][at(c)]);
      for (std::int64_t c = 0; c < channels; ++c) sum += result[at(c)] = std::exp(inputs_[0][at(c)] - largest);
      for (std::int64_t c = 0; c < channels; ++c) result[at(c)] /= sum;
    });
    return result;
  }

  Values operator()(const Concat& op) const {
    const auto axis = static_cast<std::size_t>(op.axis);
    const std::int64_t outer = batch_ * product(output_, 0, axis);
    const std::int64_t inner = product(output_, axis + 1, output_.size());
    Values result;
    result.reserve(elements());
    for (std::int64_t i = 0; i < outer; ++i) {
      for (std::size_t input = 0; input < inputs_.size(); ++input) {
        const std::int64_t run = input_shape(input)[axis] * inner;
        const double* begin = inputs_[input].data() + i * run;
        result.insert(result.end(), begin, begin + run);
      }
    }
    return result;
  }

  Values operator()(const ChannelView& op) const {
    const std::int64_t channel = plane_of(output_), image = input_shape(0)[0] * channel;
    Values result;
    result.reserve(elements());
    for (std::int64_t i = 0; i < batch_; ++i) {
      const double* begin = inputs_[0].data() + i * image + op.begin * channel;
      result.insert(result.end(), begin, begin + op.channels * channel);
    }
    return result;
  }

  Values operator()(const Pad& op) const {
    const Shape& in = input_shape(0);
    Values result(elements(), op.value);
    for (std::int64_t plane = 0; plane < batch_ * in[0]; ++plane) {
      for (std::int64_t row = 0; row < in[1]; ++row) {
        const double* from = inputs_[0].data() + (plane * in[1] + row) * in[2];
        std::copy(from, from + in[2],
                  result.begin() + (plane * output_[1] + row + op.pad.top) * output_[2] + op.pad.left);
      }
    }
    return result;
  }

  Values operator()(const Pick& op) const {
    const Shape from = pitches(input_shape(0)), to = pitches(output_);
    const auto image = static_cast<std::int64_t>(elements()) / batch_;
    const auto from_image = static_cast<std::int64_t>(inputs_[0].size()) / batch_;
    Values result(elements());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(result.size()); ++i) {
      std::int64_t source = i / image * from_image;
      for (std::size_t axis = 0; axis < output_.size(); ++axis) {
        const PickedAxis& taken = op.axes[op.from(axis)];
        source += (taken.begin + i % image / to[axis] % output_[axis] * taken.step) * from[op.from(axis)];
      }
      result[static_cast<std::size_t>(i)] = inputs_[0][static_cast<std::size_t>(source)];
    }
    return result;
  }

  Values operator()(const Resample& op) const {
    const std::int64_t in_rows = input_shape(0)[1], in_cols = input_shape(0)[2], rows = output_[1], cols = output_[2];
    Values result(elements());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i), row = at / cols % rows, col = at % cols;
      const double* plane = inputs_[0].data() + at / (rows * cols) * in_rows * in_cols;
      double sum = 0;
      bool outside = false;
      for (std::int64_t r = row * op.rows.count; r < (row + 1) * op.rows.count; ++r) {
        for (std::int64_t c = col * op.cols.count; c < (col + 1) * op.cols.count; ++c) {
          const auto y = static_cast<std::size_t>(r), x = static_cast<std::size_t>(c);
          outside = outside || op.rows.indices[y] < 0 || op.cols.indices[x] < 0;
          if (outside) continue;
          const double weight = double{op.rows.weights[y]} * op.cols.weights[x];
          sum += weight * plane[op.rows.indices[y] * in_cols + op.cols.indices[x]];
        }
      }
      result[i] = outside ? op.outside : sum;
    }
    return result;
  }

  Values operator()(const Reshape&) const { return copy(); }
  Values operator()(const Identity&) const { return copy(); }
  Values operator()(const Convert&) const { return copy(); }

  Values operator()(const Transpose& op) const {
    const Shape from = pitches(input_shape(0)), to = pitches(output_);
    const std::int64_t image = static_cast<std::int64_t>(elements()) / batch_;
    Values result(elements());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(result.size()); ++i) {
      std::int64_t source = i / image * image;
      for (std::size_t axis = 0; axis < output_.size(); ++axis) {
        source += i % image / to[axis] % output_[axis] * from[static_cast<std::size_t>(op.order[axis])];
      }
      result[static_cast<std::size_t>(i)] = inputs_[0][static_cast<std::size_t>(source)];
    }
    return result;
  }

 private:
  // An operand of a product: its values, and how far a step along each axis and from image to image moves.
  struct Matrices {
    std::span<const double> values;
    Shape extents, steps;
    std::int64_t image;
  };
  Matrices matrices(const MatMul& op, bool left, const Values& constant) const {
    const bool is_constant = op.constant && op.constant_first == left;
    const std::size_t input = left || op.constant ? 0 : 1;
    const Shape& shape = is_constant ? op.constant->shape : input_shape(input);
    const std::vector<int>& order = left ? op.left_order : op.right_order;
    Matrices made{is_constant ? std::span<const double>(constant) : inputs_[input], ordered(shape, order),
                  ordered(pitches(shape), order), is_constant ? 0 : product(shape, 0, shape.size())};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (made.extents[axis] == 1) made.steps[axis] = 0;
    }
    return made;
  }

  // visit(element of the output, element of what is repeated along axes where `shape` has one value). `by_image`: there
  // is one of it for each image.
  template <typename Visit>
  void for_each_repeated(const Shape& shape, bool by_image, Visit visit) const {
    const Shape to = pitches(output_);
    Shape from = pitches(shape);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) from[axis] = shape[axis] == 1 ? 0 : from[axis];
    const std::int64_t image = product(output_, 0, output_.size()), other = product(shape, 0, shape.size());
    for (std::int64_t i = 0; i < batch_ * image; ++i) {
      std::int64_t source = by_image ? i / image * other : 0;
      for (std::size_t axis = 0; axis < output_.size(); ++axis) {
        source += i % image / to[axis] % output_[axis] * from[axis];
      }
      visit(static_cast<std::size_t>(i), static_cast<std::size_t>(source));
    }
  }

  // f(value) of all values of a group, added up.
  template <typename Function>
  double sum_of(const std::vector<std::size_t>& group, Function f) const {
    double sum = 0;
    for (const std::size_t i : group) sum += f(inputs_[0][i]);
    return sum;
  }
  double largest_of(const std::vector<std::size_t>& group) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (const std::size_t i : group) largest = std::max(largest, inputs_[0][i]);
    return largest;
  }
  double log_sum_exp(const std::vector<std::size_t>& group) const {
    const double largest = largest_of(group);
    return largest + std::log(sum_of(group, [&](double x) { return std::exp(x - largest); }));
  }
  static double identity(double x) { return x; }
  static double square(double x) { return x * x; }
  static double magnitude(double x) { return std::abs(x); }

  double statistic(Statistic of, const std::vector<std::size_t>& group) const {
    switch (of) {
      case Statistic::mean:
        return sum_of(group, identity) / static_cast<double>(group.size());
      case Statistic::sum:
        return sum_of(group, identity);
      case Statistic::largest:
        return largest_of(group);
      case Statistic::smallest: {
        double smallest = std::numeric_limits<double>::infinity();
        for (const std::size_t i : group) smallest = std::min(smallest, inputs_[0][i]);
        return smallest;
      }
      case Statistic::product: {
        double product = 1;
        for (const std::size_t i : group) product *= inputs_[0][i];
        return product;
      }
      case Statistic::sum_of_magnitudes:
        return sum_of(group, magnitude);
      case Statistic::sum_of_squares:
        return sum_of(group, square);
      case Statistic::log_sum_exp:
        return log_sum_exp(group);
    }
    fail_internal(__FILE__, __LINE__, "a statistic without a reference");
  }

  void normalize(const Normalize& op, const std::vector<std::size_t>& group, Values& result) const {
    const auto count = static_cast<double>(group.size());
    const auto scaled = [&](double center, double divisor) {
      for (const std::size_t i : group) result[i] = divisor == 0 ? 0 : (inputs_[0][i] - center) / divisor;
    };
    switch (op.normalization) {
      case Normalization::deviation: {
        const double mean = sum_of(group, identity) / count;
        const double variance = sum_of(group, [&](double x) { return square(x - mean); }) / count;
        return scaled(mean, std::sqrt(variance + op.epsilon));
      }
      case Normalization::root_mean_square:
        return scaled(0, std::sqrt(sum_of(group, square) / count + op.epsilon));
      case Normalization::magnitudes:
        return scaled(0, sum_of(group, magnitude));
      case Normalization::length:
        return scaled(0, std::sqrt(sum_of(group, square)));
      case Normalization::softmax:
      case Normalization::log_softmax: {
        const double sum = log_sum_exp(group);
        for (const std::size_t i : group) {
          const double y = inputs_[0][i] - sum;
          result[i] = op.normalization == Normalization::softmax ? std::exp(y) : y;
        }
        return;
      }
    }
    fail_internal(__FILE__, __LINE__, "a normalization without a reference");
  }

  const Activations& tensor(int index) const { return network_.tensors[static_cast<std::size_t>(index)]; }
  const Shape& input_shape(std::size_t i) const { return tensor(op_.inputs[i]).shape; }
  std::size_t elements() const { return static_cast<std::size_t>(batch_ * tensor(op_.output).elements()); }
  Values copy() const { return {inputs_[0].begin(), inputs_[0].end()}; }

  // visit(image and channel as one number, channel, begin, end) for each channel of each image of the output.
  template <typename Visit>
  void for_each_channel(Visit visit) const {
    const std::int64_t plane = plane_of(output_);
    for (std::int64_t i = 0; i < batch_ * output_[0]; ++i) {
      visit(i, static_cast<std::size_t>(i % output_[0]), i * plane, (i + 1) * plane);
    }
  }

  // visit(element of channel 0) for each pixel of each image; its other channels are `plane` elements apart.
  template <typename Visit>
  void for_each_vector(std::int64_t channels, std::int64_t plane, Visit visit) const {
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t pixel = 0; pixel < plane; ++pixel) visit(n * channels * plane + pixel);
    }
  }

  const Network& network_;
  const Operator& op_;
  std::int64_t batch_;
  const std::vector<std::span<const double>>& inputs_;
  const Shape& output_;
};

// For each tensor, the last operator that reads it; the operators' count for outputs, -1 for what nobody reads.
std::vector<int> last_readers(const Network& network) {
  std::vector<int> last(network.tensors.size(), -1);
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    for (const int input : network.operators[i].inputs) last[static_cast<std::size_t>(input)] = static_cast<int>(i);
  }
  for (const int output : network.outputs) {
    last[static_cast<std::size_t>(output)] = static_cast<int>(network.operators.size());
  }
  return last;
}

}  // namespace

std::vector<double> run_reference_operator(const Network& network, const Operator& op, int batch,
                                           const std::vector<std::span<const double>>& inputs) {
  BURIN_CHECK(inputs.size() == op.inputs.size(), "operator {}: {} inputs, not {}", op.name, inputs.size(),
              op.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t wanted = batch * network.tensors[static_cast<std::size_t>(op.inputs[i])].elements();
    BURIN_CHECK(static_cast<std::int64_t>(inputs[i].size()) == wanted, "operator {}: input {} has {} values, not {}",
                op.name, i, inputs[i].size(), wanted);
  }
  return std::visit(Interpreter(network, op, batch, inputs), op.kind);
}

std::vector<std::vector<double>> run_reference(const Network& network, int batch,
                                               const std::vector<std::span<const float>>& inputs,
                                               const TensorVisitor& visit) {
  BURIN_CHECK(batch >= 1, "batch {}", batch);
  BURIN_CHECK(inputs.size() == network.inputs.size(), "{} inputs for a network that takes {}", inputs.size(),
              network.inputs.size());
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Activations& tensor = network.tensors[static_cast<std::size_t>(network.inputs[i])];
    BURIN_CHECK(static_cast<std::int64_t>(inputs[i].size()) == batch * tensor.elements(),
                "network input {}: {} values, not {}", tensor.name, inputs[i].size(), batch * tensor.elements());
    values.emplace_back(inputs[i].begin(), inputs[i].end());
    if (visit) visit(network.inputs[i], values.back());
  }
  return run_graph(network, std::move(values), [&](const Operator& op, const auto& read) {
    std::vector<double> made = run_reference_operator(network, op, batch, read);
    if (visit) visit(op.output, made);
    return made;
  });
}

std::vector<std::vector<double>> run_graph(const Network& network, std::vector<std::vector<double>> inputs,
                                           const OperatorEvaluator& evaluate) {
  const std::vector<int> last = last_readers(network);
  std::vector<std::vector<double>> values(network.tensors.size());
  const auto keep = [&](int tensor, std::vector<double> made) {
    if (last[static_cast<std::size_t>(tensor)] >= 0) values[static_cast<std::size_t>(tensor)] = std::move(made);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) keep(network.inputs[i], std::move(inputs[i]));
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    const Operator& op = network.operators[i];
    std::vector<std::span<const double>> read;
    for (const int input : op.inputs) read.emplace_back(values[static_cast<std::size_t>(input)]);
    keep(op.output, evaluate(op, read));
    for (const int input : op.inputs) {
      if (last[static_cast<std::size_t>(input)] == static_cast<int>(i)) values[static_cast<std::size_t>(input)] = {};
    }
  }
  std::vector<std::vector<double>> outputs;
  for (const int output : network.outputs) outputs.push_back(std::move(values[static_cast<std::size_t>(output)]));
  return outputs;
}

}  // namespace burin
