#include "compiler/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/baked_plan.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/library_call.h"
#include "ir/parallel_for.h"
#include "ir/template_plan.h"

namespace burin {
namespace {

// Output positions of one axis whose input position, for one position of the filter, lies inside the image.
struct Range {
  int begin = 0, end = 0;
  int first_input = 0;  // of `begin`
};

Range valid_range(int out, int in, int stride, int pad, int filter_offset) {
  const int shift = filter_offset - pad;  // input = output * stride + shift
  Range range;
  range.begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  range.end = shift >= in ? 0 : std::min(out, (in - 1 - shift) / stride + 1);
  range.begin = std::min(range.begin, range.end);
  range.first_input = range.begin * stride + shift;
  return range;
}

// sums[0..count) += weight * input[0], input[stride], ...
template <typename Value>
void add_row(double* sums, const Value* input, int count, int stride, double weight) {
  if (stride == 1) {
    for (int x = 0; x < count; ++x) sums[x] += weight * input[x];
  } else {
    for (int x = 0; x < count; ++x) sums[x] += weight * input[static_cast<std::ptrdiff_t>(x) * stride];
  }
}

// One nonzero over one image: `plane` is an output channel, `image` an input channel.
template <typename Value>
void add_tap(const ConvShape& shape, double* plane, const Value* image, const Range& rows, const Range& cols,
             double weight) {
  const int out_w = shape.conv_w();
  const int width = cols.end - cols.begin;
  const int height = rows.end - rows.begin;
  if (width <= 0 || height <= 0) return;
  double* sums = plane + static_cast<std::ptrdiff_t>(rows.begin) * out_w + cols.begin;
  const Value* input = image + static_cast<std::ptrdiff_t>(rows.first_input) * shape.in_w + cols.first_input;
  const bool rows_touch = shape.stride_h == 1 && shape.stride_w == 1 && width == out_w && width == shape.in_w;
  if (rows_touch) return add_row(sums, input, width * height, 1, weight);
  for (int y = 0; y < height; ++y) {
    add_row(sums, input, width, shape.stride_w, weight);
    sums += out_w;
    input += static_cast<std::ptrdiff_t>(shape.stride_h) * shape.in_w;
  }
}

template <typename Value>
void sum_channel(const ConvLayer& layer, int batch, std::span<const Value> input, int k, bool absolute, double* sums) {
  const ConvShape& shape = layer.shape;
  const std::int64_t plane = std::int64_t{shape.conv_h()} * shape.conv_w();
  const std::int64_t channel = std::int64_t{shape.in_h} * shape.in_w;
  for (int c = 0; c < shape.channels_per_group(); ++c) {
    for (int r = 0; r < shape.kernel_h; ++r) {
      const Range rows = valid_range(shape.conv_h(), shape.in_h, shape.stride_h, shape.pad.top, r * shape.dilation_h);
      for (int s = 0; s < shape.kernel_w; ++s) {
        const double weight = layer.weight(k, c, r, s);
        if (weight == 0) continue;
        const Range cols =
            valid_range(shape.conv_w(), shape.in_w, shape.stride_w, shape.pad.left, s * shape.dilation_w);
        for (int n = 0; n < batch; ++n) {
          add_tap(shape, sums + (std::int64_t{n} * shape.out_channels + k) * plane,
                  input.data() + (std::int64_t{n} * shape.in_channels + shape.input_channel(k, c)) * channel, rows,
                  cols, absolute ? std::abs(weight) : weight);
        }
      }
    }
  }
}

// The sums over the taps alone, NCHW. With `absolute`, of |w| and of an input that the caller has made positive.
template <typename Value>
std::vector<double> sum_taps(const ConvLayer& layer, int batch, std::span<const Value> input, bool absolute) {
  const ConvShape& shape = layer.shape;
  std::vector<double> sums(static_cast<std::size_t>(batch * shape.conv_elements()));
  const double multiply_adds = static_cast<double>(shape.weight_elements()) / shape.out_channels * sums.size();
  parallel_for(shape.out_channels, multiply_adds,
               [&](int k) { sum_channel(layer, batch, input, k, absolute, sums.data()); });
  return sums;
}

template <typename Value>
void check_arguments(const ConvLayer& layer, int batch, std::span<const Value> input, std::span<const Value> residual) {
  const ConvShape& shape = layer.shape;
  BURIN_CHECK(batch >= 1, "batch {}", batch);
  BURIN_CHECK(static_cast<std::int64_t>(input.size()) == batch * shape.input_elements(), "layer {}: {} inputs, not {}",
              layer.name, input.size(), batch * shape.input_elements());
  const std::int64_t residuals = shape.epilogue.residual ? batch * shape.conv_elements() : 0;
  BURIN_CHECK(static_cast<std::int64_t>(residual.size()) == residuals, "layer {}: {} residuals, not {}", layer.name,
              residual.size(), residuals);
}

// visit(flat index, output channel) for every output before the pool.
template <typename Visit>
void for_each_output(const ConvShape& shape, int batch, Visit visit) {
  const std::int64_t plane = std::int64_t{shape.conv_h()} * shape.conv_w();
  std::size_t i = 0;
  for (int n = 0; n < batch; ++n) {
    for (int k = 0; k < shape.out_channels; ++k) {
      for (std::int64_t pixel = 0; pixel < plane; ++pixel, ++i) visit(i, static_cast<std::size_t>(k));
    }
  }
}

// The window whose first position is (top, left) of the plane.
double pooled_window(const Pool& pool, const double* plane, std::int64_t rows, std::int64_t cols, std::int64_t top,
                     std::int64_t left) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  int inside = 0, counted = 0;
  for (int r = 0; r < pool.kernel_h; ++r) {
    for (int s = 0; s < pool.kernel_w; ++s) {
      const std::int64_t y = top + r * pool.dilation_h, x = left + s * pool.dilation_w;
      // Rounding up, a window may reach beyond the padding, which never counts.
      if (y < rows + pool.pad.bottom && x < cols + pool.pad.right) ++counted;
      if (y < 0 || y >= rows || x < 0 || x >= cols) continue;
      ++inside;
      sum += plane[y * cols + x];
      largest = std::max(largest, plane[y * cols + x]);
    }
  }
  return pool.kind == PoolKind::max ? largest : sum / (pool.count_padding ? counted : inside);
}

// The sums before the function, with the bias, and with a residual that is not added last. With `absolute`, of their
// terms without signs.
template <typename Value>
std::vector<double> sums_of(const ConvLayer& layer, int batch, std::span<const Value> input,
                            std::span<const Value> residual, bool absolute) {
  check_arguments(layer, batch, input, residual);
  const Epilogue& epilogue = layer.shape.epilogue;
  const auto term = [absolute](double value) { return absolute ? std::abs(value) : value; };
  std::vector<Value> positive;
  if (absolute) {
    positive.assign(input.begin(), input.end());
    for (Value& x : positive) x = std::abs(x);
    input = positive;
  }
  std::vector<double> sums = sum_taps(layer, batch, input, absolute);
  for_each_output(layer.shape, batch, [&](std::size_t i, std::size_t k) {
    if (epilogue.bias) sums[i] += term(layer.bias[k]);
    if (epilogue.residual && !epilogue.residual_last) sums[i] += term(residual[i]);
  });
  return sums;
}

// What the layer's pool, which filters, makes of values before it, and before the function behind it: the sums of a
// depthwise convolution, with its biases where `biased`. With `absolute`, of their terms without signs.
std::vector<double> filtered(const ConvLayer& layer, std::span<const double> values, bool absolute, bool biased) {
  const ConvShape& shape = layer.shape;
  const Pool& pool = *shape.epilogue.pool;
  ConvLayer depthwise{layer.name, {}, layer.filters, biased ? layer.filter_bias : std::vector<float>()};
  ConvShape& of_windows = depthwise.shape;
  of_windows.in_channels = of_windows.out_channels = of_windows.groups = shape.out_channels;
  of_windows.in_h = shape.conv_h(), of_windows.in_w = shape.conv_w();
  of_windows.kernel_h = pool.kernel_h, of_windows.kernel_w = pool.kernel_w;
  of_windows.stride_h = pool.stride_h, of_windows.stride_w = pool.stride_w;
  of_windows.pad = pool.pad;
  of_windows.epilogue.bias = biased;
  const auto images = static_cast<int>(std::ssize(values) / of_windows.input_elements());
  return sums_of(depthwise, images, values, {}, absolute);
}

// What is stored of values before the pool.
std::vector<double> pooled(const ConvLayer& layer, std::vector<double> values) {
  const Epilogue& epilogue = layer.shape.epilogue;
  if (!epilogue.pool) return values;
  if (!epilogue.filters()) return reference_pool(*epilogue.pool, layer.shape.conv_h(), layer.shape.conv_w(), values);
  values = filtered(layer, values, false, true);
  for (double& value : values) value = reference_function(epilogue.then, value);
  return values;
}

std::vector<double> activated(const Epilogue& epilogue, std::vector<double> sums) {
  for (double& sum : sums) sum = reference_function(epilogue.function, sum);
  return sums;
}

template <typename Value>
void add_last(const Epilogue& epilogue, std::span<const Value> residual, std::vector<double>& values) {
  for (std::size_t i = 0; epilogue.residual_last && i < values.size(); ++i) values[i] += residual[i];
}

template <typename Value>
std::vector<double> convolve(const ConvLayer& layer, int batch, std::span<const Value> input,
                             std::span<const Value> residual) {
  const Epilogue& epilogue = layer.shape.epilogue;
  std::vector<double> values = activated(epilogue, sums_of(layer, batch, input, residual, false));
  add_last(epilogue, residual, values);
  return pooled(layer, std::move(values));
}

bool is_finite(float value) { return std::isfinite(value); }

// Says of each sum whether an input of its window is not finite.
std::vector<bool> spoilt_windows(const ConvLayer& layer, int batch, std::span<const float> input) {
  const ConvLayer ones{layer.name, layer.shape, std::vector<float>(layer.weights.size(), 1), {}};
  std::vector<float> marks(input.size());
  std::ranges::transform(input, marks.begin(), [](float value) { return is_finite(value) ? 0.0F : 1.0F; });
  const std::vector<double> counts = sum_taps<float>(ones, batch, marks, false);
  std::vector<bool> spoilt(counts.size());
  std::transform(counts.begin(), counts.end(), spoilt.begin(), [](double count) { return count > 0; });
  return spoilt;
}

// Says of each sum whether an input of its image and group is not finite.
std::vector<bool> spoilt_images(const ConvShape& shape, int batch, std::span<const float> input) {
  const std::int64_t of_group = shape.input_elements() / shape.groups;
  const std::int64_t sums_of_group = shape.conv_elements() / shape.groups;
  std::vector<bool> spoilt;
  spoilt.reserve(static_cast<std::size_t>(batch * shape.conv_elements()));
  for (std::int64_t group = 0; group < std::int64_t{batch} * shape.groups; ++group) {
    const auto values = input.subspan(static_cast<std::size_t>(group * of_group), static_cast<std::size_t>(of_group));
    spoilt.insert(spoilt.end(), static_cast<std::size_t>(sums_of_group), !std::ranges::all_of(values, is_finite));
  }
  return spoilt;
}

// The sum is not stored yet.
double sum_tolerance(const Arithmetic& arithmetic, double magnitude) {
  const double terms = arithmetic.longest_reduction;
  double tolerance = kToleranceFactor * epsilon_of(ElementType::f32) * std::sqrt(terms + 1) * magnitude;
  if (arithmetic.precision == Precision::fp16x2) {
    const double together = arithmetic.promote_every > 0 ? std::min<double>(arithmetic.promote_every, terms) : terms;
    tolerance += kHalfToleranceFactor * epsilon_of(ElementType::f16) * std::sqrt(together + 1) * magnitude;
    tolerance += terms * smallest_of(ElementType::f16);
  }
  return tolerance;
}

// The same once it is.
double stored_tolerance(ElementType element, double expected, double tolerance) {
  if (element != ElementType::f32) {
    tolerance += epsilon_of(element) / 2 * (std::abs(expected) + tolerance) + smallest_of(element) / 2;
  }
  return std::max(tolerance, static_cast<double>(std::numeric_limits<float>::min()));
}

}  // namespace

std::vector<double> reference_pool(const Pool& pool, std::int64_t rows, std::int64_t cols,
                                   std::span<const double> values) {
  BURIN_CHECK(pool.kind != PoolKind::filter, "a pool that filters, without weights");
  const std::int64_t out_rows = pooled_rows(pool, rows), out_cols = pooled_cols(pool, cols);
  const auto planes = static_cast<std::int64_t>(values.size()) / (rows * cols);
  BURIN_CHECK(static_cast<std::int64_t>(values.size()) == planes * rows * cols, "{} values in planes of {}x{}",
              values.size(), rows, cols);
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(planes * out_rows * out_cols));
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t row = 0; row < out_rows; ++row) {
      for (std::int64_t col = 0; col < out_cols; ++col) {
        result.push_back(pooled_window(pool, values.data() + plane * rows * cols, rows, cols,
                                       row * pool.stride_h - pool.pad.top, col * pool.stride_w - pool.pad.left));
      }
    }
  }
  return result;
}

double reference_function(const std::optional<Elementwise>& function, double x) {
  return function ? reference_element(*function, x) : x;
}

std::vector<double> reference_convolution(const ConvLayer& layer, int batch, std::span<const float> input,
                                          std::span<const float> residual) {
  return convolve(layer, batch, input, residual);
}

std::vector<double> reference_convolution_f64(const ConvLayer& layer, int batch, std::span<const double> input,
                                              std::span<const double> residual) {
  return convolve(layer, batch, input, residual);
}

ConvolutionReference::ConvolutionReference(const ConvLayer& layer, int batch, std::span<const float> input,
                                           std::span<const float> residual)
    : layer_{layer.name, layer.shape, {}, {}, layer.filters, layer.filter_bias},
      sums_(sums_of(layer, batch, input, residual, false)),
      magnitudes_(sums_of(layer, batch, input, residual, true)),
      outputs_(activated(layer.shape.epilogue, sums_)) {
  if (layer.shape.epilogue.residual_last) added_last_.assign(residual.begin(), residual.end());
  add_last(layer.shape.epilogue, residual, outputs_);
  outputs_ = pooled(layer_, std::move(outputs_));
  if (std::ranges::all_of(input, is_finite)) return;
  in_window_ = spoilt_windows(layer, batch, input);
  in_image_ = spoilt_images(layer.shape, batch, input);
}

std::vector<Leeway> ConvolutionReference::leeway(const Arithmetic& arithmetic) const {
  if (in_window_.empty()) return {};
  const ConvShape& shape = layer_.shape;
  const Epilogue& epilogue = shape.epilogue;
  const bool reaches_image = arithmetic.reach == NonFiniteReach::image;
  std::vector<bool> open = reaches_image ? in_image_ : in_window_;
  if (arithmetic.reach == NonFiniteReach::nonzeros) open.assign(open.size(), false);
  std::vector<double> opens(open.begin(), open.end()), closed = activated(epilogue, sums_);
  add_last<double>(epilogue, added_last_, closed);
  for (std::size_t i = 0; i < closed.size(); ++i) {
    if (open[i]) closed[i] = std::numeric_limits<double>::quiet_NaN();
  }
  const bool chooses = epilogue.pool && epilogue.pool->kind == PoolKind::max;
  if (epilogue.pool) {
    Pool any = *epilogue.pool;
    any.kind = PoolKind::max;
    opens = reference_pool(any, shape.conv_h(), shape.conv_w(), opens);
    closed = reference_pool(any, shape.conv_h(), shape.conv_w(), closed);
  }
  const bool drops_nan = arithmetic.relu_drops_nan && is_relu(epilogue.function);
  std::vector<Leeway> leeway(outputs_.size());
  for (std::size_t i = 0; i < leeway.size(); ++i) {
    const bool is_open = opens[i] > 0;
    leeway[i].nan = is_open;
    leeway[i].infinite = is_open && reaches_image;
    leeway[i].zero = drops_nan && (is_open || std::isnan(outputs_[i]));
    if (is_open && chooses) leeway[i].least = closed[i];
  }
  return leeway;
}

std::vector<double> ConvolutionReference::tolerances(const Arithmetic& arithmetic,
                                                     std::span<const double> sum_errors) const {
  BURIN_CHECK(arithmetic.longest_reduction >= 0, "a reduction of {} terms", arithmetic.longest_reduction);
  BURIN_CHECK(sum_errors.empty() || sum_errors.size() == sums_.size(), "{} errors of {} sums", sum_errors.size(),
              sums_.size());
  const Epilogue& epilogue = layer_.shape.epilogue;
  std::vector<double> errors(sums_.size());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    // What comes of an infinite sum is exact, such as the zero of a ReLU.
    if (std::isfinite(sums_[i])) {
      const double error = sum_tolerance(arithmetic, magnitudes_[i]) + (sum_errors.empty() ? 0 : sum_errors[i]);
      errors[i] = function_error(epilogue.function, sums_[i], error);
    }
    // One more sum, of two terms.
    if (epilogue.residual_last) {
      const double magnitude = std::abs(reference_function(epilogue.function, sums_[i])) + std::abs(added_last_[i]);
      if (std::isfinite(magnitude)) errors[i] += sum_tolerance({.longest_reduction = 1}, magnitude);
    }
  }
  // The largest error of a window bounds that of its maximum, and their mean that of its average; what is added up
  // anew, is so in FP32.
  const bool adds_up = epilogue.pool && epilogue.pool->kind != PoolKind::max;
  const std::vector<double> values = adds_up ? activated(epilogue, sums_) : std::vector<double>();
  std::vector<double> positive = values;
  for (double& value : positive) value = std::abs(value);
  errors = epilogue.filters() ? filtered(layer_, errors, true, false) : pooled(layer_, std::move(errors));
  if (adds_up) {
    positive = epilogue.filters() ? filtered(layer_, positive, true, true) : pooled(layer_, std::move(positive));
    const Arithmetic adding{.longest_reduction = summed_values(*epilogue.pool)};
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += sum_tolerance(adding, positive[i]);
  }
  if (epilogue.filters()) {
    const std::vector<double> sums = filtered(layer_, values, false, true);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = function_error(epilogue.then, sums[i], errors[i]);
  }
  const ElementType element = element_of(arithmetic.precision);
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = stored_tolerance(element, outputs_[i], errors[i]);
  return errors;
}

double function_error(const std::optional<Elementwise>& function, double x, double error) {
  if (!function) return error;
  const double value = reference_element(*function, x), rounding = rounding_of(*function, x, value);
  const double moved = moved_by(*function, x, error);
  if (rounding == 0) return moved;
  // What a function is made of, such as exp(-x), becomes infinite, or its reciprocal zero, where that is below the
  // smallest normal number.
  const double lost = std::numeric_limits<float>::min() * std::max(1.0, std::abs(x));
  return moved + kToleranceFactor * epsilon_of(ElementType::f32) * rounding + lost;
}

int longest_reduction(const SparsePattern& pattern, const Epilogue& epilogue) {
  const std::vector<int>& rows = pattern.statistics.per_row;
  const int longest = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
  return longest + (epilogue.pool ? summed_values(*epilogue.pool) : 0);
}

double tolerance_of(const Arithmetic& arithmetic, double expected, double magnitude) {
  return stored_tolerance(element_of(arithmetic.precision), expected, sum_tolerance(arithmetic, magnitude));
}

namespace {

bool is_let_pass(double value, double expected, double tolerance, const Leeway& leeway) {
  if (std::isnan(value)) return leeway.nan;
  if (std::isinf(value) && leeway.infinite) return true;
  if (value == 0 && leeway.zero) return true;
  const bool has_least = leeway.least < std::numeric_limits<double>::infinity();
  return has_least && value >= leeway.least - tolerance && value <= expected + tolerance;
}

// Whether the value is NaN or infinite as the expected one is.
bool is_same_non_finite(double value, double expected) {
  return std::isnan(expected) ? std::isnan(value) : std::isinf(value) && value == expected;
}

template <typename Tolerance>
Comparison compare_each(std::span<const float> output, std::span<const double> reference, ElementType element,
                        Tolerance tolerance_at, std::span<const Leeway> leeway) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double largest = largest_of(element);
  Comparison result;
  result.worst_ratio = -1;
  double error_squares = 0, reference_squares = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double tolerance = tolerance_at(i);
    const bool too_large = element != ElementType::f32 && std::isinf(output[i]) &&
                           std::copysign(1.0, output[i]) * reference[i] + tolerance >= largest;
    const bool passes = too_large || is_same_non_finite(output[i], reference[i]) ||
                        (!leeway.empty() && is_let_pass(output[i], reference[i], tolerance, leeway[i]));
    const double error = passes ? 0 : std::abs(output[i] - reference[i]);
    const double ratio = std::isfinite(error) ? error / tolerance : kInfinity;  // NaN compares with nothing
    error_squares += error * error;
    if (!passes) reference_squares += reference[i] * reference[i];
    if (ratio > result.worst_ratio) {
      result.worst_ratio = ratio;
      result.worst_index = static_cast<std::int64_t>(i);
      result.worst_value = output[i];
      result.worst_expected = reference[i];
      result.worst_tolerance = tolerance;
    }
  }
  result.within = result.worst_ratio <= 1;
  result.relative_error = error_squares == 0 ? 0 : std::sqrt(error_squares / reference_squares);
  if (!std::isfinite(result.relative_error)) result.relative_error = kInfinity;
  return result;
}

}  // namespace

Comparison compare(std::span<const float> output, std::span<const double> reference, std::span<const double> tolerances,
                   ElementType element, std::span<const Leeway> leeway) {
  BURIN_CHECK(!output.empty() && output.size() == reference.size() && output.size() == tolerances.size(),
              "comparing {} outputs with {} references and {} tolerances", output.size(), reference.size(),
              tolerances.size());
  BURIN_CHECK(leeway.empty() || leeway.size() == output.size(), "comparing {} outputs with the leeway of {}",
              output.size(), leeway.size());
  return compare_each(output, reference, element, [&](std::size_t i) { return tolerances[i]; }, leeway);
}

void add_bias_errors(const ConvLayer& layer, ElementType rounded_to, int batch, std::vector<double>& errors) {
  if (rounded_to == ElementType::f32) return;
  errors.resize(static_cast<std::size_t>(layer.shape.conv_elements() * batch));
  if (layer.bias.empty()) return;
  const std::vector<float> stored = rounded(rounded_to, layer.bias);
  for_each_output(layer.shape, batch, [&](std::size_t i, std::size_t k) {
    errors[i] += std::abs(static_cast<double>(layer.bias[k]) - stored[k]);
  });
}

std::vector<double> storage_errors(const ConvLayer& layer, const Arithmetic& arithmetic, int batch,
                                   std::span<const float> input) {
  std::vector<double> errors;
  add_bias_errors(layer, arithmetic.biases, batch, errors);
  if (arithmetic.weights == FactorType::f32 && arithmetic.inputs == FactorType::f32) return errors;
  ConvLayer stored = layer;
  // The sums alone matter.
  stored.shape.epilogue = {};
  for (std::vector<float>* values : {&stored.bias, &stored.filters, &stored.filter_bias}) values->clear();
  ConvLayer lost = stored;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    stored.weights[i] = rounded(arithmetic.weights, layer.weights[i]);
    lost.weights[i] = layer.weights[i] - stored.weights[i];
  }
  const ConvolutionReference of_weights(lost, batch, input, {});
  errors.resize(of_weights.magnitudes().size());
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += of_weights.magnitudes()[i];
  if (arithmetic.inputs == FactorType::f32) return errors;
  std::vector<float> lost_input(input.begin(), input.end());
  for (float& value : lost_input) value = is_finite(value) ? value - rounded(arithmetic.inputs, value) : 0;
  const ConvolutionReference of_inputs(stored, batch, lost_input, {});
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += of_inputs.magnitudes()[i];
  return errors;
}

Comparison compare_within(std::span<const float> output, std::span<const double> reference, double tolerance) {
  BURIN_CHECK(!output.empty() && output.size() == reference.size(), "comparing {} outputs with {} references",
              output.size(), reference.size());
  return compare_each(output, reference, ElementType::f32, [&](std::size_t) { return tolerance; }, {});
}

std::string describe_output_index(const ConvShape& shape, std::int64_t index) {
  const std::int64_t width = shape.out_w(), plane = width * shape.out_h(), image = plane * shape.out_channels;
  return fmt::format("image {}, channel {}, row {}, col {}", index / image, index % image / plane,
                     index % plane / width, index % width);
}

std::vector<float> random_tensor(std::int64_t elements, std::uint64_t seed) {
  BURIN_CHECK(elements >= 0, "a tensor of {} elements", elements);
  // splitmix64 (Steele, Lea, Flood 2014); its upper bits choose one of 2^24 odd multiples of 2^-24, all of them exact.
  // None is zero, so that an input which is not read is noticed.
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  constexpr int kBits = 24;
  std::vector<float> values(static_cast<std::size_t>(elements));
  std::uint64_t state = seed;
  for (float& value : values) {
    state += kGolden;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    const auto draw = static_cast<std::int32_t>(z >> (64 - kBits));
    value = static_cast<float>(2 * draw + 1 - (1 << kBits)) * (1.0F / (1 << kBits));
  }
  return values;
}

void spoil(std::span<float> values, double share, std::uint64_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kSpoilt = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  const std::vector<float> draws = random_tensor(std::ssize(values), seed);
  const auto largest_kept = static_cast<float>(1 - 2 * share);  // of draws from -1 to 1
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (draws[i] > largest_kept) values[i] = kSpoilt[i % kSpoilt.size()];
  }
  if (!values.empty()) values[seed % values.size()] = kSpoilt[seed % kSpoilt.size()];
}

Arithmetic arithmetic_of(const Kernel& kernel) {
  const std::optional<Precision> precision = parse_enum<Precision>(kernel.precision);
  BURIN_CHECK(precision, "a package with precision '{}' was read", kernel.precision);
  Arithmetic arithmetic{.precision = *precision};
  if (!kernel.weights.empty()) {
    const TemplatePlan plan = parse_template_plan(kernel.own_plan());
    arithmetic.weights = stored_weights(plan);
    arithmetic.inputs = multiplied_inputs(plan);
  }
  // Either may run; what code rounds to has no more digits than what a call does.
  if (kernel.call) {
    for (FactorType* factors : {&arithmetic.weights, &arithmetic.inputs}) {
      if (*factors == FactorType::f32) *factors = kernel.call->factors;
    }
    arithmetic.reach = may_transform(kernel.call->algorithm) ? NonFiniteReach::image : NonFiniteReach::window;
    arithmetic.biases = called_format(kernel.form).element;
    arithmetic.relu_drops_nan = true;  // as cuBLASLt's does, and some of cuDNN's
  }
  if (arithmetic.precision != Precision::fp16x2) return arithmetic;
  try {
    arithmetic.promote_every = parse_baked_plan(kernel.plan).promote_every;
  } catch (const Error& error) {
    fail(ErrorKind::bad_input,
         "layer '{}': the package's plan says how often sums go over to FP32, and cannot be read: {}", kernel.op,
         error.what());
  }
  return arithmetic;
}

}  // namespace burin
