#include "test/providers/provider_cases.h"
#include "test/every_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "compiler/reference.h"
#include "ir/derive_form.h"
#include "ir/element_type.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {
namespace {

using Shape = std::vector<std::int64_t>;

// One pixel, one channel, odd and prime extents, extents that vectors fit, many channels, a flat image.
const std::vector<Shape> kImages = {{1, 1, 1}, {5, 1, 1},  {1, 7, 5},  {3, 11, 13},
                                    {4, 4, 4}, {8, 6, 10}, {67, 3, 5}, {64, 8, 8}};
const std::vector<Shape> kFlat = {{1}, {7}, {64}, {1000}};

std::vector<float> weights(std::int64_t count, std::uint64_t seed, double density = 1) {
  std::vector<float> values = random_tensor(count, seed);
  const std::vector<float> chosen = random_tensor(count, seed + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((chosen[i] + 1) / 2 >= density) values[i] = 0;
  }
  return values;
}

Linear linear(int in, int out, bool bias, Activation activation, double density = 1) {
  Linear op;
  op.in_features = in;
  op.out_features = out;
  op.weights = rounded(ElementType::f16, weights(std::int64_t{in} * out, 5, density));
  if (bias) op.bias = weights(out, 6);
  op.function = function_of(activation, 0.125F);
  return op;
}

Squeeze squeeze(const Shape& image, int features, int part_channels, int part_pixels) {
  return {features, weights(image[0] * features, 5, 0.7), part_channels, part_pixels};
}

Excite excite(const Shape& image, int features) {
  Excite op{weights(features, 6), Elementwise{ElementFunction::silu},
            linear(features, static_cast<int>(image[0]), true, Activation::none, 0.7)};
  op.expand.function = Elementwise{ElementFunction::hard_sigmoid, 0.2F, 0.5F};
  return op;
}

// Of 28 rows and columns 56, each the mean of `count` that follow each other.
Resample resized_twice(int count) {
  constexpr int kExtent = 28;
  Taps taps{count};
  for (int i = 0; i < 2 * kExtent; ++i) {
    for (int tap = 0; tap < count; ++tap) taps.indices.push_back(std::min(i / 2 + tap, kExtent - 1));
  }
  taps.weights.assign(taps.indices.size(), 1.0F / static_cast<float>(count));
  return {taps, taps};
}

Pool window(PoolKind kind, int kernel, int stride, int pad) {
  Pool op;
  op.kind = kind;
  op.kernel_h = op.kernel_w = kernel;
  op.stride_h = op.stride_w = stride;
  op.pad = {pad, pad, pad, pad};
  return op;
}

}  // namespace

Network network_of(OperatorKind kind, const std::vector<Shape>& inputs) {
  Network network;
  Operator op{"tested", std::move(kind), {}, static_cast<int>(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    network.tensors.push_back({fmt::format("input{}", i), inputs[i]});
    network.inputs.push_back(static_cast<int>(i));
  }
  op.inputs = network.inputs;
  std::vector<std::string> faults;
  network.tensors.push_back({"output", output_shape(network, op, inputs, faults)});
  BURIN_CHECK(faults.empty(), "a test's operator: {}", faults.front());
  network.outputs = {op.output};
  network.operators.push_back(std::move(op));
  return network;
}

Network network_of(const ConvLayer& layer) {
  const ConvShape& shape = layer.shape;
  const Shape in = {shape.in_channels, shape.in_h, shape.in_w},
              out = {shape.out_channels, shape.out_h(), shape.out_w()};
  Network network;
  network.layers = {layer};
  network.tensors = {{"input", in}};
  if (shape.epilogue.residual) {
    network.tensors.push_back({"residual", {shape.out_channels, shape.conv_h(), shape.conv_w()}});
  }
  const int output = static_cast<int>(network.tensors.size());
  for (int i = 0; i < output; ++i) network.inputs.push_back(i);
  network.tensors.push_back({"output", out});
  network.outputs = {output};
  network.operators.push_back({"tested", Convolution{}, network.inputs, output});
  return network;
}

Network network_of(const OperatorCase& edge) {
  Network network = edge.layer ? network_of(*edge.layer) : network_of(edge.kind, edge.inputs);
  for (const int input : network.inputs) {
    Activations& tensor = network.tensors[static_cast<std::size_t>(input)];
    const bool is_sums = std::holds_alternative<Excite>(edge.kind) && tensor.shape.size() != 3;
    // A convolution adds what is in the format of its output.
    const bool is_residual = edge.layer && input != network.inputs.front();
    if (!is_sums) tensor.format = is_residual ? edge.to : edge.from;
  }
  network.tensors[static_cast<std::size_t>(network.outputs.front())].format = edge.to;
  return network;
}

Task whole_task(const Network& network, int batch, const std::string& arch) {
  const Operator& op = network.operators.back();
  Task task;
  task.name = op.name;
  task.kind = kind_name(op.kind);
  task.op = &op;
  if (const auto* convolution = task.get<Convolution>()) {
    task.layer = &network.layers[static_cast<std::size_t>(convolution->layer)];
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto& shape = network.tensors[static_cast<std::size_t>(op.inputs[i])].shape;
    task.inputs.push_back(shape);
    task.reads.push_back(
        whole_tensor(i == 0 ? TensorRole::input : TensorRole::residual, shape, ElementType::f32, TensorLayout::nchw));
  }
  task.output = network.tensors[static_cast<std::size_t>(op.output)].shape;
  task.writes = whole_tensor(TensorRole::output, task.output, ElementType::f32, TensorLayout::nchw);
  task.batch = batch;
  task.archs = {arch};
  return task;
}

OperatorCase convolution_case(std::string name, int in, int out, int size, int filter, int stride, int pad,
                              double density, bool residual, int groups) {
  ConvShape shape;
  shape.groups = groups;
  shape.epilogue.residual = residual;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.in_h = shape.in_w = size;
  shape.kernel_h = shape.kernel_w = filter;
  shape.stride_h = shape.stride_w = stride;
  shape.pad = {pad, pad, pad, pad};
  shape.epilogue.bias = true;
  shape.epilogue.function = function_of(Activation::relu);
  constexpr double kTolerance = 1e-4;
  ConvLayer layer{name, shape, weights(shape.weight_elements(), 5, density), weights(out, 6)};
  return {std::move(name), {}, {}, kTolerance, std::move(layer)};
}

std::vector<OperatorCase> pool_cases() {
  std::vector<OperatorCase> cases;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    const auto add = [&](const std::string& name, const Pool& op, const Shape& shape) {
      cases.push_back({fmt::format("{}_{}", to_string(kind), name), op, {shape}});
      if (kind == PoolKind::max) return;
      Pool counting = op;
      counting.count_padding = true;
      cases.push_back({fmt::format("{}_{}_counting", to_string(kind), name), counting, {shape}});
    };
    const auto rounding_up = [](Pool op) {
      op.round_up = true;
      return op;
    };
    add("one_pixel", window(kind, 1, 1, 0), {3, 1, 1});
    add("2x2", window(kind, 2, 2, 0), {5, 8, 12});
    add("odd_width", window(kind, 2, 2, 0), {3, 7, 9});
    add("prime_shape", window(kind, 3, 2, 1), {7, 13, 11});
    add("one_channel", window(kind, 3, 1, 1), {1, 6, 5});
    add("many_channels", window(kind, 3, 2, 1), {131, 6, 6});
    add("ceil", rounding_up(window(kind, 3, 2, 0)), {5, 8, 7});
    add("ceil_with_padding", rounding_up(window(kind, 3, 2, 1)), {5, 7, 8});
    add("stride_over_kernel", window(kind, 2, 3, 0), {4, 11, 9});
    add("larger_than_the_image", window(kind, 5, 1, 2), {3, 3, 2});
    add("two_rows_a_thread", window(kind, 3, 2, 1), {64, 41, 37});
    add("four_rows_a_thread", window(kind, 3, 1, 0), {64, 41, 37});
    add("four_rows_with_padding", rounding_up(window(kind, 3, 2, 1)), {64, 72, 70});
    add("whole_image", window(kind, 7, 1, 0), {9, 7, 7});
    add("large_window", window(kind, 9, 4, 3), {2, 20, 17});
    Pool uneven = window(kind, 3, 2, 0);
    uneven.kernel_w = 2;
    uneven.stride_w = 1;
    uneven.pad = {1, 0, 0, 1};
    add("uneven", uneven, {3, 9, 8});
    Pool dilated = window(kind, 3, 1, 1);
    dilated.dilation_h = 2;
    dilated.dilation_w = 3;
    add("dilated", dilated, {3, 9, 10});
  }
  return cases;
}

std::vector<OperatorCase> channel_cases() {
  std::vector<OperatorCase> cases;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Elementwise functions[] = {{ElementFunction::relu},
                                   {ElementFunction::leaky_relu, 0.125F},
                                   {ElementFunction::sigmoid},
                                   {ElementFunction::hard_sigmoid, 0.2F, 0.5F},
                                   {ElementFunction::hard_swish},
                                   {ElementFunction::silu},
                                   {ElementFunction::clip, -0.5F, 0.25F},
                                   {ElementFunction::clip, 0, kInfinity}};
  std::vector<Shape> shapes = kImages;
  shapes.insert(shapes.end(), kFlat.begin(), kFlat.end());
  for (const Shape& shape : shapes) {
    std::string name;
    for (const std::int64_t extent : shape) name += fmt::format("_{}", extent);
    const bool all = shape == kImages[3] || shape == kImages[5];
    for (const Elementwise& function : functions) {
      if (all || function.function == ElementFunction::relu) {
        cases.push_back({fmt::format("{}{}", to_string(function.function), name), function, {shape}});
      }
    }
    ChannelAffine affine;
    affine.scale = weights(shape[0], 3);
    affine.shift = weights(shape[0], 4);
    cases.push_back({"affine" + name, affine, {shape}});
    for (const Combination combination : {Combination::add, Combination::multiply}) {
      cases.push_back({fmt::format("{}{}", to_string(combination), name), Combine{combination}, {shape, shape}});
      if (shape.size() < 3) continue;
      const Shape per_channel = {shape[0], 1, 1};
      cases.push_back(
          {fmt::format("{}_channel{}", to_string(combination), name), Combine{combination}, {shape, per_channel}});
    }
    if (shape.size() == 3) cases.push_back({"global_average" + name, GlobalAveragePool{}, {shape}});
  }
  cases.push_back({"global_average_large", GlobalAveragePool{}, {{3, 33, 32}}});
  cases.push_back({"global_average_of_several_warps", GlobalAveragePool{}, {{9, 40, 41}}});
  constexpr double kExcitationTolerance = 4e-6;
  const auto add_squeeze = [&](const Shape& image, int features, int part_channels, int part_pixels) {
    cases.push_back({fmt::format("squeeze_{}_{}_{}_{}", shape_text(image), features, part_channels, part_pixels),
                     squeeze(image, features, part_channels, part_pixels),
                     {image},
                     kExcitationTolerance});
  };
  add_squeeze({1, 1, 1}, 1, 8, 4);
  add_squeeze({9, 5, 8}, 3, 8, 12);        // parts of four pixels, of one channel
  add_squeeze({20, 1, 3}, 300, 8, 4);      // more features than threads
  add_squeeze({24, 40, 41}, 6, 16, 1024);  // several warps for a plane
  add_squeeze({530, 2, 2}, 17, 16, 4);
  add_squeeze({64, 3, 3}, 260, 64, 9);  // more weights than shared memory is taken for
  const auto add_excite = [&](const Shape& image, int features, std::int64_t parts) {
    cases.push_back({fmt::format("excite_{}_{}_{}", shape_text(image), features, parts),
                     excite(image, features),
                     {image, {parts, features}},
                     kExcitationTolerance});
  };
  add_excite({1, 1, 1}, 1, 1);
  add_excite({9, 5, 8}, 3, 8);
  add_excite({20, 1, 3}, 40, 5);   // more features than channels
  add_excite({24, 40, 41}, 6, 6);  // several blocks for a plane
  add_excite({530, 2, 2}, 17, 67);
  add_excite({70, 7, 7}, 300, 9);  // more features than threads, more weights than shared memory is taken for
  std::get<Excite>(cases.back().kind).bias.clear();
  std::get<Excite>(cases.back().kind).function.reset();
  cases.push_back({"relu_many_pieces", functions[0], {{64, 96, 96}}});
  cases.push_back({"add_many_pieces", Combine{}, {{64, 96, 96}, {64, 96, 96}}});
  return cases;
}

std::vector<OperatorCase> function_cases() {
  std::vector<OperatorCase> cases;
  constexpr double kTolerance = 4e-7;
  using enum ElementFunction;
  // Random values are between -1 and 1: scaled to where the function has its ends, roots and steps.
  const auto add = [&](const Elementwise& function, float scale, float shift = 0) {
    const Shape shape = {3, 11, 13};
    ChannelAffine spread{{scale, scale, scale}, {shift, shift, shift}, function};
    cases.push_back({fmt::format("{}_of_{}_x_{}", to_string(function.function), scale, shift), spread, {shape}});
    cases.back().tolerance = kTolerance * (1 + std::abs(scale) + std::abs(shift));
    OperatorCase alone = {fmt::format("{}_alone", to_string(function.function)), function, {shape}, kTolerance};
    if (scale == 1 && shift == 0) cases.push_back(alone);
  };
  for (const ElementFunction function : {tanh, erf, gelu, gelu_tanh, mish, softplus, softsign, silu, sigmoid}) {
    for (const float scale : {0.01F, 1.0F, 6.0F, 100.0F}) add({function}, scale);
  }
  for (const float scale : {0.2F, 1.0F, 30.0F}) {
    add({elu, 1.5F, 1}, scale);
    add({elu, 1.75809934F, 1.05070098F}, scale);
    add({celu, 0.5F}, scale);
    add({celu, 2}, scale);
    add({thresholded_relu, 0.25F}, scale);
    add({absolute}, scale);
    add({sign}, scale);
    add({sine}, scale);
    add({cosine}, scale);
    add({quantize, 0.25F, -128}, scale);
    add({quantize, 0.03F, 0}, scale);
    add({floor}, scale);
    add({ceil}, scale);
    add({round}, scale, 0);
    add({power, 2}, scale);
    add({power, 3}, scale);
    add({power, 0}, scale);
    add({within, -0.5F, 0.125F}, scale);
    add({within, 0.25F, std::numeric_limits<float>::max()}, scale);
    add({within, -std::numeric_limits<float>::max(), 0}, scale);
    add({atan}, scale);
    add({asinh}, scale);
    add({shrink, 0.25F, 0.125F}, scale);
    add({shrink, 0.125F, 0.5F}, scale);
  }
  add({exp}, 1);
  add({exp}, 3);
  for (const float scale : {0.01F, 0.6F, 1.0F}) {
    for (const ElementFunction function : {tangent, sinh, cosh, asin, acos, atanh}) add({function}, scale);
  }
  for (const ElementFunction function : {sinh, cosh}) add({function}, 5);
  for (const ElementFunction function : {atan, asinh}) add({function}, 1e6F);
  add({tangent}, 0.5F, 22);
  add({asin}, 0.01F, -0.98F);
  add({acos}, 0.01F, 0.98F);
  add({acos}, 0.01F, -0.98F);
  add({acosh}, 0.01F, 1.02F);
  add({acosh}, 10, 11.5F);
  add({acosh}, 1e6F, 2e6F);
  add({power, -2}, 1, 3);
  add({power, 1.5F}, 1, 2);
  add({power, 0.5F}, 1, 2);
  add({power, 5}, 1);
  add({power, 4}, 1);
  add({log}, 1, 1.5F);
  add({sqrt}, 1, 1);
  add({reciprocal}, 1, 2);
  add({reciprocal}, 1, -2);
  return cases;
}

std::vector<OperatorCase> operand_cases() {
  std::vector<OperatorCase> cases;
  using enum Combination;
  constexpr double kTolerance = 2e-6;
  const auto add_all = [&](const Shape& shape, const Shape& second, Combination combination, bool swapped) {
    const std::string name = fmt::format("{}{}_{}_{}", to_string(combination), swapped ? "_swapped" : "",
                                         shape_text(shape), shape_text(second));
    Combine op{combination};
    op.swapped = swapped;
    if (shape == second) op.then = Elementwise{ElementFunction::relu};
    if (combination != divide && combination != power) {
      cases.push_back({name, op, {shape, second}, kTolerance});
    }
    // Constants that are neither near zero nor negative, so that all can divide by them and are their powers.
    if (combination == power || (swapped && combination == divide)) return;
    ConstantOperand constant{second, weights(values_of(second), 9)};
    for (float& x : constant.values) x = std::abs(x) + 0.5F;
    op.constant = constant;
    cases.push_back({name + "_constant", op, {shape}, kTolerance});
  };
  const Shape image = {6, 5, 8}, odd = {3, 7, 5};
  for (const Shape& whole : {image, odd, Shape{1, 3, 4}, Shape{9, 1, 1}}) {
    const auto c = whole[0], h = whole[1], w = whole[2];
    const std::vector<Shape> seconds = {whole,     {c, 1, 1}, {1, h, w}, {1, 1, 1},
                                        {c, h, 1}, {c, 1, w}, {1, h, 1}, {1, 1, w}};
    for (const Shape& second : seconds) {
      for (const Combination combination : {add, multiply, divide, smaller, larger}) {
        if (whole == image) add_all(whole, second, combination, false);
      }
      add_all(whole, second, prelu, false);
      add_all(whole, second, subtract, false);
      add_all(whole, second, subtract, true);
      add_all(whole, second, prelu, true);
    }
  }
  for (const Shape& second : {Shape{24}, Shape{1}}) {
    add_all({24}, second, subtract, false);
    add_all({24}, second, larger, true);
  }
  add_all({2, 3, 4, 5}, {2, 1, 4, 1}, subtract, false);
  add_all({2, 3, 4, 5}, {1, 3, 1, 5}, multiply, false);
  add_all({2, 3, 4, 5}, {1, 1, 1, 5}, add, false);
  add_all({4, 3, 2, 2, 3}, {4, 1, 1, 2, 1}, add, true);
  for (const Combination combination : {equal, less, less_or_equal, keep, drop, remainder}) {
    add_all(odd, {3, 1, 1}, combination, false);
  }
  add_all(odd, odd, remainder, false);
  add_all(odd, {1, 7, 5}, remainder, true);
  // However large the quotient is, it is exact.
  for (const auto& [by, tolerance] : {std::pair{0.001F, 1e-7},
                                      {0.3F, 1e-7},
                                      {2.5F, 1e-7},
                                      {-0.75F, 1e-7},
                                      {1.3e-7F, 1e-9},
                                      {9.1e-8F, 1e-9},
                                      {3.7e-20F, 1e-24}}) {
    Combine rest{remainder};
    rest.constant = ConstantOperand{{1, 1, 1}, {by}};
    cases.push_back({fmt::format("remainder_by_{}", by), rest, {odd}, tolerance});
  }
  add_all(odd, odd, keep, true);
  add_all(odd, {1, 7, 5}, less, true);
  for (const Combination combination : {keep, drop, equal}) {
    Combine op{combination};
    op.constant = ConstantOperand{{1, 2, 3}, {0, 1, 0, 1, 1, 0}};
    cases.push_back({fmt::format("{}_by_truths", to_string(combination)), op, {{4, 2, 3}}});
    if (combination == equal) continue;
    op.otherwise = -std::numeric_limits<float>::infinity();
    cases.push_back({fmt::format("{}_by_truths_or_infinity", to_string(combination)), op, {{4, 2, 3}}});
  }
  Combine rises{power};
  rises.constant = ConstantOperand{{3, 1, 1}, {2, 3, -1}};
  cases.push_back({"power_by_channel", rises, {{3, 2, 2}}, 1e-5});
  rises.swapped = true;
  rises.constant->values = {2, 0.5F, 10};
  cases.push_back({"numbers_to_the_power", rises, {{3, 5, 4}}, 1e-5});
  return cases;
}

std::vector<OperatorCase> matmul_cases() {
  std::vector<OperatorCase> cases;
  const auto add = [&](const std::string& name, MatMul op, const std::vector<Shape>& inputs) {
    cases.push_back({name, std::move(op), inputs, 2e-5});
  };
  const auto product = [&](const Shape& left, const Shape& right) {
    add(fmt::format("{}_by_{}", shape_text(left), shape_text(right)), {}, {left, right});
    MatMul by;
    by.constant = ConstantOperand{right, weights(values_of(right), 5)};
    add(fmt::format("{}_by_constant_{}", shape_text(left), shape_text(right)), by, {left});
    MatMul of;
    of.constant_first = true;
    of.constant = ConstantOperand{left, weights(values_of(left), 6)};
    of.then = Elementwise{ElementFunction::relu};
    add(fmt::format("constant_{}_by_{}", shape_text(left), shape_text(right)), of, {right});
  };
  // One value, one term, rows and columns that fill no tile, chunks that are not full; tiles of all sizes.
  product({1, 1}, {1, 1});
  product({1, 7}, {7, 1});
  product({5, 1}, {1, 9});
  product({7, 17}, {17, 33});
  product({33, 16}, {16, 36});
  product({4, 40}, {40, 150});
  product({150, 40}, {40, 3});
  product({65, 70}, {70, 68});
  product({300, 37}, {37, 260});
  // Several matrices, of which one may stand for all, along up to four axes.
  product({3, 9, 5}, {3, 5, 8});
  product({3, 9, 5}, {1, 5, 8});
  product({1, 9, 5}, {3, 5, 8});
  product({2, 1, 4, 6}, {1, 3, 6, 7});
  product({2, 3, 2, 3, 4, 5}, {2, 1, 2, 1, 5, 4});
  // Axes in other orders: transposed, heads in between, and in front.
  const Shape pixels = {9, 3, 10};
  MatMul scores;
  scores.left_order = {1, 0, 2};
  scores.right_order = {1, 2, 0};
  add("scores_of_heads", scores, {pixels, {11, 3, 10}});
  MatMul gram;
  gram.right_order = {0, 2, 1};
  add("gram", gram, {pixels, pixels});
  MatMul turned;
  turned.left_order = {2, 1, 0};
  turned.right_order = {2, 0, 1};
  turned.then = Elementwise{ElementFunction::sigmoid};
  turned.scale = 0.125F;
  add("turned", turned, {{5, 40, 2}, {5, 36, 2}});
  MatMul turned_by;
  turned_by.left_order = {1, 0};
  turned_by.constant = ConstantOperand{{12, 8}, weights(96, 7)};
  add("turned_by_constant", turned_by, {{12, 20}});
  return cases;
}

std::vector<OperatorCase> group_cases() {
  std::vector<OperatorCase> cases;
  const auto reduce = [&](Statistic statistic, const Shape& shape, const std::vector<int>& axes, double tolerance) {
    Reduce op{statistic, axes};
    if (statistic == Statistic::sum_of_squares) op.then = Elementwise{ElementFunction::sqrt};
    cases.push_back({fmt::format("{}_{}_{}", to_string(statistic), shape_text(shape), fmt::join(axes, "_")),
                     op,
                     {shape},
                     tolerance});
  };
  const auto normalize = [&](Normalization normalization, const Shape& shape, const std::vector<int>& axes,
                             const Shape& numbers = {}) {
    Normalize op{normalization, axes, 1e-3F};
    if (!numbers.empty()) {
      op.scale = ConstantOperand{numbers, weights(values_of(numbers), 3)};
      op.shift = ConstantOperand{numbers, weights(values_of(numbers), 4)};
    }
    cases.push_back({fmt::format("{}_{}_{}_{}", to_string(normalization), shape_text(shape), fmt::join(axes, "_"),
                                 shape_text(numbers)),
                     op,
                     {shape},
                     8e-6});
  };
  const std::vector<std::vector<int>> all_axes = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  // One value, one channel, odd extents, many channels beside each other; of a group for a thread, a warp and a block.
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 7, 5}, Shape{5, 3, 9}, Shape{67, 3, 11}}) {
    // All statistics of one shape; of the others, which axes they are along is what can go wrong.
    const bool all = shape == Shape{5, 3, 9};
    for (const std::vector<int>& axes : all_axes) {
      for (int i = 0; i < static_cast<int>(names_of(Statistic{}).names.size()); ++i) {
        const auto statistic = static_cast<Statistic>(i);
        if (all || statistic == Statistic::mean || statistic == Statistic::log_sum_exp) {
          reduce(statistic, shape, axes, 4e-5);
        }
      }
      for (int i = 0; i < static_cast<int>(names_of(Normalization{}).names.size()); ++i) {
        const auto normalization = static_cast<Normalization>(i);
        if (all || normalization == Normalization::deviation) normalize(normalization, shape, axes);
      }
    }
    normalize(Normalization::deviation, shape, {0}, {shape[0], 1, 1});
    normalize(Normalization::deviation, shape, {1, 2}, {shape[0], 1, 1});
    normalize(Normalization::deviation, shape, {2}, {1, 1, shape[2]});
    normalize(Normalization::root_mean_square, shape, {1, 2}, {1, shape[1], shape[2]});
    normalize(Normalization::deviation, shape, {1}, shape);
  }
  for (const std::int64_t features : {1, 31, 33, 300, 2049, 20000}) {
    reduce(Statistic::mean, {features}, {0}, 4e-6);
    reduce(Statistic::log_sum_exp, {features}, {0}, 4e-6);
    normalize(Normalization::deviation, {features}, {0}, {features});
    normalize(Normalization::log_softmax, {features}, {0});
  }
  // Of the channels of a pixel: a warp for all and several, four pixels at once, one number for all channels.
  for (const Shape& shape : {Shape{40, 5, 7}, Shape{200, 3, 11}, Shape{513, 8, 8}}) {
    normalize(Normalization::deviation, shape, {0}, {shape[0], 1, 1});
    normalize(Normalization::softmax, shape, {0});
    normalize(Normalization::length, shape, {0}, {1, 1, 1});
  }
  reduce(Statistic::largest, {3, 70, 40}, {1, 2}, 0);
  reduce(Statistic::sum, {8, 2, 3, 4}, {1, 3}, 4e-6);
  reduce(Statistic::mean, {2, 3, 2, 3, 2, 3}, {0, 2, 4}, 4e-6);
  normalize(Normalization::deviation, {4, 3, 5, 6}, {1, 2, 3}, {4, 3, 1, 1});  // groups of channels
  normalize(Normalization::softmax, {2, 3, 2, 3, 2, 3}, {1, 3, 5});
  normalize(Normalization::deviation, {3, 70, 40}, {1, 2}, {3, 1, 1});
  return cases;
}

std::vector<OperatorCase> half_cases() {
  std::vector<OperatorCase> cases;
  int number = 0;
  std::vector<OperatorCase> tensors;  // operands that are tensors, of few shapes
  for (const OperatorCase& edge : operand_cases()) {
    if (edge.inputs.size() == 2 && (edge.inputs[0] == Shape{6, 5, 8} || edge.inputs[0] == Shape{9, 1, 1})) {
      tensors.push_back(edge);
    }
  }
  std::vector<OperatorCase> channel_groups;  // a few of one warp and of several
  for (const OperatorCase& edge : group_cases()) {
    const Shape& shape = edge.inputs[0];
    const bool few = shape == Shape{5, 3, 9} || shape == Shape{200, 3, 11} || shape == Shape{513, 8, 8};
    if (few && std::holds_alternative<Normalize>(edge.kind)) channel_groups.push_back(edge);
  }
  for (const auto& list : {pool_cases(), channel_cases(), normalization_cases(), copy_cases(), resample_cases(),
                           tensors, channel_groups}) {
    for (const OperatorCase& edge : list) {
      const ElementType element = number % 6 < 3 ? ElementType::f16 : ElementType::bf16;
      int of_edge = number++;
      for (const TensorFormat& format : {TensorFormat{element, TensorLayout::n2chw},
                                         {element, TensorLayout::n8c8hw},
                                         {element, TensorLayout::nchw8},
                                         {ElementType::f32, TensorLayout::n4c8hw}}) {
        // Each edge is taken in one of the formats, and neighbours in the list in different ones.
        if (!is_taken(of_edge++, 4)) continue;
        OperatorCase halves = edge;
        halves.from = format;
        halves.name += "_in_" + to_string(halves.from);
        for (const TensorFormat& to : {halves.from, TensorFormat()}) {
          if (!can_take(edge.kind, edge.inputs[0], halves.from, to)) continue;
          halves.to = to;
          cases.push_back(halves);
          halves.name += "_to_floats";
        }
      }
    }
  }
  return cases;
}

std::vector<OperatorCase> octet_cases(const TensorFormat& octets) {
  std::vector<OperatorCase> cases;
  int turn = 0;
  for (const std::int64_t channels : {1, 7, 8, 9, 12}) {
    ++turn;
    for (const Shape& shape : {Shape{channels, 1, 1}, {channels, 7, 5}, {channels, 3, 11}, {channels, 9, 13}}) {
      // Every other kind is taken, and the others with the next shape.
      int number = ++turn;
      const auto add = [&](const std::string& name, const OperatorKind& kind, std::vector<Shape> others = {}) {
        if (!is_taken(number++, 2)) return;
        OperatorCase edge{.name = fmt::format("{}_{}", name, shape_text(shape)), .kind = kind, .inputs = {shape}};
        edge.inputs.insert(edge.inputs.end(), others.begin(), others.end());
        edge.tolerance = 4e-6;
        edge.from = octets;
        edge.to = can_take(kind, shape, octets, octets) ? octets : TensorFormat();
        if (can_take(kind, shape, octets, edge.to)) cases.push_back(edge);
      };
      // Functions of which zero is not zero, so that what fills up would not be.
      const Elementwise sigmoid{ElementFunction::sigmoid}, hard_sigmoid{ElementFunction::hard_sigmoid, 0.2F, 0.5F};
      add("sigmoid", sigmoid);
      ChannelAffine affine;
      affine.scale = weights(channels, 3);
      affine.shift = weights(channels, 4);
      affine.then = hard_sigmoid;
      add("affine", affine);
      Combine sum, product{Combination::multiply};
      sum.then = sigmoid;
      product.then = hard_sigmoid;
      add("sum", sum, {shape});
      add("product_channel", product, {{channels, 1, 1}});
      add("product_pixel", product, {{1, shape[1], shape[2]}});
      add("less_one_for_all", Combine{Combination::subtract, sigmoid}, {{1, 1, 1}});
      add("max", window(PoolKind::max, 3, 2, 1));
      add("average", window(PoolKind::average, 2, 1, 1));
      add("pad", Pad{{1, 2, 3, 1}, 0.5F});
      add("turned", Transpose{{0, 2, 1}});
      add("picked", Pick{{{0, 1, channels}, {shape[1] - 1, -1, shape[1]}, {0, 2, (shape[2] + 1) / 2}}});
      const float outside = has_places(octets.layout) ? 0 : 0.5F;
      Resample larger{{2}, {1}, outside};  // rows of two, and columns of which the first is outside
      for (std::int32_t i = 0; i < 4; ++i) larger.rows.indices.push_back(static_cast<std::int32_t>(i % shape[1]));
      larger.rows.weights = {0.5F, 0.5F, 1, -0.25F};
      for (std::int32_t i = -1; i < shape[2]; ++i) larger.cols.indices.push_back(i);
      larger.cols.weights.assign(larger.cols.indices.size(), 1.0F);
      add("larger", larger);
      add("lrn", Lrn{5, 0.5F, 0.75F, 1});
      add("lrn_large_window", Lrn{61, 1, 0.75F, 1});
      const std::size_t before = cases.size();
      add("global_average", GlobalAveragePool{});
      if (cases.size() > before && can_take(GlobalAveragePool{}, shape, octets, {})) cases.back().to = {};
      add("global_average_in_octets", GlobalAveragePool{});
      add("squeeze", squeeze(shape, 5, 8, 24));
      add("excite", excite(shape, 5), {{7, 5}});
      Normalize layer{Normalization::deviation, {0}, 1e-3F};
      layer.scale = ConstantOperand{{channels, 1, 1}, weights(channels, 3)};
      layer.shift = ConstantOperand{{channels, 1, 1}, weights(channels, 4)};
      layer.then = sigmoid;
      add("layer_norm", layer);
      add("softmax_of_channels", Normalize{Normalization::softmax, {0}});
      OperatorCase into{.name = fmt::format("into_{}", shape_text(shape)), .kind = Convert{}, .inputs = {shape}};
      OperatorCase back = into;
      into.to = octets;
      back.name = fmt::format("back_{}", shape_text(shape));
      back.from = octets;
      cases.push_back(into);
      cases.push_back(back);
    }
    // Of loose halves: planes that are odd, where a channel or an image begins between words, and even ones, of one
    // tile and of two.
    for (const Shape& shape : {Shape{channels, 1, 1},
                               {channels, 3, 11},
                               {channels, 7, 11},
                               {channels, 1, 2},
                               {channels, 2, 31},
                               {channels, 3, 22},
                               {channels, 2, 65}}) {
      for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
        if (!can_convert({ElementType::f16, TensorLayout::nchw}, octets)) continue;
        const TensorFormat loose = {element, TensorLayout::nchw}, same = {element, octets.layout};
        OperatorCase edge{
            .name = fmt::format("{}_{}", to_string(loose), shape_text(shape)), .kind = Convert{}, .inputs = {shape}};
        edge.from = loose;
        edge.to = octets;
        cases.push_back(edge);
        edge.from = same;
        edge.to = loose;
        cases.push_back(edge);
      }
    }
    const auto groups = static_cast<int>(channels);
    for (const auto& [outputs, filter, stride] : {std::tuple(1, 3, 2), {3, 3, 2}, {1, 7, 1}}) {
      OperatorCase edge = convolution_case(fmt::format("depthwise_{}_{}_{}x{}", channels, outputs, filter, filter),
                                           groups, groups * outputs, 7, filter, stride, filter / 2, 1, true, groups);
      edge.layer->shape.epilogue.function = function_of(Activation::sigmoid);
      edge.layer->weights = rounded(octets.element, edge.layer->weights);
      edge.from = edge.to = octets;
      const bool is_known = !has_places(octets.layout);
      if (groups > 1 && is_known) cases.push_back(edge);  // of one it is no depthwise one
    }
  }
  return cases;
}

std::vector<OperatorCase> linear_cases() {
  std::vector<OperatorCase> cases;
  const auto add = [&](const std::string& name, const Linear& op) {
    cases.push_back({"linear_" + name, op, {{op.in_features}}, 2e-6 * std::sqrt(1.0 + op.in_features / 64.0)});
  };
  add("one_feature", linear(1, 1, false, Activation::none));
  add("one_output", linear(100, 1, true, Activation::none));
  add("prime_shape", linear(97, 31, true, Activation::relu));
  add("vectors", linear(256, 10, true, Activation::none));
  add("with_a_rest", linear(1028, 37, false, Activation::leaky_relu));
  add("odd_features", linear(1031, 5, true, Activation::sigmoid));
  add("many_outputs", linear(33, 1057, true, Activation::silu));
  add("sparse", linear(300, 40, true, Activation::relu, 0.1));
  add("sparse_one_output", linear(1000, 1, false, Activation::none, 0.2));
  add("sparse_many_outputs", linear(257, 1300, true, Activation::none, 0.15));
  add("sparse_large", linear(9216, 24, true, Activation::relu, 0.09));
  add("sparse_nearly_empty", linear(5000, 9, true, Activation::sigmoid, 0.002));
  add("sparse_far_apart", linear(20000, 7, true, Activation::none, 0.0005));
  add("sparse_too_large_for_four_images", linear(30000, 5, false, Activation::none, 0.05));
  add("too_large_for_shared_memory", linear(70000, 3, false, Activation::none, 0.05));
  add("half_zero", linear(512, 33, true, Activation::silu, 0.5));
  add("all_zero", linear(64, 9, true, Activation::none, 0));
  add("all_zero_without_bias", linear(65, 3, false, Activation::none, 0));
  add("relu6", linear(64, 300, true, Activation::relu6));
  return cases;
}

std::vector<OperatorCase> normalization_cases() {
  std::vector<OperatorCase> cases;
  for (const Shape& shape : kImages) {
    const std::string name = shape_text(shape);
    cases.push_back({"lrn_" + name, Lrn{5, 0.5F, 0.75F, 1}, {shape}, 4e-6});
    cases.push_back({"softmax_" + name, Softmax{}, {shape}, 4e-6});
  }
  cases.push_back({"lrn_even", Lrn{4, 2, 0.5F, 2}, {{9, 5, 5}}, 4e-6});
  cases.push_back({"lrn_one_channel", Lrn{1, 1, 1, 1}, {{9, 5, 5}}, 4e-6});
  cases.push_back({"lrn_large_window", Lrn{61, 1, 0.75F, 1}, {{67, 3, 5}}, 4e-6});
  cases.push_back({"lrn_window_over_channels", Lrn{13, 1, 0.75F, 1}, {{3, 4, 4}}, 4e-6});
  for (const std::int64_t features : {1, 31, 32, 33, 1000, 1024, 8192, 10007}) {
    cases.push_back({fmt::format("softmax_{}", features), Softmax{}, {{features}}, 4e-6});
  }
  return cases;
}

std::vector<OperatorCase> order_cases() {
  std::vector<OperatorCase> cases;
  for (const Shape& shape : {Shape{33, 7, 69}, Shape{36, 10, 68}, Shape{17, 9, 5, 35}, Shape{12, 3, 8, 40}}) {
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      cases.push_back({fmt::format("{}_by_{}", shape_text(shape), fmt::join(order, "")), Transpose{order}, {shape}});
    } while (std::ranges::next_permutation(order).found);
  }
  return cases;
}

std::vector<OperatorCase> copy_cases() {
  const Shape image = {3, 5, 4};
  Pad around{{1, 2, 3, 1}, 0.5F}, below{{0, 1, 0, 0}, 0};
  return {
      {"pad_around", around, {image}},
      {"pad_below", below, {{1, 7, 5}}},
      {"pad_nothing", Pad{}, {image}},
      {"pad_many_channels", around, {{67, 3, 5}}},
      {"transpose_rows", Transpose{{0, 2, 1}}, {image}},
      {"transpose_to_nhwc", Transpose{{1, 2, 0}}, {{17, 5, 7}}},
      {"transpose_nothing", Transpose{{0, 1, 2}}, {image}},
      {"shuffle", Transpose{{1, 0, 2, 3}}, {{2, 4, 3, 5}}},
      {"six_axes", Transpose{{5, 0, 3, 1, 4, 2}}, {{2, 3, 2, 3, 2, 3}}},
      // In tiles: of whole fours on both sides, on one, and on none; several tiles along both runs.
      {"transpose_by_fours", Transpose{{1, 2, 0}}, {{72, 4, 33}}},
      {"transpose_matrix", Transpose{{1, 0}}, {{129, 68}}},
      {"transpose_between_others", Transpose{{0, 3, 2, 1}}, {{2, 35, 3, 17}}},
      {"pick_turned_backwards", Pick{{{32, -1, 33}, {1, 1, 3}, {39, -1, 37}}, {2, 1, 0}}, {{33, 5, 40}}},
      {"pick_every_second_turned", Pick{{{3, 1, 20}, {4, -2, 3}, {1, 2, 18}}, {1, 2, 0}}, {{23, 5, 40}}},
      {"pick_turned_repeats", Pick{{{4, 1, 16}, {2, 0, 3}, {4, 1, 32}}, {2, 1, 0}}, {{20, 5, 40}}},
      {"pick_every_second", Pick{{{0, 1, 3}, {0, 2, 3}, {1, 2, 2}}}, {image}},
      {"pick_backwards", Pick{{{0, 1, 3}, {4, -1, 5}, {3, -2, 2}}}, {image}},
      {"pick_one_pixel", Pick{{{0, 1, 3}, {2, 1, 1}, {3, 1, 1}}}, {image}},
      {"pick_every_third_channel", Pick{{{1, 3, 22}, {0, 1, 3}, {0, 1, 5}}}, {{67, 3, 5}}},
      {"pick_halves_in_turn", Pick{{{0, 3, 2}, {2, 1, 4}, {0, 1, 3}, {0, 1, 5}}, {1, 0, 2, 3}}, {{4, 6, 3, 5}}},
      {"pick_in_halves_that_lie_side_by_side", Pick{{{0, 1, 64}, {0, 2, 2}, {0, 1, 5}}, {0, 2, 1}}, {{64, 3, 5}}},
      {"pick_channels_backwards", Pick{{{66, -1, 67}, {0, 1, 3}, {0, 1, 5}}}, {{67, 3, 5}}},
      {"pick_inner_rows", Pick{{{0, 1, 67}, {1, 1, 2}, {0, 1, 5}}}, {{67, 3, 5}}},
      {"pick_first_rows_of_one_channel", Pick{{{0, 1, 1}, {0, 1, 4}, {0, 1, 5}}}, {{1, 7, 5}}},
      {"pick_last_rows_of_one_channel", Pick{{{0, 1, 1}, {3, 1, 4}, {0, 1, 8}}}, {{1, 7, 8}}},
      {"pick_repeats_one_pixel", Pick{{{0, 1, 9}, {0, 0, 4}, {0, 0, 5}}}, {{9, 1, 1}}},
      {"pick_repeats_rows", Pick{{{0, 1, 3}, {4, 0, 7}, {0, 1, 4}}}, {image}},
      {"pick_features", Pick{{{990, -9, 111}}}, {{1000}}},
      {"pick_six_axes",
       Pick{{{1, 1, 1}, {2, -1, 3}, {0, 0, 4}, {0, 2, 2}, {1, -1, 2}, {0, 1, 2}}},
       {{2, 3, 2, 3, 2, 3}}},
  };
}

std::vector<OperatorCase> resample_cases() {
  const Shape image = {3, 5, 4};
  const auto taps = [](int count, std::vector<std::int32_t> indices, std::vector<float> of) {
    return Taps{count, std::move(indices), std::move(of)};
  };
  // Each of the extent's elements `times` times.
  const auto nearest = [](int extent, int times) {
    Taps result;
    for (int i = 0; i < extent * times; ++i) result.indices.push_back(i / times);
    result.weights.assign(result.indices.size(), 1.0F);
    return result;
  };
  const auto weighted = [](int extent, int out, int count) {
    Taps result{count};
    for (int i = 0; i < out * count; ++i) result.indices.push_back((i / count + i % count) % extent);
    result.weights = weights(std::int64_t{out} * count, 9);
    return result;
  };
  const Taps reversed = taps(1, {3, 2, 1, 0}, {1, 1, 1, 1}), one = taps(1, {0}, {1});
  return {
      {"twice_as_large", Resample{nearest(5, 2), nearest(4, 2)}, {image}},
      {"many_channels", Resample{nearest(3, 2), nearest(5, 3)}, {{67, 3, 5}}},
      {"one_pixel", Resample{nearest(1, 7), nearest(1, 5)}, {{9, 1, 1}}},
      {"to_one_pixel", Resample{one, one}, {image}},
      {"turned_round", Resample{nearest(5, 1), reversed}, {image}},
      {"linear", Resample{weighted(5, 9, 2), weighted(4, 7, 2)}, {image}},
      {"cubic", Resample{weighted(11, 5, 4), weighted(13, 17, 4)}, {{5, 11, 13}}},
      {"many_taps", Resample{weighted(11, 2, 11), weighted(13, 3, 13)}, {{5, 11, 13}}, 4e-6},
      {"rows_alone", Resample{weighted(5, 6, 2), nearest(4, 1)}, {image}},
      {"outside",
       Resample{taps(1, {-1, 0, 4, -1}, {1, 1, 1, 1}), taps(2, {-1, -1, 0, 1}, {0, 0, 0.5F, 0.25F}), 0.5F},
       {image}},
  };
}

std::vector<OperatorCase> convert_cases() {
  const TensorFormat formats[] = {{ElementType::f16, TensorLayout::n2chw},  {ElementType::bf16, TensorLayout::n2chw},
                                  {ElementType::f16, TensorLayout::n8c8hw}, {ElementType::bf16, TensorLayout::n8c8hw},
                                  {ElementType::f16, TensorLayout::nchw8},  {ElementType::bf16, TensorLayout::nchw8},
                                  {ElementType::f32, TensorLayout::nchw4},  {ElementType::f32, TensorLayout::n4c8hw},
                                  {ElementType::f16, TensorLayout::nhwc8},  {ElementType::f32, TensorLayout::nhwc4}};
  std::vector<Shape> shapes = kImages;
  const Shape large = {64, 96, 96};  // several pieces a thread
  shapes.push_back(large);
  std::vector<OperatorCase> cases;
  int number = 0;
  for (const Shape& shape : shapes) {
    for (const TensorFormat& format : formats) {
      if (shape == large && !is_taken(number++, 3)) continue;
      const std::string name = fmt::format("{}_{}", to_string(format), shape_text(shape));
      OperatorCase into{.name = "to_" + name, .kind = Convert{}, .inputs = {shape}};
      OperatorCase back = into;
      into.to = format;
      back.name = "from_" + name;
      back.from = format;
      cases.push_back(into);
      cases.push_back(back);
    }
  }
  return cases;
}

std::vector<OperatorCase> loose_cases() {
  constexpr TensorFormat kF16 = {ElementType::f16, TensorLayout::nchw}, kBf16 = {ElementType::bf16, TensorLayout::nchw};
  const TensorFormat others[] = {{},
                                 {ElementType::f16, TensorLayout::n2chw},
                                 {ElementType::bf16, TensorLayout::n2chw},
                                 {ElementType::f16, TensorLayout::n8c8hw},
                                 {ElementType::bf16, TensorLayout::n8c8hw}};
  std::vector<Shape> shapes = kImages;
  shapes.insert(shapes.end(), {{1, 3, 2}, {2, 1, 5}});  // runs of two
  std::vector<OperatorCase> cases;
  const auto add = [&](const Shape& shape, const TensorFormat& from, const TensorFormat& to) {
    cases.push_back({.name = fmt::format("{}_to_{}_{}", to_string(from), to_string(to), shape_text(shape)),
                     .kind = Convert{},
                     .inputs = {shape},
                     .from = from,
                     .to = to});
  };
  const auto add_both = [&](const Shape& shape, const TensorFormat& other) {
    // What rounds twice: a half of the one type is not always one of the other.
    for (const TensorFormat& loose : {kF16, kBf16}) {
      add(shape, loose, other);
      if (other.element == ElementType::f32 || other.element == loose.element) add(shape, other, loose);
    }
  };
  for (const Shape& shape : shapes) {
    for (const TensorFormat& other : others) add_both(shape, other);
  }
  for (const Shape& shape : kFlat) add_both(shape, {});
  // Several pieces a thread, of runs of eight and of one.
  for (const Shape& shape : {Shape{16, 92, 92}, Shape{1, 131, 131}}) {
    add(shape, kF16, {});
    add(shape, others[3], kF16);
  }
  add({3, 11, 13}, others[2], kF16);
  add({3, 11, 13}, others[3], kBf16);
  return cases;
}

std::vector<LargeCase> large_cases() {
  constexpr double kSummed = 1e-4;  // tens of thousands of terms
  return {{"vgg_linear",
           [] { return OperatorCase{"vgg_linear", linear(25088, 4096, true, Activation::relu), {{25088}}, kSummed}; }}};
}

std::vector<OperatorCase> network_cases() {
  Pool alexnet = window(PoolKind::max, 3, 2, 0);
  Pool inception = window(PoolKind::average, 3, 1, 1);
  const Shape stage = {256, 56, 56};
  ChannelAffine affine;
  affine.scale = affine.shift = weights(stage[0], 3);
  constexpr double kSummed = 3e-5, kPowers = 1e-5;  // thousands of terms; approximate powers
  constexpr double kManySummed = 1.5e-4;            // nine thousand, of which thousands one after the other
  return {
      {"resnet_pool", window(PoolKind::max, 3, 2, 1), {{64, 112, 112}}},
      {"alexnet_pool", alexnet, {{96, 55, 55}}},
      {"average_pool", inception, {{288, 35, 35}}},
      {"large_average_pool", window(PoolKind::average, 8, 8, 0), {{64, 64, 64}}},
      {"resnet_average", GlobalAveragePool{}, {{2048, 7, 7}}},
      {"mobilenet_average", GlobalAveragePool{}, {{1024, 14, 14}}},
      {"relu", Elementwise{ElementFunction::relu}, {stage}},
      {"silu", Elementwise{ElementFunction::silu}, {stage}},
      {"affine", affine, {stage}},
      {"residual", Combine{}, {stage, stage}},
      {"squeeze", Combine{Combination::multiply}, {stage, {stage[0], 1, 1}}},
      {"efficientnet_first_squeeze", squeeze({32, 112, 112}, 8, 8, 968), {{32, 112, 112}}},
      {"efficientnet_first_excite", excite({32, 112, 112}, 8), {{32, 112, 112}, {52, 8}}},
      {"efficientnet_28_squeeze", squeeze({240, 28, 28}, 10, 8, 784), {{240, 28, 28}}},
      {"efficientnet_28_excite", excite({240, 28, 28}, 10), {{240, 28, 28}, {30, 10}}},
      {"efficientnet_last_squeeze", squeeze({1152, 7, 7}, 48, 24, 52), {{1152, 7, 7}}},
      {"efficientnet_last_excite", excite({1152, 7, 7}, 48), {{1152, 7, 7}, {48, 48}}},
      {"regnet_many_weights_squeeze", squeeze({1296, 7, 7}, 324, 32, 52), {{1296, 7, 7}}},
      {"regnet_many_weights_excite", excite({1296, 7, 7}, 324), {{1296, 7, 7}, {41, 324}}},
      {"resnet_linear", linear(2048, 1000, true, Activation::none), {{2048}}, kSummed},
      {"alexnet_linear", linear(9216, 4096, true, Activation::relu), {{9216}}, kManySummed},
      {"alexnet_lrn", Lrn{5, 1e-4F, 0.75F, 1}, {{96, 55, 55}}, kPowers},
      {"softmax", Softmax{}, {{1000}}, kPowers},
      {"segmentation_softmax", Softmax{}, {{21, 65, 65}}, kPowers},
      {"transpose", Transpose{{1, 2, 0}}, {stage}},
      {"transpose_back", Transpose{{2, 0, 1}}, {{56, 56, 256}}},
      {"transpose_14", Transpose{{1, 2, 0}}, {{512, 14, 14}}},
      {"transpose_7", Transpose{{1, 2, 0}}, {{512, 7, 7}}},
      {"transpose_heads", Transpose{{1, 2, 0}}, {{197, 12, 64}}},
      {"transpose_boxes", Transpose{{0, 2, 3, 1}}, {{3, 85, 20, 20}}},
      {"transpose_few_channels", Transpose{{1, 2, 0}}, {{12, 112, 112}}},
      {"transpose_nothing", Transpose{{0, 1, 2}}, {stage}},
      {"transpose_nothing_14", Transpose{{0, 1, 2}}, {{512, 14, 14}}},
      {"pad", Pad{{1, 1, 1, 1}, 0}, {stage}},
      {"every_second_pixel", Pick{{{0, 1, 256}, {0, 2, 28}, {0, 2, 28}}}, {stage}},
      {"twice_as_large_nearest", resized_twice(1), {{128, 28, 28}}},
      {"twice_as_large_linear", resized_twice(2), {{128, 28, 28}}},
      convolution_case("convnext_depthwise_56", 96, 96, 56, 7, 1, 3, 1, false, 96),
      {"mean_of_pixels", Reduce{Statistic::mean, {1, 2}}, {{512, 14, 14}}},
      {"largest_of_channels", Reduce{Statistic::largest, {0}}, {stage}},
      {"convnext_norm", Normalize{Normalization::deviation, {0}, 1e-3F}, {{96, 56, 56}}, kPowers},
      {"convnext_norm_of_rows", Normalize{Normalization::deviation, {2}, 1e-3F}, {{56, 56, 96}}, kPowers},
      {"instance_norm", Normalize{Normalization::deviation, {1, 2}, 1e-3F}, {stage}, kPowers},
      {"vit_scores", MatMul{{1, 0, 2}, {1, 2, 0}}, {{197, 6, 64}, {197, 6, 64}}, kSummed},
      {"vit_values", MatMul{{}, {1, 0, 2}}, {{6, 197, 197}, {197, 6, 64}}, kSummed},
      {"softmax_of_rows", Normalize{Normalization::softmax, {2}, 1e-3F}, {{8, 196, 196}}, kPowers},
      {"alexnet_sparse_linear", linear(9216, 4096, true, Activation::relu, 0.09), {{9216}}, kSummed},
      {"vgg_sparse_linear", linear(25088, 1000, true, Activation::relu, 0.04), {{25088}}, kSummed},
      convolution_case("squeezenet_conv_final", 512, 1000, 13, 1, 1, 1),
      convolution_case("squeezenet_conv1", 3, 96, 227, 7, 2, 0),
      convolution_case("resnet_conv1", 3, 64, 224, 7, 2, 3),
      convolution_case("alexnet_conv1", 3, 96, 227, 11, 4, 0),
      convolution_case("resnet_conv_1x1", 256, 64, 56, 1, 1, 0),
      convolution_case("resnet_conv_3x3", 256, 256, 14, 3, 1, 1),
      convolution_case("large_7x7_56", 64, 64, 56, 7, 1, 3),
      convolution_case("large_11x11_28", 64, 64, 28, 11, 1, 5),
      convolution_case("sparse_3x3_7", 512, 512, 7, 3, 1, 1, 0.1),
      convolution_case("sparse_3x3_14_7", 512, 512, 14, 3, 2, 1, 0.1),
      convolution_case("sparse_expand_7", 512, 2048, 7, 1, 1, 0, 0.1, true),
      convolution_case("sparse_squeeze_7", 2048, 512, 7, 1, 1, 0, 0.1),
      convolution_case("sparse_shortcut_7", 1024, 2048, 14, 1, 2, 0, 0.1),
      convolution_case("mobilenet_7", 512, 1024, 7, 1, 1, 0, 0.33),
      convolution_case("inception_8", 448, 384, 8, 3, 1, 1, 0.2),
      convolution_case("depthwise_112", 32, 32, 112, 3, 1, 1, 1, false, 32),
      convolution_case("depthwise_112_56", 64, 64, 112, 3, 2, 1, 1, false, 64),
      convolution_case("depthwise_14", 512, 512, 14, 3, 1, 1, 1, false, 512),
      convolution_case("depthwise_7", 1024, 1024, 7, 3, 1, 1, 1, false, 1024),
      {"lenet_linear", linear(500, 10, true, Activation::none), {{500}}, kSummed},
  };
}

}  // namespace burin_test
