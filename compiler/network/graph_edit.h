// A graph under change: who makes and who reads each tensor, kept right while operators are removed and replaced.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/network/weighted.h"
#include "ir/network.h"
#include "ir/numbered_names.h"

namespace burin {

// Operators are numbered as they were at the beginning until finish(): a removed one leaves its number behind, and
// those that are added have the numbers behind. Their order stays one in which they can run as long as a replacement
// reads nothing that is made after it.
class GraphEdit {
 public:
  explicit GraphEdit(Network network);

  int operators() const { return static_cast<int>(network_.operators.size()); }
  bool removed(int op) const { return removed_[static_cast<std::size_t>(op)]; }
  const Operator& op(int op) const { return network_.operators[static_cast<std::size_t>(op)]; }
  const Activations& tensor(int tensor) const { return network_.tensors[static_cast<std::size_t>(tensor)]; }
  const Network& network() const { return network_; }

  // Null for an operator of another kind, and for none (-1).
  template <typename Kind>
  Kind* as(int op) {
    return op < 0 || removed(op) ? nullptr : std::get_if<Kind>(&network_.operators[static_cast<std::size_t>(op)].kind);
  }
  // Nothing for an operator that is neither convolution nor linear layer, and for none (-1).
  std::optional<Weighted> weighted(int op);
  ConvLayer& layer(const Convolution& op) { return network_.layers[static_cast<std::size_t>(op.layer)]; }
  void set_kind(int op, OperatorKind kind) { network_.operators[static_cast<std::size_t>(op)].kind = std::move(kind); }

  int producer(int tensor) const { return producers_[static_cast<std::size_t>(tensor)]; }  // -1: a network input
  bool is_input(int tensor) const { return producer(tensor) < 0; }
  bool is_output(int tensor) const { return outputs_.contains(tensor); }
  // An operator that reads a tensor twice is there twice.
  const std::multiset<int>& readers(int tensor) const { return readers_[static_cast<std::size_t>(tensor)]; }
  // The one operator that reads the tensor, once; -1 when there are others, or when it is a network output.
  int only_reader(int tensor) const;

  // Its number. Nobody makes or reads it yet; finish() drops it unless somebody makes it.
  int add_tensor(Activations tensor);

  // To this name or, where another tensor has it, to one with a number behind it.
  void rename(int tensor, const std::string& name);

  // Its number. It runs next behind the operator `after`, which was there from the beginning, removed or not. Its
  // output has no producer.
  int add_operator(Operator added, int after);

  // What it read has one reader less; what it made has no producer until another makes it or its readers go elsewhere.
  void remove(int op);
  void replace(int op, Operator by);
  void set_output(int op, int tensor);  // the tensor has no producer
  void set_input(int op, std::size_t input, int tensor);
  // All that read `from` read `to`. `from` is no network output.
  void redirect(int from, int to);

  // Leaves out what was removed: operators, tensors that nobody makes, layers that no convolution uses.
  Network finish();

 private:
  void add_reads(int op);
  void drop_reads(int op);

  Network network_;
  NumberedNames names_;  // of tensors, from the first rename() on
  bool names_filled_ = false;
  std::vector<int> producers_;
  std::vector<std::multiset<int>> readers_;
  std::set<int> outputs_;
  int at_beginning_ = 0;                          // operators
  std::map<int, std::vector<int>> added_behind_;  // of an operator that was there from the beginning
  std::vector<bool> removed_;
};

// Whether axes of more than one element stand in the same order before and after.
bool keeps_order(const Transpose& op, const std::vector<std::int64_t>& input);

}  // namespace burin
