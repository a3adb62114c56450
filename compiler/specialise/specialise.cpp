#include "compiler/specialise/specialise.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <utility>
#include <vector>

#include "compiler/specialise/entry.h"
#include "compiler/specialise/passes.h"
#include "compiler/specialise/slice_builder.h"
#include "compiler/specialise/slice_program.h"
#include "compiler/specialise/template_holes.h"
#include "compiler/specialise/template_module.h"
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

void check_module(const llvm::Module& module, ErrorKind kind, const std::string& what) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream)) fail(kind, "{} is not valid LLVM IR: {}", what, stream.str());
}

}  // namespace

SpecialisedModule specialise(const ConvLayer& layer, const SparsePattern& pattern, const BakedPlan& plan,
                             const std::string& symbol) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = load_template(*result.context, plan, layer.shape);
  result.symbol = symbol;

  TemplateHoles holes(*result.module);
  SliceBuilder builder(holes, layer, plan);
  std::vector<Function*> slices;
  for (const SliceProgram& program : lower_plan(plan, layer.shape, pattern)) slices.push_back(builder.build(program));

  build_entry(holes, plan, slices);

  release_template(*result.module);
  finish(*result.module);
  tidy_names(*result.module);
  set_entry(*result.module, result.symbol, plan);
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

std::string print(const SpecialisedModule& specialised) {
  std::string text;
  llvm::raw_string_ostream(text) << *specialised.module;
  return text;
}

SpecialisedModule parse_specialised(std::string_view text, const std::string& symbol, const std::string& file) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.symbol = symbol;
  llvm::SMDiagnostic fault;
  result.module = llvm::parseAssemblyString({text.data(), text.size()}, fault, *result.context);
  if (result.module == nullptr) {
    fail(ErrorKind::bad_input, "{}, line {}: {}", file, fault.getLineNo(), fault.getMessage().str());
  }
  check_module(*result.module, ErrorKind::bad_input, file);
  const Function* kernel = result.module->getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration()) {
    fail(ErrorKind::bad_input, "{}: there is no function '{}' in it; the entry's name says which plan it was made for",
         file, symbol);
  }
  return result;
}

std::string to_bitcode(const SpecialisedModule& specialised) {
  std::unique_ptr<llvm::Module> stripped = llvm::CloneModule(*specialised.module);
  for (Function& function : *stripped) {
    for (llvm::Argument& argument : function.args()) argument.setName("");
    for (llvm::BasicBlock& block : function) {
      block.setName("");
      for (llvm::Instruction& instruction : block) instruction.setName("");
    }
  }
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::WriteBitcodeToFile(*stripped, stream);
  return bytes;
}

}  // namespace burin
