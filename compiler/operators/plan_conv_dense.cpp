#include "compiler/operators/plan_conv_dense.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/operators/plan_parts.h"
#include "ir/error.h"

namespace burin {
namespace {

BufferPlace place_of(const OperatorRequest& request, std::size_t input) {
  return request.inputs.empty() ? BufferPlace{} : request.inputs[input];
}

// As templates/operators/conv_dense.cu reads them.
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
  for (const float bias : layer.bias) words.push_back(std::bit_cast<std::uint32_t>(bias));
  return words;
}

}  // namespace

// Four pixels lie next to each other in the input where they do in the output.
int conv_dense_vector(const ConvShape& shape, const OperatorRequest& request) {
  const bool same = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.stride_h == 1 && shape.stride_w == 1 &&
                    shape.pad == Padding{};
  const int aligned = tensor_at(place_of(request, 0), shape.input_elements()).aligned;
  return same && shape.in_h * shape.in_w % kVectorWords == 0 && aligned == kVectorWords ? kVectorWords : 1;
}

std::optional<PlannedOperator> plan_conv_dense(const ConvLayer& layer, const OperatorRequest& request,
                                               double worthwhile_us) {
  const ConvShape& shape = layer.shape;
  const ArchSpec& arch = arch_by_name(request.arch);
  if (least_conv_dense_us(shape, request.batch, arch) >= worthwhile_us) return std::nullopt;
  const ConvDenseTiles tiles = choose_tiles(shape, request.batch, conv_dense_vector(shape, request), arch, 1).front();
  if (predict(tiles, shape, request.batch, arch) >= worthwhile_us) return std::nullopt;
  return plan_conv_dense(layer, request, tiles);
}

PlannedOperator plan_conv_dense(const ConvLayer& layer, const OperatorRequest& request, const ConvDenseTiles& tiles) {
  const ConvShape& shape = layer.shape;
  PlannedOperator result = start_convolution("conv_dense", shape, request);
  OperatorPlan& plan = result.plan;
  plan.input.aligned = tiles.vector;
  plan.threads = tiles.threads();
  plan.shared_bytes = tiles.shared_bytes();
  plan.block_images = tiles.block_images;
  plan.group_blocks = static_cast<int>(tiles.group_blocks(shape));
  const bool padded = shape.pad != Padding{};
  const std::pair<const char*, int> constants[] = {
      {"group_channels", shape.channels_per_group()},
      {"group_outputs", shape.outputs_per_group()},
      {"out_rows", shape.out_h()},
      {"padded", padded},
      {"chunk_channels", tiles.chunk_channels},
      {"chunk_cols", tiles.chunk_cols},
      {"chunk_depth", tiles.chunk_depth()},
      {"buffers", tiles.buffers},
      {"splits", tiles.splits},
      {"output_threads", tiles.output_threads},
      {"output_quads", tiles.output_quads},
      {"pixel_threads", tiles.pixel_threads},
      {"pixel_quads", tiles.pixel_quads},
      {"vector", tiles.vector},
      {"has_bias", shape.epilogue.bias},
  };
  for (const auto& [name, value] : constants) plan.integers[name] = value;
  result.predicted_us = predict(tiles, shape, request.batch, arch_by_name(request.arch));
  result.weights = pack_panels(layer, tiles);
  plan.weight_words = static_cast<std::int64_t>(result.weights.size());
  return result;
}

}  // namespace burin
