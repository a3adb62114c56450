// Users' functions in PTX, without the compiler that makes them.
#include "compiler/emit/inline_functions.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

constexpr const char* kSymbol = "burin_user_Op_0123";

std::string ptx_with(const std::string& before, const std::string& body) {
  return "// made by hand\n.version 8.10\n.target sm_75\n.address_size 64\n\n\t// .globl\tburin_user_Op_0123\n" +
         before +
         "\n.visible .func  (.param .b32 func_retval0) burin_user_Op_0123(\n\t.param .b32 burin_user_Op_0123_param_0,\n"
         "\t.param .b32 burin_user_Op_0123_param_1\n)\n{\n" +
         body + "\n}\n";
}

constexpr const char* kBody =
    "\t.local .align 4 .b8 \t__local_depot0[28];\n\t.reg .b64 \t%SPL;\n\t.reg .pred \t%p<2>;\n\t.reg .f32 \t%f<5>;\n"
    "\tld.param.f32 \t%f1, [burin_user_Op_0123_param_0];\n\tld.param.f32 \t%f2, [burin_user_Op_0123_param_1];\n"
    "\tmov.u64 \t%SPL, __local_depot0;\n\tmov.u32 \t%f4, %tid.x;\n\tsetp.lt.f32 \t%p1, %f1, %f2; // %f3\n"
    "\t@%p1 bra \t$L__BB0_2;\n\tld.global.f32 \t%f3, [table+4];\n\tst.param.f32 \t[func_retval0+0], %f3;\n\tret;\n"
    "$L__BB0_2:\n\tst.param.f32 \t[func_retval0+0], 0f00000000;\n\tret;\n";
constexpr const char* kTable = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n";

}  // namespace

TEST_CASE("inline_functions: registers, parameters, labels and tables") {
  const std::string unused = ".global .align 4 .f32 beta = 0f3FC00000;\n.extern .func vprintf();\n";
  const InlineCode code = inline_code(ptx_with(unused + kTable, kBody), kSymbol);
  CHECK(code.version == "8.10");
  CHECK(code.outside == ".global .align 4 .b8 table_burin_user_Op_0123[8] = {1, 2, 3, 4, 5, 6, 7, 8};");
  CHECK_THAT(code.body, Contains("mov.f32 \t%own_f1, $1;") && Contains("mov.f32 \t%own_f2, $2;"));
  CHECK_THAT(code.body, Contains("mov.f32 $0, %own_f3;") && Contains("mov.f32 $0, 0f00000000;"));
  CHECK_THAT(code.body, Contains(".reg .f32 \t%own_f<5>;") && Contains("%own_SPL, __local_depot0;"));
  CHECK_THAT(code.body, Contains("%own_f4, %tid.x;") && Contains("[table_burin_user_Op_0123+4]"));
  CHECK_THAT(code.body,
             Contains("bra \t$$L__BB0_2;") && Contains("\n$$L__BB0_2:") && Contains("bra $$L__end_of_operator;"));
  CHECK(code.body.starts_with("{"));
  CHECK(code.body.ends_with("$$L__end_of_operator:\n}"));
  for (const char* gone : {"param", "ret;", "//", " %f1"}) {
    CAPTURE(gone);
    CHECK(code.body.find(gone) == std::string::npos);
  }
}

TEST_CASE("inline_functions: a loop may ask not to be unrolled") {
  const InlineCode code = inline_code(ptx_with(kTable, "\t.pragma \"nounroll\";\n" + std::string(kBody)), kSymbol);
  CHECK_THAT(code.body, Contains(".pragma \"nounroll\";"));
}

TEST_CASE("inline_functions: braces in comments are none") {
  const InlineCode code = inline_code(ptx_with(kTable, "/* } */ // }\n" + std::string(kBody)), kSymbol);
  CHECK(code.body.find('*') == std::string::npos);
  CHECK_THAT(code.body, Contains("mov.f32 $0, %own_f3;"));
}

TEST_CASE("inline_functions: a helper stays a function, under a name of its own") {
  const std::string helper =
      ".func  (.param .b32 func_retval0) helper(\n\t.param .b32 helper_param_0\n)\n{\n\t.reg .f32 \t%f<2>;\n"
      "\tld.param.f32 \t%f1, [helper_param_0];\n\tst.param.f32 \t[func_retval0+0], %f1;\n\tret;\n}\n";
  const std::string body =
      "\t.reg .f32 \t%f<3>;\n\tld.param.f32 \t%f1, [burin_user_Op_0123_param_0];\n\t{ // callseq 0, 0\n"
      "\t.param .b32 param0;\n\tst.param.f32 \t[param0+0], %f1;\n\t.param .b32 retval0;\n"
      "\tcall.uni (retval0), helper, (param0);\n\tld.param.f32 \t%f2, [retval0+0];\n\t} // callseq 0\n"
      "\tst.param.f32 \t[func_retval0+0], %f2;\n\tret;\n";
  const InlineCode code = inline_code(ptx_with(helper, body), kSymbol);
  CHECK_THAT(code.outside, Contains("helper_burin_user_Op_0123(") && Contains("[func_retval0+0], %f1"));
  CHECK_THAT(code.body, Contains("call.uni (retval0), helper_burin_user_Op_0123, (param0);"));
  CHECK_THAT(code.body, Contains("st.param.f32 \t[param0+0], %own_f1;") && Contains("mov.f32 $0, %own_f2;"));
}

TEST_CASE("inline_functions: what cannot be put into a kernel is said") {
  const auto error_of_ptx = [](const std::string& ptx) { return error_of([&] { inline_code(ptx, kSymbol); }); };
  CHECK_THAT(error_of_ptx("nothing"), Contains("it has no header"));
  CHECK_THAT(error_of_ptx(".version 8.0\n.address_size 64\n"), Contains("the function is not in it"));
  CHECK_THAT(error_of_ptx("burin_user_Op_0123() { }\n.version 8.0\n.address_size 64\n"),
             Contains("the function is not in it"));
  const std::string body(kBody);
  for (const std::string& odd : {std::string("\1x"), std::string(1, '\0'), std::string("\xC3\xA4")}) {
    CHECK_THAT(error_of_ptx(ptx_with("", body + odd)), Contains("it is no plain text"));
  }
  for (const char* odd : {"\t.pragma \"{\";\n", "\t.reg .b32 \t%a, %b;\n"}) {
    CHECK_THAT(error_of_ptx(ptx_with("", odd + body)), Contains("it has what NVRTC does not write"));
  }
  CHECK_THAT(error_of_ptx(ptx_with("", "\tld.param.f32 \t%" + std::string(1 << 17, 'f') + ", [x];\n")),
             Contains("a line of it is too long"));
  CHECK_THAT(error_of_ptx(std::string(kMaxFunctionPtxBytes + 1, ' ')), Contains("it has 262145 bytes, at most 262144"));
  CHECK_THAT(error_of_ptx(".version 9999999999.0\n" + ptx_with("", kBody)), Contains("it does not say its version"));
  CHECK_THAT(error_of_ptx(ptx_with(".extern .global .b32 table[];\n", kBody)),
             Contains("it calls a function that is not in the operator's file"));
  CHECK_THAT(
      error_of_ptx(ptx_with("", "\t.reg .b64 \t%rd<2>;\n\tmov.b64 \t%rd1, burin_user_Op_0123_param_0;\n\tret;\n")),
      Contains("its parameters are used in an unknown way"));
}

TEST_CASE("inline_functions: a module's version is the newest, and what stands outside follows its header") {
  const std::string ptx = "//\n.version 8.0\n.target sm_90\n.address_size 64\n\n.entry k() {}\n";
  CHECK(add_outside(ptx, {}) == ptx);
  CHECK_THAT(add_outside(ptx, {{".global .b32 a;"}, "9.0"}),
             Contains(".version 9.0\n") && Contains(".address_size 64\n.global .b32 a;\n"));
  CHECK_THAT(add_outside(ptx, {{}, "7.8"}), Contains(".version 8.0\n"));
}
