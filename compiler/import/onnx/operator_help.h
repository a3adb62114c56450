// What a user can do about an operator that burin does not know.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

namespace burin {

// "Conv", "com.microsoft::FusedConv"
std::string operator_text(const ::onnx::NodeProto& node);

bool is_quantization(std::string_view op);

// A sentence without its full stop.
std::string_view help_for(const ::onnx::NodeProto& node);

}  // namespace burin
