#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"
#include "compiler/network/sibling_layer.h"
#include "ir/element_type.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"

namespace burin {
namespace {

// In which order the parts' channels lie, and where in a concat.
struct Arrangement {
  std::vector<int> parts;            // operators
  int concat = -1;                   // that some of them are inputs of; -1: none
  std::size_t first = 0, count = 0;  // of its inputs
  int before = 0;                    // channels of parts that lie before those of the concat
};

class SiblingMerger {
 public:
  SiblingMerger(Network network, const Together& together) : graph_(std::move(network)), together_(together) {
    for (const Activations& tensor : graph_.network().tensors) tensor_names_.give(tensor.name);
    for (int op = 0; op < graph_.operators(); ++op) operator_names_.give(graph_.op(op).name);
  }

  Rewritten run() {
    const int tensors = static_cast<int>(graph_.network().tensors.size());
    for (int tensor = 0; tensor < tensors; ++tensor) merge_readers(tensor);
    return {graph_.finish(), changes_};
  }

 private:
  const ConvLayer& layer(int op) { return graph_.layer(*graph_.as<Convolution>(op)); }
  int channels(int tensor) const { return static_cast<int>(graph_.tensor(tensor).shape[0]); }

  // Null where it is none of channels.
  const Concat* concat_of_channels(int op) {
    const auto* concat = graph_.as<Concat>(op);
    return concat != nullptr && concat->axis == 0 ? concat : nullptr;
  }

  // The concats along the channels that read a tensor, each as often as it does.
  std::vector<int> concats_of(int tensor) {
    std::vector<int> concats;
    for (const int reader : graph_.readers(tensor)) {
      if (concat_of_channels(reader) != nullptr) concats.push_back(reader);
    }
    return concats;
  }

  void merge_readers(int tensor) {
    std::vector<int> waiting;
    for (const int op : graph_.readers(tensor)) {
      if (graph_.as<Convolution>(op) == nullptr || !are_siblings(layer(op).shape, layer(op).shape)) continue;
      // A tensor lies in one concat; in others, and in an output of the network, there would be copies of it.
      const int output = graph_.op(op).output;
      if (!graph_.is_output(output) && concats_of(output).size() <= 1) waiting.push_back(op);
    }
    while (waiting.size() > 1) {
      const ConvShape shape = layer(waiting.front()).shape;
      const auto others = std::stable_partition(waiting.begin(), waiting.end(),
                                                [&](int op) { return are_siblings(shape, layer(op).shape); });
      merge_siblings({waiting.begin(), others});
      waiting.erase(waiting.begin(), others);
    }
  }

  // Those with the smaller windows come first: they have more in common.
  void merge_siblings(std::vector<int> ops) {
    std::ranges::stable_sort(ops, {}, [&](int op) { return layer(op).shape.kernel_h * layer(op).shape.kernel_w; });
    for (std::size_t i = 0; i < ops.size(); i += kMaxSiblings) {
      const std::size_t end = std::min(ops.size(), i + kMaxSiblings);
      std::vector<int> some(ops.begin() + static_cast<std::ptrdiff_t>(i),
                            ops.begin() + static_cast<std::ptrdiff_t>(end));
      while (merge_most(some)) {
      }
    }
  }

  // Merges as many neighbours in the list as can be, and takes them out of it.
  bool merge_most(std::vector<int>& ops) {
    for (std::size_t count = ops.size(); count >= 2; --count) {
      for (std::size_t i = 0; i + count <= ops.size(); ++i) {
        const auto begin = ops.begin() + static_cast<std::ptrdiff_t>(i),
                   end = begin + static_cast<std::ptrdiff_t>(count);
        if (!merge({begin, end})) continue;
        ops.erase(begin, end);
        return true;
      }
    }
    return false;
  }

  bool merge(const std::vector<int>& ops) {
    const std::optional<Arrangement> arrangement = arrange(ops);
    if (!arrangement) return false;
    std::vector<const ConvLayer*> parts, ordered;
    for (const int op : ops) parts.push_back(&layer(op));
    for (const int op : arrangement->parts) ordered.push_back(&layer(op));
    std::optional<ConvLayer> merged = layer_of_siblings(ordered);
    if (!merged || !fits(*arrangement, merged->shape)) return false;
    std::vector<std::string> names;
    for (const ConvLayer* part : parts) names.push_back(part->name);
    merged->name = joint_name(names);
    // Whoever asks for the layer by its name must find this one.
    if (operator_names_.has(merged->name) || (together_ && !together_(*merged, parts))) return false;
    operator_names_.give(merged->name);
    apply(*arrangement, *std::move(merged));
    changes_ += static_cast<int>(ops.size()) - 1;
    return true;
  }

  // Nothing where some output would have to be copied.
  std::optional<Arrangement> arrange(const std::vector<int>& ops) {
    Arrangement arrangement;
    std::vector<std::pair<std::size_t, int>> inside;  // by the concat's inputs
    std::vector<int> outside;
    for (const int op : ops) {
      const int output = graph_.op(op).output;
      const std::vector<int> concats = concats_of(output);
      if (concats.empty()) {
        outside.push_back(op);
        continue;
      }
      if (arrangement.concat >= 0 && arrangement.concat != concats.front()) return std::nullopt;
      arrangement.concat = concats.front();
      const std::vector<int>& inputs = graph_.op(concats.front()).inputs;
      inside.emplace_back(std::ranges::find(inputs, output) - inputs.begin(), op);
    }
    arrangement.parts = outside;
    if (inside.empty()) return arrangement;
    std::ranges::sort(inside);
    arrangement.first = inside.front().first;
    arrangement.count = inside.size();
    if (inside.back().first + 1 != arrangement.first + arrangement.count) return std::nullopt;  // others lie between
    if (!outside.empty() && !may_be_part(arrangement.concat)) return std::nullopt;
    const bool ends_it = arrangement.first + arrangement.count == graph_.op(arrangement.concat).inputs.size();
    if (!outside.empty() && arrangement.first != 0 && !ends_it) return std::nullopt;
    auto at = arrangement.first == 0 ? arrangement.parts.end() : arrangement.parts.begin();
    for (const auto& [input, op] : inside) at = arrangement.parts.insert(at, op) + 1;
    for (const int op : outside) {
      if (arrangement.first == 0) arrangement.before += layer(op).shape.out_channels;
    }
    return arrangement;
  }

  // What the concat makes would be a view: no output of the network, and no part of another concat, is one.
  bool may_be_part(int concat) {
    const int output = graph_.op(concat).output;
    return !graph_.is_output(output) && concats_of(output).empty();
  }

  // Whether what holds all channels is no larger than an image may be.
  bool fits(const Arrangement& arrangement, const ConvShape& merged) {
    std::int64_t all = merged.out_channels;
    if (arrangement.concat >= 0) {
      const Operator& concat = graph_.op(arrangement.concat);
      for (std::size_t i = 0; i < concat.inputs.size(); ++i) {
        const bool is_part = i >= arrangement.first && i < arrangement.first + arrangement.count;
        if (!is_part) all += channels(concat.inputs[i]);
      }
    }
    const std::int64_t pixels = std::int64_t{merged.out_h()} * merged.out_w();
    return all <= kMaxImageBytes / kWordBytes / pixels;
  }

  void apply(const Arrangement& arrangement, ConvLayer merged) {
    struct Output {
      std::string name;  // of the operator that made it
      int tensor = 0, begin = 0;
    };
    std::vector<Output> outputs;
    int begin = 0;
    for (const int op : arrangement.parts) {
      outputs.push_back({graph_.op(op).name, graph_.op(op).output, begin});
      begin += channels(graph_.op(op).output);
    }
    const int first = std::ranges::min(arrangement.parts);
    const int whole =
        graph_.add_tensor({tensor_name(merged.name), {begin, merged.shape.out_h(), merged.shape.out_w()}});
    const Operator convolution = {merged.name, graph_.op(first).kind, graph_.op(first).inputs, whole};
    for (const int op : arrangement.parts) {
      if (op != first) graph_.remove(op);
    }
    graph_.replace(first, convolution);
    graph_.layer(*graph_.as<Convolution>(first)) = std::move(merged);
    if (arrangement.concat >= 0) join(arrangement, whole);
    for (const Output& output : outputs) {
      if (graph_.readers(output.tensor).empty()) continue;
      add_view(output.name, whole, output.begin, output.tensor, first);
    }
  }

  // The concat holds all channels of `merged` where it held those of some parts.
  void join(const Arrangement& arrangement, int merged) {
    Operator concat = graph_.op(arrangement.concat);
    const int output = concat.output;
    const auto begin = concat.inputs.begin() + static_cast<std::ptrdiff_t>(arrangement.first);
    const auto end = begin + static_cast<std::ptrdiff_t>(arrangement.count);
    int all = channels(output) + channels(merged);
    for (auto input = begin; input != end; ++input) all -= channels(*input);
    concat.inputs.insert(concat.inputs.erase(begin, end), merged);
    if (all == channels(output)) return graph_.replace(arrangement.concat, std::move(concat));
    Activations larger = graph_.tensor(output);
    larger.name = tensor_name(larger.name + ".whole");
    larger.shape[0] = all;
    concat.output = graph_.add_tensor(std::move(larger));
    const std::string name = concat.name;
    const int held = concat.output;
    graph_.replace(arrangement.concat, std::move(concat));
    add_view(name, held, arrangement.before, output, arrangement.concat);
  }

  void add_view(const std::string& of, int from, int begin, int output, int after) {
    graph_.add_operator({operator_name(of + ".view"), ChannelView{begin, channels(output)}, {from}, output}, after);
  }

  static std::string shortened(const std::string& name) {
    constexpr std::size_t kNumberBytes = 16;  // that may be put behind it
    return name.size() + kNumberBytes <= kMaxLayerNameBytes ? name : "siblings";
  }
  std::string tensor_name(const std::string& name) { return tensor_names_.give(shortened(name)); }
  std::string operator_name(const std::string& name) { return operator_names_.give(shortened(name)); }

  GraphEdit graph_;
  const Together& together_;
  NumberedNames operator_names_, tensor_names_;
  int changes_ = 0;
};

}  // namespace

Rewritten merge_siblings(Network network, const Together& together) {
  return SiblingMerger(std::move(network), together).run();
}

}  // namespace burin
