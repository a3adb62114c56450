#include "compiler/host/acceptable_module.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/host/local_extent.h"
#include "compiler/host/primitives.h"
#include "compiler/kernel_cluster.h"
#include "ir/error.h"

namespace burin {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr unsigned kMaxIntegerBits = 64;
constexpr std::uint64_t kMaxAggregateScalars = 1024;  // of a value; a thread's accumulators and more
constexpr std::uint64_t kMaxVectorScalars = 64;
constexpr std::uint64_t kMaxLocalBytes = 1 << 16;     // local variables of a function
constexpr std::uint64_t kMaxConstantBytes = 1 << 24;  // one constant table
constexpr std::uint64_t kMaxAlignment = 64;           // bytes, of a variable
constexpr int kMaxCallDepth = 64;
constexpr std::string_view kDeviceTriple = "nvptx64-nvidia-cuda";
constexpr std::size_t kMaxQuoted = 160;  // characters of an instruction in an error

std::string quote(const llvm::Value& value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  const std::size_t begin = text.find_first_not_of(' ');
  text = begin == std::string::npos ? text : text.substr(begin);
  return text.size() <= kMaxQuoted ? text : text.substr(0, kMaxQuoted) + " ...";
}

[[noreturn]] void refuse(const llvm::Instruction& instruction, std::string_view why) {
  fail(ErrorKind::bad_input, "bitcode: function '{}': {}: {}", instruction.getFunction()->getName().str(), why,
       quote(instruction));
}

// ---- types

std::uint64_t scalars(const llvm::Type* type) {
  constexpr std::uint64_t kTooMany = kMaxAggregateScalars + 1;
  if (const auto* integer = dyn_cast<llvm::IntegerType>(type)) {
    return integer->getBitWidth() <= kMaxIntegerBits ? 1 : kTooMany;
  }
  if (type->isFloatTy() || type->isDoubleTy()) return 1;
  if (type->isPointerTy()) return type->getPointerAddressSpace() == 0 ? 1 : kTooMany;
  if (const auto* vector = dyn_cast<llvm::FixedVectorType>(type)) {
    return vector->getNumElements() <= kMaxVectorScalars && scalars(vector->getElementType()) == 1
               ? vector->getNumElements()
               : kTooMany;
  }
  if (const auto* array = dyn_cast<llvm::ArrayType>(type)) {
    if (array->getNumElements() > kMaxAggregateScalars) return kTooMany;
    return std::min(kTooMany, array->getNumElements() * scalars(array->getElementType()));
  }
  if (const auto* structure = dyn_cast<llvm::StructType>(type)) {
    if (structure->isOpaque()) return kTooMany;
    std::uint64_t sum = 1;  // itself, so that nested empty structures come to an end too
    for (const llvm::Type* element : structure->elements()) {
      sum = std::min(kTooMany, sum + scalars(element));
      if (sum == kTooMany) break;
    }
    return sum;
  }
  return kTooMany;
}

bool acceptable(const llvm::Type* type) { return type->isVoidTy() || scalars(type) <= kMaxAggregateScalars; }

char letter(const llvm::Type* type) {
  if (type->isVoidTy()) return 'v';
  if (type->isIntegerTy(32)) return 'i';
  if (type->isIntegerTy(64)) return 'l';
  if (type->isFloatTy()) return 'f';
  if (type->isDoubleTy()) return 'd';
  if (type->isPointerTy() && type->getPointerAddressSpace() == 0) return 'p';
  const auto* vector = dyn_cast<llvm::FixedVectorType>(type);
  if (vector != nullptr && vector->getNumElements() == 4 && vector->getElementType()->isFloatTy()) return 'q';
  return '?';
}

std::string signature(const llvm::FunctionType* type) {
  std::string text(1, letter(type->getReturnType()));
  for (const llvm::Type* parameter : type->params()) text += letter(parameter);
  return type->isVarArg() ? text + "..." : text;
}

// ---- calls

bool plain_arithmetic(llvm::Intrinsic::ID id) {
  using namespace llvm;
  switch (id) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::fabs:
    case Intrinsic::copysign:
    case Intrinsic::sqrt:
    case Intrinsic::minnum:
    case Intrinsic::maxnum:
    case Intrinsic::minimum:
    case Intrinsic::maximum:
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::trunc:
    case Intrinsic::rint:
    case Intrinsic::nearbyint:
    case Intrinsic::round:
    case Intrinsic::abs:
    case Intrinsic::smin:
    case Intrinsic::smax:
    case Intrinsic::umin:
    case Intrinsic::umax:
    case Intrinsic::ctpop:
    case Intrinsic::ctlz:
    case Intrinsic::cttz:
    case Intrinsic::bswap:
    case Intrinsic::bitreverse:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
    case Intrinsic::uadd_sat:
    case Intrinsic::sadd_sat:
    case Intrinsic::usub_sat:
    case Intrinsic::ssub_sat:
    case Intrinsic::uadd_with_overflow:
    case Intrinsic::sadd_with_overflow:
    case Intrinsic::usub_with_overflow:
    case Intrinsic::ssub_with_overflow:
    case Intrinsic::umul_with_overflow:
    case Intrinsic::smul_with_overflow:
    case Intrinsic::assume:
    case Intrinsic::expect:
    case Intrinsic::donothing:
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::experimental_noalias_scope_decl:
      return true;
    default:
      return false;
  }
}

void require_known_callee(const llvm::CallInst& call, const llvm::Function& callee) {
  if (callee.getReturnType()->isVoidTy() && has_no_effect(callee.getName())) return;
  const auto primitives = device_primitives();
  const std::string name = callee.getName().str();
  const auto found =
      std::find_if(primitives.begin(), primitives.end(), [&](const HostFunction& f) { return f.name == name; });
  if (found == primitives.end()) refuse(call, "calls what is neither a function of the module nor a device primitive");
  if (signature(callee.getFunctionType()) != found->signature) {
    refuse(call, "calls a device primitive with types that are not those of templates/device.h");
  }
}

// ---- all instructions

class ModuleCheck {
 public:
  explicit ModuleCheck(llvm::Module& module) : module_(module), extents_(module.getDataLayout()) {}

  void function(const llvm::Function& function) {
    for (const llvm::Argument& parameter : function.args()) {
      if (!acceptable(parameter.getType()) ||
          (parameter.hasByValAttr() && !acceptable(parameter.getParamByValType())) || parameter.hasInAllocaAttr() ||
          parameter.hasPreallocatedAttr()) {
        fail(ErrorKind::bad_input, "bitcode: function '{}' has a parameter of a type that is not supported",
             function.getName().str());
      }
    }
    if (function.isVarArg() || function.hasPersonalityFn() || function.hasPrefixData() || function.hasPrologueData()) {
      fail(ErrorKind::bad_input, "bitcode: function '{}' has variable arguments, exceptions or attached data",
           function.getName().str());
    }
    std::uint64_t local_bytes = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!acceptable(instruction.getType())) refuse(instruction, "has a type that is not supported");
      for (const llvm::Value* operand : instruction.operands()) require_operand(instruction, operand);
      if (const auto* local = dyn_cast<llvm::AllocaInst>(&instruction)) {
        if (!local->isStaticAlloca() || local->isArrayAllocation() || !acceptable(local->getAllocatedType()) ||
            local->getAlign().value() > kMaxAlignment || local->isUsedWithInAlloca() || local->isSwiftError()) {
          refuse(instruction, "local variable whose size is not a small constant");
        }
        local_bytes += module_.getDataLayout().getTypeAllocSize(local->getAllocatedType());
        if (local_bytes > kMaxLocalBytes) refuse(instruction, "more local variables than a thread has room for");
        continue;
      }
      require_instruction(instruction);
    }
  }

 private:
  void require_operand(const llvm::Instruction& instruction, const llvm::Value* operand) {
    if (isa<llvm::BasicBlock, llvm::MetadataAsValue, llvm::InlineAsm>(operand)) return;  // assembly: see require_call
    if (isa<llvm::Function>(operand)) {
      const auto* call = dyn_cast<llvm::CallInst>(&instruction);
      const bool callee_only = call != nullptr && call->getCalledOperand() == operand &&
                               std::find(call->arg_begin(), call->arg_end(), operand) == call->arg_end();
      const bool left_out = call != nullptr && call->getCalledFunction() != nullptr &&
                            has_no_effect(call->getCalledFunction()->getName());
      if (!callee_only && !left_out) refuse(instruction, "takes the address of a function");
      return;
    }
    if (isa<llvm::Instruction>(operand) || isa<llvm::Argument>(operand)) return;
    const auto* constant = dyn_cast<llvm::Constant>(operand);
    if (constant == nullptr) refuse(instruction, "has an operand that is not supported");
    require_constant(instruction, *constant);
  }

  void require_constant(const llvm::Instruction& instruction, const llvm::Constant& constant) {
    if (!seen_.insert(&constant).second) return;
    if (const auto* global = dyn_cast<llvm::GlobalVariable>(&constant)) {
      const auto type_bytes = [&] { return module_.getDataLayout().getTypeAllocSize(global->getValueType()); };
      if (!global->isConstant() || !global->hasInitializer() || global->getAddressSpace() != 0 ||
          global->isThreadLocal() || global->getAlign().valueOrOne().value() > kMaxAlignment ||
          !global->getValueType()->isSized() || type_bytes() > kMaxConstantBytes) {
        refuse(instruction, "uses a variable that is not a constant table of this module");
      }
      require_constant(instruction, *global->getInitializer());
      return;
    }
    if (isa<llvm::GlobalValue>(constant) || isa<llvm::BlockAddress>(constant)) {
      refuse(instruction, "uses an address that is not supported");
    }
    if (const auto* expression = dyn_cast<llvm::ConstantExpr>(&constant)) {
      if (expression->getOpcode() != llvm::Instruction::GetElementPtr) {
        refuse(instruction, "has a constant expression that is not supported");
      }
    }
    for (const llvm::Value* operand : constant.operands()) {
      const auto* part = dyn_cast<llvm::Constant>(operand);
      if (part == nullptr) refuse(instruction, "has a constant that is not supported");
      require_constant(instruction, *part);
    }
  }

  void require_instruction(const llvm::Instruction& instruction) {
    if (const auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
      if (load->isAtomic() || load->isVolatile()) refuse(instruction, "atomic or volatile access");
      require_inside(instruction, load->getPointerOperand(), load->getType(), false);
    } else if (const auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
      if (store->isAtomic() || store->isVolatile()) refuse(instruction, "atomic or volatile access");
      require_inside(instruction, store->getPointerOperand(), store->getValueOperand()->getType(), true);
    } else if (const auto* call = dyn_cast<llvm::CallInst>(&instruction)) {
      require_call(*call);
    } else if (const auto* step = dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
      if (step->getSourceElementType()->isScalableTy()) refuse(instruction, "has a type that is not supported");
    } else if (!isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst, llvm::PHINode, llvm::SelectInst,
                    llvm::FreezeInst, llvm::ExtractValueInst, llvm::InsertValueInst, llvm::ExtractElementInst,
                    llvm::InsertElementInst, llvm::ShuffleVectorInst, llvm::ReturnInst, llvm::BranchInst,
                    llvm::SwitchInst, llvm::UnreachableInst>(instruction) &&
               !(isa<llvm::CastInst>(instruction) && !isa<llvm::AddrSpaceCastInst>(instruction))) {
      refuse(instruction, "instruction that is not supported");
    }
  }

  void require_call(const llvm::CallInst& call) {
    if (call.isInlineAsm()) refuse(call, "inline assembly");
    if (call.hasOperandBundles() && call.getIntrinsicID() != llvm::Intrinsic::assume) refuse(call, "operand bundle");
    if (call.isMustTailCall()) refuse(call, "call that must be a tail call");
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr) refuse(call, "call through a pointer, or with types that are not the function's");
    if (const auto* block = dyn_cast<llvm::MemIntrinsic>(&call)) {
      require_block_inside(*block);
    } else if (callee->isIntrinsic()) {
      if (!plain_arithmetic(callee->getIntrinsicID())) refuse(call, "intrinsic that the CPU does not have");
    } else if (callee->isDeclaration()) {
      require_known_callee(call, *callee);
    } else {
      for (const llvm::Argument& parameter : callee->args()) {  // what the call copies must be there
        if (!parameter.hasByValAttr()) continue;
        const llvm::TypeSize bytes = module_.getDataLayout().getTypeAllocSize(parameter.getParamByValType());
        require_bytes_inside(call, call.getArgOperand(parameter.getArgNo()), bytes.getFixedValue(), false);
      }
    }
  }

  void require_inside(const llvm::Instruction& access, const llvm::Value* pointer, const llvm::Type* type, bool write) {
    require_bytes_inside(access, pointer,
                         module_.getDataLayout().getTypeStoreSize(const_cast<llvm::Type*>(type)).getFixedValue(),
                         write);
  }

  void require_block_inside(const llvm::MemIntrinsic& block) {
    const auto* length = dyn_cast<llvm::ConstantInt>(block.getLength());
    if (length == nullptr || length->getValue().ugt(kMaxLocalBytes) || block.isVolatile()) {
      refuse(block, "block of memory whose size is not a small constant");
    }
    require_bytes_inside(block, block.getRawDest(), length->getZExtValue(), true);
    if (const auto* transfer = dyn_cast<llvm::MemTransferInst>(&block)) {
      require_bytes_inside(block, transfer->getRawSource(), length->getZExtValue(), false);
    }
  }

  void require_bytes_inside(const llvm::Instruction& access, const llvm::Value* pointer, std::uint64_t bytes,
                            bool write) {
    const auto extent = extents_.of(pointer);
    if (!extent) {
      refuse(access, "accesses memory without a device primitive, and not at a fixed place in a local variable");
    }
    if (extent->low > 0 || extent->high < static_cast<std::int64_t>(bytes) || (write && !extent->writable)) {
      refuse(access, "accesses memory outside of a local variable");
    }
  }

  llvm::Module& module_;
  LocalExtents extents_;
  llvm::SmallPtrSet<const llvm::Constant*, 32> seen_;
};

// The functions that the kernel reaches, each with the length of the longest chain of calls below it.
class CallGraph {
 public:
  explicit CallGraph(const llvm::Function& kernel) { visit(kernel); }
  const llvm::MapVector<const llvm::Function*, int>& depths() const { return depths_; }

 private:
  int visit(const llvm::Function& function) {
    const auto known = depths_.find(&function);
    if (known != depths_.end()) return known->second;
    if (open_.size() >= kMaxCallDepth) {
      fail(ErrorKind::bad_input, "bitcode: calls are nested more than {} deep", kMaxCallDepth);
    }
    open_.insert(&function);
    int below = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = dyn_cast<llvm::CallInst>(&instruction);
      const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
      if (callee == nullptr || callee->isDeclaration()) continue;
      if (open_.contains(callee)) refuse(instruction, "recursive call");
      below = std::max(below, visit(*callee));
    }
    open_.erase(&function);
    return depths_[&function] = below + 1;
  }

  llvm::SmallPtrSet<const llvm::Function*, 16> open_;
  llvm::MapVector<const llvm::Function*, int> depths_;
};

// Every function and variable that the kernel does not need, and everything that only annotates.
void remove_the_rest(llvm::Module& module, const llvm::MapVector<const llvm::Function*, int>& reached) {
  for (const char* list : {"llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"}) {
    if (llvm::GlobalVariable* variable = module.getGlobalVariable(list, true)) variable->eraseFromParent();
  }
  llvm::StripDebugInfo(module);
  while (!module.named_metadata_empty()) module.eraseNamedMetadata(&*module.named_metadata_begin());
  std::vector<llvm::Function*> unreached;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && reached.count(&function) == 0) unreached.push_back(&function);
  }
  for (llvm::Function* function : unreached) function->dropAllReferences();
  for (bool again = true; again;) {
    again = false;
    for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(module.globals())) {
      variable.removeDeadConstantUsers();
      if (!variable.use_empty()) continue;
      variable.eraseFromParent();
      again = true;
    }
  }
  for (llvm::Function* function : unreached) {
    function->removeDeadConstantUsers();
    if (!function->use_empty()) {
      fail(ErrorKind::bad_input, "bitcode: the address of function '{}' is used", function->getName().str());
    }
    function->eraseFromParent();
  }
}

}  // namespace

AcceptedKernel require_acceptable(llvm::Module& module, const std::string& symbol, const llvm::DataLayout& layout,
                                  const std::vector<KernelTensor>& tensors) {
  std::string faults;
  llvm::raw_string_ostream stream(faults);
  if (llvm::verifyModule(module, &stream)) {
    fail(ErrorKind::bad_input, "bitcode: the module is not well formed: {}", faults.substr(0, faults.find('\n')));
  }
  if (module.getTargetTriple() != kDeviceTriple) {
    fail(ErrorKind::bad_input, "bitcode: the module is for '{}', not for '{}'", module.getTargetTriple(),
         kDeviceTriple);
  }
  if (!module.getModuleInlineAsm().empty() || !module.alias_empty() || !module.ifunc_empty()) {
    fail(ErrorKind::bad_input, "bitcode: the module holds assembly or aliases");
  }
  llvm::Function* kernel = module.getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration()) {
    fail(ErrorKind::bad_input, "bitcode: there is no kernel '{}' in the module", symbol);
  }
  const bool copies =
      std::any_of(kernel->arg_begin(), kernel->arg_end(), [](const auto& p) { return p.hasByValAttr(); });
  if (copies || signature(kernel->getFunctionType()) != "v" + std::string(tensors.size(), 'p') + "i") {
    std::string names;
    for (const KernelTensor& tensor : tensors) names += std::string(to_string(tensor.role)) + ", ";
    fail(ErrorKind::bad_input, "bitcode: kernel '{}' does not have the parameters ({}batch)", symbol, names);
  }
  const ClusterExtent cluster = cluster_of(*kernel);
  // Sizes are those of the CPU that will run it, whatever the module says.
  module.setDataLayout(layout);
  const CallGraph calls(*kernel);
  remove_the_rest(module, calls.depths());
  ModuleCheck check(module);
  for (const auto& [function, depth] : calls.depths()) check.function(*function);
  return {kernel, cluster, calls.depths().lookup(kernel)};
}

}  // namespace burin
