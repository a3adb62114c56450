#include "compiler/providers/conv_winograd/winograd_transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "ir/error.h"

namespace burin {
namespace {

constexpr int kFilter = kWinogradFilter;

// A row of the filters' transform: one point's.
using PointRow = std::array<double, kFilter>;

// A filter is a polynomial, whose points are its values, divided by what the transform of the patch multiplies them
// with; the last is its value at infinity. conv_winograd.cu has the same points.
std::vector<PointRow> filter_transform(int tile) {
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

// The parts of the filter that lie inside the image, along one axis: first position and end, of each output.
std::set<std::array<int, 2>> parts_inside(int outputs, int padding, int extent) {
  std::set<std::array<int, 2>> parts;
  for (int i = 0; i < outputs; ++i) {
    const int first = std::clamp(padding - i, 0, kFilter), end = std::clamp(extent + padding - i, first, kFilter);
    parts.insert({first, end});
  }
  return parts;
}

struct Filter {
  double magnitudes[kFilter][kFilter] = {};  // of all channels together
  double squares = 0;
  int terms = 0;
};

Filter filter_of(const ConvLayer& layer, int output) {
  Filter filter;
  for (int c = 0; c < layer.shape.in_channels; ++c) {
    for (int r = 0; r < kFilter; ++r) {
      for (int s = 0; s < kFilter; ++s) {
        const double weight = layer.weight(output, c, r, s);
        filter.magnitudes[r][s] += std::abs(weight);
        filter.squares += weight * weight;
        filter.terms += weight != 0;
      }
    }
  }
  return filter;
}

}  // namespace

std::vector<float> winograd_weights(const ConvLayer& layer, int tile) {
  const std::vector<PointRow> transform = filter_transform(tile);
  const ConvShape& shape = layer.shape;
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(shape.out_channels) * static_cast<std::size_t>(shape.in_channels) *
                 transform.size() * transform.size());
  for (int k = 0; k < shape.out_channels; ++k) {
    for (int c = 0; c < shape.in_channels; ++c) {
      for (const PointRow& down : transform) {
        for (const PointRow& across : transform) {
          double sum = 0;
          for (int r = 0; r < kFilter; ++r) {
            for (int s = 0; s < kFilter; ++s) {
              sum += down[static_cast<std::size_t>(r)] * across[static_cast<std::size_t>(s)] * layer.weight(k, c, r, s);
            }
          }
          result.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return result;
}

double winograd_error(const ConvLayer& layer, int tile) {
  // Of random layers with normally distributed weights, by simulation: docs/experiments.md.
  const double error = tile == 2 ? 2.2 : 15;
  const ConvShape& shape = layer.shape;
  const auto rows = parts_inside(shape.out_h(), shape.pad.top, shape.in_h);
  const auto cols = parts_inside(shape.out_w(), shape.pad.left, shape.in_w);
  int terms = 0;
  double least = std::numeric_limits<double>::infinity();  // of an output's terms, over the root of all squares
  for (int k = 0; k < shape.out_channels; ++k) {
    const Filter filter = filter_of(layer, k);
    terms = std::max(terms, filter.terms);
    if (filter.terms == 0) continue;  // nothing is rounded
    for (const auto& [top, bottom] : rows) {
      for (const auto& [left, right] : cols) {
        const bool empty = top == bottom || left == right;
        // Of 2x2 outputs one that reads padding alone is exact: no transformed number that it adds up is of its
        // neighbours.
        if (empty && tile == 2) continue;
        double magnitude = 0;
        for (int r = top; r < bottom; ++r) {
          for (int s = left; s < right; ++s) magnitude += filter.magnitudes[r][s];
        }
        least = std::min(least, magnitude / std::sqrt(filter.squares));
      }
    }
  }
  return terms == 0 ? 0 : error / (std::sqrt(terms) * least);
}

}  // namespace burin
