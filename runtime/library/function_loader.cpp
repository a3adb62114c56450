#include "runtime/library/function_loader.h"

#include <dlfcn.h>
#include <link.h>

#include "ir/error.h"

namespace burin {
namespace {

std::string path_of(void* library, const std::string& fallback) {
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr;
  return known && map->l_name[0] != '\0' ? map->l_name : fallback;
}

// Sets `path`; returns why it cannot be used, or nothing.
std::string try_to_open(const std::string& candidate, const std::function<void(FunctionLoader&)>& load,
                        std::string& path) {
  void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    return text == nullptr ? candidate + ": cannot be opened" : text;
  }
  path = path_of(library, candidate);
  FunctionLoader loader(library);
  load(loader);
  if (loader.missing().empty()) return {};
  std::string fault = fmt::format("{}: lacks {}", path, loader.missing());
  dlclose(library);
  return fault;
}

}  // namespace

void* FunctionLoader::address_of(const char* name) {
  void* address = dlsym(library_, name);
  if (address == nullptr) missing_ += fmt::format("{}{}", missing_.empty() ? "" : ", ", name);
  return address;
}

std::string open_library(std::string_view title, const std::vector<std::string>& candidates, std::string_view help,
                         const std::function<void(FunctionLoader&)>& load) {
  std::string why, path;
  for (const std::string& candidate : candidates) {
    const std::string fault = try_to_open(candidate, load, path);
    if (fault.empty()) return path;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", fault);
  }
  fail(ErrorKind::device, "no {}: {}; {}", title, why.empty() ? "no library to try" : why, help);
}

}  // namespace burin
