// WeightMatrix: the weights of a convolution or fully connected layer as a matrix, and what it takes in other forms
// than a kernel's.
#pragma once

#include <cstdint>

namespace burin {

struct WeightMatrix {
  std::int64_t rows = 0;     // outputs: channels, or features
  std::int64_t columns = 0;  // weights of each
  std::int64_t nonzeros = 0;

  std::int64_t dense_bytes(int value_bytes) const { return rows * columns * value_bytes; }
  // Compressed rows: for each nonzero its value and a column index, for each row and behind the last a pointer.
  std::int64_t csr_bytes(int value_bytes) const {
    constexpr std::int64_t kColumnBytes = 4, kRowPointerBytes = 4;
    return nonzeros * (value_bytes + kColumnBytes) + (rows + 1) * kRowPointerBytes;
  }
  bool operator==(const WeightMatrix&) const = default;
};

}  // namespace burin
