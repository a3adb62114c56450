// burin's runtime, C++: opens a device, loads a package, launches its kernels on your stream and your pointers.
//
//   burin::Device device = burin::Device::open(0);
//   burin::LoadedPackage package(device, "model.burin");
//   burin::LoadedKernel kernel = package.kernel("conv1", batch);
//   burin::Workspace workspace(device, kernel.workspace_size(batch));
//   kernel.launch(stream, {.input = x, .output = y, .batch = batch}, workspace);
//
// Every function throws a std::runtime_error whose text stands on its own when it cannot do what it says; error_code()
// tells the kinds apart. Every class is a cheap handle or owns what it made; a handle keeps alive what it needs, so the
// order of destruction does not matter. No CUDA header is needed; CUstream_st* is a CUstream, and a cudaStream_t too.
// More: docs/embedding.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export.h"

struct CUctx_st;
struct CUstream_st;

namespace burin {

class DeviceBuffer;   // device_memory.hpp
struct ConvShape;     // package.hpp
struct DeviceState;   // internal
struct Kernel;        // package.hpp
struct KernelLaunch;  // internal
class LoadNotes;      // internal
struct LoadedCode;    // internal
struct Manifest;      // package.hpp
struct Package;       // package.hpp
struct PackageState;  // internal

// The status code of an exception, the same as in the C API: 1 verification, 2 usage, 3 bad input, 4 unsupported,
// 5 device, 70 internal (also for exceptions that are not burin's).
BURIN_API int error_code(const std::exception& error) noexcept;

// ---- devices

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  int max_shared_per_block = 0;  // bytes, the opt-in maximum
  int l2_cache_bytes = 0;
  std::size_t memory_bytes = 0;
  int driver_version = 0;  // 13000: the driver supports CUDA 13.0

  int compute() const { return compute_major * 10 + compute_minor; }
  std::string arch() const { return "sm_" + std::to_string(compute()); }
};

// 0 where the driver finds no device. Throws where there is no driver.
BURIN_API int device_count();

// A device and its primary context, which is retained until the last copy, and the last object made from one, is gone.
// Functions of the runtime make that context current while they need it and leave the caller's as it was.
class BURIN_API Device {
 public:
  static Device open(int ordinal);

  const DeviceInfo& info() const;
  CUctx_st* context() const;
  void synchronize() const;  // waits for all work on the device

  const std::shared_ptr<const DeviceState>& state() const { return state_; }

 private:
  explicit Device(std::shared_ptr<const DeviceState> state) : state_(std::move(state)) {}
  std::shared_ptr<const DeviceState> state_;
};

// ---- workspaces

// Scratch memory of a launch. Both parts may be empty.
struct WorkspaceSize {
  std::int64_t counter_bytes = 0;  // arrival counters, a multiple of 256
  std::int64_t partial_bytes = 0;  // partial sums
  std::int64_t total() const { return counter_bytes + partial_bytes; }
};

// What serves both: for one workspace that several kernels or batch sizes take turns with.
BURIN_API WorkspaceSize merge(const WorkspaceSize& a, const WorkspaceSize& b);

// Scratch memory that the caller owns. The counters must be zero before the first launch that uses them, and nothing
// but launches may write them afterwards: each launch leaves them zero.
struct WorkspaceView {
  std::uint32_t* counters = nullptr;  // device pointers
  std::int64_t counter_bytes = 0;
  float* partials = nullptr;
  std::int64_t partial_bytes = 0;
};

// Owns scratch memory, counters zeroed. Launches that may run at the same time need one each.
class BURIN_API Workspace {
 public:
  Workspace();  // empty: for kernels that need none
  Workspace(const Device& device, const WorkspaceSize& size);
  ~Workspace();
  Workspace(Workspace&& other) noexcept;
  Workspace& operator=(Workspace&& other) noexcept;

  WorkspaceView view() const;
  const WorkspaceSize& size() const { return size_; }

 private:
  std::unique_ptr<DeviceBuffer> memory_;
  WorkspaceSize size_;
};

// ---- kernels

// What one value of a tensor is: a float, an IEEE half (binary16, CUDA's __half) or a bfloat16 (__nv_bfloat16).
enum class Element { f32, f16, bf16 };
constexpr int bytes_of(Element element) { return element == Element::f32 ? 4 : 2; }

// A tensor as a kernel reads or writes it: dense, of one element type, its images one after the other. Where
// channels_together and images_together are 1, that is NCHW (image, channel, row, column). Otherwise so many channels
// of a pixel, or so many images, lie side by side:
//   image / images_together, channel / channels_together, row, column, channel % channels_together,
//   image % images_together
// and the last block of channels, and the last group of images, are filled up with values that mean nothing. But for
// "nchw4", whoever writes a tensor fills up its channels with zeros: kernels multiply them with zeros, which NaN and
// infinity would not survive.
struct ImageShape {
  int channels = 0, height = 0, width = 0;
  // 1; 4: "nchw4"; 8: "n8c8hw", "nchw8", "n4c8hw"; all, rounded up to a multiple of 8 or 4: "nhwc8", "nhwc4"
  int channels_together = 1;
  int alignment = sizeof(float);  // bytes: what the tensor's address must be a multiple of
  int images_together = 1;        // 1; of f16 and bf16, 2 ("n2chw") or 8 ("n8c8hw"); of f32 4 ("n4c8hw")
  Element element = Element::f32;
  // Where it is a slice of a larger tensor, elements from one image, or group of images that lie side by side, to the
  // next; else 0.
  std::int64_t image_pitch = 0;
  std::int64_t channel_blocks() const { return (channels + channels_together - std::int64_t{1}) / channels_together; }
  // The elements of one image, filling channels included.
  std::int64_t elements() const { return channel_blocks() * channels_together * height * width; }
  // The same of a whole tensor: that much memory must be there. An odd batch of n2chw has one image more.
  std::int64_t tensor_elements(int batch) const {
    const std::int64_t groups = (batch + images_together - std::int64_t{1}) / images_together;
    const std::int64_t pitch = image_pitch != 0 ? image_pitch : images_together * elements();
    return (groups - 1) * pitch + images_together * elements();
  }
  std::int64_t tensor_bytes(int batch) const { return tensor_elements(batch) * bytes_of(element); }
  // Where a value lies, counted in elements from the start of the tensor.
  std::int64_t index(int image, int channel, int row, int col) const {
    const std::int64_t pitch = image_pitch != 0 ? image_pitch : images_together * elements();
    const std::int64_t block = channel / channels_together;
    const std::int64_t pixel = (block * height + row) * width + col;
    return image / images_together * pitch +
           (pixel * channels_together + channel % channels_together) * images_together + image % images_together;
  }
};

// An activity map: which channels of a tensor hold nothing but zeros, in cells of so many images, rows and columns.
// Cells are counted columns first, then rows, then images; the last may reach beyond the tensor. For each cell there is
// a byte for each channel, 0 where the channel is all zero there. Kernels that were compiled with maps skip what their
// input's map calls zero, and write the map of their output.
struct ActivityShape {
  int cell_images = 1, cell_rows = 1, cell_cols = 1;
  int channels = 0, height = 0, width = 0;  // of the tensor
  std::int64_t cells_across() const { return (width + cell_cols - std::int64_t{1}) / cell_cols; }
  std::int64_t cells_down() const { return (height + cell_rows - std::int64_t{1}) / cell_rows; }
  std::int64_t bytes(int batch) const {
    return (batch + cell_images - std::int64_t{1}) / cell_images * cells_down() * cells_across() * channels;
  }
  // Where the byte for a value of the tensor lies.
  std::int64_t index(int image, int channel, int row, int col) const {
    const std::int64_t down = image / cell_images * cells_down() + row / cell_rows;
    return (down * cells_across() + col / cell_cols) * channels + channel;
  }
};

// Device pointers to tensors as input_shape() and output_shape() say.
struct LaunchIo {
  const void* input = nullptr;
  void* output = nullptr;
  const void* residual = nullptr;  // like the output; exactly when the kernel needs one
  int batch = 1;
  // Activity maps as input_activity() and output_activity() say, of kernels that have them. Null: nothing is skipped,
  // and no map is written. The input's must not call zero what is not.
  const void* input_activity = nullptr;
  void* output_activity = nullptr;
};

struct LaunchGrid {
  unsigned tiles = 0;   // blocks in x
  unsigned slices = 0;  // blocks in y
};

enum class LoadedFrom { cubin, jit };

// Some kernels have a call of a library (cuDNN, cuBLASLt) beside their own code, which computes the same.
enum class LibraryUse {
  none,         // the own code alone; no library is opened
  where_there,  // the call, where the library is there and does not refuse
  required,     // the call; what cannot be called throws
};

// What the driver says of a loaded kernel.
struct KernelAttributes {
  int registers = 0;    // per thread
  int local_bytes = 0;  // per thread: spills and stack
  int static_shared_bytes = 0;
  int max_threads_per_block = 0;
};

// One loaded kernel. A cheap handle, safe to use from several threads; it keeps its code loaded.
class BURIN_API LoadedKernel {
 public:
  const std::string& layer() const;
  const std::string& symbol() const;
  const Kernel& kernel() const;  // what the package says of it
  const ConvShape& shape() const;
  ImageShape input_shape() const;
  ImageShape output_shape() const;
  bool needs_residual() const;
  // The maps that a launch may be given; nothing: the kernel has no such map.
  std::optional<ActivityShape> input_activity() const;
  std::optional<ActivityShape> output_activity() const;
  int planned_batch() const;  // the batch size it is fastest for; it is correct for any

  LoadedFrom loaded_from() const;
  const std::string& loaded_arch() const;  // the binary's: "sm_90"
  const std::string& load_log() const;     // what the driver's compiler said
  KernelAttributes attributes() const;

  // "cuDNN 9.19.0 WINOGRAD" where a launch of so many images is a library's call; else empty.
  std::string library_call(int batch) const;

  LaunchGrid grid(int batch) const;  // of its own code
  WorkspaceSize workspace_size(int batch) const;
  std::int64_t workspace_bytes(int batch) const { return workspace_size(batch).total(); }

  // Enqueues the kernel on `stream` (null: the default stream) and returns. Allocates nothing and waits for nothing, so
  // it can be captured into a CUDA graph; the pointers and the workspace must then outlive the graph. A workspace that
  // is larger than needed is fine. Two launches that may run at the same time (on different streams) need two
  // workspaces.
  void launch(CUstream_st* stream, const LaunchIo& io, const WorkspaceView& workspace = {}) const;
  void launch(CUstream_st* stream, const LaunchIo& io, const Workspace& workspace) const {
    launch(stream, io, workspace.view());
  }

  // What launch() enqueues, for a graph that is put together launch by launch; the type is the runtime's own.
  KernelLaunch prepared(const LaunchIo& io, const WorkspaceView& workspace) const;

  explicit LoadedKernel(std::shared_ptr<const LoadedCode> loaded) : loaded_(std::move(loaded)) {}

 private:
  std::shared_ptr<const LoadedCode> loaded_;
};

// ---- packages

struct LoadOptions {
  bool eager = false;      // load every kernel now; default: each when it is first asked for
  bool force_jit = false;  // compile the PTX even where a cubin fits
  LibraryUse libraries = LibraryUse::where_there;
  // What may be opened as cuDNN, tried in turn. Empty: what BURIN_CUDNN names, else libcudnn.so.9 as the loader finds
  // it. No package has a say in it.
  std::vector<std::string> cudnn = {};
  // The same of cuBLASLt: what BURIN_CUBLASLT names, else libcublasLt.so.13 or libcublasLt.so.12.
  std::vector<std::string> cublaslt = {};
};

// Reads a package and checks it, but for the content of its files: each is checked when it is used, so that loading a
// kernel may still find that the package is damaged. It needs neither a device nor a driver. package.hpp says what a
// Package is.
BURIN_API std::shared_ptr<const Package> open_package(const std::string& path);

// A package on one device. Safe to use from several threads.
class BURIN_API LoadedPackage {
 public:
  LoadedPackage(const Device& device, const std::string& path, const LoadOptions& options = {});
  // Shares `package`, for instance between devices. `name` stands for the package in messages.
  LoadedPackage(const Device& device, std::shared_ptr<const Package> package, const std::string& name,
                const LoadOptions& options = {});

  const Device& device() const;
  const Manifest& manifest() const;
  std::vector<std::string> layers() const;  // the convolutions, each once, in the package's order
  // What a person should know of how it runs here, one sentence each: a library that is not there, or refuses. More may
  // come while kernels are loaded and networks bound.
  std::vector<std::string> notes() const;

  // The kernel of `layer` with the largest planned batch that does not exceed `batch`, else the smallest.
  LoadedKernel kernel(std::string_view layer, int batch) const;
  LoadedKernel kernel_by_symbol(std::string_view symbol) const;

  const std::shared_ptr<PackageState>& state() const { return state_; }

 private:
  std::shared_ptr<PackageState> state_;
};

}  // namespace burin
