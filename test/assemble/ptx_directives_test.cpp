#include "compiler/assemble/ptx_directives.h"
#include "test/catch.h"

#include <string>

using burin::register_cap;

namespace {
std::string entry(const std::string& directives) {
  return ".visible .entry k(\n\t.param .u64 a\n)\n" + directives + "\n{\n\tret;\n}\n";
}
}  // namespace

TEST_CASE("register_cap: no promise, no cap") {
  CHECK(register_cap("") == 0);
  CHECK(register_cap(entry("")) == 0);
  CHECK(register_cap(".func f()\n.maxntid 32\n{\n}\n") == 0);
}

TEST_CASE("register_cap: threads of a block share the registers of a multiprocessor") {
  CHECK(register_cap(entry(".maxntid 1024, 1, 1")) == 64);
  CHECK(register_cap(entry(".maxntid 896")) == 72);
  CHECK(register_cap(entry(".maxntid 28, 32, 1")) == 72);
  CHECK(register_cap(entry(".maxntid 800, 1, 1")) == 72);  // 25 warps: one of four schedulers has 7 of them
  CHECK(register_cap(entry(".maxntid 768, 1, 1")) == 80);
  CHECK(register_cap(entry(".maxntid 7, 1, 1")) == 255);  // one warp
  CHECK(register_cap(entry(".reqntid 512, 1, 1")) == 128);
  CHECK(register_cap(entry(".maxntid 256, 1, 1\n.minnctapersm 4")) == 64);
}

TEST_CASE("register_cap: .maxnreg says it outright") {
  CHECK(register_cap(entry(".maxntid 32, 1, 1\n.maxnreg 40")) == 40);
  CHECK(register_cap(entry(".maxnreg 4000")) == 255);
}

TEST_CASE("register_cap: the tightest of several entries") {
  CHECK(register_cap(entry(".maxnreg 128") + entry("") + entry(".maxnreg 64") + entry(".maxnreg 96")) == 64);
}

TEST_CASE("register_cap: comments and bodies are not directives") {
  CHECK(register_cap(entry("// .maxnreg 16")) == 0);
  CHECK(register_cap(entry("/* .maxnreg 16 */ .maxnreg /* here */ 48")) == 48);
  CHECK(register_cap(entry(".maxnreg 48 // .maxnreg 16")) == 48);
  CHECK(register_cap("// .entry k() .maxnreg 8\n" + entry(".maxnreg 48")) == 48);
  CHECK(register_cap(".entry k()\n{\n.maxnreg 16\n}\n") == 0);
}

TEST_CASE("register_cap: a comment over many lines, and as many entries as there is text") {
  CHECK(register_cap("/*\n.entry k()\n.maxnreg 8\n*/\n" + entry(".maxnreg 48")) == 48);
  // Time that grows with the square would be minutes.
  std::string repeated;
  for (int i = 0; i < 500'000; ++i) repeated += ".entry ";
  CHECK(register_cap(repeated + entry(".maxnreg 48")) == 48);
  CHECK(register_cap("/*" + repeated + "*/" + entry(".maxnreg 48")) == 48);
}

TEST_CASE("register_cap: malformed directives are left to the assembler") {
  CHECK(register_cap(entry(".maxnreg")) == 0);
  CHECK(register_cap(entry(".maxnreg x")) == 0);
  CHECK(register_cap(entry(".maxnregister 5")) == 0);
  CHECK(register_cap(entry(".maxntid 32,")) == 0);
  CHECK(register_cap(entry(".maxntid 0")) == 0);
  CHECK(register_cap(entry(".maxntid 99999999999999999999")) == 64);
  CHECK(register_cap(".entry") == 0);
}
