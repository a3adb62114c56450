// One function of the kernel per slice: the template's slice piece with its holes filled.
#pragma once

#include "compiler/providers/conv_baked/slices/slice_parts.h"
#include "compiler/providers/conv_baked/slices/slice_taps.h"

namespace burin {

class SliceBuilder {
 public:
  SliceBuilder(TemplateHoles& holes, const ConvLayer& layer, const BakedPlan& plan)
      : parts_(holes, layer, plan), taps_(parts_) {}

  llvm::Function* build(const SliceProgram& program);

 private:
  SliceParts parts_;
  TapBuilder taps_;
};

}  // namespace burin
