// What there is to compile: a list of kernels, and, for a whole network, which of its steps launches which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/operators/plan_operator.h"
#include "ir/kernel_plan.h"
#include "ir/network.h"
#include "ir/network_plan.h"
#include "ir/package/network_record.h"

namespace burin {

// A convolution for a batch size.
struct LayerJob {
  const ConvLayer* layer = nullptr;
  int batch = 1;
  std::string suffix;  // of symbol and folder: tells apart layers whose names reduce to the same
  // Of a network: its plan says where the tensors lie (ir/kernel_plan.h).
  bool in_network = false;
  std::int64_t output_image_words = 0, residual_image_words = 0;
  std::int64_t nonzeros = 0;
  std::optional<KernelPlan> plan = {};  // made already, to compare it with other kernels
};

// An operator whose kernel has its weights as data, or a copy. One kernel serves every batch size for which its plan is
// the same.
struct OperatorJob {
  std::string op, kind;
  PlannedOperator planned;
  std::string symbol;
  std::string folder;  // of its dump
};

// A network for one batch size; of each step, its index in one of the lists of kernels, -1 in the other.
struct ProgramJobs {
  NetworkPlan plan;
  std::vector<int> layers, operators;
  std::vector<std::vector<KernelOption>> options;  // as in NetworkProgram
};

struct Jobs {
  std::vector<LayerJob> layers;
  std::vector<OperatorJob> operators;
  std::vector<ProgramJobs> programs;  // one for each batch size; none without a graph
};

// `network` must outlive the jobs.
Jobs list_jobs(const Network& network, const CompileOptions& options);

}  // namespace burin
