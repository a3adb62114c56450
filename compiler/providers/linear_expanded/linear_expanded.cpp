// Fully connected on tensor cores, for several images: nonzeros are brought to their places in dense panels.
#include "compiler/providers/linear_expanded/panels.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr TileChoice<ExpandedTiles> kExpandedChoices[] = {{"warp_tiles", &ExpandedTiles::warp_tiles},
                                                          {"panel_cols", &ExpandedTiles::panel_cols},
                                                          {"octets", &ExpandedTiles::octets},
                                                          {"row_warps", &ExpandedTiles::row_warps},
                                                          {"split_warps", &ExpandedTiles::split_warps}};

ExpandedTiles expanded_tiles_of(const TemplatePlan& plan) {
  ExpandedTiles tiles;
  read_choices(plan, kExpandedChoices, tiles);
  tiles.cluster = plan.launch().cluster_tiles;
  return tiles;
}

class LinearExpandedProvider : public TemplateProvider {
 public:
  LinearExpandedProvider() : TemplateProvider("linear_expanded") {}

 protected:
  bool can(const Task& task) const override {
    constexpr int kLeastCompute = 80;  // products of halves
    const Linear* op = task.get<Linear>();
    return op != nullptr && (task.factors == FactorType::f16 || task.factors == FactorType::bf16) &&
           arch_of(task).compute >= kLeastCompute && can_hold(task.factors, *op);
  }
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const Linear& op = *task.get<Linear>();
    const PanelCounts counts(op, task.factors);
    std::vector<Candidate> candidates;
    for (const ExpandedTiles& tiles : choose_expanded(op, counts, task.batch, arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      const TemplatePlan plan = plan_of(task, tiles, counts);
      if (plan.integers.empty()) continue;
      const double us = predict(tiles, op, counts.quads(tiles), task.batch, arch_of(task));
      candidates.push_back(
          {std::string(name()), print(plan), kernel_symbol(task.name, plan), {us, Estimate::Source::model}});
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kExpandedChoices, {"cluster"}); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    const Linear& op = *task.get<Linear>();
    const ExpandedTiles tiles = expanded_tiles_of(plan);
    return predict(tiles, op, PanelCounts(op, task.factors).quads(tiles), task.batch, arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    return plan_of(task, expanded_tiles_of(chosen), PanelCounts(*task.get<Linear>(), task.factors));
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_expanded(expanded_tiles_of(plan), *task.get<Linear>(), task.factors);
  }

 private:
  // Without constants where the tiles do not fit.
  TemplatePlan plan_of(const Task& task, const ExpandedTiles& tiles, const PanelCounts& counts) const {
    const Linear& op = *task.get<Linear>();
    TemplatePlan plan = start(task);
    const ListQuads quads = counts.quads(tiles);
    if (!fits(tiles, op, quads.longest, arch_of(task))) return plan;
    set_narrow(plan);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = static_cast<int>(tiles.shared_bytes(op, quads.longest));
    launch.tile_images = tiles.images();
    launch.tiles_per_image = tiles.blocks(op);
    launch.cluster_tiles = tiles.cluster;
    set_integers(plan, {{"in_features", op.in_features},
                        {"out_features", op.out_features},
                        {"list_quads", quads.longest},
                        {"factors", static_cast<int>(task.factors)}});
    write_choices(tiles, kExpandedChoices, plan);
    set_function(plan, op.function);
    plan.weights().run_words = expanded_words(tiles, op, quads.all);
    return plan;
  }
};

}  // namespace

const Provider& linear_expanded_provider() { return the_only<LinearExpandedProvider>(); }

}  // namespace burin
