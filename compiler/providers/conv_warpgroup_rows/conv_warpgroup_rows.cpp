// Convolution of few images on the tensor cores of warpgroups: factors in halves or in TF32, tensors in FP32, in places
// of such halves (nchw8, nhwc8), or, in TF32, in places of FP32 (nhwc4).
#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/conv_warpgroup_rows/tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"

namespace burin {
namespace {

constexpr TileChoice<WarpgroupRowTiles> kWarpgroupRowChoices[] = {
    {"row_groups", &WarpgroupRowTiles::row_groups}, {"pixel_groups", &WarpgroupRowTiles::pixel_groups},
    {"group_rows", &WarpgroupRowTiles::group_rows}, {"tile_cols", &WarpgroupRowTiles::tile_cols},
    {"buffers", &WarpgroupRowTiles::buffers},       {"chunk_channels", &WarpgroupRowTiles::chunk_channels},
    {"items", &WarpgroupRowTiles::items},           {"part_rows", &WarpgroupRowTiles::part_rows},
    {"part_cols", &WarpgroupRowTiles::part_cols},   {"staging_warps", &WarpgroupRowTiles::staging_warps}};

// FP32 on both sides, the task says what it may round to; halves are what is multiplied.
FactorType multiplied_type(const Task& task) {
  return task.factors == FactorType::f32 ? factors_of(task.writes.element) : task.factors;
}

RowFormats formats_of(const Task& task) {
  const KernelTensor &input = task.reads[0], &output = task.writes;
  const auto in_halves = [](const KernelTensor& tensor) { return tensor.element != ElementType::f32; };
  return {.factors = multiplied_type(task),
          .reads_halves = has_places(input.layout) && in_halves(input),
          .writes_places = has_places(output.layout),
          .writes_halves = in_halves(output),
          .writes_last = has_channels_last(output.layout)};
}

// Those of a plan, for the task's tensors.
WarpgroupRowTiles warpgroup_row_tiles_of(const TemplatePlan& plan, const Task& task) {
  WarpgroupRowTiles tiles{.formats = formats_of(task)};
  read_choices(plan, kWarpgroupRowChoices, tiles);
  tiles.cluster = plan.launch().cluster_tiles;
  return tiles;
}

class ConvWarpgroupRowsProvider : public TemplateProvider {
 public:
  ConvWarpgroupRowsProvider() : TemplateProvider("conv_warpgroup_rows") {}

  bool is_dense() const override { return true; }

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool knows_filters() const override { return true; }
  // Its instructions are those of one architecture, so no other may be asked for.
  bool can(const Task& task) const override {
    if (task.layer == nullptr || task.activity_maps || !knows_tensors(task)) return false;
    constexpr int kOnlyCompute = 90;
    const ConvShape& shape = task.layer->shape;
    return task.archs.size() == 1 && arch_of(task).compute == kOnlyCompute &&
           has_row_tiles(gathered_shape(shape), formats_of(task), arch_of(task)) &&
           can_hold(multiplied_type(task), *task.layer);
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    std::vector<Candidate> candidates;
    for (const WarpgroupRowTiles& tiles : choose_warpgroup_rows(shape, formats_of(task), task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      candidates.push_back(candidate(task, plan_of(task, tiles)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kWarpgroupRowChoices, {"cluster"}); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(warpgroup_row_tiles_of(plan, task), gathered_shape(task.layer->shape), task.batch, arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, warpgroup_row_tiles_of(chosen, task));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_warpgroup_rows(*task.layer, gathered_shape(task.layer->shape), warpgroup_row_tiles_of(plan, task));
  }

 private:
  // Tensors in FP32 that may be rounded, or in places of what is multiplied; a group's channels are whole places.
  static bool knows_tensors(const Task& task) {
    const ConvShape& shape = task.layer->shape;
    const FactorType factors = multiplied_type(task);
    const auto is_known = [&](const KernelTensor& tensor, int channels) {
      if (tensor.format().is_plain()) return factors != FactorType::f32;
      const bool holds_factors =
          tensor.layout == TensorLayout::nhwc4 ? factors == FactorType::tf32 : factors_of(tensor.element) == factors;
      return has_places(tensor.layout) && holds_factors &&
             (shape.groups == 1 || channels % channels_together(tensor.layout) == 0);
    };
    if (task.reads.size() > 1 && task.reads[1].format() != task.writes.format()) return false;
    return is_known(task.reads[0], shape.channels_per_group()) && is_known(task.writes, shape.outputs_per_group());
  }

  static std::int64_t places_last(const KernelTensor& tensor) {
    return has_channels_last(tensor.layout) ? place_count(tensor.layout, tensor.channels) : 0;
  }

  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const WarpgroupRowTiles& tiles) const {
    const ConvShape shape = gathered_shape(task.layer->shape);
    TemplatePlan plan = start(task);
    if (!fits(tiles, shape, arch_of(task))) return plan;
    set_narrow(plan);
    set_convolution(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = static_cast<int>(tiles.shared_bytes(shape));
    launch.cluster_tiles = tiles.cluster;
    launch.tiles_per_image = tiles.blocks(shape);
    set_integers(plan, {{"group_channels", shape.channels_per_group()},
                        {"group_outputs", shape.outputs_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"output_blocks", tiles.output_blocks(shape)},
                        {"split_channels", tiles.split_channels(shape)},
                        {"pitch", tiles.pitch(shape)},
                        {"plane_pixels", tiles.plane_pixels(shape)},
                        {"factors", static_cast<int>(tiles.formats.factors)},
                        {"in_pixel_places", places_last(task.reads[0])},
                        {"out_pixel_places", places_last(task.writes)}});
    set_pool(plan, shape);
    set_pool_filter(plan, shape);
    write_choices(tiles, kWarpgroupRowChoices, plan);
    plan.weights().run_words = packed_words(shape, tiles);
    return plan;
  }
};

}  // namespace

const Provider& conv_warpgroup_rows_provider() { return the_only<ConvWarpgroupRowsProvider>(); }

}  // namespace burin
