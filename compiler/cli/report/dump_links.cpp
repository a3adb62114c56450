#include "compiler/cli/report/dump_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/observer.h"
#include "ir/package/manifest_index.h"
#include "ir/printable.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPtxStage = "60-kernel.ptx";
constexpr std::array<std::string_view, 8> kStageFiles = {"00-stages.txt", "10-layer.txt",   "20-pattern.txt",
                                                         "30-plan.txt",   "40-template.ll", "50-specialised.ll",
                                                         kPtxStage,       "70-kernel.json"};

// What a URL's path may hold stays; all else becomes %XX.
std::string as_href(const fs::path& path) {
  std::string href;
  for (const char c : path.generic_string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '/' || c == '~';
    href += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return href;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Whether the PTX of a dump is that of the package; so it is where one of them has none.
bool is_of(const Kernel& kernel, const fs::path& folder) {
  const auto ptx = std::ranges::find(kernel.binaries, BinaryKind::ptx, &KernelBinary::kind);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(folder / kPtxStage, error);
  return ptx == kernel.binaries.end() || error || std::cmp_equal(bytes, ptx->bytes);
}

}  // namespace

std::map<std::string, std::vector<DumpLink>> dump_links(const Package& package, const std::string& folder,
                                                        const std::string& beside, std::vector<std::string>& notes) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) bad_input(printable(folder), "there is no such folder of dumps");
  const fs::path start = fs::weakly_canonical(beside), dumps = fs::weakly_canonical(folder);
  const ManifestIndex index(package.manifest);
  std::set<int> batches;
  for (const Program& program : package.manifest.programs) batches.insert(program.batch);
  DumpFolders folders(batches.size() > 1);
  std::map<std::string, std::vector<DumpLink>> links;
  std::set<std::string> seen;
  int others = 0;
  for (const Program& program : package.manifest.programs) {
    for (const Step& step : program.steps) {
      if (!seen.insert(step.kernel).second) continue;
      const fs::path of_kernel = dumps / folders.of(step.name, program.batch);
      if (!is_of(index.kernel(step.kernel), of_kernel)) {
        ++others;
        continue;
      }
      for (const std::string_view file : kStageFiles) {
        if (!is_file(of_kernel / file)) continue;
        links[step.kernel].push_back({std::string(file), as_href((of_kernel / file).lexically_relative(start))});
      }
    }
  }
  if (links.empty()) bad_input(printable(folder), "holds no dump of a kernel of this package");
  if (others > 0) {
    notes.push_back(fmt::format("{}: the PTX of {} kernel{} is another than the package's; {} not linked",
                                printable(folder), others, others == 1 ? "" : "s", others == 1 ? "it is" : "they are"));
  }
  return links;
}

}  // namespace burin
