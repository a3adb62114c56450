#include "compiler/specialise/specialised_module.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace burin {

void check_module(const llvm::Module& module, ErrorKind kind, const std::string& what) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream)) fail(kind, "{} is not valid LLVM IR: {}", what, stream.str());
}

std::string print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

SpecialisedModule parse_specialised(std::string_view text, const std::string& symbol, const std::string& file) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.symbol = symbol;
  llvm::SMDiagnostic fault;
  result.module = llvm::parseAssemblyString({text.data(), text.size()}, fault, *result.context);
  if (result.module == nullptr) {
    fail(ErrorKind::bad_input, "{}, line {}: {}", file, fault.getLineNo(), fault.getMessage().str());
  }
  check_module(*result.module, ErrorKind::bad_input, file);
  const llvm::Function* kernel = result.module->getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration()) {
    fail(ErrorKind::bad_input, "{}: there is no function '{}' in it; the entry's name says which plan it was made for",
         file, symbol);
  }
  return result;
}

std::string to_bitcode(const SpecialisedModule& specialised) {
  std::unique_ptr<llvm::Module> stripped = llvm::CloneModule(*specialised.module);
  for (llvm::Function& function : *stripped) {
    for (llvm::Argument& argument : function.args()) argument.setName("");
    for (llvm::BasicBlock& block : function) {
      block.setName("");
      for (llvm::Instruction& instruction : block) instruction.setName("");
    }
  }
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::WriteBitcodeToFile(*stripped, stream);
  return bytes;
}

}  // namespace burin
