#include "compiler/compile_layer.h"

#include "compiler/assemble/assemble.h"
#include "compiler/emit/kernel_report.h"
#include "compiler/emit/ptx.h"
#include "compiler/observer.h"
#include "compiler/plan/planner.h"
#include "compiler/source_hash.h"
#include "compiler/specialise/specialise.h"
#include "ir/sparse_pattern.h"

namespace burin {
std::optional<PackagedKernel> compile_layer(const LayerJob& job, const CompileOptions& options, const Reentry& reentry,
                                            const std::optional<std::string>& dump_folder) {
  const ConvLayer& layer = *job.layer;
  Observer observer(dump_folder, options.stop_after);
  if (observer.observe("layer", "10-layer.txt", [&] { return "name: " + layer.name + "\n" + print(layer.shape); })) {
    return std::nullopt;
  }

  const SparsePattern pattern = analyse(layer);
  if (observer.observe("pattern", "20-pattern.txt", [&] { return print(pattern); })) return std::nullopt;

  const TunedPlan* tuned = find_tuned(options.tuned, layer.name, job.batch);
  KernelPlan plan = reentry.plan ? *reentry.plan
                    : tuned      ? tuned->plan
                    : job.plan   ? *job.plan
                                 : make_plan(layer, pattern, plan_request(options, job.batch));
  if (job.in_network) {
    plan.output_image_words = job.output_image_words;
    plan.residual_image_words = job.residual_image_words;
  }
  check_precision(plan, reentry, options.precision);
  check_layout(plan, layer, reentry, options.layout);
  check_activity(plan, reentry, options.skip_dead_tiles);
  check_plan(plan, layer, pattern, options.archs);
  if (observer.observe("plan", "30-plan.txt", [&] { return print(plan); })) return std::nullopt;
  if (observer.observe("template", "40-template.ll", [&] { return print_template(plan, layer.shape); })) {
    return std::nullopt;
  }

  const std::string symbol = kernel_symbol(layer.name, plan) + job.suffix;
  PackagedKernel kernel{describe_kernel(layer, pattern, plan, symbol), {}};
  if (tuned) kernel.record.tuning = tuned->evidence;
  kernel.record.source_hash = source_hash(layer, plan, reentry.module_text + reentry.ptx);
  const std::string ptx_arch = lowest_arch(options.archs);
  std::string ptx = edited_ptx(reentry, symbol);
  if (ptx.empty()) {
    const SpecialisedModule specialised = reentry.module_text.empty()
                                              ? specialise(layer, pattern, plan, symbol)
                                              : parse_specialised(reentry.module_text, symbol, reentry.path);
    if (observer.observe("specialised", "50-specialised.ll", [&] { return print(specialised); })) return std::nullopt;
    ptx = emit_ptx(specialised, ptx_arch);
    if (options.keep_bitcode) {
      add_file(kernel, BinaryKind::bitcode, "", "kernels/" + symbol + ".bc", to_bitcode(specialised));
    }
  }
  if (observer.observe("ptx", "60-kernel.ptx", [&] { return ptx; })) return std::nullopt;

  if (find_assembler().kind != AssemblerInfo::Kind::none) {
    for (const std::string& arch : options.archs) {
      AssembledKernel assembled =
          reentry.ptx.empty() ? assemble(ptx, arch, symbol) : assemble_edited(reentry, arch, symbol);
      add_cubin(kernel, arch, std::move(assembled));
    }
  }
  observer.observe("cubin", "70-kernel.json", [&] { return kernel_report(kernel.record, ptx); });
  add_file(kernel, BinaryKind::ptx, ptx_arch, "kernels/" + symbol + ".ptx", std::move(ptx));
  return kernel;
}

}  // namespace burin
