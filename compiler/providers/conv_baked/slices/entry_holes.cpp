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
  HoleBody body(holes, "slices");
  llvm::LLVMContext& context = holes.context();
  llvm::BasicBlock* none = llvm::BasicBlock::Create(context, "none", body.function());
  llvm::SwitchInst* choice = body.CreateSwitch(body.argument(0), none, static_cast<unsigned>(slices.size()));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    llvm::BasicBlock* block = llvm::BasicBlock::Create(context, slices[i]->getName(), body.function(), none);
    choice->addCase(body.getInt32(static_cast<std::uint32_t>(i)), block);
    body.SetInsertPoint(block);
    std::vector<Value*> arguments;
    for (std::size_t a = 1; a < body.function()->arg_size(); ++a) arguments.push_back(body.argument(a));
    body.CreateCall(slices[i], arguments)->setDoesNotReturn();
    body.CreateUnreachable();
  }
  body.SetInsertPoint(none);
  return body.finish();
}

void fill_hole(TemplateHoles& holes, llvm::StringRef name, Function* body) {
  Function* hole = holes.module().getFunction(("burin_hole_" + name).str());
  BURIN_CHECK(hole != nullptr, "the template has no hole '{}'", name.str());
  hole->replaceAllUsesWith(body);
}

// Fills a hole that gives each slice a number: a choice by split where all groups agree.
void fill_numbers(TemplateHoles& holes, llvm::StringRef hole, const BakedPlan& plan,
                  const std::vector<std::uint32_t>& numbers) {
  HoleBody body(holes, hole);
  fill_hole(holes, hole, body.function());
  const auto splits = static_cast<std::size_t>(plan.splits);
  bool by_split = true;
  for (std::size_t i = splits; i < numbers.size(); ++i) by_split &= numbers[i] == numbers[i - splits];
  const std::size_t cases = by_split ? splits : numbers.size();
  Value* chooser = body.argument(0);
  if (by_split) chooser = body.CreateURem(chooser, body.getInt32(static_cast<std::uint32_t>(splits)));
  constexpr std::size_t kMostSelects = 16;
  if (cases > kMostSelects) {
    llvm::LLVMContext& context = holes.context();
    const auto block_of = [&](std::uint32_t number) {
      llvm::BasicBlock* block = llvm::BasicBlock::Create(context, "", body.function());
      llvm::IRBuilder<>(block).CreateRet(body.getInt32(number));
      return block;
    };
    llvm::SwitchInst* choice = body.CreateSwitch(chooser, block_of(numbers.front()), static_cast<unsigned>(cases));
    for (std::size_t i = 1; i < cases; ++i) {
      choice->addCase(body.getInt32(static_cast<std::uint32_t>(i)), block_of(numbers[i]));
    }
    return;
  }
  Value* number = body.getInt32(numbers.front());
  for (std::size_t i = 1; i < cases; ++i) {
    if (numbers[i] == numbers[i - 1]) continue;
    Value* reached = body.CreateICmpUGE(chooser, body.getInt32(static_cast<std::uint32_t>(i)));
    number = body.CreateSelect(reached, body.getInt32(numbers[i]), number);
  }
  body.CreateRet(number);
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
  fill_numbers(holes, "first_block", plan, first);
  fill_numbers(holes, "blocks", plan, count);
}

// Whose activity the entry looks up.
void fill_activity_holes(TemplateHoles& holes, const BakedPlan& plan) {
  if (!plan.skips) return;
  std::vector<std::uint32_t> first, count;
  for (const Slice& slice : plan.slices) {
    first.push_back(static_cast<std::uint32_t>(plan.first_live_word(slice)));
    count.push_back(static_cast<std::uint32_t>(plan.live_words(slice)));
  }
  fill_numbers(holes, "first_live_word", plan, first);
  fill_numbers(holes, "live_words", plan, count);
}

}  // namespace

void fill_entry(TemplateHoles& holes, const BakedPlan& plan, const std::vector<Function*>& slices) {
  fill_hole(holes, "slices", dispatch(holes, slices));
  fill_channel_holes(holes, plan);
  fill_activity_holes(holes, plan);
}

}  // namespace burin
