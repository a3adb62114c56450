#include "compiler/providers/conv_baked/slices/specialise_baked.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <utility>
#include <vector>

#include "compiler/providers/conv_baked/slices/entry_holes.h"
#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/providers/conv_baked/slices/slice_stages.h"
#include "compiler/providers/conv_baked/slices/slice_sums.h"
#include "compiler/specialise/passes.h"
#include "compiler/specialise/template_module.h"
#include "ir/baked_plan_activity.h"
#include "ir/baked_plan_pool.h"
#include "ir/saturate.h"
#include "templates/embedded.h"

namespace burin {
namespace {

using llvm::Function;

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
  fill_constants(*module, plan_constants(plan, shape), {{"leaky_slope", shape.epilogue.leaky_slope}});
  simplify(*module);
  return module;
}

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

// Makes one function of the kernel per slice: the template's slice piece with its holes filled.
class SliceBuilder {
 public:
  SliceBuilder(TemplateHoles& holes, const ConvLayer& layer, const BakedPlan& plan)
      : parts_(holes, layer, plan), taps_(parts_) {}

  Function* build(const SliceProgram& program) {
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

 private:
  SliceParts parts_;
  TapBuilder taps_;
};

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
  SliceBuilder builder(holes, layer, plan);
  std::vector<Function*> slices;
  for (const SliceProgram& program : lower_plan(plan, layer.shape, pattern)) slices.push_back(builder.build(program));

  fill_entry(holes, plan, slices);

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
