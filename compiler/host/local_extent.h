// Which bytes around a pointer belong to the local variable or constant table that it points into, where that can be
// known at compile time.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace burin {

// [low, high), in bytes relative to the pointer.
struct Extent {
  std::int64_t low = 0, high = 0;
  bool writable = true;
};

// Functions are looked at together: the extent of an internal function's parameter is what all of its callers leave.
class LocalExtents {
 public:
  explicit LocalExtents(const llvm::DataLayout& layout) : layout_(layout) {}

  // Nothing for a pointer that may point elsewhere.
  std::optional<Extent> of(const llvm::Value* pointer);

 private:
  std::optional<Extent> find(const llvm::Value* pointer);
  std::optional<Extent> of_parameter(const llvm::Argument& parameter);
  std::optional<Extent> common(const std::vector<const llvm::Value*>& pointers);
  std::int64_t bytes(llvm::Type* type) const;

  const llvm::DataLayout& layout_;
  llvm::DenseMap<const llvm::Value*, std::optional<Extent>> known_;
};

}  // namespace burin
