#include "ir/layer_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kGapBits = 7;
constexpr unsigned kMore = 1U << kGapBits;

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

class LayerReader {
 public:
  LayerReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  template <typename Value>
  Value value() {
    Value value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::uint64_t gap() {
    std::uint64_t gap = 0;
    for (int shift = 0; shift < 64 - kGapBits; shift += kGapBits) {
      const unsigned byte = value<unsigned char>();
      gap |= std::uint64_t{byte & (kMore - 1)} << shift;
      if (byte < kMore) return gap;
    }
    bad("a distance between nonzeros has too many bytes");
  }

  float finite() {
    const auto number = value<float>();
    if (!std::isfinite(number)) bad("a number is not finite");
    return number;
  }

  void finish() const {
    if (!bytes_.empty()) bad("{} bytes are left over", bytes_.size());
  }

  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_input, "the weights of layer '{}' in the package: {}", printable(name_),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view take(std::size_t size) {
    if (bytes_.size() < size) bad("they end too early");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  const std::string& name_;
};

}  // namespace

std::string encode_layer(const ConvLayer& layer) {
  std::string gaps, values;
  std::uint64_t count = 0, gap = 0;
  for (const float weight : layer.weights) {
    if (weight == 0) {
      ++gap;
      continue;
    }
    for (; gap >= kMore; gap >>= kGapBits) gaps += static_cast<char>((gap & (kMore - 1)) | kMore);
    gaps += static_cast<char>(gap);
    append(values, &weight, sizeof weight);
    gap = 0;
    ++count;
  }
  std::string bytes;
  append(bytes, &count, sizeof count);
  bytes += gaps + values;
  for (const std::vector<float>* all : {&layer.bias, &layer.filters, &layer.filter_bias}) {
    append(bytes, all->data(), all->size() * sizeof(float));
  }
  return bytes;
}

ConvLayer decode_layer(std::string_view bytes, const std::string& name, const ConvShape& shape) {
  ConvLayer layer;
  layer.name = name;
  layer.shape = shape;
  LayerReader reader(bytes, layer.name);
  const auto weights = static_cast<std::uint64_t>(shape.weight_elements());
  const auto count = reader.value<std::uint64_t>();
  if (count > weights) reader.bad("it says that there are {} nonzeros of {} weights", count, weights);
  std::vector<std::uint64_t> positions;
  // Each takes a byte at least: a count that is not true takes no memory.
  positions.reserve(std::min<std::uint64_t>(count, bytes.size()));
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = reader.gap();
    if (gap >= weights - next) reader.bad("nonzero {} lies beyond the {} weights", i, weights);
    positions.push_back(next + gap);
    next = positions.back() + 1;
  }
  layer.weights.resize(weights);
  for (const std::uint64_t position : positions) {
    layer.weights[position] = reader.finite();
    if (layer.weights[position] == 0) reader.bad("a nonzero is zero");
  }
  const auto read = [&](std::vector<float>& values, int count_for_each) {
    const std::int64_t all = std::int64_t{shape.out_channels} * count_for_each;
    for (std::int64_t i = 0; i < all; ++i) values.push_back(reader.finite());
  };
  if (shape.epilogue.bias) read(layer.bias, 1);
  if (shape.epilogue.filters()) {
    read(layer.filters, summed_values(*shape.epilogue.pool));
    read(layer.filter_bias, 1);
  }
  reader.finish();
  return layer;
}

}  // namespace burin
