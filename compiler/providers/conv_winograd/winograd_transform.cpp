#include "compiler/providers/conv_winograd/winograd_transform.h"

#include <array>

#include "ir/error.h"

namespace burin {
namespace {

constexpr int kFilter = kWinogradFilter;

// A row of the filters' transform: one point's.
using PointRow = std::array<double, kFilter>;

// A filter is a polynomial, whose points are its values, divided by what the transform of the patch multiplies them
// with; the last is its value at infinity. conv_winograd.cu has the same points.
std::vector<PointRow> point_rows(int tile) {
  const std::vector<double> points =
      tile == 2 ? std::vector<double>{0, 1, -1} : std::vector<double>{0, 0.625, -0.625, 1.5, -1.5};
  BURIN_CHECK(std::ssize(points) + 1 == winograd_side(tile), "{} points for tiles of {}", points.size(), tile);
  std::vector<PointRow> rows;
  for (const double point : points) {
    double factor = 1;
    for (const double other : points) factor *= other == point ? 1 : point - other;
    rows.push_back({1 / factor, point / factor, point * point / factor});
  }
  rows.push_back({0, 0, 1});
  return rows;
}

}  // namespace

FilterTransform winograd_filter(int tile) {
  return [rows = point_rows(tile)](std::span<const float> filter, std::span<float> points) {
    auto point = points.begin();
    for (const PointRow& down : rows) {
      for (const PointRow& across : rows) {
        double sum = 0;
        for (std::size_t r = 0; r < kFilter; ++r) {
          for (std::size_t s = 0; s < kFilter; ++s) sum += down[r] * across[s] * filter[r * kFilter + s];
        }
        *point++ = static_cast<float>(sum);
      }
    }
  };
}

double winograd_error(const ConvLayer& layer, int tile) {
  // Random layers with normally distributed weights were simulated: docs/experiments.md. Of 2x2 outputs one that
  // reads padding alone is exact: no transformed number that it adds up is of its neighbours.
  return transform_error(layer, tile == 2 ? 2.2 : 15, tile == 2);
}

}  // namespace burin
