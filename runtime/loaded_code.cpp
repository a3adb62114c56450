#include "runtime/loaded_code.h"

#include <array>

#include "ir/check_cubin.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "runtime/launch_plan.h"
#include "runtime/select_binary.h"

namespace burin {
namespace {

constexpr std::size_t kJitLogBytes = 16 * 1024;

// Where the driver's compiler writes what it has to say.
struct JitLogs {
  std::string info = std::string(kJitLogBytes, '\0');
  std::string error = std::string(kJitLogBytes, '\0');

  // The logs end at the first NUL; the driver's report of their lengths differs between versions.
  static std::string text(const std::string& buffer) {
    std::string log = buffer.substr(0, buffer.find('\0'));
    while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
    return log;
  }
};

// What can be known before the driver is asked: a clear sentence instead of CUDA_ERROR_INVALID_VALUE.
void check_limits(const Kernel& kernel, const DeviceInfo& device) {
  const LaunchGeometry& launch = kernel.form.launch;
  if (launch.shared_bytes > device.max_shared_per_block) {
    fail(ErrorKind::device,
         "kernel {} of {} needs {} bytes of shared memory per block, and cuda:{} ({}, {}) offers {}; {}", kernel.symbol,
         kernel.owner(), launch.shared_bytes, device.ordinal, device.name, device.arch(), device.max_shared_per_block,
         how_to_compile_for(device));
  }
  if (launch.threads > device.max_threads_per_block) {
    fail(ErrorKind::device, "kernel {} of {} needs {} threads per block, and cuda:{} ({}) offers {}", kernel.symbol,
         kernel.owner(), launch.threads, device.ordinal, device.name, device.max_threads_per_block);
  }
}

void check_boxes(const Kernel& kernel, const DeviceState& device) {
  if (kernel.form.boxes.empty() || device.driver->cuTensorMapEncodeTiled != nullptr) return;
  const int has = device.info.driver_version;
  fail(ErrorKind::device,
       "kernel {} of {} copies boxes of its tensors, which needs a driver for CUDA 12.0 or newer, and this one is for "
       "CUDA {}.{}: update the NVIDIA driver",
       kernel.symbol, kernel.owner(), has / 1000, has % 1000 / 10);
}

void load_module(LoadedModule& loaded, const std::string& code, const std::string& what) {
  const DriverTable& driver = *loaded.device->driver;
  JitLogs logs;
  const auto as_value = [](std::size_t bytes) { return reinterpret_cast<void*>(bytes); };
  std::array options = {kJitInfoLogBuffer, kJitInfoLogBufferBytes, kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  std::array<void*, options.size()> values = {logs.info.data(), as_value(kJitLogBytes - 1), logs.error.data(),
                                              as_value(kJitLogBytes - 1)};
  // std::string ends in the NUL that the driver wants of PTX.
  const CUresult result = driver.cuModuleLoadDataEx(&loaded.module, code.c_str(), static_cast<unsigned>(options.size()),
                                                    options.data(), values.data());
  loaded.log = JitLogs::text(logs.info);
  if (result == kCudaSuccess) return;
  loaded.module = nullptr;
  std::string context = "while loading " + what;
  if (const std::string error = JitLogs::text(logs.error); !error.empty()) context += "; the driver's log:\n" + error;
  if (!loaded.log.empty()) context += "\nand further:\n" + loaded.log;
  fail_driver(driver, result, "cuModuleLoadDataEx", context);
}

int attribute(const LoadedModule& loaded, int which, const std::string& what) {
  const DriverTable& driver = *loaded.device->driver;
  int value = 0;
  check(driver, driver.cuFuncGetAttribute(&value, which, loaded.function), "cuFuncGetAttribute", what);
  return value;
}

// The driver reads parameters from the host's memory as the code counts them. A driver older than CUDA 12.4 does not
// say how: then machine code alone has been checked.
void check_parameters(const LoadedModule& loaded, const KernelForm& form, const std::string& what) {
  const DriverTable& driver = *loaded.device->driver;
  if (driver.cuFuncGetParamInfo == nullptr) return;
  const std::vector<CubinParameter> wanted = parameters_of(form);
  std::vector<CubinParameter> found;
  while (found.size() <= wanted.size()) {
    std::size_t offset = 0, bytes = 0;
    const CUresult result = driver.cuFuncGetParamInfo(loaded.function, found.size(), &offset, &bytes);
    if (result == kCudaErrorInvalidValue) break;  // there are no more
    check(driver, result, "cuFuncGetParamInfo", what);
    found.push_back({.offset = static_cast<int>(offset), .bytes = static_cast<int>(bytes)});
  }
  if (are_parameters_of(found, form)) return;
  fail(ErrorKind::bad_input, "{} takes {}{} as parameters; its plan's takes {}", what, text_of(found),
       found.size() > wanted.size() ? " and more" : "", text_of(wanted));
}

void configure_function(LoadedModule& loaded, const LaunchGeometry& launch, const std::string& what) {
  const DriverTable& driver = *loaded.device->driver;
  const DeviceInfo& device = loaded.device->info;
  KernelAttributes& attributes = loaded.attributes;
  attributes.registers = attribute(loaded, kFunctionRegisters, what);
  attributes.local_bytes = attribute(loaded, kFunctionLocalBytes, what);
  attributes.static_shared_bytes = attribute(loaded, kFunctionStaticSharedBytes, what);
  attributes.max_threads_per_block = attribute(loaded, kFunctionMaxThreadsPerBlock, what);
  if (launch.threads > attributes.max_threads_per_block) {
    fail(ErrorKind::device,
         "{} needs {} threads per block; with its {} registers per thread cuda:{} ({}) can run {} of them; {}", what,
         launch.threads, attributes.registers, device.ordinal, device.name, attributes.max_threads_per_block,
         how_to_compile_for(device));
  }
  if (attributes.static_shared_bytes != 0) {
    fail(ErrorKind::bad_input, "{} takes {} bytes of static shared memory; burin's kernels take none", what,
         attributes.static_shared_bytes);
  }
  check(driver, driver.cuFuncSetAttribute(loaded.function, kFunctionMaxDynamicSharedBytes, launch.shared_bytes),
        "cuFuncSetAttribute", what);
}

}  // namespace

bool awaits_launch(const LoadedCode& code) {
  constexpr int kFirstThatAwaits = 90;
  const std::optional<ArchName> arch = parse_arch_name(code.arch);
  return arch && arch->compute >= kFirstThatAwaits;
}

std::shared_ptr<const DeviceBuffer> SharedWeights::get(const Device& device, const Package& package,
                                                       const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const DeviceBuffer>& known = loaded_[path];
  std::shared_ptr<const DeviceBuffer> weights = known.lock();
  if (weights == nullptr) {
    const std::shared_ptr<const std::string> content = package.files.at(path).content();
    weights = std::make_shared<const DeviceBuffer>(device, std::span<const char>(*content));
    known = weights;
  }
  return weights;
}

LoadedModule::~LoadedModule() {
  if (module == nullptr) return;
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuModuleUnload(module); });
}

std::shared_ptr<const LoadedModule> SharedModules::get(const Kernel& kernel, const KernelBinary& binary,
                                                       const Load& load) {
  const std::optional<std::string> shared = kernel.shared_code();
  if (!shared) return load();
  const std::string key = fmt::format("{} {} {}", to_string(binary.kind), binary.arch, *shared);
  // Others load meanwhile: the driver may have to compile.
  Slot& slot = [&]() -> Slot& {
    const std::lock_guard lock(mutex_);
    return loaded_[key];
  }();
  const std::lock_guard lock(slot.mutex);
  std::shared_ptr<const LoadedModule> module = slot.module.lock();
  if (module == nullptr) slot.module = module = load();
  return module;
}

std::shared_ptr<const LoadedCode> load_kernel(const Device& device, const std::shared_ptr<const Package>& package,
                                              const Kernel& kernel, const LoadOptions& options, SharedModules& modules,
                                              SharedWeights& weights, const std::shared_ptr<LoadNotes>& notes) {
  const KernelBinary& binary = select_binary(kernel, device.info(), options.force_jit);
  check_limits(kernel, device.info());
  check_boxes(kernel, *device.state());
  const std::shared_ptr<const std::string> code = package->files.at(binary.path).content();
  if (binary.kind == BinaryKind::cubin) check_cubin(kernel, binary, *code);
  auto loaded = std::make_shared<LoadedCode>();
  loaded->device = device.state();
  loaded->package = package;
  loaded->kernel = &kernel;
  loaded->from = binary.kind == BinaryKind::cubin ? LoadedFrom::cubin : LoadedFrom::jit;
  loaded->arch = binary.arch;
  const std::string what = fmt::format("kernel {} of {} ({} for {})", kernel.symbol, kernel.owner(),
                                       loaded->from == LoadedFrom::cubin ? "cubin" : "PTX", binary.arch);

  const ContextScope scope(*loaded->device);
  loaded->module = modules.get(kernel, binary, [&] {
    auto module = std::make_shared<LoadedModule>();
    module->device = device.state();
    load_module(*module, *code, what);
    const DriverTable& driver = *module->device->driver;
    check(driver, driver.cuModuleGetFunction(&module->function, module->module, kernel.entry_name().c_str()),
          "cuModuleGetFunction", what);
    if (binary.kind == BinaryKind::ptx) check_parameters(*module, kernel.form, what);
    configure_function(*module, kernel.form.launch, what);
    return module;
  });
  if (!kernel.weights.empty()) loaded->weights = weights.get(device, *package, kernel.weights);
  if (kernel.call && options.libraries != LibraryUse::none) {
    const std::shared_ptr<const std::string> layer = package->files.at(kernel.layer_data()).content();
    loaded->library = load_library_code(device, kernel, *layer, options, notes);
  }
  return loaded;
}

WorkspaceSize workspace_of(const LoadedCode& code, int batch) {
  const WorkspaceSize own = launch_workspace(*code.kernel, batch);
  const std::shared_ptr<const LibraryLaunch> call = code.call_for(batch);
  return call == nullptr ? own : WorkspaceSize{0, call->workspace_bytes()};
}

}  // namespace burin
