// Convolution of floats on the tensor cores of warpgroups, in TF32.
#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "compiler/providers/conv_warpgroup_tf32/tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"

namespace burin {
namespace {

constexpr TileChoice<WarpgroupFloatTiles> kFloatChoices[] = {{"output_groups", &WarpgroupFloatTiles::output_groups},
                                                             {"pixel_groups", &WarpgroupFloatTiles::pixel_groups},
                                                             {"output_octets", &WarpgroupFloatTiles::output_octets},
                                                             {"tile_rows", &WarpgroupFloatTiles::tile_rows},
                                                             {"tile_cols", &WarpgroupFloatTiles::tile_cols},
                                                             {"chunk_channels", &WarpgroupFloatTiles::chunk_channels},
                                                             {"buffers", &WarpgroupFloatTiles::buffers},
                                                             {"part_rows", &WarpgroupFloatTiles::part_rows},
                                                             {"part_cols", &WarpgroupFloatTiles::part_cols},
                                                             {"image_groups", &WarpgroupFloatTiles::image_groups},
                                                             {"set_blocks", &WarpgroupFloatTiles::set_blocks}};

WarpgroupFloatTiles float_tiles_of(const TemplatePlan& plan) {
  WarpgroupFloatTiles tiles;
  read_choices(plan, kFloatChoices, tiles);
  return tiles;
}

class ConvWarpgroupTf32Provider : public TemplateProvider {
 public:
  ConvWarpgroupTf32Provider() : TemplateProvider("conv_warpgroup_tf32") {}

  bool is_dense() const override { return true; }

 protected:
  bool knows_formats() const override { return true; }
  // Its instructions are those of one architecture, so no other may be asked for.
  bool can(const Task& task) const override {
    if (task.layer == nullptr || task.activity_maps || task.factors != FactorType::tf32) return false;
    constexpr int kOnlyCompute = 90;
    const ConvShape& shape = task.layer->shape;
    const bool is_whole = shape.groups == 1 || (shape.channels_per_group() % kOctetChannels == 0 &&
                                                shape.outputs_per_group() % kOctetChannels == 0);
    return task.archs.size() == 1 && arch_of(task).compute == kOnlyCompute &&
           task.writes.layout == TensorLayout::n4c8hw && has_one_format(task) && is_whole &&
           has_float_tiles(warpgroup_shape(shape), arch_of(task)) && can_hold(FactorType::tf32, *task.layer);
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape shape = warpgroup_shape(task.layer->shape);
    std::vector<Candidate> candidates;
    for (const WarpgroupFloatTiles& tiles : choose_warpgroup_floats(shape, task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      candidates.push_back(candidate(task, plan_of(task, tiles)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kFloatChoices); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(float_tiles_of(plan), warpgroup_shape(task.layer->shape), task.batch, arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, float_tiles_of(chosen));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_warpgroup_floats(*task.layer, warpgroup_shape(task.layer->shape), float_tiles_of(plan));
  }

 private:
  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const WarpgroupFloatTiles& tiles) const {
    const ConvShape shape = warpgroup_shape(task.layer->shape);
    TemplatePlan plan = start(task);
    if (!fits(tiles, shape, arch_of(task))) return plan;
    set_convolution(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = static_cast<int>(tiles.shared_bytes(shape));
    launch.tile_images = images_together(task.writes.layout) * tiles.image_groups;
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
                        {"factors", static_cast<int>(task.factors)}});
    set_pool(plan, shape);
    write_choices(tiles, kFloatChoices, plan);
    plan.form.boxes = {tiles.box(shape)};
    plan.weights().run_words = packed_words(shape, tiles);
    return plan;
  }
};

}  // namespace

const Provider& conv_warpgroup_tf32_provider() { return the_only<ConvWarpgroupTf32Provider>(); }

}  // namespace burin
