// Emit: the last step before PTX. Device primitives become instructions (templates/device_nvptx.cu), notes become
// comments, and LLVM's NVPTX back end writes the text.
#pragma once

#include <string>

#include "compiler/specialise/specialised_module.h"

namespace burin {

// What code of the module for `arch` is for: the architecture and everything later, or with products of warpgroups
// that architecture alone, whose name then has the suffix 'a' ("sm_90a").
std::string code_arch(const SpecialisedModule& specialised, const std::string& arch);

// PTX for `arch` ("sm_80"), as code_arch() names it. `specialised` is left as it was.
std::string emit_ptx(const SpecialisedModule& specialised, const std::string& arch);

}  // namespace burin
