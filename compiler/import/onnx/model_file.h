// Bytes to a ModelProto that is small enough to be walked without fear.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <string>
#include <string_view>

namespace burin {

inline constexpr int kOldestOpset = 6;
inline constexpr int kNewestOpset = 23;

// Messages, names and byte strings of a model together. Each takes some hundred bytes of memory and as little as two
// bytes of the file.
inline constexpr std::int64_t kMaxOnnxObjects = 2'000'000;

// Throws Error(bad_input) for what is no protobuf message of this kind, is cut short, or has no graph;
// Error(unsupported) for more than kMaxOnnxObjects.
std::unique_ptr<::onnx::ModelProto> parse_model(std::string_view bytes, const std::string& path);

// The version of ONNX's own operators. Throws Error(bad_input) when the model does not say it, Error(unsupported) when
// it is none of kOldestOpset to kNewestOpset.
int opset_of(const ::onnx::ModelProto& model, const std::string& path);

// True for the domain of ONNX's own operators, which has two spellings.
bool is_standard_domain(std::string_view domain);

}  // namespace burin
