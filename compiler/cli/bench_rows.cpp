#include "compiler/cli/bench_rows.h"

#include <set>
#include <utility>

#include "compiler/cli/arguments.h"
#include "compiler/import/names.h"
#include "compiler/providers/provider.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"
#include "ir/text.h"

namespace burin {
namespace {

// "0,0.5,0.9"
std::vector<double> parse_dead(const std::string& text) {
  std::vector<double> shares;
  for (const std::string& item : split_list("--dead", text)) {
    const std::optional<double> share = parse_number<double>(item);
    if (!share || !(*share >= 0 && *share <= 1)) {
      fail(ErrorKind::usage, "--dead '{}': '{}' is not a share from 0 to 1, such as 0.5", text, item);
    }
    shares.push_back(*share);
  }
  return shares;
}

// Steps of the programs that are no convolutions, in their order: those of each program at its own batch size, or at
// each of `batches` those of the program that would run as many.
std::vector<BenchRow> rows_of_steps(const ManifestIndex& index, const std::optional<std::string>& layer,
                                    const std::vector<int>& batches) {
  const std::vector<const Program*>& programs = index.programs(kNetworkName);
  std::vector<std::pair<const Program*, int>> runs;
  if (batches.empty()) {
    for (const Program* program : programs) runs.emplace_back(program, program->batch);
  } else if (!programs.empty()) {
    for (const int batch : batches) runs.emplace_back(&program_for(programs, batch), batch);
  }
  std::vector<BenchRow> rows;
  std::set<std::pair<const Kernel*, int>> known;  // several steps may launch one kernel
  for (const auto& [program, batch] : runs) {
    for (const Step& step : program->steps) {
      const Kernel& kernel = index.kernel(step.kernel);
      if (kernel.is_convolution() || !matches(layer, kernel.op) || !known.emplace(&kernel, batch).second) continue;
      const Provider* provider = find_provider(kernel.provider);
      if (provider == nullptr) continue;
      const std::optional<LibraryTask> task = provider->library_task(kernel, batch);
      if (task) rows.push_back({.kernel = &kernel, .batch = batch, .task = *task});
    }
  }
  return rows;
}

}  // namespace

std::vector<CudnnMode> modes_for(const Kernel& kernel) {
  const ElementType element = kernel.form.input().element;
  const CudnnMode own = element == ElementType::f32   ? CudnnMode::fp32
                        : element == ElementType::f16 ? CudnnMode::fp16
                                                      : CudnnMode::bf16;
  if (!kernel.is_convolution()) return {own};
  return {own, CudnnMode::tf32};
}

std::vector<BenchRow> choose_rows(const Manifest& manifest, const std::optional<std::string>& layer,
                                  const std::vector<int>& batches, RowsOf of) {
  std::vector<BenchRow> rows;
  const ManifestIndex index(manifest);
  const auto add = [&](const Kernel& kernel, int batch) {
    rows.push_back({.kernel = &kernel, .batch = batch, .task = kernel.layer->shape});
  };
  if (batches.empty()) {
    for (const Kernel& kernel : manifest.kernels) {
      if (kernel.is_convolution() && matches(layer, kernel.op)) add(kernel, kernel.planned_batch);
    }
  } else {
    for (const std::string& name : index.convolutions()) {
      if (!matches(layer, name)) continue;
      for (const int batch : batches) add(*index.kernel_for(name, batch), batch);
    }
  }
  if (of == RowsOf::all_that_libraries_do) {
    for (BenchRow& row : rows_of_steps(index, layer, batches)) rows.push_back(std::move(row));
  }
  if (rows.empty() && layer) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer);
  return rows;
}

std::vector<BenchRow> with_dead_inputs(const std::vector<BenchRow>& rows, const std::string& text) {
  const std::vector<double> shares = parse_dead(text);
  std::vector<BenchRow> all;
  for (const BenchRow& row : rows) {
    if (!row.kernel->form.has(TensorRole::input_map)) {
      fail(ErrorKind::usage,
           "--dead {}: kernel {} of layer '{}' skips nothing: it has no activity map of its input; compile it with "
           "--skip-dead-tiles",
           text, row.kernel->symbol, row.kernel->op);
    }
    all.push_back(row);
    for (const double share : shares) {
      all.push_back(row);
      all.back().dead = share;
    }
  }
  return all;
}

}  // namespace burin
