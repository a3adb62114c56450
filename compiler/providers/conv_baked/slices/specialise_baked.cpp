#include "compiler/providers/conv_baked/slices/specialise_baked.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <utility>
#include <vector>

#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/providers/conv_baked/slices/slice_sums.h"
#include "compiler/providers/conv_baked/slices/slice_taps.h"
#include "compiler/specialise/template_module.h"
#include "ir/baked_plan_activity.h"
#include "ir/baked_plan_pool.h"
#include "ir/saturate.h"
#include "templates/embedded.h"

namespace burin {
namespace {

using llvm::Function;
using llvm::Value;

// One position for each output, where the layer has no pool.
Pool pool_of(const ConvShape& shape) { return shape.epilogue.pool.value_or(Pool{}); }

// The values of the template's constants.
std::map<std::string, std::int64_t> plan_constants(const BakedPlan& plan, const ConvShape& shape) {
  return {
#define BURIN_CONSTANT(name, value) {#name, static_cast<std::int64_t>(value)},
#include "compiler/providers/conv_baked/conv_baked.def"
#undef BURIN_CONSTANT
  };
}

// The template has an entry for kernels without activity maps and one for those with them.
void choose_entry(llvm::Module& module, const BakedPlan& plan) {
  llvm::Function* plain = module.getFunction("burin_kernel");
  llvm::Function* with_activity = module.getFunction("burin_kernel_with_activity");
  BURIN_CHECK(plain != nullptr && with_activity != nullptr, "the template lacks an entry");
  if (plan.uses_activity()) {
    plain->eraseFromParent();
    with_activity->setName("burin_kernel");
  } else {
    with_activity->eraseFromParent();
  }
}

// A template's bitcode, made specific to one plan: constants filled in, pieces simplified, holes still open. Throws
// Error(unsupported) when there is no template of that name.
std::unique_ptr<llvm::Module> load_template(llvm::LLVMContext& context, const BakedPlan& plan, const ConvShape& shape) {
  if (embedded_bitcode(plan.template_name).empty())
    fail(ErrorKind::unsupported, "there is no template '{}'", plan.template_name);
  std::unique_ptr<llvm::Module> module = parse_embedded(context, plan.template_name);
  choose_entry(*module, plan);
  const Elementwise function = shape.epilogue.function.value_or(Elementwise{});
  fill_constants(*module, plan_constants(plan, shape), {{"alpha", function.alpha}, {"beta", function.beta}});
  simplify(*module);
  return module;
}

// About what the assembler will make of a slice.
std::int64_t code_bytes(const BakedPlan& plan, const SliceProgram& program) {
  constexpr std::int64_t kInstructionBytes = 16;
  constexpr std::int64_t kCopyInstructions = 30, kFrameInstructions = 200, kPromoteInstructions = 4;
  std::int64_t copies = 0, loads = 0, arithmetic = 0;
  for (const StageProgram& stage : program.stages) {
    copies += std::ssize(stage.copies);
    loads += std::ssize(stage.loads);
    for (const LoadedTap& load : stage.loads) arithmetic += std::ssize(load.uses);
  }
  if (plan.precision == Precision::fp16 || plan.precision == Precision::bf16) {
    arithmetic = 2 * (arithmetic + loads);  // two images, and unpacking what was loaded
  } else if (plan.promote_every > 0) {
    arithmetic += kPromoteInstructions * (arithmetic / plan.promote_every);
  }
  return kInstructionBytes * (arithmetic + loads + kCopyInstructions * copies + kFrameInstructions);
}

// Puts a value in place of the calls of one of the template's names.
void bind(Function& slice, llvm::StringRef name, llvm::Constant* value) {
  for (llvm::BasicBlock& block : slice) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call == nullptr || call->getCalledFunction() == nullptr || call->getCalledFunction()->getName() != name) {
        continue;
      }
      call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
  }
}

// One function of the kernel for each slice: the template's slice piece with its holes filled.
Function* build_slice(SliceParts& parts, TapBuilder& taps, const SliceProgram& program) {
  parts.scope = parts.source_map.add_slice(program.group, program.split);
  HoleBodies bodies;
  taps.begin_slice(program);
  build_stages(parts, taps, program, bodies);
  build_sums(parts, program, taps.running(), bodies);
  Function* slice = parts.holes.instantiate("slice", bodies);
  slice->setName(fmt::format("group{}_split{}", program.group, program.split));
  slice->removeFnAttr(llvm::Attribute::AlwaysInline);
  slice->addFnAttr(llvm::Attribute::NoInline);
  slice->addFnAttr(llvm::Attribute::NoReturn);
  slice->setSubprogram(parts.scope);
  bind(*slice, "burin_slice_group", parts.word(program.group));
  bind(*slice, "burin_slice_split", parts.word(program.split));
  const AddedRange own = added_here(parts, program);
  bind(*slice, "burin_slice_first_output", parts.word(own.first));
  bind(*slice, "burin_slice_outputs", parts.word(own.end - own.first));
  bind(*slice, "burin_slice_code", slice);
  bind(*slice, "burin_slice_code_bytes", parts.word(code_bytes(parts.plan, program)));
  llvm::IRBuilder<> builder(&*slice->getEntryBlock().begin());
  parts.call(builder, "burin_dev_note_slice", {program.group, program.split});
  return slice;
}

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

// Fills a hole that gives each slice a number: a choice by split where all groups agree.
template <typename NumberOf>
void fill_numbers(TemplateHoles& holes, llvm::StringRef hole, const BakedPlan& plan, NumberOf number_of) {
  std::vector<std::uint32_t> numbers;
  for (const Slice& slice : plan.slices) numbers.push_back(static_cast<std::uint32_t>(number_of(slice)));
  HoleBody body(holes, hole);
  holes.hole(hole)->replaceAllUsesWith(body.function());
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

// The jump to the block's own slice, and what is begun before it. `slices` are in the order of the plan's.
void fill_entry(TemplateHoles& holes, const BakedPlan& plan, const std::vector<Function*>& slices) {
  holes.hole("slices")->replaceAllUsesWith(dispatch(holes, slices));
  if (plan.staging == Staging::bulk) {  // copies of the first stages
    const int together = channels_together(plan.input_layout);
    fill_numbers(holes, "first_block", plan,
                 [&](const Slice& slice) { return slice.channels.empty() ? 0 : slice.channels.front() / together; });
    fill_numbers(holes, "blocks", plan,
                 [&](const Slice& slice) { return ceil_div(std::ssize(slice.channels), together); });
  }
  if (plan.skips) {  // whose activity is looked up
    fill_numbers(holes, "first_live_word", plan, [&](const Slice& slice) { return plan.first_live_word(slice); });
    fill_numbers(holes, "live_words", plan, [&](const Slice& slice) { return plan.live_words(slice); });
  }
}

// Inlines what was bound and clears away what only the template needed. Straight-line code of tens of thousands of
// instructions passes through here, so every pass is a linear one.
void finish(llvm::Module& module) {
  llvm::FunctionPassManager clean;
  clean.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  clean.addPass(llvm::EarlyCSEPass());
  clean.addPass(llvm::SimplifyCFGPass());
  clean.addPass(llvm::ADCEPass());
  inline_marked(module, std::move(clean));
}

// Inlining marks names with ".i" for each level; a reader wants "k17", not "k17.i.i".
void tidy_names(llvm::Module& module) {
  const auto tidy = [](llvm::Value& value) {
    const std::size_t mark = value.getName().find(".i");
    if (mark != llvm::StringRef::npos) value.setName(value.getName().take_front(mark).str());
  };
  for (Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      tidy(block);
      for (llvm::Instruction& instruction : block) tidy(instruction);
    }
  }
}

// llvm.used keeps the pieces alive until here.
void release_template(llvm::Module& module) {
  drop_used_lists(module);
  for (llvm::Function& function : module) {
    if (function.getName().starts_with("burin_piece_")) function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

}  // namespace

SpecialisedModule specialise_baked(const ConvLayer& layer, const SparsePattern& pattern, const BakedPlan& plan,
                                   const std::string& symbol) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = load_template(*result.context, plan, layer.shape);
  result.symbol = symbol;

  TemplateHoles holes(*result.module);
  SliceParts parts(holes, layer, plan);
  TapBuilder taps(parts);
  std::vector<Function*> slices;
  for (const SliceProgram& program : lower_plan(plan, layer.shape, pattern)) {
    slices.push_back(build_slice(parts, taps, program));
  }
  fill_entry(holes, plan, slices);

  const std::optional<Elementwise>& function = layer.shape.epilogue.function;
  if (function && function->user != nullptr) name_calls(*result.module, {{"apply", function->user->symbol()}});
  release_template(*result.module);
  finish(*result.module);
  tidy_names(*result.module);
  // Slices are numbered split fastest, so a group's splits are neighbours.
  finish_entry(result, plan.template_name, plan.threads, {plan.cluster.tiles, plan.cluster.splits}, plan.max_registers);
  return result;
}

std::string print_template(const BakedPlan& plan, const ConvShape& shape) {
  llvm::LLVMContext context;
  return print(*load_template(context, plan, shape));
}

}  // namespace burin
