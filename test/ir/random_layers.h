// Layers and plans for tests, the same on every machine for a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin_test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Both ends included. Not std::uniform_int_distribution: that differs between libraries.
  int integer(int low, int high) { return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1)); }
  bool chance(double share) { return real() < share; }
  double real() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

// Weights of the given density; each nonzero is in +-[0.125, 1].
inline burin::ConvLayer make_layer(std::string name, const burin::ConvShape& shape, double density,
                                   std::uint64_t seed = 1) {
  burin::ConvLayer layer{std::move(name), shape, {}, {}};
  Random random(seed);
  layer.weights.resize(static_cast<std::size_t>(shape.weight_elements()));
  for (float& weight : layer.weights) {
    if (!random.chance(density)) continue;
    weight = static_cast<float>(0.125 + 0.875 * random.real()) * (random.chance(0.5) ? 1.0F : -1.0F);
  }
  if (shape.epilogue.bias) {
    for (int k = 0; k < shape.out_channels; ++k) layer.bias.push_back(static_cast<float>(random.real()));
  }
  return layer;
}

// A pool that filters behind the layer's outputs, of this geometry.
inline void add_filters(burin::ConvLayer& layer, burin::Pool window, std::uint64_t seed = 1,
                        std::optional<burin::Elementwise> then = {}) {
  window.kind = burin::PoolKind::filter;
  layer.shape.epilogue.pool = window;
  layer.shape.epilogue.then = std::move(then);
  Random random(seed);
  const auto draw = [&](std::vector<float>& values, std::int64_t count) {
    values.clear();
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(2 * random.real() - 1));
  };
  draw(layer.filters, std::int64_t{layer.shape.out_channels} * summed_values(window));
  draw(layer.filter_bias, layer.shape.out_channels);
}

// A residual, now and then: added before the function, or behind it.
inline void add_residual(burin::ConvShape& shape, Random& random) {
  burin::Epilogue& epilogue = shape.epilogue;
  epilogue.residual = random.chance(0.3);
  epilogue.residual_last = epilogue.residual && !epilogue.pool && random.chance(0.5);
  if (epilogue.residual_last && !epilogue.function) {
    epilogue.function = burin::Elementwise{burin::ElementFunction::silu};
  }
}

// The pool takes the largest or the mean value of a window of up to 4x4.
inline burin::Pool random_pool(Random& random) {
  burin::Pool pool;
  pool.kind = random.chance(0.5) ? burin::PoolKind::max : burin::PoolKind::average;
  pool.kernel_h = random.integer(1, 4);
  pool.kernel_w = random.integer(1, 4);
  pool.stride_h = random.integer(1, 3);
  pool.stride_w = random.integer(1, 3);
  const auto pad = [&](int kernel) { return random.integer(0, std::min(1, kernel - 1)); };
  pool.pad = {pad(pool.kernel_h), pad(pool.kernel_h), pad(pool.kernel_w), pad(pool.kernel_w)};
  pool.round_up = random.chance(0.5);
  pool.count_padding = random.chance(0.5);
  return pool;
}

// A legal shape; every attribute is drawn, small enough for a brute-force check.
inline burin::ConvShape random_shape(Random& random) {
  burin::ConvShape shape;
  shape.groups = random.chance(0.3) ? random.integer(2, 8) : 1;
  shape.in_channels = shape.groups * random.integer(1, 24);
  shape.out_channels = shape.groups * random.integer(1, 24);
  shape.kernel_h = random.integer(1, 5);
  shape.kernel_w = random.integer(1, 5);
  shape.stride_h = random.integer(1, 3);
  shape.stride_w = random.integer(1, 3);
  shape.dilation_h = random.integer(1, 3);
  shape.dilation_w = random.integer(1, 3);
  shape.pad = {random.integer(0, 6), random.integer(0, 6), random.integer(0, 6), random.integer(0, 6)};
  const auto least_input = [](int kernel, int dilation, int pads) {
    return std::max(1, (kernel - 1) * dilation + 1 - pads);
  };
  shape.in_h = least_input(shape.kernel_h, shape.dilation_h, shape.pad.top + shape.pad.bottom) + random.integer(0, 30);
  shape.in_w = least_input(shape.kernel_w, shape.dilation_w, shape.pad.left + shape.pad.right) + random.integer(0, 30);
  shape.epilogue.bias = random.chance(0.5);
  shape.epilogue.residual = random.chance(0.3);
  const auto activation = static_cast<burin::Activation>(random.integer(0, 5));
  shape.epilogue.function = burin::function_of(activation, static_cast<float>(random.real()));
  return shape;
}

// 16 -> 32 channels, 3x3, 14x14: what the plan below computes.
inline burin::ConvShape small_shape() {
  burin::ConvShape shape;
  shape.in_channels = 16;
  shape.out_channels = 32;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 14;
  return shape;
}

// A legal plan for small_shape(): 2 groups, 2 splits, 2 stages in 2 buffers.
inline burin::BakedPlan small_plan() {
  burin::BakedPlan plan;
  plan.batch = 2;
  plan.tile = {2, 14, 14};
  plan.threads = 416;
  plan.shared = {.patch_rows = 16,
                 .patch_cols = 16,
                 .channels_per_row = 2,
                 .row_pitch = 33,
                 .image_pitch = 530,
                 .channel_pitch = 1061};
  plan.groups.resize(2);
  for (int k = 0; k < 32; ++k) plan.groups[k % 2].push_back(k);
  plan.splits = 2;
  plan.reduction = burin::Reduction::last_block;
  for (int group = 0; group < 2; ++group) {
    plan.slices.push_back({group, 0, {0, 1, 2, 3, 4, 9, 10, 11}});
    plan.slices.push_back({group, 1, {5, 6, 7, 8, 12, 13, 14, 15}});
  }
  plan.stage_channels = 4;
  plan.buffers = 2;
  plan.barrier_every = 512;
  plan.max_registers = 128;
  plan.predicted_us = 4.25;
  return plan;
}

// The same, of pairs of images.
inline burin::BakedPlan small_half_plan(burin::Precision precision) {
  burin::BakedPlan plan = small_plan();
  plan.precision = precision;
  plan.input_layout = plan.output_layout = burin::TensorLayout::n2chw;
  return plan;
}

inline bool any_contains(const std::vector<std::string>& faults, const std::string& part) {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const std::string& fault) { return fault.find(part) != std::string::npos; });
}

}  // namespace burin_test
