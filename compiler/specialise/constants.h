// A template's constants: functions without a body whose calls are replaced by numbers.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <string>

namespace burin {

// burin_const_NAME() becomes integers[NAME], burin_real_NAME() becomes reals[NAME]; the functions are gone afterwards.
// What the template does not use is passed over. A constant without a value is a fault of ours.
void fill_constants(llvm::Module& module, const std::map<std::string, std::int64_t>& integers,
                    const std::map<std::string, float>& reals);

}  // namespace burin
