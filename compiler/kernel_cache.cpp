#include "compiler/kernel_cache.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "compiler/assemble/assemble.h"
#include "compiler/source_hash.h"
#include "ir/error.h"
#include "ir/kernel_plan.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = "cache";  // what the entries' manifests name as the file they came from

// This program's own bytes: templates, planner and code generation are all in them.
const std::string& program_hash() {
  static const std::string hash = [] {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return content_hash({bytes.str()});
  }();
  return hash;
}

}  // namespace

std::optional<PackagedKernel> KernelCache::find(const std::string& key) const {
  const fs::path path = path_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    Package package = read_package(path.string());
    if (package.manifest.kernels.size() != 1 || package.manifest.source != kSource) return std::nullopt;
    PackagedKernel kernel{std::move(package.manifest.kernels.front()), {}};
    for (auto& [name, content] : package.files) kernel.files.emplace_back(name, std::move(content));
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
  package.manifest.tool_version = BURIN_VERSION;
  package.manifest.source = kSource;
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
    if (file.path().extension() != ".burin") continue;
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

std::string cache_key(const LayerJob& job, const CompileOptions& options, const TunedPlan* tuned) {
  const ConvLayer& layer = *job.layer;
  const AssemblerInfo& assembler = find_assembler();
  const auto bytes = [](const std::vector<float>& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const std::string request =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", job.batch, job.suffix, job.in_network, job.output_image_words,
                  job.residual_image_words, fmt::join(options.archs, ","), options.precision,
                  options.layout ? to_string(*options.layout) : "", options.skip_dead_tiles, options.keep_bitcode,
                  tuned != nullptr);
  const std::string plan = tuned == nullptr ? std::string() : print(tuned->plan);
  return content_hash({program_hash(),
                       fmt::format("{} {} {}", static_cast<int>(assembler.kind), assembler.path, assembler.version),
                       request, print(options.plan_constraints), layer.name, print(layer.shape), bytes(layer.weights),
                       bytes(layer.bias), plan});
}

}  // namespace burin
