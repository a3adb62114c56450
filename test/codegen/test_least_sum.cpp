// Values of variables whose costs together are the least: held to all choices that there are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "compiler/choose/least_sum.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Total {
  int impossible = 0;
  double sum = 0;
};

std::size_t at(int index) { return static_cast<std::size_t>(index); }

Total total_of(const LeastSumProblem& problem, const std::vector<int>& chosen) {
  Total total;
  for (const PairCost& pair : problem.costs) {
    const int first = chosen.at(at(pair.first)), second = chosen.at(at(pair.second));
    const int entry = pair.first == pair.second ? first : first * problem.values.at(at(pair.second)) + second;
    const double cost = pair.costs.at(at(entry));
    if (std::isfinite(cost)) {
      total.sum += cost;
    } else {
      ++total.impossible;
    }
  }
  return total;
}

bool is_less(const Total& a, const Total& b) {
  return a.impossible != b.impossible ? a.impossible < b.impossible : a.sum < b.sum;
}

// The least of all choices.
Total least_of_all(const LeastSumProblem& problem) {
  std::vector<int> chosen(problem.values.size());
  Total least = total_of(problem, chosen);
  for (;;) {
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == problem.values[i]) chosen[i++] = 0;
    if (i == chosen.size()) return least;
    const Total total = total_of(problem, chosen);
    if (is_less(total, least)) least = total;
  }
}

// The values that were chosen are some that there are, and cost what they are said to.
Total checked(const LeastSumProblem& problem, const LeastSum& least) {
  REQUIRE(least.chosen.size() == problem.values.size());
  for (std::size_t i = 0; i < problem.values.size(); ++i) {
    REQUIRE(least.chosen[i] >= 0);
    REQUIRE(least.chosen[i] < problem.values[i]);
  }
  const Total total = total_of(problem, least.chosen);
  CHECK(least.impossible == total.impossible);
  CHECK(least.sum == Approx(total.sum));
  return total;
}

class RandomSum {
 public:
  explicit RandomSum(std::uint64_t seed) : random_(seed) {}

  int draw(int low, int high) { return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1)); }

  // Variables of two or three values; one in eight has no choice.
  void variables(int count) {
    for (int i = 0; i < count; ++i) problem.values.push_back(draw(0, 7) == 0 ? 1 : draw(2, 3));
  }
  // One in ten choices is impossible, in some problems nine in ten.
  void cost(int first, int second) {
    PairCost pair{first, second, {}};
    const int count = problem.values[at(first)] * (first == second ? 1 : problem.values[at(second)]);
    for (int i = 0; i < count; ++i) {
      pair.costs.push_back(draw(1, 10) <= never_in_ten ? kNever : draw(0, 64) / 4.0);
    }
    problem.costs.push_back(pair);
  }
  // Each variable with the one before it, one in three alone as well.
  void chain(int count) {
    variables(count);
    for (int i = 1; i < count; ++i) cost(i - 1, i);
    for (int i = 0; i < count; ++i) {
      if (draw(0, 2) == 0) cost(i, i);
    }
  }
  // From two ends a cost again and again becomes two in a row, or two side by side.
  void series_parallel(int count) {
    variables(count);
    std::vector<std::pair<int, int>> edges = {{0, 1}};
    for (int made = 2; made < count; ++made) {
      const std::size_t edge = at(draw(0, static_cast<int>(edges.size()) - 1));
      const auto [from, to] = edges[edge];
      if (draw(0, 1) == 0) edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(edge));
      edges.emplace_back(from, made);
      edges.emplace_back(made, to);
    }
    for (const auto& [from, to] : edges) cost(from, to);
  }
  void arbitrary(int count) {
    variables(count);
    for (int costs = draw(0, 3 * count); costs > 0; --costs) cost(draw(0, count - 1), draw(0, count - 1));
  }

  int never_in_ten = 1;
  LeastSumProblem problem;

 private:
  std::mt19937_64 random_;
};

LeastSumProblem random_sum(std::uint64_t seed) {
  RandomSum random(seed);
  random.never_in_ten = random.draw(0, 4) == 0 ? 9 : 1;
  const int count = random.draw(2, 9);
  switch (seed % 3) {
    case 0:
      random.chain(count);
      break;
    case 1:
      random.series_parallel(count);
      break;
    default:
      random.arbitrary(count);
  }
  return random.problem;
}

}  // namespace

TEST_CASE("least_sum: of 300 random problems the best of all choices") {
  int impossible = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const LeastSumProblem problem = random_sum(seed);
    const LeastSum least = least_sum(problem);
    const Total total = checked(problem, least), best = least_of_all(problem);
    CHECK(least.exact);
    CHECK(total.impossible == best.impossible);
    CHECK(total.sum == Approx(best.sum));
    impossible += best.impossible > 0 ? 1 : 0;
    CHECK(least_sum(problem).chosen == least.chosen);
  }
  CHECK(impossible >= 10);
}

TEST_CASE("least_sum: what has been searched is no worse than the same value for all") {
  int best = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    RandomSum random(seed);
    random.never_in_ten = random.draw(0, 2);
    random.arbitrary(random.draw(5, 9));
    const LeastSumProblem& problem = random.problem;
    const Total of_all = least_of_all(problem);
    bool is_first = true;
    for (const std::int64_t most_entries : {0, 8, 40}) {
      INFO("at most " << most_entries << " entries");
      const LeastSum least = least_sum(problem, most_entries);
      const Total total = checked(problem, least);
      for (int value = 0; value < 3; ++value) {
        std::vector<int> same;
        for (const int values : problem.values) same.push_back(std::min(value, values - 1));
        CHECK_FALSE(is_less(total_of(problem, same), total));
      }
      for (std::size_t i = 0; i < problem.values.size(); ++i) {
        std::vector<int> other = least.chosen;
        for (other[i] = 0; other[i] < problem.values[i]; ++other[i]) {
          CHECK_FALSE(is_less(total_of(problem, other), total));
        }
      }
      const bool found = total.impossible == of_all.impossible && total.sum == Approx(of_all.sum);
      if (least.exact) CHECK(found);
      if (std::exchange(is_first, false)) {
        CHECK_FALSE(least.exact);
        best += found ? 1 : 0;
      }
    }
  }
  CHECK(best >= 100);  // of the searches of whole problems
}

TEST_CASE("least_sum: chains and rings of thousands of variables") {
  for (const bool ring : {false, true}) {
    RandomSum random(7);
    random.never_in_ten = 0;
    random.chain(2000);
    if (ring) random.cost(1999, 0);
    const LeastSum least = least_sum(random.problem);
    checked(random.problem, least);
    CHECK(least.exact);
  }
}

TEST_CASE("least_sum: what is all alike is the lowest value") {
  LeastSumProblem problem{.values = {2, 3, 2}, .costs = {}};
  CHECK(least_sum(problem).chosen == std::vector<int>{0, 0, 0});
  problem.costs = {{0, 1, std::vector<double>(6, 2.0)}, {1, 2, std::vector<double>(6, 2.0)}};
  CHECK(least_sum(problem).chosen == std::vector<int>{0, 0, 0});
  CHECK(least_sum(problem, 0).chosen == std::vector<int>{0, 0, 0});
  CHECK(least_sum(problem).sum == 4);
  problem.costs.push_back({1, 1, {1.0, 0.5, 0.5}});
  CHECK(least_sum(problem).chosen == std::vector<int>{0, 1, 0});
  CHECK(least_sum(problem, 0).chosen == std::vector<int>{0, 1, 0});
}

TEST_CASE("least_sum: nothing to choose") {
  for (const std::int64_t most_entries : {std::int64_t{0}, kMostLeastSumEntries}) {
    const LeastSum none = least_sum({}, most_entries);
    CHECK(none.chosen.empty());
    CHECK(none.impossible == 0);
    CHECK(none.sum == 0);
    CHECK(none.exact);
  }
  const LeastSum free = least_sum({.values = {1, 4}, .costs = {}});
  CHECK(free.chosen == std::vector<int>{0, 0});
  CHECK(free.sum == 0);
}

TEST_CASE("least_sum: where nothing is possible the least is as well") {
  const LeastSumProblem problem{
      .values = {2, 2}, .costs = {{0, 0, {kNever, kNever}}, {0, 1, {4, kNever, kNever, 3}}, {1, 1, {1, kNever}}}};
  for (const std::int64_t most_entries : {std::int64_t{0}, kMostLeastSumEntries}) {
    const LeastSum least = least_sum(problem, most_entries);
    CHECK(least.chosen == std::vector<int>{0, 0});
    CHECK(least.impossible == 1);
    CHECK(least.sum == 5);
  }
}

TEST_CASE("least_sum: a cost that is none is refused") {
  const auto refused = [](std::vector<double> costs, int second) {
    return error_of([&] { least_sum({.values = {2, 2}, .costs = {{0, second, std::move(costs)}}}); },
                    ErrorKind::internal);
  };
  CHECK(refused({1, 2, 3}, 1).find("3 costs of 4 choices") != std::string::npos);
  CHECK(refused({1, -2}, 0).find("a cost of -2") != std::string::npos);
  CHECK(refused({1, std::numeric_limits<double>::quiet_NaN()}, 0).find("a cost of nan") != std::string::npos);
  CHECK(refused({1, 2}, 2).find("variables 0 and 2 of 2") != std::string::npos);
}
