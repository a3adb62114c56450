// Convolution that leaves out the zeros of its input, all weights as data.
#include <algorithm>
#include <bit>

#include "compiler/providers/conv_zero_skip/zero_skip_tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/error.h"

namespace burin {
namespace {

// Lays the weights out as conv_zero_skip.cu reads them.
std::vector<std::uint32_t> pack_columns(const ConvLayer& layer, const ZeroSkipTiles& tiles) {
  const ConvShape& shape = layer.shape;
  const int width = tiles.tile_outputs(), outputs = shape.outputs_per_group();
  std::vector<std::uint32_t> words(static_cast<std::size_t>(tiles.panel_words(shape)));
  std::size_t row = 0;
  for (int group = 0; group < shape.groups; ++group) {
    for (int first = 0; first < outputs; first += width) {
      for (int c = 0; c < shape.channels_per_group(); ++c) {
        for (int r = 0; r < shape.kernel_h; ++r) {
          for (int s = 0; s < shape.kernel_w; ++s, row += static_cast<std::size_t>(width)) {
            for (int k = first; k < std::min(first + width, outputs); ++k) {
              words[row + static_cast<std::size_t>(k - first)] =
                  std::bit_cast<std::uint32_t>(layer.weight(group * outputs + k, c, r, s));
            }
          }
        }
      }
    }
  }
  BURIN_CHECK(row == words.size(), "{} words of {} were packed", row, words.size());
  append_words(words, layer.bias);
  return words;
}

// What neighbouring pixels read of a column are neighbours in the image.
bool may_load_quads(const ConvShape& shape, const KernelTensor& input) {
  return shape.kernel_h == 1 && shape.kernel_w == 1 && shape.stride_h == 1 && shape.stride_w == 1 &&
         shape.pad == Padding{} && !shape.epilogue.pool && shape.in_h * shape.in_w % kVectorWords == 0 &&
         is_wide(input);
}

constexpr TileChoice<ZeroSkipTiles> kZeroSkipChoices[] = {{"pixels", &ZeroSkipTiles::pixels},
                                                          {"output_quads", &ZeroSkipTiles::output_quads},
                                                          {"column_lanes", &ZeroSkipTiles::column_lanes},
                                                          {"pixel_warps", &ZeroSkipTiles::pixel_warps},
                                                          {"split_warps", &ZeroSkipTiles::split_warps},
                                                          {"runs", &ZeroSkipTiles::runs},
                                                          {"at_once", &ZeroSkipTiles::at_once},
                                                          {"exact", &ZeroSkipTiles::exact},
                                                          {"quad_loads", &ZeroSkipTiles::quad_loads}};

ZeroSkipTiles zero_skip_tiles_of(const TemplatePlan& plan) {
  ZeroSkipTiles tiles;
  read_choices(plan, kZeroSkipChoices, tiles);
  tiles.cluster_blocks = plan.launch().cluster_tiles;
  return tiles;
}

class ConvZeroSkipProvider : public TemplateProvider {
 public:
  ConvZeroSkipProvider() : TemplateProvider("conv_zero_skip") {}

  bool needs_zeros() const override { return true; }

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape& shape = task.layer->shape;
    std::vector<Candidate> candidates;
    for (const ZeroSkipTiles& tiles :
         zero_skip_tiles(shape, zeros_of(task), task.batch, may_load_quads(shape, task.reads[0]), arch_of(task),
                         static_cast<std::size_t>(options.count))) {
      candidates.push_back(candidate(task, plan_of(task, tiles)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return choice_names(kZeroSkipChoices, {"cluster"}); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(zero_skip_tiles_of(plan), task.layer->shape, zeros_of(task), task.batch, arch_of(task));
  }
  bool can(const Task& task) const override { return is_plain_convolution(task) && can_skip_zeros(task.layer->shape); }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    const ConvShape& shape = task.layer->shape;
    ZeroSkipTiles tiles = zero_skip_tiles_of(chosen);
    tiles.quad_loads = tiles.quad_loads != 0 && tiles.pixels == kVectorWords && may_load_quads(shape, task.reads[0]);
    const bool is_window =
        !shape.epilogue.pool || tiles.pixels == shape.epilogue.pool->kernel_h * shape.epilogue.pool->kernel_w;
    const bool is_even = std::has_single_bit(static_cast<unsigned>(tiles.column_lanes));
    return is_window && is_even && fits(tiles, shape, arch_of(task)) ? plan_of(task, tiles) : start(task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_columns(*task.layer, zero_skip_tiles_of(plan));
  }

 private:
  // Where nothing is known, there are none.
  static ActivationZeros zeros_of(const Task& task) { return task.zeros.value_or(ActivationZeros{}); }

  TemplatePlan plan_of(const Task& task, const ZeroSkipTiles& tiles) const {
    const ConvShape& shape = task.layer->shape;
    TemplatePlan plan = start(task);
    set_narrow(plan);
    if (tiles.quad_loads != 0) plan.input().alignment = kWideAccessBytes;
    set_convolution(plan, shape);
    set_pool(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.warps() * kWarpSize;
    launch.shared_bytes = tiles.shared_bytes();
    launch.cluster_tiles = tiles.cluster_blocks;
    launch.tiles_per_image = tiles.image_blocks(shape);
    set_integers(plan, {{"group_channels", shape.channels_per_group()},
                        {"group_outputs", shape.outputs_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"has_bias", shape.epilogue.bias}});
    write_choices(tiles, kZeroSkipChoices, plan);
    plan.weights().run_words = tiles.panel_words(shape) + (shape.epilogue.bias ? shape.out_channels : 0);
    return plan;
  }
};

}  // namespace

const Provider& conv_zero_skip_provider() { return the_only<ConvZeroSkipProvider>(); }

}  // namespace burin
