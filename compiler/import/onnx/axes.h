// Axes and extents that nodes name: of activations, batch included, and of constants.
#pragma once

#include <optional>

#include "compiler/import/onnx/constant_tensor.h"
#include "compiler/import/onnx/node.h"

namespace burin {

inline constexpr int kAxesAreAnInput = 13;  // of Squeeze and Unsqueeze, from this opset on

// Puts the batch before the shape of an image, as an axis of extent 1: ONNX counts axes by that.
Extents with_batch(const Extents& shape);

// An axis counted from the front. Throws Error(bad_input) for none of `rank`.
std::int64_t axis_of(const Node& node, std::int64_t axis, std::int64_t rank);
// What an axis of a tensor is whose batch is axis `batch`, when the batch is put first; 0 is the batch.
std::int64_t with_batch_first(std::int64_t axis, std::int64_t batch);
// Sorted and counted from the front, each once.
Extents axes_of(const Node& node, Extents axes, std::int64_t rank);

// The extents that a Reshape asks for, with its zeros and its one -1 resolved. `copied`: extents that a zero takes
// over; `elements`: of all that is asked for.
Extents resolve(const Node& node, const Extents& wanted, const Extents& copied, std::int64_t elements);
// Without the axes, each of which must be of extent 1.
Extents squeezed(const Node& node, Extents shape, const Extents& axes);
// The attribute 'perm' of a Transpose of so many axes: each once.
Extents read_order(const Node& node, std::size_t rank);

}  // namespace burin
