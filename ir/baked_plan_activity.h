// The rules of a BakedPlan about activity maps.
#pragma once

#include <string>
#include <vector>

#include "ir/baked_plan.h"

namespace burin {

// The extent of the tensor that the input's map is of.
ActivityExtent input_extent(const ConvShape& shape, int batch);

// The shape must verify.
std::vector<std::string> activity_faults(const BakedPlan& plan, const ConvShape& shape);

// The cell of an input's map by default: the pixels that a tile covers, in places of the input. A producer with the
// same tiles makes that map.
ActivityMap default_cell(const BakedPlan& plan, const ConvShape& shape);

// BakedPlan::activity_bytes() of any plan at the most.
int most_activity_bytes(const ConvShape& shape);

// Rows or columns of input from the first to the last that `tile` outputs read.
int input_reach(int tile, int stride, int kernel, int dilation);

// The most cells of the input's map that a tile reads, by axis: images, rows, columns. All 1 where nothing is skipped.
// The plan must verify.
ActivityMap cells_read(const BakedPlan& plan, const ConvShape& shape);

}  // namespace burin
