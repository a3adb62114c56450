#include "compiler/providers/conv_baked/slices/baked_template.h"

#include <cstdint>
#include <map>
#include <string>

#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/specialise/constants.h"
#include "compiler/specialise/passes.h"
#include "ir/baked_plan_activity.h"
#include "ir/baked_plan_pool.h"
#include "ir/error.h"
#include "ir/saturate.h"
#include "templates/embedded.h"

namespace burin {
namespace {

// One position for each output, where the layer has no pool.
Pool pool_of(const ConvShape& shape) { return shape.epilogue.pool.value_or(Pool{}); }

// The values of the template's constants.
std::map<std::string, std::int64_t> plan_constants(const BakedPlan& plan, const ConvShape& shape) {
  return {
#define BURIN_CONSTANT(name, value) {#name, static_cast<std::int64_t>(value)},
#include "compiler/providers/conv_baked/conv_baked.def"
#undef BURIN_CONSTANT
  };
}

// The template has an entry for kernels without activity maps and one for those with them.
void choose_entry(llvm::Module& module, const BakedPlan& plan) {
  llvm::Function* plain = module.getFunction("burin_kernel");
  llvm::Function* with_activity = module.getFunction("burin_kernel_with_activity");
  BURIN_CHECK(plain != nullptr && with_activity != nullptr, "the template lacks an entry");
  if (plan.uses_activity()) {
    plain->eraseFromParent();
    with_activity->setName("burin_kernel");
  } else {
    with_activity->eraseFromParent();
  }
}

}  // namespace

std::unique_ptr<llvm::Module> load_template(llvm::LLVMContext& context, const BakedPlan& plan, const ConvShape& shape) {
  if (embedded_bitcode(plan.template_name).empty())
    fail(ErrorKind::unsupported, "there is no template '{}'", plan.template_name);
  std::unique_ptr<llvm::Module> module = parse_embedded(context, plan.template_name);
  choose_entry(*module, plan);
  fill_constants(*module, plan_constants(plan, shape), {{"leaky_slope", shape.epilogue.leaky_slope}});
  simplify(*module);
  return module;
}

}  // namespace burin
