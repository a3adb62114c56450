// What must stand in a kernel's PTX, whatever its plan.
#pragma once

#include <string>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"
#include "ir/sparse_pattern.h"
#include "test/codegen/ptx_text.h"

namespace burin_test {

// A layer with its code.
struct Emitted {
  burin::ConvLayer layer;
  burin::SparsePattern pattern;
  burin::BakedPlan plan;
  std::string symbol, ptx;
  PtxText text;
};

Emitted emit(const burin::ConvLayer& layer, const burin::BakedPlan& plan, const std::string& arch = "sm_90");

// The loads of activations, which say their tap.
std::vector<PtxInstruction> activation_loads(const PtxFunction& function);

// Barriers (b; k of a cluster), waits (w), gates that are made (i) or told what to expect (e), and bulk copies (c), in
// the order of the code.
std::string events(const PtxFunction& function);

// Checks all that is true of any kernel: a multiply-add with an immediate for each nonzero, loads at constant offsets,
// nothing that is looked up, copies, barriers and waits as the plan says, a map that fits.
void check_text(const Emitted& made);

}  // namespace burin_test
