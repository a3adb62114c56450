// Capture: what is enqueued on a stream as a graph, without running it.
#pragma once

#include "runtime/driver/driver_table.h"

namespace burin {

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

// How this thread's captures take what is no work of a stream, while it lasts. In the relaxed mode the thread may
// allocate memory and wait for other streams although it captures one: neither is part of what is captured, and neither
// breaks it.
class ThreadCaptureMode {
 public:
  ThreadCaptureMode(const DriverTable& driver, int mode) : driver_(driver), mode_(mode) {
    check(driver_, driver_.cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
  ~ThreadCaptureMode() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  ThreadCaptureMode(const ThreadCaptureMode&) = delete;
  ThreadCaptureMode& operator=(const ThreadCaptureMode&) = delete;

 private:
  const DriverTable& driver_;
  int mode_;  // the thread's before, once they are exchanged
};

}  // namespace burin
