#include "compiler/cli/inspect_rows.h"

#include <algorithm>

#include "compiler/choose/choose.h"
#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/import/names.h"
#include "compiler/make_kernel.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"

namespace burin {

KernelBinary described_code(const Kernel& kernel, const std::optional<std::string>& arch) {
  const auto fits = [&](const KernelBinary& binary) {
    return binary.kind == BinaryKind::cubin && (!arch || binary.arch == *arch);
  };
  const auto found = std::ranges::find_if(kernel.binaries, fits);
  return found == kernel.binaries.end() ? KernelBinary{} : *found;
}

double InspectRow::sparsity() const {
  const std::int64_t weights = kernel.layer->shape.weight_elements();
  return weights == 0 ? 0.0 : 1.0 - static_cast<double>(kernel.layer->nonzeros) / static_cast<double>(weights);
}

std::int64_t InspectRow::csr_bytes() const {
  constexpr std::int64_t kValueBytes = 4, kColumnBytes = 4, kRowPointerBytes = 4;
  const KernelLayer& layer = *kernel.layer;
  return layer.nonzeros * (kValueBytes + kColumnBytes) +
         (std::int64_t{layer.shape.out_channels} + 1) * kRowPointerBytes;
}

std::int64_t InspectRow::dense_bytes() const {
  return kernel.layer->shape.weight_elements() * static_cast<std::int64_t>(sizeof(float));
}

void add_sizes(nlohmann::ordered_json& entry, const InspectRow& row) {
  entry["registers"] = known_json(row.code.registers);
  entry["spill_bytes"] = known_json(row.code.spill_bytes);
  entry["code_bytes"] = known_json(row.code.code_bytes);
  entry["csr_bytes"] = row.csr_bytes();
  entry["dense_bytes"] = row.dense_bytes();
}

std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch) {
  std::vector<InspectRow> rows;
  for (const Kernel& kernel : package.manifest.kernels) {
    if (kernel.is_convolution() && matches(layer_glob, kernel.op))
      rows.push_back({kernel, described_code(kernel, arch)});
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
      rows.push_back({describe_kernel(task, candidate, recipe, candidate.symbol).kernel});
      progress.finished(fmt::format("{} b{} ({} of {})", layer.name, batch, rows.size(), total));
    }
  }
  return rows;
}

}  // namespace burin
