#include <optional>
#include <string>
#include <utility>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "compiler/network/sibling_layer.h"
#include "ir/numbered_names.h"

namespace burin {
namespace {

class GateFuser {
 public:
  GateFuser(Network network, const Gates& gates) : graph_(std::move(network)), gates_(gates) {
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
    const int squeeze = next(mean), expand = squeeze < 0 ? -1 : next(squeeze);
    if (expand < 0) return;
    const std::optional<Linear> first = linear_of(squeeze), second = linear_of(expand);
    if (!first || !second) return;
    // What comes behind is an image of one pixel for each channel, as it is or in another shape.
    int last = expand;
    const auto is_image = [&] {
      return graph_.tensor(graph_.op(last).output).shape == std::vector<std::int64_t>{second->out_features, 1, 1};
    };
    while (!is_image()) {
      last = graph_.only_reader(graph_.op(last).output);
      if (last < 0 || graph_.as<Reshape>(last) == nullptr) return;
    }
    const Operator gate = {joint_name({graph_.op(squeeze).name, graph_.op(expand).name}),
                           Gate{*first, *second},
                           {graph_.op(mean).inputs[0]},
                           graph_.op(last).output};
    // Whoever asks for the operator by its name must find this one.
    if (names_.has(gate.name) || (gates_ && !gates_(graph_.network(), gate, parts(mean, last)))) return;
    names_.give(gate.name);
    for (int op = mean; op != last;) {
      const int behind = graph_.only_reader(graph_.op(op).output);
      graph_.remove(op);
      op = behind;
    }
    graph_.replace(last, gate);
    ++changes_;
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
  const Gates& gates_;
  NumberedNames names_;  // of operators
  int changes_ = 0;
};

}  // namespace

Rewritten fuse_gates(Network network, const Gates& gates) { return GateFuser(std::move(network), gates).run(); }

}  // namespace burin
