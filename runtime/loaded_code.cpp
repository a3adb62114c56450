#include "runtime/loaded_code.h"

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
void check_limits(const KernelCode& code, const DeviceInfo& device) {
  if (code.shared_bytes > device.max_shared_per_block) {
    fail(ErrorKind::device,
         "kernel {} of {} needs {} bytes of shared memory per block, and cuda:{} ({}, {}) offers {}; compile it "
         "with --arch {}",
         code.symbol, code.owner, code.shared_bytes, device.ordinal, device.name, device.arch(),
         device.max_shared_per_block, device.arch());
  }
  if (code.threads > device.max_threads_per_block) {
    fail(ErrorKind::device, "kernel {} of {} needs {} threads per block, and cuda:{} ({}) offers {}", code.symbol,
         code.owner, code.threads, device.ordinal, device.name, device.max_threads_per_block);
  }
}

void load_module(LoadedCode& kernel, const std::string& code, const std::string& what) {
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

int attribute(const LoadedCode& kernel, int which, const std::string& what) {
  const DriverTable& driver = *kernel.device->driver;
  int value = 0;
  check(driver, driver.cuFuncGetAttribute(&value, which, kernel.function), "cuFuncGetAttribute", what);
  return value;
}

void configure_function(LoadedCode& kernel, const KernelCode& code, const std::string& what) {
  const DriverTable& driver = *kernel.device->driver;
  const DeviceInfo& device = kernel.device->info;
  KernelAttributes& attributes = kernel.attributes;
  attributes.registers = attribute(kernel, kFunctionRegisters, what);
  attributes.local_bytes = attribute(kernel, kFunctionLocalBytes, what);
  attributes.static_shared_bytes = attribute(kernel, kFunctionStaticSharedBytes, what);
  attributes.max_threads_per_block = attribute(kernel, kFunctionMaxThreadsPerBlock, what);
  if (code.threads > attributes.max_threads_per_block) {
    fail(ErrorKind::device,
         "{} needs {} threads per block; with its {} registers per thread cuda:{} ({}) can run {} of them; compile it "
         "with --arch {}",
         what, code.threads, attributes.registers, device.ordinal, device.name, attributes.max_threads_per_block,
         device.arch());
  }
  if (code.shared_bytes + std::int64_t{attributes.static_shared_bytes} > device.max_shared_per_block) {
    fail(ErrorKind::device, "{} needs {} + {} bytes of dynamic and static shared memory, and cuda:{} ({}) offers {}",
         what, code.shared_bytes, attributes.static_shared_bytes, device.ordinal, device.name,
         device.max_shared_per_block);
  }
  check(driver, driver.cuFuncSetAttribute(kernel.function, kFunctionMaxDynamicSharedBytes, code.shared_bytes),
        "cuFuncSetAttribute", what);
}

void load(LoadedCode& kernel, const std::shared_ptr<const DeviceState>& device,
          const std::shared_ptr<const Package>& package, const KernelCode& code, bool force_jit) {
  const KernelBinary& binary = select_binary(code, device->info, force_jit);
  check_limits(code, device->info);
  const auto file = package->files.find(binary.path);
  if (file == package->files.end()) {
    fail(ErrorKind::bad_input, "the package names {} as code of kernel {}, and does not hold it", binary.path,
         code.symbol);
  }

  kernel.device = device;
  kernel.package = package;
  kernel.from = binary.kind == BinaryKind::cubin ? LoadedFrom::cubin : LoadedFrom::jit;
  kernel.arch = binary.arch;
  const std::string what = fmt::format("kernel {} of {} ({} for {})", code.symbol, code.owner,
                                       kernel.from == LoadedFrom::cubin ? "cubin" : "PTX", binary.arch);

  const ContextScope scope(*device);
  load_module(kernel, file->second, what);
  const DriverTable& driver = *device->driver;
  check(driver, driver.cuModuleGetFunction(&kernel.function, kernel.module, code.symbol.c_str()), "cuModuleGetFunction",
        what);
  configure_function(kernel, code, what);
}

}  // namespace

KernelCode::KernelCode(const KernelRecord& record)
    : symbol(record.symbol),
      owner("layer " + record.layer),
      binaries(record.binaries),
      threads(record.launch.threads),
      shared_bytes(record.launch.shared_bytes) {}

KernelCode::KernelCode(const OperatorRecord& record)
    : symbol(record.symbol),
      owner("operator " + record.op),
      binaries(record.binaries),
      threads(record.plan.threads),
      shared_bytes(record.plan.shared_bytes) {}

bool awaits_launch(const LoadedCode& code) {
  constexpr int kFirstThatAwaits = 90;
  const std::optional<ArchName> arch = parse_arch_name(code.arch);
  return arch && arch->compute >= kFirstThatAwaits;
}

LoadedCode::~LoadedCode() {
  if (module == nullptr) return;
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuModuleUnload(module); });
}

std::shared_ptr<const LoadedKernel> load_kernel(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const KernelRecord& record, bool force_jit) {
  auto kernel = std::make_shared<LoadedKernel>();
  kernel->record = &record;
  load(*kernel, device, package, record, force_jit);
  return kernel;
}

std::shared_ptr<const LoadedCode> load_operator(const std::shared_ptr<const DeviceState>& device,
                                                const std::shared_ptr<const Package>& package,
                                                const OperatorRecord& record, bool force_jit) {
  auto kernel = std::make_shared<LoadedCode>();
  load(*kernel, device, package, record, force_jit);
  return kernel;
}

}  // namespace burin
