#include "runtime/burin/device_memory.hpp"

#include <utility>

#include "ir/error.h"
#include "runtime/capture.h"
#include "runtime/device_state.h"

namespace burin {
namespace {

void check_range(std::size_t offset, std::size_t bytes, std::size_t capacity, const char* what) {
  if (offset > capacity || bytes > capacity - offset) {
    fail(ErrorKind::usage, "{} of {} bytes at offset {} does not fit a device buffer of {} bytes", what, bytes, offset,
         capacity);
  }
}

void copy_from(const DeviceState& device, void* target, CUdeviceptr source, std::size_t bytes) {
  call(device, &DriverTable::cuMemcpyDtoH, "cuMemcpyDtoH", "while copying from the device", target, source, bytes);
}

void fill_memory(const DeviceState& device, CUdeviceptr target, std::size_t bytes, unsigned char value) {
  constexpr std::string_view kWhile = "while filling device memory";
  call(device, &DriverTable::cuMemsetD8, "cuMemsetD8", kWhile, target, value, bytes);
  call(device, &DriverTable::cuStreamSynchronize, "cuStreamSynchronize", kWhile, nullptr);
}

}  // namespace

// ---- DeviceBuffer

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes) : device_(device.state()), bytes_(bytes) {
  if (bytes == 0) return;
  call(*device_, &DriverTable::cuMemAlloc, "cuMemAlloc",
       fmt::format("while allocating {} bytes on cuda:{}", bytes, device_->info.ordinal), &memory_, bytes);
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
  constexpr std::string_view kWhile = "while copying to the device";
  call(*device_, &DriverTable::cuMemcpyHtoD, "cuMemcpyHtoD", kWhile, memory_ + offset, source, bytes);
  // From pageable memory the call returns when the source may be reused; the last part may still be on its way.
  call(*device_, &DriverTable::cuStreamSynchronize, "cuStreamSynchronize", kWhile, nullptr);
}

void DeviceBuffer::download(void* target, std::size_t bytes, std::size_t offset) const {
  check_range(offset, bytes, bytes_, "a download");
  if (bytes != 0) copy_from(*device_, target, memory_ + offset, bytes);
}

void DeviceBuffer::fill(unsigned char value) {
  if (bytes_ != 0) fill_memory(*device_, memory_, bytes_, value);
}

void copy_from_device(const Device& device, void* target, const void* source, std::size_t bytes) {
  if (bytes != 0) copy_from(*device.state(), target, reinterpret_cast<CUdeviceptr>(source), bytes);
}

void fill_device(const Device& device, void* target, std::size_t bytes, unsigned char value) {
  if (bytes != 0) fill_memory(*device.state(), reinterpret_cast<CUdeviceptr>(target), bytes, value);
}

// ---- Release

void Release::operator()(CUstream_st* stream) const noexcept {
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuStreamDestroy(stream); });
}
void Release::operator()(CUevent_st* event) const noexcept {
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuEventDestroy(event); });
}
void Release::operator()(CUgraphExec_st* graph) const noexcept {
  release_in_context(*device, [&](const DriverTable& driver) { driver.cuGraphExecDestroy(graph); });
}

// ---- Stream

Stream::Stream(const Device& device) : handle_(nullptr, Release{device.state()}) {
  CUstream stream = nullptr;
  call(*device.state(), &DriverTable::cuStreamCreate, "cuStreamCreate", {}, &stream, kStreamNonBlocking);
  handle_.reset(stream);
}

void Stream::synchronize() const {
  call(*handle_.get_deleter().device, &DriverTable::cuStreamSynchronize, "cuStreamSynchronize",
       "a kernel or copy that ran on the stream may be at fault", handle());
}

// ---- Event

Event::Event(const Device& device) : handle_(nullptr, Release{device.state()}) {
  CUevent event = nullptr;
  call(*device.state(), &DriverTable::cuEventCreate, "cuEventCreate", {}, &event, 0U);
  handle_.reset(event);
}

void Event::record(CUstream_st* stream) {
  call(*handle_.get_deleter().device, &DriverTable::cuEventRecord, "cuEventRecord", {}, handle_.get(), stream);
}

void Event::synchronize() const {
  call(*handle_.get_deleter().device, &DriverTable::cuEventSynchronize, "cuEventSynchronize",
       "a kernel or copy that ran before the event may be at fault", handle_.get());
}

double Event::microseconds_since(const Event& earlier) const {
  constexpr double kMicrosecondsPerMillisecond = 1000;
  float milliseconds = 0;
  call(*handle_.get_deleter().device, &DriverTable::cuEventElapsedTime, "cuEventElapsedTime", {}, &milliseconds,
       earlier.handle_.get(), handle_.get());
  return milliseconds * kMicrosecondsPerMillisecond;
}

// ---- Graph

Graph Graph::capture(const Stream& stream, const std::function<void(CUstream_st*)>& enqueue) {
  Graph graph;
  const std::shared_ptr<const DeviceState>& device = graph.handle_.get_deleter().device =
      stream.handle_.get_deleter().device;
  const ContextScope scope(*device);
  const DriverTable& driver = *device->driver;
  Capture capture(driver, stream);
  enqueue(stream);
  CUgraphExec made = nullptr;
  check(driver, driver.cuGraphInstantiateWithFlags(&made, capture.end(), 0), "cuGraphInstantiateWithFlags");
  graph.handle_.reset(made);
  return graph;
}

void Graph::launch(CUstream_st* stream) const {
  call(*handle_.get_deleter().device, &DriverTable::cuGraphLaunch, "cuGraphLaunch", {}, handle_.get(), stream);
}

}  // namespace burin
