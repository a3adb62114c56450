#include "compiler/specialise/template_kernel.h"

#include <llvm/Support/raw_ostream.h>

#include <map>

#include "compiler/kernel_cluster.h"
#include "compiler/specialise/constants.h"
#include "compiler/specialise/entry.h"
#include "compiler/specialise/passes.h"
#include "ir/error.h"

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
  std::string text;
  llvm::raw_string_ostream(text) << *parse_embedded(context, plan.template_name);
  return text;
}

SpecialisedModule specialise_template(const TemplatePlan& plan, const std::string& symbol) {
  if (const auto faults = verify(plan); !faults.empty()) {
    std::string all;
    for (const std::string& fault : faults) all += (all.empty() ? "" : "; ") + fault;
    fail(ErrorKind::bad_input, "template kernel '{}': {}", symbol, all);
  }
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = parse_embedded(*result.context, plan.template_name);
  result.symbol = symbol;
  fill_constants(*result.module, integers_of(plan), plan.reals);
  simplify(*result.module);
  for (const char* name : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* used = result.module->getGlobalVariable(name)) used->eraseFromParent();
  }
  set_entry(*result.module, symbol, plan.launch().threads);
  if (plan.launch().cluster_tiles > 1)
    set_cluster(*result.module->getFunction(symbol), {plan.launch().cluster_tiles, 1});
  result.module->setModuleIdentifier(symbol);
  result.module->setSourceFileName(plan.template_name);
  check_module(*result.module, ErrorKind::internal, fmt::format("the module of '{}'", symbol));
  return result;
}

}  // namespace burin
