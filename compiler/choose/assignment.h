// Assignment: one option for each of several groups, such that all together take the least time within a limit of
// memory, or the least memory. Pure arithmetic: what groups and options are, the caller knows
// (compiler/choose/network_choice.h).
//
// Times and bytes of options add up. What options share (the arena, scratch memory of steps that take turns) is a
// function of all that were chosen, of which each option says what it is at least.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace burin {

struct AssignmentOption {
  double us = 0;
  std::int64_t bytes = 0;         // that the group takes for itself
  std::int64_t least_shared = 0;  // what is shared is no less, whatever the others are
};

struct AssignmentProblem {
  std::vector<std::vector<AssignmentOption>> groups;  // none is empty
  // What a whole assignment shares: an index for each group. Empty: the largest `least_shared`.
  std::function<std::int64_t(const std::vector<int>&)> shared_bytes;
};

struct Assignment {
  std::vector<int> chosen;  // of each group
  double us = 0;
  std::int64_t bytes = 0;  // all, what is shared included
  // No assignment within the limit takes less time; of least_memory(), no assignment at all takes fewer bytes. Where
  // the search was exhaustive it is what this one takes.
  double least_us = 0;
  std::int64_t least_bytes = 0;
};

// Branch and bound; what is left is bounded by the linear relaxation, in which a group may have parts of two options.
// After `most_nodes` the best that was found is returned, and the bound says how far off it may be.
inline constexpr std::int64_t kMostAssignmentNodes = 4'000'000;

// The fewest bytes; of those that take as few, the least time.
Assignment least_memory(const AssignmentProblem& problem, std::int64_t most_nodes = kMostAssignmentNodes);

// The least time within `limit` bytes. `start`: an assignment that keeps it, such as least_memory()'s.
Assignment least_time(const AssignmentProblem& problem, std::int64_t limit, const Assignment& start,
                      std::int64_t most_nodes = kMostAssignmentNodes);

}  // namespace burin
