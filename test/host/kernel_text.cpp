#include "test/host/kernel_text.h"
#include "test/catch.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <limits>
#include <stdexcept>

#include "ir/error.h"

namespace burin_test {
namespace {

constexpr const char* kPrelude = R"(
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare i32 @burin_dev_thread()
declare i32 @burin_dev_block_x()
declare i32 @burin_dev_block_y()
declare float @burin_dev_shared_load(i32, i32)
declare <4 x float> @burin_dev_shared_load4(i32, i32)
declare <4 x float> @burin_dev_shared_load4_if(i32, i32, i32)
declare void @burin_dev_shared_store(i32, i32, float)
declare void @burin_dev_shared_store4(i32, i32, <4 x float>)
declare void @burin_dev_copy_async4(i32, i32, ptr, i64, i32)
declare float @burin_dev_global_load(ptr, i64)
declare float @burin_dev_global_load_if(i32, ptr, i64)
declare void @burin_dev_global_store(ptr, i64, float)
declare <4 x float> @burin_dev_global_load4(ptr, i64)
declare void @burin_dev_global_store4(ptr, i64, <4 x float>)
declare float @burin_dev_scratch_load(ptr, i64)
declare void @burin_dev_scratch_store(ptr, i64, float)
declare void @burin_dev_copy_async(i32, i32, ptr, i64, i32)
declare void @burin_dev_shared_store_word(i32, i32, i32)
declare void @burin_dev_shared_or(i32, i32, i32)
declare i32 @burin_dev_global_load_half(ptr, i64)
declare void @burin_dev_global_store_half(ptr, i64, i32)
declare i32 @burin_dev_map_load(ptr, i64)
declare void @burin_dev_map_store_if(i32, ptr, i64, i32)
declare void @burin_dev_copy_commit()
declare void @burin_dev_copy_wait(i32)
declare float @burin_dev_shared_load_if(i32, i32, i32)
declare void @burin_dev_gate_init(i32)
declare void @burin_dev_gate_expect(i32, i32)
declare void @burin_dev_gate_wait(i32, i32)
declare void @burin_dev_bulk_copy(i32, i32, ptr, i64, i32, i32)
declare void @burin_dev_box_copy(i32, i32, ptr, i32, i32, i32, i32, i32)
declare void @burin_dev_prefetch_box(ptr)
declare float @burin_dev_fma_if(i32, float, float, float)
declare i32 @burin_dev_shared_load_word(i32, i32)
declare i32 @burin_dev_shared_load_word_if(i32, i32, i32)
declare i32 @burin_dev_global_load_word(ptr, i64)
declare void @burin_dev_global_store_word(ptr, i64, i32)
declare float @burin_dev_f16_low(i32)
declare float @burin_dev_f16_high(i32)
declare i32 @burin_dev_f16_pack(float, float)
declare i32 @burin_dev_bf16_pack(float, float)
declare i32 @burin_dev_f16x2_mul(i32, i32)
declare float @burin_dev_shuffle_xor(float, i32)
declare i32 @burin_dev_ballot(i32)
declare void @burin_dev_warp_barrier()
declare <4 x i32> @burin_dev_shared_load_rows(i32, i32)
declare <4 x float> @burin_dev_multiply_f16(<4 x i32>, i32, i32, <4 x float>)
declare <4 x float> @burin_dev_multiply_bf16(<4 x i32>, i32, i32, <4 x float>)
declare <4 x float> @burin_dev_multiply_sparse_f16(<4 x i32>, <4 x i32>, <4 x float>, i32, i32)
declare <4 x float> @burin_dev_multiply_sparse_bf16(<4 x i32>, <4 x i32>, <4 x float>, i32, i32)
declare <4 x float> @burin_dev_multiply_tf32(<4 x i32>, i32, i32, <4 x float>)
declare <4 x float> @burin_dev_multiply_sparse_tf32(<4 x i32>, <4 x i32>, <4 x float>, i32, i32)
declare i32 @burin_dev_tf32(float)
declare float @burin_dev_power(float, float)
declare i32 @burin_dev_f16x2_fma(i32, i32, i32)
declare i32 @burin_dev_f16x2_max(i32, i32)
declare i32 @burin_dev_bf16x2_max(i32, i32)
declare i32 @burin_dev_cluster_rank()
declare void @burin_dev_cluster_barrier()
declare void @burin_dev_cluster_arrive()
declare void @burin_dev_cluster_meet()
declare void @burin_dev_cluster_send(i32, i32, i32, i32, i32, i32)
declare void @burin_dev_group_offer()
declare float @burin_dev_cluster_load(i32, i32, i32)
declare void @burin_dev_barrier()
declare void @burin_dev_await_launch()
declare void @burin_dev_fence()
declare i32 @burin_dev_count_arrival(ptr, i32)
declare i32 @burin_dev_broadcast(i32)
declare void @burin_dev_exit() noreturn
declare float @burin_dev_exp(float)
declare float @burin_dev_reciprocal(float)
declare void @burin_dev_note_slice(i32, i32)
declare void @burin_dev_note_stage(i32)
declare float @llvm.fma.f32(float, float, float)
)";

constexpr const char* kParameters = "ptr %in, ptr %out, ptr %res, ptr %par, ptr %cnt";
constexpr const char* kOpening = R"(
entry:
  %t = call i32 @burin_dev_thread()
  %b = call i32 @burin_dev_block_x()
  %y = call i32 @burin_dev_block_y()
  %t4 = shl i32 %t, 2
  %first = shl i32 %b, 2
  %pixel = add i32 %first, %t
  %pixel4 = shl i32 %pixel, 2
  %off = zext i32 %pixel4 to i64
)";

}  // namespace

std::string assemble_text(const std::string& text_form) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const auto module = llvm::parseAssemblyString(text_form, diagnostic, context);
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!module) {
    diagnostic.print("kernel", stream);
    throw std::logic_error("the test's kernel is not LLVM IR: " + text);
  }
  llvm::WriteBitcodeToFile(*module, stream);
  return text;
}

std::string assemble_module(const std::string& functions) { return assemble_text(kPrelude + functions); }

std::string assemble_kernel(const std::string& body, const std::string& others) {
  return assemble_text(text_of_kernel(body, others));
}

std::string text_of_kernel(const std::string& body, const std::string& others, const std::string& box) {
  return std::string(kPrelude) + "define void @k(" + kParameters + box + ", i32 %batch) {" + kOpening + body + "\n}\n" +
         others;
}

burin::ConvShape row_shape() {
  burin::ConvShape shape;
  shape.in_w = kCols;
  return shape;
}

burin::LaunchGeometry row_launch() {
  burin::LaunchGeometry launch;
  launch.threads = kThreads;
  launch.shared_bytes = kSharedBytes;
  launch.tiles_per_image = kCols / kThreads;
  return launch;
}

burin::KernelTensor image_tensor(burin::TensorRole role, burin::TensorLayout layout, int channels, int rows, int cols) {
  burin::KernelTensor tensor{.role = role, .layout = layout};
  if (!can_lie_in(burin::ElementType::f32, layout)) tensor.element = burin::ElementType::f16;
  tensor.argument = role == burin::TensorRole::residual ? 1 : 0;
  tensor.channels = channels;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.run_words = tensor.image_words = image_words(tensor.format(), {channels, rows, cols});
  tensor.alignment = words_together(layout) * burin::kWordBytes;
  return tensor;
}

burin::KernelForm form_of_row_kernel(const RunOptions& options) {
  using enum burin::TensorRole;
  const burin::ConvShape& shape = options.shape;
  const burin::LaunchGeometry& launch = options.launch;
  burin::KernelForm form{.tensors = {}, .launch = launch};
  form.tensors = {image_tensor(input, options.input_layout, shape.in_channels, shape.in_h, shape.in_w),
                  image_tensor(output, options.output_layout, shape.out_channels, shape.out_h(), shape.out_w()),
                  {.role = residual, .argument = 1},
                  {.role = partials, .run_words = launch.workspace_bytes_per_tile / burin::kWordBytes},
                  {.role = counters, .run_words = launch.counters_per_tile}};
  if (shape.epilogue.residual) {
    form.tensors[2] = image_tensor(residual, options.output_layout, shape.out_channels, shape.conv_h(), shape.conv_w());
  }
  if (options.box) form.boxes = {*options.box};
  if (options.loose != 0) {
    for (const std::size_t i : {0, 1}) {
      form.tensors[i].element = burin::ElementType::f16;
      form.tensors[i].alignment = options.loose;
    }
  }
  if (!options.input_map && !options.output_map) return form;
  const auto add_map = [&](burin::TensorRole role, const std::optional<burin::ActivityMap>& map, int channels, int rows,
                           int cols) {
    burin::KernelTensor& tensor = form.tensors.emplace_back(burin::KernelTensor{.role = role});
    if (!map) return;
    tensor.map = map;
    tensor.channels = channels;
    tensor.rows = rows;
    tensor.cols = cols;
  };
  add_map(input_map, options.input_map, shape.in_channels, shape.in_h, shape.in_w);
  add_map(output_map, options.output_map, shape.out_channels, shape.out_h(), shape.out_w());
  return form;
}

Run run_bitcode(const std::string& bitcode, const RunOptions& options) {
  const burin::KernelForm form = form_of_row_kernel(options);
  burin::HostKernel kernel(bitcode, "k", form);
  std::vector<float> input(static_cast<std::size_t>(form.input().spanned_memory(options.batch)));
  std::vector<float> residual;
  if (const burin::KernelTensor* added = form.find(burin::TensorRole::residual)) {
    residual.resize(static_cast<std::size_t>(added->spanned_memory(options.batch)));
  }
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i + 1);
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = 100 * static_cast<float>(i + 1);
  Run run;
  run.output.assign(static_cast<std::size_t>(form.output().spanned_memory(options.batch)),
                    std::numeric_limits<float>::quiet_NaN());
  try {
    kernel.run({options.batch, input, run.output, residual});
  } catch (const burin::Error& error) {
    if (error.kind() != burin::ErrorKind::verification) throw;
    run.fault = error.what();
  }
  return run;
}

Run run_kernel(const std::string& body, const RunOptions& options) {
  return run_bitcode(assemble_kernel(body), options);
}

std::string fault_of(const std::string& body, const RunOptions& options) {
  const std::string fault = run_kernel(body, options).fault;
  CHECK_THAT(fault, burin_test::StartsWith("kernel 'k'"));
  return fault;
}

std::string only_thread(int thread, const std::string& body) {
  return "  %is = icmp eq i32 %t, " + std::to_string(thread) +
         "\n  %at = icmp eq i32 %b, 0\n  %me = and i1 %is, %at\n  br i1 %me, label %one, label %rest\none:\n" + body +
         "  br label %rest\nrest:\n";
}

std::string refusal_of(const std::string& bitcode, const RunOptions& options) {
  try {
    const burin::HostKernel kernel(bitcode, "k", form_of_row_kernel(options));
  } catch (const burin::Error& error) {
    CHECK(error.kind() == burin::ErrorKind::bad_input);
    return error.what();
  }
  FAIL("the module was accepted");
  return {};
}

}  // namespace burin_test
