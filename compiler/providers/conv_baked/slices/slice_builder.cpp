#include "compiler/providers/conv_baked/slices/slice_builder.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>

#include "compiler/providers/conv_baked/slices/slice_stages.h"
#include "compiler/providers/conv_baked/slices/slice_sums.h"

namespace burin {

using llvm::Function;

namespace {

// About what the assembler will make of a slice.
std::int64_t code_bytes(const BakedPlan& plan, const SliceProgram& program) {
  constexpr std::int64_t kInstructionBytes = 16;
  constexpr std::int64_t kCopyInstructions = 30, kFrameInstructions = 200, kPromoteInstructions = 4;
  std::int64_t copies = 0;
  for (const StageProgram& stage : program.stages) copies += static_cast<std::int64_t>(stage.copies.size());
  std::int64_t arithmetic = program.multiply_adds();
  if (plan.precision == Precision::fp16 || plan.precision == Precision::bf16) {
    arithmetic = 2 * (arithmetic + program.shared_loads());  // two images, and unpacking what was loaded
  } else if (plan.promote_every > 0) {
    arithmetic += kPromoteInstructions * (arithmetic / plan.promote_every);
  }
  return kInstructionBytes * (arithmetic + program.shared_loads() + kCopyInstructions * copies + kFrameInstructions);
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

}  // namespace

Function* SliceBuilder::build(const SliceProgram& program) {
  parts_.scope = parts_.source_map.add_slice(program.group, program.split);
  HoleBodies bodies;
  taps_.begin_slice(program);
  if (parts_.plan.staging == Staging::bulk) {
    build_bulk_stages(parts_, taps_, program, bodies);
  } else if (parts_.plan.staging == Staging::shared) {
    build_stages(parts_, taps_, program, bodies);
  } else {
    const StageProgram nothing;
    const StageProgram& all = program.stages.empty() ? nothing : program.stages.front();
    bodies.emplace_back("direct", taps_.build("direct", all));
  }
  build_sums(parts_, program, taps_.running(), bodies);
  Function* slice = parts_.holes.instantiate("slice", bodies);
  slice->setName(fmt::format("group{}_split{}", program.group, program.split));
  slice->removeFnAttr(llvm::Attribute::AlwaysInline);
  slice->addFnAttr(llvm::Attribute::NoInline);
  slice->addFnAttr(llvm::Attribute::NoReturn);
  slice->setSubprogram(parts_.scope);
  bind(*slice, "burin_slice_group", parts_.word(program.group));
  bind(*slice, "burin_slice_split", parts_.word(program.split));
  const AddedRange own = added_here(parts_, program);
  bind(*slice, "burin_slice_first_output", parts_.word(own.first));
  bind(*slice, "burin_slice_outputs", parts_.word(own.end - own.first));
  bind(*slice, "burin_slice_code", slice);
  bind(*slice, "burin_slice_code_bytes", parts_.word(code_bytes(parts_.plan, program)));
  llvm::IRBuilder<> builder(&*slice->getEntryBlock().begin());
  parts_.call(builder, "burin_dev_note_slice", {program.group, program.split});
  return slice;
}

}  // namespace burin
