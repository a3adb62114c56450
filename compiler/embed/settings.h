// From the settings of the public interface to the options of the pipeline, and the way through it that the tool and
// programs that embed the compiler share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/burin/compiler.hpp"
#include "compiler/calibrate/calibrate.h"
#include "compiler/compile.h"
#include "compiler/tune/tune.h"
#include "ir/tensor_layout.h"

namespace burin {

// Throws unless `value` is one of `known`.
void check_choice(const std::string& option, const std::string& value, const std::vector<std::string>& known);

// One of known_names<TensorLayout>(), of --layout.
TensorLayout parse_layout(const std::string& text);

// All but what a cache and tuning add; `others`: what no setting says. Throws Error for a text that means nothing.
CompileOptions options_of(const CompileSettings& settings, CompileOptions others = {});

// Throws Error(usage) for settings of calibration that would do nothing. `has_inputs`: whether it is given inputs.
void check_calibration(const CompileSettings& settings, bool has_inputs);

struct PipelineWatch {
  std::function<void(const CalibrateProgress&)> calibrating;
  std::function<void(const TuneProgress&)> tuning;
  std::function<void(const CompileProgress&)> compiling;
};
// Calibrates and tunes where the settings ask for it, and compiles, with the settings' cache. `options` come from
// options_of(); the caller may have added to them. `network` is as it was imported.
CompileResult run_pipeline(Network network, CompileOptions options, const CompileSettings& settings,
                           const PipelineWatch& watch);

}  // namespace burin
