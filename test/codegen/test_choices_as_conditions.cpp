// Conditions behind numbers that are joined and compared with zero.
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/emit/choices_as_conditions.h"
#include "test/catch.h"

using burin_test::Contains;

namespace {

// A function of two conditions and a number, as the rewriting leaves it.
std::string rewritten(const std::string& body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic fault;
  const auto module =
      llvm::parseAssemblyString("define i1 @f(i1 %p, i1 %q, i32 %x) {\n" + body + "\n}\n", fault, context);
  REQUIRE(module != nullptr);
  burin::compare_conditions_not_choices(*module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return stream.str();
}

}  // namespace

TEST_CASE("choices as conditions: what is joined and compared with zero are conditions") {
  const std::string choices = "%a = select i1 %p, i32 2, i32 0\n%b = zext i1 %q to i32\n%s = or disjoint i32 %a, %b\n";
  const std::string equal = rewritten(choices + "%z = icmp eq i32 %s, 0\nret i1 %z");
  CHECK_THAT(equal,
             !Contains("icmp") && Contains("xor i1 %p, true") && Contains("xor i1 %q, true") && Contains("= and i1 %"));
  const std::string unequal = rewritten(choices + "%z = icmp ne i32 %s, 0\nret i1 %z");
  CHECK_THAT(unequal, !Contains("icmp") && Contains("= and i1 %") && Contains("%4 = xor i1 %"));
}

TEST_CASE("choices as conditions: numbers that are zero if a condition holds, and joins of joins") {
  const std::string text = rewritten(
      "%a = select i1 %p, i32 0, i32 4\n%b = sext i1 %q to i32\n%c = or i32 %a, %x\n%s = or i32 %b, %c\n"
      "%z = icmp eq i32 %s, 0\nret i1 %z");
  CHECK_THAT(text, Contains("icmp eq i32 %x, 0") && Contains("xor i1 %q, true") && !Contains("xor i1 %p") &&
                       !Contains("icmp eq i32 %s"));
}

TEST_CASE("choices as conditions: comparisons of anything else stay") {
  for (const char* body : {"%s = or i32 %x, 2\n%z = icmp eq i32 %s, 0\nret i1 %z",
                           "%a = select i1 %p, i32 %x, i32 0\n%s = or i32 %a, %x\n%z = icmp eq i32 %s, 0\nret i1 %z",
                           "%a = select i1 %p, i32 2, i32 0\n%s = or i32 %a, %x\n%z = icmp eq i32 %s, 2\nret i1 %z",
                           "%a = select i1 %p, i32 2, i32 0\n%s = or i32 %a, %x\n%z = icmp ult i32 %s, 2\nret i1 %z",
                           "%a = select i1 %p, i32 2, i32 0\n%s = add i32 %a, %x\n%z = icmp eq i32 %s, 0\nret i1 %z"}) {
    INFO(body);
    CHECK_THAT(rewritten(body), Contains("%z = icmp") && !Contains("xor") && !Contains(" and "));
  }
}
