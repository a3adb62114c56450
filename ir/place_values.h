// What a tensor of a Program holds: float32, dense NCHW, images one after the other, from the memory of its buffer. The
// bytes of a map become floats, cell by cell.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

namespace burin {

// All of a buffer.
Place whole_place(const Program& program, const Buffer& buffer);

// Words from the beginning of the buffer to the last of the place, for `batch` images.
std::int64_t words_until_end(const Program& program, const Place& place, int batch);

// `memory` begins where the buffer does and holds at least words_until_end(), the last of which loose halves may fill
// in part. Halves become float32, and what a layout fills up is left out.
std::vector<float> read_place(const Program& program, const Place& place, int batch, std::span<const float> memory);
// What is wrong with the channels that fill up an image of the place, where these must be zero; empty: nothing is.
std::string filling_fault(const Program& program, const Place& place, int batch, std::span<const float> memory);
// The other way round; values are rounded to the element type, and what fills up becomes NaN, or zero where it must.
void write_place(const Program& program, const Place& place, int batch, std::span<const float> values,
                 std::span<float> memory);

}  // namespace burin
