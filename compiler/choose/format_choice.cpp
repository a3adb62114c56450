#include "compiler/choose/format_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "compiler/choose/least_sum.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

constexpr double kNobody = std::numeric_limits<double>::infinity();

using Formats = std::vector<TensorFormat>;

bool has(const Formats& formats, const TensorFormat& format) {
  return std::ranges::find(formats, format) != formats.end();
}
void add_once(Formats& formats, const TensorFormat& format) {
  if (!has(formats, format)) formats.push_back(format);
}

bool is_plain(const OperatorFormats& formats) { return formats.input.is_plain() && formats.output.is_plain(); }

// Says whether what an operator reads and makes is one tensor, or parts of it.
bool is_joining(const OperatorKind& kind) {
  return std::holds_alternative<Concat>(kind) || std::holds_alternative<ChannelView>(kind);
}

// Operators that are no step: they say where something lies.
bool moves_nothing(const OperatorKind& kind) {
  return is_joining(kind) || std::holds_alternative<Reshape>(kind) || std::holds_alternative<Identity>(kind);
}

class FormatChooser {
 public:
  FormatChooser(const Network& network, const FormatWays& ways, int jobs, const FormatTimes& times)
      : network_(network),
        jobs_(jobs),
        times_(times),
        group_(network.tensors.size()),
        tensors_(network.tensors.size()) {
    std::iota(group_.begin(), group_.end(), 0);
    for (const Operator& op : network.operators) {
      Member member;
      member.op = &op;
      if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
        member.layer = &network.layers[at(convolution->layer)];
        for (const OperatorFormats& formats : ways(op, *member.layer)) member.ways.push_back({formats, 0});
      }
      members_.push_back(std::move(member));
    }
  }

  FormatChoice run() {
    const auto has_choice = [](const Member& member) { return member.ways.size() > 1; };
    if (std::ranges::none_of(members_, has_choice) || !ask_convolutions()) return {};
    join_parts();
    find_formats();
    ask_others();
    find_readings();
    return chosen();
  }

 private:
  struct Way {
    OperatorFormats formats;
    double us = 0;
  };
  struct Member {  // an operator
    const Operator* op = nullptr;
    const ConvLayer* layer = nullptr;  // of a convolution
    std::vector<Way> ways;
  };
  struct Tensor {
    Formats made;  // of the one that stands for a group: in which it may be made
    // The formats in which somebody may want to read it, and the sets of them that may be there, each as bits.
    Formats wanted;
    std::vector<unsigned> sets;
    int made_variable = -1, read_variable = -1;
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  std::size_t group_of(int tensor) const {
    while (group_[at(tensor)] != tensor) tensor = group_[at(tensor)];
    return at(tensor);
  }
  Tensor& group(int tensor) { return tensors_[group_of(tensor)]; }
  const Tensor& group(int tensor) const { return tensors_[group_of(tensor)]; }
  const std::vector<std::int64_t>& shape_of(int tensor) const { return network_.tensors[at(tensor)].shape; }
  const TensorFormat& asked_of(int tensor) const { return network_.tensors[at(tensor)].format; }
  bool is_input(int tensor) const { return std::ranges::find(network_.inputs, tensor) != network_.inputs.end(); }
  bool is_output(int tensor) const { return std::ranges::find(network_.outputs, tensor) != network_.outputs.end(); }

  // What a convolution takes in plain tensors is worth its estimate where it may have others. Whether any may.
  bool ask_convolutions() {
    const auto ask = [&](const auto& is_asked) {
      std::vector<std::pair<const Member*, Way*>> asked;
      for (Member& member : members_) {
        for (Way& way : member.ways) {
          if (is_asked(member, way)) asked.emplace_back(&member, &way);
        }
      }
      for_each_parallel(asked.size(), jobs_, [&](std::size_t i) {
        const auto& [member, way] = asked[i];
        way->us = times_.convolution(*member->op, *member->layer, way->formats);
      });
    };
    ask([](const Member& member, const Way& way) { return member.ways.size() > 1 && !is_plain(way.formats); });
    for (Member& member : members_) {
      if (member.ways.size() < 2) continue;
      const std::vector<Way> all = member.ways;
      std::erase_if(member.ways, [](const Way& way) { return !std::isfinite(way.us); });
      if (member.ways.empty()) member.ways = {all.front()};
    }
    const auto may_be_other = [](const Member& member) {
      return std::ranges::any_of(member.ways, [](const Way& way) { return !is_plain(way.formats); });
    };
    if (std::ranges::none_of(members_, may_be_other)) return false;
    ask([](const Member& member, const Way& way) { return member.ways.size() > 1 && is_plain(way.formats); });
    return true;
  }

  // The parts of a concatenation lie as the whole does, and so does what a view shows of a tensor: no step stands
  // between them that could tell two formats apart. Where that cannot be, they are plain.
  void join_parts() {
    Formats all;
    for (const Member& member : members_) {
      for (const Way& way : member.ways) {
        add_once(all, way.formats.input);
        add_once(all, way.formats.output);
      }
    }
    for (const Member& member : members_) {
      const Operator& op = *member.op;
      if (!is_joining(op.kind) || std::ranges::any_of(op.inputs, [&](int input) { return is_input(input); })) continue;
      if (!std::ranges::all_of(all, [&](const TensorFormat& format) { return can_take_all(op, format); })) continue;
      for (const int input : op.inputs) {
        const std::size_t part = group_of(input), whole = group_of(op.output);
        if (part != whole) group_[part] = static_cast<int>(whole);
      }
    }
  }

  // This says whether an operator other than a convolution computes in the format.
  bool can_take_all(const Operator& op, const TensorFormat& format) const {
    if (format.is_plain()) return true;
    if (!can_take(op.kind, shape_of(op.inputs[0]), format, format)) return false;
    if (!std::holds_alternative<Concat>(op.kind)) return true;
    std::vector<std::int64_t> channels;
    for (const int input : op.inputs) channels.push_back(shape_of(input).front());
    return can_be_parts(format.layout, channels);
  }

  // In which formats tensors may be made: all that some convolution writes, and what others then can hand on.
  void find_formats() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (group_of(static_cast<int>(i)) == i) tensors_[i].made.emplace_back();
    }
    for (const int input : network_.inputs) group(input).made = {asked_of(input)};
    for (const Member& member : members_) {
      for (const Way& way : member.ways) add_once(group(member.op->output).made, way.formats.output);
    }
    for (bool changed = true; std::exchange(changed, false);) {
      for (Member& member : members_) {
        if (member.layer != nullptr) continue;
        for (const OperatorFormats& formats : ways_of_other(*member.op)) {
          Formats& made = group(member.op->output).made;
          if (has(made, formats.output)) continue;
          made.push_back(formats.output);
          changed = true;
        }
      }
    }
  }

  // An operator computes in plain tensors, or in a format in which one of its inputs may be made.
  std::vector<OperatorFormats> ways_of_other(const Operator& op) const {
    std::vector<OperatorFormats> ways = {{}};
    if (is_joining(op.kind) && group_of(op.inputs[0]) != group_of(op.output)) return ways;
    Formats made;
    for (std::size_t i = 0; i < (std::holds_alternative<Excite>(op.kind) ? 1 : op.inputs.size()); ++i) {
      for (const TensorFormat& format : group(op.inputs[i]).made) add_once(made, format);
    }
    for (const TensorFormat& format : made) {
      if (format.is_plain()) continue;
      if (can_take_all(op, format)) ways.push_back({format, format});
      if (can_take(op.kind, shape_of(op.inputs[0]), format, {})) ways.push_back({format, {}});
    }
    return ways;
  }

  void ask_others() {
    std::vector<std::pair<const Member*, Way*>> asked;
    for (Member& member : members_) {
      if (member.layer != nullptr) continue;
      for (const OperatorFormats& formats : ways_of_other(*member.op)) member.ways.push_back({formats, 0});
      if (member.ways.size() < 2 || moves_nothing(member.op->kind)) continue;
      for (Way& way : member.ways) asked.emplace_back(&member, &way);
    }
    for_each_parallel(asked.size(), jobs_, [&](std::size_t i) {
      const auto& [member, way] = asked[i];
      way->us = times_.other(network_, *member->op, way->formats);
    });
  }

  // This is what an operator that computes in these formats wants of its input of that number.
  static TensorFormat wanted_of(const Member& member, const OperatorFormats& formats, std::size_t input) {
    if (input == 0) return formats.input;
    if (member.layer != nullptr) return formats.output;
    return std::holds_alternative<Excite>(member.op->kind) ? TensorFormat() : formats.input;
  }

  // Which formats readers may want, and which of them at a time: with one reader one.
  void find_readings() {
    std::vector<int> readers(tensors_.size(), 0);
    for (const Member& member : members_) {
      for (std::size_t i = 0; i < member.op->inputs.size(); ++i) {
        const int input = member.op->inputs[i];
        ++readers[at(input)];
        for (const Way& way : member.ways) add_once(tensors_[at(input)].wanted, wanted_of(member, way.formats, i));
      }
    }
    for (const int output : network_.outputs) {
      ++readers[at(output)];
      add_once(tensors_[at(output)].wanted, asked_of(output));
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      Tensor& tensor = tensors_[i];
      for (unsigned set = 1; set < 1U << tensor.wanted.size(); ++set) {
        const bool is_one = (set & (set - 1)) == 0;
        if (is_one || readers[i] > 1) tensor.sets.push_back(set);
      }
    }
  }

  double conversion_us(int tensor, const TensorFormat& from, const TensorFormat& to) {
    if (from == to) return 0;
    const auto key = std::tuple(shape_of(tensor), to_string(from), to_string(to));
    const auto [known, is_new] = conversions_.try_emplace(key, 0);
    if (is_new) {
      // Between two formats that no kernel converts a plain copy stands.
      known->second = can_convert(from, to)
                          ? times_.conversion(shape_of(tensor), from, to)
                          : times_.conversion(shape_of(tensor), from, {}) + times_.conversion(shape_of(tensor), {}, to);
    }
    return known->second;
  }

  static bool holds(const Tensor& tensor, unsigned set, const TensorFormat& format) {
    const auto found = std::ranges::find(tensor.wanted, format);
    return found != tensor.wanted.end() && (set >> (found - tensor.wanted.begin()) & 1U) != 0;
  }

  // The way that takes least of those that read what is there and write the format; null: there is none.
  const Way* best_way(const Member& member, unsigned set, const TensorFormat& written) const {
    const Tensor& read = tensors_[at(member.op->inputs[0])];
    const Way* best = nullptr;
    for (const Way& way : member.ways) {
      if (way.formats.output != written || !holds(read, set, way.formats.input)) continue;
      if (best == nullptr || way.us < best->us) best = &way;
    }
    return best;
  }

  FormatChoice chosen() {
    LeastSumProblem problem;
    const auto add_variable = [&](std::size_t values) {
      problem.values.push_back(static_cast<int>(values));
      return static_cast<int>(problem.values.size()) - 1;
    };
    for (Tensor& tensor : tensors_) {
      if (!tensor.made.empty()) tensor.made_variable = add_variable(tensor.made.size());
      if (!tensor.sets.empty()) tensor.read_variable = add_variable(tensor.sets.size());
    }
    const auto add_costs = [&](int first, std::size_t firsts, int second, std::size_t seconds, const auto& cost) {
      PairCost pair{first, second, {}};
      for (std::size_t i = 0; i < firsts; ++i) {
        for (std::size_t j = 0; j < seconds; ++j) pair.costs.push_back(cost(i, j));
      }
      problem.costs.push_back(std::move(pair));
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const int index = static_cast<int>(i);
      const Tensor &tensor = tensors_[i], &made = group(index);
      if (tensor.sets.empty()) continue;
      add_costs(made.made_variable, made.made.size(), tensor.read_variable, tensor.sets.size(),
                [&](std::size_t from, std::size_t set) {
                  double us = 0;
                  for (std::size_t k = 0; k < tensor.wanted.size(); ++k) {
                    if ((tensor.sets[set] >> k & 1U) != 0)
                      us += conversion_us(index, made.made[from], tensor.wanted[k]);
                  }
                  return us;
                });
      if (!is_output(index)) continue;
      add_costs(tensor.read_variable, tensor.sets.size(), tensor.read_variable, 1, [&](std::size_t set, std::size_t) {
        return holds(tensor, tensor.sets[set], asked_of(index)) ? 0 : kNobody;
      });
    }
    for (const Member& member : members_) {
      const Tensor& written = group(member.op->output);
      for (std::size_t k = 0; k < member.op->inputs.size(); ++k) {
        const Tensor& read = tensors_[at(member.op->inputs[k])];
        add_costs(read.read_variable, read.sets.size(), written.made_variable, written.made.size(),
                  [&](std::size_t set, std::size_t format) {
                    if (k == 0) {
                      const Way* way = best_way(member, read.sets[set], written.made[format]);
                      return way == nullptr ? kNobody : way->us;
                    }
                    const OperatorFormats alike = {written.made[format], written.made[format]};
                    return holds(read, read.sets[set], wanted_of(member, alike, k)) ? 0 : kNobody;
                  });
      }
    }
    const LeastSum least = least_sum(problem);
    FormatChoice choice{.formats = {}, .us = least.sum, .exact = least.exact};
    for (const Member& member : members_) {
      const Tensor &read = tensors_[at(member.op->inputs[0])], &written = group(member.op->output);
      const TensorFormat& format = written.made[at(least.chosen[at(written.made_variable)])];
      const Way* way = best_way(member, read.sets[at(least.chosen[at(read.read_variable)])], format);
      choice.formats.emplace(member.op->name, way == nullptr ? member.ways.front().formats : way->formats);
    }
    return choice;
  }

  const Network& network_;
  int jobs_;
  const FormatTimes& times_;
  std::vector<int> group_;  // of each tensor, another one that it lies alike with
  std::vector<Tensor> tensors_;
  std::vector<Member> members_;
  std::map<std::tuple<std::vector<std::int64_t>, std::string, std::string>, double> conversions_;
};

}  // namespace

FormatChoice choose_formats(const Network& network, const FormatWays& ways, int jobs, const FormatTimes& times) {
  return FormatChooser(network, ways, jobs, times).run();
}

}  // namespace burin
