#include "test/runtime/double_kernel.h"

#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "test/package/sample_plans.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr int kSlices = 2;
constexpr int kSharedBytes = 64 * 1024;  // more than a kernel gets without asking for it

constexpr const char* kPtx = R"(.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 4 .b8 scratch[];
.visible .entry double_b1(.param .u64 input, .param .u64 output, .param .u64 residual, .param .u64 partials,
                          .param .u64 counters, .param .u32 batch)
{
  .reg .pred %p<3>;
  .reg .b32 %r<16>;
  .reg .f32 %f<4>;
  .reg .b64 %a<16>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  ld.param.u64 %a1, [input];
  ld.param.u64 %a2, [output];
  ld.param.u64 %a3, [partials];
  ld.param.u64 %a4, [counters];
  mad.lo.u32 %r4, %r2, 32, %r1;
  mul.wide.u32 %a5, %r4, 4;
  add.u64 %a6, %a1, %a5;
  ld.global.f32 %f1, [%a6];
  mad.lo.u32 %r5, %r2, 2, %r3;
  mad.lo.u32 %r6, %r5, 32, %r1;
  mul.wide.u32 %a7, %r6, 4;
  add.u64 %a8, %a3, %a7;
  st.global.f32 [%a8], %f1;
  membar.gl;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r9, scratch;
  @%p1 bra arrived;
  mul.wide.u32 %a9, %r2, 4;
  add.u64 %a10, %a4, %a9;
  atom.global.inc.u32 %r7, [%a10], 1;
  st.shared.u32 [%r9+65532], %r7;
arrived:
  bar.sync 0;
  ld.shared.u32 %r8, [%r9+65532];
  setp.ne.u32 %p2, %r8, 1;
  @%p2 bra done;
  membar.gl;
  mul.lo.u32 %r10, %r2, 64;
  add.u32 %r11, %r10, %r1;
  mul.wide.u32 %a11, %r11, 4;
  add.u64 %a12, %a3, %a11;
  ld.global.cg.f32 %f1, [%a12];
  ld.global.cg.f32 %f2, [%a12+128];
  add.f32 %f3, %f1, %f2;
  add.u64 %a13, %a2, %a5;
  st.global.f32 [%a13], %f3;
done:
  ret;
}
)";

}  // namespace

std::string double_ptx() { return kPtx; }

void add_double_kernel(Package& package, const std::string& arch, const std::string& ptx) {
  Kernel& kernel = package.manifest.kernels.emplace_back();
  kernel.symbol = "double_b1";
  kernel.op = "double";
  kernel.kind = "convolution";
  ConvShape& shape = kernel.layer.emplace().shape;
  shape.in_h = kDoubleHeight;
  shape.in_w = kDoubleWidth;
  kernel.layer->nonzeros = 1;
  kernel.source_hash = "0123456789abcdef";
  SamplePlan plan{.tile = {1, kDoubleHeight, kDoubleWidth}, .splits = kSlices};
  plan.channel_pitch = (kSharedBytes - kSharedReserveBytes) / 16;  // two stages of two channels, in words
  set_plan(kernel, sample_plan(shape, plan));
  BURIN_CHECK(kernel.form.launch.shared_bytes == kSharedBytes, "the code relies on it");
  kernel.binaries.push_back(
      {.kind = BinaryKind::ptx, .arch = arch, .path = "kernels/double.ptx", .bytes = std::int64_t(ptx.size())});
  package.files["kernels/double.ptx"] = ptx;
}

std::string missing_device() {
  try {
    return device_count() > 0 ? "" : "no CUDA device";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<float> ramp(int batch, float start) {
  std::vector<float> values(static_cast<std::size_t>(batch) * kDoublePixels);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i);
  return values;
}

}  // namespace burin_test
