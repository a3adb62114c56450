#include "compiler/specialise/passes.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>

#include <string>

#include "ir/error.h"
#include "templates/embedded.h"

namespace burin {
namespace {

struct Analyses {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;

  explicit Analyses(llvm::PassBuilder& builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
  }
};

}  // namespace

void simplify(llvm::Module& module) {
  llvm::PassBuilder builder;
  Analyses analyses(builder);
  builder.buildModuleSimplificationPipeline(llvm::OptimizationLevel::O2, llvm::ThinOrFullLTOPhase::None)
      .run(module, analyses.modules);
}

void run_passes(llvm::Module& module, llvm::ModulePassManager& passes) {
  llvm::PassBuilder builder;
  Analyses analyses(builder);
  passes.run(module, analyses.modules);
}

std::unique_ptr<llvm::Module> parse_embedded(llvm::LLVMContext& context, std::string_view name) {
  const std::string_view bitcode = embedded_bitcode(name);
  BURIN_CHECK(!bitcode.empty(), "no bitcode named '{}' was embedded", name);
  llvm::MemoryBufferRef buffer({bitcode.data(), bitcode.size()}, {name.data(), name.size()});
  llvm::Expected<std::unique_ptr<llvm::Module>> module = llvm::parseBitcodeFile(buffer, context);
  BURIN_CHECK(static_cast<bool>(module), "{}: {}", name, llvm::toString(module.takeError()));
  for (llvm::Function& function : **module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
  }
  return std::move(*module);
}

}  // namespace burin
