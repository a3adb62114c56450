#include "ir/baked_plan_activity.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/element_type.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaskBits = 32;
constexpr int kRowOfBanks = 128;  // bytes

}  // namespace

int BakedPlan::first_live_word(const Slice& slice) const {
  if (slice.channels.empty()) return 0;
  return *std::min_element(slice.channels.begin(), slice.channels.end()) / kMaskBits;
}

int BakedPlan::live_words(const Slice& slice) const {
  if (!skips || slice.channels.empty()) return 0;
  return *std::max_element(slice.channels.begin(), slice.channels.end()) / kMaskBits - first_live_word(slice) + 1;
}

int BakedPlan::live_words() const {
  int most = 0;
  for (const Slice& slice : slices) most = std::max(most, live_words(slice));
  return most;
}

int BakedPlan::mark_words() const { return marks ? static_cast<int>(ceil_div(group_capacity(), kMaskBits)) : 0; }

int BakedPlan::activity_bytes() const {
  const std::int64_t words = std::int64_t{live_words()} + mark_words();
  return saturate_to_int(ceil_div(words * kWordBytes, kRowOfBanks) * kRowOfBanks);
}

int most_activity_bytes(const ConvShape& shape) {
  const std::int64_t words = ceil_div(shape.in_channels, kMaskBits) + ceil_div(kMaxGroupChannels, kMaskBits);
  return saturate_to_int(ceil_div(words * kWordBytes, kRowOfBanks) * kRowOfBanks);
}

ActivityExtent input_extent(const ConvShape& shape, int batch) {
  return {batch, shape.in_channels, shape.in_h, shape.in_w};
}

std::vector<std::string> activity_faults(const BakedPlan& plan, const ConvShape& shape) {
  if (!plan.skips) return {};
  return verify(*plan.skips, input_extent(shape, plan.batch), plan.word_images(), "skips");
}

ActivityMap default_cell(const BakedPlan& plan, const ConvShape& shape) {
  const auto covered = [](int tile, int stride, int extent) {
    return static_cast<int>(std::min(saturating_product({tile, stride}), std::int64_t{extent}));
  };
  return {plan.tile_images(), covered(plan.tile.rows, shape.stride_h, shape.in_h),
          covered(plan.tile.cols, shape.stride_w, shape.in_w)};
}

int input_reach(int tile, int stride, int kernel, int dilation) {
  return saturate_to_int((std::int64_t{tile} - 1) * stride + (std::int64_t{kernel} - 1) * dilation + 1);
}

ActivityMap cells_read(const BakedPlan& plan, const ConvShape& shape) {
  if (!plan.skips) return {};
  const ActivityMap& cell = *plan.skips;
  // A window at every place where a tile of images can begin: as many as make the pattern repeat.
  const int images = plan.tile_images();
  return {most_cells_reached(saturate_to_int(std::int64_t{images} * cell.images), cell.images, 0, images, cell.images,
                             images),
          most_cells_reached(shape.in_h, cell.rows, -shape.pad.top, plan.tile.rows * shape.stride_h,
                             static_cast<int>(ceil_div(shape.out_h(), plan.tile.rows)),
                             input_reach(plan.tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h)),
          most_cells_reached(shape.in_w, cell.cols, -shape.pad.left, plan.tile.cols * shape.stride_w,
                             static_cast<int>(ceil_div(shape.out_w(), plan.tile.cols)),
                             input_reach(plan.tile.cols, shape.stride_w, shape.kernel_w, shape.dilation_w))};
}

}  // namespace burin
