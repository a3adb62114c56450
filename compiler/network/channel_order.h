// Channels in another order: whether all that read or make a tensor can have them so, and what they become then.
#pragma once

#include <optional>
#include <vector>

#include "compiler/network/graph_edit.h"

namespace burin {

// Channel c of a tensor in another order is channel order[c] of the tensor.
using ChannelOrder = std::vector<int>;

// Whether it names each of so many channels once.
bool is_order(const ChannelOrder& order, std::size_t channels);
// order[inverse[c]] is c.
ChannelOrder inverse(const ChannelOrder& order);

// The operator makes a tensor with a name of its own, which all read that read the other one: what keeps its name keeps
// its values.
void make_another_tensor(GraphEdit& graph, int op);

// What reads a tensor up to the convolutions and linear layers whose sums go over its channels, in the order in which
// it can be changed; nothing where something reads it that needs its channels as they are, or that is an output of the
// network. What lies between works channel by channel: functions, affines, pools, means, depthwise convolutions.
std::optional<std::vector<int>> readers_in_any_order(GraphEdit& graph, int tensor);

// Makes these, which are what readers_in_any_order() says, those of a tensor in this order. Tensors between get names
// of their own; who reads `tensor` is not changed.
void reorder_readers(GraphEdit& graph, const std::vector<int>& readers, const ChannelOrder& order);

// Whether its filters can be in another order: a convolution in one group, without residual, makes it.
bool can_make_in_any_order(GraphEdit& graph, int tensor);
void reorder_filters(GraphEdit& graph, int tensor, const ChannelOrder& order);

}  // namespace burin
