#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "compiler/network/sibling_layer.h"
#include "ir/numbered_names.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class ExcitationFuser {
 public:
  ExcitationFuser(Network network, const Excitations& wanted) : graph_(std::move(network)), wanted_(wanted) {
    for (const Operator& op : graph_.network().operators) names_.give(op.name);
  }

  Rewritten run() {
    const int operators = graph_.operators();
    for (int op = 0; op < operators; ++op) {
      if (is_mean(op)) fuse(op);
    }
    return {graph_.finish(), changes_};
  }

 private:
  bool is_mean(int op) {
    if (graph_.as<GlobalAveragePool>(op) != nullptr) return true;
    const auto* pool = graph_.as<Pool>(op);
    if (pool == nullptr) return false;
    const std::vector<std::int64_t>& image = graph_.tensor(graph_.op(op).inputs[0]).shape;
    return averages_whole(*pool, image[1], image[2]);
  }

  // The one operator that reads what `op` makes, past those that only give it another shape; -1: there is none.
  int next(int op) {
    int reader = graph_.only_reader(graph_.op(op).output);
    while (reader >= 0 && graph_.as<Reshape>(reader) != nullptr) {
      reader = graph_.only_reader(graph_.op(reader).output);
    }
    return reader;
  }

  int next_of(int op) { return graph_.only_reader(graph_.op(op).output); }

  // The operator as a fully connected layer of an image of one pixel.
  std::optional<Linear> linear_of(int op) {
    if (const auto* linear = graph_.as<Linear>(op)) return *linear;
    const auto* convolution = graph_.as<Convolution>(op);
    if (convolution == nullptr) return std::nullopt;
    const ConvLayer& layer = graph_.layer(*convolution);
    const ConvShape& shape = layer.shape;
    const bool sums_one_pixel = shape.groups == 1 && shape.kernel_h == 1 && shape.kernel_w == 1 && shape.in_h == 1 &&
                                shape.in_w == 1 && shape.pad == Padding{};
    if (!sums_one_pixel || shape.epilogue.residual || shape.epilogue.pool) return std::nullopt;
    return Linear{shape.in_channels, shape.out_channels, layer.weights, layer.bias, shape.epilogue.function};
  }

  void fuse(int mean) {
    const int image = graph_.op(mean).inputs[0];
    const int squeeze = next(mean), expand = squeeze < 0 ? -1 : next(squeeze);
    const int product = expand < 0 ? -1 : next(expand);
    if (product < 0 || !multiplies(product, image)) return;
    const std::optional<Linear> first = linear_of(squeeze), second = linear_of(expand);
    if (!first || !second) return;
    // The second half has one place for a user's function, and two functions.
    if ((first->function && first->function->is_user()) || (second->function && second->function->is_user())) return;
    const std::vector<std::int64_t> shape = graph_.tensor(image).shape;
    const Squeeze half = squeeze_of(*first, shape);
    Excitation made;
    made.squeeze = {joint_name({graph_.op(mean).name, graph_.op(squeeze).name}), half, {image}, -1};
    made.excite = {joint_name({graph_.op(expand).name, graph_.op(product).name}),
                   Excite{first->bias, first->function, *second},
                   {image, -1},
                   graph_.op(product).output};
    made.parts = parts(mean, product);
    // Whoever asks for the operators by their names must find these.
    if (names_.has(made.squeeze.name) || names_.has(made.excite.name)) return;
    if (wanted_ && !wanted_(graph_.network(), made)) return;
    names_.give(made.squeeze.name);
    names_.give(made.excite.name);
    for (int op = next_of(mean); op != product;) {
      const int behind = next_of(op);
      graph_.remove(op);
      op = behind;
    }
    made.squeeze.output = made.excite.inputs[1] =
        graph_.add_tensor({made.squeeze.name, {half.parts(shape), half.features}, {}});
    graph_.rename(made.squeeze.output, made.squeeze.name);
    graph_.replace(mean, made.squeeze);
    graph_.replace(product, made.excite);
    ++changes_;
  }

  // Each channel of the image by the value of the operator before it.
  bool multiplies(int op, int image) {
    const auto* combine = graph_.as<Combine>(op);
    if (combine == nullptr || combine->combination != Combination::multiply || combine->constant || combine->then) {
      return false;
    }
    const std::vector<int>& inputs = graph_.op(op).inputs;
    const std::vector<std::int64_t> per_channel = {graph_.tensor(image).shape[0], 1, 1};
    return inputs[0] == image && inputs[1] != image && graph_.tensor(inputs[1]).shape == per_channel;
  }

  // Parts that are large enough to be worth a block, and few enough for every block of the second half to add up.
  static Squeeze squeeze_of(const Linear& layer, const std::vector<std::int64_t>& image) {
    constexpr std::int64_t kPartValues = 1 << 13, kTogether = 8, kVectorPixels = 4, kSums = 4096;
    const std::int64_t most = std::clamp<std::int64_t>(kSums / layer.out_features, 16, 48);
    const auto up = [](std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; };
    const std::int64_t channels = up(ceil_div(image[0], most), kTogether);
    const std::int64_t plane = image[1] * image[2], ranges = ceil_div(channels * plane, kPartValues);
    return {layer.out_features, layer.weights, static_cast<int>(channels),
            static_cast<int>(up(ceil_div(plane, ranges), kVectorPixels))};
  }

  // From one operator on to another one behind it.
  std::vector<const Operator*> parts(int first, int last) {
    std::vector<const Operator*> found = {&graph_.op(first)};
    for (int op = first; op != last;) {
      op = graph_.only_reader(graph_.op(op).output);
      found.push_back(&graph_.op(op));
    }
    return found;
  }

  GraphEdit graph_;
  const Excitations& wanted_;
  NumberedNames names_;  // of operators
  int changes_ = 0;
};

}  // namespace

Rewritten fuse_excitations(Network network, const Excitations& wanted) {
  return ExcitationFuser(std::move(network), wanted).run();
}

}  // namespace burin
