// The few types and numbers of the CUDA Driver API that the runtime uses, so that it builds without any CUDA toolkit.
// The structures' names are those of cuda.h: a CUstream here and a CUstream (or cudaStream_t) there are the same type.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

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

inline constexpr CUresult kCudaSuccess = 0;
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

}  // namespace burin
