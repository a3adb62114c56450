#include "compiler/compile.h"

#include <algorithm>
#include <filesystem>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/choose/pays_from.h"
#include "compiler/kernel_cache.h"
#include "compiler/kernel_job.h"
#include "compiler/make_kernel.h"
#include "compiler/network/passes.h"
#include "compiler/observer.h"
#include "compiler/reentry.h"
#include "ir/error.h"
#include "ir/package/device_memory.h"
#include "ir/parallel_for.h"
#include "ir/place_activity_maps.h"

namespace burin {
namespace {

void add_leftover(Package& package, const Network& network) {
  for (std::size_t i = 0; i < network.leftover.size(); ++i) {
    const NamedTensor& tensor = network.leftover[i];
    const std::string path = fmt::format("tensors/{}.f32", i);
    package.manifest.tensors.push_back({tensor.name, path, tensor.shape});
    package.files[path] =
        std::string(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
  }
}

// The programs with the kernels that were made.
std::vector<Program> finish_programs(KernelJobs& jobs, const std::vector<std::optional<PackagedKernel>>& made,
                                     const Network& network) {
  std::vector<Program> programs;
  for (ProgramJob& job : jobs.programs) {
    std::vector<const KernelForm*> forms;
    for (std::size_t i = 0; i < job.kernels.size(); ++i) {
      const Kernel& kernel = made[job.kernels[i]]->kernel;
      job.program.steps[i].kernel = kernel.symbol;
      forms.push_back(&kernel.form);
    }
    place_activity_maps(job.program, forms, network.separate);
    programs.push_back(std::move(job.program));
  }
  return programs;
}

std::vector<std::vector<StepRivals>> rivals_of(const KernelJobs& jobs,
                                               const std::vector<std::optional<PackagedKernel>>& made) {
  std::vector<std::vector<StepRivals>> of_programs;
  for (const ProgramJob& job : jobs.programs) {
    std::vector<StepRivals>& of_steps = of_programs.emplace_back();
    for (const std::vector<std::size_t>& kernels : job.rivals) {
      StepRivals& symbols = of_steps.emplace_back();
      for (const std::size_t kernel : kernels) symbols.push_back(made[kernel]->kernel.symbol);
    }
  }
  return of_programs;
}

// What a network takes with its kernels on the device, for the architecture on which it is most.
std::int64_t device_bytes(const Manifest& manifest, const CompileOptions& options) {
  std::int64_t most = 0;
  for (const std::string& arch : options.archs_of_cubins()) {
    most = std::max(most, device_memory(manifest, arch).sum.total());
  }
  return most;
}

// Notes the machine code that was made; false: all of it was known.
bool note_code(const Manifest& manifest, CodeSizes& known) {
  bool more = false;
  for (const Kernel& kernel : manifest.kernels) {
    std::int64_t bytes = 0;
    for (const KernelBinary& binary : kernel.binaries) bytes = std::max(bytes, binary.code_bytes);
    more |= known.emplace(code_key(kernel.op, kernel.provider, kernel.plan), bytes).second;
  }
  return more;
}

void check_can_count(const CompileOptions& options) {
  if (!options.makes_package() || find_assembler().kind != AssemblerInfo::Kind::none) return;
  fail(ErrorKind::unsupported, "{} counts machine code, and there is no assembler: {}",
       options.memory_limit ? "--memory-limit" : "--objective memory", find_assembler().note);
}

class NetworkCompiler {
 public:
  NetworkCompiler(const ProgramGraphs& graphs, const CompileOptions& options, const Reentry& reentry,
                  const std::function<void(const CompileProgress&)>& progress)
      : graphs_(graphs), network_(graphs.any()), options_(options), reentry_(reentry), progress_(progress) {}

  // place, propose and choose are the lister's.
  CompileResult run() const {
    const KernelLister lister(graphs_, options_, reentry_, [&](int done, int all, const std::string& what) {
      if (progress_) progress_({0, all, 0, fmt::format("planned {} ({} of {})", what, done, all)});
    });
    if (!options_.chooses_together() || !options_.makes_package()) return compile(lister.list());
    check_can_count(options_);
    return within_limit(lister);
  }

 private:
  // Chooses by estimates of machine code, and where these were off again by what is known then. In the end all that is
  // chosen is known.
  CompileResult within_limit(const KernelLister& lister) const {
    constexpr int kMostRounds = 8;
    CodeSizes known;
    std::optional<CompileResult> smallest;
    for (int round = 0; round < kMostRounds; ++round) {
      std::optional<KernelJobs> jobs = chosen(lister, known, smallest);
      if (!jobs) break;
      CompileResult made = compile(*std::move(jobs));
      const std::int64_t bytes = made.choice->bytes = device_bytes(made.package.manifest, options_);
      const bool more = note_code(made.package.manifest, known);
      if (!smallest || bytes < smallest->choice->bytes) smallest = std::move(made);
      const bool kept = !options_.memory_limit || bytes <= *options_.memory_limit;
      if (options_.objective == Objective::time && kept) return *std::move(smallest);
      if (!more) break;
    }
    const std::int64_t bytes = smallest->choice->bytes;
    if (!options_.memory_limit || bytes <= *options_.memory_limit) return *std::move(smallest);
    fail(ErrorKind::unsupported,
         "--memory-limit of {} bytes: as compiled the network takes {}, and no other choice of kernels was found that "
         "takes less; a larger limit, or fewer or smaller batch sizes, would do",
         *options_.memory_limit, bytes);
  }

  // Nothing: by what is known by now no choice is within the limit, and what was made before is.
  std::optional<KernelJobs> chosen(const KernelLister& lister, const CodeSizes& known,
                                   const std::optional<CompileResult>& smallest) const {
    try {
      return lister.list(known);
    } catch (const Error& error) {
      const bool kept = smallest && options_.memory_limit && smallest->choice->bytes <= *options_.memory_limit;
      if (error.kind() != ErrorKind::unsupported || !kept) throw;
      return std::nullopt;
    }
  }

  // What zeros are worth: those of the inputs, where they are known, and those of the weights, where it was asked.
  void add_zeros(const KernelJobs& jobs, std::vector<std::optional<PackagedKernel>>& kernels) const {
    for_each_parallel(jobs.kernels.size(), options_.jobs, [&](std::size_t i) {
      const KernelJob& job = jobs.kernels[i];
      if (!kernels[i]) return;
      kernels[i]->kernel.weight_zeros = job.weight_zeros;
      if (!kernels[i]->kernel.layer) return;
      std::optional<InputZeros>& zeros = kernels[i]->kernel.layer->zeros;
      zeros.reset();
      if (job.task.zeros) zeros = skipping_pays_from(job.task, job.compared);
    });
  }

  CompileResult compile(KernelJobs jobs) const {
    MadeKernels made = make_kernels(jobs.kernels, options_, reentry_, progress_);
    CompileResult result;
    result.choice = std::move(jobs.choice);
    result.notes = network_.notes;
    result.notes.insert(result.notes.end(), jobs.notes.begin(), jobs.notes.end());
    result.cached = made.cached;
    if (made.cache_failed) {
      result.notes.push_back(fmt::format(
          "{}: the cache of kernels cannot be written to, so some will be compiled again", options_.cache->folder()));
    }
    result.stopped_early = !options_.makes_package();
    Manifest& manifest = result.package.manifest;
    manifest.tool_version = tool_version();
    manifest.source = std::filesystem::path(network_.source).filename().string();
    manifest.zero_threshold = options_.zero_threshold;
    manifest.quantized = network_.quantized;
    manifest.objective = options_.objective;
    manifest.memory_limit = options_.memory_limit;
    if (!result.stopped_early) manifest.batches = options_.curve;
    if (!result.stopped_early) {
      result.rivals = rivals_of(jobs, made.kernels);
      manifest.programs = finish_programs(jobs, made.kernels, network_);
    }
    add_zeros(jobs, made.kernels);
    for (std::optional<PackagedKernel>& kernel : made.kernels) {
      if (!kernel) continue;
      if (const auto kept = options_.kept.find(kernel->kernel.op); kept != options_.kept.end()) {
        kernel->kernel.kept_in_fp32 = kept->second;
      }
      if (!kernel->edited_module.empty()) result.edited_modules[kernel->kernel.symbol] = kernel->edited_module;
      add_kernel(result.package, *std::move(kernel));
    }
    add_leftover(result.package, network_);
    if (find_assembler().kind == AssemblerInfo::Kind::none && !result.stopped_early) {
      result.notes.push_back(
          "no assembler was found (nvJitLink or ptxas), so the package holds PTX only: the driver "
          "compiles it at the first load ('burin doctor' says where was looked)");
    }
    return result;
  }

  const ProgramGraphs& graphs_;
  const Network& network_;  // any of them: they differ in operators alone
  const CompileOptions& options_;
  const Reentry& reentry_;
  const std::function<void(const CompileProgress&)>& progress_;
};

}  // namespace

// import (compiler/import) came before.
CompileResult compile_network(Network imported, const CompileOptions& asked,
                              const std::function<void(const CompileProgress&)>& progress) {
  check_options(imported, asked);
  BURIN_CHECK(asked.batch_ranges.empty(), "{}: ranges of batch sizes were not resolved", imported.source);
  Reentry reentry = asked.from_file ? read_reentry(*asked.from_file) : Reentry{};
  reentry.op = asked.from_op;
  const CompileOptions options = with_reentry(asked, reentry);
  const ProgramGraphs graphs = prepare_graphs(imported, options, options.dump_dir);
  return NetworkCompiler(graphs, options, reentry, progress).run();
}

}  // namespace burin
