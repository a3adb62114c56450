#include "compiler/host/group_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace burin {

void GroupProducts::begin_thread() { *this = {}; }

std::optional<std::string> GroupProducts::add(float* sums, const GroupOperands& operands, std::span<double>& values) {
  const std::uint32_t octets = operands.octets;
  if (octets < 1 || octets > kMaxOctets) {
    return fmt::format("multiplies {} octets with a warpgroup; it can be 1 to {}", octets, kMaxOctets);
  }
  for (const std::uint32_t place : {operands.a.value_or(0), operands.b, operands.next_rows, operands.next_octet}) {
    constexpr std::uint32_t kAlignment = 16, kMost = 1U << 18;
    if (place % kAlignment != 0 || place >= kMost) {
      return fmt::format(
          "a matrix of a warpgroup has {} as an address or distance, which must be a multiple of {} below {}", place,
          kAlignment, kMost);
    }
  }
  if (!begun_) return "multiplies with a warpgroup without having begun since its sums were read or written";
  const std::size_t count = std::size_t{octets} * kOctetSums;
  auto known = std::ranges::find(sums_, sums, &Sums::of);
  if (known == sums_.end()) {
    const auto overlaps = [&](const Sums& other) {
      return sums < other.of + other.values.size() && other.of < sums + count;
    };
    if (std::ranges::any_of(sums_, overlaps)) {
      return "multiplies with a warpgroup into a part of sums while products are under way";
    }
    sums_.push_back({sums, {sums, sums + count}});
    known = std::prev(sums_.end());
    std::fill(sums, sums + count, std::numeric_limits<float>::quiet_NaN());
  } else if (known->values.size() != count) {
    return "multiplies with a warpgroup into other sums while products are under way";
  }
  if (batches_.empty()) batches_.emplace_back();
  batches_.back().push_back(operands);
  values = known->values;
  return std::nullopt;
}

void GroupProducts::commit() {
  if (batches_.empty()) batches_.emplace_back();
  batches_.emplace_back();
}

std::optional<std::string> GroupProducts::wait(float* sums, std::uint32_t octets, std::uint32_t pending,
                                               std::vector<GroupOperands>& ended) {
  const auto known = std::ranges::find(sums_, sums, &Sums::of);
  if (known == sums_.end() ? !sums_.empty() : known->values.size() != std::size_t{octets} * kOctetSums) {
    return "waits for other sums than those that a warpgroup multiplies into";
  }
  release(pending, ended);
  const bool is_over = std::ranges::all_of(batches_, [](const auto& batch) { return batch.empty(); });
  if (!is_over || known == sums_.end()) return std::nullopt;
  std::ranges::transform(known->values, sums, [](double value) { return static_cast<float>(value); });
  sums_.erase(known);
  if (sums_.empty()) begun_ = false;
  return std::nullopt;
}

void GroupProducts::release(std::uint32_t pending, std::vector<GroupOperands>& ended) {
  ended.clear();
  while (batches_.size() > std::size_t{pending} + 1) {
    ended.insert(ended.end(), batches_.front().begin(), batches_.front().end());
    batches_.erase(batches_.begin());
  }
}

std::optional<std::string> GroupProducts::end_thread() const {
  if (sums_.empty()) return std::nullopt;
  return "ended while products of its warpgroup are under way";
}

}  // namespace burin
