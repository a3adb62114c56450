// Which kernels of a package `burin bench` measures by themselves, and beside what.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "compiler/measure/layer_times.h"
#include "ir/library_task.h"
#include "ir/package/package.h"
#include "runtime/bench/cudnn_baseline.h"

namespace burin {

struct BenchRow {
  const Kernel* kernel = nullptr;
  int batch = 1;
  LibraryTask task = ConvShape{};   // what the kernel computes with so many images
  std::optional<double> dead = {};  // share of the input's activity map; nothing: launched without maps
  KernelTimes times = {};
  double without_us = 0;              // of `dead`: the cold time of the same kernel without maps
  std::vector<CudnnMode> modes = {};  // of cuDNN that it is compared with
  CudnnBaseline baseline = {};

  bool compared_with(CudnnMode mode) const { return std::find(modes.begin(), modes.end(), mode) != modes.end(); }
  // cuDNN's time over ours, cold, where there is one: above 1 is faster than cuDNN.
  std::optional<double> ratio(CudnnMode mode) const {
    const std::optional<CudnnTime>& theirs = baseline[mode];
    const double ours_us = times.cold.median_us;
    if (!theirs || theirs->median_us <= 0 || ours_us <= 0) return std::nullopt;
    return theirs->median_us / ours_us;
  }
};

// A convolution is compared with cuDNN on tensors like its own, and with the fastest that cuDNN does on float tensors;
// what multiplies nothing with tensors like its own alone.
std::vector<CudnnMode> modes_for(const Kernel& kernel);

enum class RowsOf {
  convolutions,
  all_that_libraries_do,  // convolutions first, then pools, softmax and what moves values
};

// The kernels whose operator matches `layer`. Each is timed at the batch size it was tuned for, or each layer at each
// of `batches` with the kernel that the runtime would choose. Throws Error(usage) where none matches.
std::vector<BenchRow> choose_rows(const Manifest& manifest, const std::optional<std::string>& layer,
                                  const std::vector<int>& batches, RowsOf of);

// Each row is followed by one for each share of dead blocks, which `text` lists: "0,0.5,0.9". Throws Error(usage) where
// it lists none, or a kernel skips nothing.
std::vector<BenchRow> with_dead_inputs(const std::vector<BenchRow>& rows, const std::string& text);

}  // namespace burin
