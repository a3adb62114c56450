#include "compiler/specialise/constants.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include "ir/error.h"

namespace burin {
namespace {

constexpr llvm::StringRef kInteger = "burin_const_", kReal = "burin_real_";

void replace_calls(llvm::Function& function, llvm::Constant* value) {
  while (!function.use_empty()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(*function.user_begin());
    BURIN_CHECK(call != nullptr, "{} is used other than by a call", function.getName().str());
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  function.eraseFromParent();
}

template <typename Number>
const Number& value_of(const std::map<std::string, Number>& values, llvm::StringRef name) {
  const auto found = values.find(name.str());
  BURIN_CHECK(found != values.end(), "the template uses the constant {}, which has no value", name.str());
  return found->second;
}

}  // namespace

void fill_constants(llvm::Module& module, const std::map<std::string, std::int64_t>& integers,
                    const std::map<std::string, float>& reals) {
  llvm::LLVMContext& context = module.getContext();
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    llvm::StringRef name = function.getName();
    if (name.consume_front(kInteger)) {
      const std::int64_t value = value_of(integers, name);
      replace_calls(function, llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value));
    } else if (name.consume_front(kReal)) {
      const float value = value_of(reals, name);
      replace_calls(function, llvm::ConstantFP::get(context, llvm::APFloat(value)));
    }
  }
}

}  // namespace burin
