// Convolution by fast Fourier transforms of tiles, all weights as data, which are transformed when they are packed.
#include "compiler/providers/conv_fft/fft_transform.h"
#include "compiler/providers/transformed_convolution.h"

namespace burin {
namespace {

// Instructions of a word of a patch: those of the transforms, a load, and two stores to shared memory with a load
// between them. Waiting takes as large a share as with Winograd's algorithm, of whose 17 nine are instructions. None of
// this was measured.
double patch_cost(int side) {
  constexpr double kWaiting = 17.0 / 9, kAccesses = 4;
  const double transforms = side == 8 ? 6.3 : 9.1;
  return kWaiting * (transforms + kAccesses);
}

class ConvFftProvider : public TransformedProvider {
 public:
  ConvFftProvider() : TransformedProvider("conv_fft", "side") {}

 protected:
  std::vector<int> sizes(const ConvShape& shape) const override { return fft_sides(shape); }
  TileTransform transform(const ConvShape& shape, int side) const override {
    constexpr double kFinish = 5.7;     // of a result, as with Winograd's algorithm
    constexpr double kBackOfWord = 11;  // of a word of the sums: the transforms back
    const int rows = side - shape.kernel_h + 1, cols = side - shape.kernel_w + 1;
    return {.side = side,
            .tile_rows = rows,
            .tile_cols = cols,
            .point_words = 2,
            .result_pitch = static_cast<int>(round_up(cols, kVectorWords)),
            .by_lines = true,
            .patch_cost = patch_cost(side),
            .result_cost = kFinish + kBackOfWord * side * side / (rows * cols)};
  }
  FilterTransform filter_transform(const ConvShape& shape, int side) const override {
    return fft_filter(shape.kernel_h, shape.kernel_w, side);
  }
  double error(const ConvLayer& layer, int side) const override { return fft_error(layer, side); }
};

}  // namespace

const Provider& conv_fft_provider() { return the_only<ConvFftProvider>(); }

}  // namespace burin
