// What the tests of convolutions on tensor cores share.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "test/providers/provider_cases.h"

namespace burin_test {

// With weights that the type can hold, so that their rounding is no error.
burin::ConvLayer with_weights_of(burin::FactorType factors, burin::ConvLayer layer);

// Edges have few channels: here they have so many times more, and a part of the pattern in each.
burin::ConvLayer with_more_channels(const burin::ConvLayer& source, int factor);

// It is an output's, as a share of 1 + its magnitude: roundings of FP32 sums, whose order tensor cores choose.
double sum_tolerance(const burin::ConvLayer& layer);

// Whose filters reach far, or beyond the image: layers of few channels, and of two groups.
std::vector<burin::ConvLayer> far_reaching_layers();

// Choices of a plan: the parts that the layer's filter may be multiplied in.
std::vector<std::string> choices_of_parts(const burin::ConvLayer& layer);

// A pool of square windows.
burin::Pool window_of(burin::PoolKind kind, int kernel, int stride, int pad = 0);

// The layer alone on tensors of halves in n8c8hw, its weights rounded to them.
OperatorCase in_octets(const burin::ConvLayer& source, burin::ElementType element);

// "first second third"
std::set<std::string> names_of_edges(const std::string& list);

// A group of fewer than 16 channels leaves a tile of tensor cores half empty.
const std::set<std::string>& edges_of_small_groups();
// Those of depthwise convolutions and the like.
const std::set<std::string>& edges_of_depthwise();

}  // namespace burin_test
