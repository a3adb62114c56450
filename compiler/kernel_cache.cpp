#include "compiler/kernel_cache.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <locale>
#include <random>
#include <sstream>
#include <system_error>
#include <vector>

#include "compiler/assemble/assemble.h"
#include "ir/error.h"
#include "ir/kernel.h"
#include "ir/package/atomic_file.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

// What an entry's manifest names as the file it came from. An entry under another's name is none.
std::string source_of(const std::string& key) { return "cache " + key; }

// What it computes, its weights, where its tensors lie, what it is to be fast for.
std::string task_hash(const Task& task) {
  const auto bytes = []<typename Value>(const std::vector<Value>& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
  };
  const std::vector<SharedFunction> functions = functions_of(task);
  std::vector<std::string_view> parts;
  KernelForm tensors{.tensors = task.reads, .launch = {}};
  tensors.tensors.push_back(task.writes);
  const std::string text =
      print(task) + print(tensors) +
      fmt::format("{} {} {} {} {} {}", task.batch, fmt::join(task.archs, ","), to_string(task.precision),
                  to_string(task.factors), task.activity_maps, to_string(task.linear_storage));
  parts.push_back(text);
  if (task.layer != nullptr) {
    const ConvLayer& layer = *task.layer;
    for (const auto* values : {&layer.weights, &layer.bias, &layer.filters, &layer.filter_bias}) {
      parts.push_back(bytes(*values));
    }
  }
  const auto add_linear = [&](const Linear& linear) {
    parts.push_back(bytes(linear.weights));
    parts.push_back(bytes(linear.bias));
  };
  if (const Linear* linear = task.get<Linear>()) add_linear(*linear);
  if (const Squeeze* squeeze = task.get<Squeeze>()) parts.push_back(bytes(squeeze->weights));
  if (const Excite* excite = task.get<Excite>()) {
    parts.push_back(bytes(excite->bias));
    add_linear(excite->expand);
  }
  if (const ChannelAffine* affine = task.get<ChannelAffine>()) {
    parts.push_back(bytes(affine->scale));
    parts.push_back(bytes(affine->shift));
  }
  const Combine* combine = task.get<Combine>();
  if (combine != nullptr && combine->constant) parts.push_back(bytes(combine->constant->values));
  const MatMul* matmul = task.get<MatMul>();
  if (matmul != nullptr && matmul->constant) parts.push_back(bytes(matmul->constant->values));
  if (const Normalize* normalize = task.get<Normalize>()) {
    for (const auto* numbers : {&normalize->scale, &normalize->shift}) {
      if (!*numbers) continue;
      parts.push_back(bytes((*numbers)->shape));
      parts.push_back(bytes((*numbers)->values));
    }
  }
  // What a kernel reads of its taps, and what text says too little of.
  std::string resampled;
  if (const Resample* resample = task.get<Resample>()) {
    resampled = fmt::format("{} {} {}", resample->rows.count, resample->cols.count, resample->outside);
    parts.push_back(resampled);
    for (const Taps* taps : {&resample->rows, &resample->cols}) {
      parts.push_back(bytes(taps->indices));
      parts.push_back(bytes(taps->weights));
    }
  }
  for (const SharedFunction& function : functions) {
    parts.push_back(function->source_hash);
    parts.push_back(function->ptx);
  }
  return content_hash(parts);
}

// The file that this code is in: the tool, a program that has the compiler in itself, or the compiler's library.
std::string own_file() {
  static const char here = 0;
  Dl_info info{};
  link_map* object = nullptr;
  const bool found = dladdr1(&here, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0;
  return found && object != nullptr && *object->l_name != '\0' ? object->l_name : "/proc/self/exe";
}

// That file's bytes, since templates, planner and code generation are all in them, and the version of LLVM.
const std::string& program_hash() {
  static const std::string hash = [] {
    std::ifstream file(own_file(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    // A file that cannot be read, since the process is in another folder by now, is like no other.
    if (bytes.empty()) bytes = fmt::format("{} {}", std::random_device()(), std::random_device()());
    return content_hash({bytes, tool_version()});
  }();
  return hash;
}

std::string assembler_text() {
  const AssemblerInfo& assembler = find_assembler();
  return fmt::format("{} {} {} {}", static_cast<int>(assembler.kind), assembler.path, assembler.version, BURIN_VERSION);
}

std::string zeros_text(const Task& task) {
  return task.zeros ? fmt::format("{} {}", fmt::join(task.zeros->dead, " "), task.zeros->dead_channels) : "";
}

}  // namespace

std::string content_hash(const std::vector<std::string_view>& parts) {
  llvm::BLAKE3 hash;
  for (const std::string_view part : parts) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(llvm::StringRef(part));
  }
  return llvm::toHex(hash.final<32>(), /*LowerCase=*/true);
}

std::string source_hash(const Task& task, const std::string& plan, const std::string& edited) {
  return content_hash({BURIN_VERSION, task_hash(task), plan, edited});
}

std::optional<PackagedKernel> KernelCache::find(const std::string& key) const {
  const fs::path path = path_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    Package package = read_package(path.string());
    if (package.manifest.kernels.size() != 1 || package.manifest.source != source_of(key)) return std::nullopt;
    PackagedKernel kernel = only_kernel(package);
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return kernel;
  } catch (const Error&) {
    fs::remove(path, error);
    return std::nullopt;
  }
}

bool KernelCache::store(const std::string& key, const PackagedKernel& kernel) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  Package package;
  package.manifest.tool_version = tool_version();
  package.manifest.source = source_of(key);
  add_kernel(package, kernel);
  try {
    write_package(package, path_of(key).string());
    return true;
  } catch (const Error& fault) {
    if (fault.kind() == ErrorKind::internal) throw;
    return false;
  }
}

void KernelCache::trim() const {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    std::int64_t bytes = 0;
  };
  std::error_code error;
  std::vector<Entry> entries;
  std::int64_t sum = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    // A temporary file of burin's own is of a process that was killed, where it is old. Others' files are theirs.
    const fs::path kind = file.path().extension();
    const bool temporary = kind == ".tmp" && file.path().filename().string().starts_with(".burin-");
    const bool times = file.path().filename().string().ends_with(".times.json");
    if (kind != ".burin" && kind != ".choice" && !times && !temporary) continue;
    const auto bytes = static_cast<std::int64_t>(file.file_size(error));
    if (error) continue;
    entries.push_back({file.path(), file.last_write_time(error), bytes});
    sum += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (sum <= limit_bytes_) break;
    fs::remove(entry.path, error);
    sum -= entry.bytes;
  }
}

std::optional<std::string> KernelCache::read_text(const fs::path& path) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream entry(path, std::ios::binary);
  if (!entry) return std::nullopt;
  std::string text(std::istreambuf_iterator<char>(entry), {});
  std::error_code error;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return text;
}

void KernelCache::write_text(const fs::path& path, const std::string& text) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  try {
    // One that is damaged is none, and is made again.
    write_file_atomically(path.string(), text, Durability::left_to_system);
  } catch (const Error& fault) {
    if (fault.kind() == ErrorKind::internal) throw;  // else the work is done again
  }
}

// A hash of the key and of what follows, so that a damaged entry, and one under another's name, is none; "PROVIDER
// SYMBOL COUNT"; "PROVIDER US MEASURED" for each that was compared; then the plan.
std::optional<Choice> KernelCache::read_choice(const std::string& key) const {
  const std::optional<std::string> entry = read_text(choice_path(key));
  if (!entry) return std::nullopt;
  const std::size_t end = entry->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string text = entry->substr(end + 1);
  if (content_hash({key, text}) != entry->substr(0, end)) return std::nullopt;
  Choice choice;
  std::istringstream words(text);
  words.imbue(std::locale::classic());
  int count = 0;
  words >> choice.candidate.provider >> choice.candidate.symbol >> count;
  for (KernelOption option; count > 0 && words >> option.provider >> option.us >> option.measured; --count) {
    choice.options.push_back(option);
  }
  if (!words || choice.options.empty() || find_provider(choice.candidate.provider) == nullptr) return std::nullopt;
  choice.candidate.plan = text.substr(static_cast<std::size_t>(words.tellg()) + 1);
  choice.candidate.estimate = {choice.options.front().us,
                               choice.options.front().measured ? Estimate::Source::measured : Estimate::Source::model};
  return choice;
}

std::optional<Choice> KernelCache::find_choice(const std::string& key) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  std::optional<Choice> choice = read_choice(key);
  if (choice) remember(key, choice);
  return choice;
}

bool KernelCache::is_impossible(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  return known != known_.end() && !known->second;
}

void KernelCache::store_impossible(const std::string& key) const { remember(key, std::nullopt); }

void KernelCache::remember(const std::string& key, std::optional<Choice> choice) const {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(key, std::move(choice));
}

void KernelCache::store_choice(const std::string& key, const Choice& choice) const {
  remember(key, choice);
  if (folder_.empty()) return;
  std::string text =
      fmt::format("{} {} {}\n", choice.candidate.provider, choice.candidate.symbol, choice.options.size());
  for (const KernelOption& option : choice.options) {
    text += fmt::format("{} {} {:d}\n", option.provider, option.us, option.measured);
  }
  text += choice.candidate.plan;
  write_text(choice_path(key), fmt::format("{}\n{}", content_hash({key, text}), text));
}

std::string kernel_key(const Task& task, const Candidate& candidate, const CompileOptions& options) {
  const std::string archs = fmt::format("{}", fmt::join(options.archs_of_cubins(), ","));
  return content_hash({program_hash(), assembler_text(), options.keep_ptx ? "ptx" : "", archs, candidate.symbol,
                       task_hash(task), candidate.provider, candidate.plan});
}

std::string task_key(const Task& task, const std::string& others) {
  return content_hash({program_hash(), assembler_text(), task_hash(task), zeros_text(task), others});
}

namespace {

// Says what choose() goes by beside the models.
std::string evidence_text(const Task& task, const CompileOptions& options) {
  std::string text = is_laid_for_call(task, options) ? "laid for a call\n" : "";
  if (const TunedKernel* tuned = find_tuned(options, task)) {
    text += fmt::format("{} {} {}", tuned->candidate.provider, tuned->candidate.estimate.us, tuned->candidate.plan);
    for (const TuningCandidate& candidate : tuned->evidence.candidates) {
      text += fmt::format("\n{} {} {}", candidate.provider, candidate.us, candidate.plan);
    }
  }
  return text;
}

// Names all that a choice depends on. `evidence`: what counts beside the models.
std::string choice_key(const Task& task, const CompileOptions& options, const std::string& evidence) {
  // What is kept in memory alone is of no other program.
  const std::string program = options.cache->keeps_kernels() ? program_hash() : "";
  return content_hash({program, task_hash(task), options.kernels.all, options.kernels.of(task.name),
                       options.kernels.of_layers.contains(task.name) ? "named" : "", options.plan, evidence,
                       zeros_text(task)});
}

// What the cache has under the key, or else what `choose` makes.
template <typename Choose>
Choice found_or_chosen(const KernelCache& cache, const std::string& key, Choose choose) {
  if (std::optional<Choice> found = cache.find_choice(key)) return *std::move(found);
  Choice choice = choose();
  cache.store_choice(key, choice);
  return choice;
}

}  // namespace

Choice cached_choice(const Task& task, const CompileOptions& options) {
  if (options.cache == nullptr) return choose(task, options);
  return found_or_chosen(*options.cache, choice_key(task, options, evidence_text(task, options)),
                         [&] { return choose(task, options); });
}

double estimated_us(const Task& task, const CompileOptions& options) {
  const std::string key = options.cache == nullptr ? "" : choice_key(task, options, "");
  if (options.cache != nullptr && options.cache->is_impossible(key)) return std::numeric_limits<double>::infinity();
  const auto choose_it = [&] { return choose_by_models(task, options); };
  try {
    const Choice choice = options.cache == nullptr ? choose_it() : found_or_chosen(*options.cache, key, choose_it);
    return choice.candidate.estimate.us;
  } catch (const Error& error) {
    // What --plan asks for may fit plain tensors alone.
    const bool plain = task.reads[0].format().is_plain() && task.writes.format().is_plain();
    if (error.kind() != ErrorKind::unsupported && (plain || error.kind() != ErrorKind::usage)) throw;
    if (options.cache != nullptr) options.cache->store_impossible(key);
    return std::numeric_limits<double>::infinity();
  }
}

}  // namespace burin
