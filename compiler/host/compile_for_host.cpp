#include "compiler/host/compile_for_host.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectTransformLayer.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "compiler/host/host_form.h"
#include "compiler/host/primitives.h"
#include "ir/error.h"

namespace burin {
namespace {

namespace orc = llvm::orc;

// The primitives, the text of a fault and a signal's frame need so much.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kPrimitivesStackBytes = 256 << 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr std::size_t kPrimitivesStackBytes = 256 << 10;
#else
constexpr std::size_t kPrimitivesStackBytes = 32 << 10;
#endif
#else
constexpr std::size_t kPrimitivesStackBytes = 32 << 10;
#endif
constexpr std::size_t kMaxStackBytes = 8 << 20;  // of one thread

void require(llvm::Error error, std::string_view doing) {
  if (!error) return;
  fail_internal(__FILE__, __LINE__, fmt::format("host executor: {}: {}", doing, llvm::toString(std::move(error))));
}

template <typename T>
T require(llvm::Expected<T> result, std::string_view doing) {
  if (!result) require(result.takeError(), doing);
  return std::move(*result);
}

void initialise_target() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

// LLVM's errors about one module, as text instead of on stderr.
class Diagnostics {
 public:
  explicit Diagnostics(llvm::LLVMContext& context) {
    context.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo* info, void* self) {
          if (info->getSeverity() != llvm::DS_Error) return;
          llvm::raw_string_ostream stream(static_cast<Diagnostics*>(self)->text_);
          llvm::DiagnosticPrinterRawOStream printer(stream);
          info->print(printer);
        },
        this);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::unique_ptr<llvm::Module> parse(std::string_view bitcode, llvm::LLVMContext& context) {
  auto module = llvm::parseBitcodeFile({{bitcode.data(), bitcode.size()}, "bitcode"}, context);
  if (!module) fail(ErrorKind::bad_input, "bitcode: it cannot be read: {}", llvm::toString(module.takeError()));
  return std::move(*module);
}

// Boxes are given by value, so that the GPU finds them among the parameters.
bool is_box(const llvm::Argument& parameter) {
  const llvm::Module& module = *parameter.getParent()->getParent();
  return parameter.hasByValAttr() && parameter.getParamAlign().valueOrOne().value() == kBoxAlignment &&
         module.getDataLayout().getTypeAllocSize(parameter.getParamByValType()) == kBoxBytes;
}

llvm::Function& find_kernel(llvm::Module& module, const std::string& symbol, const KernelForm& form) {
  llvm::Function* kernel = module.getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration()) {
    fail(ErrorKind::bad_input, "bitcode: there is no kernel '{}' in the module", symbol);
  }
  const std::size_t tensors = form.tensors.size(), addresses = tensors + form.boxes.size();
  std::vector<llvm::Type*> parameters(addresses, llvm::PointerType::get(module.getContext(), 0));
  parameters.push_back(llvm::Type::getInt32Ty(module.getContext()));
  bool has_them = kernel->getFunctionType() ==
                  llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), parameters, false);
  for (std::size_t i = 0; has_them && i < addresses; ++i) {
    const llvm::Argument& parameter = *kernel->getArg(static_cast<unsigned>(i));
    has_them = i < tensors ? !parameter.hasByValAttr() : is_box(parameter);
  }
  if (!has_them) {
    std::string names;
    for (const KernelTensor& tensor : form.tensors) names += std::string(to_string(tensor.role)) + ", ";
    for (std::size_t i = 0; i < form.boxes.size(); ++i) names += "box, ";
    fail(ErrorKind::bad_input, "bitcode: kernel '{}' does not have the parameters ({}batch)", symbol, names);
  }
  return *kernel;
}

// A function of a user's is called as what it is, so that a module cannot say otherwise.
void check_calls(const llvm::Module& module, const HostFunctions& functions) {
  for (const llvm::Function& function : module) {
    if (!function.getName().starts_with(llvm::StringRef(kUserSymbolPrefix))) continue;
    const llvm::FunctionType& type = *function.getFunctionType();
    const auto is_float = [](const llvm::Type* parameter) { return parameter->isFloatTy(); };
    const bool calls_it = function.isDeclaration() && functions.contains(std::string_view(function.getName()));
    if (!calls_it || !type.getReturnType()->isFloatTy() || !llvm::all_of(type.params(), is_float)) {
      fail(ErrorKind::bad_input, "bitcode: '{}' is no function of --operator, or is called as something else",
           function.getName().str());
    }
  }
}

// How many functions of the module wait for each other at most, this one included. `known`: of those that were looked
// at, with 0 for those that are still being.
int longest_chain_of_calls(const llvm::Function& function, llvm::DenseMap<const llvm::Function*, int>& known) {
  const auto [found, is_new] = known.try_emplace(&function, 0);
  if (!is_new && found->second > 0) return found->second;
  if (!is_new) fail(ErrorKind::bad_input, "bitcode: function '{}' is recursive", function.getName().str());
  int longest = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
    if (callee == nullptr || callee->isDeclaration()) continue;
    longest = std::max(longest, longest_chain_of_calls(*callee, known));
  }
  return known[&function] = longest + 1;
}

// The largest frame of a function, from the section that the code generator leaves for this.
llvm::Expected<std::size_t> largest_frame(const llvm::MemoryBuffer& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(object.getMemBufferRef());
  if (!file) return file.takeError();
  std::uint64_t largest = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    auto name = section.getName();
    if (!name) return name.takeError();
    if (*name != ".stack_sizes") continue;
    auto contents = section.getContents();
    if (!contents) return contents.takeError();
    const llvm::DataExtractor data(*contents, true, sizeof(void*));
    llvm::DataExtractor::Cursor cursor(0);
    while (cursor && cursor.tell() < contents->size()) {
      data.getAddress(cursor);
      largest = std::max(largest, data.getULEB128(cursor));
    }
    if (!cursor) return cursor.takeError();
  }
  return static_cast<std::size_t>(largest);
}

orc::SymbolMap host_symbols(orc::LLJIT& jit, const HostFunctions& functions) {
  orc::SymbolMap symbols;
  for (const auto functions : {device_primitives(), support_functions()}) {
    for (const HostFunction& function : functions) {
      symbols[jit.mangleAndIntern(function.name)] = {orc::ExecutorAddr::fromPtr(function.address),
                                                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
  }
  for (const auto& [name, address] : functions) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  }
  return symbols;
}

}  // namespace

struct HostCode::Jit {
  std::size_t frame_bytes = 0;  // the largest of a function
  std::string errors;
  std::unique_ptr<orc::LLJIT> lljit;  // writes the above while it lives
};

HostCode::~HostCode() = default;

HostCode::HostCode(std::string_view bitcode, const std::string& symbol, const KernelForm& form,
                   const HostFunctions& functions)
    : jit_(std::make_unique<Jit>()) {
  initialise_target();
  orc::JITTargetMachineBuilder target = require(orc::JITTargetMachineBuilder::detectHost(), "finding this CPU");
  // Linear time matters more than the speed of the code: it is generated for one verification.
  target.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  target.getOptions().EmitStackSizeSection = true;
  target.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const llvm::DataLayout layout = require(target.getDefaultDataLayoutForTarget(), "finding this CPU's data layout");

  auto context = std::make_unique<llvm::LLVMContext>();
  context->setDiscardValueNames(true);
  Diagnostics diagnostics(*context);
  std::unique_ptr<llvm::Module> module = parse(bitcode, *context);
  llvm::StripDebugInfo(*module);
  module->setDataLayout(layout);
  llvm::Function& kernel = find_kernel(*module, symbol, form);
  llvm::DenseMap<const llvm::Function*, int> chains;
  const int call_depth = longest_chain_of_calls(kernel, chains);
  cluster_ = cluster_of(kernel);
  const llvm::Function* await = module->getFunction(llvm::StringRef(kAwaitLaunch));
  awaits_ = await != nullptr && !await->use_empty();
  check_calls(*module, functions);
  to_host_form(*module, kernel);
  module->setTargetTriple(target.getTargetTriple().str());

  jit_->lljit = require(orc::LLJITBuilder()
                            .setJITTargetMachineBuilder(std::move(target))
                            .setPlatformSetUp(orc::setUpInactivePlatform)
                            .setLinkProcessSymbolsByDefault(false)
                            .create(),
                        "starting LLVM's JIT");
  orc::LLJIT& jit = *jit_->lljit;
  jit.getObjTransformLayer().setTransform([&frame_bytes = jit_->frame_bytes](std::unique_ptr<llvm::MemoryBuffer> object)
                                              -> llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> {
    auto frame = largest_frame(*object);
    if (!frame) return frame.takeError();
    frame_bytes = std::max(frame_bytes, *frame);
    return object;
  });
  jit.getExecutionSession().setErrorReporter(
      [&errors = jit_->errors](llvm::Error error) { errors += llvm::toString(std::move(error)); });
  require(jit.getMainJITDylib().define(orc::absoluteSymbols(host_symbols(jit, functions))),
          "naming the device primitives");
  require(jit.addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))), "adding the module");
  auto address = jit.lookup(kHostEntryName);
  const std::string failure = address ? std::string() : llvm::toString(address.takeError());
  const std::string told = jit_->errors + diagnostics.text();
  if (!failure.empty() || !told.empty()) {
    fail(ErrorKind::bad_input, "bitcode: the host cannot compile it: {}", told.empty() ? failure : told);
  }
  kernel_ = address->toPtr<HostEntry*>();

  stack_bytes_ = static_cast<std::size_t>(call_depth + 1) * (jit_->frame_bytes + sizeof(void*)) + kPrimitivesStackBytes;
  if (stack_bytes_ > kMaxStackBytes) {
    fail(ErrorKind::unsupported, "kernel '{}' needs {} bytes of stack per thread on the host; at most {} are supported",
         symbol, stack_bytes_, kMaxStackBytes);
  }
}

}  // namespace burin
