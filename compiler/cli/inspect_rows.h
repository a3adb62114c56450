// What `burin inspect` shows: a row for each kernel of a package, or for each layer and batch size of a weights file;
// of a package that holds a whole network also its programs, step by step.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/arguments.h"
#include "compiler/cli/inspect_choices.h"
#include "compiler/options.h"
#include "compiler/program_graphs.h"
#include "ir/package/device_memory.h"
#include "ir/package/package.h"

namespace burin {

// Throws Error(usage) where the package has no machine code for `arch`, which was asked for.
void check_arch_of(const Package& package, const std::optional<std::string>& arch);

struct InspectRow {
  Kernel kernel;  // of a convolution
  KernelBinary code = {};

  double sparsity() const;
  WeightForms forms() const { return *weight_forms(kernel); }
};

// "43.1 %"; empty where it is not known.
std::string percent_text(const std::optional<double>& share);

// Say of a kernel that multiplies gathered columns how many of them live, and how many of the weights that it
// multiplies are no zeros: "43.1 %". Empty for others, and in JSON null.
std::string live_text(const Kernel& kernel);
std::string fill_text(const Kernel& kernel);
void add_multiplied(nlohmann::ordered_json& entry, const Kernel& kernel);

// "256x14x14 > 256, 3x3 s2 p1 d2 g32": what a table has room for.
std::string short_shape(const ConvShape& shape);

// Adds what a convolution computes: shape, zeros, dead channels.
void add_layer(nlohmann::ordered_json& entry, const InspectRow& row);
// Adds the figures of the row's code, and the bytes of the same weights in other forms. What is not known is null.
void add_sizes(nlohmann::ordered_json& entry, const InspectRow& row);

// The kernels whose layer matches. `arch` chooses the machine code that is described (default: the first).
std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch);

// A network's convolutions, and why each would have the kernel that it would have.
struct NetworkRows {
  std::vector<InspectRow> rows;
  std::vector<ChoiceRow> choices;
};
// Imports nothing more; analyses and chooses, for each layer by itself.
NetworkRows rows_of_network(const ProgramGraphs& graphs, const CompileOptions& options);

// "5.1 MB (code 1.2 MB, weights 3.4 MB, arena 0.5 MB, scratch 0 B); the layers' weights are 12.0 MB dense, ..."
std::string memory_text(const MemorySum& sum);

// Each batch size that programs were chosen for has a row: the program that runs it, and what that takes.
std::string batches_table(const Manifest& manifest);

// Inputs and outputs, then for each program its steps with the kernels that they launch, and its memory. What the
// assembler said is of the cubin for `arch`, or of the first. With `memory`, also where each tensor lies.
std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory);
// A kernel by itself, as network_json() has it.
nlohmann::ordered_json kernel_json(const Kernel& kernel, const std::optional<std::string>& arch);
nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch);

}  // namespace burin
