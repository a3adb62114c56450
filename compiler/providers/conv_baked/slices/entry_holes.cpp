#include "compiler/providers/conv_baked/slices/entry_holes.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {

using llvm::Function;
using llvm::Value;

namespace {

// The entry jumps to its slice; slices end the thread themselves, so nothing is saved across the call.
Function* dispatch(TemplateHoles& holes, const std::vector<Function*>& slices) {
  Function* body = holes.open("slices");
  llvm::LLVMContext& context = holes.context();
  llvm::IRBuilder<> builder(&body->front());
  llvm::BasicBlock* none = llvm::BasicBlock::Create(context, "none", body);
  llvm::SwitchInst* choice = builder.CreateSwitch(body->getArg(0), none, static_cast<unsigned>(slices.size()));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    llvm::BasicBlock* block = llvm::BasicBlock::Create(context, slices[i]->getName(), body, none);
    choice->addCase(builder.getInt32(static_cast<std::uint32_t>(i)), block);
    builder.SetInsertPoint(block);
    std::vector<Value*> arguments;
    for (std::size_t a = 1; a < body->arg_size(); ++a) arguments.push_back(body->getArg(a));
    builder.CreateCall(slices[i], arguments)->setDoesNotReturn();
    builder.CreateUnreachable();
  }
  builder.SetInsertPoint(none);
  builder.CreateRetVoid();
  return body;
}

// The body of a hole that gives each slice a number: a choice by split where all groups agree.
Function* slice_numbers(TemplateHoles& holes, llvm::StringRef hole, const BakedPlan& plan,
                        const std::vector<std::uint32_t>& numbers) {
  Function* body = holes.open(hole);
  llvm::IRBuilder<> builder(&body->front());
  const auto splits = static_cast<std::size_t>(plan.splits);
  bool by_split = true;
  for (std::size_t i = splits; i < numbers.size(); ++i) by_split &= numbers[i] == numbers[i - splits];
  const std::size_t cases = by_split ? splits : numbers.size();
  Value* chooser = body->getArg(0);
  if (by_split) chooser = builder.CreateURem(chooser, builder.getInt32(static_cast<std::uint32_t>(splits)));
  constexpr std::size_t kMostSelects = 16;
  if (cases > kMostSelects) {
    llvm::LLVMContext& context = holes.context();
    const auto block_of = [&](std::uint32_t number) {
      llvm::BasicBlock* block = llvm::BasicBlock::Create(context, "", body);
      llvm::IRBuilder<>(block).CreateRet(builder.getInt32(number));
      return block;
    };
    llvm::SwitchInst* choice = builder.CreateSwitch(chooser, block_of(numbers.front()), static_cast<unsigned>(cases));
    for (std::size_t i = 1; i < cases; ++i) {
      choice->addCase(builder.getInt32(static_cast<std::uint32_t>(i)), block_of(numbers[i]));
    }
    return body;
  }
  Value* number = builder.getInt32(numbers.front());
  for (std::size_t i = 1; i < cases; ++i) {
    if (numbers[i] == numbers[i - 1]) continue;
    Value* reached = builder.CreateICmpUGE(chooser, builder.getInt32(static_cast<std::uint32_t>(i)));
    number = builder.CreateSelect(reached, builder.getInt32(numbers[i]), number);
  }
  builder.CreateRet(number);
  return body;
}

void fill_hole(TemplateHoles& holes, llvm::StringRef name, Function* body) {
  Function* hole = holes.module().getFunction(("burin_hole_" + name).str());
  BURIN_CHECK(hole != nullptr, "the template has no hole '{}'", name.str());
  hole->replaceAllUsesWith(body);
}

// Bulk copies of the first stages begin before the slice's own code.
void fill_channel_holes(TemplateHoles& holes, const BakedPlan& plan) {
  if (plan.staging != Staging::bulk) return;
  const int together = channels_together(plan.input_layout);
  std::vector<std::uint32_t> first, count;
  for (const Slice& slice : plan.slices) {
    first.push_back(slice.channels.empty() ? 0 : static_cast<std::uint32_t>(slice.channels.front() / together));
    count.push_back(static_cast<std::uint32_t>(ceil_div(static_cast<std::int64_t>(slice.channels.size()), together)));
  }
  fill_hole(holes, "first_block", slice_numbers(holes, "first_block", plan, first));
  fill_hole(holes, "blocks", slice_numbers(holes, "blocks", plan, count));
}

// Whose activity the entry looks up.
void fill_activity_holes(TemplateHoles& holes, const BakedPlan& plan) {
  if (!plan.skips) return;
  std::vector<std::uint32_t> first, count;
  for (const Slice& slice : plan.slices) {
    first.push_back(static_cast<std::uint32_t>(plan.first_live_word(slice)));
    count.push_back(static_cast<std::uint32_t>(plan.live_words(slice)));
  }
  fill_hole(holes, "first_live_word", slice_numbers(holes, "first_live_word", plan, first));
  fill_hole(holes, "live_words", slice_numbers(holes, "live_words", plan, count));
}

}  // namespace

void fill_entry(TemplateHoles& holes, const BakedPlan& plan, const std::vector<Function*>& slices) {
  fill_hole(holes, "slices", dispatch(holes, slices));
  fill_channel_holes(holes, plan);
  fill_activity_holes(holes, plan);
}

}  // namespace burin
