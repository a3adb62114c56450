// Products of warpgroups. An instruction names each register of its sums, as many as its octets ask for; so it is
// written here, where the octets are constants, and not in templates/device_nvptx.cu.
#pragma once

#include <llvm/IR/Module.h>

#include <string_view>

namespace burin {

// Whether a module multiplies with warpgroups: then its code is for one architecture and none after it.
bool uses_group_products(const llvm::Module& module);

// Whether a function is one that is written here: device_nvptx.cu calls it.
bool is_group_product(std::string_view function);

// Writes them, after the primitives were inlined, and puts the sums in registers.
void write_group_products(llvm::Module& module);

}  // namespace burin
