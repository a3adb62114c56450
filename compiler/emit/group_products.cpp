#include "compiler/emit/group_products.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Scalar/SROA.h>

#include <array>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/factor_type.h"

namespace burin {
namespace {

constexpr std::string_view kProduct = "burin_emit_group_product", kSparseProduct = "burin_emit_sparse_group_product",
                           kRegisterProduct = "burin_emit_register_group_product", kBegin = "burin_emit_group_begin",
                           kWait = "burin_emit_group_wait", kRelease = "burin_emit_group_release";
constexpr std::array kNames = {kProduct, kSparseProduct, kRegisterProduct, kBegin, kWait, kRelease};
constexpr unsigned kMaxOctets = 32, kOctetSums = 4;  // sums of an octet that a thread holds

unsigned constant_argument(const llvm::CallInst& call, unsigned number) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(number));
  if (constant == nullptr) {
    fail(ErrorKind::bad_input, "argument {} of a call of a product of warpgroups is not a constant", number);
  }
  return static_cast<unsigned>(constant->getZExtValue());
}

// One instruction whose sums are operands that are read and written; `text` names them as @s, and the operands behind
// them as @0, @1, ...
void write_instruction(llvm::CallInst& call, std::string_view text, std::vector<llvm::Value*> operands,
                       std::string_view operand_constraints) {
  llvm::IRBuilder<> builder(&call);
  llvm::Type* number = builder.getFloatTy();
  const unsigned octets = constant_argument(call, 1);
  if (octets < 1 || octets > kMaxOctets) {
    fail(ErrorKind::bad_input, "a product of warpgroups has {} octets; it can have 1 to {}", octets, kMaxOctets);
  }
  const unsigned sums = octets * kOctetSums;
  std::string names, outputs, ties;
  std::vector<llvm::Value*> places, arguments = operands;
  std::vector<llvm::Type*> argument_types;
  for (llvm::Value* operand : operands) argument_types.push_back(operand->getType());
  for (unsigned i = 0; i < sums; ++i) {
    names += fmt::format("{}${}", i == 0 ? "" : ", ", i);
    outputs += "=f,";
    ties += fmt::format("{},", i);
    places.push_back(builder.CreateConstInBoundsGEP1_32(number, call.getArgOperand(0), i));
    arguments.push_back(builder.CreateLoad(number, places.back()));
    argument_types.push_back(number);
  }
  std::string written;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@') {
      written += text[i];
    } else if (text[++i] == 's') {
      written += names;
    } else {
      written += fmt::format("${}", sums + static_cast<unsigned>(text[i] - '0'));
    }
  }
  llvm::Type* result = llvm::StructType::get(call.getContext(), std::vector(sums, number));
  llvm::InlineAsm* instruction =
      llvm::InlineAsm::get(llvm::FunctionType::get(result, argument_types, false), written,
                           outputs + std::string(operand_constraints) + ties + "~{memory}", true);
  llvm::CallInst* made = builder.CreateCall(instruction, arguments);
  for (unsigned i = 0; i < sums; ++i) builder.CreateStore(builder.CreateExtractValue(made, i), places[i]);
  call.eraseFromParent();
}

void write_product(llvm::CallInst& call, bool sparse) {
  const unsigned octets = constant_argument(call, 1);
  const auto type = static_cast<FactorType>(constant_argument(call, 2));
  const std::string_view element = type == FactorType::tf32 ? "tf32" : type == FactorType::bf16 ? "bf16" : "f16";
  // Sums are added to (the predicate), nothing is negated. Of halves a last number says whether those of an octet lie
  // side by side, in place of those of a column.
  if (!sparse) {
    const bool by_columns = constant_argument(call, 3) != 0;
    const unsigned depth = type == FactorType::tf32 ? 8 : 16;
    const std::string_view order = type == FactorType::tf32 ? "" : by_columns ? ", 0, 0" : ", 0, 1";
    write_instruction(call,
                      fmt::format("{{\n\t.reg .pred add;\n\tsetp.eq.u32 add, 0, 0;\n\t"
                                  "wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{@s}}, @0, @1, add, 1, 1{};\n\t}}",
                                  octets * 8, depth, element, element, order),
                      {call.getArgOperand(4), call.getArgOperand(5)}, "l,l,");
    return;
  }
  const std::vector<llvm::Value*> operands = {call.getArgOperand(3), call.getArgOperand(4), call.getArgOperand(5)};
  write_instruction(
      call,
      fmt::format("{{\n\t.reg .pred add;\n\tsetp.eq.u32 add, 0, 0;\n\t"
                  "wgmma.mma_async.sp.sync.aligned.m64n{}k32.f32.{}.{} {{@s}}, @0, @1, @2, {}, add, 1, 1, 0, 1;\n\t}}",
                  octets * 8, element, element, constant_argument(call, 6)),
      operands, "l,l,r,");
}

void write_register_product(llvm::CallInst& call) {
  std::vector<llvm::Value*> operands;
  for (unsigned i = 2; i <= 6; ++i) operands.push_back(call.getArgOperand(i));
  write_instruction(call,
                    fmt::format("{{\n\t.reg .pred add;\n\tsetp.eq.u32 add, 0, 0;\n\t"
                                "wgmma.mma_async.sync.aligned.m64n{}k8.f32.tf32.tf32 {{@s}}, {{@0, @1, @2, @3}}, @4, "
                                "add, 1, 1;\n\t}}",
                                constant_argument(call, 1) * 8),
                    operands, "r,r,r,r,l,");
}

void write_release(llvm::CallInst& call) {
  llvm::IRBuilder<> builder(&call);
  const std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", constant_argument(call, 0));
  builder.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(builder.getVoidTy(), false), text, "~{memory}", true));
  call.eraseFromParent();
}

std::vector<llvm::CallInst*> calls_of(llvm::Module& module, std::string_view name) {
  std::vector<llvm::CallInst*> calls;
  llvm::Function* function = module.getFunction(name);
  if (function == nullptr) return calls;
  for (llvm::User* user : function->users()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(user);
    if (call == nullptr) fail(ErrorKind::bad_input, "'{}' is used other than by a call", name);
    calls.push_back(call);
  }
  return calls;
}

// What was loaded from an array at once, value by value: as a vector it would keep the array in memory.
void split_loads_of_arrays(llvm::Function& function) {
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load == nullptr || !llvm::isa<llvm::FixedVectorType>(load->getType())) continue;
    if (llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(load->getPointerOperand()))) loads.push_back(load);
  }
  for (llvm::LoadInst* load : loads) {
    llvm::IRBuilder<> builder(load);
    const auto* type = llvm::cast<llvm::FixedVectorType>(load->getType());
    llvm::Value* result = llvm::PoisonValue::get(load->getType());
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      llvm::Value* place = builder.CreateConstInBoundsGEP1_32(type->getElementType(), load->getPointerOperand(), i);
      result = builder.CreateInsertElement(result, builder.CreateLoad(type->getElementType(), place), i);
    }
    load->replaceAllUsesWith(result);
    load->eraseFromParent();
  }
}

void put_sums_in_registers(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    split_loads_of_arrays(function);
    passes.run(function, functions);
  }
}

}  // namespace

bool uses_group_products(const llvm::Module& module) {
  // What is offered may be for other blocks of a cluster, which later architectures have as well.
  return llvm::any_of(module, [](const llvm::Function& function) {
    const llvm::StringRef name = function.getName();
    return (name.starts_with("burin_dev_group_") && name != "burin_dev_group_offer") || is_group_product(name);
  });
}

bool is_group_product(std::string_view function) { return llvm::is_contained(kNames, function); }

void write_group_products(llvm::Module& module) {
  if (!uses_group_products(module)) return;
  for (llvm::CallInst* call : calls_of(module, kProduct)) write_product(*call, false);
  for (llvm::CallInst* call : calls_of(module, kSparseProduct)) write_product(*call, true);
  for (llvm::CallInst* call : calls_of(module, kRegisterProduct)) write_register_product(*call);
  for (llvm::CallInst* call : calls_of(module, kRelease)) write_release(*call);
  // What is done to the sums before stays before, and what is done after stays after: both name the sums.
  for (llvm::CallInst* call : calls_of(module, kBegin)) write_instruction(*call, "wgmma.fence.sync.aligned;", {}, "");
  for (llvm::CallInst* call : calls_of(module, kWait)) {
    write_instruction(*call, fmt::format("wgmma.wait_group.sync.aligned {};", constant_argument(*call, 2)), {}, "");
  }
  for (const std::string_view name : kNames) {
    if (llvm::Function* function = module.getFunction(name)) function->eraseFromParent();
  }
  put_sums_in_registers(module);
}

}  // namespace burin
