// normalize: each value of a group by what the group is, then a scale and a shift, then a function. What a thread has
// read of a group it keeps where that is few values, and otherwise reads it again.
#define BURIN_TEMPLATE_DEF "compiler/providers/normalize/normalize.def"
#include "templates/kernels/lane_groups.h"
#include "templates/kernels/normalization.h"

BURIN_DEVICE bool is_held() { return count() <= static_cast<i32>(kHeldValues) * lanes(); }

// A thread's values.
struct Held {
  float values[kHeldValues];
};
BURIN_DEVICE Held load_held(const float* from, const Lane& at) {
  Held held;
  const u32 first = group_word(at.group);
#pragma unroll
  for (u32 i = 0; i < kHeldValues; ++i) {
    held.values[i] = 0;
    if (!is_held() || i * lanes() >= static_cast<u32>(count())) continue;
    const u32 value = at_most(value_of_piece(at, i), count() - 1);
    held.values[i] = burin_dev_global_load(from, bytes_of(first + value_word(value)));
  }
  return held;
}

// with(result, value) for each of them.
template <typename With>
BURIN_DEVICE float over_held(const Held& held, const float* from, const Lane& at, float start, With with) {
  if (!is_held()) return over_values(from, at, start, with);
  float result = start;
#pragma unroll
  for (u32 i = 0; i < kHeldValues; ++i) {
    if (value_of_piece(at, i) < static_cast<u32>(count())) result = with(result, held.values[i]);
  }
  return result;
}

BURIN_DEVICE Change change_of(const Held& held, const float* from, const Lane& at) {
  constexpr float kWhole = 1;
  const float share = kWhole / count();
  float center = 0;
  if (has_center()) {
    const auto both = [](float a, float b) BURIN_INLINED { return center_of(a, b); };
    center = over_lanes(over_held(held, from, at, center_start(), both), 0, both);
    if (!center_is_largest()) center *= share;
  }
  const auto add = [&](float sum, float x) BURIN_INLINED { return size_with(sum, x, center); };
  return {center, factor_of(sum_over_lanes(over_held(held, from, at, 0, add), 1), share)};
}

// Where the scale and the shift of a group's value lie.
BURIN_DEVICE u32 number_of(const Lane& at, u32 value) {
  const ThreeAxes of_groups = {{group_extent0(), group_extent1(), group_extent2()},
                               {group_number0(), group_number1(), group_number2()}};
  const ThreeAxes of_values = {{value_extent0(), value_extent1(), value_extent2()},
                               {value_number0(), value_number1(), value_number2()}};
  return word_along(of_groups, at.group) + word_along(of_values, value);
}

BURIN_DEVICE float changed(const float* weights, const Lane& at, u32 value, float x, const Change& change) {
  float result = changed_by(x, change);
  const u32 number = number_of(at, value);
  if (scales()) result *= burin_dev_global_load(weights, bytes_of(number));
  if (shifts()) result += burin_dev_global_load(weights, bytes_of(scale_words() + number));
  return apply(result);
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float* weights, i32) {
  burin_dev_await_launch();
  const Lane at = locate_lane();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  const Held held = load_held(from, at);
  const Change change = change_of(held, from, at);
  if (!at.exists) return;
  const u32 first = group_word(at.group);
  if (is_held()) {
#pragma unroll
    for (u32 i = 0; i < kHeldValues; ++i) {
      const u32 value = value_of_piece(at, i);
      if (value >= static_cast<u32>(count())) continue;
      burin_dev_global_store(to, bytes_of(first + value_word(value)),
                             changed(weights, at, value, held.values[i], change));
    }
    return;
  }
#pragma nounroll
  for (u32 value = at.lane; value < static_cast<u32>(count()); value += lanes()) {
    const i64 at_bytes = bytes_of(first + value_word(value));
    burin_dev_global_store(to, at_bytes, changed(weights, at, value, burin_dev_global_load(from, at_bytes), change));
  }
}
