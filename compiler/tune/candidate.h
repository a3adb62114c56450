// A plan into a package of one kernel that can be measured: exactly the code that the plan would get in a package.
#pragma once

#include <string>
#include <vector>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"
#include "ir/package/package.h"

namespace burin {

// `archs`: of the package that is tuned for; `arch`: the one of them that it is measured on. Throws Error. Thread-safe.
Package compile_candidate(const ConvLayer& layer, const BakedPlan& plan, const std::vector<std::string>& archs,
                          const std::string& arch);

}  // namespace burin
