// Times the kernels of a package on a GPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/synthetic_zeros.h"
#include "ir/package/package.h"
#include "runtime/bench/measure.h"

namespace burin {

struct BenchOptions {
  int samples = 100;
  int copies = 8;  // of the code, for the cold time
  LoadOptions load = {};
};

// In time(), inputs take turns, so that no launch finds its own input in the nearest cache.
inline constexpr int kInputBuffers = 4;

struct KernelTimes {
  Measurement warm;  // the same code again and again
  Measurement cold;  // `copies` loaded copies of the code in turn: as in a network, where other code ran in between
  // The same as time_in_chain() has it: a launch begins before the one before it has ended, where both are burin's.
  Measurement chained;
  std::string loaded_from;  // "sm_90 cubin" or "JIT of the PTX"
  double skipped = 0;       // of all tiles and input channels, the share in which the channel was skipped
};

// What the launches of a layer's kernel read, beside random values.
struct LayerInput {
  std::optional<double> dead = {};  // of the (cell, channel) blocks of its activity map, the share that is zero
  std::optional<SyntheticZeros> zeros = {};  // of random values
  std::span<const float> values = {};        // images in NCHW, as many as the batch; empty: random ones
};

// The elements of a kernel's input as they lie in its memory, from its first image on.
std::vector<float> input_elements(const KernelTensor& tensor, int batch, const LayerInput& input);

class LaunchSet;  // what launches read and write

// Loads a package several times over, each time with its own copy of the code.
class Bench {
 public:
  // `package` must outlive the bench.
  Bench(const Device& device, const Package& package, const BenchOptions& options);

  // One kernel at `batch` images. With LayerInput::dead launches have activity maps, as its kernel must; without, they
  // have none.
  KernelTimes time(const Kernel& record, int batch, const LayerInput& input = {}) const;
  // One launch among others of the same kernel that follow it as the steps of a network do: each with code and weights
  // of its own, and with an input that the L2 cache holds as far as it can, where the step before would have left it.
  Measurement time_in_chain(const Kernel& record, int batch, const LayerInput& input = {}) const;
  // The same, to be measured again and again: everything is in place, and each call takes the samples. The bench must
  // outlive it. Chains of one task and input may have their tensors in common: those of `like` are taken where they
  // fit.
  class Chain {
   public:
    Measurement measure() const;

   private:
    friend class Bench;
    const Bench* bench_ = nullptr;
    std::shared_ptr<const LaunchSet> launches_;
  };
  Chain chain(const Kernel& record, int batch, const LayerInput& input = {}, const Chain* like = nullptr) const;
  // The scratch memory of such a launch: of a library's call, what the library asks for.
  std::int64_t workspace_bytes(const Kernel& record, int batch) const;

  const Stream& stream() const { return stream_; }
  // LoadedPackage::notes(), each once for all copies.
  std::vector<std::string> notes() const { return copies_.front().notes(); }

 private:
  MeasureOptions measure_options() const { return {.samples = options_.samples}; }

  Device device_;
  BenchOptions options_;
  Stream stream_;
  std::vector<LoadedPackage> copies_;
};

// exp(mean(log)); 0 for no values.
double geometric_mean(const std::vector<double>& values);

}  // namespace burin
