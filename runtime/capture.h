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

// While it lasts, this thread may allocate memory and wait for streams although it captures another stream: neither is
// part of what is captured, and neither breaks the capture.
class BesideCaptures {
 public:
  explicit BesideCaptures(const DriverTable& driver) : driver_(driver) {
    check(driver_, driver_.cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
  ~BesideCaptures() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  const DriverTable& driver_;
  int mode_ = kStreamCaptureModeRelaxed;  // the thread's, once they are exchanged
};

}  // namespace burin
