#pragma once

#include "ir/named_enum.h"

namespace burin {

// What becomes of a pair of QuantizeLinear and DequantizeLinear around an activation: it is computed as the quantized
// network computes it, or left out.
enum class QuantizedPairs { simulate, drop };
constexpr EnumNames<2> names_of(QuantizedPairs) { return {"what becomes of quantized pairs", {"simulate", "drop"}}; }

}  // namespace burin
