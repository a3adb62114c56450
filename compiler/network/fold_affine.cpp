#include <algorithm>
#include <cmath>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// The affine behind the layer: output k becomes scale[k] * output + shift[k].
bool scale_outputs(Weighted& layer, const ChannelAffine& affine) {
  if (layer.function() || layer.has_residual() || layer.pool() != nullptr) return false;
  const std::vector<float> before = layer.weights();
  std::vector<double> bias;
  for (int k = 0; k < layer.outputs(); ++k) {
    const double scale = affine.scale[static_cast<std::size_t>(k)];
    for (int c = 0; c < layer.inputs_per_output(); ++c) {
      for (float& weight : layer.window(k, c)) weight = static_cast<float>(weight * scale);
    }
    bias.push_back(layer.bias(k) * scale + affine.shift[static_cast<std::size_t>(k)]);
  }
  if (all_finite(layer.weights()) && layer.set_bias(bias)) return true;
  layer.weights() = before;
  return false;
}

// The affine before the layer.
bool scale_inputs(Weighted& layer, const ChannelAffine& affine) {
  const bool shifts = std::any_of(affine.shift.begin(), affine.shift.end(), [](float x) { return x != 0; });
  if (shifts && layer.has_padding()) return false;
  const std::vector<float> before = layer.weights();
  std::vector<double> bias;
  for (int k = 0; k < layer.outputs(); ++k) {
    bias.push_back(layer.bias(k));
    for (int c = 0; c < layer.inputs_per_output(); ++c) {
      const auto channel = static_cast<std::size_t>(layer.input_channel(k, c));
      for (float& weight : layer.window(k, c)) {
        bias.back() += static_cast<double>(weight) * affine.shift[channel];
        weight = static_cast<float>(static_cast<double>(weight) * affine.scale[channel]);
      }
    }
  }
  if (all_finite(layer.weights()) && layer.set_bias(bias)) return true;
  layer.weights() = before;
  return false;
}

// `second` after `first`; nothing when a number would be infinite.
std::optional<ChannelAffine> merged(const ChannelAffine& first, const ChannelAffine& second) {
  ChannelAffine both = second;
  for (std::size_t c = 0; c < both.scale.size(); ++c) {
    const double scale = second.scale[c];
    both.scale[c] = static_cast<float>(scale * first.scale[c]);
    both.shift[c] = static_cast<float>(scale * first.shift[c] + second.shift[c]);
  }
  if (!all_finite(both.scale) || !all_finite(both.shift)) return std::nullopt;
  return both;
}

// A factor for all.
bool only_scales(const ChannelAffine& affine) {
  return is_uniform(affine.scale) && std::ranges::all_of(affine.shift, [](float x) { return x == 0; });
}

class AffineFolder {
 public:
  explicit AffineFolder(Network network) : graph_(std::move(network)) {}

  Rewritten run() {
    for (int op = 0; op < graph_.operators(); ++op) {
      if (!graph_.as<ChannelAffine>(op)) continue;
      if (merge_before(op)) ++changes_;
      if (!affine(op).then && (fold_before(op) || fold_behind(op))) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  const ChannelAffine& affine(int op) { return *graph_.as<ChannelAffine>(op); }

  // The operator that makes this one's input, when it is read here alone; else -1.
  int sole_producer(int op) const {
    const int input = graph_.op(op).inputs[0];
    return graph_.only_reader(input) == op ? graph_.producer(input) : -1;
  }

  // An affine before this one. Of more than two in a row, those before were merged already.
  bool merge_before(int op) {
    const int before = sole_producer(op);
    const auto* first = graph_.as<ChannelAffine>(before);
    if (!first || first->then) return false;
    std::optional<ChannelAffine> both = merged(*first, affine(op));
    if (!both) return false;
    graph_.set_kind(op, std::move(*both));
    const int input = graph_.op(before).inputs[0];
    graph_.remove(before);
    graph_.set_input(op, 0, input);
    return true;
  }

  // Products of matrices have a factor of their own.
  bool scale_product(int product, int op) {
    const auto* matmul = graph_.as<MatMul>(product);
    if (matmul == nullptr || !only_scales(affine(op))) return false;
    MatMul scaled = *matmul;
    scaled.scale *= affine(op).scale.front();
    if (!std::isfinite(scaled.scale)) return false;
    graph_.set_kind(product, std::move(scaled));
    return true;
  }

  bool fold_before(int op) {
    const int before = sole_producer(op);
    if (const auto* matmul = graph_.as<MatMul>(before);
        matmul != nullptr && !matmul->then && scale_product(before, op)) {
      const int output = graph_.op(op).output;
      graph_.remove(op);
      graph_.set_output(before, output);
      return true;
    }
    std::optional<Weighted> layer = graph_.weighted(before);
    if (!layer || !scale_outputs(*layer, affine(op))) return false;
    const int output = graph_.op(op).output;
    graph_.remove(op);
    graph_.set_output(before, output);
    return true;
  }

  bool fold_behind(int op) {
    const int input = graph_.op(op).inputs[0], output = graph_.op(op).output;
    const int reader = graph_.only_reader(output);
    if (scale_product(reader, op)) {
      graph_.remove(op);
      graph_.redirect(output, input);
      return true;
    }
    std::optional<Weighted> layer = graph_.weighted(reader);
    if (!layer || graph_.op(reader).inputs[0] != output || !scale_inputs(*layer, affine(op))) return false;
    graph_.remove(op);
    graph_.redirect(output, input);
    return true;
  }

  GraphEdit graph_;
  int changes_ = 0;
};

}  // namespace

Rewritten fold_affine(Network network) { return AffineFolder(std::move(network)).run(); }

}  // namespace burin
