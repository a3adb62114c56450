// What a user can do about an operator that burin does not know.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

namespace burin {

// "Conv", "com.microsoft::FusedConv"
std::string operator_text(const ::onnx::NodeProto& node);

inline constexpr std::string_view kQuantizationHelp =
    "burin reads quantized models as QuantizeLinear and DequantizeLinear around operators of real numbers "
    "(quant_format=QuantFormat.QDQ of onnxruntime's quantizer, with static scales)";
inline constexpr std::string_view kOwnOperatorHelp =
    "an element-wise operator of your own can be given as CUDA C++: --operator NAME=FILE.cu";
bool is_quantization(std::string_view op);

// A sentence without its full stop.
std::string_view help_for(const ::onnx::NodeProto& node);

}  // namespace burin
