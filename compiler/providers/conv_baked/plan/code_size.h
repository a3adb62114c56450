// The machine code of a baked kernel before there is any, by a model. It was fitted to 138 kernels that were assembled
// for sm_90, of LeNet-5, SqueezeNet and GoogLeNet in FP32, FP16 and fp16x2: half of them are within 4 %, all but 5
// within 15 % (docs/pipeline.md).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/providers/conv_baked/plan/work.h"

namespace burin {

// `work`: slice_work() of the plan.
std::int64_t code_bytes(const BakedPlan& plan, const ConvShape& shape, const std::vector<SliceWork>& work);

}  // namespace burin
