#include "compiler/choose/assignment.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "ir/error.h"

namespace burin {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The least time of some groups within so many bytes where a group may have parts of two options, which is no more than
// that of whole ones. All groups begin with their smallest option; then what saves the most time for a byte comes
// first.
class Relaxation {
 public:
  // An option of a group in the place of the one before it on its convex hull.
  struct Step {
    double bytes = 0, saved_us = 0;
  };

  void add_group(const std::vector<AssignmentOption>& options) {
    std::vector<AssignmentOption> hull = sorted(options);
    smallest_bytes_ += hull.front().bytes;
    smallest_us_ += hull.front().us;
    for (std::size_t i = 1; i < hull.size(); ++i) {
      steps_.push_back({static_cast<double>(hull[i].bytes - hull[i - 1].bytes), hull[i - 1].us - hull[i].us});
    }
  }

  void finish() {
    std::ranges::stable_sort(steps_,
                             [](const Step& a, const Step& b) { return a.saved_us * b.bytes > b.saved_us * a.bytes; });
    bytes_ = {0};
    saved_us_ = {0};
    for (const Step& step : steps_) {
      bytes_.push_back(bytes_.back() + step.bytes);
      saved_us_.push_back(saved_us_.back() + step.saved_us);
    }
  }

  std::int64_t smallest_bytes() const { return smallest_bytes_; }

  // Infinite where not even the smallest options fit.
  double least_us(std::int64_t budget) const {
    if (budget < smallest_bytes_) return kInfinite;
    const auto left = static_cast<double>(budget - smallest_bytes_);
    const auto over = std::ranges::upper_bound(bytes_, left);
    const auto whole = static_cast<std::size_t>(over - bytes_.begin()) - 1;
    double saved = saved_us_[whole];
    if (whole < steps_.size()) saved += steps_[whole].saved_us * (left - bytes_[whole]) / steps_[whole].bytes;
    return smallest_us_ - saved;
  }

 private:
  // The lower convex hull of time over bytes, from the fewest bytes to the least time.
  static std::vector<AssignmentOption> sorted(std::vector<AssignmentOption> options) {
    std::ranges::sort(options, [](const AssignmentOption& a, const AssignmentOption& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.us < b.us;
    });
    std::vector<AssignmentOption> hull;
    for (const AssignmentOption& option : options) {
      if (!hull.empty() && option.us >= hull.back().us) continue;
      const auto is_above = [&] {  // the last one, over the line from the one before it to this one
        const AssignmentOption &a = hull[hull.size() - 2], &b = hull.back();
        return (b.us - a.us) * static_cast<double>(option.bytes - a.bytes) >=
               (option.us - a.us) * static_cast<double>(b.bytes - a.bytes);
      };
      while (hull.size() >= 2 && is_above()) hull.pop_back();
      hull.push_back(option);
    }
    return hull;
  }

  std::int64_t smallest_bytes_ = 0;
  double smallest_us_ = 0;
  std::vector<Step> steps_;
  std::vector<double> bytes_, saved_us_;  // of the first so many steps together
};

class Search {
 public:
  Search(const AssignmentProblem& problem, std::int64_t most_nodes) : problem_(problem), nodes_left_(most_nodes) {
    chosen_.resize(problem.groups.size());
    for (std::size_t group = 0; group < problem.groups.size(); ++group) {
      const std::vector<AssignmentOption>& options = problem.groups[group];
      if (options.size() > 1) {
        order_.push_back(static_cast<int>(group));
      } else {
        fixed_.us += options[0].us;
        fixed_.bytes += options[0].bytes;
        fixed_.least_shared = std::max(fixed_.least_shared, options[0].least_shared);
      }
    }
    // Groups in which most is to be decided come first.
    std::ranges::stable_sort(order_, std::greater(), [&](int group) {
      const auto [low, high] = std::ranges::minmax(problem.groups[at(group)], {}, &AssignmentOption::bytes);
      return high.bytes - low.bytes;
    });
    relax();
  }

  Assignment fewest_bytes() {
    limit_ = std::numeric_limits<std::int64_t>::max();
    by_bytes_ = true;
    best_.us = kInfinite;
    best_.bytes = std::numeric_limits<std::int64_t>::max();
    const std::int64_t bound = least_bytes(0, fixed_.bytes, fixed_.least_shared);
    visit(0, fixed_);
    best_.least_bytes = nodes_left_ > 0 ? best_.bytes : bound;
    best_.least_us = best_.us;
    return best_;
  }

  Assignment fastest(std::int64_t limit, const Assignment& start) {
    limit_ = limit;
    best_ = start;
    BURIN_CHECK(start.bytes <= limit, "an assignment of {} bytes was to start from, and {} are allowed", start.bytes,
                limit);
    const double bound = least_us(0, fixed_, limit_);
    visit(0, fixed_);
    best_.least_us = nodes_left_ > 0 ? best_.us : std::min(best_.us, bound);
    best_.least_bytes = best_.bytes;
    return best_;
  }

 private:
  // Times are sums in other orders than before.
  static constexpr double kSameTime = 1e-9;

  // The groups from a depth on have their relaxation, where there is one for the depth; those in front of the next that
  // has one are bounded by their smallest and their fastest options.
  void relax() {
    constexpr std::size_t kMostSteps = 1 << 22;  // of all relaxations together
    const std::size_t count = order_.size();
    std::size_t options = 1;
    for (const int group : order_) options += problem_.groups[at(group)].size();
    stride_ = count / std::clamp<std::size_t>(kMostSteps / options, 1, count + 1) + 1;
    front_.resize(count + 1);
    rest_shared_.resize(count + 1);
    for (std::size_t depth = count; depth-- > 0;) {
      const std::vector<AssignmentOption>& options_here = problem_.groups[at(order_[depth])];
      const auto least = [&](auto of) { return std::invoke(of, std::ranges::min(options_here, {}, of)); };
      rest_shared_[depth] = std::max(rest_shared_[depth + 1], least(&AssignmentOption::least_shared));
      front_[depth] = (depth + 1) % stride_ == 0 ? AssignmentOption{} : front_[depth + 1];
      front_[depth].us += least(&AssignmentOption::us);
      front_[depth].bytes += least(&AssignmentOption::bytes);
    }
    for (std::size_t depth = 0; depth <= count; depth += stride_) {
      Relaxation& rest = rest_.emplace_back();
      for (std::size_t i = depth; i < count; ++i) rest.add_group(problem_.groups[at(order_[i])]);
      rest.finish();
    }
    rest_.emplace_back().finish();  // of none
  }

  // What the groups from a depth on take, those that a relaxation tells of and those before.
  const Relaxation& relaxed(std::size_t depth) const { return rest_[(depth + stride_ - 1) / stride_]; }
  AssignmentOption front(std::size_t depth) const { return depth % stride_ == 0 ? AssignmentOption{} : front_[depth]; }

  std::int64_t least_bytes(std::size_t depth, std::int64_t bytes, std::int64_t shared) const {
    return bytes + front(depth).bytes + relaxed(depth).smallest_bytes() + std::max(shared, rest_shared_[depth]);
  }
  double least_us(std::size_t depth, const AssignmentOption& taken, std::int64_t limit) const {
    const std::int64_t shared = std::max(taken.least_shared, rest_shared_[depth]);
    return taken.us + front(depth).us + relaxed(depth).least_us(limit - taken.bytes - front(depth).bytes - shared);
  }

  bool is_hopeless(std::size_t depth, const AssignmentOption& taken) const {
    std::int64_t limit = limit_;
    if (by_bytes_) {
      const std::int64_t least = least_bytes(depth, taken.bytes, taken.least_shared);
      if (least != best_.bytes) return least > best_.bytes;
      limit = best_.bytes;
    }
    return least_us(depth, taken, limit) >= best_.us * (1 - kSameTime);
  }

  static AssignmentOption sum(const AssignmentOption& a, const AssignmentOption& b) {
    return {a.us + b.us, a.bytes + b.bytes, std::max(a.least_shared, b.least_shared)};
  }

  // `taken`: by all groups that have an option.
  void visit(std::size_t depth, const AssignmentOption& taken) {
    if (nodes_left_ <= 0 || is_hopeless(depth, taken)) return;
    --nodes_left_;
    if (depth == order_.size()) return look_at(taken);
    const int group = order_[depth];
    const std::vector<AssignmentOption>& options = problem_.groups[at(group)];
    // What promises most comes first.
    std::vector<std::pair<double, int>> promising;
    for (std::size_t i = 0; i < options.size(); ++i) {
      const AssignmentOption with = sum(taken, options[i]);
      const double promise = by_bytes_ ? static_cast<double>(least_bytes(depth + 1, with.bytes, with.least_shared))
                                       : least_us(depth + 1, with, limit_);
      if (promise < kInfinite) promising.emplace_back(promise, static_cast<int>(i));
    }
    std::ranges::sort(promising);
    for (const auto& [promise, index] : promising) {
      chosen_[at(group)] = index;
      visit(depth + 1, sum(taken, options[at(index)]));
    }
  }

  void look_at(const AssignmentOption& taken) {
    const double us = taken.us;
    const std::int64_t shared = problem_.shared_bytes ? problem_.shared_bytes(chosen_) : taken.least_shared;
    const std::int64_t all = taken.bytes + shared;
    if (all > limit_) return;
    const bool better = by_bytes_ ? all < best_.bytes || (all == best_.bytes && us < best_.us) : us < best_.us;
    if (!better) return;
    best_.chosen = chosen_;
    best_.us = us;
    best_.bytes = all;
  }

  const AssignmentProblem& problem_;
  std::int64_t nodes_left_;
  bool by_bytes_ = false;
  std::int64_t limit_ = 0;
  AssignmentOption fixed_;                 // what groups of one option take
  std::vector<int> order_;                 // of the other groups
  std::size_t stride_ = 1;                 // of the depths that have a relaxation
  std::vector<Relaxation> rest_;           // of the groups from such a depth on
  std::vector<AssignmentOption> front_;    // what those from a depth to the next that has one take at least
  std::vector<std::int64_t> rest_shared_;  // what those from a depth on share at least
  std::vector<int> chosen_;
  Assignment best_;
};

}  // namespace

Assignment least_memory(const AssignmentProblem& problem, std::int64_t most_nodes) {
  return Search(problem, most_nodes).fewest_bytes();
}

Assignment least_time(const AssignmentProblem& problem, std::int64_t limit, const Assignment& start,
                      std::int64_t most_nodes) {
  return Search(problem, most_nodes).fastest(limit, start);
}

}  // namespace burin
