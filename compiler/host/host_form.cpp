#include "compiler/host/host_form.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "compiler/host/primitives.h"

namespace burin {
namespace {

using llvm::dyn_cast;
using llvm::isa;

// Instructions of a block before it is cut.
constexpr std::size_t kBlockInstructions = 512;
// A value whose last use is at most this many instructions after it needs no slot: it stays in a register.
constexpr std::size_t kNearUse = 2;

// ---- attributes and annotations

void strip_attributes(llvm::Function& function) {
  llvm::LLVMContext& context = function.getContext();
  llvm::AttributeList kept;
  for (const llvm::Argument& parameter : function.args()) {  // a copied parameter is part of the call's form
    if (!parameter.hasByValAttr()) continue;
    kept = kept.addParamAttribute(context, parameter.getArgNo(),
                                  llvm::Attribute::getWithByValType(context, parameter.getParamByValType()));
  }
  function.setAttributes(kept.addFnAttribute(context, llvm::Attribute::NoUnwind));  // no unwind tables
  function.setCallingConv(llvm::CallingConv::C);
  function.setComdat(nullptr);
  function.setSection("");
  function.setAlignment(llvm::MaybeAlign());
  function.clearGC();
  function.setVisibility(llvm::GlobalValue::DefaultVisibility);
  function.setDLLStorageClass(llvm::GlobalValue::DefaultStorageClass);
  function.setLinkage(function.isDeclaration() ? llvm::GlobalValue::ExternalLinkage
                                               : llvm::GlobalValue::InternalLinkage);
}

// Calls that do nothing when the code runs.
bool is_left_out(const llvm::CallInst& call) {
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::assume:
    case llvm::Intrinsic::donothing:
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::experimental_noalias_scope_decl:
      return true;
    default:
      return call.getCalledFunction() != nullptr && has_no_effect(call.getCalledFunction()->getName());
  }
}

void strip_instructions(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    instruction.dropUnknownNonDebugMetadata();
    if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) load->setAlignment(llvm::Align(1));
    if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) store->setAlignment(llvm::Align(1));
    auto* call = dyn_cast<llvm::CallInst>(&instruction);
    if (call == nullptr) continue;
    if (call->getType()->isVoidTy() && is_left_out(*call)) {
      call->eraseFromParent();
      continue;
    }
    if (!isa<llvm::IntrinsicInst>(call)) call->setAttributes({});
    call->setCallingConv(llvm::CallingConv::C);
  }
}

// ---- what would end the process

void check_divisions(llvm::Function& function) {
  std::vector<llvm::BinaryOperator*> divisions;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (instruction.isIntDivRem()) divisions.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  }
  llvm::Module& module = *function.getParent();
  for (llvm::BinaryOperator* division : divisions) {
    const auto* constant = dyn_cast<llvm::ConstantInt>(division->getOperand(1));
    if (constant != nullptr && !constant->isZero() && !constant->isMinusOne()) continue;
    llvm::IRBuilder<> builder(division);
    const bool is_signed =
        division->getOpcode() == llvm::Instruction::SDiv || division->getOpcode() == llvm::Instruction::SRem;
    llvm::FunctionCallee check = module.getOrInsertFunction(kCheckDivision, builder.getVoidTy(), builder.getInt64Ty(),
                                                            builder.getInt64Ty(), builder.getInt32Ty());
    // The same value must be checked and divided by, also where the operand is undefined.
    for (unsigned i = 0; i < 2; ++i) division->setOperand(i, builder.CreateFreeze(division->getOperand(i)));
    const auto* vector = dyn_cast<llvm::FixedVectorType>(division->getType());
    const unsigned lanes = vector != nullptr ? vector->getNumElements() : 1;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      llvm::Value* parts[2];
      for (unsigned i = 0; i < 2; ++i) {
        parts[i] = division->getOperand(i);
        if (vector != nullptr) parts[i] = builder.CreateExtractElement(parts[i], lane);
        parts[i] = builder.CreateIntCast(parts[i], builder.getInt64Ty(), is_signed);
      }
      const unsigned bits = is_signed ? division->getType()->getScalarSizeInBits() : 0;
      builder.CreateCall(check, {parts[0], parts[1], builder.getInt32(bits)});
    }
  }
}

void check_unreachable(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    auto* end = dyn_cast<llvm::UnreachableInst>(block.getTerminator());
    if (end == nullptr) continue;
    llvm::IRBuilder<> builder(end);
    builder.CreateCall(function.getParent()->getOrInsertFunction(kUnreachableReached, builder.getVoidTy()), {});
  }
}

// ---- constants

struct ConstantUse {
  llvm::Instruction* instruction = nullptr;
  unsigned operand = 0;
  std::size_t index = 0;  // in the table
};

// Floating point constants of the module's instructions become loads from one table.
void tabulate_constants(llvm::Module& module) {
  std::vector<float> table;
  llvm::DenseMap<std::uint64_t, std::size_t> indices;  // by the bits
  std::vector<ConstantUse> uses;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (isa<llvm::PHINode>(instruction)) continue;
      for (const llvm::Use& use : instruction.operands()) {
        const auto* constant = dyn_cast<llvm::ConstantFP>(use.get());
        if (constant == nullptr || !constant->getType()->isFloatTy()) continue;
        const std::uint64_t bits = constant->getValueAPF().bitcastToAPInt().getZExtValue();
        if (bits == 0) continue;  // an instruction clears a register
        const auto [entry, added] = indices.try_emplace(bits, table.size());
        if (added) table.push_back(constant->getValueAPF().convertToFloat());
        uses.push_back({&instruction, use.getOperandNo(), entry->second});
      }
    }
  }
  if (table.empty()) return;
  llvm::Constant* values = llvm::ConstantDataArray::get(module.getContext(), table);
  auto* global = new llvm::GlobalVariable(module, values->getType(), true, llvm::GlobalValue::InternalLinkage, values,
                                          "burin_host_constants");
  for (const ConstantUse& use : uses) {
    llvm::IRBuilder<> builder(use.instruction);
    llvm::Value* place = builder.CreateConstInBoundsGEP2_64(values->getType(), global, 0, use.index);
    use.instruction->setOperand(use.operand, builder.CreateLoad(builder.getFloatTy(), place));
  }
}

// ---- slots

// Gives values of one block that live long a slot each, and lets values of the same type that do not live at the same
// time share it.
class BlockSlots {
 public:
  explicit BlockSlots(llvm::Function& function) : entry_(function.getEntryBlock()) {}

  void assign(llvm::BasicBlock& block) {
    std::vector<llvm::Instruction*> order;
    llvm::DenseMap<const llvm::Instruction*, std::size_t> position;
    for (llvm::Instruction& instruction : block) {
      position[&instruction] = order.size();
      order.push_back(&instruction);
    }
    std::vector<std::vector<llvm::AllocaInst*>> released(order.size());  // by the last use of their values
    llvm::DenseMap<const llvm::Value*, llvm::AllocaInst*> slots;
    for (std::size_t i = 0; i < order.size(); ++i) {
      llvm::Instruction& instruction = *order[i];
      if (!isa<llvm::PHINode>(instruction)) reload(instruction, slots);
      for (llvm::AllocaInst* slot : released[i]) free_[slot->getAllocatedType()].push_back(slot);
      const std::size_t last = last_use(instruction, position);
      if (last <= i + kNearUse) continue;
      llvm::AllocaInst* slot = take(instruction.getType());
      llvm::IRBuilder<> builder(instruction.getNextNode());
      builder.CreateAlignedStore(&instruction, slot, llvm::Align(1));
      slots[&instruction] = slot;
      released[last].push_back(slot);
    }
  }

 private:
  // The position of the last use when all uses are ordinary instructions of the block; else 0.
  static std::size_t last_use(const llvm::Instruction& instruction,
                              const llvm::DenseMap<const llvm::Instruction*, std::size_t>& position) {
    if (!instruction.getType()->isSingleValueType() || isa<llvm::AllocaInst, llvm::PHINode>(instruction)) return 0;
    std::size_t last = 0;
    for (const llvm::User* user : instruction.users()) {
      const auto* at = llvm::cast<llvm::Instruction>(user);
      if (at->getParent() != instruction.getParent() || isa<llvm::PHINode>(at)) return 0;
      last = std::max(last, position.lookup(at));
    }
    return last;
  }

  static void reload(llvm::Instruction& instruction,
                     const llvm::DenseMap<const llvm::Value*, llvm::AllocaInst*>& slots) {
    for (llvm::Use& use : instruction.operands()) {
      const auto found = slots.find(use.get());
      if (found == slots.end()) continue;
      llvm::IRBuilder<> builder(&instruction);
      use.set(builder.CreateAlignedLoad(found->second->getAllocatedType(), found->second, llvm::Align(1)));
    }
  }

  llvm::AllocaInst* take(llvm::Type* type) {
    std::vector<llvm::AllocaInst*>& free = free_[type];
    if (free.empty()) {
      llvm::IRBuilder<> builder(&entry_, entry_.begin());
      return builder.CreateAlloca(type);
    }
    llvm::AllocaInst* slot = free.back();
    free.pop_back();
    return slot;
  }

  llvm::BasicBlock& entry_;
  llvm::DenseMap<llvm::Type*, std::vector<llvm::AllocaInst*>> free_;
};

// ---- long blocks

// Cuts from the end, so that each cut moves one piece.
void cut(llvm::BasicBlock& block) {
  std::size_t left = block.size();
  const auto fixed = static_cast<std::size_t>(std::count_if(block.begin(), block.end(), [](const auto& instruction) {
    return isa<llvm::AllocaInst, llvm::PHINode>(instruction);
  }));
  while (left > fixed + 2 * kBlockInstructions) {
    block.splitBasicBlock(std::prev(block.end(), kBlockInstructions));
    left = left - kBlockInstructions + 1;  // and the branch to the piece
  }
}

// Whatever tensors a kernel has, it is called in one way. Of a box it gets the address, as primitives do, and no copy.
void add_entry(llvm::Module& module, llvm::Function& kernel) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const address = llvm::PointerType::get(context, 0);
  llvm::Type* const batch = llvm::Type::getInt32Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {address, batch}, false);
  llvm::Function* entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kHostEntryName, module);
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  std::vector<llvm::Value*> arguments;
  for (unsigned i = 0; i + 1 < kernel.arg_size(); ++i) {
    arguments.push_back(builder.CreateLoad(address, builder.CreateConstGEP1_32(address, entry->getArg(0), i)));
  }
  arguments.push_back(entry->getArg(1));
  for (llvm::Argument& parameter : kernel.args()) parameter.removeAttr(llvm::Attribute::ByVal);
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
}

}  // namespace

void to_host_form(llvm::Module& module, llvm::Function& kernel) {
  // No name of the module may stand for a function of this process.
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) function.setName("burin_host_function");
  }
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    strip_attributes(function);
    strip_instructions(function);
    check_divisions(function);
    check_unreachable(function);
  }
  for (llvm::GlobalVariable& table : module.globals()) {
    table.setName("burin_host_table");
    table.setLinkage(llvm::GlobalValue::InternalLinkage);
    table.setComdat(nullptr);
    table.setSection("");
  }
  tabulate_constants(module);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    BlockSlots slots(function);
    std::vector<llvm::BasicBlock*> blocks;
    for (llvm::BasicBlock& block : function) blocks.push_back(&block);
    for (llvm::BasicBlock* block : blocks) slots.assign(*block);
    for (llvm::BasicBlock* block : blocks) cut(*block);
  }
  add_entry(module, kernel);
}

}  // namespace burin
