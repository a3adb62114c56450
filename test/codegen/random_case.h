// Layers drawn out of the whole convolution space, each with what it is compiled with. The same on every machine for a
// seed and an index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/synthetic_zeros.h"
#include "ir/baked_plan.h"
#include "ir/conv_layer.h"

namespace burin_test {

// Who made the plan.
enum class PlanSource {
  planner,      // all by itself, or another provider
  constrained,  // the same, with some choices taken from it
  by_hand,      // hand_plan.h: plans that no planner would choose
};

// What is drawn.
enum class CaseKind {
  usual,
  zero_skip,    // with zeros in the input and kernels that leave them out: in fp32 of conv_zero_skip, else on tensor
                // cores
  transformed,  // in fp32, layers that kernels of conv_winograd and conv_fft compute, and these
};

struct RandomCase {
  std::uint64_t seed = 0, index = 0;
  burin::ConvLayer layer;
  int planned_batch = 1, batch = 1;  // what it is tuned for, what it is run with
  std::vector<std::string> archs;    // to compile for; the last is the one that was asked for
  PlanSource source = PlanSource::planner;
  burin::Precision precision = burin::Precision::fp32;
  bool precision_was_given = false;
  burin::TensorLayout layout = burin::TensorLayout::nchw;  // planner: of input, output and residual
  bool on_warpgroups = false;                              // conv_warpgroup_rows, of nchw, nchw8, nhwc8 or nhwc4
  std::optional<burin::SyntheticZeros> zeros = {};         // of its input, which its kernel leaves out
  std::string transformed = {};                            // conv_winograd or conv_fft, whose kernel it gets
  // The share of inputs that are NaN or infinite: in one of four cases.
  double non_finite() const;
  // Whose kernel it gets; what that cannot compute is baked. In TF32 it is one that rounds to it.
  std::string provider() const;
  // What CompileOptions::layout is to be.
  std::optional<burin::TensorLayout> asked_layout() const;
  std::string constraints;  // constrained: as for --plan; the provider has found a plan that keeps them
  burin::BakedPlan plan;    // by_hand

  // "--seed 1 --only 17": draws the same case again.
  std::string arguments() const;
  // One line: shape, pattern, batch sizes, where the plan is from.
  std::string describe() const;
};

// `arch`: where it will run. Without `precision` that is drawn, too, half of them fp32; the layer is the same whichever
// it is.
RandomCase draw_case(std::uint64_t seed, std::uint64_t index, const std::string& arch,
                     std::optional<burin::Precision> precision = {}, CaseKind kind = CaseKind::usual);

std::string_view to_string(PlanSource source);
// The option of burin_random_layers: " --zero-skip"; of the usual ones none.
std::string_view option_of(CaseKind kind);

}  // namespace burin_test
