#include "compiler/packaged_kernel.h"

#include <algorithm>

#include "compiler/launch_geometry.h"
#include "ir/arch.h"

namespace burin {

std::string lowest_arch(const std::vector<std::string>& archs) {
  return *std::min_element(archs.begin(), archs.end(), [](const std::string& a, const std::string& b) {
    return arch_by_name(a).compute < arch_by_name(b).compute;
  });
}

KernelRecord describe_kernel(const ConvLayer& layer, const SparsePattern& pattern, const KernelPlan& plan,
                             const std::string& symbol) {
  KernelRecord record;
  record.symbol = symbol;
  record.layer = layer.name;
  record.shape = layer.shape;
  record.nonzeros = pattern.statistics.nonzeros;
  record.dead_inputs = pattern.statistics.dead_inputs;
  record.dead_outputs = pattern.statistics.dead_outputs;
  record.template_name = plan.template_name;
  record.precision = std::string(to_string(plan.precision));
  record.plan = print(plan);
  record.plan_short = describe(plan);
  record.planned_batch = plan.batch;
  record.predicted_us = plan.predicted_us;
  record.launch = launch_geometry(plan, layer.shape);
  return record;
}

void describe_cubin(KernelBinary& binary, const AssembledKernel& assembled) {
  binary.registers = assembled.registers;
  binary.spill_bytes = assembled.spill_bytes;
  binary.stack_bytes = assembled.stack_bytes;
  binary.code_bytes = assembled.code_bytes;
}

void add_kernel(Package& package, PackagedKernel kernel) {
  package.manifest.kernels.push_back(std::move(kernel.record));
  for (auto& [path, content] : kernel.files) package.files[path] = std::move(content);
}

}  // namespace burin
