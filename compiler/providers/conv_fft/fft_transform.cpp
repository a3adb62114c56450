#include "compiler/providers/conv_fft/fft_transform.h"

#include <algorithm>
#include <complex>
#include <numbers>

namespace burin {
namespace {

using Complex = std::complex<double>;

constexpr double kPi = std::numbers::pi;

// Appends the roots of x^size = e^(i angle) in the order in which conv_fft.cu splits a polynomial: first those of
// x^(size / 2) = c, where c is the root of e^(i angle) of half its angle, then those of x^(size / 2) = -c.
void append_roots(int size, double angle, std::vector<Complex>& roots) {
  if (size == 1) {
    roots.push_back(std::polar(1.0, angle));
    return;
  }
  append_roots(size / 2, angle / 2, roots);
  append_roots(size / 2, angle / 2 + kPi, roots);
}

// For each root, its inverse to the power of each position of the filter.
std::vector<std::vector<Complex>> inverse_powers(int size, double angle, int count) {
  std::vector<Complex> roots;
  append_roots(size, angle, roots);
  std::vector<std::vector<Complex>> powers;
  for (const Complex& root : roots) {
    std::vector<Complex>& row = powers.emplace_back();
    for (int i = 0; i < count; ++i) row.push_back(std::polar(1.0, -i * std::arg(root)));
  }
  return powers;
}

}  // namespace

std::vector<int> fft_sides(const ConvShape& shape) {
  std::vector<int> sides;
  if (std::min(shape.kernel_h, shape.kernel_w) < kLeastFftFilter) return sides;
  const int most = std::max(shape.kernel_h, shape.kernel_w);
  std::ranges::copy_if(kFftSides, std::back_inserter(sides),
                       [&](int side) { return side - most + 1 >= kLeastFftTile; });
  return sides;
}

FilterTransform fft_filter(int rows, int cols, int side) {
  return [rows, cols, side, down = inverse_powers(side, 0, rows), across = inverse_powers(side / 2, kPi / 2, cols)](
             std::span<const float> filter, std::span<float> points) {
    const double scale = 2.0 / (side * side);
    auto point = points.begin();
    std::vector<Complex> values(static_cast<std::size_t>(rows));  // of each row of the filter, at one root
    for (std::size_t bin = 0; bin < across.size(); ++bin) {
      for (std::size_t r = 0; r < values.size(); ++r) {
        values[r] = 0;
        for (std::size_t s = 0; s < static_cast<std::size_t>(cols); ++s) {
          values[r] += across[bin][s] * static_cast<double>(filter[r * static_cast<std::size_t>(cols) + s]);
        }
      }
      for (std::size_t row = 0; row < down.size(); ++row) {
        Complex sum = 0;
        for (std::size_t r = 0; r < values.size(); ++r) sum += down[row][r] * values[r];
        const auto place = static_cast<std::ptrdiff_t>(2 * (row * across.size() + bin));
        point[place] = static_cast<float>(scale * sum.real());
        point[place + 1] = static_cast<float>(scale * sum.imag());
      }
    }
  };
}

double fft_error(const ConvLayer& layer, int side) {
  // Random layers with normally distributed weights were simulated: docs/experiments.md.
  return transform_error(layer, side == 8 ? 3 : 3.5, false);
}

}  // namespace burin
