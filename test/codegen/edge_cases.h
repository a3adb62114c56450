// The edges of the convolution space, by name: edge_cases.def as a table.
#pragma once

#include <span>
#include <string_view>

#include "ir/conv_layer.h"

namespace burin_test {

struct EdgeCase {
  const char* name;
  burin::ConvLayer (*make_layer)();  // the same on every machine; the layer has the case's name
  int batch;                         // to plan for and to run
};

std::span<const EdgeCase> edge_cases();
const EdgeCase& edge_case(std::string_view name);

}  // namespace burin_test
