// What verifying a Program costs, and that the short way finds what the long one does.
#include <fmt/format.h>

#include <ctime>
#include <random>

#include "ir/limits.h"
#include "ir/program.h"
#include "ir/step_order.h"
#include "test/catch.h"

using namespace burin;
using burin_test::Contains;

namespace {

constexpr std::int64_t kBytes = 256;  // of a tensor

Place whole(int buffer, std::int64_t bytes = kBytes) { return {buffer, 0, bytes, bytes, 1, 0}; }

// An input, an output and nothing else.
Program empty_program() {
  Program program;
  program.name = "cost";
  program.batch = 1;
  program.buffers.push_back({.tensor = "in", .shape = {64}, .home = BufferHome::input, .argument = 0});
  program.buffers.push_back({.tensor = "out", .shape = {64}, .home = BufferHome::output, .argument = 0});
  program.naive_bytes = std::int64_t{1} << 32;
  return program;
}

int add_buffer(Program& program, std::int64_t offset, std::int64_t values = 64) {
  program.buffers.push_back({.tensor = "t", .shape = {values}, .argument = -1, .offset = offset});
  return static_cast<int>(program.buffers.size()) - 1;
}

void add_step(Program& program, int from, Place to, std::vector<int> after) {
  program.steps.push_back({"s", "pool", 0, "t", {whole(from)}, to, std::move(after)});
  program.steps.back().kernel = "k";
}

double seconds_of(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Steps that wait for some of those before, each with a buffer of its own somewhere in the arena.
Program random_program(std::mt19937& random) {
  Program program = empty_program();
  const int steps = 3 + static_cast<int>(random() % 10);
  for (int i = 0; i < steps; ++i) {
    std::vector<int> after;
    for (int j = 0; j < i; ++j) {
      if (random() % 3 == 0) after.push_back(j);
    }
    const std::int64_t pieces = 1 + random() % 3;
    const int buffer = add_buffer(program, static_cast<std::int64_t>(random() % 4) * kBytes, pieces * 64);
    add_step(program, 0, whole(buffer, pieces * kBytes), after);
  }
  add_step(program, 0, whole(1), {});
  complete(program);
  return program;
}

bool any_pair_shares(const Program& program) {
  StepOrder order(program.steps.size());
  for (const Step& step : program.steps) order.add(step.after);
  for (std::size_t i = 0; i + 1 < program.steps.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer &a = program.buffers[i + 2], &b = program.buffers[j + 2];  // each of the step with its number
      const bool together = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (together && !order.is_ordered(static_cast<int>(i), static_cast<int>(j))) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("program cost: buffers that share bytes are found as by looking at all pairs") {
  std::mt19937 random(20261123);
  int sharing = 0, sound = 0;
  for (int i = 0; i < 3000; ++i) {
    const Program program = random_program(random);
    const std::vector<std::string> faults = verify(program);
    const bool found = !faults.empty() && faults[0].find("share bytes of the arena") != std::string::npos;
    const bool other = !faults.empty() && !found;
    if (other) continue;  // an arena that is larger than its buffers
    INFO(to_text(program));
    CHECK(found == any_pair_shares(program));
    (found ? sharing : sound) += 1;
  }
  CHECK(sharing > 1000);
  CHECK(sound > 100);
}

TEST_CASE("program cost: as many steps as there may be, in a chain that goes to and fro") {
  Program program = empty_program();
  int last = 0;
  for (int i = 0; i + 1 < kMaxPlanSteps; ++i) {
    const int next = add_buffer(program, i % 2 * kBytes);
    add_step(program, last, whole(next), i == 0 ? std::vector<int>() : std::vector<int>{i - 1});
    last = next;
  }
  add_step(program, last, whole(1), {kMaxPlanSteps - 2});
  complete(program);
  std::vector<std::string> faults;
  const double seconds = seconds_of([&] { faults = verify(program); });
  CHECK(faults == std::vector<std::string>{});
  CHECK(seconds < 5);  // 10^8 pairs of buffers have the same bytes
}

TEST_CASE("program cost: pairs of uses of one buffer have a bound") {
  const auto with = [](int steps) {
    Program program = empty_program();
    const int buffer = add_buffer(program, 0);
    for (int i = 0; i < steps; ++i) {
      add_step(program, i == 0 ? 0 : buffer, whole(buffer), i == 0 ? std::vector<int>() : std::vector<int>{i - 1});
    }
    add_step(program, buffer, whole(1), {steps - 1});
    complete(program);
    return program;
  };
  std::vector<std::string> faults;
  CHECK(seconds_of([&] { faults = verify(with(4000)); }) < 20);  // 32 million pairs
  CHECK(faults == std::vector<std::string>{});
  CHECK(seconds_of([&] { faults = verify(with(19'000)); }) < 5);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == fmt::format("there are 722000001 pairs of a write and a use of the same buffer; at most {} are "
                                 "allowed (kMaxPlanPairs)",
                                 kMaxPlanPairs));
}

TEST_CASE("program cost: many reads of one write") {
  Program program = empty_program();
  const int buffer = add_buffer(program, 0);
  add_step(program, 0, whole(buffer), {});
  for (int i = 1; i + 1 < kMaxPlanSteps; ++i) add_step(program, buffer, whole(add_buffer(program, kBytes * i)), {0});
  add_step(program, buffer, whole(1), {0});
  complete(program);
  std::vector<std::string> faults;
  CHECK(seconds_of([&] { faults = verify(program); }) < 2);  // 4 * 10^8 pairs of reads
  CHECK(faults == std::vector<std::string>{});
  CHECK(cost_of(program).waits == kMaxPlanSteps - 1);
}

TEST_CASE("step order: of many steps to wait for, those that others are behind are left out at once") {
  constexpr int kSteps = 8000;
  StepOrder order(kSteps);
  std::vector<int> all;
  for (int i = 0; i < kSteps; ++i) {
    order.add(i % 2 == 0 ? std::vector<int>() : std::vector<int>{i - 1});
    all.push_back(i);
  }
  std::vector<int> reduced;
  CHECK(seconds_of([&] { reduced = order.reduced(all); }) < 0.5);
  REQUIRE(reduced.size() == kSteps / 2);
  for (int i = 0; i < kSteps / 2; ++i) CHECK(reduced[static_cast<std::size_t>(i)] == 2 * i + 1);
}
