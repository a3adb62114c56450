#include "compiler/network/placement.h"

#include <algorithm>

namespace burin {
namespace {

std::size_t as_index(int index) { return static_cast<std::size_t>(index); }

bool moves_nothing(const Operator& op) {
  return std::holds_alternative<Reshape>(op.kind) || std::holds_alternative<Identity>(op.kind);
}

}  // namespace

Placement::Placement(const Network& network)
    : in_(network.tensors.size(), -1),
      offset_(network.tensors.size()),
      argument_(network.tensors.size()),
      readers_(network.tensors.size()),
      members_(network.tensors.size()) {
  for (std::size_t i = 0; i < network.tensors.size(); ++i) members_[i] = {static_cast<int>(i)};
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    const Operator& op = network.operators[i];
    for (const int input : op.inputs) readers_[as_index(input)].push_back(static_cast<int>(i));
    in_place_.emplace_back(op.inputs.size());
    if (moves_nothing(op)) place(op.output, root(op.inputs[0]), 0);
  }
  for (const int tensor : network.inputs) argument_[as_index(root(tensor))] = true;
  for (const int tensor : network.outputs) argument_[as_index(root(tensor))] = true;
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    const auto* concat = std::get_if<Concat>(&network.operators[i].kind);
    if (concat == nullptr) continue;
    const Operator& op = network.operators[i];
    const std::vector<std::int64_t>& shape = network.tensors[as_index(op.output)].shape;
    if (std::any_of(shape.begin(), shape.begin() + concat->axis, [](std::int64_t extent) { return extent != 1; })) {
      continue;
    }
    std::int64_t begin = 0;
    for (std::size_t input = 0; input < op.inputs.size(); ++input) {
      const int tensor = op.inputs[input];
      if (can_lie_in_concat(network, tensor, static_cast<int>(i))) {
        place(root(tensor), op.output, begin);
        in_place_[i][input] = true;
      }
      begin += network.tensors[as_index(tensor)].elements();
    }
  }
}

int Placement::root(int tensor) const {
  while (in_[as_index(tensor)] >= 0) tensor = in_[as_index(tensor)];
  return tensor;
}

std::int64_t Placement::offset(int tensor) const {
  std::int64_t sum = 0;
  for (; in_[as_index(tensor)] >= 0; tensor = in_[as_index(tensor)]) sum += offset_[as_index(tensor)];
  return sum;
}

bool Placement::is_in_place(int op, std::size_t input) const { return in_place_[as_index(op)][input]; }

bool Placement::can_lie_in_concat(const Network& network, int tensor, int concat) const {
  const int whole = root(tensor);
  if (argument_[as_index(whole)] || whole == root(network.operators[as_index(concat)].output)) return false;
  // A part of another concat.
  if (network.tensors[as_index(whole)].elements() != network.tensors[as_index(tensor)].elements()) return false;
  return std::ranges::all_of(members_[as_index(whole)], [&](int member) {
    return std::ranges::all_of(readers_[as_index(member)], [&](int reader) {
      return !std::holds_alternative<Convolution>(network.operators[as_index(reader)].kind);
    });
  });
}

void Placement::place(int tensor, int in, std::int64_t offset) {
  in_[as_index(tensor)] = in;
  offset_[as_index(tensor)] = offset;
  std::vector<int>& members = members_[as_index(root(in))];
  members.insert(members.end(), members_[as_index(tensor)].begin(), members_[as_index(tensor)].end());
}

}  // namespace burin
