#include "ir/place_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {
namespace {

const Buffer& buffer_of(const Program& program, const Place& place, int batch, std::size_t words) {
  const Buffer& buffer = program.buffers.at(static_cast<std::size_t>(place.buffer));
  BURIN_CHECK(static_cast<std::int64_t>(words) >= words_until_end(program, place, batch),
              "buffer of {}: {} words for {}", buffer.tensor, words, words_until_end(program, place, batch));
  return buffer;
}

// Loose halves lie by themselves wherever a float's bytes begin and end.
std::vector<float> read_loose(ElementType element, std::span<const float> memory, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const std::byte* from = std::as_bytes(memory).data();
  for (float& value : values) {
    std::uint16_t half = 0;
    std::memcpy(&half, from, sizeof half);
    value = from_half(element, half);
    from += sizeof half;
  }
  return values;
}

void write_loose(ElementType element, std::span<const float> values, std::span<float> memory) {
  std::byte* to = std::as_writable_bytes(memory).data();
  for (const float value : values) {
    const std::uint16_t half = to_half(element, value);
    std::memcpy(to, &half, sizeof half);
    to += sizeof half;
  }
}

// visit(run) for each run of words, in their order.
template <typename Word, typename Visit>
void for_each_run(const Place& place, std::int64_t groups, std::span<Word> memory, Visit visit) {
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t run = 0; run < place.runs; ++run) {
      const std::int64_t begin = (group * place.image_stride + place.offset + run * place.run_stride) / kWordBytes;
      visit(memory.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(place.run_bytes / kWordBytes)));
    }
  }
}

// The place as an image of its own. Rows and columns matter only where channels lie side by side; a place may then be a
// slice, all of whose channels are there but for what fills up the tensor.
std::array<int, 3> extents_of(const Buffer& buffer, const Place& place) {
  const std::int64_t words = place.runs * place.run_bytes / kWordBytes;
  const TensorLayout layout = buffer.format.layout;
  const int together = channels_together(layout);
  if (together == 1) return {1, 1, static_cast<int>(words / element_words(layout))};
  const std::vector<std::int64_t>& shape = buffer.shape;
  const std::int64_t side_by_side = image_words(buffer.format, {together, shape.at(1), shape.at(2)});
  const std::int64_t first = place.offset / kWordBytes / side_by_side * together;
  return {static_cast<int>(std::min(words / side_by_side * together, shape.at(0) - first)),
          static_cast<int>(shape.at(1)), static_cast<int>(shape.at(2))};
}

std::vector<float> words_of(const Place& place, std::int64_t groups, std::span<const float> memory) {
  std::vector<float> words;
  words.reserve(static_cast<std::size_t>(groups * place.runs * place.run_bytes / kWordBytes));
  for_each_run(place, groups, memory,
               [&](std::span<const float> run) { words.insert(words.end(), run.begin(), run.end()); });
  return words;
}

}  // namespace

Place whole_place(const Program& program, const Buffer& buffer) {
  const std::int64_t piece = buffer.bytes / program.pieces(buffer);
  return {static_cast<int>(&buffer - program.buffers.data()), 0, piece, piece, 1, 0};
}

std::int64_t words_until_end(const Program& program, const Place& place, int batch) {
  const std::int64_t groups = program.pieces(program.buffers.at(static_cast<std::size_t>(place.buffer)), batch);
  return ceil_div((groups - 1) * place.image_stride + place.end(), kWordBytes);
}

std::vector<float> read_place(const Program& program, const Place& place, int batch, std::span<const float> memory) {
  const Buffer& buffer = buffer_of(program, place, batch, memory.size());
  const std::int64_t groups = program.pieces(buffer, batch);
  if (buffer.map) {
    const auto bytes = std::as_bytes(memory).first(static_cast<std::size_t>(groups * place.image_stride));
    std::vector<float> marks(bytes.size());
    std::ranges::transform(bytes, marks.begin(), [](std::byte mark) { return static_cast<float>(mark); });
    return marks;
  }
  if (buffer.format.is_loose()) return read_loose(buffer.format.element, memory, groups * buffer.elements());
  std::vector<float> words = words_of(place, groups, memory);
  if (buffer.format.layout == TensorLayout::nchw) return words;
  const auto [channels, rows, cols] = extents_of(buffer, place);
  return to_nchw(buffer.format.layout, unpack_words(buffer.format.element, words), channels, rows, cols, batch);
}

std::string filling_fault(const Program& program, const Place& place, int batch, std::span<const float> memory) {
  const Buffer& buffer = buffer_of(program, place, batch, memory.size());
  if (buffer.map || !fills_with_zeros(buffer.format.layout)) return {};
  const auto [channels, rows, cols] = extents_of(buffer, place);
  const TensorLayout layout = buffer.format.layout;
  if (channels % channels_together(layout) == 0) return {};
  const std::vector<float> values =
      unpack_words(buffer.format.element, words_of(place, program.pieces(buffer, batch), memory));
  const std::optional<std::int64_t> found = nonzero_filling(layout, values, channels, rows, cols, batch);
  if (!found) return {};
  const TensorPlace at = place_of(layout, channels, rows, cols, *found);
  return fmt::format("image {}, filling channel {}, row {}, col {}: {}, and what fills up channels in {} is zero",
                     at.image, at.channel, at.row, at.col, values[static_cast<std::size_t>(*found)], to_string(layout));
}

void write_place(const Program& program, const Place& place, int batch, std::span<const float> values,
                 std::span<float> memory) {
  const Buffer& buffer = buffer_of(program, place, batch, memory.size());
  const std::int64_t groups = program.pieces(buffer, batch);
  if (buffer.map) {
    BURIN_CHECK(static_cast<std::int64_t>(values.size()) == groups * place.image_stride, "map {}: {} marks",
                buffer.tensor, values.size());
    std::ranges::transform(values, std::as_writable_bytes(memory).begin(),
                           [](float mark) { return static_cast<std::byte>(mark); });
    return;
  }
  if (buffer.format.is_loose()) {
    BURIN_CHECK(static_cast<std::int64_t>(values.size()) == groups * buffer.elements(), "{}: {} values for {} images",
                buffer.tensor, values.size(), batch);
    return write_loose(buffer.format.element, values, memory);
  }
  std::vector<float> filled;
  if (buffer.format.layout != TensorLayout::nchw) {
    const auto [channels, rows, cols] = extents_of(buffer, place);
    filled = pack_words(buffer.format.element, from_nchw(buffer.format.layout, values, channels, rows, cols,
                                                         std::numeric_limits<float>::quiet_NaN()));
    values = filled;
  }
  BURIN_CHECK(static_cast<std::int64_t>(values.size()) == groups * place.runs * place.run_bytes / kWordBytes,
              "buffer of {}: {} words for a place of another size", buffer.tensor, values.size());
  for_each_run(place, groups, memory, [&](std::span<float> run) {
    std::ranges::copy(values.first(run.size()), run.begin());
    values = values.subspan(run.size());
  });
}

}  // namespace burin
