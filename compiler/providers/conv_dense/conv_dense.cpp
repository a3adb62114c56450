// Implicit matrix product, dense: all weights are streamed as data.
#include <algorithm>
#include <bit>

#include "compiler/providers/conv_dense/tiles.h"
#include "compiler/providers/template_provider.h"
#include "compiler/providers/tile_choices.h"
#include "ir/error.h"

namespace burin {
namespace {

// Lays the weights out as conv_dense.cu reads them.
std::vector<std::uint32_t> pack_panels(const ConvLayer& layer, const ConvDenseTiles& tiles) {
  const ConvShape& shape = layer.shape;
  const std::int64_t panels = shape.groups * tiles.output_tiles(shape) * tiles.chunks(shape);
  const auto width = static_cast<std::size_t>(tiles.tile_outputs());
  const auto depth = static_cast<std::size_t>(tiles.chunk_depth());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(panels) * depth * width);
  std::size_t row = 0;
  const auto add_chunk = [&](int first_output, int outputs, int channel, int r, int s) {
    for (int c = 0; c < tiles.chunk_channels; ++c) {
      for (int col = 0; col < tiles.chunk_cols; ++col, ++row) {
        if (channel + c >= shape.channels_per_group() || s + col >= shape.kernel_w) continue;
        for (int k = 0; k < outputs; ++k) {
          const float weight = layer.weight(first_output + k, channel + c, r, s + col);
          words[row * width + static_cast<std::size_t>(k)] = std::bit_cast<std::uint32_t>(weight);
        }
      }
    }
    row += depth - static_cast<std::size_t>(tiles.chunk_channels * tiles.chunk_cols);
  };
  for (int group = 0; group < shape.groups; ++group) {
    for (int tile = 0; tile < shape.outputs_per_group(); tile += tiles.tile_outputs()) {
      const int outputs = std::min(tiles.tile_outputs(), shape.outputs_per_group() - tile);
      const int first = group * shape.outputs_per_group() + tile;
      for (int channel = 0; channel < shape.channels_per_group(); channel += tiles.chunk_channels) {
        for (int r = 0; r < shape.kernel_h; ++r) {
          for (int s = 0; s < shape.kernel_w; s += tiles.chunk_cols) add_chunk(first, outputs, channel, r, s);
        }
      }
    }
  }
  BURIN_CHECK(row * width == words.size(), "{} rows of {} were packed as {} words", row, width, words.size());
  append_words(words, layer.bias);
  return words;
}

// Four pixels of a tile lie next to each other in the input where they do in the output.
int most_vector(const ConvShape& shape, const KernelTensor& input) {
  const bool same = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.stride_h == 1 && shape.stride_w == 1 &&
                    shape.pad == Padding{} && !shape.epilogue.pool;
  return same && shape.in_h * shape.in_w % kVectorWords == 0 && is_wide(input) ? kVectorWords : 1;
}

// The choices that are constants of the template; the images of a block are the launch's.
constexpr TileChoice<ConvDenseTiles> kChoices[] = {{"output_threads", &ConvDenseTiles::output_threads},
                                                   {"output_quads", &ConvDenseTiles::output_quads},
                                                   {"pixel_threads", &ConvDenseTiles::pixel_threads},
                                                   {"pixel_quads", &ConvDenseTiles::pixel_quads},
                                                   {"splits", &ConvDenseTiles::splits},
                                                   {"chunk_channels", &ConvDenseTiles::chunk_channels},
                                                   {"chunk_cols", &ConvDenseTiles::chunk_cols},
                                                   {"buffers", &ConvDenseTiles::buffers},
                                                   {"vector", &ConvDenseTiles::vector},
                                                   {"window_rows", &ConvDenseTiles::window_rows},
                                                   {"window_cols", &ConvDenseTiles::window_cols}};

// The tiles that a plan's constants describe.
ConvDenseTiles tiles_of(const TemplatePlan& plan) {
  ConvDenseTiles tiles;
  read_choices(plan, kChoices, tiles);
  tiles.block_images = plan.launch().tile_images;
  return tiles;
}

class ConvDenseProvider : public TemplateProvider {
 public:
  ConvDenseProvider() : TemplateProvider("conv_dense") {}

  bool is_dense() const override { return true; }

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape& shape = task.layer->shape;
    const bool depthwise = shape.groups > 1 && shape.channels_per_group() == 1;
    if (depthwise) return {};  // most of each tile would be empty
    const ArchSpec& arch = arch_of(task);
    std::vector<Candidate> candidates;
    for (const ConvDenseTiles& tiles : choose_tiles(shape, task.batch, most_vector(shape, task.reads[0]), arch,
                                                    static_cast<std::size_t>(options.count))) {
      candidates.push_back(candidate(task, plan_of(task, tiles)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override {
    return {"output_threads", "output_quads", "pixel_threads", "pixel_quads", "splits",      "chunk_channels",
            "chunk_cols",     "buffers",      "images",        "vector",      "window_rows", "window_cols"};
  }
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    return predict(tiles_of(plan), task.layer->shape, task.batch, arch_of(task));
  }
  bool can(const Task& task) const override {
    return is_plain_convolution(task) && can_have_windows(task.layer->shape);
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    ConvDenseTiles tiles = tiles_of(chosen);
    tiles.vector = std::min(tiles.vector, most_vector(task.layer->shape, task.reads[0]));
    return fits(tiles, task.layer->shape, arch_of(task)) ? plan_of(task, tiles) : start(task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const override {
    return pack_panels(*task.layer, tiles_of(plan));
  }

 private:
  TemplatePlan plan_of(const Task& task, const ConvDenseTiles& tiles) const {
    const ConvShape& shape = task.layer->shape;
    TemplatePlan plan = start(task);
    set_narrow(plan);
    plan.input().alignment = tiles.vector * kWordBytes;
    set_convolution(plan, shape);
    set_pool(plan, shape);
    LaunchGeometry& launch = plan.launch();
    launch.threads = tiles.threads();
    launch.shared_bytes = tiles.shared_bytes();
    launch.tile_images = tiles.block_images;
    launch.tiles_per_image = tiles.image_blocks(shape);
    set_integers(plan, {{"group_channels", shape.channels_per_group()},
                        {"group_outputs", shape.outputs_per_group()},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"padded", shape.pad != Padding{}},
                        {"chunk_depth", tiles.chunk_depth()},
                        {"has_bias", shape.epilogue.bias}});
    write_choices(tiles, kChoices, plan);
    const std::int64_t panels = shape.groups * tiles.output_tiles(shape) * tiles.chunks(shape);
    plan.weights().run_words =
        panels * tiles.chunk_depth() * tiles.tile_outputs() + (shape.epilogue.bias ? shape.out_channels : 0);
    return plan;
  }
};

}  // namespace

const Provider& conv_dense_provider() { return the_only<ConvDenseProvider>(); }

}  // namespace burin
