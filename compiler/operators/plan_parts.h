// What the planners of several operators share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/operators/plan_operator.h"
#include "ir/arch.h"
#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/operators.h"

namespace burin {

inline constexpr int kVectorWords = 4;
inline constexpr int kBlockThreads = 256;

// What a kernel is planned for.
struct Target {
  const ArchSpec& arch;
  int batch = 1;
};

std::int64_t round_up(std::int64_t value, std::int64_t multiple);

// `words` words in one run. It is aligned where its place allows.
OperatorTensor tensor_at(const BufferPlace& place, std::int64_t words);

// The constants of templates/operators/function.def.
void set_function(OperatorPlan& plan, const Elementwise& function);
void set_function(OperatorPlan& plan, Activation activation, float leaky_slope);
void set_no_function(OperatorPlan& plan);

// For kernels whose threads have `steps` pieces of one or four words: sets "vector" where `vectors` says that four may
// be taken at once, "steps", threads and blocks. Tensors that are then not accessed by fours are said to need no
// alignment.
void set_pieces(OperatorPlan& plan, std::int64_t elements, bool vectors, const Target& target);

// A block of kBlockThreads, or as many as are needed, for each so many of `items`.
void set_items(OperatorPlan& plan, std::int64_t items);

// All values of an image in their order.
PlannedOperator plan_copy(std::int64_t words, const BufferPlace& input, const BufferPlace& output,
                          const Target& target);
PlannedOperator plan_pad(const Pad& op, const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to,
                         const BufferPlace& input, const BufferPlace& output, const Target& target);
PlannedOperator plan_transpose(const Transpose& op, const std::vector<std::int64_t>& from,
                               const std::vector<std::int64_t>& to, const BufferPlace& input, const BufferPlace& output,
                               const Target& target);
// A kernel for each input.
std::vector<PlannedOperator> plan_concat(const std::vector<std::vector<std::int64_t>>& from,
                                         const std::vector<BufferPlace>& inputs, const std::vector<std::int64_t>& to,
                                         int axis, const BufferPlace& output, const Target& target);

// The tensors and the activation of a convolution, and the constants that say what is computed: sizes, filter, stride,
// dilation, padding, whether there is a residual.
PlannedOperator start_convolution(std::string_view template_name, const ConvShape& shape,
                                  const OperatorRequest& request);
// Two values of a half type in a word, the first in its low half.
std::uint32_t half_word(ElementType type, float first, float second);

// With weights that `storage` can hold.
PlannedOperator plan_linear(const Linear& op, const BufferPlace& input, const BufferPlace& output, const Target& target,
                            ElementType storage);

}  // namespace burin
