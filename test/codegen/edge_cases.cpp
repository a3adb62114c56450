#include "test/codegen/edge_cases.h"

#include <algorithm>

#include "ir/error.h"
#include "test/ir/random_layers.h"

using burin::Activation;
using burin::ConvLayer;
using burin::ConvShape;
using burin::Padding;
using burin::Pool;
using burin::PoolKind;

namespace burin_test {
namespace {

constexpr double kDensity = 0.3;

// A shape and how its weights are drawn; turned into a layer when all is said.
struct Draft {
  ConvShape shape;
  double density = kDensity;
  float scale = 1;
  void (*edit)(ConvLayer& layer, int a, int b, int c) = nullptr;
  int a = 0, b = 0, c = 0;
};

ConvLayer make(const char* name, const Draft& draft) {
  ConvLayer layer = burin_test::make_layer(name, draft.shape, draft.density, 7);
  for (float& weight : layer.weights) weight *= draft.scale;
  if (draft.edit != nullptr) draft.edit(layer, draft.a, draft.b, draft.c);
  return layer;
}

// ---- shapes
Draft filter(int rows, int cols) {
  Draft draft;
  ConvShape& s = draft.shape;
  s.in_channels = 16;
  s.out_channels = 24;
  s.kernel_h = rows;
  s.kernel_w = cols;
  s.pad = {rows / 2, rows / 2, cols / 2, cols / 2};
  s.in_h = 9;
  s.in_w = 10;
  return draft;
}

Draft plain() { return filter(3, 3); }

Draft sized(Draft draft, int h, int w) {
  draft.shape.in_h = h;
  draft.shape.in_w = w;
  return draft;
}

Draft channels(Draft draft, int in, int out) {
  draft.shape.in_channels = in;
  draft.shape.out_channels = out;
  return draft;
}

Draft strided(Draft draft, int h, int w) {
  draft.shape.stride_h = h;
  draft.shape.stride_w = w;
  return draft;
}

// Keeps the size of the output.
Draft dilated(Draft draft, int h, int w) {
  draft.shape.dilation_h = h;
  draft.shape.dilation_w = w;
  draft.shape.pad = {h, h, w, w};
  return draft;
}

Draft padded(Draft draft, const Padding& pad) {
  draft.shape.pad = pad;
  return draft;
}

Draft grouped(Draft draft, int groups) {
  draft.shape.groups = groups;
  draft.density = std::max(draft.density, 0.6);  // few weights: keep most
  return draft;
}

// ---- epilogues
Draft with_bias(Draft draft) {
  draft.shape.epilogue.bias = true;
  return draft;
}

Draft with_residual(Draft draft) {
  draft.shape.epilogue.residual = true;
  return draft;
}

Draft with_last_residual(Draft draft) {
  draft.shape.epilogue.residual = draft.shape.epilogue.residual_last = true;
  return draft;
}

Draft activated(Draft draft, Activation activation) {
  draft.shape.epilogue.function = function_of(activation);
  return draft;
}

Draft with_slope(Draft draft, float slope) {
  draft.shape.epilogue.function->alpha = slope;
  return draft;
}

// ---- pools
Draft pooled(Draft draft, const Pool& pool) {
  draft.shape.epilogue.pool = pool;
  return draft;
}

Pool window(PoolKind kind, int kernel, int stride, const Padding& pad = {}) {
  return {.kind = kind, .kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride, .pad = pad};
}

Pool rounded_up(Pool pool) {
  pool.round_up = true;
  return pool;
}

Pool counting_padding(Pool pool) {
  pool.count_padding = true;
  return pool;
}

// The mean of the whole plane.
Draft averaged(Draft draft) {
  const ConvShape& shape = draft.shape;
  return pooled(draft, {.kind = PoolKind::average, .kernel_h = shape.conv_h(), .kernel_w = shape.conv_w()});
}

// ---- patterns
Draft with_density(Draft draft, double density) {
  draft.density = density;
  return draft;
}

Draft scaled(Draft draft, float scale) {
  draft.scale = scale;
  return draft;
}

Draft edited(Draft draft, void (*edit)(ConvLayer&, int, int, int), int a = 0, int b = 0, int c = 0) {
  draft.edit = edit;
  draft.a = a;
  draft.b = b;
  draft.c = c;
  return draft;
}

// Sets every weight for which `choose(k, c, r, s)` holds to 0.
template <typename Choose>
void clear(ConvLayer& layer, Choose choose) {
  const ConvShape& s = layer.shape;
  std::size_t i = 0;
  for (int k = 0; k < s.out_channels; ++k) {
    for (int c = 0; c < s.channels_per_group(); ++c) {
      for (int r = 0; r < s.kernel_h; ++r) {
        for (int col = 0; col < s.kernel_w; ++col, ++i) {
          if (choose(k, c, r, col)) layer.weights[i] = 0;
        }
      }
    }
  }
}

Draft with_one_nonzero(Draft draft) {
  return edited(with_density(draft, 0),
                [](ConvLayer& layer, int, int, int) { layer.weights[layer.weights.size() * 2 / 3] = -0.75F; });
}

Draft without_row(Draft draft, int k) {
  return edited(
      draft, [](ConvLayer& l, int k, int, int) { clear(l, [&](int row, int, int, int) { return row == k; }); }, k);
}

Draft only_row(Draft draft, int k) {
  return edited(
      draft, [](ConvLayer& l, int k, int, int) { clear(l, [&](int row, int, int, int) { return row != k; }); }, k);
}

Draft without_column(Draft draft, int c, int r, int s) {
  const auto edit = [](ConvLayer& l, int c, int r, int s) {
    clear(l, [&](int, int channel, int row, int col) { return channel == c && row == r && col == s; });
  };
  return edited(draft, edit, c, r, s);
}

Draft without_channel(Draft draft, int c) {
  return edited(
      draft, [](ConvLayer& l, int c, int, int) { clear(l, [&](int, int i, int, int) { return i == c; }); }, c);
}

Draft only_channel(Draft draft, int c) {
  return edited(
      draft, [](ConvLayer& l, int c, int, int) { clear(l, [&](int, int i, int, int) { return i != c; }); }, c);
}

Draft with_value(Draft draft, float value) {
  draft.density = 1;
  draft.scale = value;
  return edited(draft, [](ConvLayer& layer, int, int, int) {
    for (float& weight : layer.weights) weight = layer.weights[0];
  });
}

Draft with_negative_zeros(Draft draft) {
  return edited(draft, [](ConvLayer& layer, int, int, int) {
    for (float& weight : layer.weights) {
      if (weight == 0) weight = -0.0F;
    }
  });
}

// From the smallest normal number to where the sums of products still fit.
Draft with_wild_magnitudes(Draft draft) {
  return edited(draft, [](ConvLayer& layer, int, int, int) {
    constexpr float kFactors[] = {1e-37F, 1e-20F, 1e-5F, 1, 1e5F, 1e20F, 1e35F};
    for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] *= kFactors[i % std::size(kFactors)];
  });
}

constexpr EdgeCase kCases[] = {
#define EDGE_CASE(name, batch, layer) {#name, [] { return make(#name, layer); }, batch},
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE
};

}  // namespace

std::span<const EdgeCase> edge_cases() { return kCases; }

const EdgeCase& edge_case(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kCases), std::end(kCases), [&](const EdgeCase& c) { return name == c.name; });
  BURIN_CHECK(found != std::end(kCases), "there is no edge case '{}'", name);
  return *found;
}

}  // namespace burin_test
