#include "compiler/make_kernel.h"

#include <fmt/format.h>
#include <llvm-c/Core.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "compiler/assemble/assemble.h"
#include "compiler/assemble/ptx_directives.h"
#include "compiler/emit/kernel_report.h"
#include "compiler/emit/ptx.h"
#include "compiler/kernel_cache.h"
#include "compiler/observer.h"
#include "compiler/specialise/function_code.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "ir/layer_data.h"
#include "ir/parallel_for.h"
#include "ir/printable.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

std::string bytes_of_words(const std::vector<std::uint32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t)};
}

std::string print_pattern(const Task& task) {
  if (task.layer != nullptr) return print(analyse(*task.layer));
  return fmt::format("# {} nonzeros\n", nonzeros_of(task));
}

KernelLayer layer_of(const ConvLayer& layer) {
  const SparsePattern pattern = analyse(layer);
  return {layer.shape, pattern.statistics.nonzeros, pattern.statistics.dead_inputs, pattern.statistics.dead_outputs};
}

// The file's name says what it holds, so that kernels share what is the same: "weights/1a2b.bin". Returns the path.
std::string add_data(PackagedKernel& kernel, const std::string& folder, std::string content) {
  constexpr std::size_t kDigits = 32;  // of the hash: 128 bits
  std::string path = fmt::format("{}/{}.bin", folder, content_hash({content}).substr(0, kDigits));
  kernel.files.emplace_back(path, std::move(content));
  return path;
}

std::string path_of_code(const std::string& symbol, BinaryKind kind, const std::string& arch) {
  if (kind == BinaryKind::ptx) return fmt::format("kernels/{}.ptx", symbol);
  return fmt::format("kernels/{}.{}.cubin", symbol, arch);
}

void add_file(PackagedKernel& kernel, BinaryKind kind, const std::string& arch, std::string content) {
  const std::string path = path_of_code(kernel.kernel.symbol, kind, arch);
  KernelBinary& binary = kernel.kernel.binaries.emplace_back();
  binary.kind = kind;
  binary.arch = arch;
  binary.path = path;
  binary.bytes = static_cast<std::int64_t>(content.size());
  kernel.files.emplace_back(path, std::move(content));
}

void add_cubin(PackagedKernel& kernel, const std::string& arch, AssembledKernel assembled) {
  add_file(kernel, BinaryKind::cubin, arch, std::move(assembled.cubin));
  KernelBinary& binary = kernel.kernel.binaries.back();
  binary.registers = assembled.registers;
  binary.spill_bytes = assembled.spill_bytes;
  binary.stack_bytes = assembled.stack_bytes;
  binary.code_bytes = assembled.code_bytes;
}

// Its code stays as it is, so that what a kernel is called in one package has no part in how it is compiled.
void rename(PackagedKernel& kernel, const std::string& symbol) {
  kernel.kernel.entry = std::exchange(kernel.kernel.symbol, symbol);
  for (KernelBinary& binary : kernel.kernel.binaries) {
    const auto file = std::ranges::find(kernel.files, binary.path, &std::pair<std::string, std::string>::first);
    BURIN_CHECK(file != kernel.files.end(), "kernel {} has no file {}", symbol, binary.path);
    file->first = binary.path = path_of_code(symbol, binary.kind, binary.arch);
  }
}

// Assembles PTX that burin made: an assembler that refuses it is at fault, not the user's input.
AssembledKernel assemble_own(const std::string& ptx, const std::string& arch, const std::string& symbol) {
  try {
    return assemble(ptx, arch, symbol);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    fail(ErrorKind::unsupported, "{}; another assembler may take it, and BURIN_ASSEMBLER=none packs PTX alone",
         error.what());
  }
}

}  // namespace

std::string tool_version() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{}, LLVM {}.{}.{}", BURIN_VERSION, major, minor, patch);
}

PackagedKernel describe_kernel(const Task& task, const Candidate& candidate, const Recipe& recipe) {
  PackagedKernel made;
  Kernel& kernel = made.kernel;
  kernel.symbol = candidate.symbol;
  kernel.op = task.name;
  kernel.kind = task.kind;
  kernel.provider = candidate.provider;
  kernel.precision = to_string(recipe.precision);
  if (task.layer != nullptr) {
    kernel.layer = layer_of(*task.layer);
    kernel.layer->multiplied = recipe.multiplied;
  }
  if (const Linear* linear = task.get<Linear>()) {
    kernel.linear = WeightMatrix{linear->out_features, linear->in_features, nonzeros_of(task)};
    if (recipe.call) kernel.called = called_linear(task);
  }
  kernel.plan = candidate.plan;
  kernel.plan_short = recipe.plan_short;
  kernel.planned_batch = task.batch;
  kernel.predicted_us = candidate.estimate.us;
  kernel.form = recipe.form;
  kernel.call = recipe.call;
  for (const SharedFunction& function : functions_of(task)) {
    const std::string path = fmt::format("functions/{}.ptx", function->symbol());
    kernel.functions.push_back({*function, path});
    made.files.emplace_back(path, function->ptx);
  }
  if (!recipe.weights.empty()) {
    kernel.weights = add_data(made, "weights", bytes_of_words(recipe.weights));
  }
  return made;
}

void add_kernel(Package& package, PackagedKernel kernel) {
  package.manifest.kernels.push_back(std::move(kernel.kernel));
  for (auto& [path, content] : kernel.files) package.files[path] = std::move(content);
}

void note_choice(Kernel& kernel, const Task& task, const Candidate& candidate, const CompileOptions& options) {
  kernel.predicted_us = candidate.estimate.us;
  kernel.tuning.reset();
  const TunedKernel* tuned = find_tuned(options, task);
  if (tuned == nullptr || candidate.estimate.source != Estimate::Source::measured) return;
  kernel.tuning = tuned->evidence;
  kernel.predicted_us = tuned->evidence.candidates.at(static_cast<std::size_t>(tuned->evidence.chosen)).predicted_us;
}

std::optional<PackagedKernel> make_kernel(const Task& task, const Candidate& candidate, const CompileOptions& options,
                                          const Reentry& reentry, const std::optional<std::string>& dump_folder) {
  const std::string& symbol = candidate.symbol;
  Observer observer(dump_folder, options.stop_after);
  if (observer.observe("layer", "10-layer.txt", [&] { return print(task); })) return std::nullopt;
  if (observer.observe("pattern", "20-pattern.txt", [&] { return print_pattern(task); })) return std::nullopt;

  const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
  PackagedKernel made = describe_kernel(task, candidate, recipe);
  Kernel& kernel = made.kernel;
  const auto multiplied = [&] { return kernel.layer ? multiplied_text(*kernel.layer) : std::string(); };
  if (observer.observe("plan", "30-plan.txt", [&] { return candidate.plan; }, multiplied)) return std::nullopt;
  if (observer.observe("template", "40-template.ll", recipe.template_text)) return std::nullopt;

  note_choice(kernel, task, candidate, options);
  if (find_provider(candidate.provider)->bakes_weights() || kernel.call) {
    (kernel.layer ? kernel.layer->data : kernel.called->data) =
        add_data(made, "layers", encode_layer(called_layer(task)));
  }
  kernel.edited = !reentry.module_text.empty() || !reentry.ptx.empty();
  if (kernel.edited) kernel.call.reset();
  kernel.source_hash = source_hash(task, candidate.plan, reentry.module_text + reentry.ptx);
  const std::string ptx_arch = lowest_arch(options.archs);
  std::string ptx = edited_ptx(reentry, symbol);
  if (!reentry.module_text.empty()) {
    ptx = ptx_of_edited(reentry, symbol, ptx_arch, kernel.owner());
    made.edited_module = reentry.module_text;
    if (observer.observe("specialised", "50-specialised.ll", [&] { return made.edited_module; })) return std::nullopt;
  } else if (ptx.empty()) {
    const SpecialisedModule specialised = recipe.specialise(symbol);
    FunctionCode code;
    for (const SharedFunction& function : functions_of(task)) code[function->symbol()] = function->ptx;
    attach_functions(*specialised.module, code);
    if (observer.observe("specialised", "50-specialised.ll", [&] { return print(specialised); })) return std::nullopt;
    ptx = emit_ptx(specialised, ptx_arch);
  }
  // PTX that says so is for that architecture alone.
  const std::string code_for = target_of(ptx) == ptx_arch + "a" ? ptx_arch + "a" : ptx_arch;
  if (observer.observe("ptx", "60-kernel.ptx", [&] { return ptx; })) return std::nullopt;

  if (find_assembler().kind != AssemblerInfo::Kind::none) {
    for (std::string arch : options.archs_of_cubins()) {
      if (arch == ptx_arch) arch = code_for;
      add_cubin(made, arch,
                kernel.edited ? assemble_edited(reentry, ptx, arch, symbol, kernel.owner())
                              : assemble_own(ptx, arch, symbol));
    }
  }
  observer.observe("cubin", "70-kernel.json", [&] { return kernel_report(kernel, ptx); });
  if (options.keep_ptx || kernel.binaries.empty()) {
    add_file(made, BinaryKind::ptx, code_for, std::move(ptx));
  }
  return made;
}

MadeKernels make_kernels(const std::vector<KernelJob>& jobs, const CompileOptions& options, const Reentry& reentry,
                         const std::function<void(const CompileProgress&)>& progress) {
  MadeKernels made;
  made.kernels.resize(jobs.size());
  double work_done = 0, total_work = 0;
  for (const KernelJob& job : jobs) total_work += job.work;
  int done = 0;
  std::mutex mutex;
  const auto make = [&](std::size_t i) {
    const auto& [task, candidate, compared, weight_zeros, suffix, folder, work] = jobs[i];
    std::optional<PackagedKernel>& kernel = made.kernels[i];
    const bool edited = reentry.is_for(task);
    // Whoever wants to see or to change the stages gets a kernel that goes through them.
    const bool uses_cache = options.cache != nullptr && options.cache->keeps_kernels() && !options.dump_dir &&
                            !options.stop_after && !edited;
    const std::string key = uses_cache ? kernel_key(task, candidate, options) : "";
    if (uses_cache) kernel = options.cache->find(key);
    const bool found = kernel.has_value();
    bool stored = true;
    if (found) {
      note_choice(kernel->kernel, task, candidate, options);
    } else {
      std::optional<std::string> dump_folder;
      if (options.dump_dir) dump_folder = (std::filesystem::path(*options.dump_dir) / folder).string();
      kernel = make_kernel(task, candidate, options, edited ? reentry : Reentry{}, dump_folder);
      if (uses_cache) stored = options.cache->store(key, *kernel);
    }
    if (kernel && !suffix.empty()) rename(*kernel, candidate.symbol + suffix);
    const std::lock_guard lock(mutex);
    if (!stored) made.cache_failed = true;
    ++done;
    if (found) {
      ++made.cached;
      total_work -= work;
    } else {
      work_done += work;
    }
    if (!progress) return;
    const double share = total_work > 0 ? work_done / total_work : 1;
    progress({done, static_cast<int>(jobs.size()), share, fmt::format("{} b{}", task.name, task.batch)});
  };
  // The largest first, so that no thread is left with one at the end.
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return jobs[i].work; });
  // A kernel with an edited stage needs a process of its own, which is made while nothing else is at work.
  const auto others = std::ranges::stable_partition(order, [&](std::size_t i) { return reentry.is_for(jobs[i].task); });
  std::for_each(order.begin(), others.begin(), make);
  for_each_parallel(others.size(), options.jobs, [&](std::size_t i) { make(others[i]); });
  if (options.cache != nullptr && options.cache->keeps_kernels()) options.cache->trim();
  return made;
}

namespace {

// What a candidate is compiled with that is measured on `arch`.
CompileOptions options_of_candidates(const CompileOptions& options, const std::string& arch) {
  CompileOptions alone;
  alone.archs = options.archs;
  alone.cubin_archs = {arch};
  return alone;
}

}  // namespace

Package compile_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                          const std::string& arch) {
  const CompileOptions alone = options_of_candidates(options, arch);
  Package package;
  package.manifest.tool_version = tool_version();
  package.manifest.source = candidate.symbol;
  add_kernel(package, *make_kernel(task, candidate, alone, {}, std::nullopt));
  package.manifest.programs = {program_of(package.manifest.kernels.front(), task.batch)};
  return package;
}

void keep_candidate(const Task& task, const Candidate& candidate, const CompileOptions& options,
                    const std::string& arch, const Package& compiled) {
  if (options.cache == nullptr || !options.cache->keeps_kernels()) return;
  options.cache->store(kernel_key(task, candidate, options_of_candidates(options, arch)), only_kernel(compiled));
}

PackagedKernel only_kernel(const Package& package) {
  BURIN_CHECK(package.manifest.kernels.size() == 1, "{} kernels in place of one", package.manifest.kernels.size());
  PackagedKernel kernel{package.manifest.kernels.front(), {}, {}};
  for (const auto& [name, file] : package.files) kernel.files.emplace_back(name, *file.content());
  return kernel;
}

namespace {

SpecialisedModule rebuild(const Package& package, const Kernel& kernel) {
  if (kernel.edited) {
    fail(ErrorKind::unsupported,
         "{}: its code was edited by hand and does not follow from its plan, so it runs on a GPU alone",
         kernel.owner());
  }
  const Provider* provider = find_provider(kernel.provider);
  if (provider == nullptr) {
    fail(ErrorKind::bad_input, "{}: this burin ({}) has no provider '{}', which made it", kernel.owner(), BURIN_VERSION,
         printable(kernel.provider));
  }
  std::optional<ConvLayer> layer;
  if (provider->bakes_weights()) {
    if (!kernel.layer || kernel.layer->data.empty()) {
      fail(ErrorKind::bad_input, "{}: the package does not hold its weights", kernel.owner());
    }
    layer = decode_layer(*package.files.at(kernel.layer->data).content(), kernel.op, kernel.layer->shape);
  }
  return provider->module_of(kernel, layer ? &*layer : nullptr);
}

}  // namespace

std::string rebuild_module(const Package& package, const Kernel& kernel) {
  return to_bitcode(rebuild(package, kernel));
}

std::string rebuild_ptx(const Package& package, const Kernel& kernel, const std::string& arch) {
  const SpecialisedModule module = rebuild(package, kernel);
  FunctionCode code;
  for (const KernelFunction& packed : kernel.functions) {
    code[packed.function.symbol()] = *package.files.at(packed.path).content();
  }
  attach_functions(*module.module, code);
  return emit_ptx(module, arch);
}

}  // namespace burin
