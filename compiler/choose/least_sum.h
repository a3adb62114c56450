// LeastSum: a value for each of several variables, such that what they cost together is the least. A cost depends on
// one variable or on two. Pure arithmetic: what variables and values are, the caller knows
// (compiler/choose/format_choice.h).
#pragma once

#include <cstdint>
#include <vector>

namespace burin {

// What the values of two variables cost, or those of one.
struct PairCost {
  int first = 0;
  int second = 0;  // `first` again where it depends on that one alone
  // For each value of the first, those for each value of the second; of one variable, for each of its values. None is
  // below 0; infinite is what cannot be.
  std::vector<double> costs;
};

struct LeastSumProblem {
  std::vector<int> values;  // how many each variable has, at least one
  std::vector<PairCost> costs;
};

struct LeastSum {
  std::vector<int> chosen;  // of each variable
  // Infinite costs are counted; of choices with the fewest of them the least sum of the others is the best.
  int impossible = 0;
  double sum = 0;
  // Nothing is better. Where it is not exact, what is chosen is no worse than the same value for all, whichever it is
  // (the last one for those that do not have it), and no other value of a single variable would be better.
  bool exact = true;
};

// Entries of all tables together that are made on the way: what bounds time and memory.
inline constexpr std::int64_t kMostLeastSumEntries = 1 << 20;

// Takes one variable after the other out of the problem: a table of what it and all it shares costs with cost at least
// stands in its place. The variable that needs the smallest table is next: in chains and rings none is of more than
// three variables. Variables whose tables would exceed the limit are left, and searched: from the same value for all,
// one after the other gets another value where that is better. The same problem gives the same choice; of values that
// are as good as each other a variable gets the lowest.
LeastSum least_sum(const LeastSumProblem& problem, std::int64_t most_entries = kMostLeastSumEntries);

}  // namespace burin
