// Small kernels for tests of the host executor, written as textual LLVM IR.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/host/executor.h"
#include "ir/conv_layer.h"
#include "ir/kernel.h"

namespace burin_test {

// Bitcode of a whole module in textual form.
std::string assemble_text(const std::string& module);

// Bitcode of a module with the triple of specialised modules and declarations of all device primitives.
std::string assemble_module(const std::string& functions);

// The same for one kernel `k`. The values that `body` finds:
//   %in %out %res %par %cnt %batch   the parameters; those of form_of_row_kernel() without maps
//   %t %b %y                         thread, block x, block y
//   %t4 %off                         4 * thread; bytes from the start of the tensor of this thread's pixel (i64)
// `body` begins in block `entry` and ends the function; `others` are further functions.
std::string assemble_kernel(const std::string& body, const std::string& others = "");
// Its text; `box`: a parameter for a box, as kBox, behind a comma.
inline const std::string kBox = ", ptr byval([16 x i64]) align 64 %box";
std::string text_of_kernel(const std::string& body, const std::string& others = "", const std::string& box = "");

// A one-channel image of kCols pixels in a row, read and written by a 1x1 convolution; two blocks of four threads.
inline constexpr int kCols = 8, kThreads = 4, kSharedBytes = 64;
burin::ConvShape row_shape();
burin::LaunchGeometry row_launch();

struct Run {
  std::vector<float> output;
  std::string fault;  // of a run that ended with Error(verification)
};

struct RunOptions {
  burin::ConvShape shape = row_shape();
  burin::LaunchGeometry launch = row_launch();
  int batch = 1;
  burin::TensorLayout input_layout = burin::TensorLayout::nchw;   // in those of halves, of FP16
  burin::TensorLayout output_layout = burin::TensorLayout::nchw;  // the residual's, too
  int loose = 0;  // bytes that input and output are aligned to, which then are loose halves of FP16
  // With either, the kernel has parameters for both.
  std::optional<burin::ActivityMap> input_map = {}, output_map = {};
  std::optional<burin::TensorBox> box = {};
};

// A tensor of its own memory.
burin::KernelTensor image_tensor(burin::TensorRole role, burin::TensorLayout layout, int channels, int rows, int cols);

// The tensors are the input, the output, the residual, partial sums and counters, then the activity maps, if there are
// any. Those that the layer or the launch does not have are null.
burin::KernelForm form_of_row_kernel(const RunOptions& options = {});

// input[i] = i + 1, residual[i] = 100 * (i + 1), output poisoned with NaN.
Run run_bitcode(const std::string& bitcode, const RunOptions& options = {});
Run run_kernel(const std::string& body, const RunOptions& options = {});

// The fault of a run that must have one.
std::string fault_of(const std::string& body, const RunOptions& options = {});

// Every thread stores 1 to its pixel.
inline const std::string kStoreOne = "  call void @burin_dev_global_store(ptr %out, i64 %off, float 1.0)\n";

// Only thread `thread` of block (0, 0) runs `body`.
std::string only_thread(int thread, const std::string& body);

// The text of the Error(bad_input) that loading this gives; a failed test when it loads.
std::string refusal_of(const std::string& bitcode, const RunOptions& options = {});

}  // namespace burin_test
