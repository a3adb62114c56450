// Changes of shape that split axes or merge them, beside changes of their order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace burin {

struct ReshapedThenOrdered {
  std::vector<std::int64_t> shape;  // of the reshape
  std::vector<int> order;           // of the transpose behind it
};

// A tensor of the shape `input` that is transposed, then given the shape `to`: as a reshape and then a transpose.
// Nothing where `to` does more than split axes, or than merge some that follow each other before the transpose as well.
std::optional<ReshapedThenOrdered> reshaped_before(const std::vector<std::int64_t>& input,
                                                   const std::vector<int>& order, const std::vector<std::int64_t>& to);

// A tensor of the shape `input` that is given the shape `to`, then transposed: the order of a transpose before, behind
// which a reshape gives the same. Nothing where `to` does more than merge axes, or than split some whose parts stay
// together.
std::optional<std::vector<int>> ordered_before(const std::vector<std::int64_t>& input,
                                               const std::vector<std::int64_t>& to, const std::vector<int>& order);

}  // namespace burin
