// Convolution by Winograd's algorithm, all weights as data, which are transformed when they are packed.
#include <algorithm>
#include <bit>

#include "compiler/providers/conv_winograd/winograd_tiles.h"
#include "compiler/providers/conv_winograd/winograd_transform.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

// The estimate of the worst error may be this share of the tolerance: what inputs do to it is not known.
constexpr double kMostError = 0.25;

bool may_have_tiles(const ConvLayer& layer, int tile) { return winograd_error(layer, tile) <= kMostError; }

// Transformed weights are more than those of the layer.
bool is_packable(const WinogradTiles& tiles, const ConvShape& shape) {
  return tiles.panel_words(shape) <= kMaxPackageEntryBytes / kWordBytes - shape.out_channels;
}

// Rows of four outputs begin at multiples of four words.
bool may_store_quads(const Task& task) {
  const auto is_aligned = [](const KernelTensor& tensor) { return is_wide(tensor); };
  return task.layer->shape.out_w() % kVectorWords == 0 && is_wide(task.writes) &&
         std::ranges::all_of(task.reads.begin() + 1, task.reads.end(), is_aligned);
}

// Lays the weights out as conv_winograd.cu reads them.
std::vector<std::uint32_t> pack_points(const ConvLayer& layer, const WinogradTiles& tiles) {
  const ConvShape& shape = layer.shape;
  const std::vector<float> transformed = winograd_weights(layer, tiles.tile);
  const auto points = static_cast<std::size_t>(tiles.patch_points());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(tiles.panel_words(shape)));
  std::size_t row = 0;
  for (int first = 0; first < shape.out_channels; first += tiles.block_outputs()) {
    const int outputs = std::min(tiles.block_outputs(), shape.out_channels - first);
    for (int slice = 0; slice < shape.in_channels; slice += tiles.slice_channels) {
      for (std::size_t point = 0; point < points; ++point) {
        for (int c = slice; c < slice + tiles.slice_channels;
             ++c, row += static_cast<std::size_t>(tiles.block_outputs())) {
          if (c >= shape.in_channels) continue;
          for (int k = 0; k < outputs; ++k) {
            const auto filter = static_cast<std::size_t>(first + k) * static_cast<std::size_t>(shape.in_channels) +
                                static_cast<std::size_t>(c);
            words[row + static_cast<std::size_t>(k)] =
                std::bit_cast<std::uint32_t>(transformed[filter * points + point]);
          }
        }
      }
    }
  }
  BURIN_CHECK(row == words.size(), "{} words of {} were packed", row, words.size());
  append_words(words, layer.bias);
  return words;
}

// The choices that are constants of the template; the images of a block and the cluster are the launch's.
constexpr TileChoice<WinogradTiles> kWinogradChoices[] = {{"tile", &WinogradTiles::tile},
                                                          {"points", &WinogradTiles::points},
                                                          {"tile_threads", &WinogradTiles::tile_threads},
                                                          {"tile_quads", &WinogradTiles::tile_quads},
                                                          {"output_threads", &WinogradTiles::output_threads},
                                                          {"output_quads", &WinogradTiles::output_quads},
                                                          {"slice_channels", &WinogradTiles::slice_channels},
                                                          {"vector", &WinogradTiles::vector}};

WinogradTiles winograd_tiles_of(const TemplatePlan& plan) {
  WinogradTiles tiles;
  read_choices(plan, kWinogradChoices, tiles);
  tiles.block_images = plan.launch().tile_images;
  tiles.cluster_blocks = plan.launch().cluster_tiles;
  return tiles;
}

class ConvWinogradProvider : public TemplateProvider {
 public:
  ConvWinogradProvider() : TemplateProvider("conv_winograd") {}

  bool is_dense() const override { return true; }

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    std::vector<int> allowed;
    for (const int tile : kWinogradTiles) {
      if (may_have_tiles(*task.layer, tile)) allowed.push_back(tile);
    }
    std::vector<Candidate> candidates;
    for (const WinogradTiles& tiles : winograd_tiles(task.layer->shape, task.batch, allowed, may_store_quads(task),
                                                     arch_of(task), static_cast<std::size_t>(options.count))) {
      if (is_packable(tiles, task.layer->shape)) candidates.push_back(candidate(task, plan_of(task, tiles)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kWinogradChoices, {"images", "cluster"}); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(winograd_tiles_of(plan), task.layer->shape, task.batch, arch_of(task));
  }
  bool can(const Task& task) const override {
    if (!is_plain_convolution(task)) return false;
    const ConvShape& shape = task.layer->shape;
    return shape.kernel_h == kWinogradFilter && shape.kernel_w == kWinogradFilter && shape.stride_h == 1 &&
           shape.stride_w == 1 && shape.dilation_h == 1 && shape.dilation_w == 1 && shape.groups == 1 &&
           !shape.epilogue.pool && may_have_tiles(*task.layer, kWinogradTiles[0]);
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    WinogradTiles tiles = winograd_tiles_of(chosen);
    if (tiles.tile != kVectorWords || !may_store_quads(task)) tiles.vector = 1;
    const bool can_be =
        fits(tiles, arch_of(task)) && is_packable(tiles, task.layer->shape) && may_have_tiles(*task.layer, tiles.tile);
    return can_be ? plan_of(task, tiles) : start(task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_points(*task.layer, winograd_tiles_of(plan));
  }

 private:
  TemplatePlan plan_of(const Task& task, const WinogradTiles& tiles) const {
    const ConvShape& shape = task.layer->shape;
    TemplatePlan plan = start(task);
    set_narrow(plan);
    if (tiles.vector == kVectorWords) {
      plan.output().alignment = kWideAccessBytes;
      if (shape.epilogue.residual) plan.residual().alignment = kWideAccessBytes;
    }
    set_convolution(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = tiles.shared_bytes();
    launch.tile_images = tiles.block_images;
    launch.cluster_tiles = tiles.cluster_blocks;
    launch.tiles_per_image = tiles.image_blocks(shape);
    set_integers(plan, {{"in_channels", shape.in_channels},
                        {"out_channels", shape.out_channels},
                        {"out_rows", shape.out_h()},
                        {"has_bias", shape.epilogue.bias}});
    write_choices(tiles, kWinogradChoices, plan);
    plan.weights().run_words = tiles.panel_words(shape) + (shape.epilogue.bias ? shape.out_channels : 0);
    return plan;
  }
};

}  // namespace

const Provider& conv_winograd_provider() { return the_only<ConvWinogradProvider>(); }

}  // namespace burin
