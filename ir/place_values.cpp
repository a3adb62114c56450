#include "ir/place_values.h"

#include <algorithm>
#include <limits>

#include "ir/element_type.h"
#include "ir/error.h"

namespace burin {
namespace {

const Buffer& buffer_of(const NetworkPlan& plan, const Place& place, int batch, std::size_t words) {
  const Buffer& buffer = plan.buffers.at(static_cast<std::size_t>(place.buffer));
  BURIN_CHECK(buffer.element == ElementType::f32 && images_together(buffer.layout) == 1, "buffer of {}: {} in {}",
              buffer.tensor, to_string(buffer.element), to_string(buffer.layout));
  BURIN_CHECK(static_cast<std::int64_t>(words) >= words_until_end(place, batch), "buffer of {}: {} words for {}",
              buffer.tensor, words, words_until_end(place, batch));
  return buffer;
}

// visit(run) for each run of words, in their order.
template <typename Word, typename Visit>
void for_each_run(const Place& place, int batch, std::span<Word> memory, Visit visit) {
  for (std::int64_t image = 0; image < batch; ++image) {
    for (std::int64_t run = 0; run < place.runs; ++run) {
      const std::int64_t begin = (image * place.image_stride + place.offset + run * place.run_stride) / kWordBytes;
      visit(memory.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(place.run_bytes / kWordBytes)));
    }
  }
}

}  // namespace

std::int64_t words_until_end(const Place& place, int batch) {
  return ((batch - std::int64_t{1}) * place.image_stride + place.end()) / kWordBytes;
}

std::vector<float> read_place(const NetworkPlan& plan, const Place& place, int batch, std::span<const float> memory) {
  const Buffer& buffer = buffer_of(plan, place, batch, memory.size());
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(batch * place.runs * place.run_bytes / kWordBytes));
  for_each_run(place, batch, memory,
               [&](std::span<const float> words) { values.insert(values.end(), words.begin(), words.end()); });
  if (buffer.layout == TensorLayout::nchw) return values;
  // Other layouts than nchw have whole tensors of the buffer's own shape.
  const std::vector<std::int64_t>& shape = buffer.shape;
  return to_nchw(buffer.layout, values, static_cast<int>(shape.at(0)), static_cast<int>(shape.at(1)),
                 static_cast<int>(shape.at(2)));
}

void write_place(const NetworkPlan& plan, const Place& place, int batch, std::span<const float> values,
                 std::span<float> memory) {
  const Buffer& buffer = buffer_of(plan, place, batch, memory.size());
  std::vector<float> filled;
  if (buffer.layout != TensorLayout::nchw) {
    const std::vector<std::int64_t>& shape = buffer.shape;
    filled = from_nchw(buffer.layout, values, static_cast<int>(shape.at(0)), static_cast<int>(shape.at(1)),
                       static_cast<int>(shape.at(2)), std::numeric_limits<float>::quiet_NaN());
    values = filled;
  }
  BURIN_CHECK(static_cast<std::int64_t>(values.size()) == batch * place.runs * place.run_bytes / kWordBytes,
              "buffer of {}: {} values for a place of another size", buffer.tensor, values.size());
  for_each_run(place, batch, memory, [&](std::span<float> words) {
    std::ranges::copy(values.first(words.size()), words.begin());
    values = values.subspan(words.size());
  });
}

}  // namespace burin
