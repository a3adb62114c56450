// Convolution by Winograd's algorithm, all weights as data, which are transformed when they are packed.
#include "compiler/providers/conv_winograd/winograd_transform.h"
#include "compiler/providers/transformed_convolution.h"

namespace burin {
namespace {

class ConvWinogradProvider : public TransformedProvider {
 public:
  ConvWinogradProvider() : TransformedProvider("conv_winograd", "tile") {}

 protected:
  std::vector<int> sizes(const ConvShape& shape) const override {
    if (shape.kernel_h != kWinogradFilter || shape.kernel_w != kWinogradFilter) return {};
    return {std::begin(kWinogradTiles), std::end(kWinogradTiles)};
  }
  TileTransform transform(const ConvShape&, int tile) const override {
    // Instructions were fitted to measurements (docs/experiments.md).
    constexpr double kPatchCost = 17, kResultCost = 5.7;
    return {.side = winograd_side(tile),
            .tile_rows = tile,
            .tile_cols = tile,
            .result_pitch = tile,
            .patch_cost = kPatchCost,
            .result_cost = kResultCost};
  }
  FilterTransform filter_transform(const ConvShape&, int tile) const override { return winograd_filter(tile); }
  double error(const ConvLayer& layer, int tile) const override { return winograd_error(layer, tile); }
};

}  // namespace

const Provider& conv_winograd_provider() { return the_only<ConvWinogradProvider>(); }

}  // namespace burin
