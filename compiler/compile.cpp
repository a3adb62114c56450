#include "compiler/compile.h"

#include <algorithm>
#include <filesystem>

#include "compiler/assemble/assemble.h"
#include "compiler/jobs.h"
#include "compiler/kernel_cache.h"
#include "compiler/network/simplify.h"
#include "compiler/observer.h"
#include "compiler/reentry.h"
#include "compiler/workshop.h"
#include "ir/error.h"

namespace burin {
namespace {

void add_leftover(Package& package, const Network& network) {
  for (std::size_t i = 0; i < network.leftover.size(); ++i) {
    const NamedTensor& tensor = network.leftover[i];
    const std::string path = fmt::format("tensors/{}.f32", i);
    package.manifest.tensors.push_back({tensor.name, path, tensor.shape});
    package.files[path] = {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
  }
}

// How the network runs, by the kernels that were made.
NetworkRecord describe_network(const Network& network, const Jobs& jobs, const Workshop& made) {
  NetworkRecord record;
  const auto argument = [&](int tensor) {
    const Activations& activations = network.tensors[static_cast<std::size_t>(tensor)];
    return NetworkArgument{activations.name, activations.shape};
  };
  for (const int input : network.inputs) record.inputs.push_back(argument(input));
  for (const int output : network.outputs) record.outputs.push_back(argument(output));
  for (const ProgramJobs& program : jobs.programs) {
    NetworkProgram& added = record.programs.emplace_back(NetworkProgram{program.plan, {}, program.options});
    for (std::size_t step = 0; step < program.plan.steps.size(); ++step) {
      const int layer = program.layers[step], op = program.operators[step];
      added.kernels.push_back(layer >= 0 ? made.layers[static_cast<std::size_t>(layer)]->record.symbol
                                         : made.operators[static_cast<std::size_t>(op)]->record.symbol);
    }
  }
  return record;
}

}  // namespace

PlanRequest plan_request(const CompileOptions& options, int batch) {
  PlanRequest request{batch, options.archs, options.plan_constraints};
  request.input_layout = request.output_layout = options.layout.value_or(TensorLayout::nchw);
  request.skip_dead_tiles = options.skip_dead_tiles;
  request.precision = parse_precision(options.precision).value_or(Precision::fp32);  // check_options() has seen it
  return request;
}

const TunedPlan* find_tuned(const std::vector<TunedPlan>& plans, const std::string& layer, int batch) {
  const auto found =
      std::ranges::find_if(plans, [&](const TunedPlan& plan) { return plan.layer == layer && plan.batch == batch; });
  return found == plans.end() ? nullptr : &*found;
}

Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const StaysApart& stays_apart) {
  if (!network.has_graph()) return network;
  std::optional<std::string> folder;
  if (dump_dir) folder = (std::filesystem::path(*dump_dir) / "network").string();
  Observer observer(folder, std::nullopt);
  observer.observe("import", "00-import.txt", [&] { return print(network); });
  int number = 0;
  const auto observe = [&](const std::string& pass, const Network& left, int) {
    observer.observe(pass, fmt::format("{:02}-{}.txt", ++number, pass), [&] { return print(left); });
  };
  return simplify(std::move(network), observe, stays_apart);
}

CompileResult compile_network(const Network& network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress) {
  check_options(network, options);
  const Reentry reentry = options.from_file ? read_reentry(*options.from_file) : Reentry{};
  const Jobs jobs = list_jobs(network, options);
  Workshop workshop(jobs, options, reentry, progress);
  workshop.run();

  CompileResult result;
  result.notes = network.notes;
  result.cached = workshop.cached;
  if (workshop.cache_failed) {
    result.notes.push_back(fmt::format("{}: the cache of kernels cannot be written to, so some will be compiled again",
                                       options.cache->folder()));
  }
  result.stopped_early =
      options.stop_after.has_value() && *options.stop_after != kStageNames[std::size(kStageNames) - 1];
  Manifest& manifest = result.package.manifest;
  manifest.tool_version = BURIN_VERSION;
  manifest.source = std::filesystem::path(network.source).filename().string();
  manifest.zero_threshold = options.zero_threshold;
  if (!jobs.programs.empty() && !result.stopped_early) manifest.network = describe_network(network, jobs, workshop);
  for (std::optional<PackagedKernel>& kernel : workshop.layers) {
    if (kernel) add_kernel(result.package, *std::move(kernel));
  }
  for (std::optional<PackagedOperator>& kernel : workshop.operators) {
    if (!kernel) continue;
    manifest.operators.push_back(std::move(kernel->record));
    for (auto& [path, content] : kernel->files) result.package.files[path] = std::move(content);
  }
  add_leftover(result.package, network);
  if (find_assembler().kind == AssemblerInfo::Kind::none && !result.stopped_early) {
    result.notes.push_back(
        "no assembler was found (nvJitLink or ptxas), so the package holds PTX only: the driver "
        "compiles it at the first load ('burin doctor' says where was looked)");
  }
  return result;
}

}  // namespace burin
