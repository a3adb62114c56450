// LibraryCall: a launch that a library of the GPU's vendor makes in place of a kernel's own code. A kernel with such a
// call holds code of burin's own as well, which computes the same from the same tensors and runs wherever the library
// is not there or refuses.
//
// What is computed, and where the tensors lie, a call does not say: that is the kernel's layer and its form. Which file
// is opened as the library, no package says either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/factor_type.h"
#include "ir/named_enum.h"

namespace burin {

struct KernelForm;

enum class Library { cudnn };
constexpr EnumNames<1> names_of(Library) { return {"a library", {"cudnn"}}; }

// How it computes a convolution; the values are those of cudnnConvolutionFwdAlgo_t.
enum class ConvolutionAlgorithm {
  implicit_gemm,
  implicit_precomp_gemm,
  gemm,
  direct,
  fft,
  fft_tiling,
  winograd,
  winograd_nonfused,
};
constexpr EnumNames<8> names_of(ConvolutionAlgorithm) {
  return {"an algorithm",
          {"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd",
           "winograd_nonfused"}};
}

// More scratch memory than this no call is given.
inline constexpr std::int64_t kMaxCallWorkspaceBytes = std::int64_t{4} << 30;

struct LibraryCall {
  Library library = Library::cudnn;
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::implicit_precomp_gemm;
  FactorType factors = FactorType::f32;  // what inputs and weights may be rounded to: f32 or tf32
  // Scratch memory that it may take at most; how much it does take, the library says for each batch.
  std::int64_t workspace_limit = std::int64_t{256} << 20;
  bool operator==(const LibraryCall&) const = default;
};

// All faults, each a sentence; empty where the library can be asked to compute the layer on tensors of this form: float
// images in nchw, padded alike on both sides, with no epilogue but bias, residual and relu.
std::vector<std::string> verify(const LibraryCall& call, const ConvShape& shape, const KernelForm& form);
// Whether there are none that the layer itself is to blame for.
bool can_call(const ConvShape& shape);
// Whether the function at the end of a layer is relu, which is all that a call can end with.
bool is_relu(const std::optional<Elementwise>& function);

// "cudnn implicit_precomp_gemm", "cudnn winograd tf32".
std::string describe(const LibraryCall& call);
// The same with what stands beside it: "cudnn winograd; own: conv_dense, 98 blocks of 256 for an image".
std::string describe(const LibraryCall& call, const std::string& own);

// The plan of a kernel with a call: the call, and the plan of the kernel's own code.
struct LibraryPlan {
  LibraryCall call;
  std::string provider;  // of the own code
  std::string plan;      // its text
  bool operator==(const LibraryPlan&) const = default;
};

// "key: value" lines; the last, "own: conv_dense", is followed by the other plan as it is. parse() of print() gives the
// same. Throws Error(bad_input) naming the line.
std::string print(const LibraryPlan& plan);
LibraryPlan parse_library_plan(std::string_view text);
// Whether the text is of such a plan, and not of code alone.
bool is_library_plan(std::string_view text);

}  // namespace burin
