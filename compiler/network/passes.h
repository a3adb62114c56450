// What makes a graph simpler before its layers are compiled, in the order in which simplify() runs it. Each takes a
// graph that verify() finds no fault with and returns one that computes the same, to rounding.
//
// What holds for all: network inputs and outputs keep their names, shapes and order; a tensor that is an output or has
// several readers is not fused away; what keeps its name keeps its values, but for channels that were removed; a step
// that would make a weight or a bias infinite is left out.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/network.h"

namespace burin {

struct Rewritten {
  Network network;
  int changes = 0;  // operators removed or changed, for channels their number; 0: the network is what it was
};

// Operators whose output nobody reads, and their layers.
Rewritten drop_unread(Network network);

// What changes nothing: Identity, a Reshape or Transpose to the same shape, Pad by nothing, Concat of one tensor, a
// clip without bounds, a Pick or Resample that takes all as it is. A Reshape of a Reshape reads what the first one
// read; a Transpose that moves only axes of extent 1 becomes a Reshape. An identity from a network input to a network
// output stays: it is a copy.
Rewritten drop_identities(Network network);

// A concat whose first tensors are all that another one before it is made of reads that other one instead: each layer
// of a DenseNet reads all before it, and so they lie in one place, to which each adds its own. Views that are all of a
// tensor, one behind the other, are that tensor.
Rewritten nest_concats(Network network);

// A transpose comes behind the function, normalization, reduction or sum with a constant that reads it, which works on
// other axes instead, and behind the sum, product or concat of tensors that are all transposed alike; of two transposes
// in a row one is made. Products of matrices read what was transposed, and layers behind a transpose that is flattened
// have their weights in its order. So networks whose channels are the last axis lose their transposes. Where others
// read a transpose it stays, and an operator passes it only if the transpose behind moves nothing or meets one back. Of
// two transposes with a Reshape between them one is made; where products of matrices read a view or a change of shape
// of what was transposed, that stands before the transpose; and a sum of one tensor that is transposed and one that is
// not is transposed itself where what reads it is transposed back.
Rewritten sink_transposes(Network network);

// Operators that compute a function of one tensor, element by element, become that function where burin has it: gelu
// and its approximation, mish, silu, tanh, hard_swish, softplus, softsign, in whatever way a file spells them.
// Functions are known by their values at many points, to 2e-6 (1 + |x|), since files write constants with more or fewer
// digits.
Rewritten name_functions(Network network);

// Pad with zeros becomes the padding of the convolution or pool behind it. For a maximum only where no value before it
// is negative, since its own padding never wins.
Rewritten fold_pad(Network network);

// A function or ChannelAffine behind operators that move the values of a layer (Reshape, Transpose, a Pick of at least
// half of them) stands before these instead, where it can become part of the layer: of a ConvTranspose, what follows
// depth-to-space. An affine only where each channel before becomes part of one behind. Of two tensors that were given
// another shape alike, the Combine is given it.
Rewritten lift_functions(Network network);

// ChannelAffine goes into the weights of the convolution or linear layer before it (which must have neither activation
// nor residual yet) or else behind it: there only with no padding or without a shift, since padding zeros are not
// shifted. Of two in a row one is made.
Rewritten fold_affine(Network network);

// Activations go into the convolution or linear layer before them; the sum of a convolution's output and another tensor
// becomes its residual. In this order, which is that of Epilogue: bias, residual, activation, or bias, activation,
// residual. Of two convolutions that are added, the one with the longer way from the inputs takes the sum (of equals
// the later): the other can run beside that way. Other functions go into the sum, product, normalization or reduction
// before them.
Rewritten fuse_epilogues(Network network);

// Picks and transposes that read nothing but a pick or a transpose take theirs from what that one read, which goes
// where nobody else reads it: of two in a row one pick is made, or a ChannelView where that is what it takes. A view of
// what was another axis before does the same.
Rewritten merge_picks(Network network);

// A channel shuffle (reshape, transpose, reshape) in front of convolutions and linear layers becomes another order of
// their input channels, through everything between them that works channel by channel. Where views share out what was
// shuffled of a concat (ShuffleNet's units), those channels that only such layers read come to follow each other: the
// filters of the convolutions that make them are put in another order, and what another view takes is one pick.
Rewritten order_channels(Network network);

// A channel that is the same for all pixels and images, such as the output of a filter without a nonzero, goes into the
// biases of the convolutions and linear layers that read it (where their padding is none, or the channel is zero), and
// a channel that nobody reads is removed, with its weights, through everything that works channel by channel. Sides of
// a Combine lose a channel together or not at all; a group of a grouped convolution goes as a whole; of every tensor
// at least one channel stays, and of a part of a concat that had a multiple of eight channels such a number.
Rewritten remove_dead_channels(Network network);

// A pool goes into the convolution that makes its input, a mean over images too. A pool of convolutions side by side (a
// concat along the channels) goes into each of them. Not where windows overlap so much that the tiles of the
// convolution would compute many pixels twice, not where a window has more pixels than a block has threads, and not
// where `stays_apart`, if there is one, says so of the pool, by its operator's name, and of a convolution that would
// take it.
using StaysApart = std::function<bool(const std::string& op, const ConvLayer& layer, const Pool& pool)>;
Rewritten fuse_pools(Network network, const StaysApart& stays_apart);

// Convolutions that read the same tensor become one, whose output channels are those of the first, then of the second:
// its launch is one launch. Their outputs have the same size, their steps, activations and pools are the same, and they
// have neither groups, dilation nor residual; a smaller filter is a larger one with zeros around it, which are not more
// than three times the weights. Who reads a part of the output reads a ChannelView. The channels are in an order in
// which nothing is copied: those that a concat puts side by side are so, and where others are beside them the concat
// holds these too, and is a ChannelView of what it has become. A convolution that would have to be copied stays by
// itself, and so does one whose output is the network's. At most kMaxSiblings become one, and only where `together`, if
// there is one, says so of the layer that would be made, by its name, which says what it is made of, and of its parts.
inline constexpr std::size_t kMaxSiblings = 6;
using Together = std::function<bool(const ConvLayer& merged, const std::vector<const ConvLayer*>& parts)>;
Rewritten merge_siblings(Network network, const Together& together);

// A mean over the image, the two fully connected layers behind it and the product of the image with what they give, as
// squeeze-and-excitation has them, become a Squeeze and an Excite, where nobody else reads what is between. Of
// convolutions too, which read an image of one pixel, and with changes of shape between them. Only where `wanted`, if
// there is one, says so of the operators that would be made, by their names, which say what they are made of, and of
// those that they are made of. simplify() does this when there is nothing else to do: they are of no use to the other
// passes.
struct Excitation {
  Operator squeeze, excite;
  std::vector<const Operator*> parts;
};
using Excitations = std::function<bool(const Network& network, const Excitation& made)>;
Rewritten fuse_excitations(Network network, const Excitations& wanted);

// A depthwise convolution goes into the convolution that makes its input, as a pool that filters (Epilogue), where
// nobody else reads that input. Only where `wanted` says so of the layer that would be made, by its name, which says
// what it is made of, and of both parts; without it nowhere. Several threads ask. simplify() does this when there is
// nothing else to do.
using Windowed = std::function<bool(const ConvLayer& made, const ConvLayer& convolution, const ConvLayer& depthwise)>;
Rewritten fuse_depthwise(Network network, const Windowed& wanted, int jobs = 0);

// What of a graph depends on the kernels that will be made for it.
struct GraphChoices {
  StaysApart stays_apart;
  Together together;
  Excitations excitations = {};
  Windowed windowed = {};
  int jobs = 0;  // threads that ask; 0: as many as there are processors
};

// Called after each pass; `changes` 0 means that it left the network as it was. A dump of print(network) belongs here.
using PassObserver = std::function<void(const std::string& pass, const Network& network, int changes)>;

// Runs the passes in their order, and again until none finds anything more to do; of those later rounds the observer
// hears only what changed something. Without choices every pool goes into a convolution that can, siblings and the
// squeeze-and-excitations become two operators wherever they can, and depthwise convolutions stay what they are. The
// network must be one that verify() finds no fault with, and the result is one. A network without a graph is returned
// as it is.
Network simplify(Network network, const PassObserver& observe = {}, const GraphChoices& choices = {});

using FormatsOf = std::function<OperatorFormats(const Operator& op, const ConvLayer& layer)>;

// Takes a graph that is as simple as it gets, for the programs of a batch size: each tensor is in the format in which
// it is made, and where it is read in another, a Convert stands. Convolutions have the formats that they are asked for,
// a concat along the channels that of its parts if it is the same one, all others float32 in nchw. The inputs and
// outputs of a network whose operators are not separate keep what they have: float32 in nchw, or loose halves. Without
// `formats` nothing changes. Operators that are `chosen`, by their names, whatever they are, have those formats.
Rewritten assign_formats(Network network, const FormatsOf& formats,
                         const std::map<std::string, OperatorFormats>& chosen = {});

// Says of two graphs that assign_formats() has made of one whether all tensors are in the same formats, and all
// operators read the same ones.
bool has_same_formats(const Network& one, const Network& other);

}  // namespace burin
