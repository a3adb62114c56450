#include "compiler/import/onnx/converters.h"

#include <algorithm>

namespace burin {
namespace {

constexpr Converter kConverters[] = {
    {"Add", 2, 2, convert_add},
    {"AveragePool", 1, 1, convert_average_pool},
    {"BatchNormalization", 5, 5, convert_batch_normalization},
    {"Cast", 1, 1, convert_cast},
    {"Clip", 1, 3, convert_clip},
    {"Concat", 1, kAnyInputs, convert_concat},
    {"Constant", 0, 0, convert_constant},
    {"Conv", 2, 3, convert_conv},
    {"Div", 2, 2, convert_div},
    {"Dropout", 1, 3, convert_dropout},
    {"Flatten", 1, 1, convert_flatten},
    {"Gather", 2, 2, convert_gather},
    {"Gemm", 2, 3, convert_gemm},
    {"GlobalAveragePool", 1, 1, convert_global_average_pool},
    {"GlobalMaxPool", 1, 1, convert_global_max_pool},
    {"HardSigmoid", 1, 1, convert_hard_sigmoid},
    {"HardSwish", 1, 1, convert_hard_swish},
    {"Identity", 1, 1, convert_identity},
    {"LRN", 1, 1, convert_lrn},
    {"LeakyRelu", 1, 1, convert_leaky_relu},
    {"MatMul", 2, 2, convert_matmul},
    {"MaxPool", 1, 1, convert_max_pool},
    {"Mul", 2, 2, convert_mul},
    {"Pad", 1, 4, convert_pad},
    {"ReduceMean", 1, 2, convert_reduce_mean},
    {"Relu", 1, 1, convert_relu},
    {"Reshape", 2, 2, convert_reshape},
    {"Shape", 1, 1, convert_shape},
    {"Sigmoid", 1, 1, convert_sigmoid},
    {"Slice", 1, 5, convert_slice},
    {"Softmax", 1, 1, convert_softmax},
    {"Squeeze", 1, 2, convert_squeeze},
    {"Sub", 2, 2, convert_sub},
    {"Sum", 1, kAnyInputs, convert_sum},
    {"Transpose", 1, 1, convert_transpose},
    {"Unsqueeze", 1, 2, convert_unsqueeze},
};

}  // namespace

const Converter* find_converter(std::string_view op) {
  const auto* const found = std::find_if(std::begin(kConverters), std::end(kConverters),
                                         [&](const Converter& each) { return each.op == op; });
  return found == std::end(kConverters) ? nullptr : found;
}

}  // namespace burin
