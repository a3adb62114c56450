// Convolution of few pixels, nonzeros and their places as data.
#include "compiler/providers/conv_streamed/conv_streamed.h"

#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

ConvStreamed choices_of(const TemplatePlan& plan) {
  return {.splits = plan.launch().cluster_tiles,
          .block_rows = plan.integers.at("block_rows"),
          .row_parts = plan.integers.at("row_parts"),
          .bulk = plan.integers.at("bulk") != 0};
}

class ConvStreamedProvider : public TemplateProvider {
 public:
  ConvStreamedProvider() : TemplateProvider("conv_streamed") {}

  NonFiniteReach non_finite_reach() const override { return NonFiniteReach::nonzeros; }

  Candidate candidate_with(const Task& task, const ConvStreamedWay& priced) const {
    return candidate(task, plan_of(task, priced));
  }

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    std::vector<Candidate> candidates;
    for (const ConvStreamedWay& way : streamed_ways(*task.layer, task.batch, is_wide(task.reads[0]), arch_of(task))) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      candidates.push_back(candidate_with(task, way));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return {"cluster", "block_rows", "row_parts", "bulk"}; }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return price_streamed(*task.layer, choices_of(plan), task.batch, arch_of(task)).value().predicted_us;
  }
  bool can(const Task& task) const override {
    return is_plain_convolution(task) && can_stream(task.layer->shape, arch_of(task));
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    ConvStreamed choices = choices_of(chosen);
    choices.bulk = choices.bulk && is_wide(task.reads[0]);
    if (task.layer->shape.in_channels % choices.splits != 0) return start(task);
    const auto priced = price_streamed(*task.layer, choices, task.batch, arch_of(task));
    return priced ? plan_of(task, *priced) : start(task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_streamed(*task.layer, choices_of(plan), plan.integers.at("parcel_words"));
  }

 private:
  TemplatePlan plan_of(const Task& task, const ConvStreamedWay& way) const {
    const ConvShape& shape = task.layer->shape;
    const ConvStreamed& choices = way.choices;
    TemplatePlan plan = start(task);
    set_narrow(plan);
    if (choices.bulk) plan.input().alignment = kWideAccessBytes;
    set_convolution(plan, shape);
    set_pool(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = choices.warps() * kWarpSize;
    launch.shared_bytes = static_cast<int>(choices.shared_bytes(shape, way.parcel_words));
    launch.cluster_tiles = choices.splits;
    launch.tiles_per_image = std::int64_t{choices.row_blocks(shape)} * choices.splits;
    set_integers(plan, {{"split_channels", choices.split_channels(shape)},
                        {"out_channels", shape.out_channels},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"pixels", shape.conv_h() * shape.conv_w()},
                        {"bulk", choices.bulk},
                        {"compact", streams_compact(shape)},
                        {"masked", shape.pad != Padding{}},
                        {"margin_words", choices.margin_words(shape)},
                        {"tail_words", choices.tail_words(shape)},
                        {"block_rows", choices.block_rows},
                        {"row_parts", choices.row_parts},
                        {"parcel_words", way.parcel_words},
                        {"means", takes_means(shape)}});
    plan.weights().run_words = launch.tiles_per_image * way.parcel_words;
    return plan;
  }
};

}  // namespace

const Provider& conv_streamed_provider() { return the_only<ConvStreamedProvider>(); }

Candidate streamed_candidate(const Task& task, const ConvStreamedWay& priced) {
  return static_cast<const ConvStreamedProvider&>(conv_streamed_provider()).candidate_with(task, priced);
}

}  // namespace burin
