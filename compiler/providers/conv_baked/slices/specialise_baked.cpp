#include "compiler/providers/conv_baked/slices/specialise_baked.h"

#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <utility>
#include <vector>

#include "compiler/kernel_cluster.h"
#include "compiler/providers/conv_baked/slices/baked_template.h"
#include "compiler/providers/conv_baked/slices/entry_holes.h"
#include "compiler/providers/conv_baked/slices/slice_builder.h"
#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/providers/conv_baked/slices/template_holes.h"
#include "compiler/specialise/entry.h"
#include "compiler/specialise/passes.h"
#include "ir/error.h"

namespace burin {
namespace {

using llvm::Function;

// Inlines what was bound and clears away what only the template needed. Straight-line code of tens of thousands of
// instructions passes through here, so every pass is a linear one.
void finish(llvm::Module& module) {
  llvm::FunctionPassManager clean;
  clean.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  clean.addPass(llvm::EarlyCSEPass());
  clean.addPass(llvm::SimplifyCFGPass());
  clean.addPass(llvm::ADCEPass());
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(clean)));
  run_passes(module, passes);
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
  for (const char* name : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* used = module.getGlobalVariable(name)) used->eraseFromParent();
  }
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
  set_entry(*result.module, result.symbol, plan.threads, plan.max_registers);
  // Slices are numbered split fastest, so a group's splits are neighbours.
  if (plan.cluster.blocks() > 1) {
    set_cluster(*result.module->getFunction(result.symbol), {plan.cluster.tiles, plan.cluster.splits});
  }
  result.module->setModuleIdentifier(result.symbol);
  result.module->setSourceFileName(plan.template_name);
  check_module(*result.module, ErrorKind::internal, "the specialised module");
  return result;
}

std::string print_template(const BakedPlan& plan, const ConvShape& shape) {
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream(text) << *load_template(context, plan, shape);
  return text;
}

}  // namespace burin
