// Memory, streams, events, graphs and conversions for programs that have no CUDA library of their own at hand. The
// classes are move-only; each frees what it made. The runtime itself needs none of them: it takes any stream and any
// device pointer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "export.h"
#include "runtime.hpp"

struct CUevent_st;
struct CUgraphExec_st;

namespace burin {

// Floats as values of another element type, rounded to the nearest (ties to even), and back. In host memory, value by
// value: the order is the caller's (ImageShape::index()). Throws where `bytes` end within a value.
BURIN_API std::vector<std::byte> to_elements(Element element, std::span<const float> values);
BURIN_API std::vector<float> from_elements(Element element, std::span<const std::byte> bytes);

// Owns device memory. Copies wait until they are done, but not for work on other streams: synchronize those first.
class BURIN_API DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const Device& device, std::size_t bytes);
  template <typename T>
  DeviceBuffer(const Device& device, std::span<const T> values) : DeviceBuffer(device, values.size_bytes()) {
    upload(values.data(), values.size_bytes());
  }
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  std::size_t bytes() const { return bytes_; }
  template <typename T = float>
  T* data() const {
    return reinterpret_cast<T*>(memory_);
  }

  void upload(const void* source, std::size_t bytes, std::size_t offset = 0);
  void download(void* target, std::size_t bytes, std::size_t offset = 0) const;
  void fill(unsigned char value);

  template <typename T>
  std::vector<T> to_vector() const {
    std::vector<T> values(bytes_ / sizeof(T));
    download(values.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  std::shared_ptr<const DeviceState> device_;
  std::size_t bytes_ = 0;
  unsigned long long memory_ = 0;
};

// Device memory that is owned elsewhere: what a network's steps have left in between, for tools. Both wait until they
// are done.
BURIN_API void copy_from_device(const Device& device, void* target, const void* source, std::size_t bytes);
BURIN_API void fill_device(const Device& device, void* target, std::size_t bytes, unsigned char value);

// Gives back what the driver has made, in the context of its device.
struct BURIN_API Release {
  std::shared_ptr<const DeviceState> device;
  void operator()(CUstream_st* stream) const noexcept;
  void operator()(CUevent_st* event) const noexcept;
  void operator()(CUgraphExec_st* graph) const noexcept;
};

// A stream that does not wait for the default stream.
class BURIN_API Stream {
 public:
  explicit Stream(const Device& device);

  CUstream_st* handle() const { return handle_.get(); }
  operator CUstream_st*() const { return handle(); }
  void synchronize() const;

 private:
  friend class Graph;
  std::unique_ptr<CUstream_st, Release> handle_;
};

// A point in a stream, with the time at which the device reached it.
class BURIN_API Event {
 public:
  explicit Event(const Device& device);

  void record(CUstream_st* stream);
  void synchronize() const;
  // Both must have been reached.
  double microseconds_since(const Event& earlier) const;

 private:
  std::unique_ptr<CUevent_st, Release> handle_;
};

// A CUDA graph, ready to launch.
class BURIN_API Graph {
 public:
  // Records what `enqueue` puts on `stream`; nothing runs. If `enqueue` throws, the capture is ended and discarded.
  static Graph capture(const Stream& stream, const std::function<void(CUstream_st*)>& enqueue);

  void launch(CUstream_st* stream) const;

 private:
  Graph() = default;
  std::unique_ptr<CUgraphExec_st, Release> handle_;
};

}  // namespace burin
