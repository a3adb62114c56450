#include "compiler/providers/transformed_convolution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/providers/tile_choices.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

// The estimate of the worst error may be this share of the tolerance: what inputs do to it is not known.
constexpr double kMostError = 0.25;

// Transformed weights are more than those of the layer.
bool is_packable(const TransformedTiles& tiles, const ConvShape& shape) {
  return tiles.panel_words(shape) <= kMaxPackageEntryBytes / kWordBytes - shape.out_channels;
}

// Rows of outputs, four at a time, begin at multiples of four words.
bool may_store_quads(const Task& task) {
  const auto is_aligned = [](const KernelTensor& tensor) { return is_wide(tensor); };
  const ConvShape& shape = task.layer->shape;
  return !shape.epilogue.pool && shape.out_w() % kVectorWords == 0 && is_wide(task.writes) &&
         std::ranges::all_of(task.reads.begin() + 1, task.reads.end(), is_aligned);
}

// The choices that are constants of all templates; the images of a block and the cluster are the launch's.
constexpr TileChoice<TransformedTiles> kTransformedChoices[] = {{"points", &TransformedTiles::points},
                                                                {"tile_threads", &TransformedTiles::tile_threads},
                                                                {"tile_quads", &TransformedTiles::tile_quads},
                                                                {"output_threads", &TransformedTiles::output_threads},
                                                                {"output_quads", &TransformedTiles::output_quads},
                                                                {"slice_channels", &TransformedTiles::slice_channels},
                                                                {"vector", &TransformedTiles::vector},
                                                                {"window_rows", &TransformedTiles::window_rows},
                                                                {"window_cols", &TransformedTiles::window_cols}};

// Where templates/kernels/transformed_tiles.h reads a word of the points of a filter.
std::size_t place_of(const TransformedTiles& tiles, const ConvShape& shape, int output, int input, int word) {
  const std::int64_t slice = output / tiles.block_outputs() * tiles.slices(shape) + input / tiles.slice_channels;
  const std::int64_t row =
      (slice * tiles.transform.words() + word) * tiles.slice_channels + input % tiles.slice_channels;
  return static_cast<std::size_t>(row * tiles.block_outputs() + output % tiles.block_outputs());
}

// The parts of a filter that lie inside the image, along one axis: first position and end, of each output.
std::set<std::array<int, 2>> parts_inside(int filter, int outputs, int padding, int extent) {
  std::set<std::array<int, 2>> parts;
  for (int i = 0; i < outputs; ++i) {
    const int first = std::clamp(padding - i, 0, filter), end = std::clamp(extent + padding - i, first, filter);
    parts.insert({first, end});
  }
  return parts;
}

// What a filter has in all channels together.
struct FilterSums {
  std::vector<double> magnitudes;  // of each position
  double squares = 0;
  int terms = 0;
};

FilterSums sums_of(const ConvLayer& layer, int output) {
  const ConvShape& shape = layer.shape;
  FilterSums sums{std::vector<double>(static_cast<std::size_t>(shape.kernel_h) * shape.kernel_w)};
  for (int c = 0; c < shape.in_channels; ++c) {
    for (int r = 0; r < shape.kernel_h; ++r) {
      for (int s = 0; s < shape.kernel_w; ++s) {
        const double weight = layer.weight(output, c, r, s);
        sums.magnitudes[static_cast<std::size_t>(r * shape.kernel_w + s)] += std::abs(weight);
        sums.squares += weight * weight;
        sums.terms += weight != 0;
      }
    }
  }
  return sums;
}

}  // namespace

double transform_error(const ConvLayer& layer, double roundings, bool nothing_is_exact) {
  const ConvShape& shape = layer.shape;
  const auto rows = parts_inside(shape.kernel_h, shape.conv_h(), shape.pad.top, shape.in_h);
  const auto cols = parts_inside(shape.kernel_w, shape.conv_w(), shape.pad.left, shape.in_w);
  int terms = 0;
  double least = std::numeric_limits<double>::infinity();  // of an output's terms, over the root of all squares
  for (int k = 0; k < shape.out_channels; ++k) {
    const FilterSums filter = sums_of(layer, k);
    terms = std::max(terms, filter.terms);
    if (filter.terms == 0) continue;  // nothing is rounded
    for (const auto& [top, bottom] : rows) {
      for (const auto& [left, right] : cols) {
        const bool empty = top == bottom || left == right;
        if (empty && nothing_is_exact) continue;
        double magnitude = 0;
        for (int r = top; r < bottom; ++r) {
          for (int s = left; s < right; ++s) {
            magnitude += filter.magnitudes[static_cast<std::size_t>(r * shape.kernel_w + s)];
          }
        }
        least = std::min(least, magnitude / std::sqrt(filter.squares));
      }
    }
  }
  return terms == 0 ? 0 : roundings / (std::sqrt(terms) * least);
}

bool TransformedProvider::can(const Task& task) const {
  if (!is_plain_convolution(task)) return false;
  const ConvShape& shape = task.layer->shape;
  return shape.stride_h == 1 && shape.stride_w == 1 && shape.dilation_h == 1 && shape.dilation_w == 1 &&
         shape.groups == 1 && !shape.epilogue.filters() && !allowed(*task.layer).empty();
}

std::vector<SizedTransform> TransformedProvider::allowed(const ConvLayer& layer) const {
  std::vector<SizedTransform> found;
  for (const int size : sizes(layer.shape)) {
    if (error(layer, size) <= kMostError) found.push_back({size, transform(layer.shape, size)});
  }
  return found;
}

std::vector<std::string> TransformedProvider::choices() const {
  return choice_names(kTransformedChoices, {"images", "cluster", size_});
}

std::vector<Candidate> TransformedProvider::search(const Task& task, const ProposeOptions& options) const {
  std::vector<Candidate> candidates;
  for (const TransformedTiles& tiles :
       transformed_tiles(task.layer->shape, task.batch, allowed(*task.layer), may_store_quads(task), arch_of(task),
                         static_cast<std::size_t>(options.count))) {
    if (is_packable(tiles, task.layer->shape)) candidates.push_back(candidate(task, plan_of(task, tiles)));
  }
  return candidates;
}

double TransformedProvider::predict_us(const Task& task, const TemplatePlan& plan) const {
  return predict(tiles_of(*task.layer, plan), task.layer->shape, task.batch, arch_of(task));
}

TransformedTiles TransformedProvider::tiles_of(const ConvLayer& layer, const TemplatePlan& plan) const {
  TransformedTiles tiles;
  read_choices(plan, kTransformedChoices, tiles);
  tiles.block_images = plan.launch().tile_images;
  tiles.cluster_blocks = plan.launch().cluster_tiles;
  const int size = static_cast<int>(plan.integers.at(size_));
  if (const std::vector<int> known = sizes(layer.shape); std::ranges::find(known, size) != known.end()) {
    tiles.size = size;
    tiles.transform = transform(layer.shape, size);
  }
  return tiles;
}

TemplatePlan TransformedProvider::plan_as(const Task& task, const TemplatePlan& chosen) const {
  const ConvLayer& layer = *task.layer;
  TransformedTiles tiles = tiles_of(layer, chosen);
  if (!has_whole_quads(tiles.transform) || !may_store_quads(task)) tiles.vector = 1;
  const bool can_be = tiles.size != 0 && fits(tiles, layer.shape, arch_of(task)) && is_packable(tiles, layer.shape) &&
                      error(layer, tiles.size) <= kMostError;
  return can_be ? plan_of(task, tiles) : start(task);
}

TemplatePlan TransformedProvider::plan_of(const Task& task, const TransformedTiles& tiles) const {
  const ConvShape& shape = task.layer->shape;
  TemplatePlan plan = start(task);
  set_narrow(plan);
  if (tiles.vector == kVectorWords) {
    plan.output().alignment = kWideAccessBytes;
    if (shape.epilogue.residual) plan.residual().alignment = kWideAccessBytes;
  }
  set_convolution(plan, shape);
  set_pool(plan, shape);
  LaunchGeometry& launch = plan.launch();
  launch.threads = tiles.threads();
  launch.shared_bytes = tiles.shared_bytes(shape);
  launch.tile_images = tiles.block_images;
  launch.cluster_tiles = tiles.cluster_blocks;
  launch.tiles_per_image = tiles.image_blocks(shape);
  set_integers(plan, {{"in_channels", shape.in_channels},
                      {"out_channels", shape.out_channels},
                      {"out_rows", shape.out_h()},
                      {"out_cols", shape.out_w()},
                      {"has_bias", shape.epilogue.bias},
                      {size_, tiles.size}});
  write_choices(tiles, kTransformedChoices, plan);
  plan.weights().run_words = tiles.panel_words(shape) + (shape.epilogue.bias ? shape.out_channels : 0);
  return plan;
}

std::vector<std::uint32_t> TransformedProvider::pack(const Task& task, const TemplatePlan& plan) const {
  const ConvLayer& layer = *task.layer;
  const ConvShape& shape = layer.shape;
  const TransformedTiles tiles = tiles_of(layer, plan);
  const FilterTransform of_filter = filter_transform(shape, tiles.size);
  const auto taps = static_cast<std::size_t>(shape.kernel_h) * static_cast<std::size_t>(shape.kernel_w);
  std::vector<float> points(static_cast<std::size_t>(tiles.transform.words()));
  std::vector<std::uint32_t> words(static_cast<std::size_t>(tiles.panel_words(shape)));
  const float* filter = layer.weights.data();
  for (int output = 0; output < shape.out_channels; ++output) {
    for (int input = 0; input < shape.in_channels; ++input, filter += taps) {
      of_filter({filter, taps}, points);
      for (int word = 0; word < tiles.transform.words(); ++word) {
        words.at(place_of(tiles, shape, output, input, word)) =
            std::bit_cast<std::uint32_t>(points[static_cast<std::size_t>(word)]);
      }
    }
  }
  append_words(words, layer.bias);
  return words;
}

}  // namespace burin
