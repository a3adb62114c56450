#include "runtime/loaded_kernel.h"

#include <array>

#include "ir/error.h"
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
void check_limits(const KernelRecord& record, const DeviceInfo& device) {
  if (record.launch.shared_bytes > device.max_shared_per_block) {
    fail(ErrorKind::device,
         "kernel {} of layer {} needs {} bytes of shared memory per block, and cuda:{} ({}, {}) offers {}; compile it "
         "with --arch {}",
         record.symbol, record.layer, record.launch.shared_bytes, device.ordinal, device.name, device.arch(),
         device.max_shared_per_block, device.arch());
  }
  if (record.launch.threads > device.max_threads_per_block) {
    fail(ErrorKind::device, "kernel {} of layer {} needs {} threads per block, and cuda:{} ({}) offers {}",
         record.symbol, record.layer, record.launch.threads, device.ordinal, device.name, device.max_threads_per_block);
  }
}

void load_module(LoadedKernel& kernel, const std::string& code, const std::string& what) {
  const DriverTable& driver = *kernel.device->driver;
  JitLogs logs;
  const auto as_value = [](std::size_t bytes) { return reinterpret_cast<void*>(bytes); };
  std::array options = {kJitInfoLogBuffer, kJitInfoLogBufferBytes, kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  std::array<void*, options.size()> values = {logs.info.data(), as_value(kJitLogBytes - 1), logs.error.data(),
                                              as_value(kJitLogBytes - 1)};
  // std::string ends in the NUL that the driver wants of PTX.
  const CUresult result = driver.cuModuleLoadDataEx(&kernel.module, code.c_str(), static_cast<unsigned>(options.size()),
                                                    options.data(), values.data());
  kernel.log = JitLogs::text(logs.info);
  if (result == kCudaSuccess) return;
  kernel.module = nullptr;
  std::string context = "while loading " + what;
  if (const std::string error = JitLogs::text(logs.error); !error.empty()) context += "; the driver's log:\n" + error;
  if (!kernel.log.empty()) context += "\nand further:\n" + kernel.log;
  fail_driver(driver, result, "cuModuleLoadDataEx", context);
}

int attribute(const LoadedKernel& kernel, int which, const std::string& what) {
  const DriverTable& driver = *kernel.device->driver;
  int value = 0;
  check(driver, driver.cuFuncGetAttribute(&value, which, kernel.function), "cuFuncGetAttribute", what);
  return value;
}

void configure_function(LoadedKernel& kernel, const std::string& what) {
  const DriverTable& driver = *kernel.device->driver;
  const DeviceInfo& device = kernel.device->info;
  const KernelRecord& record = *kernel.record;
  KernelAttributes& attributes = kernel.attributes;
  attributes.registers = attribute(kernel, kFunctionRegisters, what);
  attributes.local_bytes = attribute(kernel, kFunctionLocalBytes, what);
  attributes.static_shared_bytes = attribute(kernel, kFunctionStaticSharedBytes, what);
  attributes.max_threads_per_block = attribute(kernel, kFunctionMaxThreadsPerBlock, what);
  if (record.launch.threads > attributes.max_threads_per_block) {
    fail(ErrorKind::device,
         "{} needs {} threads per block; with its {} registers per thread cuda:{} ({}) can run {} of them; compile it "
         "with --arch {}",
         what, record.launch.threads, attributes.registers, device.ordinal, device.name,
         attributes.max_threads_per_block, device.arch());
  }
  if (record.launch.shared_bytes + std::int64_t{attributes.static_shared_bytes} > device.max_shared_per_block) {
    fail(ErrorKind::device, "{} needs {} + {} bytes of dynamic and static shared memory, and cuda:{} ({}) offers {}",
         what, record.launch.shared_bytes, attributes.static_shared_bytes, device.ordinal, device.name,
         device.max_shared_per_block);
  }
  check(driver, driver.cuFuncSetAttribute(kernel.function, kFunctionMaxDynamicSharedBytes, record.launch.shared_bytes),
        "cuFuncSetAttribute", what);
}

}  // namespace

LoadedKernel::~LoadedKernel() {
  if (module == nullptr) return;
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuModuleUnload(module); });
}

std::shared_ptr<const LoadedKernel> load_kernel(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const KernelRecord& record, bool force_jit) {
  const KernelBinary& binary = select_binary(record, device->info, force_jit);
  check_limits(record, device->info);
  const auto file = package->files.find(binary.path);
  if (file == package->files.end()) {
    fail(ErrorKind::bad_input, "the package names {} as code of kernel {}, and does not hold it", binary.path,
         record.symbol);
  }

  auto kernel = std::make_shared<LoadedKernel>();
  kernel->device = device;
  kernel->package = package;
  kernel->record = &record;
  kernel->from = binary.kind == BinaryKind::cubin ? LoadedFrom::cubin : LoadedFrom::jit;
  kernel->arch = binary.arch;
  const std::string what = fmt::format("kernel {} of layer {} ({} for {})", record.symbol, record.layer,
                                       kernel->from == LoadedFrom::cubin ? "cubin" : "PTX", binary.arch);

  const ContextScope scope(*device);
  load_module(*kernel, file->second, what);
  const DriverTable& driver = *device->driver;
  check(driver, driver.cuModuleGetFunction(&kernel->function, kernel->module, record.symbol.c_str()),
        "cuModuleGetFunction", what);
  configure_function(*kernel, what);
  return kernel;
}

}  // namespace burin
