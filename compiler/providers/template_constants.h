// Turns a template's list of constants (name.def), which its device code includes as well, into a table:
//
//   const std::vector<TemplateConstant> kConstants = {
//   #include "compiler/providers/pool/pool.def"
//   };
//
// One file of a provider includes this, after everything else.
#pragma once

#include <cstdint>

#include "ir/limits.h"
#include "ir/template_plan.h"

namespace burin {

inline constexpr std::int64_t kWordsMax = kMaxImageBytes / kWordBytes;  // of an image: a name that the lists use

}  // namespace burin

#define BURIN_INTEGER(name, low, high) {#name, false, low, high},
#define BURIN_REAL(name) {#name, true},
