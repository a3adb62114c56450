#include "compiler/network/constant_channels.h"

#include <algorithm>
#include <optional>

#include "compiler/network/channel_links.h"
#include "compiler/network/reference_network.h"
#include "compiler/network/weighted.h"
#include "compiler/reference.h"

namespace burin {
namespace {

// The value of all elements of a channel, for each channel of a tensor.
using Constants = std::vector<std::optional<double>>;

// Not where zeros around the image are averaged.
bool keeps_constants(const Pool& pool) {
  return pool.kind == PoolKind::max || !pool.count_padding || pool.pad == Padding{};
}

// What an operator that works channel by channel makes of a constant; nothing when the output is not constant.
class ConstantOutput {
 public:
  ConstantOutput(double value, int channel) : value_(value), channel_(static_cast<std::size_t>(channel)) {}

  std::optional<double> operator()(const ChannelAffine& op) const {
    return value_ * op.scale[channel_] + op.shift[channel_];
  }
  std::optional<double> operator()(const Elementwise& op) const { return reference_element(op, value_); }
  std::optional<double> operator()(const Pool& op) const { return kept_if(value_ == 0 || keeps_constants(op)); }
  std::optional<double> operator()(const Pad& op) const { return kept_if(op.pad == Padding{} || value_ == op.value); }
  template <OneOf<GlobalAveragePool, Concat, Reshape, Transpose, Identity, Convert> Kind>
  std::optional<double> operator()(const Kind&) const {
    return value_;
  }
  // These have functions of their own, or mix channels.
  template <OneOf<Convolution, Linear, Combine, Lrn, Softmax> Kind>
  std::optional<double> operator()(const Kind&) const {
    return std::nullopt;
  }

 private:
  std::optional<double> kept_if(bool constant) const { return constant ? std::optional(value_) : std::nullopt; }

  double value_;
  std::size_t channel_;
};

bool all_zero(std::span<const float> window) {
  return std::all_of(window.begin(), window.end(), [](float weight) { return weight == 0; });
}

class ConstantAbsorber {
 public:
  explicit ConstantAbsorber(Network& network) : network_(network), constants_(network.tensors.size()) {
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      constants_[i].resize(static_cast<std::size_t>(network.tensors[i].shape[0]));
    }
  }

  int run() {
    int absorbed = 0;
    for (Operator& op : network_.operators) {
      if (std::optional<Weighted> layer = Weighted::of(network_, op)) {
        absorbed += absorb(*layer, of(op.inputs[0]));
        find_empty_filters(*layer, op);
      } else if (const auto* combine = std::get_if<Combine>(&op.kind)) {
        this->combine(*combine, op);
      } else {
        pass_on(op);
      }
    }
    return absorbed;
  }

 private:
  Constants& of(int tensor) { return constants_[static_cast<std::size_t>(tensor)]; }

  static int absorb(Weighted& layer, const Constants& inputs) {
    const auto absorbable = [&](const std::optional<double>& value) {
      return value && (*value == 0 || !layer.has_padding());
    };
    if (std::none_of(inputs.begin(), inputs.end(), absorbable)) return 0;
    std::vector<double> bias;
    std::vector<bool> absorbed(inputs.size());
    for (int k = 0; k < layer.outputs(); ++k) {
      bias.push_back(layer.bias(k));
      for (int c = 0; c < layer.inputs_per_output(); ++c) {
        const auto channel = static_cast<std::size_t>(layer.input_channel(k, c));
        if (!absorbable(inputs[channel]) || all_zero(layer.window(k, c))) continue;
        for (const float weight : layer.window(k, c)) bias.back() += *inputs[channel] * weight;
        absorbed[channel] = true;
      }
    }
    if (!layer.set_bias(bias)) return 0;
    for (int k = 0; k < layer.outputs(); ++k) {
      for (int c = 0; c < layer.inputs_per_output(); ++c) {
        const std::span<float> window = layer.window(k, c);
        if (absorbed[static_cast<std::size_t>(layer.input_channel(k, c))])
          std::fill(window.begin(), window.end(), 0.0F);
      }
    }
    return static_cast<int>(std::count(absorbed.begin(), absorbed.end(), true));
  }

  void find_empty_filters(const Weighted& layer, const Operator& op) {
    for (int k = 0; k < layer.outputs(); ++k) {
      const std::optional<double> residual =
          layer.has_residual() ? of(op.inputs[1])[static_cast<std::size_t>(k)] : std::optional(0.0);
      bool empty = residual.has_value();
      for (int c = 0; empty && c < layer.inputs_per_output(); ++c) empty = all_zero(layer.window(k, c));
      if (!empty) continue;
      const double value = reference_activation(layer.activation(), layer.leaky_slope(), layer.bias(k) + *residual);
      if (value != 0 && layer.pool() != nullptr && !keeps_constants(*layer.pool())) continue;
      of(op.output)[static_cast<std::size_t>(k)] = value;
    }
  }

  void combine(const Combine& combine, const Operator& op) {
    const Constants &a = of(op.inputs[0]), &b = of(op.inputs[1]);
    for (std::size_t c = 0; c < a.size(); ++c) {
      if (a[c] && b[c]) {
        of(op.output)[c] = combine.combination == Combination::add ? *a[c] + *b[c] : *a[c] * *b[c];
      } else if (combine.combination == Combination::multiply && (a[c] == 0.0 || b[c] == 0.0)) {
        of(op.output)[c] = 0;
      }
    }
  }

  // An output channel is constant when all channels that it is made of are the same constant.
  void pass_on(const Operator& op) {
    const auto links = channel_links(network_, op);
    if (!links) return;
    Constants& output = of(op.output);
    std::vector<bool> seen(output.size()), varies(output.size());
    for (const ChannelLink& link : *links) {
      const auto channel = static_cast<std::size_t>(link.output_channel);
      const std::optional<double>& value = of(op.inputs[link.input])[static_cast<std::size_t>(link.input_channel)];
      if (!value || (seen[channel] && output[channel] != value)) varies[channel] = true;
      seen[channel] = true;
      output[channel] = value;
    }
    for (std::size_t c = 0; c < output.size(); ++c) {
      if (varies[c]) output[c].reset();
      if (output[c]) output[c] = std::visit(ConstantOutput(*output[c], static_cast<int>(c)), op.kind);
    }
  }

  Network& network_;
  std::vector<Constants> constants_;
};

}  // namespace

int absorb_constants(Network& network) { return ConstantAbsorber(network).run(); }

}  // namespace burin
