#include "compiler/assemble/nvrtc.h"

#include <dlfcn.h>

#include "compiler/assemble/locate.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kDone = 0, kDoesNotCompile = 6;  // NVRTC_SUCCESS, NVRTC_ERROR_COMPILATION

// A text of a program: PTX, or what the compiler says.
template <typename Size, typename Get>
std::string text_of(void* program, Size size_of, Get get) {
  std::size_t size = 0;
  if (size_of(program, &size) != kDone || size == 0) return {};
  std::string text(size, '\0');
  if (get(program, text.data()) != kDone) return {};
  return text.substr(0, text.find('\0'));
}

}  // namespace

std::vector<std::string> Nvrtc::candidates() {
  return library_candidates("BURIN_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"});
}

std::unique_ptr<Nvrtc> Nvrtc::open(const std::vector<std::string>& candidates, std::string& why) {
  for (const std::string& candidate : candidates) {
    std::unique_ptr<Nvrtc> opened(new Nvrtc());
    const std::string fault = opened->open_library(candidate);
    if (fault.empty()) return opened;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", fault);
  }
  return nullptr;
}

std::string Nvrtc::open_library(const std::string& candidate) {
  // It is never closed once it serves: it keeps memory and threads of its own.
  void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  path_ = path_of_library(library, candidate);
  std::string missing;
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  load(functions_.create, "nvrtcCreateProgram");
  load(functions_.destroy, "nvrtcDestroyProgram");
  load(functions_.compile, "nvrtcCompileProgram");
  load(functions_.ptx_size, "nvrtcGetPTXSize");
  load(functions_.ptx, "nvrtcGetPTX");
  load(functions_.log_size, "nvrtcGetProgramLogSize");
  load(functions_.log, "nvrtcGetProgramLog");
  load(functions_.version, "nvrtcVersion");
  int major = 0, minor = 0;
  if (missing.empty() && functions_.version(&major, &minor) == kDone) {
    version_ = fmt::format("{}.{}", major, minor);
    return {};
  }
  const std::string why = missing.empty() ? path_ + " does not say its version" : path_ + ": lacks " + missing;
  ::dlclose(library);
  return why;
}

Nvrtc::Result Nvrtc::compile(const std::string& source, const std::string& name,
                             const std::vector<std::string>& options) const {
  struct Owned {
    Program program = nullptr;
    int (*destroy)(Program*);
    ~Owned() {
      if (program != nullptr) destroy(&program);
    }
  } owned{nullptr, functions_.destroy};
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  int result = functions_.create(&owned.program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (result == kDone) {
    result = functions_.compile(owned.program, static_cast<int>(texts.size()), texts.data());
  }
  Result made;
  if (owned.program != nullptr) made.log = text_of(owned.program, functions_.log_size, functions_.log);
  if (result == kDoesNotCompile) return made;
  if (result == kDone) made.ptx = text_of(owned.program, functions_.ptx_size, functions_.ptx);
  if (made.ptx.empty()) {
    fail(ErrorKind::unsupported, "NVRTC {} ({}) fails with error {}: {}", version_, path_, result, made.log);
  }
  return made;
}

}  // namespace burin
