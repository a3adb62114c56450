// Small graphs for tests, the same on every machine for a seed: all operators, and often what passes look for.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"

namespace burin_test {

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed) {}

  burin::Network make() {
    const std::vector<std::int64_t> image = {random_.integer(1, 5), random_.integer(4, 9), random_.integer(4, 9)};
    for (int i = random_.integer(1, 2); i > 0; --i) tensors_.push_back(graph_.input(image));
    const int steps = random_.integer(3, 14);
    for (int i = 0; i < steps; ++i) step();
    return graph_.finish(outputs());
  }

 private:
  using Shape = std::vector<std::int64_t>;

  const Shape& shape(int tensor) const { return graph_.network.tensors[static_cast<std::size_t>(tensor)].shape; }
  float real(double low, double high) { return static_cast<float>(low + (high - low) * random_.real()); }

  // Mostly the newest: chains are what is fused.
  int pick() {
    if (random_.chance(0.75)) return tensors_.back();
    return tensors_[static_cast<std::size_t>(random_.integer(0, static_cast<int>(tensors_.size()) - 1))];
  }

  int add(burin::OperatorKind kind, std::vector<int> inputs) {
    const std::string name = std::string(kind_name(kind)) + std::to_string(graph_.network.operators.size());
    tensors_.push_back(graph_.add(name, std::move(kind), std::move(inputs)));
    return tensors_.back();
  }

  void step() {
    const int x = pick();
    if (shape(x).size() != 3) return flat_step(x);
    switch (random_.integer(0, 20)) {
      case 0:
      case 1:
      case 2:
        return convolution(x);
      case 19:
        convolution(x);
        return convolution(tensors_.back(), true);
      case 3:
      case 4:
        return void(affine(x));
      case 5:
        return elementwise(x);
      case 6:
        return void(add(burin::Identity{}, {x}));
      case 7:
        return combine(x);
      case 8:
        return pool(x);
      case 9:
        return pad(x);
      case 10:
        return concat(x);
      case 11:
        return reshape(x);
      case 12:
        return gate(x);
      case 13:
        return pooled(x);
      case 14:
        return there_and_back(x);
      case 15:
      case 16:
      case 17:
        return shuffled_halves(x);
      case 18:
        pick(x);
        return pick(tensors_.back());
      default:
        return rare(x);
    }
  }

  void flat_step(int x) {
    if (shape(x).size() > 1) return void(add(burin::Reshape{{graph_.network.tensors[x].elements()}}, {x}));
    if (random_.chance(0.5)) return linear(x);
    if (random_.chance(0.3)) return void(affine(x));
    if (random_.chance(0.2)) return void(add(burin::Softmax{}, {x}));
    elementwise(x);
  }

  float weight(double density) { return random_.chance(density) ? real(-1, 1) : 0.0F; }

  void convolution(int x, bool depthwise = false) {
    const int channels = static_cast<int>(shape(x)[0]);
    burin::ConvLayer layer;
    layer.name = "convolution" + std::to_string(graph_.network.operators.size());
    burin::ConvShape& s = layer.shape;
    s.in_channels = channels;
    s.in_h = static_cast<int>(shape(x)[1]);
    s.in_w = static_cast<int>(shape(x)[2]);
    const int kind = depthwise ? 0 : random_.integer(0, 5);
    s.groups = kind == 0 ? channels : kind == 1 && channels % 2 == 0 ? 2 : 1;
    s.out_channels = s.groups * (depthwise ? 1 : random_.integer(1, s.groups > 1 ? 2 : 6));
    s.kernel_h = random_.integer(1, std::min(3, s.in_h));
    s.kernel_w = random_.integer(1, std::min(3, s.in_w));
    if (random_.chance(0.4)) s.pad = {random_.integer(0, 2), random_.integer(0, 2), random_.integer(0, 2), 1};
    if (random_.chance(0.3)) s.stride_h = s.stride_w = 2;
    s.epilogue.bias = random_.chance(0.5);
    if (random_.chance(0.2))
      s.epilogue.function = burin::function_of(static_cast<burin::Activation>(random_.integer(1, 5)));
    for (int k = 0; k < s.out_channels; ++k) {
      const bool empty = random_.chance(0.25);
      for (int i = s.channels_per_group() * s.kernel_h * s.kernel_w; i > 0; --i) {
        layer.weights.push_back(empty ? 0.0F : weight(0.5));
      }
      if (s.epilogue.bias) layer.bias.push_back(weight(0.6));
    }
    std::vector<int> inputs = {x};
    const Shape output = {s.out_channels, s.out_h(), s.out_w()};
    for (const int other : tensors_) {
      if (shape(other) != output || !random_.chance(0.2)) continue;
      s.epilogue.residual = true;
      inputs.push_back(other);
      break;
    }
    tensors_.push_back(graph_.convolution(layer, inputs));
    // A second one of the same shape, to be added.
    if (random_.chance(0.25) && !s.epilogue.residual) {
      layer.name += "b";
      std::reverse(layer.weights.begin(), layer.weights.end());
      tensors_.push_back(graph_.convolution(layer, {x}));
      add(burin::Combine{burin::Combination::add}, {tensors_.back(), tensors_[tensors_.size() - 2]});
    }
  }

  void linear(int x) {
    burin::Linear op;
    op.in_features = static_cast<int>(shape(x)[0]);
    op.out_features = random_.integer(1, 6);
    for (int k = 0; k < op.out_features; ++k) {
      const bool empty = random_.chance(0.25);
      for (int c = 0; c < op.in_features; ++c) op.weights.push_back(empty ? 0.0F : weight(0.5));
    }
    if (random_.chance(0.5)) {
      for (int k = 0; k < op.out_features; ++k) op.bias.push_back(real(-1, 1));
    }
    if (random_.chance(0.2)) op.function = burin::function_of(burin::Activation::relu);
    add(op, {x});
  }

  int affine(int x) {
    burin::ChannelAffine op;
    const bool shifts = random_.chance(0.7);
    for (std::int64_t c = 0; c < shape(x)[0]; ++c) {
      op.scale.push_back(random_.chance(0.15) ? 0.0F : real(-1.5, 1.5));
      op.shift.push_back(shifts && random_.chance(0.7) ? real(-1, 1) : 0.0F);
    }
    return add(op, {x});
  }

  void elementwise(int x) {
    using burin::ElementFunction;
    burin::Elementwise op{static_cast<ElementFunction>(random_.integer(0, 6)), 0, 0};
    if (op.function == ElementFunction::leaky_relu) op.alpha = 0.125F;
    if (op.function == ElementFunction::hard_sigmoid) op.alpha = 0.2F, op.beta = 0.5F;
    if (op.function == ElementFunction::clip) {
      op.alpha = random_.chance(0.7) ? 0 : -1;
      op.beta = random_.chance(0.7) ? 6 : std::numeric_limits<float>::infinity();
      if (random_.chance(0.2)) op.alpha = -std::numeric_limits<float>::infinity();
    }
    add(op, {x});
  }

  // x * f(x), with the factors in either order; or f of its means.
  void gate(int x) {
    if (random_.chance(0.35)) {
      const int mean = add(burin::GlobalAveragePool{}, {x});
      return void(add(burin::Combine{burin::Combination::multiply}, {x, excited(mean, shape(x)[0])}));
    }
    const bool hard = random_.chance(0.3);
    const burin::Elementwise op = hard ? burin::Elementwise{burin::ElementFunction::hard_sigmoid, 1 / 6.0F, 0.5F}
                                       : burin::Elementwise{burin::ElementFunction::sigmoid, 0, 0};
    const int gate = add(op, {x});
    const burin::Combine multiply{burin::Combination::multiply};
    random_.chance(0.5) ? add(multiply, {x, gate}) : add(multiply, {gate, x});
  }

  void combine(int x) {
    const auto combination = random_.chance(0.6) ? burin::Combination::add : burin::Combination::multiply;
    for (const int other : tensors_) {
      if (shape(other) == shape(x) && random_.chance(0.5)) return void(add(burin::Combine{combination}, {x, other}));
    }
    const int mean = add(burin::GlobalAveragePool{}, {x});
    add(burin::Combine{combination}, {x, random_.chance(0.5) ? excited(mean, shape(x)[0]) : mean});
  }

  int excited(int mean, std::int64_t channels) {
    return layer_of_a_pixel(layer_of_a_pixel(mean, random_.integer(1, 3)), channels);
  }

  // The image has one pixel.
  int layer_of_a_pixel(int x, std::int64_t outputs) {
    burin::ConvLayer layer;
    layer.name = "convolution" + std::to_string(graph_.network.operators.size());
    layer.shape.in_channels = static_cast<int>(shape(x)[0]);
    layer.shape.out_channels = static_cast<int>(outputs);
    if (random_.chance(0.7)) layer.shape.epilogue.function = burin::Elementwise{burin::ElementFunction::sigmoid};
    for (std::int64_t i = shape(x)[0] * outputs; i > 0; --i) layer.weights.push_back(weight(0.3));
    tensors_.push_back(graph_.convolution(layer, {x}));
    return tensors_.back();
  }

  void pool(int x) {
    burin::Pool op;
    op.kind = random_.chance(0.5) ? burin::PoolKind::max : burin::PoolKind::average;
    op.kernel_h = static_cast<int>(std::min<std::int64_t>(shape(x)[1], random_.integer(1, 3)));
    op.kernel_w = static_cast<int>(std::min<std::int64_t>(shape(x)[2], random_.integer(1, 3)));
    op.stride_h = op.stride_w = random_.integer(1, 2);
    if (op.kernel_h > 1 && random_.chance(0.5)) op.pad.top = op.pad.bottom = 1;
    if (op.kernel_w > 1 && random_.chance(0.5)) op.pad.left = op.pad.right = 1;
    op.round_up = random_.chance(0.4);
    op.count_padding = random_.chance(0.4);
    add(op, {x});
  }

  // It follows a convolution, or two side by side.
  void pooled(int x) {
    convolution(x);
    const int first = tensors_.back();
    if (random_.chance(0.5)) {
      convolution(x);
      if (shape(tensors_.back())[1] == shape(first)[1] && shape(tensors_.back())[2] == shape(first)[2]) {
        add(burin::Concat{0}, {first, tensors_.back()});
      }
    }
    random_.chance(0.25) ? void(add(burin::GlobalAveragePool{}, {tensors_.back()})) : pool(tensors_.back());
  }

  void pad(int x) {
    const burin::Padding padding = {random_.integer(0, 1), random_.integer(0, 1), random_.integer(0, 1),
                                    random_.integer(0, 1)};
    if (random_.chance(0.4)) x = add(burin::Elementwise{}, {x});
    const int padded = add(burin::Pad{padding, random_.chance(0.8) ? 0.0F : 0.5F}, {x});
    random_.chance(0.5) ? convolution(padded) : pool(padded);
  }

  void concat(int x) {
    std::vector<int> inputs = {x};
    for (const int other : tensors_) {
      const bool fits = shape(other).size() == 3 && shape(other)[1] == shape(x)[1] && shape(other)[2] == shape(x)[2];
      if (fits && random_.chance(0.4)) inputs.push_back(other);
    }
    if (random_.chance(0.2)) return void(add(burin::Concat{2}, {x, x}));
    add(burin::Concat{0}, inputs);
    if (inputs.size() < 2 || random_.chance(0.5)) return;
    inputs.push_back(affine(x));  // as DenseNet does
    add(burin::Concat{0}, inputs);
  }

  // What two convolutions made, shuffled and shared out as ShuffleNet does.
  void shuffled_halves(int x) {
    convolution(x);
    const auto& operators = graph_.network.operators;
    const auto made = std::find_if(operators.rbegin(), operators.rend(), [](const burin::Operator& op) {
      return std::holds_alternative<burin::Convolution>(op.kind);
    });
    const int first = made->output;
    const std::vector<int> inputs = made->inputs;
    const Shape s = shape(first);
    burin::ConvLayer other = graph_.network.layers.back();
    other.name += "_other";
    tensors_.push_back(graph_.convolution(std::move(other), inputs));
    const int joined = add(burin::Concat{0}, {first, tensors_.back()});
    const int apart = add(burin::Reshape{{2, s[0], s[1], s[2]}}, {joined});
    const int together = add(burin::Reshape{{2 * s[0], s[1], s[2]}}, {add(burin::Transpose{{1, 0, 2, 3}}, {apart})});
    const int channels = static_cast<int>(s[0]);
    const int kept = add(burin::ChannelView{0, channels}, {together});
    convolution(add(burin::ChannelView{channels, channels}, {together}));
    if (shape(tensors_.back())[1] == s[1] && shape(tensors_.back())[2] == s[2]) {
      add(burin::Concat{0}, {kept, tensors_.back()});
    }
  }

  void view(int x) {
    const int channels = static_cast<int>(shape(x)[0]), begin = random_.integer(0, channels - 1);
    add(burin::ChannelView{begin, random_.integer(1, channels - begin)}, {x});
  }

  // A function of what a layer made, behind what moves it.
  void moved_layer(int x) {
    convolution(x);
    int y = tensors_.back();
    const Shape s = shape(y);
    if (random_.chance(0.5)) y = add(burin::Transpose{{0, 2, 1}}, {y});
    if (random_.chance(0.5)) y = add(burin::Reshape{{s[0], s[1] * s[2], 1}}, {y});
    random_.chance(0.5) ? elementwise(y) : void(affine(y));
  }

  // Some rows and columns, forwards or backwards; now and then channels as well.
  void pick(int x) {
    burin::Pick op;
    for (const std::int64_t extent : shape(x)) {
      burin::PickedAxis axis{0, 1, extent};
      if (op.axes.empty() ? random_.chance(0.2) : random_.chance(0.7)) {
        axis.step = random_.integer(1, 2) * (random_.chance(0.3) ? -1 : 1);
        axis.extent = (extent + 1) / 2;
        axis.begin = axis.step < 0 ? extent - 1 : 0;
      }
      op.axes.push_back(axis);
    }
    if (random_.chance(0.2)) op.order = random_.chance(0.5) ? std::vector<int>{0, 2, 1} : std::vector<int>{1, 0, 2};
    add(op, {x});
  }

  // Each row and column of one or two others, which follow each other.
  void resample(int x) {
    const auto taps = [&](std::int64_t extent) {
      burin::Taps made{random_.integer(1, 2)};
      const int out = random_.integer(1, static_cast<int>(2 * extent));
      for (int i = 0; i < out; ++i) {
        for (int tap = 0; tap < made.count; ++tap) {
          made.indices.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(i * extent / out + tap, extent - 1)));
        }
      }
      made.weights.assign(made.indices.size(), 1.0F / static_cast<float>(made.count));
      return made;
    };
    burin::Resample op{taps(shape(x)[1]), taps(shape(x)[2])};
    if (random_.chance(0.3)) {
      op.outside = 0.5F;
      for (int tap = 0; tap < op.cols.count; ++tap) op.cols.indices[static_cast<std::size_t>(tap)] = -1;
    }
    add(op, {x});
  }

  void reshape(int x) {
    const Shape s = shape(x);
    if (random_.chance(0.6)) return moved_layer(x);
    switch (random_.integer(0, 3)) {
      case 0:
        return void(add(burin::Reshape{s}, {x}));
      case 1:  // and back again
        return void(add(burin::Reshape{s}, {add(burin::Reshape{{s[0] * s[1] * s[2]}}, {x})}));
      case 2:  // channel shuffle
        if (s[0] % 2 == 0) {
          const int split = add(burin::Reshape{{2, s[0] / 2, s[1], s[2]}}, {x});
          const int turned = add(burin::Transpose{{1, 0, 2, 3}}, {split});
          return void(add(burin::Reshape{s}, {turned}));
        }
        [[fallthrough]];
      default:
        linear(add(burin::Reshape{{s[0] * s[1] * s[2]}}, {random_.chance(0.5) ? affine(x) : x}));
    }
  }

  std::vector<int> some_axes() {
    const std::vector<std::vector<int>> all = {{0}, {2}, {1, 2}, {0, 1, 2}};
    return all[static_cast<std::size_t>(random_.integer(0, 3))];
  }
  burin::Combination some_combination() {
    using enum burin::Combination;
    const burin::Combination all[] = {add, multiply, subtract, smaller, larger, keep};
    return all[random_.integer(0, 5)];
  }

  // A statistic, which then meets what it is of.
  void of_a_statistic(int x) {
    using enum burin::Statistic;
    const burin::Statistic all[] = {mean, sum, largest, smallest, log_sum_exp};
    burin::Reduce op{all[random_.integer(0, 4)], some_axes()};
    if (random_.chance(0.3)) op.then = burin::Elementwise{burin::ElementFunction::tanh};
    burin::Combine combine{some_combination()};
    combine.swapped = random_.chance(0.5);
    add(combine, {x, add(op, {x})});
  }

  void normalize(int x) {
    burin::Normalize op{static_cast<burin::Normalization>(random_.integer(0, 1)), some_axes(), 0.1F};
    if (random_.chance(0.6)) {
      const Shape by_channel = {shape(x)[0], 1, 1};
      op.scale = numbers(by_channel);
      op.shift = numbers(by_channel);
    }
    add(op, {x});
  }

  burin::ConstantOperand numbers(const Shape& of) {
    burin::ConstantOperand made{of, {}};
    for (std::int64_t i = of[0] * of[1] * of[2]; i > 0; --i) made.values.push_back(real(-1, 1));
    return made;
  }
  void with_a_constant(int x) {
    burin::Combine op{some_combination()};
    const Shape& s = shape(x);
    op.constant = numbers(random_.chance(0.5) ? Shape{1, s[1], s[2]} : Shape{s[0], 1, s[2]});
    add(op, {x});
  }

  // Channels as the last axis, something there, and mostly back.
  void there_and_back(int x) {
    const int there = add(burin::Transpose{{1, 2, 0}}, {x});
    switch (random_.integer(0, 3)) {
      case 0:
        normalize(there);
        break;
      case 1:
        with_a_constant(there);
        break;
      case 2:
        smooth(there);
        break;
      default:
        affine(there);
    }
    if (random_.chance(0.8)) add(burin::Transpose{{2, 0, 1}}, {tensors_.back()});
  }

  // Products of rows with each other, or with numbers.
  void gram(int x) {
    burin::MatMul op;
    op.then = burin::Elementwise{burin::ElementFunction::tanh};
    if (random_.chance(0.6)) {
      op.right_order = {0, 2, 1};
      return void(add(op, {x, x}));
    }
    op.constant = numbers({1, shape(x)[2], random_.integer(1, 6)});
    add(op, {x});
  }

  void smooth(int x) {
    using enum burin::ElementFunction;
    const burin::ElementFunction all[] = {tanh, erf, gelu, mish, softplus, softsign, sine, absolute};
    add(burin::Elementwise{all[random_.integer(0, 7)]}, {x});
  }

  void rare(int x) {
    switch (random_.integer(0, 10)) {
      case 4:
        return view(x);
      case 5:
        return pick(x);
      case 6:
        return resample(x);
      case 7:
        return of_a_statistic(x);
      case 8:
        return normalize(x);
      case 9:
        return random_.chance(0.4) ? gram(x) : with_a_constant(x);
      case 10:
        return smooth(x);
      case 0:
        return void(add(burin::Lrn{random_.integer(1, 5), 0.1F, 0.75F, 1}, {x}));
      case 1:
        return void(add(burin::Softmax{}, {x}));
      case 2:
        return void(add(burin::Transpose{{0, 2, 1}}, {x}));
      default:
        linear(add(burin::Reshape{{shape(x)[0]}}, {add(burin::GlobalAveragePool{}, {x})}));
    }
  }

  // All that nobody reads but for a few, and now and then one that others read.
  std::vector<int> outputs() {
    const burin::Network& network = graph_.network;
    std::vector<bool> read(network.tensors.size());
    for (const burin::Operator& op : network.operators) {
      for (const int input : op.inputs) read[static_cast<std::size_t>(input)] = true;
    }
    std::vector<int> result;
    for (std::size_t i = network.inputs.size(); i + 1 < network.tensors.size(); ++i) {
      if (random_.chance(read[i] ? 0.05 : 0.8)) result.push_back(static_cast<int>(i));
    }
    result.push_back(static_cast<int>(network.tensors.size()) - 1);
    return result;
  }

  Random random_;
  GraphBuilder graph_;
  std::vector<int> tensors_;
};

inline burin::Network random_graph(std::uint64_t seed) { return RandomGraph(seed).make(); }

}  // namespace burin_test
