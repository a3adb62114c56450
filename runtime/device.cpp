#include <array>

#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/device_state.h"
#include "runtime/library/library_handle.h"

namespace burin {

DeviceState::DeviceState() : libraries(std::make_unique<LibraryHandles>(*this)) {}

DeviceState::~DeviceState() {
  libraries.reset();  // while there is a context
  if (context != nullptr) driver->cuDevicePrimaryCtxRelease(device);
}

int device_count() {
  const DriverTable& driver = driver_table();
  const CUresult result = driver.cuInit(0);
  if (result == kCudaErrorNoDevice) return 0;
  check(driver, result, "cuInit", "while starting the CUDA driver");
  int count = 0;
  check(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

Device Device::open(int ordinal) {
  const int count = device_count();
  if (count == 0) fail(ErrorKind::device, "no CUDA device: the driver finds none; use --device host");
  if (ordinal < 0 || ordinal >= count) {
    fail(ErrorKind::device, "no device cuda:{}: the driver finds {} device{}, cuda:0{}", ordinal, count,
         count == 1 ? "" : "s", count == 1 ? "" : fmt::format(" to cuda:{}", count - 1));
  }
  const DriverTable& driver = driver_table();
  auto state = std::make_shared<DeviceState>();
  state->driver = &driver;
  check(driver, driver.cuDeviceGet(&state->device, ordinal), "cuDeviceGet");

  DeviceInfo& info = state->info;
  info.ordinal = ordinal;
  constexpr std::size_t kNameBytes = 256;
  std::array<char, kNameBytes> name{};
  check(driver, driver.cuDeviceGetName(name.data(), static_cast<int>(name.size() - 1), state->device),
        "cuDeviceGetName");
  info.name = name.data();
  check(driver, driver.cuDriverGetVersion(&info.driver_version), "cuDriverGetVersion");
  check(driver, driver.cuDeviceTotalMem(&info.memory_bytes, state->device), "cuDeviceTotalMem");
  const auto get = [&](int which, std::string_view what) {
    int value = 0;
    check(driver, driver.cuDeviceGetAttribute(&value, which, state->device), "cuDeviceGetAttribute", what);
    return value;
  };
  info.compute_major = get(kDeviceComputeCapabilityMajor, "compute capability");
  info.compute_minor = get(kDeviceComputeCapabilityMinor, "compute capability");
  info.multiprocessors = get(kDeviceMultiprocessorCount, "number of multiprocessors");
  info.max_threads_per_block = get(kDeviceMaxThreadsPerBlock, "threads per block");
  info.max_shared_per_block = get(kDeviceMaxSharedPerBlockOptin, "shared memory per block");
  info.l2_cache_bytes = get(kDeviceL2CacheBytes, "size of the L2 cache");

  const std::string context = fmt::format("while opening cuda:{} ({})", ordinal, info.name);
  check(driver, driver.cuDevicePrimaryCtxRetain(&state->context, state->device), "cuDevicePrimaryCtxRetain", context);
  return Device(std::move(state));
}

const DeviceInfo& Device::info() const { return state_->info; }
CUctx_st* Device::context() const { return state_->context; }

void Device::synchronize() const {
  call(*state_, &DriverTable::cuCtxSynchronize, "cuCtxSynchronize", "while waiting for the device");
}

int error_code(const std::exception& error) noexcept {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return exit_code(ours == nullptr ? ErrorKind::internal : ours->kind());
}

}  // namespace burin
