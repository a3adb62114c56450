#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "compiler/network/channel_order.h"
#include "compiler/network/passes.h"
#include "ir/limits.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

// Operators that put the channels of `from` into another order, which is `to`.
struct Shuffle {
  int from = -1, to = -1;
  ChannelOrder order;
  std::vector<int> operators;  // the last one first
};

// Channels at two regular distances: number i * inner + j is begin + i * outer_step + j * inner_step.
struct Regular {
  std::int64_t begin = 0, outer = 1, outer_step = 0, inner = 1, inner_step = 0;
};

std::optional<Regular> as_regular(const ChannelOrder& channels) {
  const std::int64_t count = std::ssize(channels);
  const auto at = [&](std::int64_t i) -> std::int64_t { return channels[static_cast<std::size_t>(i)]; };
  std::int64_t inner = 1;  // as many as keep the first distance
  while (inner < count && at(inner) - at(inner - 1) == at(1) - at(0)) ++inner;
  if (count % inner != 0) return std::nullopt;
  const Regular made = {at(0), count / inner, inner < count ? at(inner) - at(0) : 0, inner,
                        inner > 1 ? at(1) - at(0) : 0};
  for (std::int64_t i = 0; i < count; ++i) {
    if (at(i) != made.begin + i / inner * made.outer_step + i % inner * made.inner_step) return std::nullopt;
  }
  return made;
}

// A pick of channels, as it is done with two axes in their place.
struct TwoAxes {
  std::int64_t channels_of_second = 1;
  Pick pick;
};

std::optional<TwoAxes> as_pick(const ChannelOrder& taken, const Shape& from) {
  const std::optional<Regular> regular = as_regular(taken);
  if (!regular || from.size() + 1 > static_cast<std::size_t>(kMaxActivationRank)) return std::nullopt;
  const bool outer_is_first = std::abs(regular->outer_step) > std::abs(regular->inner_step);
  PickedAxis first{0, regular->outer_step, regular->outer}, second{0, regular->inner_step, regular->inner};
  if (!outer_is_first) std::swap(first, second);
  const std::int64_t unit = std::gcd(first.step, from[0]);
  first.begin = regular->begin / unit;
  first.step /= unit;
  second.begin = regular->begin % unit;
  const std::int64_t last = second.begin + (second.extent - 1) * second.step;
  if (last < 0 || last >= unit) return std::nullopt;
  TwoAxes made{unit, {{first, second}}};
  for (std::size_t axis = 1; axis < from.size(); ++axis) made.pick.axes.push_back({0, 1, from[axis]});
  if (outer_is_first) return made;
  made.pick.order.resize(made.pick.axes.size());
  std::iota(made.pick.order.begin(), made.pick.order.end(), 0);
  std::swap(made.pick.order[0], made.pick.order[1]);
  return made;
}

bool follow_each_other(const ChannelOrder& channels) {
  return std::ranges::adjacent_find(channels, [](int a, int b) { return b != a + 1; }) == channels.end();
}

class ChannelOrderer {
 public:
  explicit ChannelOrderer(Network network) : graph_(std::move(network)) {
    for (const Operator& op : graph_.network().operators) names_.give(op.name);
  }

  Rewritten run() {
    const int count = graph_.operators();
    int changes = 0;
    for (int op = 0; op < count; ++op) {
      if (graph_.removed(op)) continue;
      const std::optional<Shuffle> shuffle = shuffle_that_ends_with(op);
      if (shuffle && !graph_.is_output(shuffle->to) && (leave_out(*shuffle) || order_parts(*shuffle))) ++changes;
    }
    return {graph_.finish(), changes};
  }

 private:
  const Shape& shape(int tensor) const { return graph_.tensor(tensor).shape; }

  // A reshape, a transpose that moves parts of the channel axis alone, and a reshape back.
  std::optional<Shuffle> shuffle_that_ends_with(int last) {
    if (!graph_.as<Reshape>(last)) return std::nullopt;
    const int turned = graph_.op(last).inputs[0], middle = graph_.producer(turned);
    const auto* transpose = graph_.as<Transpose>(middle);
    if (transpose == nullptr || graph_.only_reader(turned) != last) return std::nullopt;
    const int apart = graph_.op(middle).inputs[0], first = graph_.producer(apart);
    if (!graph_.as<Reshape>(first) || graph_.only_reader(apart) != middle) return std::nullopt;
    const int from = graph_.op(first).inputs[0], to = graph_.op(last).output;
    if (shape(from) != shape(to)) return std::nullopt;
    std::size_t axes = 0;  // those that are parts of the channels
    for (std::int64_t parts = 1; parts < shape(from)[0] && axes < shape(apart).size(); ++axes) {
      parts *= shape(apart)[axes];
      if (parts > shape(from)[0]) return std::nullopt;
    }
    const bool others_stay = std::ranges::equal(shape(apart).begin() + static_cast<std::ptrdiff_t>(axes),
                                                shape(apart).end(), shape(from).begin() + 1, shape(from).end());
    if (!others_stay) return std::nullopt;
    for (std::size_t axis = axes; axis < transpose->order.size(); ++axis) {
      if (transpose->order[axis] != static_cast<int>(axis)) return std::nullopt;
    }
    return Shuffle{from, to, moved_channels(transpose->order, shape(apart), axes), {last, middle, first}};
  }

  // The channel that each channel behind the transpose was, of the first `axes` axes.
  static ChannelOrder moved_channels(const std::vector<int>& order, const Shape& apart, std::size_t axes) {
    Shape pitch(axes, 1);
    for (std::size_t axis = axes; axis-- > 1;) pitch[axis - 1] = pitch[axis] * apart[axis];
    ChannelOrder channels = {0};
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const auto from = static_cast<std::size_t>(order[axis]);
      ChannelOrder longer;
      for (const int channel : channels) {
        for (std::int64_t i = 0; i < apart[from]; ++i) longer.push_back(channel + static_cast<int>(i * pitch[from]));
      }
      channels = std::move(longer);
    }
    return channels;
  }

  void remove(const Shuffle& shuffle) {
    for (const int op : shuffle.operators) graph_.remove(op);
  }

  // All who read what was shuffled read what was not.
  bool leave_out(const Shuffle& shuffle) {
    const auto readers = readers_in_any_order(graph_, shuffle.to);
    if (!readers) return false;
    reorder_readers(graph_, *readers, inverse(shuffle.order));
    remove(shuffle);
    graph_.redirect(shuffle.to, shuffle.from);
    return true;
  }

  // What one view takes becomes channels that follow each other in the concat before the shuffle; what others take is
  // one pick from there at most.
  bool order_parts(const Shuffle& shuffle) {
    const int concat = graph_.producer(shuffle.from);
    const auto* kind = graph_.as<Concat>(concat);
    if (kind == nullptr || kind->axis != 0 || graph_.only_reader(shuffle.from) != shuffle.operators.back())
      return false;
    const std::optional<int> view = view_in_any_order(shuffle.to);
    if (!view) return false;
    const ChannelView taken = *graph_.as<ChannelView>(*view);
    const std::optional<ChannelOrder> order = order_of_concat(concat, taken_by(taken, shuffle.order));
    if (!order) return false;

    // All views of channels as they are in that order.
    const ChannelOrder place = inverse(*order);
    const auto placed = [&](const ChannelView& of) {
      ChannelOrder channels = taken_by(of, shuffle.order);
      for (int& channel : channels) channel = place[static_cast<std::size_t>(channel)];
      return channels;
    };
    int copies = 0;
    for (const int reader : graph_.readers(shuffle.to)) {
      const ChannelOrder channels = placed(*graph_.as<ChannelView>(reader));
      if (reader == *view || follow_each_other(channels)) continue;
      if (++copies > 1 || !as_pick(channels, shape(shuffle.from))) return false;
    }

    reorder_concat(concat, *order);
    const std::multiset<int> views = graph_.readers(shuffle.to);
    for (const int reader : views) {
      const ChannelOrder channels = placed(*graph_.as<ChannelView>(reader));
      reader == *view ? take_in_any_order(reader, channels, concat) : take(reader, channels, concat);
    }
    remove(shuffle);
    return true;
  }

  // Picks from the views that read a tensor the one with most channels whose readers can have them in any order;
  // nothing where others read it than views.
  std::optional<int> view_in_any_order(int tensor) {
    std::optional<int> best;
    for (const int reader : graph_.readers(tensor)) {
      const auto* view = graph_.as<ChannelView>(reader);
      if (view == nullptr) return std::nullopt;
      if (best && graph_.as<ChannelView>(*best)->channels >= view->channels) continue;
      if (readers_in_any_order(graph_, graph_.op(reader).output)) best = reader;
    }
    return best;
  }

  static ChannelOrder taken_by(const ChannelView& view, const ChannelOrder& order) {
    return {order.begin() + view.begin, order.begin() + view.begin + view.channels};
  }

  // An order in which the channels follow each other: those of the first part that has some come last there, those of
  // other parts first. Nothing where a part would have to be moved that cannot be.
  std::optional<ChannelOrder> order_of_concat(int concat, const ChannelOrder& channels) {
    std::vector<bool> wanted(static_cast<std::size_t>(shape(graph_.op(concat).output)[0]));
    for (const int channel : channels) wanted[static_cast<std::size_t>(channel)] = true;
    ChannelOrder order(wanted.size());
    std::iota(order.begin(), order.end(), 0);
    auto begin = order.begin();
    bool any = false;
    for (const int part : graph_.op(concat).inputs) {
      const auto end = begin + shape(part)[0];
      const bool last = !any;
      std::stable_partition(begin, end, [&](int channel) { return wanted[static_cast<std::size_t>(channel)] != last; });
      any = any || std::any_of(begin, end, [&](int channel) { return wanted[static_cast<std::size_t>(channel)]; });
      const bool stays = std::is_sorted(begin, end);
      if (!stays && (graph_.only_reader(part) != concat || !can_make_in_any_order(graph_, part))) return std::nullopt;
      begin = end;
    }
    const auto is_wanted = [&](int channel) { return wanted[static_cast<std::size_t>(channel)]; };
    const auto first = std::ranges::find_if(order, is_wanted);
    if (!std::all_of(first, first + std::ssize(channels), is_wanted)) return std::nullopt;
    return order;
  }

  void reorder_concat(int concat, const ChannelOrder& order) {
    int begin = 0;
    const std::vector<int> parts = graph_.op(concat).inputs;
    for (const int part : parts) {
      const int end = begin + static_cast<int>(shape(part)[0]);
      ChannelOrder of_part(order.begin() + begin, order.begin() + end);
      for (int& channel : of_part) channel -= begin;
      if (!std::ranges::is_sorted(of_part)) reorder_filters(graph_, part, of_part);
      begin = end;
    }
    if (!std::ranges::is_sorted(order)) make_another_tensor(graph_, concat);
  }

  // The view's channels lie somewhere side by side; `channels` says where each is.
  void take_in_any_order(int view, const ChannelOrder& channels, int concat) {
    const int begin = *std::ranges::min_element(channels);
    ChannelOrder order = channels;
    for (int& channel : order) channel -= begin;
    reorder_readers(graph_, *readers_in_any_order(graph_, graph_.op(view).output), inverse(order));
    graph_.set_kind(view, ChannelView{begin, static_cast<int>(channels.size())});
    graph_.set_input(view, 0, graph_.op(concat).output);
    make_another_tensor(graph_, view);
  }

  void take(int view, const ChannelOrder& channels, int concat) {
    const int from = graph_.op(concat).output;
    if (follow_each_other(channels)) {
      graph_.set_kind(view, ChannelView{channels.front(), static_cast<int>(channels.size())});
      return graph_.set_input(view, 0, from);
    }
    const Operator old = graph_.op(view);
    const std::optional<TwoAxes> two = as_pick(channels, shape(from));
    Shape apart = {shape(from)[0] / two->channels_of_second, two->channels_of_second};
    apart.insert(apart.end(), shape(from).begin() + 1, shape(from).end());
    Shape picked;
    for (std::size_t axis = 0; axis < apart.size(); ++axis) {
      picked.push_back(two->pick.axes[two->pick.from(axis)].extent);
    }
    const int parts = add_tensor(old.output, ".parts", apart), made = add_tensor(old.output, ".picked", picked);
    graph_.replace(view, {old.name, Reshape{shape(old.output)}, {made}, old.output});
    // The last one that is added runs first.
    graph_.add_operator({new_name(old.name, ".pick"), two->pick, {parts}, made}, concat);
    graph_.add_operator({new_name(old.name, ".parts"), Reshape{apart}, {from}, parts}, concat);
  }

  int add_tensor(int like, const std::string& suffix, Shape shape) {
    Activations made = graph_.tensor(like);
    made.shape = std::move(shape);
    const int tensor = graph_.add_tensor(made);
    graph_.rename(tensor, made.name + suffix);
    return tensor;
  }

  std::string new_name(const std::string& name, const char* suffix) {
    constexpr std::size_t kNumberBytes = 24;
    return names_.give(name.size() + kNumberBytes <= kMaxLayerNameBytes ? name + suffix : "channels");
  }

  GraphEdit graph_;
  NumberedNames names_;  // of operators
};

}  // namespace

Rewritten order_channels(Network network) { return ChannelOrderer(std::move(network)).run(); }

}  // namespace burin
