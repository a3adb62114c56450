// StepOrder: which steps of a Program must have finished before which others begin. Two steps that it does not
// order may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace burin {

class StepOrder {
 public:
  explicit StepOrder(std::size_t steps) : words_((steps + 63) / 64) {}

  // The next step, behind these and all that they are behind. They are numbers of steps that were added.
  void add(const std::vector<int>& after);

  int steps() const { return static_cast<int>(before_.size()); }
  bool is_before(int first, int second) const;
  bool is_ordered(int a, int b) const { return is_before(a, b) || is_before(b, a); }
  bool all_before(const std::vector<int>& first, const std::vector<int>& second) const;

  // A bit for every step.
  using Set = std::vector<std::uint64_t>;
  static bool has(const Set& set, int step) {
    return (set[static_cast<std::size_t>(step) / 64] >> (step % 64) & 1) != 0;
  }
  // Those that are before each of these, of which there is one at least.
  Set before_all(const std::vector<int>& steps) const;

  // Leaves out those that another of them is behind; ascending.
  std::vector<int> reduced(std::vector<int> after) const;

 private:
  std::size_t words_;
  std::vector<Set> before_;  // of each step, those that are before it
};

}  // namespace burin
