// The pipeline of one convolution's kernel.
#pragma once

#include <optional>
#include <string>

#include "compiler/compile.h"
#include "compiler/jobs.h"
#include "compiler/packaged_kernel.h"
#include "compiler/reentry.h"

namespace burin {

// Nothing when --stop-after stopped it.
std::optional<PackagedKernel> compile_layer(const LayerJob& job, const CompileOptions& options, const Reentry& reentry,
                                            const std::optional<std::string>& dump_folder);

}  // namespace burin
