// Convolution of halves on tensor cores: only columns of weights that live are multiplied.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

constexpr TileChoice<GatheredTiles> kGatheredChoices[] = {
    {"warp_tiles", &GatheredTiles::warp_tiles},   {"warp_pixels", &GatheredTiles::warp_pixels},
    {"row_warps", &GatheredTiles::row_warps},     {"pixel_warps", &GatheredTiles::pixel_warps},
    {"split_warps", &GatheredTiles::split_warps}, {"tile_rows", &GatheredTiles::tile_rows},
    {"tile_cols", &GatheredTiles::tile_cols},     {"chunk_channels", &GatheredTiles::chunk_channels},
    {"buffers", &GatheredTiles::buffers},         {"carries", &GatheredTiles::carries},
    {"sparse", &GatheredTiles::sparse},           {"octets", &GatheredTiles::octets},
    {"set_blocks", &GatheredTiles::set_blocks},   {"keeps_panels", &GatheredTiles::keeps_panels},
    {"exchanges", &GatheredTiles::exchanges}};

GatheredTiles gathered_tiles_of(const TemplatePlan& plan) {
  GatheredTiles tiles;
  read_choices(plan, kGatheredChoices, tiles);
  return tiles;
}

class ConvGatheredProvider : public TemplateProvider {
 public:
  ConvGatheredProvider() : TemplateProvider("conv_gathered") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    if (task.layer == nullptr || task.activity_maps || task.layer->shape.epilogue.filters()) return false;
    constexpr int kLeastCompute = 80;
    return arch_of(task).compute >= kLeastCompute && task.writes.layout == TensorLayout::n8c8hw &&
           has_one_format(task) && fills_tiles(task.layer->shape) && has_whole_octets(task.layer->shape) &&
           has_tiles(gathered_shape(task.layer->shape), arch_of(task)) &&
           can_hold(factors_of(task.writes.element), *task.layer);
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    const LiveColumns live = live_columns(shape, analyse(*task.layer));
    std::vector<Candidate> candidates;
    for (const GatheredTiles& tiles : choose_gathered(shape, live, task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      const TemplatePlan plan = plan_of(task, tiles);
      if (plan.integers.empty()) continue;
      // (candidate() would look for the live columns anew.)
      const double us = predict(tiles, shape, live, task.batch, arch_of(task));
      candidates.push_back(
          {std::string(name()), print(plan), kernel_symbol(task.name, plan), {us, Estimate::Source::model}});
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kGatheredChoices); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    return predict(gathered_tiles_of(plan), shape, live_columns(shape, analyse(*task.layer)), task.batch,
                   arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, gathered_tiles_of(chosen));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const GatheredTiles tiles = gathered_tiles_of(plan);
    const ConvShape shape = gathered_shape(task.layer->shape);
    const Packing packing = tiles.packing(shape);
    return encode_panels(*task.layer, shape, packing, factors_of(task.writes.element),
                         gather_layer(*task.layer, shape, packing));
  }
  std::optional<MultipliedColumns> multiplied(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    const Packing packing = gathered_tiles_of(plan).packing(shape);
    return count_columns(shape, packing, gather_layer(*task.layer, shape, packing));
  }

 private:
  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const GatheredTiles& tiles) const {
    const ConvShape shape = gathered_shape(task.layer->shape);
    TemplatePlan plan = start(task);
    if (!fits(tiles, shape, 1, arch_of(task))) return plan;
    const Gathered gathered = gather_layer(*task.layer, shape, tiles.packing(shape));
    const int step_limit = gathered.step_limit;
    if (!fits(tiles, shape, step_limit, arch_of(task))) return plan;
    set_convolution(plan, shape);
    set_pool(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = static_cast<int>(round_up(tiles.shared_bytes(shape, step_limit), kWideAccessBytes));
    launch.tile_images = kOctetImages * tiles.octets;
    launch.tiles_per_image = std::int64_t{tiles.sets(shape)} * tiles.set_blocks;
    set_integers(plan, {{"group_channels", shape.channels_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"output_blocks", tiles.output_blocks(shape)},
                        {"patch_rows", tiles.patch_rows(shape)},
                        {"patch_cols", tiles.patch_cols(shape)},
                        {"compact", GatheredTiles::compact(shape)},
                        {"step_limit", step_limit},
                        {"half_values", static_cast<int>(task.writes.element)}});
    write_choices(tiles, kGatheredChoices, plan);
    plan.weights().run_words = encoded_words(shape, tiles.packing(shape), gathered);
    return plan;
  }
};

}  // namespace

const Provider& conv_gathered_provider() { return the_only<ConvGatheredProvider>(); }

}  // namespace burin
