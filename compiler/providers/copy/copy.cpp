// Operators that only move values: as boxes of up to six axes, with as few axes as they can be described by.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>

#include "compiler/providers/template_provider.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

// An axis of the box: copy.cu.
struct Axis {
  std::int64_t extent = 1, in_extent = 1, before = 0, in_stride = 0, out_stride = 0;
  bool whole() const { return before == 0 && in_extent == extent; }
};

struct Box {
  std::vector<Axis> axes;
  float value = 0;          // where there is no input
  std::int64_t origin = 0;  // of the input: where the element of all axes' beginnings lies
};

// Elements from one step along each axis to the next.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Neighbouring axes that are one on both sides become one; axes of extent 1 go.
std::vector<Axis> merged(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1 && axis.whole()) continue;
    if (!result.empty()) {
      Axis& last = result.back();
      const bool one = axis.whole() && last.whole() && last.in_stride == axis.extent * axis.in_stride &&
                       last.out_stride == axis.extent * axis.out_stride;
      if (one) {
        last = {last.extent * axis.extent, last.extent * axis.extent, 0, axis.in_stride, axis.out_stride};
        continue;
      }
    }
    result.push_back(axis);
  }
  return result;
}

// A box of elements as one of their words.
Box in_words(Box box, const Task& task) {
  const std::int64_t words = place_words(task);
  box.origin *= words;
  for (Axis& axis : box.axes) {
    axis.in_stride *= words;
    axis.out_stride *= words;
  }
  box.axes.push_back({words, words, 0, 1, 1});
  return box;
}

// The axes of its elements in memory: those channels that lie side by side are the last one.
Shape stored_shape(const Shape& shape, const Task& task) {
  const std::int64_t together = channels_together(task.writes.layout);
  if (together == 1) return shape;
  return {ceil_div(shape[0], together), shape[1], shape[2], together};
}

Box box_of(const Pad& op, const Task& task) {
  const Shape from = stored_shape(task.inputs[0], task), to = stored_shape(task.output, task);
  const Shape in = strides_of(from), out = strides_of(to);
  const std::array<std::int64_t, 4> before = {0, op.pad.top, op.pad.left, 0};
  Box box{.axes = {}, .value = op.value};
  for (std::size_t i = 0; i < to.size(); ++i) box.axes.push_back({to[i], from[i], before[i], in[i], out[i]});
  return in_words(box, task);
}

Box box_of(const Transpose& op, const Task& task) {
  const Shape to = stored_shape(task.output, task);
  const Shape in = strides_of(stored_shape(task.inputs[0], task)), out = strides_of(to);
  Box box;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t from = i < op.order.size() ? static_cast<std::size_t>(op.order[i]) : i;
    box.axes.push_back({to[i], to[i], 0, in[from], out[i]});
  }
  return in_words(box, task);
}

Box box_of(const Pick& op, const Task& task) {
  const Shape to = stored_shape(task.output, task);
  const Shape in = strides_of(stored_shape(task.inputs[0], task)), out = strides_of(to);
  Box box;
  for (std::size_t i = 0; i < to.size(); ++i) {
    // Channels that lie side by side are all taken: the axis of the octets is none of the operator's.
    const bool whole = i >= op.axes.size() || (i == 0 && channels_together(task.writes.layout) > 1);
    const std::size_t from = i < op.axes.size() ? op.from(i) : i;
    const PickedAxis taken = whole ? PickedAxis{0, 1, to[i]} : op.axes[from];
    box.origin += taken.begin * in[from];
    // Of one element there is no step, and none is longer than the tensor.
    box.axes.push_back({to[i], to[i], 0, to[i] > 1 ? taken.step * in[from] : 0, out[i]});
  }
  return in_words(box, task);
}

// The same words in runs of the same length.
Box box_of(const KernelTensor& from, const KernelTensor& to) {
  BURIN_CHECK(from.runs == to.runs && from.run_words == to.run_words, "{} runs of {} words become {} of {}", from.runs,
              from.run_words, to.runs, to.run_words);
  const auto pitch = [](const KernelTensor& tensor) { return tensor.runs > 1 ? tensor.run_pitch : tensor.run_words; };
  return {{{from.runs, from.runs, 0, pitch(from), pitch(to)}, {from.run_words, from.run_words, 0, 1, 1}}, 0, 0};
}

Box box_of(const Task& task) {
  const Pad* pad = task.get<Pad>();
  const Transpose* transpose = task.get<Transpose>();
  const Pick* pick = task.get<Pick>();
  Box box = pad         ? box_of(*pad, task)
            : transpose ? box_of(*transpose, task)
            : pick      ? box_of(*pick, task)
                        : box_of(task.reads[0], task.writes);
  box.axes = merged(box.axes);
  return box;
}

// A block's elements along the run of the input and along that of the output (copy.cu); none: they go one by one.
struct CopyTile {
  int in = 0, out = 0;
  bool operator==(const CopyTile&) const = default;
  std::int64_t words() const { return std::int64_t{in} * out; }
  int shared_bytes() const {
    return static_cast<int>(
        round_up(kSharedReserveBytes + std::int64_t{out} * (in | 1) * kWordBytes, kWideAccessBytes));
  }
};

// The axis along which the input's words lie side by side, where that is not the last one, along which the output's do,
// and both are long enough for whole sectors of memory.
std::optional<std::size_t> run_of_input(const Box& box, const Task& task) {
  constexpr std::int64_t kSectorWords = 8;
  const std::vector<Axis>& axes = box.axes;
  if (axes.size() < 2 || channels_together(task.writes.layout) > 1) return std::nullopt;
  if (!std::ranges::all_of(axes, &Axis::whole)) return std::nullopt;
  const auto is_near = [](const Axis& axis) { return std::abs(axis.in_stride) < kSectorWords; };
  if (is_near(axes.back()) || axes.back().out_stride != 1 || axes.back().extent < kSectorWords) return std::nullopt;
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    if (!is_near(axes[i]) || axes[i].in_stride == 0 || axes[i].extent < kSectorWords) continue;
    if (!nearest || std::abs(axes[i].in_stride) < std::abs(axes[*nearest].in_stride)) nearest = i;
  }
  return nearest;
}

// Tiles have some of an axis, or all of it, whose rows then are one run where they are neighbours.
std::vector<int> tile_widths(std::int64_t extent) {
  constexpr std::int64_t kMost = 256;
  std::vector<int> widths;
  if (extent <= kMost) widths.push_back(static_cast<int>(extent));
  for (const int width : {64, 32, 16}) {
    if (width < extent) widths.push_back(width);
  }
  return widths;
}

class CopyProvider : public PlainProvider {
 public:
  CopyProvider() : PlainProvider("copy") {}

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool can(const Task& task) const override {
    if (task.is_copy()) return task.reads[0].format() == task.writes.format();
    if (has_places(task.writes.layout)) return false;  // of whose places the words alone are moved
    if (const Transpose* transpose = task.get<Transpose>()) {
      return has_one_format(task) && (channels_together(task.writes.layout) == 1 || transpose->order.front() == 0);
    }
    if (const Pick* pick = task.get<Pick>()) {
      const bool whole = pick->from(0) == 0 && pick->axes.front().is_whole(task.inputs[0].front());
      return has_one_format(task) && (channels_together(task.writes.layout) == 1 || whole);
    }
    return has_one_format(task) && task.get<Pad>() != nullptr;
  }
  std::vector<std::string> choices() const override { return {"tile_in", "tile_out"}; }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    std::vector<Candidate> candidates;
    for (const CopyTile& tile : best_tiles(task)) {
      candidates.push_back(candidate(task, plan_of_tile(task, tile, nullptr)));
      if (std::ssize(candidates) == options.count) break;
    }
    return candidates;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const std::vector<CopyTile> tiles = best_tiles(task);
    if (chosen == nullptr) return plan_of_tile(task, tiles.front(), nullptr);
    const CopyTile tile = tile_of(*chosen);
    return std::ranges::count(tiles, tile) > 0 ? plan_of_tile(task, tile, chosen) : TemplatePlan{};
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    return work_of_tile(task, box_of(task), tile_of(plan));
  }

  std::optional<LibraryTask> library_task(const Kernel& kernel, int batch) const override {
    const TemplatePlan plan = usable_plan(kernel);
    const KernelTensor &from = plan.input(), &to = plan.output();
    const int together = images_together(to.layout), values = to.elements_per_word();
    if (batch % together != 0) return std::nullopt;
    std::vector<MovedAxis> axes = {{batch / together, from.image_words * values, to.image_words * values}};
    for (std::size_t i = 0; i < kMaxActivationRank; ++i) {
      const auto of = [&](const char* name) { return plan.integers.at(fmt::format("{}{}", name, i)); };
      const Axis axis{of("extent"), of("in_extent"), of("before"), of("in_stride"), of("out_stride")};
      if (!axis.whole()) return std::nullopt;  // a pad
      axes.push_back({axis.extent, axis.in_stride * values, axis.out_stride * values});
    }
    axes.push_back({values, 1, 1});
    const std::optional<MovedTensor> moved = moved_tensor(axes);
    return moved ? std::optional<LibraryTask>(*moved) : std::nullopt;
  }

 private:
  static CopyTile tile_of(const TemplatePlan& plan) {
    return {plan.integers.at("tile_in"), plan.integers.at("tile_out")};
  }
  // That with the shortest time by the model first.
  std::vector<CopyTile> best_tiles(const Task& task) const {
    const Box box = box_of(task);
    constexpr std::int64_t kLeastWords = 512, kMostWords = 4096;
    std::vector<CopyTile> tiles;
    if (const std::optional<std::size_t> run = run_of_input(box, task)) {
      for (const int in : tile_widths(box.axes[*run].extent)) {
        for (const int out : tile_widths(box.axes.back().extent)) {
          const CopyTile tile{in, out};
          if (tile.words() >= kLeastWords && tile.words() <= kMostWords) tiles.push_back(tile);
        }
      }
    }
    tiles.push_back({});
    std::ranges::stable_sort(
        tiles, {}, [&](const CopyTile& tile) { return launch_time_us(work_of_tile(task, box, tile), arch_of(task)); });
    return tiles;
  }

  TemplatePlan plan_of_tile(const Task& task, const CopyTile& tile, const TemplatePlan* chosen) const {
    const Box box = box_of(task);
    const std::vector<Axis>& axes = box.axes;
    constexpr std::size_t kAxes = kMaxActivationRank;
    BURIN_CHECK(axes.size() <= kAxes, "a box of {} axes", axes.size());
    TemplatePlan plan = start(task);
    const bool flat =
        box.origin == 0 &&
        (axes.empty() || (axes.size() == 1 && axes[0].whole() && axes[0].in_stride == 1 && axes[0].out_stride == 1));
    const std::size_t filled = kAxes - axes.size();
    set_integers(plan, {{"flat", flat},
                        {"origin", box.origin},
                        {"tile_in", tile.in},
                        {"tile_out", tile.out},
                        {"in_axis", 0},
                        {"in_vector", 1},
                        {"out_vector", 1}});
    // What halves cannot hold does not become infinite.
    const auto most =
        static_cast<float>(std::min<double>(largest_of(task.writes.element), std::numeric_limits<float>::max()));
    plan.reals["copy_value"] = std::clamp(box.value, -most, most);
    for (std::size_t i = 0; i < kAxes; ++i) {
      const Axis axis = i < filled ? Axis{} : axes[i - filled];
      const auto set = [&](const char* name, std::int64_t number) {
        plan.integers[fmt::format("{}{}", name, i)] = static_cast<int>(number);
      };
      set("extent", axis.extent);
      set("in_extent", axis.in_extent);
      set("before", axis.before);
      set("in_stride", axis.in_stride);
      set("out_stride", axis.out_stride);
    }
    if (tile.words() > 0) {
      set_tiles(plan, box, *run_of_input(box, task), tile);
    } else {
      set_pieces(plan, task, task.writes.words(), flat, chosen);
    }
    plan.launch().tile_images = images_together(task.writes.layout);
    return plan;
  }

  static void set_tiles(TemplatePlan& plan, const Box& box, std::size_t in_axis, const CopyTile& tile) {
    const Axis& in = box.axes[in_axis];
    const Axis& out = box.axes.back();
    const auto by_fours = [](std::int64_t number) { return number % kVectorWords == 0; };
    const auto others = [&](const Axis& run, std::int64_t Axis::* stride) {
      return std::ranges::all_of(box.axes, [&](const Axis& axis) { return &axis == &run || by_fours(axis.*stride); });
    };
    const bool in_fours = is_wide(plan.input()) && in.in_stride == 1 && by_fours(in.extent) && by_fours(box.origin) &&
                          others(in, &Axis::in_stride);
    const bool out_fours = is_wide(plan.output()) && by_fours(out.extent) && others(out, &Axis::out_stride);
    const auto set_alignment = [](KernelTensor& tensor, bool fours) {
      if (!fours) tensor.alignment = words_together(tensor.layout) * kWordBytes;
    };
    set_alignment(plan.input(), in_fours);
    set_alignment(plan.output(), out_fours);
    set_integers(plan, {{"elements", plan.output().words()},
                        {"vector", 1},
                        {"steps", 1},
                        {"in_axis", static_cast<std::int64_t>(kMaxActivationRank - box.axes.size() + in_axis)},
                        {"in_vector", in_fours ? kVectorWords : 1},
                        {"out_vector", out_fours ? kVectorWords : 1}});
    LaunchGeometry& launch = plan.launch();
    launch.threads = kBlockThreads;
    launch.tiles_per_image = tiles_of(box, in_axis, tile);
    launch.shared_bytes = tile.shared_bytes();
  }

  // Counts the tiles of an image, or of those that lie side by side.
  static std::int64_t tiles_of(const Box& box, std::size_t in_axis, const CopyTile& tile) {
    std::int64_t tiles = 1;
    for (std::size_t i = 0; i < box.axes.size(); ++i) {
      const int width = i == in_axis ? tile.in : i + 1 == box.axes.size() ? tile.out : 1;
      tiles *= ceil_div(box.axes[i].extent, width);
    }
    return tiles;
  }

  static LaunchWork work_of_tile(const Task& task, const Box& box, const CopyTile& tile) {
    if (tile.words() > 0) return work_of_tiles(task, tile, tiles_of(box, *run_of_input(box, task), tile));
    constexpr double kScatteredRate = 0.34;  // of l2_bytes_per_clock: words that are neighbours here are none there
    const ArchSpec& arch = arch_of(task);
    LaunchWork work{.activation_bytes = activation_bytes(task), .uncovered = {}};
    const bool scattered = !box.axes.empty() && (box.axes.back().in_stride != 1 || box.axes.back().out_stride != 1);
    if (scattered) {
      work.busy_us = clocks_us(work.activation_bytes / (kScatteredRate * arch.l2_bytes_per_clock), arch);
      work.activation_bytes = 0;
    }
    return work;
  }

  // Fitted on an H100, to what tiles take more than a copy of as many bytes: blocks share the way to the L2 cache, and
  // most of their ways through shared memory is covered by other blocks' copies. `tiles`: of an image.
  static LaunchWork work_of_tiles(const Task& task, const CopyTile& tile, std::int64_t tiles) {
    constexpr double kBlockClocks = 50, kWideLoadGain = 2, kHiddenUs = 0.05, kUncovered = 0.1;
    const ArchSpec& arch = arch_of(task);
    LaunchWork work{.activation_bytes = activation_bytes(task), .uncovered = {}};
    const double copy_us = launch_time_us(work, arch) - launch_time_us({.uncovered = {}}, arch);
    tiles *= ceil_div(task.batch, images_together(task.writes.layout));
    work.blocks = static_cast<double>(ceil_div(tiles, arch.multiprocessors));
    work.resident = std::min<double>(work.blocks, arch.max_threads_per_multiprocessor / kBlockThreads);
    const double tile_bytes = 2.0 * kWordBytes * static_cast<double>(tile.words());  // read and written
    const double tile_clocks = tile_bytes * arch.multiprocessors / (kWideLoadGain * arch.l2_bytes_per_clock);
    const double blocks_us = clocks_us(work.blocks * (kBlockClocks + tile_clocks), arch);
    work.busy_us = std::max(0.0, blocks_us - kHiddenUs - copy_us) + kUncovered * blocks_us;
    return work;
  }
};

}  // namespace

const Provider& copy_provider() { return the_only<CopyProvider>(); }

}  // namespace burin
