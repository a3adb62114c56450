#include "compiler/host/compile_for_host.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectTransformLayer.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
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

#include "compiler/host/acceptable_module.h"
#include "compiler/host/attribute_scan.h"
#include "compiler/host/guarded.h"
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

std::unique_ptr<llvm::Module> parse(std::string_view bitcode, std::unique_ptr<llvm::LLVMContext>& context,
                                    const Diagnostics& diagnostics) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(bitcode.data(), bitcode.size()), "bitcode");
  std::unique_ptr<llvm::Module> module;
  const bool survived = run_guarded([&] {
    if (llvm::Error error = scan_attributes(buffer.getBuffer())) {
      fail(ErrorKind::bad_input, "bitcode: it cannot be read: {}", llvm::toString(std::move(error)));
    }
    auto parsed = llvm::parseBitcodeFile(buffer, *context);
    if (!parsed) fail(ErrorKind::bad_input, "bitcode: it cannot be read: {}", llvm::toString(parsed.takeError()));
    module = std::move(*parsed);
  });
  if (!survived) {
    static_cast<void>(context.release());
    fail(ErrorKind::bad_input, "bitcode: it cannot be read: LLVM's reader failed on it");
  }
  if (!diagnostics.text().empty()) fail(ErrorKind::bad_input, "bitcode: it cannot be read: {}", diagnostics.text());
  return module;
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

orc::SymbolMap host_symbols(orc::LLJIT& jit) {
  orc::SymbolMap symbols;
  for (const auto functions : {device_primitives(), support_functions()}) {
    for (const HostFunction& function : functions) {
      symbols[jit.mangleAndIntern(function.name)] = {orc::ExecutorAddr::fromPtr(function.address),
                                                     llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
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

HostCode::HostCode(std::string_view bitcode, const std::string& symbol, const std::vector<KernelTensor>& tensors)
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
  std::unique_ptr<llvm::Module> module = parse(bitcode, context, diagnostics);
  const AcceptedKernel accepted = require_acceptable(*module, symbol, layout, tensors);
  cluster_ = accepted.cluster;
  const llvm::Function* await = module->getFunction(llvm::StringRef(kAwaitLaunch));
  awaits_ = await != nullptr && !await->use_empty();
  to_host_form(*module, *accepted.function);
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
      [&errors = jit_->errors](llvm::Error error) { errors += llvm::toString(std::move(error)) + "; "; });
  require(jit.getMainJITDylib().define(orc::absoluteSymbols(host_symbols(jit))), "naming the device primitives");
  require(jit.addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))), "adding the module");
  std::string failure = "LLVM's code generator failed";
  const bool survived = run_guarded([&] {
    auto address = jit.lookup(kHostEntryName);
    failure = address ? std::string() : llvm::toString(address.takeError());
    if (address) kernel_ = address->toPtr<HostEntry*>();
  });
  const std::string text = fmt::format("{}; {}{}", failure, jit_->errors, diagnostics.text());
  if (!survived) static_cast<void>(jit_.release());
  if (!failure.empty() || !diagnostics.text().empty()) {
    fail_internal(__FILE__, __LINE__, "host executor: generating code: " + text);
  }

  stack_bytes_ =
      static_cast<std::size_t>(accepted.call_depth + 1) * (jit_->frame_bytes + sizeof(void*)) + kPrimitivesStackBytes;
  if (stack_bytes_ > kMaxStackBytes) {
    fail(ErrorKind::unsupported, "kernel '{}' needs {} bytes of stack per thread on the host; at most {} are supported",
         symbol, stack_bytes_, kMaxStackBytes);
  }
}

}  // namespace burin
