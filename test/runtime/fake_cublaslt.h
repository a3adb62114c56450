// A cuBLASLt that takes as long as a test says, on the clock of the fake driver, and multiplies on the host, when the
// stream or the graph runs: matrices of floats or halves, column by column, as its descriptors say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace burin_test {

struct FakeCublasltMatrix {
  int type = 0;  // a cudaDataType
  std::uint64_t rows = 0, cols = 0;
  std::int64_t column_pitch = 0, batch_stride = 0;
  std::int32_t products = 1;
};

struct FakeCublasltState {
  enum class Refuses { nothing, proposals, proposal, product, capture };
  struct Algorithm {
    int launches = 1;  // of the fake driver: what it takes
    std::size_t workspace_bytes = 0;
  };
  std::array<Algorithm, 8> algorithms;  // in the order of its proposals
  int proposed = 8;                     // as many as it has for any product
  Refuses refuses = Refuses::nothing;
  int create_status = 0;

  // what it saw
  std::array<int, 8> runs{};  // of each algorithm
  int live_objects = 0;
  int compute = 0;                               // of the last product: a cublasComputeType_t
  std::uint32_t epilogue = 0;                    // the same
  bool transposed = false;                       // the same: A
  float beta = 0;                                // the same
  FakeCublasltMatrix a, b, c, d;                 // the same
  std::uint64_t most_workspace = 0;              // that the last proposals were asked for
  std::array<std::uint32_t, 4> alignments = {};  // the same: of A, B, C and D
  bool too_small_workspace = false;
  bool misaligned = false;     // a matrix whose address is no multiple of what the proposals were asked for
  bool misfit = false;         // matrices that cannot be multiplied, or lie over one another
  bool bad_attribute = false;  // one that is not known, or has another size
};

}  // namespace burin_test
