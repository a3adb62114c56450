// The few types and numbers of the CUDA Driver API that the runtime uses, so that it builds without any CUDA toolkit.
// The structures' names are those of cuda.h: a CUstream here and a CUstream (or cudaStream_t) there are the same type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUkern_st;

namespace burin {

using CUresult = int;  // an enumeration in cuda.h; its codes are named by the driver itself
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = CUctx_st*;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
using CUgraph = CUgraph_st*;
using CUgraphExec = CUgraphExec_st*;
using CUgraphNode = CUgraphNode_st*;

inline constexpr CUresult kCudaSuccess = 0;
inline constexpr CUresult kCudaErrorInvalidValue = 1;
inline constexpr CUresult kCudaErrorNoDevice = 100;

// CUdevice_attribute
inline constexpr int kDeviceMaxThreadsPerBlock = 1;
inline constexpr int kDeviceMultiprocessorCount = 16;
inline constexpr int kDeviceL2CacheBytes = 38;
inline constexpr int kDeviceComputeCapabilityMajor = 75;
inline constexpr int kDeviceComputeCapabilityMinor = 76;
inline constexpr int kDeviceMaxSharedPerBlockOptin = 97;

// CUfunction_attribute
inline constexpr int kFunctionMaxThreadsPerBlock = 0;
inline constexpr int kFunctionStaticSharedBytes = 1;
inline constexpr int kFunctionLocalBytes = 3;
inline constexpr int kFunctionRegisters = 4;
inline constexpr int kFunctionMaxDynamicSharedBytes = 8;

// CUjit_option
inline constexpr int kJitInfoLogBuffer = 3;
inline constexpr int kJitInfoLogBufferBytes = 4;
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferBytes = 6;

inline constexpr unsigned kStreamNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
inline constexpr int kStreamCaptureModeThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr int kStreamCaptureModeRelaxed = 2;      // CU_STREAM_CAPTURE_MODE_RELAXED

// CUDA_KERNEL_NODE_PARAMS_v2: a kernel node of a graph.
struct KernelNodeParameters {
  CUfunction function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;  // dynamic
  void** parameters = nullptr;
  void** extra = nullptr;
  CUkern_st* kernel = nullptr;  // in place of the function; that has a context, and these are then null
  CUcontext context = nullptr;
};
static_assert(sizeof(KernelNodeParameters) == 72 && offsetof(KernelNodeParameters, parameters) == 40,
              "the driver reads this structure");

// CUgraphEdgeData: what an edge of a graph waits for. All zero: that the node before has finished.
struct GraphEdgeData {
  unsigned char from_port = 0, to_port = 0, type = 0;
  unsigned char reserved[5] = {};
};
static_assert(sizeof(GraphEdgeData) == 8, "the driver reads this structure");
inline constexpr unsigned char kGraphPortProgrammatic = 1;        // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
inline constexpr unsigned char kGraphDependencyProgrammatic = 1;  // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC

// CUtensorMap: what the driver makes of a kernel's box (ir/tensor_box.h), a parameter by value.
struct alignas(64) TensorMap {
  std::array<std::uint64_t, 16> opaque{};
};
inline constexpr int kTensorMapUint16 = 1;        // CU_TENSOR_MAP_DATA_TYPE_UINT16
inline constexpr int kTensorMapNoInterleave = 0;  // CU_TENSOR_MAP_INTERLEAVE_NONE
inline constexpr int kTensorMapNoSwizzle = 0;     // CU_TENSOR_MAP_SWIZZLE_NONE
inline constexpr int kTensorMapSwizzleLines = 3;  // CU_TENSOR_MAP_SWIZZLE_128B
inline constexpr int kTensorMapNoPromotion = 0;   // CU_TENSOR_MAP_L2_PROMOTION_NONE
inline constexpr int kTensorMapZeros = 0;         // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE

}  // namespace burin
