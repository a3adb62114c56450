// The providers whose kernels have a library's call beside their code. What a plan implies hangs on them, so that they
// are known by their names here.
#pragma once

#include <optional>
#include <string_view>

#include "ir/library_call.h"

namespace burin {

inline constexpr std::string_view kCudnnProvider = "conv_cudnn";
inline constexpr std::string_view kConvCublasProvider = "conv_cublas";      // of convolutions
inline constexpr std::string_view kLinearCublasProvider = "linear_cublas";  // of fully connected layers

// The library that kernels of a provider call; nothing: they have code alone.
std::optional<Library> library_of(std::string_view provider);
// The provider of a plan with a call, which is what its library and its own code say.
std::string_view provider_of(const LibraryPlan& plan);

}  // namespace burin
