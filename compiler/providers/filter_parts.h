// Parts of a filter that kernels multiply one after the other (templates/kernels/filter_parts.h): a filter that reaches
// far reads more of the image than there is room for, but each of its parts does not.
#pragma once

#include <vector>

#include "ir/conv_layer.h"

namespace burin {

// All rows of the filter, or one; all its columns, or one.
struct FilterPart {
  int rows = 1, cols = 1;

  friend bool operator==(const FilterPart&, const FilterPart&) = default;
};

bool is_part(const FilterPart& part, const ConvShape& shape);
int count_parts(const FilterPart& part, const ConvShape& shape);

// A position of the filter: of which part, in their order, and which of its positions.
struct PartPosition {
  int part = 0, position = 0;
};
PartPosition part_position(const FilterPart& part, const ConvShape& shape, int row, int col);

// What the search for a plan tries: parts only of filters with a dilation, or where the whole filter had no plan.
std::vector<FilterPart> proposed_parts(const ConvShape& shape, bool whole_has_plan);

// Parts that read nothing but padding are left out, tile by tile: this is the share of the others over all tiles of so
// many rows and columns of the convolution.
double share_that_reads(const FilterPart& part, const ConvShape& shape, int tile_rows, int tile_cols);

}  // namespace burin
