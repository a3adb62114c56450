// The source map: which nonzero an instruction was made from, kept as LLVM debug locations so that it survives every
// pass without changing what they do. A location's line is the column (c, r, s) of the weight matrix, counted from 1;
// its column is the output channel, counted from 1, or 0 for the load of an activation. One scope per slice.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "ir/conv_layer.h"

namespace burin {

inline constexpr int kNoOutput = -1;

class SourceMapBuilder {
 public:
  SourceMapBuilder(llvm::Module& module, const ConvShape& shape);
  ~SourceMapBuilder();

  llvm::DISubprogram* add_slice(int group, int split);
  // k: an output channel, or kNoOutput for a load.
  llvm::DebugLoc location(llvm::DISubprogram* slice, int c, int r, int s, int k) const;

 private:
  llvm::Module& module_;
  llvm::DIBuilder builder_;
  llvm::DIFile* file_ = nullptr;
  int kernel_h_, kernel_w_;
};

struct TapSource {
  int c = 0, r = 0, s = 0;
  int k = kNoOutput;
};

class SourceMap {
 public:
  // Reads the filter's size from the module; a module without it maps nothing.
  explicit SourceMap(const llvm::Module& module);
  std::optional<TapSource> find(const llvm::DebugLoc& location) const;

 private:
  int kernel_h_ = 0, kernel_w_ = 0;
};

}  // namespace burin
