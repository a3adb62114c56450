#include "compiler/study/study_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "compiler/import/names.h"
#include "compiler/reference.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::array<std::string_view, 13> kKeys = {"n",      "c",   "h",        "w",      "k",     "r",          "s",
                                                    "stride", "pad", "dilation", "groups", "zeros", "input-zeros"};
constexpr std::string_view kExample = "such as 'c=256 h=14 k=256 r=3 zeros=0.9'";

template <typename... Args>
[[noreturn]] void refuse(std::string_view text, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::usage, "layer '{}': {}", printable(std::string(text)),
       fmt::format(format, std::forward<Args>(args)...));
}

// The values that a text gives, each key once.
std::map<std::string, std::string> given_values(std::string_view text) {
  std::map<std::string, std::string> values;
  for (const std::string_view word : words(text)) {
    const std::size_t end = word.find('=');
    const std::string key(word.substr(0, end));
    if (end == std::string_view::npos)
      refuse(text, "'{}' is no NAME=VALUE, {}", printable(std::string(word)), kExample);
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      refuse(text, "there is no '{}'; there are {}", printable(key), fmt::join(kKeys, ", "));
    }
    if (!values.emplace(key, word.substr(end + 1)).second) refuse(text, "{} stands twice", key);
  }
  return values;
}

// Padding on all sides such that with stride 1 the output has the input's size.
Padding size_keeping(const ConvShape& shape) {
  const int rows = (shape.kernel_h - 1) * shape.dilation_h, cols = (shape.kernel_w - 1) * shape.dilation_w;
  return {rows / 2, rows - rows / 2, cols / 2, cols - cols / 2};
}

std::int64_t tensor_bytes(const StudyLayer& layer) {
  const auto floats = static_cast<double>(layer.shape.input_elements() + layer.shape.output_elements()) * layer.batch;
  return static_cast<std::int64_t>(floats * sizeof(float));
}

}  // namespace

StudyLayer parse_study_layer(std::string_view text) {
  const std::map<std::string, std::string> given = given_values(text);
  for (const std::string needed : {"c", "h", "r"}) {
    if (!given.contains(needed)) refuse(text, "{}= is missing, {}", needed, kExample);
  }
  const auto integer = [&](const std::string& key, int otherwise) {
    const auto found = given.find(key);
    if (found == given.end()) return otherwise;
    const std::optional<int> value = parse_number<int>(found->second);
    if (!value) refuse(text, "{}={} is not a whole number", key, printable(found->second));
    return *value;
  };
  StudyLayer layer;
  ConvShape& shape = layer.shape;
  layer.batch = integer("n", 1);
  shape.in_channels = integer("c", 0);
  shape.out_channels = integer("k", shape.in_channels);
  shape.in_h = integer("h", 0);
  shape.in_w = integer("w", shape.in_h);
  shape.kernel_h = integer("r", 0);
  shape.kernel_w = integer("s", shape.kernel_h);
  shape.stride_h = shape.stride_w = integer("stride", 1);
  shape.dilation_h = shape.dilation_w = integer("dilation", 1);
  shape.groups = integer("groups", 1);
  layer.keeps_size = !given.contains("pad");
  if (layer.keeps_size) {
    // A filter that verify() refuses has no such padding.
    if (shape.kernel_h <= kMaxKernelExtent && shape.kernel_w <= kMaxKernelExtent && shape.dilation_h <= kMaxStride) {
      shape.pad = size_keeping(shape);
    }
  } else {
    const int pad = integer("pad", 0);
    shape.pad = {pad, pad, pad, pad};
  }
  const auto share = [&](const std::string& key) -> std::optional<double> {
    const auto found = given.find(key);
    if (found == given.end()) return std::nullopt;
    const std::optional<double> value = parse_number<double>(found->second);
    if (!value) refuse(text, "{}={} is not a number", key, printable(found->second));
    return value;
  };
  layer.zeros = share("zeros").value_or(0);
  layer.input_zeros = share("input-zeros");
  if (const std::vector<std::string> faults = verify(layer); !faults.empty()) refuse(text, "{}", faults.front());
  return layer;
}

StudyLayer study_layer_of(const ConvLayer& layer) {
  StudyLayer made{.batch = 1, .shape = layer.shape, .keeps_size = true, .zeros = 0};
  ConvShape& shape = made.shape;
  shape.epilogue = {};
  const auto refuse_layer = [&](const std::string& why) {
    fail(ErrorKind::unsupported, "layer '{}': cannot be the base of a study: {}", layer.name, why);
  };
  if (shape.stride_h != shape.stride_w || shape.dilation_h != shape.dilation_w) {
    refuse_layer("stride and dilation of rows and columns differ");
  }
  made.keeps_size = shape.pad == size_keeping(shape);
  const int pad = shape.pad.top;
  if (!made.keeps_size && shape.pad != Padding{pad, pad, pad, pad}) {
    refuse_layer(fmt::format("its padding {} is not the same on all sides", padding_text(shape.pad)));
  }
  const auto zeros = static_cast<double>(std::ranges::count(layer.weights, 0.0F));
  constexpr double kSteps = 1e4;
  made.zeros = std::round(kSteps * zeros / static_cast<double>(layer.weights.size())) / kSteps;
  if (const std::vector<std::string> faults = verify(made); !faults.empty()) refuse_layer(faults.front());
  return made;
}

std::string print(const StudyLayer& layer) {
  const ConvShape& shape = layer.shape;
  std::string text = fmt::format("n={} c={} h={} w={} k={} r={} s={}", layer.batch, shape.in_channels, shape.in_h,
                                 shape.in_w, shape.out_channels, shape.kernel_h, shape.kernel_w);
  if (shape.stride_h != 1) text += fmt::format(" stride={}", shape.stride_h);
  if (!layer.keeps_size) text += fmt::format(" pad={}", shape.pad.top);
  if (shape.dilation_h != 1) text += fmt::format(" dilation={}", shape.dilation_h);
  if (shape.groups != 1) text += fmt::format(" groups={}", shape.groups);
  text += fmt::format(" zeros={}", layer.zeros);
  return text + (layer.input_zeros ? fmt::format(" input-zeros={}", *layer.input_zeros) : "");
}

std::vector<std::string> verify(const StudyLayer& layer) {
  std::vector<std::string> faults = verify(layer.shape);
  if (layer.batch < 1 || layer.batch > kMaxBatch) {
    faults.push_back(fmt::format("n={} is not from 1 to {}", layer.batch, kMaxBatch));
  }
  if (!(layer.zeros >= 0 && layer.zeros < 1)) {
    faults.push_back(fmt::format("zeros={} is not a share from 0 to below 1", layer.zeros));
  }
  if (layer.input_zeros && !(*layer.input_zeros >= 0 && *layer.input_zeros <= 1)) {
    faults.push_back(fmt::format("input-zeros={} is not a share from 0 to 1", *layer.input_zeros));
  }
  if (faults.empty() && tensor_bytes(layer) > kMaxStudyTensorBytes) {
    faults.push_back(fmt::format("its input and output take {} bytes, and a study measures up to {}",
                                 tensor_bytes(layer), kMaxStudyTensorBytes));
  }
  return faults;
}

double value_of(const StudyLayer& layer, StudyAxis axis) {
  switch (axis) {
    case StudyAxis::batch:
      return layer.batch;
    case StudyAxis::channels:
      return layer.shape.in_channels;
    case StudyAxis::filter:
      return layer.shape.kernel_h;
    case StudyAxis::image:
      return layer.shape.in_h;
    case StudyAxis::zeros:
      return layer.zeros;
    case StudyAxis::input_zeros:
      return layer.input_zeros.value_or(0);
  }
  return 0;
}

StudyLayer varied(const StudyLayer& base, StudyAxis axis, double value) {
  const auto refuse_value = [&](const std::string& why) {
    fail(ErrorKind::usage, "--{} {}: {}", to_string(axis), value, why);
  };
  StudyLayer layer = base;
  ConvShape& shape = layer.shape;
  // Sets one extent and another that stays in proportion to it.
  const auto scale = [&](int& first, int& second, const char* name) {
    const auto whole = static_cast<std::int64_t>(value);
    if (second * whole % first != 0) {
      refuse_value(fmt::format("{} would be {} * {} / {}, which is no whole number", name, second, whole, first));
    }
    second = static_cast<int>(std::min<std::int64_t>(second * whole / first, INT32_MAX));
    first = static_cast<int>(whole);
  };
  switch (axis) {
    case StudyAxis::batch:
      layer.batch = static_cast<int>(value);
      break;
    case StudyAxis::channels:
      scale(shape.in_channels, shape.out_channels, "k");
      break;
    case StudyAxis::filter:
      scale(shape.kernel_h, shape.kernel_w, "s");
      if (layer.keeps_size && shape.kernel_h <= kMaxKernelExtent && shape.kernel_w <= kMaxKernelExtent) {
        shape.pad = size_keeping(shape);
      }
      break;
    case StudyAxis::image:
      scale(shape.in_h, shape.in_w, "w");
      break;
    case StudyAxis::zeros:
      layer.zeros = value;
      break;
    case StudyAxis::input_zeros:
      layer.input_zeros = value;
      break;
  }
  if (const std::vector<std::string> faults = verify(layer); !faults.empty()) refuse_value(faults.front());
  return layer;
}

std::string value_text(const StudyLayer& layer, StudyAxis axis) {
  const ConvShape& shape = layer.shape;
  switch (axis) {
    case StudyAxis::batch:
      return fmt::format("{} image{}", layer.batch, layer.batch == 1 ? "" : "s");
    case StudyAxis::channels:
      return shape.in_channels == shape.out_channels
                 ? fmt::format("{} channels", shape.in_channels)
                 : fmt::format("{} to {} channels", shape.in_channels, shape.out_channels);
    case StudyAxis::filter:
      return fmt::format("{}x{} filters", shape.kernel_h, shape.kernel_w);
    case StudyAxis::image:
      return fmt::format("{}x{} images", shape.in_h, shape.in_w);
    case StudyAxis::zeros:
      return fmt::format("{:.6g} % zeros", 100 * layer.zeros);
    case StudyAxis::input_zeros:
      return fmt::format("{:.6g} % zeros of the input", 100 * layer.input_zeros.value_or(0));
  }
  return {};
}

ConvLayer with_weights(const StudyLayer& layer, std::uint64_t seed) {
  ConvLayer made{.name = "conv", .shape = layer.shape, .weights = {}, .bias = {}};
  const std::int64_t count = layer.shape.weight_elements();
  made.weights = random_tensor(count, seed);
  const auto kept = std::max<std::int64_t>(1, std::llround(static_cast<double>(count) * (1 - layer.zeros)));
  if (kept == count) return made;
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Of equal ones the first stays.
  const auto rank = [&](std::int64_t i) { return std::pair(-std::abs(made.weights[static_cast<std::size_t>(i)]), i); };
  const auto first_pruned = order.begin() + kept;
  std::ranges::nth_element(order, first_pruned, {}, rank);
  for (auto pruned = first_pruned; pruned != order.end(); ++pruned) made.weights[static_cast<std::size_t>(*pruned)] = 0;
  return made;
}

}  // namespace burin
