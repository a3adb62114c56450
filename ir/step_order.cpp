#include "ir/step_order.h"

#include <algorithm>

namespace burin {

void StepOrder::add(const std::vector<int>& after) {
  Set bits(words_);
  for (const int step : after) {
    const Set& others = before_[static_cast<std::size_t>(step)];
    for (std::size_t word = 0; word < words_; ++word) bits[word] |= others[word];
    bits[static_cast<std::size_t>(step) / 64] |= std::uint64_t{1} << (step % 64);
  }
  before_.push_back(std::move(bits));
}

bool StepOrder::is_before(int first, int second) const { return has(before_[static_cast<std::size_t>(second)], first); }

bool StepOrder::all_before(const std::vector<int>& first, const std::vector<int>& second) const {
  return std::ranges::all_of(
      first, [&](int a) { return std::ranges::all_of(second, [&](int b) { return is_before(a, b); }); });
}

StepOrder::Set StepOrder::before_all(const std::vector<int>& steps) const {
  Set set = before_[static_cast<std::size_t>(steps.front())];
  for (const int step : steps) {
    const Set& others = before_[static_cast<std::size_t>(step)];
    for (std::size_t word = 0; word < words_; ++word) set[word] &= others[word];
  }
  return set;
}

std::vector<int> StepOrder::reduced(std::vector<int> after) const {
  std::ranges::sort(after);
  after.erase(std::unique(after.begin(), after.end()), after.end());
  Set earlier(words_);
  for (const int step : after) {
    const Set& others = before_[static_cast<std::size_t>(step)];
    for (std::size_t word = 0; word < words_; ++word) earlier[word] |= others[word];
  }
  std::erase_if(after, [&](int step) { return has(earlier, step); });
  return after;
}

}  // namespace burin
