#include "compiler/tune/candidate.h"

#include "compiler/make_kernel.h"
#include "compiler/program_tasks.h"
#include "ir/derive_form.h"

namespace burin {

Package compile_candidate(const ConvLayer& layer, const BakedPlan& plan, const std::vector<std::string>& archs,
                          const std::string& arch) {
  CompileOptions options;
  options.archs = archs;
  options.precision = plan.precision;
  options.layout = plan.input_layout;
  options.output_layout = plan.output_layout;
  options.skip_dead_tiles = plan.uses_activity();
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  const Task task = task_of(op, layer, plan.batch, options);
  const std::string symbol = kernel_symbol(layer.name, plan);
  const Candidate candidate{std::string(kBakedProvider), print(plan), symbol, {plan.predicted_us, {}}};
  options.cubin_archs = {arch};
  options.keep_bitcode = false;
  Package package;
  package.manifest.tool_version = BURIN_VERSION;
  package.manifest.source = symbol;
  add_kernel(package, *make_kernel(task, candidate, symbol, options, {}, std::nullopt));
  return package;
}

}  // namespace burin
