// What the builders of a slice's parts have in common: the template, the plan, and short names for constants.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/providers/conv_baked/slices/template_holes.h"
#include "compiler/specialise/source_map.h"

namespace burin {

// The thread's array of sums in the template has so many.
inline constexpr int kSumSlots = 3 * kMaxGroupChannels;

// What one accumulator holds with Precision::fp16x2, at the end of a slice's multiply-adds.
struct RunningSum {
  int terms = 0;          // in the FP16 sums
  bool promoted = false;  // whether the FP32 sums hold earlier terms
};

struct SliceParts {
  SliceParts(TemplateHoles& holes, const ConvLayer& layer, const BakedPlan& plan)
      : holes(holes), layer(layer), plan(plan), source_map(holes.module(), layer.shape) {}

  TemplateHoles& holes;
  const ConvLayer& layer;
  const BakedPlan& plan;
  SourceMapBuilder source_map;
  llvm::DISubprogram* scope = nullptr;  // of the slice that is being built
  llvm::Type *f32 = llvm::Type::getFloatTy(holes.context()), *i32 = llvm::Type::getInt32Ty(holes.context()),
             *i64 = llvm::Type::getInt64Ty(holes.context());

  const std::vector<int>& group(const SliceProgram& program) const { return plan.groups[program.group]; }
  const Slice& slice(const SliceProgram& program) const {
    return plan.slices[static_cast<std::size_t>(program.group) * plan.splits + program.split];
  }
  llvm::Constant* word(std::int64_t value) const { return llvm::ConstantInt::get(i32, value); }
  llvm::Constant* wide(std::int64_t value) const { return llvm::ConstantInt::get(i64, value); }

  // Where the thread's array of sums, which is the first argument of a hole's body, has accumulator j: the FP32 sum of
  // each of the images of a word, and with Precision::fp16x2 a word of two FP16 sums.
  int sum_slot(int j, int image) const { return j * plan.word_images() + image; }
  int running_slot(int j) const { return 2 * kMaxGroupChannels + j; }
  bool is_running(int slot) const { return slot >= 2 * kMaxGroupChannels; }
  llvm::Value* sum_address(HoleBody& body, int slot) const {
    return body.CreateConstInBoundsGEP1_32(f32, body.argument(0), slot);
  }
  llvm::Value* load_sum(HoleBody& body, int slot) const {
    return body.CreateLoad(is_running(slot) ? i32 : f32, sum_address(body, slot));
  }

  // A primitive that takes numbers, and gives nothing.
  void call(llvm::IRBuilder<>& builder, llvm::StringRef primitive, std::initializer_list<int> values) {
    const std::vector<llvm::Type*> types(values.size(), i32);
    std::vector<llvm::Value*> arguments;
    for (const int value : values) arguments.push_back(word(value));
    builder.CreateCall(
        holes.module().getOrInsertFunction(primitive, llvm::FunctionType::get(builder.getVoidTy(), types, false)),
        arguments);
  }
};

}  // namespace burin
