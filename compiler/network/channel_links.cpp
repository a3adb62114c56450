#include "compiler/network/channel_links.h"

#include <algorithm>

namespace burin {
namespace {

using Links = std::optional<std::vector<ChannelLink>>;
using Shape = std::vector<std::int64_t>;

class FindLinks {
 public:
  FindLinks(const Network& network, const Operator& op) : network_(network), op_(op) {}

  Links operator()(const Convolution& op) {
    const ConvShape& shape = network_.layers[static_cast<std::size_t>(op.layer)].shape;
    if (shape.epilogue.residual) link_all(1);
    if (shape.groups == 1) return links_;
    const int inputs = shape.channels_per_group(), outputs = shape.outputs_per_group();
    for (int group = 0; group < shape.groups; ++group) {
      for (int c = 0; c < inputs; ++c) add(0, group * inputs + c, group * outputs);
      for (int k = 1; k < outputs; ++k) add(0, group * inputs, group * outputs + k);
    }
    return links_;
  }
  Links operator()(const Linear&) { return links_; }
  template <OneOf<Squeeze, Excite, MatMul> Kind>
  Links operator()(const Kind&) {
    return std::nullopt;
  }

  template <OneOf<ChannelAffine, Elementwise, Pool, GlobalAveragePool, Pad, Identity, Convert> Kind>
  Links operator()(const Kind&) {
    return link_all(0);
  }
  // What is one value for all channels is no channel of any.
  Links operator()(const Combine& op) {
    if (op.constant) return op.constant->shape[0] == 1 ? link_all(0) : std::nullopt;
    link_all(0);
    return channels(op_.inputs[1]) == channels(op_.inputs[0]) ? link_all(1) : links_;
  }
  Links operator()(const Reduce& op) { return op.axes.front() == 0 ? std::nullopt : link_all(0); }
  Links operator()(const Normalize&) { return std::nullopt; }

  Links operator()(const Concat& op) {
    int offset = 0;
    for (std::size_t input = 0; input < op_.inputs.size(); ++input) {
      link_all(input, op.axis == 0 ? offset : 0);
      offset += channels(op_.inputs[input]);
    }
    return links_;
  }

  Links operator()(const ChannelView& op) {
    for (int c = 0; c < op.channels; ++c) add(0, op.begin + c, c);
    return links_;
  }

  Links operator()(const Pick& op) {
    return op.from(0) == 0 && op.axes[0].is_whole(tensor(op_.inputs[0]).shape[0]) ? link_all(0) : std::nullopt;
  }
  Links operator()(const Resample&) { return link_all(0); }

  // Elements stay where they are: one channel of one side is some of the other, unless they overlap.
  Links operator()(const Reshape&) {
    const std::int64_t in = elements_of_channel(op_.inputs[0]), out = elements_of_channel(op_.output);
    if (in % out != 0 && out % in != 0) return std::nullopt;
    const std::int64_t smaller = std::min(in, out);
    const std::int64_t parts = tensor(op_.output).elements() / smaller;
    for (std::int64_t part = 0; part < parts; ++part) {
      add(0, static_cast<int>(part * smaller / in), static_cast<int>(part * smaller / out));
    }
    return links_;
  }

  Links operator()(const Transpose& op) { return op.order[0] == 0 ? link_all(0) : std::nullopt; }
  Links operator()(const Lrn&) { return std::nullopt; }
  Links operator()(const Softmax&) { return std::nullopt; }

 private:
  const Activations& tensor(int index) const { return network_.tensors[static_cast<std::size_t>(index)]; }
  int channels(int index) const { return static_cast<int>(tensor(index).shape[0]); }
  std::int64_t elements_of_channel(int index) const { return tensor(index).elements() / tensor(index).shape[0]; }

  void add(std::size_t input, int input_channel, int output_channel) {
    links_->push_back({input, input_channel, output_channel});
  }
  Links link_all(std::size_t input, int first_output = 0) {
    for (int c = 0; c < channels(op_.inputs[input]); ++c) add(input, c, first_output + c);
    return links_;
  }

  const Network& network_;
  const Operator& op_;
  Links links_ = std::vector<ChannelLink>();
};

}  // namespace

std::optional<std::vector<ChannelLink>> channel_links(const Network& network, const Operator& op) {
  return std::visit(FindLinks(network, op), op.kind);
}

}  // namespace burin
