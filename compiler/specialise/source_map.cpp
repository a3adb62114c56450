#include "compiler/specialise/source_map.h"

#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>

namespace burin {
namespace {
constexpr const char* kFilterMetadata = "burin.filter";  // !{i32 rows, i32 columns}
}

SourceMapBuilder::SourceMapBuilder(llvm::Module& module, const ConvShape& shape)
    : module_(module), builder_(module), kernel_h_(shape.kernel_h), kernel_w_(shape.kernel_w) {
  file_ = builder_.createFile("20-pattern.txt", ".");
  // NoDebug: the locations are for burin's own use; no DWARF is written.
  builder_.createCompileUnit(llvm::dwarf::DW_LANG_C, file_, "burin", /*isOptimized=*/true, "", 0, "",
                             llvm::DICompileUnit::NoDebug);
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i32 = llvm::Type::getInt32Ty(context);
  const auto number = [&](int value) { return llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, value)); };
  module.getOrInsertNamedMetadata(kFilterMetadata)
      ->addOperand(llvm::MDNode::get(context, {number(kernel_h_), number(kernel_w_)}));
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

SourceMapBuilder::~SourceMapBuilder() { builder_.finalize(); }

llvm::DISubprogram* SourceMapBuilder::add_slice(int group, int split) {
  llvm::DISubroutineType* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  const std::string name = fmt::format("group{}_split{}", group, split);
  return builder_.createFunction(file_, name, name, file_, 0, type, 0, llvm::DINode::FlagZero,
                                 llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagLocalToUnit);
}

llvm::DebugLoc SourceMapBuilder::location(llvm::DISubprogram* slice, int c, int r, int s, int k) const {
  const unsigned line = (static_cast<unsigned>(c) * kernel_h_ + r) * kernel_w_ + s + 1;
  return llvm::DILocation::get(module_.getContext(), line, static_cast<unsigned>(k + 1), slice);
}

SourceMap::SourceMap(const llvm::Module& module) {
  const llvm::NamedMDNode* filter = module.getNamedMetadata(kFilterMetadata);
  if (filter == nullptr || filter->getNumOperands() != 1 || filter->getOperand(0)->getNumOperands() != 2) return;
  const auto number = [&](unsigned i) {
    const auto* value = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(filter->getOperand(0)->getOperand(i));
    return value == nullptr ? 0 : static_cast<int>(value->getZExtValue());
  };
  kernel_h_ = number(0);
  kernel_w_ = number(1);
}

std::optional<TapSource> SourceMap::find(const llvm::DebugLoc& location) const {
  if (!location || location.getLine() == 0 || kernel_h_ < 1 || kernel_w_ < 1) return std::nullopt;
  const int column = static_cast<int>(location.getLine()) - 1;
  return TapSource{column / (kernel_h_ * kernel_w_), column / kernel_w_ % kernel_h_, column % kernel_w_,
                   static_cast<int>(location.getCol()) - 1};
}

}  // namespace burin
