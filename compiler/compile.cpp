#include "compiler/compile.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "compiler/assemble/assemble.h"
#include "compiler/emit/kernel_report.h"
#include "compiler/emit/ptx.h"
#include "compiler/observer.h"
#include "compiler/packaged_kernel.h"
#include "compiler/plan/planner.h"
#include "compiler/reentry.h"
#include "compiler/source_hash.h"
#include "compiler/specialise/specialise.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

// One kernel to be made: a layer for a batch size.
struct Job {
  const ConvLayer* layer = nullptr;
  int batch = 1;
  std::string suffix;  // of symbol and folder: tells apart layers whose names reduce to the same
};

// Null when the plan was not chosen by measurement.
const TunedPlan* find_tuned(const std::vector<TunedPlan>& plans, const std::string& layer, int batch) {
  const auto found = std::find_if(plans.begin(), plans.end(),
                                  [&](const TunedPlan& plan) { return plan.layer == layer && plan.batch == batch; });
  return found == plans.end() ? nullptr : &*found;
}

// The pipeline of one kernel. Nothing when --stop-after stopped it.
std::optional<PackagedKernel> compile_kernel(const Job& job, const CompileOptions& options, const Reentry& reentry,
                                             const std::optional<std::string>& dump_folder) {
  const ConvLayer& layer = *job.layer;
  Observer observer(dump_folder, options.stop_after);
  if (observer.observe("layer", "10-layer.txt", [&] { return "name: " + layer.name + "\n" + print(layer.shape); })) {
    return std::nullopt;
  }

  const SparsePattern pattern = analyse(layer);
  if (observer.observe("pattern", "20-pattern.txt", [&] { return print(pattern); })) return std::nullopt;

  const TunedPlan* tuned = find_tuned(options.tuned, layer.name, job.batch);
  const KernelPlan plan = reentry.plan ? *reentry.plan
                          : tuned      ? tuned->plan
                                       : make_plan(layer, pattern, plan_request(options, job.batch));
  check_precision(plan, reentry, options.precision);
  check_layout(plan, layer, reentry, options.layout);
  check_activity(plan, reentry, options.skip_dead_tiles);
  check_plan(plan, layer, pattern, options.archs);
  if (observer.observe("plan", "30-plan.txt", [&] { return print(plan); })) return std::nullopt;
  if (observer.observe("template", "40-template.ll", [&] { return print_template(plan, layer.shape); })) {
    return std::nullopt;
  }

  const std::string symbol = kernel_symbol(layer.name, plan) + job.suffix;
  PackagedKernel kernel{describe_kernel(layer, pattern, plan, symbol), {}};
  if (tuned) kernel.record.tuning = tuned->evidence;
  kernel.record.source_hash = source_hash(layer, plan, reentry.module_text + reentry.ptx);
  const std::string ptx_arch = lowest_arch(options.archs);
  std::string ptx = edited_ptx(reentry, symbol);
  if (ptx.empty()) {
    const SpecialisedModule specialised = reentry.module_text.empty()
                                              ? specialise(layer, pattern, plan, symbol)
                                              : parse_specialised(reentry.module_text, symbol, reentry.path);
    if (observer.observe("specialised", "50-specialised.ll", [&] { return print(specialised); })) return std::nullopt;
    ptx = emit_ptx(specialised, ptx_arch);
    if (options.keep_bitcode) {
      add_file(kernel, BinaryKind::bitcode, "", "kernels/" + symbol + ".bc", to_bitcode(specialised));
    }
  }
  if (observer.observe("ptx", "60-kernel.ptx", [&] { return ptx; })) return std::nullopt;

  if (find_assembler().kind != AssemblerInfo::Kind::none) {
    for (const std::string& arch : options.archs) {
      AssembledKernel assembled =
          reentry.ptx.empty() ? assemble(ptx, arch, symbol) : assemble_edited(reentry, arch, symbol);
      add_cubin(kernel, arch, std::move(assembled));
    }
  }
  observer.observe("cubin", "70-kernel.json", [&] { return kernel_report(kernel.record, ptx); });
  add_file(kernel, BinaryKind::ptx, ptx_arch, "kernels/" + symbol + ".ptx", std::move(ptx));
  return kernel;
}

std::vector<Job> list_jobs(const Network& network, const std::vector<int>& batches) {
  std::vector<Job> jobs;
  std::set<std::string> taken;
  for (const ConvLayer& layer : network.layers) {
    const std::string folder = folder_name(layer.name), symbol = kernel_symbol(layer.name, KernelPlan{});
    std::string suffix;
    for (int i = 2; taken.contains(folder + suffix) || taken.contains(symbol + suffix); ++i) {
      suffix = fmt::format("_{}", i);
    }
    taken.insert({folder + suffix, symbol + suffix});
    for (const int batch : batches) jobs.push_back({&layer, batch, suffix});
  }
  return jobs;
}

std::optional<std::string> dump_folder(const CompileOptions& options, const Job& job) {
  if (!options.dump_dir) return std::nullopt;
  std::filesystem::path folder = *options.dump_dir;
  folder /= folder_name(job.layer->name) + job.suffix;
  if (options.batches.size() > 1) folder /= fmt::format("b{}", job.batch);
  return folder.string();
}

// Runs work(i) for every i, on several threads; the first error stops the rest and is thrown again.
void for_each_parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr fault;
  std::mutex fault_mutex;
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(fault_mutex);
        if (!fault) fault = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int i = 1; i < threads; ++i) pool.emplace_back(worker);
    worker();
  }
  if (fault) std::rethrow_exception(fault);
}

void add_leftover(Package& package, const Network& network) {
  for (std::size_t i = 0; i < network.leftover.size(); ++i) {
    const NamedTensor& tensor = network.leftover[i];
    const std::string path = fmt::format("tensors/{}.f32", i);
    package.manifest.tensors.push_back({tensor.name, path, tensor.shape});
    package.files[path] = {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
  }
}

}  // namespace

PlanRequest plan_request(const CompileOptions& options, int batch) {
  PlanRequest request{batch, options.archs, options.plan_constraints};
  request.input_layout = request.output_layout = options.layout.value_or(TensorLayout::nchw);
  request.skip_dead_tiles = options.skip_dead_tiles;
  request.precision = parse_precision(options.precision).value_or(Precision::fp32);  // check_options() has seen it
  return request;
}

CompileResult compile_network(const Network& network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress) {
  check_options(network, options);
  const Reentry reentry = options.from_file ? read_reentry(*options.from_file) : Reentry{};
  const std::vector<Job> jobs = list_jobs(network, options.batches);

  // The largest first, so that no thread is left with one at the end.
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) order[i] = i;
  const auto size = [&](std::size_t i) { return jobs[i].layer->weights.size(); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });

  std::vector<std::optional<PackagedKernel>> kernels(jobs.size());
  std::mutex progress_mutex;
  int done = 0;
  const int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = std::min<int>(options.jobs > 0 ? options.jobs : processors, static_cast<int>(jobs.size()));
  for_each_parallel(jobs.size(), threads, [&](std::size_t i) {
    const Job& job = jobs[order[i]];
    kernels[order[i]] = compile_kernel(job, options, reentry, dump_folder(options, job));
    if (!progress) return;
    const std::lock_guard lock(progress_mutex);
    progress({++done, static_cast<int>(jobs.size()), fmt::format("{} b{}", job.layer->name, job.batch)});
  });

  CompileResult result;
  result.notes = network.notes;
  result.stopped_early =
      options.stop_after.has_value() && *options.stop_after != kStageNames[std::size(kStageNames) - 1];
  result.package.manifest.tool_version = BURIN_VERSION;
  result.package.manifest.source = std::filesystem::path(network.source).filename().string();
  result.package.manifest.zero_threshold = options.zero_threshold;
  for (std::optional<PackagedKernel>& kernel : kernels) {
    if (kernel) add_kernel(result.package, *std::move(kernel));
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
