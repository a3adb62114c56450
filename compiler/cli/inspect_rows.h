// The rows of `burin inspect`: one for each kernel of a package, or for each layer and batch size of a weights file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/arguments.h"
#include "compiler/options.h"
#include "ir/package/package.h"

namespace burin {

struct InspectRow {
  std::string layer, symbol, provider, precision, plan;
  std::string arch;  // of the machine code that is described; empty where there is none
  ConvShape shape;
  int batch = 1;
  std::int64_t nonzeros = 0;
  int dead_inputs = 0, dead_outputs = 0;
  double predicted_us = 0;
  TensorLayout input_layout = TensorLayout::nchw, output_layout = TensorLayout::nchw;
  std::optional<TuningRecord> tuning;
  // -1: not known
  int registers = -1, spill_bytes = -1;
  std::int64_t code_bytes = -1;

  double sparsity() const;
  // What a compressed-row matrix of the same weights takes: a value and a column index of 4 bytes for each nonzero, a
  // row pointer of 4 bytes for each output channel and one more.
  std::int64_t csr_bytes() const;
  std::int64_t dense_bytes() const;
};

// The kernels whose layer matches. `arch` chooses the machine code that is described (default: the first).
std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch);

// Imports nothing more; analyses and chooses, for each layer by itself.
std::vector<InspectRow> rows_of_network(const Network& network, const CompileOptions& options);

}  // namespace burin
