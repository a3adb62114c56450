// Emit: the last step before PTX. Device primitives become instructions (templates/device_nvptx.cu), notes become
// comments, and LLVM's NVPTX back end writes the text.
#pragma once

#include <string>

#include "compiler/specialise/specialised_module.h"

namespace burin {

// PTX for `arch` ("sm_80") and everything later. `specialised` is left as it was.
std::string emit_ptx(const SpecialisedModule& specialised, const std::string& arch);

}  // namespace burin
