#include "compiler/assemble/locate.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace burin {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_folder(it->path())) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_unique(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

void add_packages(std::vector<std::string>& list, const fs::path& site_packages) {
  for (const fs::path& package : subfolders(site_packages / "nvidia")) add_unique(list, package.string());
}

// A virtual environment holds lib/python3.N/site-packages.
void add_environment(std::vector<std::string>& list, const fs::path& root) {
  for (const fs::path& python : subfolders(root / "lib")) {
    if (python.filename().string().starts_with("python3")) add_packages(list, python / "site-packages");
  }
}

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path();
}

// A toolkit keeps libraries in lib64 (or lib, or targets/...), a wheel in lib.
std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  for (const std::string& toolkit : toolkit_folders()) {
    for (const char* name : {"lib64", "lib", "targets/x86_64-linux/lib"}) folders.push_back(fs::path(toolkit) / name);
  }
  for (const std::string& wheel : wheel_folders()) folders.push_back(fs::path(wheel) / "lib");
  std::erase_if(folders, [](const fs::path& folder) { return !is_folder(folder); });
  return folders;
}

}  // namespace

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const std::string& folder :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (!folder.empty() && is_folder(folder)) add_unique(folders, folder);
  }
  return folders;
}

std::vector<std::string> wheel_folders() {
  std::vector<std::string> folders;
  if (const std::string chosen = environment("BURIN_CUDA_WHEELS"); !chosen.empty()) {
    add_packages(folders, chosen);
    add_environment(folders, chosen);
    return folders;
  }
  if (const fs::path program = program_folder(); !program.empty()) {
    add_environment(folders, program.parent_path() / ".venv");
  }
  add_environment(folders, fs::path(BURIN_SOURCE_FOLDER) / ".venv");
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty()) add_environment(folders, active);
  return folders;
}

std::vector<std::string> library_candidates(const char* variable, const std::vector<std::string_view>& names) {
  if (const std::string chosen = environment(variable); !chosen.empty()) return {chosen};
  std::vector<std::string> candidates;
  for (std::string_view name : names) candidates.emplace_back(name);
  for (const fs::path& folder : library_folders()) {
    for (std::string_view name : names) {
      std::error_code ignored;
      const fs::path file = folder / name;
      if (fs::exists(file, ignored)) add_unique(candidates, file.string());
    }
  }
  return candidates;
}

std::vector<std::string> program_candidates(const char* variable, std::string_view name) {
  if (const std::string chosen = environment(variable); !chosen.empty()) return {chosen};
  std::vector<fs::path> folders;
  const std::string path = environment("PATH");
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    if (end > start) folders.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  for (const std::string& toolkit : toolkit_folders()) folders.push_back(fs::path(toolkit) / "bin");
  for (const std::string& wheel : wheel_folders()) folders.push_back(fs::path(wheel) / "bin");

  std::vector<std::string> candidates;
  for (const fs::path& folder : folders) {
    const std::string file = (folder / name).string();
    if (::access(file.c_str(), X_OK) == 0 && !is_folder(file)) add_unique(candidates, file);
  }
  return candidates;
}

std::string path_of_library(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr ||
      map->l_name[0] == '\0') {
    return fallback;
  }
  return map->l_name;
}

}  // namespace burin
