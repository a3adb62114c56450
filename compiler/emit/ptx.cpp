#include "compiler/emit/ptx.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/CodeGen/AsmPrinter.h>
#include <llvm/CodeGen/DebugHandlerBase.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <map>
#include <mutex>
#include <vector>

#include "compiler/emit/choices_as_conditions.h"
#include "compiler/emit/group_products.h"
#include "compiler/emit/inline_functions.h"
#include "compiler/emit/notes.h"
#include "compiler/kernel_cluster.h"
#include "compiler/specialise/source_map.h"
#include "compiler/specialise/template_module.h"
#include "ir/arch.h"
#include "ir/error.h"

namespace burin {
namespace {

using llvm::Function;

std::string note_text(const llvm::CallInst& call) {
  std::vector<std::uint64_t> values;
  for (const llvm::Use& argument : call.args()) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(argument.get());
    values.push_back(constant == nullptr ? 0 : constant->getZExtValue());
  }
  const llvm::StringRef name = call.getCalledFunction()->getName();
  if (name == "burin_dev_note_slice" && values.size() == 2) return fmt::format(kSliceNote, values[0], values[1]);
  if (name == "burin_dev_note_stage" && values.size() == 1) return fmt::format(kStageNote, values[0]);
  return {};
}

// Notes become inline assembly that holds nothing but a comment.
void notes_to_comments(llvm::Module& module) {
  llvm::FunctionType* type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), false);
  std::vector<Function*> notes;
  for (Function& function : module) {
    if (function.isDeclaration() && function.getName().starts_with("burin_dev_note_")) notes.push_back(&function);
  }
  for (Function* note : notes) {
    for (llvm::User* user : llvm::make_early_inc_range(note->users())) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(user);
      BURIN_CHECK(call != nullptr, "a note is used other than by a call");
      llvm::IRBuilder<>(call).CreateCall(
          llvm::InlineAsm::get(type, "// " + note_text(*call), "", /*hasSideEffects=*/true));
      call->eraseFromParent();
    }
    note->eraseFromParent();
  }
}

void link_primitives(llvm::Module& module, const ArchSpec& arch) {
  const std::string name = arch.clusters ? "device_sm90" : arch.async_copy ? "device_sm80" : "device_sm75";
  std::unique_ptr<llvm::Module> device = parse_embedded(module.getContext(), name);
  simplify(*device);
  device->setDataLayout(module.getDataLayout());
  device->setTargetTriple(module.getTargetTriple());
  drop_used_lists(*device);
  if (llvm::NamedMDNode* annotations = device->getNamedMetadata("nvvm.annotations")) annotations->eraseFromParent();
  std::vector<std::string> primitives;
  for (const Function& function : *device) {
    if (!function.isDeclaration()) primitives.push_back(function.getName().str());
  }
  BURIN_CHECK(!llvm::Linker::linkModules(module, std::move(device), llvm::Linker::LinkOnlyNeeded),
              "the device primitives do not link");
  for (const Function& function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() && !is_group_product(function.getName())) {
      fail(ErrorKind::bad_input, "the module calls '{}', which is no device primitive of {}", function.getName().str(),
           arch.name);
    }
  }
  for (const std::string& name : primitives) {
    if (Function* function = module.getFunction(name)) function->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

void inline_primitives(llvm::Module& module) {
  llvm::FunctionPassManager clean;
  clean.addPass(llvm::EarlyCSEPass());
  clean.addPass(llvm::SimplifyCFGPass());
  inline_marked(module, std::move(clean));
}

// Words that are multiplied as two halves are loaded as two halves. LLVM joins a load and the only conversion of what
// it brought into one instruction, which stands where the conversion stood: loads would lose their place ahead of their
// use, and their entry in the source map.
void load_halves_as_halves(llvm::Module& module) {
  llvm::Type* halves = llvm::FixedVectorType::get(llvm::Type::getHalfTy(module.getContext()), 2);
  const auto is_conversion = [&](const llvm::User* user) {
    return llvm::isa<llvm::BitCastInst>(user) && user->getType() == halves;
  };
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load != nullptr && llvm::all_of(load->users(), is_conversion)) loads.push_back(load);
    }
  }
  for (llvm::LoadInst* load : loads) {
    llvm::IRBuilder<> builder(load);
    llvm::LoadInst* loaded = builder.CreateAlignedLoad(halves, load->getPointerOperand(), load->getAlign());
    loaded->setDebugLoc(load->getDebugLoc());
    for (llvm::User* user : llvm::make_early_inc_range(load->users())) {
      user->replaceAllUsesWith(loaded);
      llvm::cast<llvm::Instruction>(user)->eraseFromParent();
    }
    load->eraseFromParent();
  }
}

// A predicated multiply-add is two instructions until the assembler makes one of them; only one bears the comment.
void forget_source_of_selects(llvm::Module& module) {
  for (Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::SelectInst, llvm::CmpInst>(instruction)) instruction.setDebugLoc(llvm::DebugLoc());
    }
  }
}

// The oldest PTX version that knows the architecture and what the templates use, so that old drivers can read it.
const char* ptx_feature(const ArchSpec& arch, bool for_it_alone) {
  if (for_it_alone) return "+ptx82";        // sparse products of warpgroups
  if (arch.compute >= 90) return "+ptx80";  // bulk copies
  if (arch.compute >= 89) return "+ptx78";
  if (arch.compute >= 86) return "+ptx71";
  if (arch.compute >= 80) return "+ptx70";
  return "+ptx64";
}

std::unique_ptr<llvm::TargetMachine> make_target(const ArchSpec& arch, const std::string& name) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  constexpr const char* kTriple = "nvptx64-nvidia-cuda";
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  BURIN_CHECK(target != nullptr, "LLVM has no NVPTX back end: {}", error);
  llvm::TargetOptions options;
  options.MCOptions.AsmVerbose = true;  // with comments
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, name, ptx_feature(arch, name != arch.name), options, llvm::Reloc::Static,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
}

// Writes the source map as comments: each multiply-add and each load names its channel and tap.
class TapComments : public llvm::DebugHandlerBase {
 public:
  TapComments(llvm::AsmPrinter& printer, const llvm::Module& module)
      : llvm::DebugHandlerBase(&printer), printer_(printer), map_(module) {
    Asm = nullptr;  // the base class would look for debug information to write
  }

  void beginInstruction(const llvm::MachineInstr* instruction) override {
    const std::optional<TapSource> tap = map_.find(instruction->getDebugLoc());
    if (!tap) return;
    printer_.OutStreamer->AddComment(tap->k == kNoOutput ? fmt::format(kLoadNote, tap->c, tap->r, tap->s)
                                                         : fmt::format(kTapNote, tap->k, tap->c, tap->r, tap->s));
  }
  void endInstruction() override {}
  void beginModule(llvm::Module*) override {}
  void endModule() override {}

 protected:
  void beginFunctionImpl(const llvm::MachineFunction*) override {}
  void endFunctionImpl(const llvm::MachineFunction*) override {}

 private:
  llvm::AsmPrinter& printer_;
  SourceMap map_;
};

// What TargetMachine::addPassesToEmitFile does, with the comments' handler added to the printer.
std::string print_ptx(llvm::Module& module, llvm::LLVMTargetMachine& target) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  {
    llvm::legacy::PassManager passes;  // writes the last of the text when it is destroyed
    auto* machine = new llvm::MachineModuleInfoWrapperPass(&target);
    llvm::TargetPassConfig* config = target.createPassConfig(passes);
    config->setDisableVerify(true);
    // Multiply-adds must stay between their loads: sunk into the next block, they leave every load of a stage in a
    // register at once.
    config->disablePass(&llvm::MachineSinkingID);
    passes.add(config);
    passes.add(machine);
    BURIN_CHECK(!config->addISelPasses(), "LLVM's NVPTX back end cannot select instructions");
    config->addMachinePasses();
    config->setInitialized();
    llvm::Expected<std::unique_ptr<llvm::MCStreamer>> streamer =
        target.createMCStreamer(stream, nullptr, llvm::CodeGenFileType::AssemblyFile, machine->getMMI().getContext());
    BURIN_CHECK(static_cast<bool>(streamer), "{}", llvm::toString(streamer.takeError()));
    llvm::AsmPrinter* printer = target.getTarget().createAsmPrinter(target, std::move(*streamer));
    BURIN_CHECK(printer != nullptr, "LLVM's NVPTX back end cannot write PTX");
    printer->addDebugHandler(std::make_unique<TapComments>(*printer, module));
    passes.add(printer);
    passes.add(llvm::createFreeMachineFunctionPass());
    passes.run(module);
  }
  return {text.begin(), text.end()};
}

// The comments around calls in LLVM's PTX ("{ // callseq 226, 0" ... "} // callseq 226") carry a number that LLVM
// counts up across all modules and threads of the process. Counted anew within each text, 0, 1, 2..., they are the same
// in every run.
std::string renumber_calls(std::string_view ptx) {
  constexpr std::string_view kMark = "// callseq ";
  std::map<std::string_view, std::size_t> numbers;  // LLVM's number to ours
  std::string text;
  text.reserve(ptx.size());
  while (true) {
    const std::size_t mark = ptx.find(kMark);
    if (mark == std::string_view::npos) break;
    const std::size_t start = mark + kMark.size();
    const std::size_t end = std::min(ptx.find_first_not_of("0123456789", start), ptx.size());
    const auto number = numbers.emplace(ptx.substr(start, end - start), numbers.size()).first;
    text += ptx.substr(0, start);
    text += std::to_string(number->second);
    ptx.remove_prefix(end);
  }
  return text += ptx;
}

// `ptx` with `.explicitcluster` and `.reqnctapercluster` in the header of each entry whose function in `module` has
// cluster_of() more than one block: LLVM 19 does not write them. They need PTX 7.8 and sm_90.
std::string add_cluster_directives(std::string ptx, const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const ClusterExtent cluster = cluster_of(function);
    if (cluster.blocks() == 1) continue;
    const std::size_t entry = ptx.find(fmt::format(".entry {}(", function.getName().str()));
    const std::size_t body = entry == std::string::npos ? entry : ptx.find("\n{", entry);
    BURIN_CHECK(body != std::string::npos, "the PTX has no entry '{}'", function.getName().str());
    ptx.insert(body, fmt::format("\n.explicitcluster\n.reqnctapercluster {}, {}, 1", cluster.x, cluster.y));
  }
  return ptx;
}

}  // namespace

std::string code_arch(const SpecialisedModule& specialised, const std::string& arch) {
  return uses_group_products(*specialised.module) ? arch + "a" : arch;
}

std::string emit_ptx(const SpecialisedModule& specialised, const std::string& arch_name) {
  const ArchSpec& arch = arch_of_code(arch_name);
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(*specialised.module);
  std::unique_ptr<llvm::TargetMachine> target = make_target(arch, code_arch(specialised, std::string(arch.name)));
  module->setDataLayout(target->createDataLayout());
  module->setTargetTriple(target->getTargetTriple().str());
  notes_to_comments(*module);
  const OutsideCode outside = inline_functions(*module);
  link_primitives(*module, arch);
  inline_primitives(*module);
  write_group_products(*module);
  load_halves_as_halves(*module);
  forget_source_of_selects(*module);
  compare_conditions_not_choices(*module);

  std::string faults;
  llvm::raw_string_ostream fault_stream(faults);
  BURIN_CHECK(!llvm::verifyModule(*module, &fault_stream), "after resolving the primitives: {}", faults);

  const std::string ptx = print_ptx(*module, static_cast<llvm::LLVMTargetMachine&>(*target));
  return add_outside(add_cluster_directives(renumber_calls(ptx), *module), outside);
}

}  // namespace burin
