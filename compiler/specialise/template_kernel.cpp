#include "compiler/specialise/template_kernel.h"

#include <fmt/ranges.h>

#include "compiler/specialise/passes.h"
#include "compiler/specialise/template_module.h"

namespace burin {
namespace {

// The template's own constants, and those of templates/kernels/common.def.
std::map<std::string, std::int64_t> integers_of(const TemplatePlan& plan) {
  std::map<std::string, std::int64_t> values(plan.integers.begin(), plan.integers.end());
  values["in_image_words"] = plan.input().image_words;
  values["residual_image_words"] = plan.residual().image_words;
  values["out_image_words"] = plan.output().image_words;
  values["in_word_images"] = images_together(plan.input().layout);
  values["out_word_images"] = images_together(plan.output().layout);
  values["block_threads"] = plan.launch().threads;
  values["block_images"] = plan.launch().tile_images;
  values["image_blocks"] = plan.launch().tiles_per_image;
  values["cluster_blocks"] = plan.launch().cluster_tiles;
  return values;
}

}  // namespace

std::string print_template(const TemplatePlan& plan) {
  llvm::LLVMContext context;
  return print(*parse_embedded(context, plan.template_name));
}

SpecialisedModule specialise_template(const TemplatePlan& plan, const std::string& symbol) {
  if (const auto faults = verify(plan); !faults.empty()) {
    fail(ErrorKind::bad_input, "template kernel '{}': {}", symbol, fmt::join(faults, "; "));
  }
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = parse_embedded(*result.context, plan.template_name);
  result.symbol = symbol;
  fill_constants(*result.module, integers_of(plan), plan.reals);
  simplify(*result.module);
  drop_used_lists(*result.module);
  finish_entry(result, plan.template_name, plan.launch().threads, {plan.launch().cluster_tiles, 1});
  return result;
}

}  // namespace burin
