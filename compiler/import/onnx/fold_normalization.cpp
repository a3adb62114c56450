// BatchNormalization of constants. Exporters standardise weights with it, in training mode: by their own mean.
#include <cmath>

#include "compiler/import/onnx/folds.h"
#include "ir/printable.h"

namespace burin {
namespace {

// What a channel is normalized with.
struct Statistics {
  std::vector<double> mean, variance;
};

// visit(channel, position) for each number of x, whose axis 1 is the channels.
template <typename Visit>
void for_each_number(const Extents& shape, std::size_t channels, Visit visit) {
  const Extents strides = strides_of(shape);
  const std::int64_t plane = strides[1], count = *checked_elements(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(i / plane) % channels, static_cast<std::size_t>(i));
  }
}

Statistics own_statistics(const Extents& shape, const std::vector<double>& x, std::size_t channels) {
  Statistics own{std::vector<double>(channels, 0), std::vector<double>(channels, 0)};
  const double each = static_cast<double>(x.size()) / static_cast<double>(channels);
  for_each_number(shape, channels, [&](std::size_t channel, std::size_t i) { own.mean[channel] += x[i] / each; });
  for_each_number(shape, channels, [&](std::size_t channel, std::size_t i) {
    const double difference = x[i] - own.mean[channel];
    own.variance[channel] += difference * difference / each;
  });
  return own;
}

}  // namespace

std::vector<ConstantTensor> fold_batch_normalization(const FoldInputs& in) {
  const Node& node = in.node();
  constexpr float kDefaultEpsilon = 1e-5F, kDefaultMomentum = 0.9F;
  constexpr int kScale = 1, kShift = 2, kMean = 3, kVariance = 4, kLastSpatialOpset = 8, kLastTestFlagOpset = 6;
  const double epsilon = node.attributes().number("epsilon", kDefaultEpsilon);
  const double momentum = node.attributes().number("momentum", kDefaultMomentum);
  if (node.opset() <= kLastSpatialOpset && !node.attributes().boolean("spatial", true)) {
    node.unsupported("attribute 'spatial' is 0; burin normalizes whole channels");
  }
  // Before opset 14 it was of inference where it has one output, whatever the attribute said.
  const bool is_test = node.opset() <= kLastTestFlagOpset && node.attributes().boolean("is_test", false);
  const bool trains = node.attributes().boolean("training_mode", false) || (!is_test && node.outputs() > 1);
  const Extents& shape = in[0].shape;
  if (shape.size() < 2) node.bad_input("its input has the shape {}; it must have channels", extents_text(shape));
  const auto channels = static_cast<std::size_t>(shape[1]);
  const std::vector<double>& x = in.reals(0, "input").values;
  const auto list = [&](int input, std::string_view what) -> const std::vector<double>& {
    const Numbers<double>& numbers = in.reals(input, what);
    if (in[input].shape != Extents{shape[1]} || numbers.depend()) {
      node.bad_input("its {} {} has the shape {}, but its input has {} channels", what, in_quotes(node.input(input)),
                     extents_text(in[input].shape), channels);
    }
    return numbers.values;
  };
  const std::vector<double>&scale = list(kScale, "scale"), &shift = list(kShift, "bias");
  const Statistics given{list(kMean, "mean"), list(kVariance, "variance")};
  const Statistics used = trains && !x.empty() ? own_statistics(shape, x, channels) : given;
  std::vector<double> normal(x.size());
  for_each_number(shape, channels, [&](std::size_t channel, std::size_t i) {
    const double deviation = std::sqrt(used.variance[channel] + epsilon);
    normal[i] = (x[i] - used.mean[channel]) / deviation * scale[channel] + shift[channel];
  });
  std::vector<ConstantTensor> result = {{in[0].type, shape, Numbers<double>(std::move(normal))}};
  if (!trains) return result;
  const auto running = [&](const std::vector<double>& before, const std::vector<double>& now) {
    std::vector<double> mixed(channels);
    for (std::size_t c = 0; c < channels; ++c) mixed[c] = before[c] * momentum + now[c] * (1 - momentum);
    return ConstantTensor{in[0].type, {shape[1]}, Numbers<double>(std::move(mixed))};
  };
  result.push_back(running(given.mean, used.mean));
  result.push_back(running(given.variance, used.variance));
  return result;
}

}  // namespace burin
