#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/network/passes.h"
#include "ir/limits.h"
#include "ir/numbered_names.h"

namespace burin {
namespace {

class FormatAssigner {
 public:
  FormatAssigner(Network network, const FormatsOf& formats, const std::map<std::string, OperatorFormats>& chosen)
      : network_(std::move(network)), formats_(formats), chosen_(chosen) {
    for (const Operator& op : network_.operators) operator_names_.give(op.name);
    for (const Activations& tensor : network_.tensors) tensor_names_.give(tensor.name);
    if (network_.separate) {
      free_inputs_.insert(network_.inputs.begin(), network_.inputs.end());
    } else {
      outputs_.insert(network_.outputs.begin(), network_.outputs.end());
    }
  }

  Rewritten run() {
    std::vector<Operator> operators = std::exchange(network_.operators, {});
    for (const Operator& op : operators) {
      for (const int input : op.inputs) readers_[input].push_back(&op);
    }
    for (Operator& op : operators) add(std::move(op));
    return {std::move(network_), conversions_};
  }

 private:
  Activations& tensor_at(int tensor) { return network_.tensors[static_cast<std::size_t>(tensor)]; }
  const Activations& tensor_at(int tensor) const { return network_.tensors[static_cast<std::size_t>(tensor)]; }

  OperatorFormats formats_of(const Operator& op) const {
    if (const auto chosen = chosen_.find(op.name); chosen != chosen_.end()) return chosen->second;
    if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
      return formats_(op, network_.layers[static_cast<std::size_t>(convolution->layer)]);
    }
    const auto* concat = std::get_if<Concat>(&op.kind);
    if (concat == nullptr) return formats_of_other(op);
    if (concat->axis != 0 || tensor_at(op.output).shape.size() != 3) return {};
    // A tensor of which all parts are made in one format has it, too, where they can lie one behind the other.
    const TensorFormat first = made_in(op.inputs[0]);
    std::vector<std::int64_t> channels;
    for (const int input : op.inputs) {
      if (made_in(input) != first) return {};
      channels.push_back(tensor_at(input).shape.front());
    }
    const bool parts = !first.is_loose() && can_be_parts(first.layout, channels);
    return parts ? OperatorFormats{first, first} : OperatorFormats{};
  }

  // What can take its first input as it is made does so.
  OperatorFormats formats_of_other(const Operator& op) const {
    if (std::holds_alternative<Convert>(op.kind)) return {};
    const TensorFormat first = made_in(op.inputs[0]);
    const auto can_write = [&](const TensorFormat& output) {
      return can_take(op.kind, tensor_at(op.inputs[0]).shape, first, output);
    };
    const bool plain = can_write({});
    if (can_write(first) && (!plain || is_read_in(op.output, first))) return {first, first};
    return plain ? OperatorFormats{first, {}} : OperatorFormats{};
  }

  // Whether all who read a tensor want it in the format: convolutions, and others that take it beside a tensor that was
  // made in it.
  bool is_read_in(int tensor, const TensorFormat& format) const {
    const auto readers = readers_.find(tensor);
    return readers != readers_.end() && std::ranges::all_of(readers->second, [&](const Operator* reader) {
             const int first = reader->inputs[0];
             if (is_convolution(*reader)) return first == tensor && formats_of(*reader).input == format;
             return first != tensor && made_in(first) == format &&
                    can_take(reader->kind, tensor_at(first).shape, format, format);
           });
  }

  TensorFormat made_in(int tensor) const {
    const auto found = made_as_.find(tensor);
    return tensor_at(found == made_as_.end() ? tensor : found->second).format;
  }

  void add(Operator op) {
    const OperatorFormats formats = formats_of(op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const bool second = i > 0;
      const bool floats = second && std::holds_alternative<Excite>(op.kind);
      const TensorFormat wanted = second && is_convolution(op) ? formats.output : formats.input;
      op.inputs[i] = in_format(op.inputs[i], floats ? TensorFormat() : wanted);
    }
    const int output = op.output;
    if (!outputs_.contains(output)) tensor_at(output).format = formats.output;
    if (tensor_at(output).format == formats.output) {
      network_.operators.push_back(std::move(op));
      return;
    }
    // The network's outputs have the formats that were asked for.
    const TensorFormat asked = tensor_at(output).format;
    op.output = made_as_[output] = add_tensor(output, formats.output);
    network_.operators.push_back(std::move(op));
    add_conversion(can_convert(formats.output, asked) ? made_as_[output] : in_format(output, {}), output);
  }

  static bool is_convolution(const Operator& op) { return std::holds_alternative<Convolution>(op.kind); }

  // The tensor, or a copy in the format.
  int in_format(int tensor, const TensorFormat& format) {
    if (free_inputs_.contains(tensor)) tensor_at(tensor).format = format;
    if (tensor_at(tensor).format == format) return tensor;
    const auto made = made_as_.find(tensor);
    if (made != made_as_.end() && tensor_at(made->second).format == format) return made->second;
    const auto [entry, is_new] = converted_.try_emplace({tensor, to_string(format)});
    if (is_new) {
      // What was rounded for the caller is not read again.
      const bool from_made = made != made_as_.end() && tensor_at(tensor).format.is_loose();
      const int whole = from_made ? made->second : tensor;
      // Between two formats that no kernel converts a plain copy stands.
      const int from = can_convert(tensor_at(whole).format, format) ? whole : in_format(tensor, {});
      entry->second = add_tensor(tensor, format);
      add_conversion(from, entry->second);
    }
    return entry->second;
  }

  // A name that leaves room for a number behind it.
  static std::string shortened(const std::string& name) {
    constexpr std::size_t kNumberBytes = 16;
    return name.size() + kNumberBytes <= kMaxLayerNameBytes ? name : "converted";
  }

  int add_tensor(int like, const TensorFormat& format) {
    const Activations& tensor = tensor_at(like);
    const std::string name =
        fmt::format("{}.{}", tensor.name, format.is_plain() ? to_string(format.element) : to_string(format.layout));
    network_.tensors.push_back({tensor_names_.give(shortened(name)), tensor.shape, format});
    return static_cast<int>(network_.tensors.size()) - 1;
  }

  void add_conversion(int from, int to) {
    const std::string name = fmt::format("{}.convert", tensor_at(to).name);
    network_.operators.push_back({operator_names_.give(shortened(name)), Convert{}, {from}, to});
    ++conversions_;
  }

  Network network_;
  const FormatsOf& formats_;
  const std::map<std::string, OperatorFormats>& chosen_;
  std::set<int> outputs_;                                // whose format is the one that was asked for
  std::set<int> free_inputs_;                            // whose format is the one in which they are read
  std::map<int, std::vector<const Operator*>> readers_;  // of those that were not added yet
  NumberedNames operator_names_, tensor_names_;
  std::map<int, int> made_as_;  // of a network output, the tensor that it is converted from
  std::map<std::pair<int, std::string>, int> converted_;
  int conversions_ = 0;
};

}  // namespace

Rewritten assign_formats(Network network, const FormatsOf& formats,
                         const std::map<std::string, OperatorFormats>& chosen) {
  if (!formats) return {std::move(network), 0};
  return FormatAssigner(std::move(network), formats, chosen).run();
}

bool has_same_formats(const Network& one, const Network& other) {
  const auto reads_alike = [](const Operator& a, const Operator& b) {
    return a.name == b.name && a.inputs == b.inputs;
  };
  return std::ranges::equal(one.tensors, other.tensors, {}, &Activations::format, &Activations::format) &&
         std::ranges::equal(one.operators, other.operators, reads_alike);
}

}  // namespace burin
