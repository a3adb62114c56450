#include "compiler/choose/least_sum.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <optional>
#include <set>

#include "ir/error.h"

namespace burin {
namespace {

struct Cost {
  int impossible = 0;
  double sum = 0;

  static Cost of(double cost) { return std::isfinite(cost) ? Cost{0, cost} : Cost{1, 0}; }
  Cost& operator+=(const Cost& other) {
    impossible += other.impossible;
    sum += other.sum;
    return *this;
  }
  auto operator<=>(const Cost&) const = default;
};

// Less by more than what the order of additions makes of a sum.
bool is_clearly_less(const Cost& a, const Cost& b) {
  constexpr double kSameSum = 1e-9;
  if (a.impossible != b.impossible) return a.impossible < b.impossible;
  return a.sum < b.sum * (1 - kSameSum);
}

class Elimination {
 public:
  Elimination(const LeastSumProblem& problem, std::int64_t most_entries)
      : problem_(problem),
        entries_left_(most_entries),
        is_left_(problem.values.size(), true),
        neighbours_(problem.values.size()),
        tables_of_(problem.values.size()),
        chosen_(problem.values.size(), 0) {
    for (const int values : problem.values) BURIN_CHECK(values >= 1, "a variable of {} values", values);
    for (const PairCost& pair : problem.costs) add(table_of(pair));
  }

  LeastSum run() {
    while (const std::optional<int> next = smallest()) eliminate(*next);
    LeastSum result;
    result.exact = std::ranges::none_of(is_left_, [](bool left) { return left; });
    if (!result.exact) search();
    // What was taken out last shares costs with nothing but what has its value by then.
    for (std::size_t i = order_.size(); i-- > 0;) chosen_[at(order_[i])] = best_value(order_[i]);
    const Cost all = cost();
    result.chosen = chosen_;
    result.impossible = all.impossible;
    result.sum = all.sum;
    return result;
  }

 private:
  struct Table {
    std::vector<int> variables;
    std::vector<Cost> costs;  // for each value of them all; the last variable's are side by side
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int values(int variable) const { return problem_.values[at(variable)]; }

  Table table_of(const PairCost& pair) const {
    const int count = static_cast<int>(problem_.values.size());
    BURIN_CHECK(pair.first >= 0 && pair.first < count && pair.second >= 0 && pair.second < count,
                "a cost of variables {} and {} of {}", pair.first, pair.second, count);
    Table table{.variables = {pair.first}, .costs = {}};
    if (pair.second != pair.first) table.variables.push_back(pair.second);
    std::size_t entries = 1;
    for (const int variable : table.variables) entries *= at(values(variable));
    BURIN_CHECK(pair.costs.size() == entries, "{} costs of {} choices", pair.costs.size(), entries);
    for (const double cost : pair.costs) {
      BURIN_CHECK(cost >= 0, "a cost of {}", cost);
      table.costs.push_back(Cost::of(cost));
    }
    return table;
  }

  void add(Table table) {
    for (const int variable : table.variables) {
      tables_of_[at(variable)].push_back(tables_.size());
      for (const int other : table.variables) {
        if (other != variable) neighbours_[at(variable)].insert(other);
      }
    }
    tables_.push_back(std::move(table));
  }

  // Counts the costs of a variable with those that it shares any with; nothing: they are more than are left.
  std::optional<std::int64_t> entries_of(int variable) const {
    std::int64_t entries = values(variable);
    for (const int other : neighbours_[at(variable)]) {
      if (entries > entries_left_) return std::nullopt;
      entries *= values(other);
    }
    return entries > entries_left_ ? std::nullopt : std::optional(entries);
  }

  // The variable with the fewest entries, if there is one that is left and does not have too many.
  std::optional<int> smallest() const {
    std::optional<int> best;
    std::int64_t fewest = 0;
    for (std::size_t i = 0; i < is_left_.size(); ++i) {
      if (!is_left_[i]) continue;
      const std::optional<std::int64_t> entries = entries_of(static_cast<int>(i));
      if (!entries || (best && *entries >= fewest)) continue;
      best = static_cast<int>(i);
      fewest = *entries;
    }
    return best;
  }

  void eliminate(int variable) {
    entries_left_ -= *entries_of(variable);
    const std::set<int>& neighbours = neighbours_[at(variable)];
    Table rest{.variables = {neighbours.begin(), neighbours.end()}, .costs = {}};
    for_each_choice(rest.variables, [&] {
      chosen_[at(variable)] = best_value(variable);
      rest.costs.push_back(cost_of(variable));
    });
    is_left_[at(variable)] = false;
    order_.push_back(variable);
    for (const int other : rest.variables) {
      neighbours_[at(other)].erase(variable);
      std::erase_if(tables_of_[at(other)],
                    [&](std::size_t table) { return std::ranges::count(tables_[table].variables, variable) > 0; });
    }
    add(std::move(rest));
  }

  template <typename Look>
  void for_each_choice(const std::vector<int>& variables, const Look& look) {
    for (const int variable : variables) chosen_[at(variable)] = 0;
    for (;;) {
      look();
      std::size_t i = variables.size();
      while (i > 0 && ++chosen_[at(variables[i - 1])] == values(variables[i - 1])) chosen_[at(variables[--i])] = 0;
      if (i == 0) return;
    }
  }

  Cost cost_in(const Table& table) const {
    std::size_t entry = 0;
    for (const int variable : table.variables) entry = entry * at(values(variable)) + at(chosen_[at(variable)]);
    return table.costs[entry];
  }
  // In the tables that have the variable, those of variables that were taken out before it among them.
  Cost cost_of(int variable) const {
    Cost cost;
    for (const std::size_t table : tables_of_[at(variable)]) cost += cost_in(tables_[table]);
    return cost;
  }
  // In the problem itself, whose costs are the first tables.
  Cost cost() const {
    Cost cost;
    for (std::size_t i = 0; i < problem_.costs.size(); ++i) cost += cost_in(tables_[i]);
    return cost;
  }

  // The first one that is less than `start`, if any, and of which none is less.
  template <typename Less>
  int best_value(int variable, int start, const Less& less) {
    const int before = chosen_[at(variable)];
    int best = start;
    chosen_[at(variable)] = start;
    Cost least = cost_of(variable);
    for (int value = 0; value < values(variable); ++value) {
      chosen_[at(variable)] = value;
      const Cost cost = cost_of(variable);
      if (!less(cost, least)) continue;
      best = value;
      least = cost;
    }
    chosen_[at(variable)] = before;
    return best;
  }
  int best_value(int variable) { return best_value(variable, 0, std::less<>()); }

  // Values of the variables that are left.
  void search() {
    std::vector<int> left;
    for (std::size_t i = 0; i < is_left_.size(); ++i) {
      if (is_left_[i]) left.push_back(static_cast<int>(i));
    }
    std::set<std::size_t> tables;
    for (const int variable : left) tables.insert(tables_of_[at(variable)].begin(), tables_of_[at(variable)].end());
    const int most_values = std::ranges::max(problem_.values);
    std::optional<Cost> least;
    std::vector<int> best;
    for (int start = 0; start < most_values; ++start) {
      for (const int variable : left) chosen_[at(variable)] = std::min(start, values(variable) - 1);
      improve(left);
      Cost cost;
      for (const std::size_t table : tables) cost += cost_in(tables_[table]);
      if (least && cost >= *least) continue;
      least = cost;
      best = chosen_;
    }
    chosen_ = best;
  }

  void improve(const std::vector<int>& variables) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const int variable : variables) {
        const int value = best_value(variable, chosen_[at(variable)], is_clearly_less);
        changed |= value != chosen_[at(variable)];
        chosen_[at(variable)] = value;
      }
    }
  }

  const LeastSumProblem& problem_;
  std::int64_t entries_left_;
  std::vector<bool> is_left_;              // of each variable
  std::vector<std::set<int>> neighbours_;  // of those that are left: others that are in tables with them
  std::vector<Table> tables_;              // the problem's first, then one for each variable that was taken out
  // A variable that is left has tables of others that are left; one that was taken out, those that were replaced then.
  std::vector<std::vector<std::size_t>> tables_of_;
  std::vector<int> order_;  // of those that were taken out
  std::vector<int> chosen_;
};

}  // namespace

LeastSum least_sum(const LeastSumProblem& problem, std::int64_t most_entries) {
  return Elimination(problem, most_entries).run();
}

}  // namespace burin
