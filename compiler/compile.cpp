#include "compiler/compile.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "compiler/assemble/assemble.h"
#include "compiler/compile_layer.h"
#include "compiler/compile_operator.h"
#include "compiler/jobs.h"
#include "compiler/kernel_cache.h"
#include "compiler/network/simplify.h"
#include "compiler/observer.h"
#include "compiler/reentry.h"
#include "ir/error.h"

namespace burin {
namespace {

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

// All jobs at work, and what came of them.
class Workshop {
 public:
  Workshop(const Jobs& jobs, const CompileOptions& options, const Reentry& reentry,
           const std::function<void(const CompileProgress&)>& progress)
      : layers(jobs.layers.size()),
        operators(jobs.operators.size()),
        jobs_(jobs),
        options_(options),
        reentry_(reentry),
        progress_(progress) {
    for (std::size_t i = 0; i < count(); ++i) total_work_ += work_of(i);
  }

  void run() {
    // The largest first, so that no thread is left with one at the end.
    std::vector<std::size_t> order(count());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work_of(a) > work_of(b); });
    const int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int threads = std::min<int>(options_.jobs > 0 ? options_.jobs : processors, static_cast<int>(order.size()));
    for_each_parallel(order.size(), threads, [&](std::size_t i) { compile(order[i]); });
  }

  // Of each job, in their order; nothing where --stop-after stopped it.
  std::vector<std::optional<PackagedKernel>> layers;
  std::vector<std::optional<PackagedOperator>> operators;
  int cached = 0;

 private:
  std::size_t count() const { return jobs_.layers.size() + jobs_.operators.size(); }

  // Of job i, layers first, in nonzeros: what a kernel costs is in proportion, but for a part that all have.
  double work_of(std::size_t i) const {
    constexpr double kFixed = 500;
    return kFixed + (i < jobs_.layers.size() ? static_cast<double>(jobs_.layers[i].nonzeros) : 0);
  }

  std::optional<std::string> dump_folder(const std::string& name, int batch) const {
    if (!options_.dump_dir) return std::nullopt;
    std::filesystem::path folder = *options_.dump_dir;
    folder /= name;
    if (batch > 0 && options_.batches.size() > 1) folder /= fmt::format("b{}", batch);
    return folder.string();
  }

  // Whoever wants to see or to change the stages gets a kernel that goes through them.
  bool uses_cache() const {
    return options_.cache != nullptr && !options_.dump_dir && !options_.stop_after && !options_.from_file;
  }

  // True when the cache had it.
  bool compile_layer_or_find(std::size_t i) {
    const LayerJob& job = jobs_.layers[i];
    std::string key;
    if (uses_cache()) {
      const TunedPlan* tuned = find_tuned(options_.tuned, job.layer->name, job.batch);
      key = cache_key(job, options_, tuned);
      layers[i] = options_.cache->find(key);
      if (layers[i] && tuned != nullptr) layers[i]->record.tuning = tuned->evidence;
      if (layers[i]) return true;
    }
    layers[i] =
        compile_layer(job, options_, reentry_, dump_folder(folder_name(job.layer->name) + job.suffix, job.batch));
    if (uses_cache() && layers[i]) options_.cache->store(key, *layers[i]);
    return false;
  }

  void compile(std::size_t i) {
    bool found = false;
    std::string what;
    if (i < jobs_.layers.size()) {
      what = fmt::format("{} b{}", jobs_.layers[i].layer->name, jobs_.layers[i].batch);
      found = compile_layer_or_find(i);
    } else {
      const OperatorJob& job = jobs_.operators[i - jobs_.layers.size()];
      what = job.op;
      operators[i - jobs_.layers.size()] = compile_operator(job, options_, dump_folder(job.folder, 0));
    }
    const std::lock_guard lock(mutex_);
    ++done_;
    if (found) {
      ++cached;
      total_work_ -= work_of(i);
    } else {
      work_done_ += work_of(i);
    }
    if (!progress_) return;
    const double share = total_work_ > 0 ? work_done_ / total_work_ : 1;
    progress_({done_, static_cast<int>(count()), cached, share, what});
  }

  const Jobs& jobs_;
  const CompileOptions& options_;
  const Reentry& reentry_;
  const std::function<void(const CompileProgress&)>& progress_;
  std::mutex mutex_;  // of what follows
  int done_ = 0;
  double work_done_ = 0, total_work_ = 0;
};

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
    NetworkProgram& added = record.programs.emplace_back(NetworkProgram{program.plan, {}});
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

Network prepare_graph(Network network, const std::optional<std::string>& dump_dir) {
  if (!network.has_graph()) return network;
  std::optional<std::string> folder;
  if (dump_dir) folder = (std::filesystem::path(*dump_dir) / "network").string();
  Observer observer(folder, std::nullopt);
  observer.observe("import", "00-import.txt", [&] { return print(network); });
  int number = 0;
  return simplify(std::move(network), [&](const std::string& pass, const Network& left, int) {
    observer.observe(pass, fmt::format("{:02}-{}.txt", ++number, pass), [&] { return print(left); });
  });
}

CompileResult compile_network(const Network& network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress) {
  check_options(network, options);
  const Reentry reentry = options.from_file ? read_reentry(*options.from_file) : Reentry{};
  const Jobs jobs = list_jobs(network, options);
  Workshop workshop(jobs, options, reentry, progress);
  workshop.run();
  if (options.cache != nullptr) options.cache->trim();

  CompileResult result;
  result.notes = network.notes;
  result.cached = workshop.cached;
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
