// A CUDA driver that counts, remembers and fails on request: what the runtime's tests run against where there is no
// GPU.
//
// What stands for a kernel's code names its parameters: "symbol(input, output, residual, weights, batch)"; a box is a
// "box".
//
// Device memory is host memory. Whatever copies or fills more than an allocation holds is a fault, and so is a launch
// whose tensors reach beyond theirs, once the driver knows the package that the kernels are of. The driver checks what
// a real one checks (a current context, known handles, launch limits) and keeps a list of everything taken, so that a
// test sees what was not given back. Launches take no lock.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "runtime/driver/driver_table.h"

namespace burin_test {

inline constexpr burin::CUresult kErrorInvalidValue = 1;
inline constexpr burin::CUresult kErrorOutOfMemory = 2;
inline constexpr burin::CUresult kErrorInvalidContext = 201;
inline constexpr burin::CUresult kErrorInvalidPtx = 218;
inline constexpr burin::CUresult kErrorInvalidHandle = 400;
inline constexpr burin::CUresult kErrorStreamCaptureUnsupported = 900, kErrorStreamCaptureInvalidated = 901;
inline constexpr burin::CUresult kErrorNotFound = 500;
inline constexpr burin::CUresult kErrorWithoutName = 4242;

struct FakeDevice {
  std::string name = "Fake H200";
  int major = 9, minor = 0;
  int shared_per_block = 232448;
};

// What the driver was told of a box.
struct FakeBox {
  bool swizzled = false;
  const char* address = nullptr;
  std::array<std::uint64_t, 5> extents{};
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint32_t, 5> box{}, steps{};
};

// Parameters that the kernel does not have are null.
struct FakeLaunch {
  CUfunc_st* function = nullptr;
  std::array<unsigned, 6> geometry{};  // grid x, y, z, block x, y, z
  unsigned shared_bytes = 0;
  CUstream_st* stream = nullptr;
  CUctx_st* context = nullptr;
  const void* input = nullptr;
  void* output = nullptr;
  const void* residual = nullptr;
  const void* weights = nullptr;
  void* partials = nullptr;
  void* counters = nullptr;
  int batch = 0;
  const void* input_activity = nullptr;
  void* output_activity = nullptr;
  std::array<const char*, burin::kMaxKernelTensors> tensors{};  // in their order
  std::array<FakeBox, burin::kMaxKernelBoxes> boxes{};          // the same
  int captured = 0;  // not 0: no kernel, but a graph of so many launches that were captured
};

// A graph that was put together of kernel nodes.
struct FakeEdge {
  int from = 0, to = 0;
  bool programmatic = false;
  bool operator==(const FakeEdge&) const = default;
};
struct FakeGraph {
  std::vector<FakeLaunch> nodes;
  std::vector<FakeEdge> edges;
};

// One at a time; installs itself as driver_table() while it lives.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  // ---- what it should do
  std::vector<FakeDevice> devices = {FakeDevice{}};
  int fail_at = 0;        // the number of the call that fails, from 1; 0: none
  std::string fail_call;  // every call of this function fails
  burin::CUresult fail_code = kErrorOutOfMemory;
  std::string jit_error_log;  // not empty: PTX does not compile and this is the compiler's log
  std::string jit_info_log;
  int function_registers = 40, function_static_shared = 0, function_max_threads = 1024;
  double microseconds_per_launch = 5;
  bool has_real_memory = true;  // false: allocations are addresses alone, however large they are
  // From now on the tensors of each launch are held to the form of the package's kernel of that symbol.
  void knows(std::shared_ptr<const burin::Package> package);
  // Takes a function that only newer drivers have out of the table.
  void lacks_kernel_nodes() { table_.cuGraphAddKernelNode = nullptr; }
  void lacks_tensor_maps() { table_.cuTensorMapEncodeTiled = nullptr; }
  void lacks_parameter_info() { table_.cuFuncGetParamInfo = nullptr; }
  void lacks_edge_data() { table_.cuGraphAddDependenciesWithData = nullptr; }

  // ---- what it saw
  int calls() const { return calls_.load(); }
  int calls_of(const std::string& name);                           // only of functions that are not part of a launch
  const std::string& failed_call() const { return failed_call_; }  // that fail_at hit
  const std::string& call_after_failure() const { return call_after_failure_; }
  std::vector<FakeLaunch> launches() const;
  std::vector<FakeGraph> graphs();         // those of kernel nodes, in the order of instantiating
  std::vector<std::string> loaded_code();  // in the order of loading
  std::vector<std::size_t> allocations();  // bytes, in the order of allocating
  // What reached beyond its memory, one sentence each.
  std::vector<std::string> faults();
  int checked_tensors();  // of launches of known kernels
  // What was taken and not given back, one text each: "memory", "module", "context of device 0", ...
  std::vector<std::string> live();
  static bool is_release(const std::string& call);

  static constexpr std::size_t kMaxLaunches = 1 << 15;

 private:
  friend struct FakeFunctions;
  burin::CUresult enter(const char* name, bool needs_context);
  template <typename Handle>
  Handle* take(const char* what, Handle* handle);
  bool give_back(const void* handle);
  bool known(const void* handle);
  bool fits(const void* memory, std::size_t bytes, const std::string& what);
  FakeLaunch read_launch(CUfunc_st* function, void** parameters);
  void check_reach(const FakeLaunch& launch);

  burin::DriverTable table_;
  std::atomic<int> calls_ = 0;
  std::string failed_call_, call_after_failure_;
  std::vector<FakeLaunch> launches_ = std::vector<FakeLaunch>(kMaxLaunches);
  std::atomic<std::size_t> launch_count_ = 0;

  std::mutex mutex_;  // of the rest
  std::map<const void*, std::string> live_;
  std::map<std::string, int> calls_by_name_;
  std::map<int, int> retained_;  // times, by device
  std::vector<std::string> loaded_code_;
  std::vector<FakeGraph> graphs_;
  std::vector<std::size_t> allocations_;
  std::map<const char*, std::size_t> blocks_;  // device memory: bytes by address
  std::vector<FakeBox> boxes_;                 // a map holds the number of one
  std::map<std::string, burin::Kernel> kernels_;
  std::vector<std::string> faults_;
  int checked_tensors_ = 0;
  std::vector<CUctx_st*> contexts_;  // one per device that was ever retained
  burin::ScopedDriverTable* installed_ = nullptr;
};

}  // namespace burin_test

// The fake's handles; a test may look into them.
struct CUctx_st {
  int device = 0;
};
struct CUmod_st {
  std::string code;
  std::vector<CUfunc_st*> functions;
};
struct CUfunc_st {
  std::string symbol;
  std::vector<std::string> parameters;
  int max_dynamic_shared = 48 * 1024;
};
struct CUstream_st {
  int captured_launches = 0;
  std::vector<std::function<void()>> captured;  // what a library's calls will compute
  std::atomic<bool> capturing = false;  // its address stands for a capture in progress, so it must not come first
  double clock_us = 0;
};
struct CUevent_st {
  bool recorded = false;
  double time_us = 0;
};
struct CUgraph_st {
  int launches = 0;  // captured ones and nodes
  burin_test::FakeGraph nodes;
  std::vector<std::function<void()>> work;  // of captured calls
  std::vector<CUgraphNode_st*> handles;
};
struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  int index = 0;
};
struct CUgraphExec_st {
  int launches = 0;
  bool uploaded = false;
  burin_test::FakeGraph nodes;
  std::vector<std::function<void()>> work;
};
