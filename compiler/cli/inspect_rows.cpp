#include "compiler/cli/inspect_rows.h"

#include <fstream>

#include "compiler/cli/console.h"
#include "compiler/import/names.h"
#include "ir/error.h"

namespace burin {

double InspectRow::sparsity() const {
  const std::int64_t weights = shape.weight_elements();
  return weights == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros) / static_cast<double>(weights);
}

std::int64_t InspectRow::csr_bytes() const {
  constexpr std::int64_t kValueBytes = 4, kColumnBytes = 4, kRowPointerBytes = 4;
  return nonzeros * (kValueBytes + kColumnBytes) + (std::int64_t{shape.out_channels} + 1) * kRowPointerBytes;
}

std::int64_t InspectRow::dense_bytes() const {
  return shape.weight_elements() * static_cast<std::int64_t>(sizeof(float));
}

bool is_package(const std::string& path) {
  if (path.ends_with(".burin")) return true;
  if (path.ends_with(".npz")) return false;
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic) && std::string_view(magic, sizeof magic) == "PK\x03\x04";
}

bool matches_layer(const std::optional<std::string>& glob, const std::string& name) {
  return !glob || glob_match(*glob, name);
}

std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch) {
  std::vector<InspectRow> rows;
  for (const KernelRecord& kernel : package.manifest.kernels) {
    if (!matches_layer(layer_glob, kernel.layer)) continue;
    InspectRow row;
    row.layer = kernel.layer;
    row.symbol = kernel.symbol;
    row.template_name = kernel.template_name;
    row.precision = kernel.precision;
    row.plan = kernel.plan_short;
    row.shape = kernel.shape;
    row.batch = kernel.planned_batch;
    row.nonzeros = kernel.nonzeros;
    row.dead_inputs = kernel.dead_inputs;
    row.dead_outputs = kernel.dead_outputs;
    row.predicted_us = kernel.predicted_us;
    row.input_layout = kernel.launch.input_layout;
    row.output_layout = kernel.launch.output_layout;
    row.tuning = kernel.tuning;
    for (const KernelBinary& binary : kernel.binaries) {
      if (binary.kind != BinaryKind::cubin || (arch && binary.arch != *arch)) continue;
      row.arch = binary.arch;
      row.registers = binary.registers;
      row.spill_bytes = binary.spill_bytes;
      row.code_bytes = binary.code_bytes;
      break;
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty() && layer_glob) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer_glob);
  return rows;
}

std::vector<InspectRow> rows_of_network(const Network& network, const std::vector<int>& batches, PlanRequest request) {
  std::vector<InspectRow> rows;
  ProgressBar progress("planning");
  const int total = static_cast<int>(network.layers.size() * batches.size());
  for (const ConvLayer& layer : network.layers) {
    const SparsePattern pattern = analyse(layer);
    for (const int batch : batches) {
      progress.update(static_cast<int>(rows.size()), total, layer.name);
      request.batch = batch;
      const KernelPlan plan = make_plan(layer, pattern, request);
      InspectRow row;
      row.layer = layer.name;
      row.symbol = kernel_symbol(layer.name, plan);
      row.template_name = plan.template_name;
      row.precision = to_string(plan.precision);
      row.plan = describe(plan);
      row.shape = layer.shape;
      row.batch = batch;
      row.nonzeros = pattern.statistics.nonzeros;
      row.dead_inputs = pattern.statistics.dead_inputs;
      row.dead_outputs = pattern.statistics.dead_outputs;
      row.predicted_us = plan.predicted_us;
      row.input_layout = plan.input_layout;
      row.output_layout = plan.output_layout;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace burin
