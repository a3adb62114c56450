#include "compiler/network/graph_edit.h"

#include "ir/error.h"
#include "ir/limits.h"

namespace burin {

GraphEdit::GraphEdit(Network network) : network_(std::move(network)) {
  producers_.assign(network_.tensors.size(), -1);
  readers_.resize(network_.tensors.size());
  removed_.resize(network_.operators.size());
  outputs_.insert(network_.outputs.begin(), network_.outputs.end());
  at_beginning_ = operators();
  for (int i = 0; i < operators(); ++i) {
    producers_[static_cast<std::size_t>(op(i).output)] = i;
    add_reads(i);
  }
}

std::optional<Weighted> GraphEdit::weighted(int index) {
  if (index < 0 || removed(index)) return std::nullopt;
  return Weighted::of(network_, network_.operators[static_cast<std::size_t>(index)]);
}

int GraphEdit::only_reader(int tensor) const {
  return is_output(tensor) || readers(tensor).size() != 1 ? -1 : *readers(tensor).begin();
}

void GraphEdit::add_reads(int index) {
  for (const int input : op(index).inputs) readers_[static_cast<std::size_t>(input)].insert(index);
}

void GraphEdit::drop_reads(int index) {
  for (const int input : op(index).inputs) {
    auto& readers = readers_[static_cast<std::size_t>(input)];
    readers.erase(readers.find(index));
  }
}

namespace {

// The same operators, each behind those that make what it reads; what is so already stays as it is.
std::vector<Operator> in_order(std::vector<Operator> operators, std::size_t tensors) {
  std::vector<int> producers(tensors, -1);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    producers[static_cast<std::size_t>(operators[i].output)] = static_cast<int>(i);
  }
  std::vector<Operator> ordered;
  ordered.reserve(operators.size());
  std::vector<bool> begun(operators.size()), done(operators.size());
  for (std::size_t first = 0; first < operators.size(); ++first) {
    std::vector<std::size_t> waiting = {first};
    while (!waiting.empty()) {
      const std::size_t at = waiting.back();
      if (!done[at] && !begun[at]) {
        begun[at] = true;
        for (const int input : operators[at].inputs) {
          const int producer = producers[static_cast<std::size_t>(input)];
          if (producer >= 0 && !begun[static_cast<std::size_t>(producer)]) {
            waiting.push_back(static_cast<std::size_t>(producer));
          }
        }
        continue;
      }
      waiting.pop_back();
      if (done[at]) continue;
      done[at] = true;
      ordered.push_back(std::move(operators[at]));
    }
  }
  return ordered;
}

}  // namespace

int GraphEdit::add_operator(Operator added, int after) {
  const int index = operators();
  BURIN_CHECK(producer(added.output) < 0, "tensor {} has a producer", tensor(added.output).name);
  network_.operators.push_back(std::move(added));
  removed_.push_back(false);
  producers_[static_cast<std::size_t>(op(index).output)] = index;
  std::vector<int>& behind = added_behind_[after];
  behind.insert(behind.begin(), index);
  add_reads(index);
  return index;
}

void GraphEdit::remove(int index) {
  drop_reads(index);
  producers_[static_cast<std::size_t>(op(index).output)] = -1;
  removed_[static_cast<std::size_t>(index)] = true;
}

void GraphEdit::replace(int index, Operator by) {
  remove(index);
  removed_[static_cast<std::size_t>(index)] = false;
  network_.operators[static_cast<std::size_t>(index)] = std::move(by);
  producers_[static_cast<std::size_t>(op(index).output)] = index;
  add_reads(index);
}

void GraphEdit::set_output(int index, int tensor) {
  Operator& changed = network_.operators[static_cast<std::size_t>(index)];
  BURIN_CHECK(producer(tensor) < 0, "tensor {} has a producer", this->tensor(tensor).name);
  producers_[static_cast<std::size_t>(changed.output)] = -1;
  changed.output = tensor;
  producers_[static_cast<std::size_t>(tensor)] = index;
}

void GraphEdit::set_input(int index, std::size_t input, int tensor) {
  drop_reads(index);
  network_.operators[static_cast<std::size_t>(index)].inputs[input] = tensor;
  add_reads(index);
}

int GraphEdit::add_tensor(Activations tensor) {
  network_.tensors.push_back(std::move(tensor));
  producers_.push_back(-1);
  readers_.emplace_back();
  return static_cast<int>(network_.tensors.size()) - 1;
}

void GraphEdit::rename(int tensor, const std::string& name) {
  constexpr std::size_t kNumberBytes = 16;
  if (!names_filled_) {
    for (const Activations& other : network_.tensors) names_.give(other.name);
    names_filled_ = true;
  }
  network_.tensors[static_cast<std::size_t>(tensor)].name =
      names_.give(name.size() + kNumberBytes <= kMaxLayerNameBytes ? name : "renamed");
}

void GraphEdit::redirect(int from, int to) {
  BURIN_CHECK(!is_output(from), "network output {} redirected", tensor(from).name);
  for (const int reader : std::exchange(readers_[static_cast<std::size_t>(from)], {})) {
    for (int& input : network_.operators[static_cast<std::size_t>(reader)].inputs) {
      if (input == from) input = to;
    }
    readers_[static_cast<std::size_t>(to)].insert(reader);
  }
}

Network GraphEdit::finish() {
  std::vector<bool> kept(network_.tensors.size());
  for (const int input : network_.inputs) kept[static_cast<std::size_t>(input)] = true;
  std::vector<Operator> operators;
  std::vector<bool> layer_kept(network_.layers.size());
  const auto keep = [&](int index) {
    if (removed(index)) return;
    Operator& op = network_.operators[static_cast<std::size_t>(index)];
    kept[static_cast<std::size_t>(op.output)] = true;
    if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
      layer_kept[static_cast<std::size_t>(convolution->layer)] = true;
    }
    operators.push_back(std::move(op));
  };
  for (int i = 0; i < at_beginning_; ++i) {
    keep(i);
    const auto added = added_behind_.find(i);
    if (added == added_behind_.end()) continue;
    for (const int index : added->second) keep(index);
  }
  network_.operators = in_order(std::move(operators), network_.tensors.size());

  // Moves what is kept to the front and returns the new number of each.
  const auto pack = [](auto& list, const std::vector<bool>& keep) {
    std::vector<int> number(list.size(), -1);
    std::size_t next = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!keep[i]) continue;
      number[i] = static_cast<int>(next);
      if (next != i) list[next] = std::move(list[i]);
      ++next;
    }
    list.resize(next);
    return number;
  };
  const std::vector<int> tensor_number = pack(network_.tensors, kept);
  const std::vector<int> layer_number = pack(network_.layers, layer_kept);
  const auto renumber = [&](int& tensor) { tensor = tensor_number[static_cast<std::size_t>(tensor)]; };
  for (Operator& op : network_.operators) {
    for (int& input : op.inputs) renumber(input);
    renumber(op.output);
    if (auto* convolution = std::get_if<Convolution>(&op.kind)) {
      convolution->layer = layer_number[static_cast<std::size_t>(convolution->layer)];
    }
  }
  for (int& input : network_.inputs) renumber(input);
  for (int& output : network_.outputs) renumber(output);
  return std::move(network_);
}

bool keeps_order(const Transpose& op, const std::vector<std::int64_t>& input) {
  int last = -1;
  for (const int axis : op.order) {
    if (input[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace burin
