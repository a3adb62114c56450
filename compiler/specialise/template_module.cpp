#include "compiler/specialise/template_module.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <map>
#include <string>

#include "ir/error.h"
#include "templates/embedded.h"

namespace burin {
namespace {

// The values of the functions burin_const_NAME().
std::map<std::string, std::int64_t> plan_constants(const KernelPlan& plan, const ConvShape& shape) {
  return {
#define BURIN_CONSTANT(name, value) {"burin_const_" #name, static_cast<std::int64_t>(value)},
#include "templates/conv_baked.def"
#undef BURIN_CONSTANT
  };
}

void replace_calls(llvm::Function& function, llvm::Constant* value) {
  while (!function.use_empty()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(*function.user_begin());
    BURIN_CHECK(call != nullptr, "{} is used other than by a call", function.getName().str());
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  function.eraseFromParent();
}

void fill_constants(llvm::Module& module, const KernelPlan& plan, const ConvShape& shape) {
  llvm::LLVMContext& context = module.getContext();
  for (const auto& [name, value] : plan_constants(plan, shape)) {
    if (llvm::Function* function = module.getFunction(name)) {
      replace_calls(*function, llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value));
    }
  }
  if (llvm::Function* function = module.getFunction("burin_leaky_slope")) {
    replace_calls(*function,
                  llvm::ConstantFP::get(llvm::Type::getFloatTy(context), shape.epilogue.leaky_slope));
  }
  for (const llvm::Function& function : module) {
    BURIN_CHECK(!function.getName().starts_with("burin_const_"), "the template uses {}, which has no value",
                function.getName().str());
  }
}

// The pieces are small; this is the usual -O2 clean-up, run once before they are cloned many times.
void simplify(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.MergeFunctions = false;
  llvm::PassBuilder builder(nullptr, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildModuleSimplificationPipeline(llvm::OptimizationLevel::O2, llvm::ThinOrFullLTOPhase::None)
      .run(module, modules);
}

// Attributes that name one GPU would overrule the target that is chosen at the end.
void drop_target_attributes(llvm::Module& module) {
  for (llvm::Function& function : module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
  }
}

}  // namespace

std::unique_ptr<llvm::Module> load_template(llvm::LLVMContext& context, const KernelPlan& plan,
                                            const ConvShape& shape) {
  const std::string_view bitcode = embedded_bitcode(plan.template_name);
  if (bitcode.empty()) fail(ErrorKind::unsupported, "there is no template '{}'", plan.template_name);
  auto buffer = llvm::MemoryBufferRef({bitcode.data(), bitcode.size()}, plan.template_name);
  llvm::Expected<std::unique_ptr<llvm::Module>> module = llvm::parseBitcodeFile(buffer, context);
  BURIN_CHECK(static_cast<bool>(module), "template {}: {}", plan.template_name, llvm::toString(module.takeError()));
  fill_constants(**module, plan, shape);
  drop_target_attributes(**module);
  simplify(**module);
  return std::move(*module);
}

}  // namespace burin
