// The template's holes are filled with one clone of its `tap` per nonzero, indices and weights as constants.
#pragma once

#include <string>

#include "compiler/specialise/specialised_module.h"
#include "ir/baked_plan.h"
#include "ir/conv_layer.h"
#include "ir/sparse_pattern.h"

namespace burin {

// `layer`'s plan and pattern must verify together. `symbol` becomes the entry's name.
SpecialisedModule specialise_baked(const ConvLayer& layer, const SparsePattern& pattern, const BakedPlan& plan,
                                   const std::string& symbol);

// The template as it is before its holes are filled: the dump's 40-template.ll.
std::string print_template(const BakedPlan& plan, const ConvShape& shape);

}  // namespace burin
