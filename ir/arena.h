// Where buffers lie in one arena: the tensors of a network, the partial sums of its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace burin {

struct ArenaLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

// The largest buffer first, each into the smallest gap that holds it between those it may not share bytes with, else
// behind them. `conflict(a, b)` is symmetric. Offsets are multiples of `alignment`.
ArenaLayout lay_out_arena(const std::vector<std::int64_t>& bytes, std::int64_t alignment,
                          const std::function<bool(int, int)>& conflict);

struct Program;

// Where partial sums lie of which each step of the program has so many bytes: those of steps that can never run at the
// same time share bytes. Steps without any have the offset 0.
ArenaLayout lay_out_partials(const Program& program, const std::vector<std::int64_t>& bytes);

}  // namespace burin
