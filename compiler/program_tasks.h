// The tasks of a program's steps, and of layers that are no network.
#pragma once

#include "compiler/options.h"
#include "compiler/task.h"
#include "ir/network.h"
#include "ir/network_plan.h"

namespace burin {

// `network`, which the plan was made of, must outlive the task.
Task task_of(const Network& network, const NetworkPlan& plan, const Step& step, const CompileOptions& options);

// A convolution whose tensors have memory of their own, in the formats that the options ask for. `op` is a convolution;
// it and the layer must outlive the task.
Task task_of(const Operator& op, const ConvLayer& layer, int batch, const CompileOptions& options);

// Each convolution of a network by itself, for each batch size: of a graph, in the formats of its tensors.
struct LayerTasks {
  std::vector<Operator> operators;  // of layers without a graph
  std::vector<Task> tasks;
};
LayerTasks layer_tasks(const Network& network, const CompileOptions& options);

}  // namespace burin
