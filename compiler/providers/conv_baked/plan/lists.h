// Many short lists of integers in one block of memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace burin {

class Lists {
 public:
  Lists() : starts_{0} {}
  void add(int value) { values_.push_back(value); }
  void end_list() { starts_.push_back(values_.size()); }
  std::size_t count() const { return starts_.size() - 1; }
  std::size_t total() const { return values_.size(); }
  std::span<const int> operator[](std::size_t list) const {
    return {values_.data() + starts_[list], starts_[list + 1] - starts_[list]};
  }

  // List v of the result names the lists that hold v, ascending.
  Lists inverse(std::size_t values) const {
    Lists result;
    result.starts_.assign(values + 1, 0);
    result.values_.resize(values_.size());
    for (const int value : values_) ++result.starts_[value + 1];
    for (std::size_t v = 0; v < values; ++v) result.starts_[v + 1] += result.starts_[v];
    std::vector<std::size_t> next(result.starts_.begin(), result.starts_.end() - 1);
    for (std::size_t list = 0; list < count(); ++list) {
      for (const int value : (*this)[list]) result.values_[next[value]++] = static_cast<int>(list);
    }
    return result;
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<int> values_;
};

}  // namespace burin
