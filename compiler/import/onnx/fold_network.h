// Constants that a network would compute: the operators of activations, evaluated by the reference.
#pragma once

#include "compiler/import/import.h"
#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/folds.h"

namespace burin {

// The output of a node whose inputs are constants and which has no fold of its own. It is converted as if the first of
// them were computed, and run_reference_operator() evaluates what comes of that, in double. The first axis of a
// constant is the batch then: what no network may do to its batch is refused here too. `boolean`: whether it gives
// such.
ConstantTensor fold_as_network(const FoldInputs& in, const Converter& converter, bool boolean,
                               const ImportOptions& options);

}  // namespace burin
