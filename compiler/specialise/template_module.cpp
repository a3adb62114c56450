#include "compiler/specialise/template_module.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MemoryBuffer.h>

#include "templates/embedded.h"

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

void drop_used_lists(llvm::Module& module) {
  for (const char* name : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* used = module.getGlobalVariable(name)) used->eraseFromParent();
  }
}

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

void finish_entry(SpecialisedModule& specialised, const std::string& template_name, int threads,
                  const ClusterExtent& cluster, int max_registers) {
  llvm::Module& module = *specialised.module;
  llvm::Function* kernel = module.getFunction("burin_kernel");
  BURIN_CHECK(kernel != nullptr, "the template has no entry");
  kernel->setName(specialised.symbol);
  module.getOrInsertNamedMetadata("nvvm.annotations")->clearOperands();
  annotate(*kernel, "kernel", 1);
  annotate(*kernel, "maxntidx", threads);
  if (max_registers < kAllRegisters) annotate(*kernel, "maxnreg", max_registers);
  if (cluster.blocks() > 1) set_cluster(*kernel, cluster);
  module.setModuleIdentifier(specialised.symbol);
  module.setSourceFileName(template_name);
  check_module(module, ErrorKind::internal, fmt::format("the module of '{}'", specialised.symbol));
}

}  // namespace burin
