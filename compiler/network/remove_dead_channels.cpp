#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/element_functions.h"
#include "compiler/network/channel_links.h"
#include "compiler/network/passes.h"
#include "compiler/network/reference_network.h"
#include "compiler/network/weighted.h"
#include "compiler/reference.h"
#include "ir/tensor_layout.h"

namespace burin {
namespace {

// The value of all elements of a channel, for each channel of a tensor.
using Constants = std::vector<std::optional<double>>;

// Not where zeros around the image are averaged.
bool keeps_constants(const Pool& pool) {
  return pool.kind == PoolKind::max || !pool.count_padding || pool.pad == Padding{};
}

// What a function makes of a number. A user's is not computed: what is compiled must not depend on whether the host
// can.
std::optional<double> constant_of(const std::optional<Elementwise>& function, double value) {
  if (function && function->is_user()) return std::nullopt;
  return reference_function(function, value);
}

// What an operator that works channel by channel makes of a constant; nothing when the output is not constant.
class ConstantOutput {
 public:
  ConstantOutput(double value, int channel) : value_(value), channel_(static_cast<std::size_t>(channel)) {}

  std::optional<double> operator()(const ChannelAffine& op) const {
    const double value = value_ * op.scale[channel_] + op.shift[channel_];
    return constant_of(op.then, value);
  }
  std::optional<double> operator()(const Elementwise& op) const { return constant_of(op, value_); }
  std::optional<double> operator()(const Pool& op) const { return kept_if(value_ == 0 || keeps_constants(op)); }
  std::optional<double> operator()(const Pad& op) const { return kept_if(op.pad == Padding{} || value_ == op.value); }
  // A sum of weights is 1 to rounding alone.
  std::optional<double> operator()(const Resample& op) const {
    const auto is_outside = [](std::int32_t index) { return index < 0; };
    const bool none_outside =
        std::ranges::none_of(op.rows.indices, is_outside) && std::ranges::none_of(op.cols.indices, is_outside);
    return kept_if((none_outside || value_ == op.outside) && (value_ == 0 || (op.rows.copies() && op.cols.copies())));
  }
  std::optional<double> operator()(const Pick&) const { return value_; }
  template <OneOf<GlobalAveragePool, Concat, ChannelView, Reshape, Transpose, Identity, Convert> Kind>
  std::optional<double> operator()(const Kind&) const {
    return value_;
  }
  // These have functions of their own, or mix channels.
  template <OneOf<Convolution, Linear, Combine, Squeeze, Excite, Lrn, Softmax, Reduce, Normalize, MatMul> Kind>
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

// Takes constant channels, which hold one number whatever the network's inputs are, out of the convolutions and linear
// layers that read them: value * sum of weights is added to the bias, and the weights become zero. Where padding would
// mix zeros with another constant, the layer stays as it is.
class ConstantAbsorber {
 public:
  explicit ConstantAbsorber(Network& network) : network_(network), constants_(network.tensors.size()) {
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      constants_[i].resize(static_cast<std::size_t>(network.tensors[i].shape[0]));
    }
  }

  // How many channels layers have ceased to read.
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
      const bool last = layer.adds_residual_last();
      std::optional<double> value = constant_of(layer.function(), layer.bias(k) + (last ? 0.0 : *residual));
      if (!value) continue;
      if (last) *value += *residual;
      if (*value != 0 && layer.pool() != nullptr && !keeps_constants(*layer.pool())) continue;
      of(op.output)[static_cast<std::size_t>(k)] = value;
    }
  }

  void combine(const Combine& combine, const Operator& op) {
    if (combine.constant) return;
    const Constants &a = of(op.inputs[0]), &b = of(op.inputs[1]);
    if (a.size() != b.size()) return;
    for (std::size_t c = 0; c < a.size(); ++c) {
      std::optional<double>& result = of(op.output)[c];
      if (a[c] && b[c] && combine.user == nullptr) {
        result = combine.swapped ? reference_combination(combine, *b[c], *a[c])
                                 : reference_combination(combine, *a[c], *b[c]);
      } else if (combine.combination == Combination::multiply && (a[c] == 0.0 || b[c] == 0.0)) {
        result = 0;
      }
      if (result) result = constant_of(combine.then, *result);
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

// All channels of all tensors, in classes of those that stand or fall together, and which classes are needed.
class ChannelClasses {
 public:
  explicit ChannelClasses(Network& network) : network_(network) {
    for (const Activations& tensor : network_.tensors) {
      first_.push_back(parents_.size());
      parents_.resize(parents_.size() + static_cast<std::size_t>(tensor.shape[0]));
    }
    first_.push_back(parents_.size());
    std::iota(parents_.begin(), parents_.end(), std::size_t{0});
    unite();
    members_.resize(parents_.size());
    for (std::size_t node = 0; node < parents_.size(); ++node) members_[root(node)].push_back(node);
    needed_.resize(parents_.size());
    find_needed();
    fill_parts();
  }

  // The channels of a tensor that stay, in order.
  std::vector<int> kept(int tensor) {
    std::vector<int> channels;
    for (std::size_t node = first(tensor); node < first(tensor + 1); ++node) {
      if (needed_[root(node)]) channels.push_back(static_cast<int>(node - first(tensor)));
    }
    return channels;
  }

 private:
  std::size_t first(int tensor) const { return first_[static_cast<std::size_t>(tensor)]; }
  std::size_t node(int tensor, int channel) const { return first(tensor) + static_cast<std::size_t>(channel); }

  std::size_t root(std::size_t node) {
    while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
    return node;
  }

  void unite() {
    layers_.resize(network_.tensors.size());
    for (Operator& op : network_.operators) {
      layers_[static_cast<std::size_t>(op.output)] = &op;
      const auto links = channel_links(network_, op);
      if (!links) {
        fixed_.insert(fixed_.end(), op.inputs.begin(), op.inputs.end());
        fixed_.push_back(op.output);
        continue;
      }
      for (const ChannelLink& link : *links) {
        parents_[root(node(op.inputs[link.input], link.input_channel))] = root(node(op.output, link.output_channel));
      }
    }
  }

  void find_needed() {
    fixed_.insert(fixed_.end(), network_.inputs.begin(), network_.inputs.end());
    fixed_.insert(fixed_.end(), network_.outputs.begin(), network_.outputs.end());
    for (const int tensor : fixed_) {
      for (std::size_t node = first(tensor); node < first(tensor + 1); ++node) need(node);
    }
    spread();
    // No tensor may become empty.
    for (int tensor = 0; tensor < static_cast<int>(network_.tensors.size()); ++tensor) {
      bool any = false;
      for (std::size_t node = first(tensor); !any && node < first(tensor + 1); ++node) any = needed_[root(node)];
      if (any) continue;
      need(first(tensor));
      spread();
    }
  }

  // A part of a concat that had a multiple of eight channels keeps one: it can then be a slice of a tensor in which
  // eight channels lie side by side.
  void fill_parts() {
    const auto together = static_cast<std::size_t>(channels_together(TensorLayout::n8c8hw));
    for (const Operator& op : network_.operators) {
      const auto* concat = std::get_if<Concat>(&op.kind);
      if (concat == nullptr || concat->axis != 0) continue;
      for (const int part : op.inputs) {
        if ((first(part + 1) - first(part)) % together != 0) continue;
        for (std::size_t node = first(part); kept(part).size() % together != 0; ++node) {
          need(node);
          spread();
        }
      }
    }
  }

  void need(std::size_t node) {
    const std::size_t of_class = root(node);
    if (needed_[of_class]) return;
    needed_[of_class] = true;
    waiting_.push_back(of_class);
  }

  // What a filter that stays reads with a nonzero must stay as well.
  void spread() {
    while (!waiting_.empty()) {
      const std::size_t of_class = waiting_.back();
      waiting_.pop_back();
      for (const std::size_t member : members_[of_class]) need_inputs(member);
    }
  }

  void need_inputs(std::size_t member) {
    const auto tensor =
        static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), member) - first_.begin() - 1);
    Operator* op = layers_[tensor];
    const std::optional<Weighted> layer = op ? Weighted::of(network_, *op) : std::nullopt;
    if (!layer) return;
    const int k = static_cast<int>(member - first_[tensor]);
    for (int c = 0; c < layer->inputs_per_output(); ++c) {
      if (!all_zero(layer->window(k, c))) need(node(op->inputs[0], layer->input_channel(k, c)));
    }
  }

  Network& network_;
  std::vector<std::size_t> first_;                 // node of each tensor's channel 0, and the number of nodes
  std::vector<std::size_t> parents_;               // union-find
  std::vector<std::vector<std::size_t>> members_;  // of each root
  std::vector<Operator*> layers_;                  // what makes each tensor
  std::vector<int> fixed_;                         // tensors that keep all channels
  std::vector<bool> needed_;                       // roots
  std::vector<std::size_t> waiting_;               // needed roots whose inputs have not been looked at
};

template <typename Value>
std::vector<Value> picked(const std::vector<Value>& values, const std::vector<int>& indices) {
  std::vector<Value> result;
  if (values.empty()) return result;
  for (const int i : indices) result.push_back(values[static_cast<std::size_t>(i)]);
  return result;
}

class ChannelRemover {
 public:
  explicit ChannelRemover(Network& network) : network_(network) {
    ChannelClasses classes(network);
    for (int i = 0; i < static_cast<int>(network.tensors.size()); ++i) kept_.push_back(classes.kept(i));
  }

  // How many filters went.
  int run() {
    int removed = 0;
    for (Operator& op : network_.operators) {
      if (const auto layer = Weighted::of(network_, op)) {
        removed += layer->outputs() - static_cast<int>(kept(op.output).size());
        shrink(*layer, op);
      } else if (auto* affine = std::get_if<ChannelAffine>(&op.kind)) {
        affine->scale = picked(affine->scale, kept(op.output));
        affine->shift = picked(affine->shift, kept(op.output));
      } else if (auto* view = std::get_if<ChannelView>(&op.kind)) {
        const std::vector<int>& whole = kept(op.inputs[0]);
        view->begin = static_cast<int>(std::ranges::lower_bound(whole, view->begin) - whole.begin());
        view->channels = static_cast<int>(kept(op.output).size());
      } else if (auto* pick = std::get_if<Pick>(&op.kind)) {
        pick->axes[pick->from(0)].extent = static_cast<std::int64_t>(kept(op.output).size());
      } else if (auto* reshape = std::get_if<Reshape>(&op.kind)) {
        reshape->shape[0] = static_cast<std::int64_t>(kept(op.output).size());
      }
    }
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      network_.tensors[i].shape[0] = static_cast<std::int64_t>(kept_[i].size());
    }
    return removed;
  }

 private:
  const std::vector<int>& kept(int tensor) const { return kept_[static_cast<std::size_t>(tensor)]; }

  void shrink(const Weighted& layer, Operator& op) {
    const std::vector<int>&inputs = kept(op.inputs[0]), &outputs = kept(op.output);
    const auto all = [](const std::vector<int>& some, int count) {
      return some.size() == static_cast<std::size_t>(count);
    };
    if (all(inputs, layer.inputs()) && all(outputs, layer.outputs())) return;  // weights may be many
    std::vector<bool> stays(static_cast<std::size_t>(layer.inputs()));
    for (const int c : inputs) stays[static_cast<std::size_t>(c)] = true;
    std::vector<float> weights;
    for (const int k : outputs) {
      for (int c = 0; c < layer.inputs_per_output(); ++c) {
        if (!stays[static_cast<std::size_t>(layer.input_channel(k, c))]) continue;
        const std::span<const float> window = layer.window(k, c);
        weights.insert(weights.end(), window.begin(), window.end());
      }
    }
    if (auto* linear = std::get_if<Linear>(&op.kind)) {
      linear->weights = std::move(weights);
      linear->bias = picked(linear->bias, outputs);
      linear->in_features = static_cast<int>(inputs.size());
      linear->out_features = static_cast<int>(outputs.size());
      return;
    }
    ConvLayer& conv = network_.layers[static_cast<std::size_t>(std::get<Convolution>(op.kind).layer)];
    const int outputs_per_group = conv.shape.outputs_per_group();
    conv.weights = std::move(weights);
    conv.bias = picked(conv.bias, outputs);
    conv.shape.in_channels = static_cast<int>(inputs.size());
    conv.shape.out_channels = static_cast<int>(outputs.size());
    if (conv.shape.groups > 1) conv.shape.groups = conv.shape.out_channels / outputs_per_group;  // whole ones stay
  }

  Network& network_;
  std::vector<std::vector<int>> kept_;  // channels of each tensor
};

}  // namespace

Rewritten remove_dead_channels(Network network) {
  Rewritten result{std::move(network), 0};
  for (int changes = -1; changes != 0; result.changes += changes) {
    changes = ConstantAbsorber(result.network).run();
    changes += ChannelRemover(result.network).run();
  }
  return result;
}

}  // namespace burin
