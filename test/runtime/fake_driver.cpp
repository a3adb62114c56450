#include "test/runtime/fake_driver.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "ir/activity_map.h"
#include "ir/kernel.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr int kFakeDriverVersion = 13000;
constexpr std::size_t kFakeMemoryBytes = std::size_t{1} << 37;

FakeDriver* fake = nullptr;
thread_local std::vector<CUcontext> context_stack;

// What a thread captures. It must not allocate meanwhile, but in the relaxed mode, and not use the default stream.
struct ThreadCaptures {
  int streams = 0, mode = 0;
  bool is_broken = false;
};
thread_local ThreadCaptures capturing;

CUcontext current() { return context_stack.empty() ? nullptr : context_stack.back(); }

const std::map<CUresult, std::pair<const char*, const char*>> kErrorTexts = {
    {kErrorInvalidValue, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {kErrorOutOfMemory, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {kCudaErrorNoDevice, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {kErrorInvalidContext, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {kErrorInvalidPtx, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
    {kErrorInvalidHandle, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {kErrorStreamCaptureUnsupported, {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not while a stream is captured"}},
    {kErrorStreamCaptureInvalidated, {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an error broke the capture"}},
    {kErrorNotFound, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
};

void write_log(int count, int* options, void** values, int buffer_option, int bytes_option, const std::string& log) {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (options[i] == buffer_option) buffer = static_cast<char*>(values[i]);
    if (options[i] == bytes_option) bytes = reinterpret_cast<std::size_t>(values[i]);
  }
  if (buffer == nullptr || bytes == 0) return;
  const std::size_t length = std::min(log.size(), bytes - 1);
  std::memcpy(buffer, log.data(), length);
  buffer[length] = '\0';
}

}  // namespace

bool FakeDriver::is_release(const std::string& call) {
  static const std::set<std::string> releases = {
      "cuDevicePrimaryCtxRelease", "cuCtxPopCurrent", "cuModuleUnload",     "cuMemFree",
      "cuStreamDestroy",           "cuEventDestroy",  "cuGraphExecDestroy", "cuGraphDestroy"};
  return releases.contains(call);
}

// Counts the call and says whether it fails. A release that fails still takes the object back, as a real driver does at
// the end of a process.
CUresult FakeDriver::enter(const char* name, bool needs_context) {
  const int number = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool in_launch = std::strcmp(name, "cuLaunchKernel") == 0 || std::strncmp(name, "cuCtx", 5) == 0;
  if (!in_launch) {
    const std::lock_guard lock(mutex_);
    ++calls_by_name_[name];
  }
  if (fail_at != 0 && number == fail_at) {
    failed_call_ = name;
    return fail_code;
  }
  if (fail_at != 0 && number == fail_at + 1) call_after_failure_ = name;
  if (!fail_call.empty() && fail_call == name) return fail_code;
  // A release whose context could not be made current, because that very call was made to fail, counts as done.
  const bool after_failed_push = failed_call_ == "cuCtxPushCurrent" && is_release(name);
  if (needs_context && current() == nullptr && !after_failed_push) return kErrorInvalidContext;
  return kCudaSuccess;
}

template <typename Handle>
Handle* FakeDriver::take(const char* what, Handle* handle) {
  const std::lock_guard lock(mutex_);
  live_[handle] = what;
  return handle;
}

bool FakeDriver::give_back(const void* handle) {
  const std::lock_guard lock(mutex_);
  return live_.erase(handle) == 1;
}

bool FakeDriver::known(const void* handle) {
  const std::lock_guard lock(mutex_);
  return live_.contains(handle);
}

int FakeDriver::calls_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return calls_by_name_[name];
}

std::vector<FakeLaunch> FakeDriver::launches() const {
  return {launches_.begin(), launches_.begin() + static_cast<long>(launch_count_.load())};
}

std::vector<std::string> FakeDriver::loaded_code() {
  const std::lock_guard lock(mutex_);
  return loaded_code_;
}

std::vector<FakeGraph> FakeDriver::graphs() {
  const std::lock_guard lock(mutex_);
  return graphs_;
}

std::vector<std::size_t> FakeDriver::allocations() {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

std::vector<std::string> FakeDriver::faults() {
  const std::lock_guard lock(mutex_);
  return faults_;
}

int FakeDriver::checked_tensors() {
  const std::lock_guard lock(mutex_);
  return checked_tensors_;
}

void FakeDriver::knows(std::shared_ptr<const Package> package) {
  const std::lock_guard lock(mutex_);
  for (const Kernel& kernel : package->manifest.kernels) kernels_[kernel.entry_name()] = kernel;
}

bool FakeDriver::fits(const void* memory, std::size_t bytes, const std::string& what) {
  const std::lock_guard lock(mutex_);
  const char* const address = static_cast<const char*>(memory);
  auto block = blocks_.upper_bound(address);
  const std::size_t left = block == blocks_.begin() || (--block)->first + block->second < address
                               ? 0
                               : static_cast<std::size_t>(block->first + block->second - address);
  if (bytes <= left) return true;
  faults_.push_back(fmt::format("{} takes {} bytes, and {} are there", what, bytes, left));
  return false;
}

namespace {

// The bytes that a launch reads or writes of a tensor.
std::int64_t reach(const KernelForm& form, const KernelTensor& tensor, int batch) {
  if (tensor.map) return map_bytes(*tensor.map, {batch, tensor.channels, tensor.rows, tensor.cols});
  if (tensor.role == TensorRole::partials) return tile_count(form.launch, batch) * form.launch.workspace_bytes_per_tile;
  if (tensor.role == TensorRole::counters) return tile_count(form.launch, batch) * form.launch.counters_per_tile * 4;
  if (tensor.role == TensorRole::weights) return tensor.words() * kWordBytes;
  return tensor.spanned_words(batch) * tensor.word_bytes();
}

}  // namespace

void FakeDriver::check_reach(const FakeLaunch& launch) {
  const KernelForm* form = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto kernel = kernels_.find(launch.function->symbol);
    if (kernel == kernels_.end()) return;
    form = &kernel->second.form;
    checked_tensors_ += static_cast<int>(form->tensors.size());
  }
  for (std::size_t i = 0; i < form->boxes.size(); ++i) {
    const FakeBox& box = launch.boxes[i];
    const BoxAxes axes =
        axes_of(form->boxes[i], form->tensors[static_cast<std::size_t>(form->boxes[i].tensor)], launch.batch);
    std::uint64_t bytes = kBoxTargetAlignment;
    for (std::size_t axis = 0; axis < box.strides.size(); ++axis) {
      bytes += box.strides[axis] * (box.extents[axis + 1] - 1);
    }
    const std::string what = fmt::format("{} with batch {}: its box {}", launch.function->symbol, launch.batch, i);
    fits(box.address, bytes, what);
    if (box.extents == axes.extents && box.strides == axes.strides && box.box == axes.box && box.steps == axes.steps &&
        box.address == launch.tensors[static_cast<std::size_t>(form->boxes[i].tensor)]) {
      continue;
    }
    const std::lock_guard lock(mutex_);
    faults_.push_back(what + " is another one than the form says");
  }
  for (std::size_t i = 0; i < form->tensors.size(); ++i) {
    const KernelTensor& tensor = form->tensors[i];
    if (!tensor.exists() || (tensor.map && launch.tensors[i] == nullptr)) continue;
    const std::string what =
        fmt::format("{} with batch {}: its {}", launch.function->symbol, launch.batch, to_string(tensor.role));
    fits(launch.tensors[i], static_cast<std::size_t>(reach(*form, tensor, launch.batch)), what);
    if (reinterpret_cast<std::uintptr_t>(launch.tensors[i]) % static_cast<std::uintptr_t>(tensor.alignment) != 0) {
      const std::lock_guard lock(mutex_);
      faults_.push_back(what + fmt::format(" is not aligned to {} bytes", tensor.alignment));
    }
  }
}

std::vector<std::string> FakeDriver::live() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const auto& [handle, what] : live_) texts.push_back(what);
  for (const auto& [device, times] : retained_) {
    if (times != 0) texts.push_back("context of device " + std::to_string(device) + ", " + std::to_string(times));
  }
  if (!context_stack.empty()) texts.push_back("a current context");
  return texts;
}

namespace {

bool is_legal(const std::array<unsigned, 6>& geometry, unsigned shared, const CUfunc_st& function) {
  const auto [gx, gy, gz, bx, by, bz] = geometry;
  return gx != 0 && gx <= 0x7fffffffU && gy != 0 && gy <= 65535 && gz != 0 && bx * by * bz != 0 &&
         bx * by * bz <= 1024 && shared <= static_cast<unsigned>(function.max_dynamic_shared);
}

// The driver is not told how long code is: PTX ends in a NUL, and a cubin, as the tests build it, with its sections.
std::size_t code_bytes(const char* code) {
  if (std::strncmp(code, ELFMAG, SELFMAG) != 0) return std::strlen(code);
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof(header));
  return header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
}

// The names between the parentheses behind the symbol.
std::vector<std::string> parameters_of(const std::string& code, const std::string& symbol) {
  std::vector<std::string> names;
  const std::size_t begin = code.find(symbol + "(");
  if (begin == std::string::npos) return names;
  std::string name;
  for (std::size_t i = begin + symbol.size() + 1; i < code.size(); ++i) {
    const char c = code[i];
    if (c == ',' || c == ')') names.push_back(std::exchange(name, ""));
    if (c == ')') break;
    if (c != ',' && c != ' ') name += c;
  }
  return names;
}

// As many parameters as the kernel has are read, as a driver does it.
FakeLaunch launch_of(CUfunction function, void** parameters, const std::vector<FakeBox>& boxes) {
  FakeLaunch launch;
  launch.function = function;
  launch.context = current();
  std::size_t box = 0;
  for (std::size_t i = 0; i < function->parameters.size(); ++i) {
    const std::string& name = function->parameters[i];
    if (name == "batch") {
      launch.batch = *static_cast<std::int32_t*>(parameters[i]);
      continue;
    }
    if (name == "box") {
      launch.boxes.at(box++) = boxes.at(static_cast<TensorMap*>(parameters[i])->opaque[0]);
      continue;
    }
    void* const value = *static_cast<void**>(parameters[i]);
    if (i < launch.tensors.size()) launch.tensors[i] = static_cast<const char*>(value);
    if (name == "input") launch.input = value;
    if (name == "output") launch.output = value;
    if (name == "residual") launch.residual = value;
    if (name == "weights") launch.weights = value;
    if (name == "partials") launch.partials = value;
    if (name == "counters") launch.counters = value;
    if (name == "input_map") launch.input_activity = value;
    if (name == "output_map") launch.output_activity = value;
  }
  return launch;
}

}  // namespace

namespace {

constexpr std::size_t kMemoryAlignment = 256;

void* real_memory(std::size_t bytes) {
  void* block =
      std::aligned_alloc(kMemoryAlignment, (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment);
  if (block != nullptr) std::memset(block, 0xcd, bytes);  // as a real one: not zero
  return block;
}

void* addresses_alone(std::size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

}  // namespace

// The driver's functions. `BEGIN` is the first line of each that can be made to fail.
#define BEGIN(needs_context)                                                                  \
  if (const CUresult result = fake->enter(__func__, needs_context); result != kCudaSuccess) { \
    return result;                                                                            \
  }

struct FakeFunctions {
  static CUresult cuInit(unsigned) {
    BEGIN(false);
    return fake->devices.empty() ? kCudaErrorNoDevice : kCudaSuccess;
  }
  static CUresult cuDriverGetVersion(int* version) {
    BEGIN(false);
    *version = kFakeDriverVersion;
    return kCudaSuccess;
  }
  static CUresult cuGetErrorName(CUresult code, const char** text) {
    const auto found = kErrorTexts.find(code);
    if (found == kErrorTexts.end()) return kErrorInvalidValue;
    *text = found->second.first;
    return kCudaSuccess;
  }
  static CUresult cuGetErrorString(CUresult code, const char** text) {
    const auto found = kErrorTexts.find(code);
    if (found == kErrorTexts.end()) return kErrorInvalidValue;
    *text = found->second.second;
    return kCudaSuccess;
  }

  static CUresult cuDeviceGetCount(int* count) {
    BEGIN(false);
    *count = static_cast<int>(fake->devices.size());
    return kCudaSuccess;
  }
  static CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    BEGIN(false);
    *device = ordinal;
    return kCudaSuccess;
  }
  static CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
    BEGIN(false);
    std::strncpy(name, fake->devices.at(device).name.c_str(), static_cast<std::size_t>(bytes));
    return kCudaSuccess;
  }
  static CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
    BEGIN(false);
    const FakeDevice& info = fake->devices.at(device);
    switch (attribute) {
      case kDeviceMaxThreadsPerBlock:
        *value = 1024;
        break;
      case kDeviceMultiprocessorCount:
        *value = 132;
        break;
      case kDeviceL2CacheBytes:
        *value = 60 << 20;
        break;
      case kDeviceComputeCapabilityMajor:
        *value = info.major;
        break;
      case kDeviceComputeCapabilityMinor:
        *value = info.minor;
        break;
      case kDeviceMaxSharedPerBlockOptin:
        *value = info.shared_per_block;
        break;
      default:
        return kErrorInvalidValue;
    }
    return kCudaSuccess;
  }
  static CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
    BEGIN(false);
    *bytes = kFakeMemoryBytes;
    return kCudaSuccess;
  }

  static CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    BEGIN(false);
    const std::lock_guard lock(fake->mutex_);
    ++fake->retained_[device];
    for (CUcontext known : fake->contexts_) {
      if (known->device == device) {
        *context = known;
        return kCudaSuccess;
      }
    }
    *context = fake->contexts_.emplace_back(new CUctx_st{device});
    return kCudaSuccess;
  }
  static CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    {
      const std::lock_guard lock(fake->mutex_);
      --fake->retained_[device];
    }
    BEGIN(false);
    return kCudaSuccess;
  }
  static CUresult cuCtxGetCurrent(CUcontext* context) {
    BEGIN(false);
    *context = current();
    return kCudaSuccess;
  }
  static CUresult cuCtxPushCurrent(CUcontext context) {
    BEGIN(false);
    context_stack.push_back(context);
    return kCudaSuccess;
  }
  static CUresult cuCtxPopCurrent(CUcontext* context) {
    *context = current();
    if (!context_stack.empty()) context_stack.pop_back();
    BEGIN(false);
    return kCudaSuccess;
  }
  static CUresult cuCtxSynchronize() {
    BEGIN(true);
    return kCudaSuccess;
  }

  static CUresult cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned count, int* options, void** values) {
    BEGIN(true);
    const std::string text(static_cast<const char*>(code), code_bytes(static_cast<const char*>(code)));
    const bool is_ptx = text.find(".version") != std::string::npos;
    if (is_ptx) {
      write_log(static_cast<int>(count), options, values, kJitInfoLogBuffer, kJitInfoLogBufferBytes,
                fake->jit_info_log);
    }
    if (is_ptx && !fake->jit_error_log.empty()) {
      write_log(static_cast<int>(count), options, values, kJitErrorLogBuffer, kJitErrorLogBufferBytes,
                fake->jit_error_log);
      return kErrorInvalidPtx;
    }
    *module = fake->take("module", new CUmod_st{text, {}});
    const std::lock_guard lock(fake->mutex_);
    fake->loaded_code_.push_back(text);
    return kCudaSuccess;
  }
  static CUresult cuModuleUnload(CUmodule module) {
    const bool ours = fake->give_back(module);
    if (ours) {
      for (CUfunction function : module->functions) delete function;
      delete module;
    }
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidHandle;
  }
  static CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* symbol) {
    BEGIN(true);
    if (module->code.find(std::string(symbol) + "(") == std::string::npos) return kErrorNotFound;
    *function = module->functions.emplace_back(new CUfunc_st{symbol, parameters_of(module->code, symbol)});
    return kCudaSuccess;
  }
  static CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    BEGIN(true);
    if (index >= function->parameters.size()) return kErrorInvalidValue;
    for (std::size_t i = 0, end = 0; i <= index; ++i, end = *offset + *bytes) {
      const std::string& name = function->parameters[i];
      *bytes = name == "batch" ? sizeof(std::int32_t) : name == "box" ? sizeof(TensorMap) : sizeof(void*);
      const std::size_t alignment = name == "box" ? alignof(TensorMap) : *bytes;
      *offset = (end + alignment - 1) / alignment * alignment;
    }
    return kCudaSuccess;
  }
  // What the driver's documentation asks for.
  static CUresult cuTensorMapEncodeTiled(TensorMap* map, int element, std::uint32_t axes, void* address,
                                         const std::uint64_t* extents, const std::uint64_t* strides,
                                         const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                                         int swizzle, int promotion, int outside) {
    BEGIN(true);
    constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32, kMaxStride = std::uint64_t{1} << 40;
    constexpr std::uint32_t kMaxBox = 256, kMaxStep = 8, kHalfBytes = 2;
    const auto is_multiple = [](std::uint64_t value, std::uint64_t of) { return value % of == 0; };
    FakeBox made{.address = static_cast<const char*>(address)};
    bool is_right = is_multiple(reinterpret_cast<std::uintptr_t>(map), alignof(TensorMap)) && address != nullptr &&
                    is_multiple(reinterpret_cast<std::uintptr_t>(address), 16) && element == kTensorMapUint16 &&
                    axes == made.box.size() && interleave == 0 && (swizzle == 0 || swizzle == kTensorMapSwizzleLines) &&
                    promotion == 0 && outside == 0;
    for (std::size_t i = 0; is_right && i < made.box.size(); ++i) {
      is_right = extents[i] >= 1 && extents[i] <= kMaxExtent && box[i] >= 1 && box[i] <= kMaxBox && steps[i] >= 1 &&
                 steps[i] <= kMaxStep;
      if (i + 1 < made.box.size()) is_right = is_right && is_multiple(strides[i], 16) && strides[i] < kMaxStride;
    }
    if (!is_right || !is_multiple(std::uint64_t{box[0]} * kHalfBytes, 16)) return kErrorInvalidValue;
    made.swizzled = swizzle != 0;
    std::copy_n(extents, made.extents.size(), made.extents.begin());
    std::copy_n(strides, made.strides.size(), made.strides.begin());
    std::copy_n(box, made.box.size(), made.box.begin());
    std::copy_n(steps, made.steps.size(), made.steps.begin());
    const std::lock_guard lock(fake->mutex_);
    map->opaque[0] = fake->boxes_.size();
    fake->boxes_.push_back(made);
    return kCudaSuccess;
  }
  static CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction) {
    BEGIN(true);
    switch (attribute) {
      case kFunctionMaxThreadsPerBlock:
        *value = fake->function_max_threads;
        break;
      case kFunctionStaticSharedBytes:
        *value = fake->function_static_shared;
        break;
      case kFunctionLocalBytes:
        *value = 0;
        break;
      case kFunctionRegisters:
        *value = fake->function_registers;
        break;
      default:
        return kErrorInvalidValue;
    }
    return kCudaSuccess;
  }
  static CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    BEGIN(true);
    if (attribute != kFunctionMaxDynamicSharedBytes) return kErrorInvalidValue;
    function->max_dynamic_shared = value;
    return kCudaSuccess;
  }
  static CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
    BEGIN(true);
    if (!is_legal({gx, gy, gz, bx, by, bz}, shared, *function) || extra != nullptr) return kErrorInvalidValue;
    FakeLaunch launch = fake->read_launch(function, parameters);
    launch.geometry = {gx, gy, gz, bx, by, bz};
    launch.shared_bytes = shared;
    launch.stream = stream;
    fake->check_reach(launch);
    const std::size_t slot = fake->launch_count_.fetch_add(1, std::memory_order_relaxed);
    if (slot >= FakeDriver::kMaxLaunches) return kErrorOutOfMemory;
    fake->launches_[slot] = launch;
    if (stream == nullptr) return kCudaSuccess;
    if (stream->capturing.load(std::memory_order_relaxed)) {
      ++stream->captured_launches;
    } else {
      stream->clock_us += fake->microseconds_per_launch;
    }
    return kCudaSuccess;
  }

  static CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
    BEGIN(true);
    if (capturing.streams > 0 && capturing.mode != kStreamCaptureModeRelaxed) {
      capturing.is_broken = true;
      return kErrorStreamCaptureUnsupported;
    }
    if (bytes == 0) return kErrorInvalidValue;
    if (bytes > kFakeMemoryBytes) return kErrorOutOfMemory;
    void* block = fake->has_real_memory ? real_memory(bytes) : addresses_alone(bytes);
    if (block == nullptr) return kErrorOutOfMemory;
    *memory = reinterpret_cast<CUdeviceptr>(fake->take("memory", block));
    const std::lock_guard lock(fake->mutex_);
    fake->allocations_.push_back(bytes);
    fake->blocks_[static_cast<const char*>(block)] = bytes;
    return kCudaSuccess;
  }
  static CUresult cuMemFree(CUdeviceptr memory) {
    char* const block = reinterpret_cast<char*>(memory);
    const bool ours = fake->give_back(block);
    if (ours) {
      const std::lock_guard lock(fake->mutex_);
      if (fake->has_real_memory) {
        std::free(block);
      } else {
        munmap(block, fake->blocks_.at(block));
      }
      fake->blocks_.erase(block);
    }
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidValue;
  }
  static CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, std::size_t bytes) {
    BEGIN(true);
    if (!fake->fits(reinterpret_cast<void*>(target), bytes, "a copy to the device")) return kErrorInvalidValue;
    if (fake->has_real_memory) std::memcpy(reinterpret_cast<void*>(target), source, bytes);
    return kCudaSuccess;
  }
  static CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, std::size_t bytes) {
    BEGIN(true);
    if (!fake->fits(reinterpret_cast<void*>(source), bytes, "a copy from the device")) return kErrorInvalidValue;
    if (fake->has_real_memory) std::memcpy(target, reinterpret_cast<void*>(source), bytes);
    return kCudaSuccess;
  }
  static CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, std::size_t bytes) {
    BEGIN(true);
    if (capturing.streams > 0) {
      capturing.is_broken = true;
      return kErrorStreamCaptureUnsupported;
    }
    if (!fake->fits(reinterpret_cast<void*>(target), bytes, "filling memory")) return kErrorInvalidValue;
    if (fake->has_real_memory) std::memset(reinterpret_cast<void*>(target), value, bytes);
    return kCudaSuccess;
  }

  static CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, std::size_t bytes, CUstream stream) {
    BEGIN(true);
    if (!fake->known(stream)) return kErrorInvalidHandle;
    if (!fake->fits(reinterpret_cast<void*>(target), bytes, "filling memory")) return kErrorInvalidValue;
    if (fake->has_real_memory) std::memset(reinterpret_cast<void*>(target), value, bytes);
    return kCudaSuccess;
  }

  static CUresult cuStreamCreate(CUstream* stream, unsigned) {
    BEGIN(true);
    *stream = fake->take("stream", new CUstream_st);
    return kCudaSuccess;
  }
  static CUresult cuStreamDestroy(CUstream stream) {
    const bool ours = fake->give_back(stream);
    if (ours) delete stream;
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidHandle;
  }
  static CUresult cuStreamSynchronize(CUstream stream) {
    BEGIN(true);
    return stream == nullptr || fake->known(stream) ? kCudaSuccess : kErrorInvalidHandle;
  }
  static CUresult cuStreamBeginCapture(CUstream stream, int) {
    BEGIN(true);
    if (stream == nullptr || stream->capturing.exchange(true)) return kErrorInvalidValue;
    if (capturing.streams++ == 0) capturing.is_broken = false;
    stream->captured_launches = 0;
    stream->captured.clear();
    fake->take("capture", &stream->capturing);
    return kCudaSuccess;
  }
  static CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    const bool was_capturing = stream->capturing.exchange(false);
    if (was_capturing) --capturing.streams;
    fake->give_back(&stream->capturing);
    BEGIN(true);
    if (!was_capturing) return kErrorInvalidValue;
    if (capturing.is_broken) return kErrorStreamCaptureInvalidated;
    *graph = fake->take("graph", new CUgraph_st);
    (*graph)->launches = stream->captured_launches;
    (*graph)->work = std::move(stream->captured);
    return kCudaSuccess;
  }
  static CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
    BEGIN(false);
    std::swap(*mode, capturing.mode);
    return kCudaSuccess;
  }
  static CUresult cuEventCreate(CUevent* event, unsigned) {
    BEGIN(true);
    *event = fake->take("event", new CUevent_st);
    return kCudaSuccess;
  }
  static CUresult cuEventDestroy(CUevent event) {
    const bool ours = fake->give_back(event);
    if (ours) delete event;
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidHandle;
  }
  static CUresult cuEventRecord(CUevent event, CUstream stream) {
    BEGIN(true);
    event->recorded = true;
    event->time_us = stream == nullptr ? 0 : stream->clock_us;
    return kCudaSuccess;
  }
  static CUresult cuEventSynchronize(CUevent) {
    BEGIN(true);
    return kCudaSuccess;
  }
  static CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    BEGIN(true);
    if (!start->recorded || !end->recorded) return kErrorInvalidHandle;
    *milliseconds = static_cast<float>((end->time_us - start->time_us) / 1000);
    return kCudaSuccess;
  }

  static CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
    BEGIN(true);
    if (flags != 0) return kErrorInvalidValue;
    *graph = fake->take("graph", new CUgraph_st);
    return kCudaSuccess;
  }
  static CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
                                       const KernelNodeParameters* parameters) {
    BEGIN(true);
    const KernelNodeParameters& p = *parameters;
    const std::array<unsigned, 6> geometry = {p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z};
    if (!fake->known(graph) || p.extra != nullptr || p.kernel != nullptr || p.context != nullptr ||
        !is_legal(geometry, p.shared_bytes, *p.function)) {
      return kErrorInvalidValue;
    }
    FakeLaunch launch = fake->read_launch(p.function, p.parameters);
    launch.geometry = geometry;
    launch.shared_bytes = p.shared_bytes;
    fake->check_reach(launch);
    *node = graph->handles.emplace_back(new CUgraphNode_st{graph, static_cast<int>(graph->handles.size())});
    for (std::size_t i = 0; i < count; ++i) graph->nodes.edges.push_back({before[i]->index, (*node)->index, false});
    graph->nodes.nodes.push_back(launch);
    ++graph->launches;
    return kCudaSuccess;
  }
  // The child is copied, as by a real driver.
  static CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                           std::size_t count, CUgraph child) {
    BEGIN(true);
    if (!fake->known(graph) || !fake->known(child) || child == graph || child->launches == 0) {
      return kErrorInvalidValue;
    }
    FakeLaunch launch;
    launch.captured = child->launches;
    *node = graph->handles.emplace_back(new CUgraphNode_st{graph, static_cast<int>(graph->handles.size())});
    for (std::size_t i = 0; i < count; ++i) graph->nodes.edges.push_back({before[i]->index, (*node)->index, false});
    graph->nodes.nodes.push_back(launch);
    graph->launches += child->launches;
    graph->work.insert(graph->work.end(), child->work.begin(), child->work.end());
    return kCudaSuccess;
  }
  // An edge that stands there twice is an error, as in a real driver; so is a programmatic one of what is no kernel.
  static CUresult add_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count,
                            const GraphEdgeData* data) {
    for (std::size_t i = 0; i < count; ++i) {
      if (from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i]) return kErrorInvalidValue;
      const auto same = [&](const FakeEdge& e) { return e.from == from[i]->index && e.to == to[i]->index; };
      if (std::ranges::any_of(graph->nodes.edges, same)) return kErrorInvalidValue;
      const bool programmatic = data != nullptr && data[i].type == kGraphDependencyProgrammatic;
      if (data != nullptr && (data[i].to_port != 0 || programmatic != (data[i].from_port == kGraphPortProgrammatic))) {
        return kErrorInvalidValue;
      }
      const auto is_kernel = [&](const CUgraphNode node) {
        return graph->nodes.nodes[static_cast<std::size_t>(node->index)].captured == 0;
      };
      if (programmatic && !(is_kernel(from[i]) && is_kernel(to[i]))) return kErrorInvalidValue;
      graph->nodes.edges.push_back({from[i]->index, to[i]->index, programmatic});
    }
    return kCudaSuccess;
  }
  static CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                         std::size_t count) {
    BEGIN(true);
    return add_edges(graph, from, to, count, nullptr);
  }
  static CUresult cuGraphAddDependenciesWithData(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                 const GraphEdgeData* data, std::size_t count) {
    BEGIN(true);
    return add_edges(graph, from, to, count, data);
  }
  static CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    BEGIN(true);
    *exec = fake->take("graph executable", new CUgraphExec_st{graph->launches, false, graph->nodes, graph->work});
    if (graph->handles.empty()) return kCudaSuccess;
    const std::lock_guard lock(fake->mutex_);
    fake->graphs_.push_back(graph->nodes);
    return kCudaSuccess;
  }
  static CUresult cuGraphUpload(CUgraphExec exec, CUstream) {
    BEGIN(true);
    if (!fake->known(exec)) return kErrorInvalidHandle;
    exec->uploaded = true;
    return kCudaSuccess;
  }
  static CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    BEGIN(true);
    if (!fake->known(exec)) return kErrorInvalidHandle;
    for (const auto& work : exec->work) work();
    if (stream != nullptr) stream->clock_us += exec->launches * fake->microseconds_per_launch;
    return kCudaSuccess;
  }
  static CUresult cuGraphExecDestroy(CUgraphExec exec) {
    const bool ours = fake->give_back(exec);
    if (ours) delete exec;
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidHandle;
  }
  static CUresult cuGraphDestroy(CUgraph graph) {
    const bool ours = fake->give_back(graph);
    if (ours) {
      for (CUgraphNode node : graph->handles) delete node;
      delete graph;
    }
    BEGIN(true);
    return ours ? kCudaSuccess : kErrorInvalidHandle;
  }
};

FakeLaunch FakeDriver::read_launch(CUfunction function, void** parameters) {
  const bool has_boxes = std::ranges::count(function->parameters, "box") > 0;
  if (!has_boxes) return launch_of(function, parameters, {});
  const std::lock_guard lock(mutex_);
  return launch_of(function, parameters, boxes_);
}

FakeDriver::FakeDriver() {
#define BURIN_DRIVER_FUNCTION(name, symbol, ...) table_.name = FakeFunctions::name;
#include "runtime/driver/driver_functions.def"
#undef BURIN_DRIVER_FUNCTION
  context_stack.clear();
  capturing = {};
  fake = this;
  installed_ = new ScopedDriverTable(table_);
}

FakeDriver::~FakeDriver() {
  delete installed_;
  fake = nullptr;
  for (CUcontext context : contexts_) delete context;
}

}  // namespace burin_test
