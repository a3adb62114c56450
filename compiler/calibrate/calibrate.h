// Which convolutions stay in FP32: what half precision does to a network is measured on sample inputs, in float64, and
// those that it harms most keep their digits.
//
// Stands behind simplify() and before all that makes kernels: their tasks follow from the precisions. docs/pipeline.md
// tells how it decides.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/burin/compiler.hpp"
#include "compiler/options.h"
#include "compiler/program_graphs.h"
#include "ir/network.h"

namespace burin {

// What rounding may move an output by, as a share of its size. A value in FP16 is off by up to 4.9e-4 of itself, and
// the errors of layers that follow each other add up as their squares do: fifty sound ones stay below 1e-2.
inline constexpr double kDefaultMaxError = 1e-2;

struct CalibrateOptions {
  AskedPrecisions precisions;            // what is left open is chosen
  std::vector<CalibrationInput> inputs;  // of every input of the network; empty: random ones
  double max_error = kDefaultMaxError;   // of the outputs, where a precision is left open
};

struct CalibrateProgress {
  int done = 0, total = 0;  // images through graphs; fewer may do
  std::string what;
};

struct Calibrated {
  LayerPrecisions precisions;
  std::map<std::string, std::string> kept;  // convolutions that stay in FP32: why
  double error = 0;                         // of the outputs then, as --max-error bounds it
  std::string note;                         // what was measured and decided, in a sentence
};

// The graphs that a network with such precisions is compiled as: passes that join layers go by estimates.
using CompiledGraphs = std::function<ProgramGraphs(const LayerPrecisions& precisions)>;

// `network` is as simple as it gets, but that each layer is one by itself, and `compiled` makes graphs of the same
// inputs and outputs of it, on which the bound is held; where the layers are separate it is of each by itself, and
// nothing is joined. `options` say batch sizes and layouts. Throws Error(bad_input) for inputs that do not fit the
// network, Error(unsupported) where a tensor overflows in a precision that was asked for, or where the bound cannot be
// kept. `progress` may be empty.
Calibrated calibrate(const Network& network, const CompileOptions& options, const CalibrateOptions& asked,
                     const CompiledGraphs& compiled, const std::function<void(const CalibrateProgress&)>& progress);

}  // namespace burin
