#include "ir/network_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/aligned_lines.h"
#include "ir/network.h"
#include "ir/printable.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

std::string buffer_text(const NetworkPlan& plan, int index) {
  // A damaged plan must print as well: that is how its fault is found.
  if (index < 0 || index >= static_cast<int>(plan.buffers.size())) return fmt::format("?{}", index);
  const Buffer& buffer = plan.buffers[static_cast<std::size_t>(index)];
  if (buffer.home == BufferHome::arena) return fmt::format("b{}", index);
  return fmt::format("{} {}", to_string(buffer.home), buffer.argument);
}

// "b3", or for a part of it "b3[256..512 of 1024]": bytes of each image.
std::string place_text(const NetworkPlan& plan, const Place& place) {
  std::string text = buffer_text(plan, place.buffer);
  if (!place.is_slice()) return text;
  text += fmt::format("[{}..{} of {}", place.offset, place.end(), place.image_stride);
  if (place.runs > 1) text += fmt::format(", {} runs of {}", place.runs, place.run_bytes);
  return text + "]";
}

std::string places_text(const NetworkPlan& plan, const std::vector<Place>& places) {
  std::vector<std::string> parts;
  for (const Place& place : places) parts.push_back(place_text(plan, place));
  return fmt::format("{}", fmt::join(parts, " + "));
}

constexpr std::size_t kWidest = 40;  // a step may read a lot

std::string life_text(const Buffer& buffer) {
  return buffer.first < 0 ? "none" : fmt::format("{}-{}", buffer.first, buffer.last);
}

}  // namespace

std::string_view to_string(BufferHome home) {
  switch (home) {
    case BufferHome::arena:
      return "arena";
    case BufferHome::input:
      return "input";
    case BufferHome::output:
      return "output";
  }
  return "?";
}

std::int64_t NetworkPlan::images(const Buffer& buffer) const { return ceil_div(batch, images_together(buffer.layout)); }

std::string print(const NetworkPlan& plan) {
  std::vector<std::array<std::string, 6>> steps = {{"step", "operator", "kind", "reads", "writes", "after"}};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    steps.push_back({fmt::format("{}", i), printable(step.name), step.kind, places_text(plan, step.reads),
                     place_text(plan, step.writes), step.after.empty() ? "-" : print_integers(step.after)});
  }
  std::vector<std::array<std::string, 7>> buffers = {{"buffer", "tensor", "shape", "layout", "bytes", "at", "steps"}};
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    buffers.push_back(
        {buffer_text(plan, static_cast<int>(i)), printable(buffer.tensor), shape_text(buffer.shape),
         fmt::format("{} {}", to_string(buffer.element), to_string(buffer.layout)), fmt::format("{}", buffer.bytes),
         buffer.home == BufferHome::arena ? fmt::format("{}", buffer.offset) : "the caller's", life_text(buffer)});
  }
  const double share =
      plan.naive_bytes > 0 ? 100.0 * static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.naive_bytes) : 0;
  return aligned_lines(steps, kWidest) + "\n" + aligned_lines(buffers, kWidest) +
         fmt::format("\nbatch {}: an arena of {} bytes; a buffer for each tensor would take {} ({:.0f} %)\n",
                     plan.batch, plan.arena_bytes, plan.naive_bytes, share);
}

}  // namespace burin
