// What `burin inspect` shows: a row for each kernel of a package, or for each layer and batch size of a weights file;
// of a package that holds a whole network also its programs, step by step.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/arguments.h"
#include "compiler/options.h"
#include "ir/package/package.h"

namespace burin {

// The machine code of a kernel that is described: that for `arch`, or the first. Where there is none, its name is empty
// and its figures are not known.
KernelBinary described_code(const Kernel& kernel, const std::optional<std::string>& arch);

// Throws Error(usage) where the package has no machine code for `arch`, which was asked for.
void check_arch_of(const Package& package, const std::optional<std::string>& arch);

struct InspectRow {
  Kernel kernel;  // of a convolution
  KernelBinary code = {};

  double sparsity() const;
  // What a compressed-row matrix of the same weights takes: a value and a column index of 4 bytes for each nonzero, a
  // row pointer of 4 bytes for each output channel and one more.
  std::int64_t csr_bytes() const;
  std::int64_t dense_bytes() const;
};

// Of a kernel that multiplies gathered columns: how many of them live, and how many of the weights that it multiplies
// are no zeros: "43.1 %". Empty for others, and in JSON null.
std::string live_text(const Kernel& kernel);
std::string fill_text(const Kernel& kernel);
void add_multiplied(nlohmann::ordered_json& entry, const Kernel& kernel);

// "256x14x14 > 256, 3x3 s2 p1 d2 g32": what a table has room for.
std::string short_shape(const ConvShape& shape);

// The bytes of a kernel's weights as data; 0: they are instructions, or there are none.
std::int64_t weight_bytes(const Kernel& kernel);

// Adds what a convolution computes: shape, zeros, dead channels.
void add_layer(nlohmann::ordered_json& entry, const InspectRow& row);
// Adds the figures of the row's code, and the bytes of the same weights in other forms. What is not known is null.
void add_sizes(nlohmann::ordered_json& entry, const InspectRow& row);

// The kernels whose layer matches. `arch` chooses the machine code that is described (default: the first).
std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch);

// Imports nothing more; analyses and chooses, for each layer by itself.
std::vector<InspectRow> rows_of_network(const Network& network, const CompileOptions& options);

// Inputs and outputs, then for each program its steps with the kernels that they launch, and its memory. What the
// assembler said is of the cubin for `arch`, or of the first. With `memory`, also where each tensor lies.
std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory);
// A kernel by itself, as network_json() has it.
nlohmann::ordered_json kernel_json(const Kernel& kernel, const std::optional<std::string>& arch);
nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch);

}  // namespace burin
