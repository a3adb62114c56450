#include "runtime/burin/device_memory.hpp"

#include <utility>

#include "ir/error.h"
#include "runtime/device_state.h"

namespace burin {
namespace {

void check_range(std::size_t offset, std::size_t bytes, std::size_t capacity, const char* what) {
  if (offset > capacity || bytes > capacity - offset) {
    fail(ErrorKind::usage, "{} of {} bytes at offset {} does not fit a device buffer of {} bytes", what, bytes, offset,
         capacity);
  }
}

}  // namespace

// ---- DeviceBuffer

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes) : device_(device.state()), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(*device_);
  const DriverTable& driver = *device_->driver;
  const CUresult result = driver.cuMemAlloc(&memory_, bytes);
  if (result != kCudaSuccess) {
    fail_driver(driver, result, "cuMemAlloc",
                fmt::format("while allocating {} bytes on cuda:{}", bytes, device_->info.ordinal));
  }
}

DeviceBuffer::~DeviceBuffer() {
  if (memory_ == 0) return;
  release_in_context(*device_, [&](const DriverTable& driver) { driver.cuMemFree(memory_); });
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      bytes_(std::exchange(other.bytes_, 0)),
      memory_(std::exchange(other.memory_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  std::swap(memory_, other.memory_);
  return *this;
}

void DeviceBuffer::upload(const void* source, std::size_t bytes, std::size_t offset) {
  check_range(offset, bytes, bytes_, "an upload");
  if (bytes == 0) return;
  const ContextScope scope(*device_);
  const DriverTable& driver = *device_->driver;
  check(driver, driver.cuMemcpyHtoD(memory_ + offset, source, bytes), "cuMemcpyHtoD", "while copying to the device");
  // From pageable memory the call returns when the source may be reused; the last part may still be on its way.
  check(driver, driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize", "while copying to the device");
}

void DeviceBuffer::download(void* target, std::size_t bytes, std::size_t offset) const {
  check_range(offset, bytes, bytes_, "a download");
  if (bytes == 0) return;
  const ContextScope scope(*device_);
  const DriverTable& driver = *device_->driver;
  check(driver, driver.cuMemcpyDtoH(target, memory_ + offset, bytes), "cuMemcpyDtoH", "while copying from the device");
}

void DeviceBuffer::fill(unsigned char value) {
  if (bytes_ == 0) return;
  const ContextScope scope(*device_);
  const DriverTable& driver = *device_->driver;
  check(driver, driver.cuMemsetD8(memory_, value, bytes_), "cuMemsetD8", "while filling device memory");
  check(driver, driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize", "while filling device memory");
}

void copy_from_device(const Device& device, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceState& state = *device.state();
  const ContextScope scope(state);
  check(*state.driver, state.driver->cuMemcpyDtoH(target, reinterpret_cast<CUdeviceptr>(source), bytes), "cuMemcpyDtoH",
        "while copying from the device");
}

void fill_device(const Device& device, void* target, std::size_t bytes, unsigned char value) {
  if (bytes == 0) return;
  const DeviceState& state = *device.state();
  const ContextScope scope(state);
  check(*state.driver, state.driver->cuMemsetD8(reinterpret_cast<CUdeviceptr>(target), value, bytes), "cuMemsetD8",
        "while filling device memory");
  check(*state.driver, state.driver->cuStreamSynchronize(nullptr), "cuStreamSynchronize",
        "while filling device memory");
}

// ---- Stream

Stream::Stream(const Device& device) : device_(device.state()) {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuStreamCreate(&handle_, kStreamNonBlocking), "cuStreamCreate");
}

Stream::~Stream() {
  if (handle_ == nullptr) return;
  release_in_context(*device_, [&](const DriverTable& driver) { driver.cuStreamDestroy(handle_); });
}

Stream::Stream(Stream&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Stream::synchronize() const {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuStreamSynchronize(handle_), "cuStreamSynchronize",
        "a kernel or copy that ran on the stream may be at fault");
}

// ---- Event

Event::Event(const Device& device) : device_(device.state()) {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuEventCreate(&handle_, 0), "cuEventCreate");
}

Event::~Event() {
  if (handle_ == nullptr) return;
  release_in_context(*device_, [&](const DriverTable& driver) { driver.cuEventDestroy(handle_); });
}

Event::Event(Event&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::record(CUstream_st* stream) {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuEventRecord(handle_, stream), "cuEventRecord");
}

void Event::synchronize() const {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuEventSynchronize(handle_), "cuEventSynchronize",
        "a kernel or copy that ran before the event may be at fault");
}

double Event::microseconds_since(const Event& earlier) const {
  constexpr double kMicrosecondsPerMillisecond = 1000;
  const ContextScope scope(*device_);
  float milliseconds = 0;
  check(*device_->driver, device_->driver->cuEventElapsedTime(&milliseconds, earlier.handle_, handle_),
        "cuEventElapsedTime");
  return milliseconds * kMicrosecondsPerMillisecond;
}

// ---- Graph

namespace {

// A capture in progress, then the graph it gave; instantiation copies what it needs of that.
class Capture {
 public:
  Capture(const DriverTable& driver, CUstream stream) : driver_(driver), stream_(stream) {
    // It captures this thread alone: what other threads do meanwhile neither breaks it nor is forbidden by it.
    check(driver_, driver_.cuStreamBeginCapture(stream_, kStreamCaptureModeThreadLocal), "cuStreamBeginCapture");
    capturing_ = true;
  }
  ~Capture() {
    if (capturing_) driver_.cuStreamEndCapture(stream_, &graph_);
    if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  CUgraph end() {
    capturing_ = false;
    check(driver_, driver_.cuStreamEndCapture(stream_, &graph_), "cuStreamEndCapture",
          "something that was enqueued cannot be captured into a CUDA graph");
    return graph_;
  }

 private:
  const DriverTable& driver_;
  CUstream stream_;
  CUgraph graph_ = nullptr;
  bool capturing_ = false;
};

}  // namespace

Graph Graph::capture(const Stream& stream, const std::function<void(CUstream_st*)>& enqueue) {
  Graph graph;
  graph.device_ = stream.device_;
  const ContextScope scope(*graph.device_);
  const DriverTable& driver = *graph.device_->driver;
  Capture capture(driver, stream.handle());
  enqueue(stream.handle());
  check(driver, driver.cuGraphInstantiateWithFlags(&graph.handle_, capture.end(), 0), "cuGraphInstantiateWithFlags");
  return graph;
}

Graph::~Graph() {
  if (handle_ == nullptr) return;
  release_in_context(*device_, [&](const DriverTable& driver) { driver.cuGraphExecDestroy(handle_); });
}

Graph::Graph(Graph&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Graph::launch(CUstream_st* stream) const {
  const ContextScope scope(*device_);
  check(*device_->driver, device_->driver->cuGraphLaunch(handle_, stream), "cuGraphLaunch");
}

}  // namespace burin
