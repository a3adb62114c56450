#include "compiler/assemble/nvjitlink.h"

#include <dlfcn.h>

#include "compiler/assemble/locate.h"
#include "compiler/assemble/ptx_directives.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kSuccess = 0;   // NVJITLINK_SUCCESS
constexpr int kInputPtx = 2;  // NVJITLINK_INPUT_PTX

// Releases a link whatever happens. create() gives a handle even when it fails: its log says why.
template <typename Destroy>
struct Link {
  void* handle = nullptr;
  Destroy destroy;
  explicit Link(Destroy d) : destroy(d) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    if (handle != nullptr) destroy(&handle);
  }
};

template <typename Size, typename Get>
std::string read_log(void* handle, Size size_of, Get get) {
  std::size_t size = 0;
  if (handle == nullptr || size_of(handle, &size) != kSuccess || size == 0) return {};
  std::string text(size, '\0');
  if (get(handle, text.data()) != kSuccess) return {};
  return text.substr(0, text.find('\0'));
}

}  // namespace

std::unique_ptr<NvJitLink> NvJitLink::open(const std::vector<std::string>& candidates, std::string& why) {
  for (const std::string& candidate : candidates) {
    std::unique_ptr<NvJitLink> opened(new NvJitLink());
    const std::string fault = opened->open_library(candidate);
    if (fault.empty()) return opened;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", fault);
  }
  return nullptr;
}

std::string NvJitLink::open_library(const std::string& candidate) {
  // Never closed once it serves: it keeps memory and threads of its own.
  void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  path_ = path_of_library(library, candidate);

  // Beside the names with a version (__nvJitLinkCreate_12_3), every library since 12.0 exports the plain ones.
  std::string missing;
  const auto load = [&](auto& function, const char* name, bool required = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && required) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  load(functions_.create, "nvJitLinkCreate");
  load(functions_.destroy, "nvJitLinkDestroy");
  load(functions_.add_data, "nvJitLinkAddData");
  load(functions_.complete, "nvJitLinkComplete");
  load(functions_.cubin_size, "nvJitLinkGetLinkedCubinSize");
  load(functions_.cubin, "nvJitLinkGetLinkedCubin");
  load(functions_.error_log_size, "nvJitLinkGetErrorLogSize");
  load(functions_.error_log, "nvJitLinkGetErrorLog");
  load(functions_.info_log_size, "nvJitLinkGetInfoLogSize");
  load(functions_.info_log, "nvJitLinkGetInfoLog");
  load(functions_.version, "nvJitLinkVersion", false);
  if (!missing.empty()) {
    ::dlclose(library);
    return fmt::format("{}: lacks {}", path_, missing);
  }

  unsigned int major = 0;
  unsigned int minor = 0;
  const bool known = functions_.version != nullptr && functions_.version(&major, &minor) == kSuccess;
  version_ = known ? fmt::format("{}.{}", major, minor) : "unknown";
  return {};
}

AssemblerOutput NvJitLink::assemble(const std::string& ptx, const std::string& arch) const {
  require_arch_name(arch);
  require_ptx(ptx);
  const std::string arch_option = "-arch=" + arch;
  const int cap = register_cap(ptx);
  const std::string cap_option = fmt::format("-maxrregcount={}", cap);
  std::vector<const char*> options = {arch_option.c_str(), "-O3", "-verbose"};
  if (cap > 0) options.push_back(cap_option.c_str());

  Link link(functions_.destroy);
  Result result = functions_.create(&link.handle, static_cast<std::uint32_t>(options.size()), options.data());
  // All options but the architecture are ours and known to every version; 12.x refuses an unknown one without a reason.
  if (result != kSuccess && link.handle != nullptr) {
    fail_unknown_arch("nvJitLink " + version_, arch,
                      read_log(link.handle, functions_.error_log_size, functions_.error_log));
  }
  if (result == kSuccess) result = functions_.add_data(link.handle, kInputPtx, ptx.data(), ptx.size(), "kernel.ptx");
  if (result == kSuccess) result = functions_.complete(link.handle);
  AssemblerOutput output;
  std::size_t size = 0;
  if (result == kSuccess) result = functions_.cubin_size(link.handle, &size);
  if (result == kSuccess) {
    output.cubin.resize(size);
    result = functions_.cubin(link.handle, output.cubin.data());
  }
  output.log = read_log(link.handle, functions_.info_log_size, functions_.info_log);
  if (result == kSuccess) return output;
  const std::string errors = read_log(link.handle, functions_.error_log_size, functions_.error_log);
  fail_assembly("nvJitLink " + version_, arch,
                errors.empty() ? fmt::format("nvJitLink error {}\n{}", result, output.log) : errors);
}

}  // namespace burin
