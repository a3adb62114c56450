// The tasks of a program's steps, and of convolutions by themselves.
#pragma once

#include <optional>

#include "compiler/options.h"
#include "compiler/task.h"
#include "ir/network.h"
#include "ir/program.h"

namespace burin {

// `network`, which the program was made of, must outlive the task.
Task task_of(const Network& network, const Program& program, const Step& step, const CompileOptions& options);

// What tensors of convolutions are in. A layout that half tensors cannot lie in is one of FP32 tensors, which are then
// multiplied in halves.
TensorFormat asked_format(Precision precision, const std::optional<TensorLayout>& layout);

// A convolution whose tensors have memory of their own, in the formats that the options ask for. `op` is a convolution;
// it and the layer must outlive the task.
Task task_of(const Operator& op, const ConvLayer& layer, int batch, const CompileOptions& options);
// The same in these formats.
Task task_of(const Operator& op, const ConvLayer& layer, const TensorFormat& input, const TensorFormat& output,
             int batch, const CompileOptions& options);

// Another operator, whose tensors have memory of their own, with the shapes of its inputs; what it reads beside the
// first of them is as it writes, of Excite plain. `op` must outlive the task.
Task task_of(const Operator& op, const std::vector<std::vector<std::int64_t>>& inputs,
             const std::vector<std::int64_t>& output, const TensorFormat& read, const TensorFormat& written, int batch,
             const CompileOptions& options);

// Each convolution and fully connected layer of a network by itself, in the formats of its tensors. `network` must
// outlive the tasks.
std::vector<Task> layer_tasks(const Network& network, const CompileOptions& options, int batch);

}  // namespace burin
