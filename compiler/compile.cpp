#include "compiler/compile.h"

#include <filesystem>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/kernel_cache.h"
#include "compiler/kernel_job.h"
#include "compiler/make_kernel.h"
#include "compiler/network/passes.h"
#include "compiler/observer.h"
#include "compiler/reentry.h"
#include "ir/error.h"
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

}  // namespace

Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const GraphChoices& choices) {
  std::optional<std::string> folder;
  if (dump_dir) folder = (std::filesystem::path(*dump_dir) / "network").string();
  Observer observer(folder, std::nullopt);
  observer.observe("import", "00-import.txt", [&] { return print(network); });
  int number = 0;
  const auto observe = [&](const std::string& pass, const Network& left, int) {
    observer.observe(pass, fmt::format("{:02}-{}.txt", ++number, pass), [&] { return print(left); });
  };
  return simplify(std::move(network), observe, choices);
}

// import (compiler/import) came before; place, propose and choose are list_kernels().
CompileResult compile_network(Network imported, const CompileOptions& asked,
                              const std::function<void(const CompileProgress&)>& progress) {
  check_options(imported, asked);
  Reentry reentry = asked.from_file ? read_reentry(*asked.from_file) : Reentry{};
  reentry.op = asked.from_op;
  const CompileOptions options = with_reentry(asked, reentry);
  const Network network = prepare_graph(std::move(imported), options.dump_dir, graph_choices(options));
  KernelJobs jobs = list_kernels(network, options, reentry, [&](int done, int all, const std::string& what) {
    if (progress) progress({0, all, 0, fmt::format("planned {} ({} of {})", what, done, all)});
  });
  MadeKernels made = make_kernels(jobs.kernels, options, reentry, progress);

  CompileResult result;
  result.notes = network.notes;
  result.cached = made.cached;
  if (made.cache_failed) {
    result.notes.push_back(fmt::format("{}: the cache of kernels cannot be written to, so some will be compiled again",
                                       options.cache->folder()));
  }
  result.stopped_early = !options.makes_package();
  Manifest& manifest = result.package.manifest;
  manifest.tool_version = tool_version();
  manifest.source = std::filesystem::path(network.source).filename().string();
  manifest.zero_threshold = options.zero_threshold;
  manifest.quantized = network.quantized;
  if (!result.stopped_early) manifest.programs = finish_programs(jobs, made.kernels, network);
  for (std::optional<PackagedKernel>& kernel : made.kernels) {
    if (!kernel) continue;
    if (const auto kept = options.kept.find(kernel->kernel.op); kept != options.kept.end()) {
      kernel->kernel.kept_in_fp32 = kept->second;
    }
    if (!kernel->edited_module.empty()) result.edited_modules[kernel->kernel.symbol] = kernel->edited_module;
    add_kernel(result.package, *std::move(kernel));
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
