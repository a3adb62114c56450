#include "compiler/cli/inspect_rows.h"

#include "compiler/choose/choose.h"
#include "compiler/cli/console.h"
#include "compiler/import/names.h"
#include "compiler/make_kernel.h"
#include "compiler/program_tasks.h"
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

namespace {

InspectRow row_of(const Kernel& kernel, const std::optional<std::string>& arch) {
  InspectRow row;
  row.layer = kernel.op;
  row.symbol = kernel.symbol;
  row.provider = kernel.provider;
  row.precision = kernel.precision;
  row.plan = kernel.plan_short;
  row.shape = kernel.layer->shape;
  row.batch = kernel.planned_batch;
  row.nonzeros = kernel.layer->nonzeros;
  row.dead_inputs = kernel.layer->dead_inputs;
  row.dead_outputs = kernel.layer->dead_outputs;
  row.predicted_us = kernel.predicted_us;
  row.input_layout = kernel.form.input().layout;
  row.output_layout = kernel.form.output().layout;
  row.tuning = kernel.tuning;
  for (const KernelBinary& binary : kernel.binaries) {
    if (binary.kind != BinaryKind::cubin || (arch && binary.arch != *arch)) continue;
    row.arch = binary.arch;
    row.registers = binary.registers;
    row.spill_bytes = binary.spill_bytes;
    row.code_bytes = binary.code_bytes;
    break;
  }
  return row;
}

}  // namespace

std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch) {
  std::vector<InspectRow> rows;
  for (const Kernel& kernel : package.manifest.kernels) {
    if (kernel.is_convolution() && matches(layer_glob, kernel.op)) rows.push_back(row_of(kernel, arch));
  }
  if (rows.empty() && layer_glob) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer_glob);
  return rows;
}

std::vector<InspectRow> rows_of_network(const Network& network, const CompileOptions& options) {
  std::vector<InspectRow> rows;
  ProgressBar progress("planning");
  const int total = static_cast<int>(network.layers.size() * options.batches.size());
  for (const ConvLayer& layer : network.layers) {
    const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
    for (const int batch : options.batches) {
      progress.update(static_cast<int>(rows.size()), total, layer.name);
      const Task task = task_of(op, layer, batch, options);
      const Candidate candidate = choose(task, options).candidate;
      const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
      rows.push_back(row_of(describe_kernel(task, candidate, recipe, candidate.symbol).kernel, std::nullopt));
      progress.finished(fmt::format("{} b{} ({} of {})", layer.name, batch, rows.size(), total));
    }
  }
  return rows;
}

}  // namespace burin
