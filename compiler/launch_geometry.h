// How a plan's kernel is launched: what the runtime and the host executor need to know of it.
#pragma once

#include "ir/kernel_plan.h"
#include "ir/package/manifest.h"

namespace burin {

// The plan must verify with the shape.
LaunchGeometry launch_geometry(const KernelPlan& plan, const ConvShape& shape);

}  // namespace burin
