// The task of a study's point: what its candidates compute.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/options.h"
#include "compiler/study/study_layer.h"
#include "compiler/task.h"
#include "ir/network.h"

namespace burin {

// The layer with its weights, in the formats in which a network would have it. The task refers to this.
class PointTask {
 public:
  PointTask(const StudyLayer& layer, std::uint64_t seed, const CompileOptions& options);
  PointTask(const PointTask&) = delete;
  PointTask& operator=(const PointTask&) = delete;

  const Task& task() const { return task_; }
  const ConvLayer& layer() const { return network_.layers.front(); }

 private:
  Network network_;
  Task task_;
};

}  // namespace burin
