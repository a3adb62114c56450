// PTX texts for the tests, and what is found here to assemble them.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "compiler/assemble/locate.h"
#include "compiler/assemble/nvjitlink.h"
#include "compiler/assemble/ptxas.h"

namespace burin_test {

inline const std::string kPtxHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

// out[i] = i for one thread.
inline std::string tiny_ptx() {
  return kPtxHeader + R"(
.visible .entry tiny(.param .u64 out)
.maxntid 32, 1, 1
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";
}

// `live` values are loaded before the first is stored, and all are stored again at the end, so all are live at once.
inline std::string body_with_live_values(int live) {
  std::string body = fmt::format("  .reg .f32 %f<{}>;\n  .reg .b64 %rd<3>;\n  ld.param.u64 %rd1, [out];\n", live + 1);
  body += "  cvta.to.global.u64 %rd2, %rd1;\n";
  for (int i = 0; i < live; ++i) body += fmt::format("  ld.volatile.global.f32 %f{}, [%rd2+{}];\n", i, 4 * i);
  for (int i = live; i-- > 0;) body += fmt::format("  st.volatile.global.f32 [%rd2+{}], %f{};\n", 4 * i, i);
  return body;
}

// More live values than the register cap allows.
inline std::string spilling_ptx() {
  return kPtxHeader + "\n.visible .entry spilling(.param .u64 out)\n.maxnreg 32\n{\n" + body_with_live_values(100) +
         "  ret;\n}\n";
}

// What the compiler generates: an entry that chooses among functions that do not return.
inline std::string switch_ptx(int functions, int live, const std::string& directives) {
  std::string ptx = kPtxHeader;
  for (int i = 0; i < functions; ++i) {
    ptx += fmt::format("\n.func slice{}(.param .b64 out)\n.noreturn\n{{\n{}  exit;\n}}\n", i,
                       body_with_live_values(live + i));
  }
  ptx += fmt::format("\n.visible .entry chooser(.param .u64 out)\n{}\n{{\n", directives);
  ptx +=
      "  .reg .pred %p<2>;\n  .reg .b32 %r<2>;\n  .reg .b64 %rd<2>;\n  ld.param.u64 %rd1, [out];\n  mov.u32 %r1, "
      "%ctaid.x;\n";
  for (int i = 0; i < functions; ++i) {
    ptx += fmt::format("  setp.ne.s32 %p1, %r1, {0};\n  @%p1 bra skip{0};\n", i);
    ptx += fmt::format(
        "  {{\n  .param .b64 param0;\n  st.param.b64 [param0], %rd1;\n  call.uni slice{}, (param0);\n  }}\n", i);
    ptx += fmt::format("skip{}:\n", i);
  }
  return ptx + "  ret;\n}\n";
}

inline std::unique_ptr<burin::NvJitLink> open_nvjitlink() {
  std::string why;
  return burin::NvJitLink::open(
      burin::library_candidates("BURIN_NVJITLINK", {"libnvJitLink.so.13", "libnvJitLink.so.12"}), why);
}

inline std::unique_ptr<burin::Ptxas> open_ptxas() {
  std::string why;
  return burin::Ptxas::open(burin::program_candidates("BURIN_PTXAS", "ptxas"), why);
}

}  // namespace burin_test
