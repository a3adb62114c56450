// Inputs with dead channels, to try kernels with activity maps on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/activity_map.h"
#include "ir/conv_layer.h"

namespace burin {

// Sets the (cell, channel) blocks of a tensor in NCHW to zero: of all, the share `fraction`, rounded, drawn by `seed`,
// the same on every machine.
void kill_channels(const ActivityMap& map, const ActivityExtent& extent, std::span<float> nchw, double fraction,
                   std::uint64_t seed);

// What is wrong with a map that a kernel wrote, of which every byte was `unwritten` before: it must say of the kernel's
// own output, in NCHW, what is live. Empty: nothing is.
std::string map_fault(const ActivityMap& map, const ActivityExtent& extent, std::span<const std::uint8_t> bytes,
                      std::span<const float> output, std::uint8_t unwritten);

// Counts in which share of all tiles and input channels a kernel skips the channel: its input has the map `bytes`,
// cells of `cell`, and tiles of `tile`.
double skipped_share(const ConvShape& shape, int batch, const ActivityMap& tile, const ActivityMap& cell,
                     std::span<const std::uint8_t> bytes);

}  // namespace burin
