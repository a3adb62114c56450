#include "compiler/specialise/template_module.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <string>

#include "compiler/specialise/passes.h"
#include "compiler/specialise/slice_program.h"
#include "ir/error.h"
#include "ir/kernel_plan_activity.h"
#include "ir/saturate.h"
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
    replace_calls(*function, llvm::ConstantFP::get(llvm::Type::getFloatTy(context), shape.epilogue.leaky_slope));
  }
  for (const llvm::Function& function : module) {
    BURIN_CHECK(!function.getName().starts_with("burin_const_"), "the template uses {}, which has no value",
                function.getName().str());
  }
}

// The template has an entry for kernels without activity maps and one for those with them.
void choose_entry(llvm::Module& module, const KernelPlan& plan) {
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

}  // namespace

std::unique_ptr<llvm::Module> load_template(llvm::LLVMContext& context, const KernelPlan& plan,
                                            const ConvShape& shape) {
  if (embedded_bitcode(plan.template_name).empty())
    fail(ErrorKind::unsupported, "there is no template '{}'", plan.template_name);
  std::unique_ptr<llvm::Module> module = parse_embedded(context, plan.template_name);
  choose_entry(*module, plan);
  fill_constants(*module, plan, shape);
  simplify(*module);
  return module;
}

}  // namespace burin
