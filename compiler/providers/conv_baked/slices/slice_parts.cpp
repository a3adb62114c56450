#include "compiler/providers/conv_baked/slices/slice_parts.h"

namespace burin {

using llvm::Function;
using llvm::Value;

SliceParts::SliceParts(TemplateHoles& holes_, const ConvLayer& layer_, const BakedPlan& plan_)
    : holes(holes_),
      layer(layer_),
      plan(plan_),
      source_map(holes_.module(), layer_.shape),
      f32(llvm::Type::getFloatTy(holes_.context())),
      i32(llvm::Type::getInt32Ty(holes_.context())),
      i64(llvm::Type::getInt64Ty(holes_.context())) {}

llvm::Constant* SliceParts::word(std::int64_t value) const { return llvm::ConstantInt::get(i32, value); }
llvm::Constant* SliceParts::wide(std::int64_t value) const { return llvm::ConstantInt::get(i64, value); }

Value* SliceParts::sum_address(HoleBody& body, int slot) const {
  return body.CreateConstInBoundsGEP1_32(f32, body.argument(0), slot);
}
Value* SliceParts::load_sum(HoleBody& body, int slot) const {
  return body.CreateLoad(is_running(slot) ? i32 : f32, sum_address(body, slot));
}

void SliceParts::call(llvm::IRBuilder<>& builder, llvm::StringRef primitive, std::initializer_list<int> values) {
  std::vector<llvm::Type*> types(values.size(), i32);
  std::vector<Value*> arguments;
  for (const int value : values) arguments.push_back(word(value));
  llvm::FunctionCallee callee =
      holes.module().getOrInsertFunction(primitive, llvm::FunctionType::get(builder.getVoidTy(), types, false));
  builder.CreateCall(callee, arguments);
}

llvm::FunctionCallee SliceParts::action(llvm::StringRef primitive) {
  return holes.module().getOrInsertFunction(primitive,
                                            llvm::FunctionType::get(llvm::Type::getVoidTy(holes.context()), false));
}

Function* SliceParts::inlined(llvm::StringRef name) {
  Function* piece = holes.piece(name);
  piece->addFnAttr(llvm::Attribute::AlwaysInline);
  return piece;
}

}  // namespace burin
