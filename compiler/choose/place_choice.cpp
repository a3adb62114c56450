#include "compiler/choose/place_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/choose/least_sum.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

constexpr std::size_t kWays = 4;  // plain or in places, on both sides

class PlaceChooser {
 public:
  PlaceChooser(const Network& network, const LayerPrecisions& precisions, int jobs, const ConvolutionTime& time)
      : network_(network),
        precisions_(precisions),
        jobs_(jobs),
        time_(time),
        within_(network.tensors.size()),
        plain_(network.tensors.size(), false),
        elements_(network.tensors.size()) {
    std::iota(within_.begin(), within_.end(), 0);
  }

  PlaceChoice run() {
    join_tensors();
    find_users();
    if (!ask_for_places()) return {};
    ask_for_plain();
    const auto [problem, variables] = as_sum();
    const LeastSum least = least_sum(problem);
    PlaceChoice choice{.formats = {}, .exact = least.exact};
    for (const User& user : convolutions_) {
      const auto in_places = [&](std::size_t tensor) {
        return is_open(tensor) && least.chosen[at(variables[tensor])] != 0;
      };
      const std::size_t way = (in_places(user.reads) ? 1U : 0U) + (in_places(user.writes) ? 2U : 0U);
      if (way != 0) choice.formats.emplace(user.op->name, formats_of(user, way));
    }
    return choice;
  }

 private:
  // A convolution, and the tensors that what it reads and writes lie with.
  struct User {
    const Operator* op = nullptr;
    const ConvLayer* layer = nullptr;
    std::size_t reads = 0, writes = 0;
    std::array<double, kWays> us = {};
  };

  static std::size_t at(int tensor) { return static_cast<std::size_t>(tensor); }
  std::size_t root(int tensor) const {
    while (within_[at(tensor)] != tensor) tensor = within_[at(tensor)];
    return at(tensor);
  }
  void join(int tensor, int other) {
    const std::size_t one = root(tensor), two = root(other);
    if (one == two) return;
    within_[two] = static_cast<int>(one);
    if (plain_[two] || (elements_[one] && elements_[two] && elements_[one] != elements_[two])) plain_[one] = true;
    if (!elements_[one]) elements_[one] = elements_[two];
  }
  void keep_plain(int tensor) { plain_[root(tensor)] = true; }
  void hold(int tensor, ElementType element) {
    std::optional<ElementType>& known = elements_[root(tensor)];
    if (known && *known != element) keep_plain(tensor);
    known = element;
  }

  // Tensors that must lie alike are one; what others than convolutions compute with is plain.
  void join_tensors() {
    for (const auto* ends : {&network_.inputs, &network_.outputs}) {
      for (const int end : *ends) keep_plain(end);
    }
    for (const Operator& op : network_.operators) {
      const TensorFormat places = {ElementType::f16, TensorLayout::nchw8};
      const std::vector<std::int64_t>& shape = network_.tensors[at(op.inputs[0])].shape;
      if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
        const ConvLayer& layer = network_.layers[at(convolution->layer)];
        const Precision precision = precisions_.of(layer.name);
        const bool may = is_half(precision) && factors_of(precision) != FactorType::f32;
        for (const int tensor : {op.inputs[0], op.output}) {
          if (may) {
            hold(tensor, element_of(precision));
          } else {
            keep_plain(tensor);
          }
        }
        if (op.inputs.size() > 1) join(op.output, op.inputs[1]);
        continue;
      }
      std::vector<int> touched = op.inputs;
      touched.push_back(op.output);
      std::vector<std::int64_t> channels;
      for (const int input : op.inputs) channels.push_back(network_.tensors[at(input)].shape.front());
      const bool moves = shape.size() == 3 && can_take(op.kind, shape, places, places) &&
                         (!std::holds_alternative<Concat>(op.kind) || can_be_parts(places.layout, channels));
      for (const int tensor : touched) {
        if (moves) {
          join(op.output, tensor);
        } else {
          keep_plain(tensor);
        }
      }
    }
  }

  bool is_open(std::size_t tensor) const { return !plain_[tensor] && elements_[tensor].has_value(); }

  void find_users() {
    for (const Operator& op : network_.operators) {
      const auto* convolution = std::get_if<Convolution>(&op.kind);
      if (convolution == nullptr) continue;
      const User user = {&op, &network_.layers[at(convolution->layer)], root(op.inputs[0]), root(op.output)};
      if (is_open(user.reads) || is_open(user.writes)) convolutions_.push_back(user);
    }
  }

  static bool reads_places(std::size_t way) { return (way & 1U) != 0; }
  static bool writes_places(std::size_t way) { return (way & 2U) != 0; }
  bool can_be(const User& user, std::size_t way) const {
    if (reads_places(way) && !is_open(user.reads)) return false;
    if (writes_places(way) && !is_open(user.writes)) return false;
    return user.reads != user.writes || way == 0 || way + 1 == kWays;
  }
  ConvolutionFormats formats_of(const User& user, std::size_t way) const {
    const auto format = [&](std::size_t tensor, bool places) {
      return places ? TensorFormat{*elements_[tensor], TensorLayout::nchw8} : TensorFormat();
    };
    return {format(user.reads, reads_places(way)), format(user.writes, writes_places(way))};
  }

  // A tensor stays plain where a convolution has no kernel that reads or writes it otherwise. Whether any does not.
  bool ask_for_places() {
    std::vector<std::pair<User*, std::size_t>> asked;
    for (User& user : convolutions_) {
      for (std::size_t way = 1; way < kWays; ++way) {
        if (can_be(user, way)) asked.emplace_back(&user, way);
      }
    }
    ask(asked);
    bool changed = true;
    while (changed) {
      changed = false;
      for (const User& user : convolutions_) {
        for (const auto& [tensor, bit] : {std::pair(user.reads, 1U), std::pair(user.writes, 2U)}) {
          const auto has = [&](std::size_t way) {
            return (way & bit) != 0 && can_be(user, way) && std::isfinite(user.us[way]);
          };
          if (!is_open(tensor) || has(1) || has(2) || has(3)) continue;
          plain_[tensor] = true;
          changed = true;
        }
      }
    }
    return std::ranges::any_of(convolutions_,
                               [&](const User& user) { return is_open(user.reads) || is_open(user.writes); });
  }
  // The others are not worth their estimates.
  void ask_for_plain() {
    std::vector<std::pair<User*, std::size_t>> asked;
    for (User& user : convolutions_) {
      if (is_open(user.reads) || is_open(user.writes)) asked.emplace_back(&user, 0);
    }
    ask(asked);
  }
  void ask(const std::vector<std::pair<User*, std::size_t>>& asked) {
    for_each_parallel(asked.size(), jobs_, [&](std::size_t i) {
      const auto& [user, way] = asked[i];
      user->us[way] = time_(*user->op, *user->layer, formats_of(*user, way));
    });
  }

  // What the convolutions take as costs of the tensors that are open, whose values are 0, plain, and 1, places. With
  // the variable of each tensor.
  std::pair<LeastSumProblem, std::vector<int>> as_sum() const {
    LeastSumProblem problem;
    std::vector<int> variables(within_.size(), -1);
    const auto variable_of = [&](std::size_t tensor) {
      if (variables[tensor] < 0) {
        variables[tensor] = static_cast<int>(problem.values.size());
        problem.values.push_back(2);
      }
      return variables[tensor];
    };
    for (const User& user : convolutions_) {
      const std::array<double, kWays>& us = user.us;
      const bool reads = is_open(user.reads), writes = is_open(user.writes);
      if (!reads && !writes) continue;
      const int first = variable_of(reads ? user.reads : user.writes);
      if (reads && writes && user.reads != user.writes) {
        problem.costs.push_back({first, variable_of(user.writes), {us[0], us[2], us[1], us[3]}});
      } else {
        problem.costs.push_back({first, first, {us[0], us[(reads ? 1U : 0U) + (writes ? 2U : 0U)]}});
      }
    }
    return {std::move(problem), std::move(variables)};
  }

  const Network& network_;
  const LayerPrecisions& precisions_;
  int jobs_;
  const ConvolutionTime& time_;
  std::vector<int> within_;                           // of each tensor, another one that it lies alike with
  std::vector<bool> plain_;                           // of those that are their own
  std::vector<std::optional<ElementType>> elements_;  // likewise
  std::vector<User> convolutions_;
};

}  // namespace

PlaceChoice choose_places(const Network& network, const LayerPrecisions& precisions, int jobs,
                          const ConvolutionTime& time) {
  return PlaceChooser(network, precisions, jobs, time).run();
}

}  // namespace burin
