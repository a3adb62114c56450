#include "compiler/cli/report/report_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "compiler/cli/candidates.h"
#include "compiler/cli/inspect_choices.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/report/dump_links.h"
#include "compiler/cli/tuning_report.h"
#include "compiler/providers/conv_baked/plan/cost_model.h"
#include "ir/arch.h"
#include "ir/package/manifest_index.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kReportVersion = 1;

// What of a multiprocessor's warps the kernel's blocks can fill at once, as registers, threads and shared memory allow;
// null where one of them is not known.
nlohmann::ordered_json occupancy_json(const Kernel& kernel, const KernelBinary& code) {
  const LaunchGeometry& launch = kernel.form.launch;
  const std::optional<ArchName> name = parse_arch_name(code.arch);
  const ArchSpec* arch = name ? find_arch(fmt::format("sm_{}", name->compute)) : nullptr;
  if (arch == nullptr || code.registers < 1 || code.registers > arch->max_registers_per_thread || launch.threads < 1) {
    return nullptr;
  }
  const int blocks = resident_blocks(launch.threads, code.registers, launch.shared_bytes, *arch);
  const auto warps = static_cast<int>(ceil_div(launch.threads, kWarpSize));
  const int most_warps = arch->max_threads_per_multiprocessor / kWarpSize;
  return {{"blocks", blocks},
          {"warps", blocks * warps},
          {"most_warps", most_warps},
          {"share", static_cast<double>(blocks * warps) / most_warps}};
}

// cuDNN computes a layer in the precision of the kernel's own tensors.
std::string_view cudnn_mode_of(const Kernel& kernel) {
  const ElementType element = kernel.form.input().element;
  return element == ElementType::f16 ? "fp16" : element == ElementType::bf16 ? "bf16" : "fp32";
}

struct StepTime {
  std::optional<double> us = {};
  std::string_view source = {};  // "network", "layer" (both by bench), "tuning", "model"; empty: not known
};

class ReportWriter {
 public:
  ReportWriter(const Package& package, const BenchFigures& bench, const ReportOptions& options,
               std::vector<std::string>& notes)
      : package_(package),
        manifest_(package.manifest),
        bench_(bench),
        options_(options),
        notes_(notes),
        index_(manifest_),
        memory_(device_memory(manifest_, options.arch)) {}

  nlohmann::ordered_json document() {
    add_kernels();
    nlohmann::ordered_json programs = nlohmann::ordered_json::array();
    for (const Program& program : manifest_.programs) programs.push_back(program_json(program));
    return {{"report", kReportVersion},        {"package", package_json()},
            {"measured_on", bench_.devices()}, {"notes", notes_},
            {"kernels", std::move(kernels_)},  {"candidates", std::move(candidates_)},
            {"programs", std::move(programs)}};
  }

 private:
  nlohmann::ordered_json package_json() const {
    return {{"name", std::filesystem::path(options_.package).filename().string()},
            {"bytes", std::filesystem::file_size(options_.package)},
            {"source", manifest_.source},
            {"tool", manifest_.tool_version},
            {"whole_network", !holds_layers(manifest_)}};
  }

  void add_kernels() {
    std::map<std::string, std::vector<DumpLink>> links;
    if (options_.dump_dir) links = dump_links(package_, *options_.dump_dir, options_.beside, notes_);
    for (const Kernel& kernel : manifest_.kernels) {
      kernel_numbers_[kernel.symbol] = static_cast<int>(kernels_.size());
      const KernelBinary code = described_code(kernel, options_.arch);
      nlohmann::ordered_json entry = kernel_json(kernel, options_.arch);
      entry["precision"] = kernel.precision;
      entry["kept_in_fp32"] = kernel.kept_in_fp32;
      entry["edited"] = kernel.edited;
      entry["threads"] = kernel.form.launch.threads;
      entry["shared_bytes"] = kernel.form.launch.shared_bytes;
      entry["occupancy"] = occupancy_json(kernel, code);
      entry["layer"] = layer_json(kernel, code);
      entry["dumps"] = nlohmann::ordered_json::array();
      for (const DumpLink& link : links[kernel.symbol]) {
        entry["dumps"].push_back({{"name", link.name}, {"href", link.href}});
      }
      kernels_.push_back(std::move(entry));
    }
  }

  static nlohmann::ordered_json layer_json(const Kernel& kernel, const KernelBinary& code) {
    if (!kernel.layer) return nullptr;
    const InspectRow row{kernel, code};
    nlohmann::ordered_json entry = {{"short", short_shape(kernel.layer->shape)}};
    add_layer(entry, row);
    const WeightForms forms = row.forms();
    entry["weights"] = kernel.layer->shape.weight_elements();
    entry["csr_bytes"] = forms.csr_bytes;
    entry["dense_bytes"] = forms.dense_bytes;
    return entry;
  }

  StepTime time_of(const Program& program, std::size_t step, const Kernel& kernel,
                   const StepCandidates& candidates) const {
    const NetworkFigures* network = program.name == kNetworkName ? bench_.network(program.batch) : nullptr;
    if (network != nullptr) return {network->steps_us[step], "network"};
    if (const LayerFigures* layer = bench_.layer(kernel.symbol, program.batch)) return {layer->us, "layer"};
    const StepCandidate& chosen = candidates.chosen();
    if (chosen.measured_us) return {chosen.measured_us, "tuning"};
    if (chosen.predicted_us) return {chosen.predicted_us, "model"};
    return {};
  }

  // What a dense kernel takes for the same step, and what the step's own takes by the same clock: cuDNN in the same run
  // where that was measured, else the best dense one of the candidates, which may be the step's own. Null where there
  // is neither.
  nlohmann::ordered_json dense_json(const Program& program, const Kernel& kernel,
                                    const StepCandidates& candidates) const {
    const auto entry = [](const std::string& name, double us, double own_us, std::string_view source) {
      nlohmann::ordered_json dense = {{"itself", false}, {"name", name}, {"us", us}, {"own_us", own_us}};
      dense["ratio"] = own_us > 0 ? nlohmann::ordered_json(us / own_us) : nlohmann::ordered_json();
      dense["source"] = source;
      return dense;
    };
    if (const LayerFigures* layer = bench_.layer(kernel.symbol, program.batch)) {
      const auto found = std::ranges::find(layer->cudnn, cudnn_mode_of(kernel), &CudnnFigure::mode);
      if (found != layer->cudnn.end()) {
        return entry(fmt::format("cuDNN {} ({})", found->mode, found->algorithm), found->us, layer->us, "layer");
      }
    }
    const StepCandidate* dense = candidates.best_dense();
    if (dense == nullptr) return nullptr;
    const StepCandidate& chosen = candidates.chosen();
    if (dense == &chosen) return {{"itself", true}};
    if (dense->measured_us && chosen.measured_us) {
      return entry(dense->provider, *dense->measured_us, *chosen.measured_us, "tuning");
    }
    if (!dense->predicted_us || !chosen.predicted_us) return nullptr;
    return entry(dense->provider, *dense->predicted_us, *chosen.predicted_us, "model");
  }

  nlohmann::ordered_json cudnn_json(const Program& program, const Kernel& kernel) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const LayerFigures* layer = bench_.layer(kernel.symbol, program.batch);
    if (layer == nullptr) return list;
    for (const CudnnFigure& figure : layer->cudnn) {
      list.push_back({{"mode", figure.mode}, {"us", figure.us}, {"algorithm", figure.algorithm}});
    }
    return list;
  }

  // A step's candidates, with their number in the document. Those of a tuned kernel are the same for all its steps of a
  // batch size, and stand there once.
  const std::pair<StepCandidates, int>& candidates_with_number(const Step& step, const Kernel& kernel, int batch) {
    const bool is_tuned = is_tuned_for(step, kernel, batch);
    const auto tuned = tuned_.find(kernel.symbol);
    if (is_tuned && tuned != tuned_.end()) return tuned->second;
    std::pair<StepCandidates, int>& place = is_tuned ? tuned_[kernel.symbol] : of_last_step_;
    place = {candidates_of(step, kernel, batch), static_cast<int>(candidates_.size())};
    candidates_.push_back({{"tuned", is_tuned},
                           {"device", is_tuned ? kernel.tuning->device : std::string()},
                           {"list", to_json(place.first)}});
    return place;
  }

  nlohmann::ordered_json program_json(const Program& program) {
    nlohmann::ordered_json entry = to_json(program);
    double sum_us = 0;
    std::map<std::string, int> sources;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      const Kernel& kernel = index_.kernel(step.kernel);
      const auto& [candidates, number] = candidates_with_number(step, kernel, program.batch);
      const StepTime time = time_of(program, i, kernel, candidates);
      nlohmann::ordered_json& shown = entry["steps"][i];
      shown["kernel"] = kernel_numbers_.at(step.kernel);
      shown.erase("options");  // they are among the candidates
      shown["us"] = known_json(time.us);
      shown["source"] = time.source;
      shown["candidates"] = number;
      shown["dense"] = dense_json(program, kernel, candidates);
      shown["cudnn"] = cudnn_json(program, kernel);
      shown["weight_zeros"] = weight_zeros_json(kernel.weight_zeros_of(program.batch));
      sum_us += time.us.value_or(0);
      ++sources[std::string(time.source)];
    }
    const NetworkFigures* network = program.name == kNetworkName ? bench_.network(program.batch) : nullptr;
    entry["sum_us"] = sum_us;
    entry["latency_us"] = network == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(network->latency_us);
    entry["sources"] = sources;
    const MemorySum& memory = memory_.programs[static_cast<std::size_t>(&program - manifest_.programs.data())].sum;
    entry["memory"] = {{"code_bytes", memory.code_bytes},
                       {"weight_bytes", memory.weight_bytes},
                       {"arena_bytes", memory.arena_bytes},
                       {"scratch_bytes", memory.scratch_bytes}};
    return entry;
  }

  const Package& package_;
  const Manifest& manifest_;
  const BenchFigures& bench_;
  const ReportOptions& options_;
  std::vector<std::string>& notes_;
  const ManifestIndex index_;
  const DeviceMemory memory_;
  std::map<std::string, int> kernel_numbers_;
  std::map<std::string, std::pair<StepCandidates, int>> tuned_;  // by the kernel's symbol
  std::pair<StepCandidates, int> of_last_step_;
  nlohmann::ordered_json kernels_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json candidates_ = nlohmann::ordered_json::array();
};

}  // namespace

nlohmann::ordered_json report_document(const Package& package, const BenchFigures& bench, const ReportOptions& options,
                                       std::vector<std::string>& notes) {
  return ReportWriter(package, bench, options, notes).document();
}

}  // namespace burin
