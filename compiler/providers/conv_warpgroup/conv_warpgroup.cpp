// Convolution of halves on the tensor cores of warpgroups.
#include <algorithm>

#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_warpgroup/packing.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

constexpr TileChoice<WarpgroupTiles> kWarpgroupChoices[] = {{"row_groups", &WarpgroupTiles::row_groups},
                                                            {"pixel_groups", &WarpgroupTiles::pixel_groups},
                                                            {"group_rows", &WarpgroupTiles::group_rows},
                                                            {"tile_cols", &WarpgroupTiles::tile_cols},
                                                            {"chunk_channels", &WarpgroupTiles::chunk_channels},
                                                            {"buffers", &WarpgroupTiles::buffers},
                                                            {"part_rows", &WarpgroupTiles::part_rows},
                                                            {"part_cols", &WarpgroupTiles::part_cols},
                                                            {"overlap", &WarpgroupTiles::overlap},
                                                            {"sparse", &WarpgroupTiles::sparse},
                                                            {"image_groups", &WarpgroupTiles::image_groups},
                                                            {"set_blocks", &WarpgroupTiles::set_blocks}};

WarpgroupTiles warpgroup_tiles_of(const TemplatePlan& plan) {
  WarpgroupTiles tiles;
  read_choices(plan, kWarpgroupChoices, tiles);
  return tiles;
}

double density_of(const ConvLayer& layer) {
  const auto nonzeros = std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; });
  return static_cast<double>(nonzeros) / static_cast<double>(std::max<std::size_t>(1, layer.weights.size()));
}

class ConvWarpgroupProvider : public TemplateProvider {
 public:
  ConvWarpgroupProvider() : TemplateProvider("conv_warpgroup") {}

  bool is_dense() const override { return true; }

 protected:
  bool knows_formats() const override { return true; }
  // Its instructions are those of one architecture, so no other may be asked for.
  bool can(const Task& task) const override {
    if (task.layer == nullptr || task.activity_maps) return false;
    constexpr int kOnlyCompute = 90;
    const ConvShape& shape = task.layer->shape;
    const bool is_whole = shape.groups == 1 || (shape.channels_per_group() % kOctetChannels == 0 &&
                                                shape.outputs_per_group() % kOctetChannels == 0);
    return task.archs.size() == 1 && arch_of(task).compute == kOnlyCompute &&
           task.writes.layout == TensorLayout::n8c8hw && has_one_format(task) && is_whole &&
           can_hold(factors_of(task.writes.element), *task.layer) &&
           has_warpgroup_tiles(warpgroup_shape(shape), task.batch, arch_of(task));
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape shape = warpgroup_shape(task.layer->shape);
    std::vector<Candidate> candidates;
    for (const WarpgroupTiles& tiles : choose_warpgroup(shape, density_of(*task.layer), task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      const TemplatePlan plan = plan_of(task, tiles);
      if (!plan.integers.empty()) candidates.push_back(candidate(task, plan));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kWarpgroupChoices); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(warpgroup_tiles_of(plan), warpgroup_shape(task.layer->shape), density_of(*task.layer), task.batch,
                   arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, warpgroup_tiles_of(chosen));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_warpgroup(*task.layer, warpgroup_shape(task.layer->shape), warpgroup_tiles_of(plan),
                          plan.integers.at("rest_limit"), task.writes.element);
  }
  std::optional<MultipliedColumns> multiplied(const Task& task, const TemplatePlan& plan) const override {
    return count_columns(*task.layer, warpgroup_shape(task.layer->shape), warpgroup_tiles_of(plan));
  }

 private:
  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const WarpgroupTiles& tiles) const {
    const ConvShape shape = warpgroup_shape(task.layer->shape);
    TemplatePlan plan = start(task);
    if (!fits(tiles, shape, 0, arch_of(task))) return plan;
    const int limit = rest_limit(*task.layer, shape, tiles);
    if (!fits(tiles, shape, limit, arch_of(task))) return plan;
    set_convolution(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = static_cast<int>(tiles.shared_bytes(shape, limit));
    launch.tile_images = kOctetImages * tiles.image_groups;
    launch.tiles_per_image = std::int64_t{tiles.sets(shape)} * tiles.set_blocks;
    set_integers(plan, {{"group_channels", shape.channels_per_group()},
                        {"group_outputs", shape.outputs_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"output_blocks", tiles.output_blocks(shape)},
                        {"patch_rows", tiles.patch_rows(shape)},
                        {"patch_cols", tiles.patch_cols(shape)},
                        {"step_rows", tiles.step_rows(shape)},
                        {"step_cols", tiles.step_cols(shape)},
                        {"box_octets", tiles.box(shape).octets},
                        {"rest_limit", limit},
                        {"half_values", static_cast<int>(task.writes.element)}});
    set_pool(plan, shape);
    write_choices(tiles, kWarpgroupChoices, plan);
    plan.form.boxes = {tiles.box(shape)};
    plan.weights().run_words = packed_words(shape, tiles, limit);
    return plan;
  }
};

}  // namespace

const Provider& conv_warpgroup_provider() { return the_only<ConvWarpgroupProvider>(); }

}  // namespace burin
