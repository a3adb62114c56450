// burin tune: the tuner on a GPU of this machine.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/tune/measurer.h"
#include "compiler/tune/network_timer.h"
#include "compiler/tune/tune.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

inline constexpr int kDefaultTuningPlans = 12;
inline constexpr int kDefaultTuningMinutes = 5;

struct TunedNetwork {
  std::vector<TunedKernel> kernels;
  std::vector<std::string> notes;  // candidates that compute wrong results, and kernels that were not measured
};

// Who asks for measurements, as an error says it where nothing can be measured.
struct MeasuringCommand {
  std::string name = "tune";
  std::string otherwise = "compile goes by the cost models, which need none";  // what needs no GPU
};

// What `verify` and `bench` do, for one kernel at a time.
class GpuMeasurer : public Measurer {
 public:
  // Takes the first GPU whose architecture is one of `archs`. Throws Error(device) where there is none.
  explicit GpuMeasurer(const std::vector<std::string>& archs, const MeasuringCommand& command = {});

  TuningDevice device() const override;
  void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override;
  std::vector<Timing> time_in_turns(std::span<const Package* const> packages, int batch,
                                    std::span<const float> input) override;
  bool usable() override;
  // Looks for the libraries that kernels may call; device() then says which are there. Returns why others are not, a
  // sentence each.
  std::vector<std::string> missing_libraries();

 private:
  Device device_;
  std::vector<LibraryVersion> libraries_;
};

// Throws what a measurement would, before the work that leads to it: Error(device) without a GPU of one of `archs`,
// Error(unsupported) where nothing makes the machine code that would be measured.
void check_can_measure(const std::vector<std::string>& archs, const MeasuringCommand& command = {});

// Kernels for all convolutions and fully connected layers of `graphs` and options.batches, as many as the time suffices
// for. Throws Error(device) without a GPU of one of options.archs, Error(unsupported) without an assembler. `progress`
// may be empty.
TunedNetwork tune_on_gpu(const ProgramGraphs& graphs, const CompileOptions& options, const TuneOptions& tune_options,
                         const std::function<void(const TuneProgress&)>& progress);

// A timer on the GPU that tune_on_gpu() takes.
NetworkTimer network_timer(const std::vector<std::string>& archs);

}  // namespace burin
