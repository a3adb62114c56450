// Specialise: the template's holes are filled with one clone of its `tap` per nonzero, indices and weights as
// constants. The result is complete but for the device primitives (templates/device.h), which are still calls: the
// GPU and the host executor resolve them each in their own way.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <string_view>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"
#include "ir/sparse_pattern.h"

namespace burin {

struct SpecialisedModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::string symbol;  // the kernel's entry
};

// `layer`'s plan and pattern must verify together. `symbol` becomes the entry's name.
SpecialisedModule specialise(const ConvLayer& layer, const SparsePattern& pattern, const BakedPlan& plan,
                             const std::string& symbol);

// The template as it is before its holes are filled: the dump's 40-template.ll.
std::string print_template(const BakedPlan& plan, const ConvShape& shape);

std::string print(const SpecialisedModule& specialised);
// An edited print() from `file`. Throws Error(bad_input) with LLVM's message, or when the entry is not in it.
SpecialisedModule parse_specialised(std::string_view text, const std::string& symbol, const std::string& file);

// For the package: without the names of local values.
std::string to_bitcode(const SpecialisedModule& specialised);

}  // namespace burin
