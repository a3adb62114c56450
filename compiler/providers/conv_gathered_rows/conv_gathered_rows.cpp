// Convolution on tensor cores: FP32 tensors, factors in halves or in TF32, only columns of weights that live.
#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_gathered_rows/row_tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

constexpr TileChoice<RowTiles> kRowChoices[] = {
    {"warp_tiles", &RowTiles::warp_tiles},   {"warp_octets", &RowTiles::warp_octets},
    {"row_warps", &RowTiles::row_warps},     {"octet_warps", &RowTiles::octet_warps},
    {"split_warps", &RowTiles::split_warps}, {"tile_rows", &RowTiles::tile_rows},
    {"tile_octets", &RowTiles::tile_octets}, {"sparse", &RowTiles::sparse},
    {"skip_dead", &RowTiles::skip_dead}};

// Those of a plan, for the task's factors.
RowTiles row_tiles_of(const TemplatePlan& plan, FactorType factors) {
  RowTiles tiles{.factors = factors};
  read_choices(plan, kRowChoices, tiles);
  tiles.cluster = plan.launch().cluster_tiles;
  return tiles;
}

class ConvGatheredRowsProvider : public TemplateProvider {
 public:
  ConvGatheredRowsProvider() : TemplateProvider("conv_gathered_rows") {}

  bool uses_zeros() const override { return true; }

 protected:
  bool can(const Task& task) const override {
    constexpr int kLeastCompute = 90;  // bulk copies
    return task.layer != nullptr && task.factors != FactorType::f32 && !task.activity_maps &&
           !task.layer->shape.epilogue.filters() && arch_of(task).compute >= kLeastCompute &&
           has_rows(gathered_shape(task.layer->shape)) && fills_tiles(task.layer->shape) &&
           can_hold(task.factors, *task.layer);
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    const RowColumns columns = columns_of_task(task, shape);
    std::vector<Candidate> candidates;
    for (const RowTiles& tiles : choose_row_tiles(shape, columns, task.factors, task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      const TemplatePlan plan = plan_of(task, tiles);
      if (plan.integers.empty()) continue;
      const double us = predict(tiles, shape, columns, task.batch, arch_of(task));
      candidates.push_back(
          {std::string(name()), print(plan), kernel_symbol(task.name, plan), {us, Estimate::Source::model}});
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kRowChoices, {"cluster"}); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    return predict(row_tiles_of(plan, task.factors), shape, columns_of_task(task, shape), task.batch, arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, row_tiles_of(chosen, task.factors));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    const Packing packing = row_tiles_of(plan, task.factors).packing(shape);
    return encode_panels(*task.layer, shape, packing, task.factors, gather_layer(*task.layer, shape, packing));
  }
  std::optional<MultipliedColumns> multiplied(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape shape = gathered_shape(task.layer->shape);
    const Packing packing = row_tiles_of(plan, task.factors).packing(shape);
    return count_columns(shape, packing, gather_layer(*task.layer, shape, packing));
  }

 private:
  static RowColumns columns_of_task(const Task& task, const ConvShape& shape) {
    return {live_columns(shape, analyse(*task.layer)), task.zeros};
  }

  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const RowTiles& tiles) const {
    const ConvShape shape = gathered_shape(task.layer->shape);
    TemplatePlan plan = start(task);
    if (!fits(tiles, shape, 1, arch_of(task))) return plan;
    const Packing packing = tiles.packing(shape);
    const Gathered gathered = gather_layer(*task.layer, shape, packing);
    if (!fits(tiles, shape, gathered.step_limit, arch_of(task))) return plan;
    const bool vector = loads_fours(tiles, shape) && is_wide(task.reads[0]);
    set_narrow(plan);
    if (vector) plan.input().alignment = kWideAccessBytes;
    set_convolution(plan, shape);
    set_pool(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.warps() * kWarpSize;
    launch.shared_bytes = static_cast<int>(round_up(tiles.shared_bytes(shape, gathered.step_limit), kWideAccessBytes));
    launch.cluster_tiles = tiles.cluster;
    launch.tiles_per_image = tiles.blocks(shape);
    set_integers(plan, {{"split_channels", tiles.split_channels(shape)},
                        {"group_channels", shape.channels_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"output_blocks", tiles.output_blocks(shape)},
                        {"patch_rows", tiles.patch_rows(shape)},
                        {"channel_pitch", tiles.channel_pitch(shape)},
                        {"vector", vector},
                        {"step_limit", gathered.step_limit},
                        {"factors", static_cast<int>(task.factors)}});
    write_choices(tiles, kRowChoices, plan);
    plan.weights().run_words = encoded_words(shape, packing, gathered);
    return plan;
  }
};

}  // namespace

const Provider& conv_gathered_rows_provider() { return the_only<ConvGatheredRowsProvider>(); }

}  // namespace burin
