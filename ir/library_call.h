// LibraryCall: a launch that a library of the GPU's vendor makes in place of a kernel's own code. A kernel with such a
// call holds code of burin's own as well, which computes the same from the same tensors and runs wherever the library
// is not there or refuses.
//
// What is computed, and where the tensors lie, a call does not say: that is the kernel's layer and its form. Which file
// is opened as the library, no package says either.
//
// A fully connected layer is called as the convolution that it is: with a 1x1 filter, of images of one pixel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/factor_type.h"
#include "ir/named_enum.h"
#include "ir/tensor_layout.h"

namespace burin {

struct KernelForm;

enum class Library {
  cudnn,     // convolutions
  cublaslt,  // matrix products: fully connected layers, and convolutions with 1x1 filters
};
constexpr EnumNames<2> names_of(Library) { return {"a library", {"cudnn", "cublaslt"}}; }
inline constexpr Library kLibraries[] = {Library::cudnn, Library::cublaslt};
// As its vendor spells it: "cuDNN".
constexpr std::string_view title_of(Library library) { return library == Library::cudnn ? "cuDNN" : "cuBLASLt"; }

// How cuDNN computes a convolution: the values are those of cudnnConvolutionFwdAlgo_t; or by the first, second... of
// the engines that its graph API proposes for the convolution with what is fused into it, the device and the version,
// the best by its own estimate first.
enum class ConvolutionAlgorithm {
  implicit_gemm,
  implicit_precomp_gemm,
  gemm,
  direct,
  fft,
  fft_tiling,
  winograd,
  winograd_nonfused,
  engine_0,
  engine_1,
  engine_2,
  engine_3,
};
constexpr EnumNames<12> names_of(ConvolutionAlgorithm) {
  return {"an algorithm",
          {"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd",
           "winograd_nonfused", "engine_0", "engine_1", "engine_2", "engine_3"}};
}
// Which of the graph API's engines; nothing: it is none.
constexpr std::optional<int> engine_number(ConvolutionAlgorithm algorithm) {
  const int number = static_cast<int>(algorithm) - static_cast<int>(ConvolutionAlgorithm::engine_0);
  return number >= 0 ? std::optional(number) : std::nullopt;
}

// How cuBLASLt computes a product: the first, second... of what cublasLtMatmulAlgoGetHeuristic proposes for the
// product, the device and the version of the library, the best by its own estimate first.
enum class ProductAlgorithm { heuristic_0, heuristic_1, heuristic_2, heuristic_3 };
constexpr EnumNames<4> names_of(ProductAlgorithm) {
  return {"an algorithm", {"heuristic_0", "heuristic_1", "heuristic_2", "heuristic_3"}};
}

// More scratch memory than this no call is given.
inline constexpr std::int64_t kMaxCallWorkspaceBytes = std::int64_t{4} << 30;
// Four floats at once are the widest access of a library for which it asks where a tensor begins.
inline constexpr int kMaxCallAlignment = 16;

using CallAlgorithm = std::variant<ConvolutionAlgorithm, ProductAlgorithm>;

struct LibraryCall {
  // Whose algorithm it is says which library is called.
  CallAlgorithm algorithm = ConvolutionAlgorithm::implicit_precomp_gemm;
  // What inputs and weights may be rounded to: of float tensors f32 or tf32, of halves their own type.
  FactorType factors = FactorType::f32;
  // Scratch memory that it may take at most; how much it does take, the library says for each batch.
  std::int64_t workspace_limit = std::int64_t{256} << 20;
  // Bytes that the addresses of its tensors are multiples of, which cuBLASLt chooses by. cuDNN's engines are told what
  // the kernel's tensors have, and its other algorithms do not ask.
  int alignment = kWordBytes;

  Library library() const {
    return std::holds_alternative<ConvolutionAlgorithm>(algorithm) ? Library::cudnn : Library::cublaslt;
  }
  bool operator==(const LibraryCall&) const = default;
};

// Whether it is known to transform inputs before they are multiplied, as Winograd's does, or one of the graph API's
// engines, which may.
bool may_transform(const CallAlgorithm& algorithm);

// "winograd", "heuristic_0".
std::string_view to_string(const CallAlgorithm& algorithm);
// Nothing: the library has none of this name.
std::optional<CallAlgorithm> parse_algorithm(Library library, std::string_view name);
// "implicit_gemm, ...": for messages.
std::string known_algorithms(Library library);

// Whether libraries can be told of tensors of the format: of float images in nchw, and of those in nhwc4 and nhwc8.
bool can_call_on(const TensorFormat& format);
// The format that all tensors of a kernel with a call have.
TensorFormat called_format(const KernelForm& form);

// All faults, each a sentence; empty where the library can be asked to compute the layer on tensors of this form, all
// of one format, with no epilogue but bias, residual and relu. cuDNN pads both sides alike; cuBLASLt knows no filters
// but 1x1 without stride, padding and groups, and not bias and residual in one product unless images have one pixel or
// channels are last.
// Where channels are last, those of a group are whole places.
std::vector<std::string> verify(const LibraryCall& call, const ConvShape& shape, const KernelForm& form);
// Whether there are none that the layer itself is to blame for.
bool can_call(Library library, const ConvShape& shape, const TensorFormat& format);

// The form of a kernel whose own code has `form`: its tensors begin where the call wants them to.
KernelForm form_with_call(KernelForm form, const LibraryCall& call);

// The layer as the library is told of it: where channels are last, those that fill up places are channels as well, with
// weights and biases that are zero.
ConvShape filled_shape(const ConvShape& shape, const TensorFormat& format);
// Elements that the library is given beside the weights: a bias for each channel; for a matrix product of whole images,
// one for each value of an image, since what cublasLtMatmul adds to rows would be a bias for each pixel. 0: none.
std::int64_t bias_elements(const LibraryCall& call, const ConvShape& shape, const TensorFormat& format);
// What it takes of a device's memory for weights and biases, in bytes.
std::int64_t library_bytes(const LibraryCall& call, const ConvShape& shape, const TensorFormat& format);
// Weights and biases as the library reads them: words of elements of the format, the channels of a weight last where
// those of tensors are.
struct LibraryNumbers {
  std::vector<float> weights, biases;
};
LibraryNumbers library_numbers(const LibraryCall& call, const ConvLayer& layer, const TensorFormat& format);
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
