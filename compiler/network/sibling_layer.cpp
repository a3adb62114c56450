#include "compiler/network/sibling_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ir/limits.h"

namespace burin {
namespace {

// One axis of a window that has room for several.
struct Extent {
  int kernel = 0, pad_before = 0, pad_after = 0;
};

// As many windows as before: the last one ends where padding is added, or before the end of the image.
Extent extent_of(const std::vector<Extent>& parts, int in, int windows, int stride) {
  Extent whole;
  for (const Extent& part : parts) whole.pad_before = std::max(whole.pad_before, part.pad_before);
  for (const Extent& part : parts) {
    whole.kernel = std::max(whole.kernel, whole.pad_before - part.pad_before + part.kernel);
  }
  whole.pad_after = std::max(0, (windows - 1) * stride + whole.kernel - in - whole.pad_before);
  return whole;
}

Extent rows_of(const ConvShape& shape) { return {shape.kernel_h, shape.pad.top, shape.pad.bottom}; }
Extent cols_of(const ConvShape& shape) { return {shape.kernel_w, shape.pad.left, shape.pad.right}; }

ConvShape shape_of(const std::vector<const ConvLayer*>& parts) {
  ConvShape shape = parts.front()->shape;
  std::vector<Extent> rows, cols;
  shape.out_channels = 0;
  for (const ConvLayer* part : parts) {
    rows.push_back(rows_of(part->shape));
    cols.push_back(cols_of(part->shape));
    // Beyond kMaxChannels it is no legal shape, however far.
    shape.out_channels = std::min(kMaxChannels + 1, shape.out_channels + part->shape.out_channels);
    shape.epilogue.bias = shape.epilogue.bias || part->shape.epilogue.bias;
  }
  const ConvShape& first = parts.front()->shape;
  const Extent tall = extent_of(rows, first.in_h, first.conv_h(), first.stride_h);
  const Extent wide = extent_of(cols, first.in_w, first.conv_w(), first.stride_w);
  shape.kernel_h = tall.kernel;
  shape.kernel_w = wide.kernel;
  shape.pad = {tall.pad_before, tall.pad_after, wide.pad_before, wide.pad_after};
  return shape;
}

// Weights of a part where its windows lie in those of the whole.
void append_weights(const ConvLayer& part, ConvLayer& whole) {
  const int top = whole.shape.pad.top - part.shape.pad.top, left = whole.shape.pad.left - part.shape.pad.left;
  const auto window = static_cast<std::size_t>(whole.shape.kernel_h) * static_cast<std::size_t>(whole.shape.kernel_w);
  const auto row = static_cast<std::size_t>(part.shape.kernel_w);
  auto from = part.weights.begin();
  for (int i = 0; i < part.shape.out_channels * part.shape.in_channels; ++i) {
    whole.weights.resize(whole.weights.size() + window);
    const auto begin = whole.weights.end() - static_cast<std::ptrdiff_t>(window);
    for (int r = 0; r < part.shape.kernel_h; ++r) {
      std::copy_n(from, row, begin + (top + r) * whole.shape.kernel_w + left);
      from += static_cast<std::ptrdiff_t>(row);
    }
  }
}

// Zeros around filters are stored, and looked at by all that walk over weights: so many times the parts' weights are
// too many.
constexpr std::int64_t kMostWeights = 4;

bool is_worth_its_zeros(const ConvShape& whole, const std::vector<const ConvLayer*>& parts) {
  std::int64_t weights = 0;
  for (const ConvLayer* part : parts) weights += part->shape.weight_elements();
  return whole.weight_elements() <= kMostWeights * weights;
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// What all names begin with that ends with a dot or slash and is none of them as a whole.
std::size_t common_beginning(const std::vector<std::string>& parts) {
  std::string_view common = parts.front();
  for (const std::string& part : parts) {
    const auto differ = std::mismatch(common.begin(), common.end(), part.begin(), part.end());
    common = common.substr(0, static_cast<std::size_t>(differ.first - common.begin()));
  }
  const std::size_t end = common.find_last_of("./");
  return end == std::string_view::npos ? 0 : end + 1;
}

}  // namespace

bool are_siblings(const ConvShape& a, const ConvShape& b) {
  const auto may_be_part = [](const ConvShape& shape) {
    return shape.groups == 1 && shape.dilation_h == 1 && shape.dilation_w == 1 && !shape.epilogue.residual;
  };
  Epilogue epilogue = a.epilogue;
  epilogue.bias = b.epilogue.bias;
  return may_be_part(a) && may_be_part(b) && a.in_channels == b.in_channels && a.in_h == b.in_h && a.in_w == b.in_w &&
         a.stride_h == b.stride_h && a.stride_w == b.stride_w && a.conv_h() == b.conv_h() && a.conv_w() == b.conv_w() &&
         epilogue == b.epilogue;
}

std::optional<ConvLayer> layer_of_siblings(const std::vector<const ConvLayer*>& parts) {
  ConvLayer whole;
  whole.shape = shape_of(parts);
  if (!verify(whole.shape).empty() || !is_worth_its_zeros(whole.shape, parts)) return std::nullopt;
  for (const ConvLayer* part : parts) {
    append_weights(*part, whole);
    if (!whole.shape.epilogue.bias) continue;
    std::vector<float> bias = part->bias;
    bias.resize(static_cast<std::size_t>(part->shape.out_channels));  // zeros where it has none
    whole.bias.insert(whole.bias.end(), bias.begin(), bias.end());
  }
  return whole;
}

std::string joint_name(const std::vector<std::string>& parts) {
  constexpr std::size_t kMost = kMaxLayerNameBytes / 2;  // what is named after it, such as its kernel, needs room, too
  const std::size_t common = common_beginning(parts);
  std::string name = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) name += "+" + parts[i].substr(common);
  if (name.size() <= kMost) return name;
  const std::string number = fmt::format("{}_{:016x}", parts.size() - 1, hash_of(name));
  name = fmt::format("{}+{}", parts.front(), number);
  return name.size() <= kMost ? name : fmt::format("joint_{}", number);
}

}  // namespace burin
