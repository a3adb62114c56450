#include "compiler/network/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool has_kernel(const Operator& op) {
  return !std::holds_alternative<Concat>(op.kind) && !std::holds_alternative<Reshape>(op.kind) &&
         !std::holds_alternative<Identity>(op.kind);
}

// Tensors that must lie alike, as trees.
class Ties {
 public:
  explicit Ties(std::size_t tensors) : parent_(tensors) { std::iota(parent_.begin(), parent_.end(), 0); }
  int of(int tensor) const {
    while (parent_[at(tensor)] != tensor) tensor = parent_[at(tensor)];
    return tensor;
  }
  void tie(int a, int b) { parent_[at(std::max(of(a), of(b)))] = std::min(of(a), of(b)); }

 private:
  std::vector<int> parent_;
};

struct Candidates {
  std::vector<TensorLayout> layouts;  // best first
  bool asked = false;                 // by anyone
  std::vector<std::string> neighbours;

  void accept(const std::vector<TensorLayout>& others, const std::string& who) {
    if (!asked) layouts = others;
    std::erase_if(layouts, [&](TensorLayout layout) { return std::ranges::find(others, layout) == others.end(); });
    asked = true;
    std::vector<std::string_view> names;
    for (const TensorLayout layout : others) names.push_back(to_string(layout));
    neighbours.push_back(fmt::format("{} ({})", who, fmt::join(names, ", ")));
  }
};

}  // namespace

std::vector<TensorLayout> agree_on_layouts(const Network& network, const std::vector<std::vector<int>>& tied,
                                           const LayoutsOf& layouts_of) {
  Ties ties(network.tensors.size());
  for (const std::vector<int>& group : tied) {
    for (const int tensor : group) ties.tie(group.front(), tensor);
  }
  // A second input of another shape has one value for each channel.
  const auto is_like_output = [&](const Operator& op) {
    return network.tensors[at(op.inputs[1])].shape == network.tensors[at(op.output)].shape;
  };
  for (const Operator& op : network.operators) {
    if (has_kernel(op) && op.inputs.size() > 1 && is_like_output(op)) ties.tie(op.inputs[1], op.output);
  }

  std::vector<Candidates> candidates(network.tensors.size());
  const auto accept = [&](int tensor, const std::vector<TensorLayout>& layouts, const std::string& who) {
    candidates[at(ties.of(tensor))].accept(layouts, who);
  };
  const std::vector<TensorLayout> plain = {TensorLayout::nchw};
  // Writers first, so that their order of preference counts.
  for (const Operator& op : network.operators) {
    accept(op.output, has_kernel(op) ? layouts_of(op).writes : plain, in_quotes(op.name) + " writes");
  }
  for (const Operator& op : network.operators) {
    if (!has_kernel(op)) {
      for (const int input : op.inputs) accept(input, plain, in_quotes(op.name) + " reads");
      continue;
    }
    accept(op.inputs[0], layouts_of(op).reads, in_quotes(op.name) + " reads");
    if (op.inputs.size() > 1 && !is_like_output(op)) accept(op.inputs[1], plain, in_quotes(op.name) + " reads");
  }
  for (const int input : network.inputs) accept(input, plain, "an input of the network");
  for (const int output : network.outputs) accept(output, plain, "an output of the network");
  for (const std::vector<int>& group : tied) {
    if (group.size() > 1) accept(group.front(), plain, "what shares its buffer");
  }
  for (std::size_t i = 0; i < network.tensors.size(); ++i) {
    if (network.tensors[i].shape.size() != 3) accept(static_cast<int>(i), plain, "a tensor that is no image");
  }

  std::vector<TensorLayout> layouts;
  for (std::size_t i = 0; i < network.tensors.size(); ++i) {
    const Candidates& found = candidates[at(ties.of(static_cast<int>(i)))];
    if (found.asked && found.layouts.empty()) {
      fail(ErrorKind::unsupported, "tensor {}: no layout suits all that write and read it: {}",
           in_quotes(network.tensors[i].name), fmt::join(found.neighbours, ", "));
    }
    layouts.push_back(found.asked ? found.layouts.front() : TensorLayout::nchw);
  }
  return layouts;
}

}  // namespace burin
