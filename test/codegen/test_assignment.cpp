// The choice of options within a limit: held to all that there are.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "compiler/choose/assignment.h"
#include "ir/arena.h"
#include "ir/program.h"
#include "test/catch.h"

using namespace burin;

namespace {

// Groups are the steps of a random graph, whose scratch memory is shared by those that cannot run at the same time.
struct RandomProblem {
  AssignmentProblem problem;
  Program program;
  std::vector<std::vector<std::int64_t>> partials;  // of each option
};

RandomProblem random_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  RandomProblem made;
  const int steps = draw(1, 7);
  for (int i = 0; i < steps; ++i) {
    Step& step = made.program.steps.emplace_back();
    for (int before = 0; before < i; ++before) {
      if (draw(0, 2) == 0) step.after.push_back(before);
    }
    std::vector<AssignmentOption>& options = made.problem.groups.emplace_back();
    std::vector<std::int64_t>& partials = made.partials.emplace_back();
    for (int count = draw(1, 4); count > 0; --count) {
      const std::int64_t scratch = draw(0, 2) == 0 ? 256 * draw(1, 8) : 0;
      options.push_back({draw(1, 40) / 4.0, 100 * draw(1, 20), scratch});
      partials.push_back(scratch);
    }
  }
  return made;
}

// What makes `problem` complete; `made` must stay where it is.
void share(RandomProblem& made) {
  made.problem.shared_bytes = [&made](const std::vector<int>& chosen) {
    std::vector<std::int64_t> bytes;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      bytes.push_back(made.partials[i][static_cast<std::size_t>(chosen[i])]);
    }
    return lay_out_partials(made.program, bytes).bytes;
  };
}

// Calls `look` with each assignment, its time and its bytes.
template <typename Look>
void for_all(const AssignmentProblem& problem, const Look& look) {
  std::vector<int> chosen(problem.groups.size());
  for (;;) {
    double us = 0;
    std::int64_t bytes = problem.shared_bytes(chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const AssignmentOption& option = problem.groups[i][static_cast<std::size_t>(chosen[i])];
      us += option.us;
      bytes += option.bytes;
    }
    look(us, bytes);
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == static_cast<int>(problem.groups[i].size())) chosen[i++] = 0;
    if (i == chosen.size()) return;
  }
}

// The sums of what was chosen are what it is said to take.
void check_sums(const AssignmentProblem& problem, const Assignment& assignment) {
  REQUIRE(assignment.chosen.size() == problem.groups.size());
  double us = 0;
  std::int64_t bytes = problem.shared_bytes(assignment.chosen);
  for (std::size_t i = 0; i < problem.groups.size(); ++i) {
    const AssignmentOption& option = problem.groups[i].at(static_cast<std::size_t>(assignment.chosen[i]));
    us += option.us;
    bytes += option.bytes;
  }
  CHECK(assignment.us == Approx(us));
  CHECK(assignment.bytes == bytes);
}

}  // namespace

TEST_CASE("assignment: of 50 random graphs it is the best of all there are") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    RandomProblem made = random_problem(seed);
    share(made);
    const AssignmentProblem& problem = made.problem;
    std::vector<std::int64_t> all_bytes;
    std::pair<std::int64_t, double> smallest{std::numeric_limits<std::int64_t>::max(), 0};
    for_all(problem, [&](double us, std::int64_t bytes) {
      all_bytes.push_back(bytes);
      smallest = std::min(smallest, {bytes, us});
    });
    const Assignment least = least_memory(problem);
    check_sums(problem, least);
    CHECK(least.bytes == smallest.first);
    CHECK(least.us == Approx(smallest.second));
    CHECK(least.least_bytes == least.bytes);
    const std::int64_t most = std::ranges::max(all_bytes);
    for (const std::int64_t limit : {least.bytes, (3 * least.bytes + most) / 4, (least.bytes + most) / 2, most}) {
      INFO("limit " << limit);
      double fastest = std::numeric_limits<double>::infinity();
      for_all(problem, [&](double us, std::int64_t bytes) {
        if (bytes <= limit) fastest = std::min(fastest, us);
      });
      const Assignment best = least_time(problem, limit, least);
      check_sums(problem, best);
      CHECK(best.bytes <= limit);
      CHECK(best.us == Approx(fastest));
      CHECK(best.least_us == best.us);
    }
  }
}

TEST_CASE("assignment: a search that ends early says how far off it may be") {
  AssignmentProblem problem;
  std::mt19937_64 random(7);
  const auto draw = [&] { return std::uniform_real_distribution<double>(1, 2)(random); };
  for (int i = 0; i < 60; ++i) {
    const double slow = draw();
    problem.groups.push_back({{slow, 1000 + static_cast<std::int64_t>(100 * draw()), 0},
                              {slow / 2, 2000 + static_cast<std::int64_t>(500 * draw()), 0}});
  }
  const Assignment least = least_memory(problem);
  const std::int64_t limit = least.bytes + 30 * 1500;
  const Assignment best = least_time(problem, limit, least), early = least_time(problem, limit, least, 100);
  CHECK(best.bytes <= limit);
  CHECK(early.bytes <= limit);
  CHECK(best.us <= early.us);
  CHECK(early.least_us < early.us);
  CHECK(early.least_us <= best.us);
  CHECK(early.us < 1.05 * early.least_us);
}

TEST_CASE("assignment: a thousand groups take no longer than they must") {
  AssignmentProblem problem;
  for (int i = 0; i < 1000; ++i) problem.groups.push_back({{2, 100, 0}, {1, 200, 0}, {1, 300, 50}});
  const Assignment least = least_memory(problem);
  CHECK(least.bytes == 100'000);
  const Assignment half = least_time(problem, 150'000, least);
  CHECK(half.bytes == 150'000);
  CHECK(half.us == Approx(1500));
  CHECK(half.least_us == half.us);
}
