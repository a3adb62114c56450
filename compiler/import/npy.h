// .npy: one array (NumPy format versions 1, 2 and 3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/import/weights_tensor.h"

namespace burin {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr std::size_t kMaxNpyHeaderBytes = 1 << 16;  // NumPy itself writes about a hundred
inline constexpr std::size_t kMaxNpyRank = 32;              // NumPy's own limit

struct NpyHeader {
  WeightsTensor tensor;         // without bytes
  bool text = false;            // an array of strings ('U' or 'S'): type is `other`
  std::size_t data_offset = 0;  // of the first element
  std::size_t data_bytes = 0;   // that the shape asks for
};

// Reads the header at the start of `bytes`, which may end anywhere after it. `where` starts every message. Throws
// Error(bad_input).
NpyHeader parse_npy_header(std::string_view bytes, const std::string& where);

// A whole file. The tensor views `bytes`; `where` becomes its file.
WeightsTensor parse_npy(std::string_view bytes, const std::string& where, const std::string& name);

// The one string of a 0-dimensional string array ('U': UCS-4, 'S': bytes) as UTF-8.
std::string npy_string(const NpyHeader& header, std::string_view data, const std::string& where);

}  // namespace burin
