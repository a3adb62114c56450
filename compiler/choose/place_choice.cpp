#include "compiler/choose/place_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

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

  std::map<std::string, ConvolutionFormats> run() {
    join_tensors();
    find_users();
    if (!ask_for_places()) return {};
    ask_for_plain();
    const std::vector<bool> none(network_.tensors.size(), false);
    std::vector<bool> all = none;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = !users_[i].empty();
    const std::vector<bool> from_none = improved(none), from_all = improved(all);
    const std::vector<bool>& best = total(from_all) < total(from_none) ? from_all : from_none;
    std::map<std::string, ConvolutionFormats> formats;
    for (const User& user : convolutions_) {
      const std::size_t way = way_of(user, best);
      if (way != 0) formats.emplace(user.op->name, formats_of(user, way));
    }
    return formats;
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
    users_.assign(network_.tensors.size(), {});
    for (const Operator& op : network_.operators) {
      const auto* convolution = std::get_if<Convolution>(&op.kind);
      if (convolution == nullptr) continue;
      const User user = {&op, &network_.layers[at(convolution->layer)], root(op.inputs[0]), root(op.output)};
      if (is_open(user.reads) || is_open(user.writes)) convolutions_.push_back(user);
    }
    fill_users();
  }

  // Those of the tensors that are left open.
  void fill_users() {
    for (std::vector<std::size_t>& list : users_) list.clear();
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      const User& user = convolutions_[i];
      if (is_open(user.reads)) users_[user.reads].push_back(i);
      if (is_open(user.writes) && user.writes != user.reads) users_[user.writes].push_back(i);
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
    fill_users();
    return std::ranges::any_of(users_, [](const auto& users) { return !users.empty(); });
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

  std::size_t way_of(const User& user, const std::vector<bool>& places) const {
    const auto is_in_places = [&](std::size_t tensor) { return is_open(tensor) && places[tensor]; };
    return (is_in_places(user.reads) ? 1U : 0U) + (is_in_places(user.writes) ? 2U : 0U);
  }
  // What nobody can is worse than anything else, but not all of that is alike.
  double us_of(const User& user, const std::vector<bool>& places) const {
    constexpr double kImpossibleUs = 1e12;
    const std::size_t way = way_of(user, places);
    return can_be(user, way) && std::isfinite(user.us[way]) ? user.us[way] : kImpossibleUs;
  }
  double total(const std::vector<bool>& places) const {
    double us = 0;
    for (const User& user : convolutions_) us += us_of(user, places);
    return us;
  }
  // One tensor after the other is changed where that takes less time, until none is left.
  std::vector<bool> improved(std::vector<bool> places) const {
    constexpr double kLeastGain = 1e-6;
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t tensor = 0; tensor < users_.size(); ++tensor) {
        if (users_[tensor].empty()) continue;
        const auto sum = [&] {
          return std::accumulate(users_[tensor].begin(), users_[tensor].end(), 0.0,
                                 [&](double us, std::size_t user) { return us + us_of(convolutions_[user], places); });
        };
        const double before = sum();
        places[tensor] = !places[tensor];
        if (sum() < before - kLeastGain) {
          changed = true;
        } else {
          places[tensor] = !places[tensor];
        }
      }
    }
    return places;
  }

  const Network& network_;
  const LayerPrecisions& precisions_;
  int jobs_;
  const ConvolutionTime& time_;
  std::vector<int> within_;                           // of each tensor, another one that it lies alike with
  std::vector<bool> plain_;                           // of those that are their own
  std::vector<std::optional<ElementType>> elements_;  // likewise
  std::vector<User> convolutions_;
  std::vector<std::vector<std::size_t>> users_;  // of each tensor that is open: convolutions_
};

}  // namespace

std::map<std::string, ConvolutionFormats> choose_places(const Network& network, const LayerPrecisions& precisions,
                                                        int jobs, const ConvolutionTime& time) {
  return PlaceChooser(network, precisions, jobs, time).run();
}

}  // namespace burin
