#include "ir/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/aligned_lines.h"
#include "ir/limits.h"
#include "ir/network.h"
#include "ir/printable.h"
#include "ir/saturate.h"
#include "ir/text.h"

namespace burin {
namespace {

std::string buffer_text(const Program& program, int index) {
  // A damaged program must print as well: that is how its fault is found.
  if (index < 0 || index >= static_cast<int>(program.buffers.size())) return fmt::format("?{}", index);
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(index)];
  if (buffer.home == BufferHome::arena) return fmt::format("b{}", index);
  return fmt::format("{} {}", to_string(buffer.home), buffer.argument);
}

// "b3", or for a part of it "b3[256..512 of 1024]": bytes of each image.
std::string place_text(const Program& program, const Place& place) {
  std::string text = buffer_text(program, place.buffer);
  if (!place.is_slice()) return text;
  text += fmt::format("[{}..{} of {}", place.offset, place.end(), place.image_stride);
  if (place.runs > 1) text += fmt::format(", {} runs of {}", place.runs, place.run_bytes);
  return text + "]";
}

std::string places_text(const Program& program, const std::vector<Place>& places) {
  std::vector<std::string> parts;
  for (const Place& place : places) parts.push_back(place_text(program, place));
  return fmt::format("{}", fmt::join(parts, " + "));
}

constexpr std::size_t kWidest = 40;  // a step may read a lot

// 0 where shape and format say nothing sound; it sticks at the largest value where it is too large.
std::int64_t bytes_of(const Program& program, const Buffer& buffer) {
  const auto sound = [](std::int64_t extent) { return extent >= 1 && extent <= kMaxImageBytes; };
  if (program.batch < 1 || !std::ranges::all_of(buffer.shape, sound)) return 0;
  if (!buffer.map) {
    return saturating_product(
        {program.pieces(buffer), image_words(buffer.format, buffer.shape), buffer.format.word_bytes()});
  }
  const auto& [images, rows, cols] = *buffer.map;
  if (buffer.shape.size() != 3 || images < 1 || rows < 1 || cols < 1) return 0;
  return map_bytes(*buffer.map, {program.batch, static_cast<int>(buffer.shape[0]), static_cast<int>(buffer.shape[1]),
                                 static_cast<int>(buffer.shape[2])});
}

std::string life_text(const Buffer& buffer) {
  return buffer.first < 0 ? "none" : fmt::format("{}-{}", buffer.first, buffer.last);
}

}  // namespace

std::int64_t Buffer::elements() const { return saturating_product(shape); }

std::string Buffer::format_text() const { return map ? fmt::format("map {}", print(*map)) : to_string(format); }

std::string describe(const std::vector<KernelOption>& options) {
  std::string text;
  for (const KernelOption& option : options) {
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", option.provider, option.us);
  }
  return text;
}

std::int64_t Program::pieces(const Buffer& buffer, std::int64_t images) const {
  return ceil_div(images, buffer.images_together());
}

std::vector<const Buffer*> Program::arguments(BufferHome home) const {
  std::vector<const Buffer*> found;
  for (const Buffer& buffer : buffers) {
    if (buffer.home == home) found.push_back(&buffer);
  }
  std::ranges::sort(found, {}, [](const Buffer* buffer) { return buffer->argument; });
  return found;
}

int Program::most_images() const { return arena_bytes == 0 ? kMaxBatch : batch; }

void complete(Program& program) {
  program.arena_bytes = 0;
  for (Buffer& buffer : program.buffers) {
    buffer.bytes = bytes_of(program, buffer);
    buffer.first = buffer.last = -1;
    if (buffer.home != BufferHome::arena || buffer.bytes > kMaxArenaBytes) continue;
    if (buffer.offset < 0 || buffer.offset > kMaxArenaBytes) continue;
    program.arena_bytes = std::max(program.arena_bytes, aligned_bytes(buffer.offset + buffer.bytes));
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    Step& step = program.steps[i];
    const auto use = [&](Place& place) {
      place.image_stride = 0;
      if (place.buffer < 0 || place.buffer >= static_cast<int>(program.buffers.size())) return;
      Buffer& buffer = program.buffers[static_cast<std::size_t>(place.buffer)];
      if (buffer.bytes > 0) place.image_stride = buffer.bytes / program.pieces(buffer);
      if (buffer.first < 0) buffer.first = static_cast<int>(i);
      buffer.last = static_cast<int>(i);
    };
    for (Place& place : step.reads) use(place);
    use(step.writes);
    if (step.input_map) use(*step.input_map);
    if (step.output_map) use(*step.output_map);
  }
}

const Program& program_for(const std::vector<const Program*>& programs, int images) {
  const Program* best = programs.front();
  const bool any_number = std::ranges::all_of(programs, [](const Program* p) { return p->most_images() == kMaxBatch; });
  for (const Program* program : programs) {
    if (any_number ? program->batch <= images : best->batch < images) best = program;
  }
  return *best;
}

std::string print(const Program& program) {
  std::vector<std::array<std::string, 6>> steps = {{"step", "operator", "kind", "reads", "writes", "after"}};
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    steps.push_back({fmt::format("{}", i), printable(step.name), step.kind, places_text(program, step.reads),
                     place_text(program, step.writes), step.after.empty() ? "-" : print_integers(step.after)});
  }
  std::vector<std::array<std::string, 7>> buffers = {{"buffer", "tensor", "shape", "layout", "bytes", "at", "steps"}};
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    buffers.push_back({buffer_text(program, static_cast<int>(i)), printable(buffer.tensor), shape_text(buffer.shape),
                       buffer.format_text(), fmt::format("{}", buffer.bytes),
                       buffer.home == BufferHome::arena ? fmt::format("{}", buffer.offset) : "the caller's",
                       life_text(buffer)});
  }
  const double share = program.naive_bytes > 0
                           ? 100.0 * static_cast<double>(program.arena_bytes) / static_cast<double>(program.naive_bytes)
                           : 0;
  return aligned_lines(steps, kWidest) + "\n" + aligned_lines(buffers, kWidest) +
         fmt::format("\nbatch {}: an arena of {} bytes; a buffer for each tensor would take {} ({:.0f} %)\n",
                     program.batch, program.arena_bytes, program.naive_bytes, share);
}

}  // namespace burin
