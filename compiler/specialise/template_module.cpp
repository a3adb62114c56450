#include "compiler/specialise/template_module.h"

#include <fmt/ranges.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>

#include "ir/saturate.h"
#include "templates/embedded.h"

namespace burin {
namespace {

constexpr llvm::StringRef kInteger = "burin_const_", kReal = "burin_real_";

void replace_calls(llvm::Function& function, llvm::Constant* value) {
  while (!function.use_empty()) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(*function.user_begin());
    BURIN_CHECK(call != nullptr, "{} is used other than by a call", function.getName().str());
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  function.eraseFromParent();
}

template <typename Number>
const Number& value_of(const std::map<std::string, Number>& values, llvm::StringRef name) {
  const auto found = values.find(name.str());
  BURIN_CHECK(found != values.end(), "the template uses the constant {}, which has no value", name.str());
  return found->second;
}

// Where a place has several channels of a pixel, what works place by place takes those for one.
std::int64_t channels_of_place(TensorLayout layout) { return has_places(layout) ? channels_together(layout) : 1; }
// Nobody asks for those of a tensor that does not say what its words are.
std::int64_t places_together(const KernelTensor& tensor) {
  const TensorLayout layout = tensor.layout;
  return std::max<std::int64_t>(1, channels_side_by_side(layout, tensor.channels) / channels_of_place(layout));
}

// The template's own constants, and those of templates/kernels/common.def.
std::map<std::string, std::int64_t> integers_of(const TemplatePlan& plan) {
  std::map<std::string, std::int64_t> values(plan.integers.begin(), plan.integers.end());
  values["in_image_words"] = plan.input().image_words;
  values["residual_image_words"] = plan.residual().image_words;
  values["out_image_words"] = plan.output().image_words;
  values["in_word_images"] = images_together(plan.input().layout);
  values["out_word_images"] = images_together(plan.output().layout);
  values["residual_word_images"] = images_together(plan.residual().layout);
  values["place_words"] = std::max(element_words(plan.input().layout), element_words(plan.output().layout));
  values["channels_together"] = std::max(places_together(plan.input()), places_together(plan.output()));
  values["image_channels"] = ceil_div(plan.output().channels, channels_of_place(plan.output().layout));
  values["image_plane"] =
      plan.output().is_image() ? std::int64_t{plan.output().rows} * plan.output().cols : std::int64_t{1};
  values["in_halves"] = static_cast<int>(plan.input().element);
  values["out_halves"] = static_cast<int>(plan.output().element);
  values["block_threads"] = plan.launch().threads;
  values["block_images"] = plan.launch().tile_images;
  values["image_blocks"] = plan.launch().tiles_per_image;
  values["cluster_blocks"] = plan.launch().cluster_tiles;
  return values;
}

// Parameters by value stay where they are: without this, the code generator gives each thread a copy of its own, which
// is no place for the GPU to look for a box.
void annotate_boxes(llvm::Function& kernel) {
  llvm::LLVMContext& context = kernel.getContext();
  std::vector<llvm::Metadata*> numbers;  // counted from 1
  for (const llvm::Argument& parameter : kernel.args()) {
    if (!parameter.hasByValAttr()) continue;
    numbers.push_back(llvm::ConstantAsMetadata::get(
        llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), parameter.getArgNo() + 1)));
  }
  if (numbers.empty()) return;
  kernel.getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(&kernel), llvm::MDString::get(context, "grid_constant"),
                    llvm::MDNode::get(context, numbers)}));
}

struct Analyses {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;

  explicit Analyses(llvm::PassBuilder& builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
  }
};

}  // namespace

std::unique_ptr<llvm::Module> parse_embedded(llvm::LLVMContext& context, std::string_view name) {
  const std::string_view bitcode = embedded_bitcode(name);
  BURIN_CHECK(!bitcode.empty(), "no bitcode named '{}' was embedded", name);
  llvm::MemoryBufferRef buffer({bitcode.data(), bitcode.size()}, {name.data(), name.size()});
  llvm::Expected<std::unique_ptr<llvm::Module>> module = llvm::parseBitcodeFile(buffer, context);
  BURIN_CHECK(static_cast<bool>(module), "{}: {}", name, llvm::toString(module.takeError()));
  for (llvm::Function& function : **module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
  }
  return std::move(*module);
}

void drop_used_lists(llvm::Module& module) {
  for (const char* name : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* used = module.getGlobalVariable(name)) used->eraseFromParent();
  }
}

void fill_constants(llvm::Module& module, const std::map<std::string, std::int64_t>& integers,
                    const std::map<std::string, float>& reals) {
  llvm::LLVMContext& context = module.getContext();
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    llvm::StringRef name = function.getName();
    if (name.consume_front(kInteger)) {
      const std::int64_t value = value_of(integers, name);
      replace_calls(function, llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value));
    } else if (name.consume_front(kReal)) {
      const float value = value_of(reals, name);
      replace_calls(function, llvm::ConstantFP::get(context, llvm::APFloat(value)));
    }
  }
}

void name_calls(llvm::Module& module, const std::map<std::string, std::string>& calls) {
  for (const auto& [name, symbol] : calls) {
    llvm::Function* placeholder = module.getFunction("burin_call_" + name);
    if (placeholder == nullptr || placeholder->use_empty()) continue;
    llvm::FunctionCallee callee =
        module.getOrInsertFunction(symbol, placeholder->getFunctionType(), placeholder->getAttributes());
    placeholder->replaceAllUsesWith(callee.getCallee());
    placeholder->eraseFromParent();
  }
}

void simplify(llvm::Module& module) {
  llvm::PassBuilder builder;
  Analyses analyses(builder);
  for (const llvm::OptimizationLevel& level : {llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2}) {
    builder.buildModuleSimplificationPipeline(level, llvm::ThinOrFullLTOPhase::None).run(module, analyses.modules);
  }
}

void inline_marked(llvm::Module& module, llvm::FunctionPassManager clean) {
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(clean)));
  llvm::PassBuilder builder;
  Analyses analyses(builder);
  passes.run(module, analyses.modules);
}

void finish_entry(SpecialisedModule& specialised, const std::string& template_name, int threads,
                  const ClusterExtent& cluster, int max_registers) {
  llvm::Module& module = *specialised.module;
  llvm::Function* kernel = module.getFunction("burin_kernel");
  BURIN_CHECK(kernel != nullptr, "the template has no entry");
  kernel->setName(specialised.symbol);
  module.getOrInsertNamedMetadata("nvvm.annotations")->clearOperands();
  annotate(*kernel, "kernel", 1);
  annotate(*kernel, "maxntidx", threads);
  annotate_boxes(*kernel);
  if (max_registers < kAllRegisters) annotate(*kernel, "maxnreg", max_registers);
  if (cluster.blocks() > 1) set_cluster(*kernel, cluster);
  module.setModuleIdentifier(specialised.symbol);
  module.setSourceFileName(template_name);
  check_module(module, ErrorKind::internal, fmt::format("the module of '{}'", specialised.symbol));
}

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
  name_calls(*result.module, plan.calls);
  drop_used_lists(*result.module);
  finish_entry(result, plan.template_name, plan.launch().threads, {plan.launch().cluster_tiles, 1});
  return result;
}

}  // namespace burin
