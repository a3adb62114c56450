#include "ir/library_task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace burin {
namespace {

constexpr std::int64_t kMostLibraryElements = std::numeric_limits<std::int32_t>::max();

// Elements from one value along each axis to the next, of a tensor in the layout.
struct LayoutSteps {
  TensorLayout layout;
  std::int64_t channels = 1, pixels = 1;

  std::int64_t side_by_side() const { return channels_side_by_side(layout, channels); }
  std::int64_t together() const { return images_together(layout) * side_by_side(); }
  // From one image to the one so many further on: they share places, or are in different ones.
  std::int64_t images(std::int64_t count) const {
    return count < images_together(layout) ? count : count / images_together(layout) * image();
  }
  std::int64_t channel(std::int64_t count) const {
    return count < side_by_side() ? count * images_together(layout) : count / side_by_side() * pixels * together();
  }
  std::int64_t pixel() const { return together(); }

 private:
  std::int64_t image() const { return channels * pixels * images_together(layout); }
};

// An axis in parts, each of which lies regularly in both layouts; the outermost first. The last two are what lies
// together in them.
std::array<std::int64_t, 3> parts_of(std::int64_t extent, int one, int other) {
  const std::int64_t inner = std::min(one, other), outer = std::max(one, other);
  return {extent / outer, outer / inner, inner};
}

std::string describe_moved(const MovedTensor& moved) {
  std::vector<std::int64_t> extents, in, out;
  for (const MovedAxis& axis : moved.axes) {
    extents.push_back(axis.extent);
    in.push_back(axis.in_step);
    out.push_back(axis.out_step);
  }
  return fmt::format("moves {}, steps {} -> {}", fmt::join(extents, "x"), fmt::join(in, "x"), fmt::join(out, "x"));
}

}  // namespace

std::optional<MovedTensor> moved_tensor(const std::vector<MovedAxis>& axes) {
  MovedTensor moved;
  std::int64_t last_in = 0, last_out = 0;
  for (const MovedAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (axis.extent < 1 || axis.in_step < 1 || axis.out_step < 1) return std::nullopt;
    const std::int64_t most = kMostLibraryElements / axis.extent;
    if (axis.in_step > most || axis.out_step > most) return std::nullopt;
    last_in += (axis.extent - 1) * axis.in_step;
    last_out += (axis.extent - 1) * axis.out_step;
    MovedAxis* before = moved.axes.empty() ? nullptr : &moved.axes.back();
    if (before != nullptr && before->in_step == axis.extent * axis.in_step &&
        before->out_step == axis.extent * axis.out_step) {
      *before = {before->extent * axis.extent, axis.in_step, axis.out_step};
    } else {
      moved.axes.push_back(axis);
    }
  }
  if (std::max(last_in, last_out) >= kMostLibraryElements) return std::nullopt;
  if (moved.axes.empty()) moved.axes.push_back({1, 1, 1});
  return moved;
}

std::optional<MovedTensor> moved_between(TensorLayout from, TensorLayout to, std::int64_t images, std::int64_t channels,
                                         std::int64_t pixels) {
  if (images % std::max(images_together(from), images_together(to)) != 0) return std::nullopt;
  if (channels % std::max(channels_together(from), channels_together(to)) != 0) return std::nullopt;
  const LayoutSteps in{from, channels, pixels}, out{to, channels, pixels};
  std::vector<MovedAxis> axes;
  const auto add_parts = [&](const std::array<std::int64_t, 3>& extents, const auto& in_step, const auto& out_step) {
    std::int64_t step = extents[1] * extents[2];
    for (std::size_t i = 0; i < extents.size(); ++i) {
      axes.push_back({extents[i], in_step(step), out_step(step)});
      if (i + 1 < extents.size()) step /= extents[i + 1];
    }
  };
  add_parts(
      parts_of(images, images_together(from), images_together(to)), [&](auto n) { return in.images(n); },
      [&](auto n) { return out.images(n); });
  add_parts(
      parts_of(channels, channels_together(from), channels_together(to)), [&](auto c) { return in.channel(c); },
      [&](auto c) { return out.channel(c); });
  axes.push_back({pixels, in.pixel(), out.pixel()});
  return moved_tensor(axes);
}

std::string describe(const LibraryTask& task) {
  if (const auto* shape = std::get_if<ConvShape>(&task)) return describe(*shape);
  if (const auto* softmax = std::get_if<SoftmaxImage>(&task)) {
    return softmax->pixels == 1 ? fmt::format("softmax of {}", softmax->channels)
                                : fmt::format("softmax of {} channels, {} pixels", softmax->channels, softmax->pixels);
  }
  if (const auto* moved = std::get_if<MovedTensor>(&task)) return describe_moved(*moved);
  const auto& [channels, rows, cols, pool] = std::get<PooledImage>(task);
  return fmt::format("{0}x{1}x{2} -> {0}x{3}x{4}, {5}", channels, rows, cols, pooled_rows(pool, rows),
                     pooled_cols(pool, cols), describe(pool));
}

}  // namespace burin
