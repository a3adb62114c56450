#include "compiler/import/onnx/model_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>

#include "compiler/import/faults.h"

namespace burin {
namespace {

constexpr std::int64_t kMaxMessageBytes = std::numeric_limits<int>::max();  // protobuf's own limit

// What a protobuf message would take in memory, found without building it.
struct MessageScan {
  bool well_formed = true;
  std::int64_t objects = 0;  // messages, strings and fields that the type does not know, however deep
  int position = 0;          // where it stopped making sense
};

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 100;  // protobuf's own limit

bool scan(CodedInputStream& stream, const Descriptor& type, int depth, MessageScan& result);

// A field whose length stands before it: a message, a string, or packed numbers.
bool scan_delimited(CodedInputStream& stream, const FieldDescriptor* field, int depth, MessageScan& result) {
  int length = 0;
  if (!stream.ReadVarintSizeAsInt(&length)) return false;
  if (field == nullptr || field->type() == FieldDescriptor::TYPE_STRING ||
      field->type() == FieldDescriptor::TYPE_BYTES) {
    ++result.objects;
    return stream.Skip(length);
  }
  if (field->type() != FieldDescriptor::TYPE_MESSAGE) return stream.Skip(length);
  ++result.objects;
  // A limit beyond the outer one would be ignored, and the inner message would then end where the outer does.
  if (const int left = stream.BytesUntilLimit(); left >= 0 && length > left) return false;
  const auto outer = stream.PushLimit(length);
  const bool good = scan(stream, *field->message_type(), depth + 1, result) && stream.BytesUntilLimit() == 0;
  stream.PopLimit(outer);
  return good;
}

bool scan(CodedInputStream& stream, const Descriptor& type, int depth, MessageScan& result) {
  if (depth > kMaxDepth) return false;
  while (const std::uint32_t tag = stream.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const FieldDescriptor* field = type.FindFieldByNumber(number);
    if (number == 0) return false;
    if (field == nullptr) ++result.objects;
    bool good = false;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        good = scan_delimited(stream, field, depth, result);
        break;
      case WireFormatLite::WIRETYPE_VARINT:
      case WireFormatLite::WIRETYPE_FIXED32:
      case WireFormatLite::WIRETYPE_FIXED64:
        good = WireFormatLite::SkipField(&stream, tag);
        break;
      default:
        break;  // groups, which no ONNX message has
    }
    if (!good) return false;
  }
  return stream.ConsumedEntireMessage();
}

// `bytes` as a message of the type. At most kMaxMessageBytes.
MessageScan scan_message(std::string_view bytes, const Descriptor& type) {
  MessageScan result;
  CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  const auto whole = stream.PushLimit(static_cast<int>(bytes.size()));
  result.well_formed = scan(stream, type, 0, result) && stream.BytesUntilLimit() == 0;
  result.position = stream.CurrentPosition();
  stream.PopLimit(whole);
  return result;
}

}  // namespace

std::unique_ptr<::onnx::ModelProto> parse_model(std::string_view bytes, const std::string& path) {
  if (static_cast<std::int64_t>(bytes.size()) > kMaxMessageBytes) {
    bad_input(path,
              "has {} bytes, more than the {} that a protobuf message can have; save the model with external data "
              "(onnx.save_model(..., save_as_external_data=True))",
              bytes.size(), kMaxMessageBytes);
  }
  // The scan comes first: it takes no memory, whatever the bytes say.
  const MessageScan scan = scan_message(bytes, *::onnx::ModelProto::descriptor());
  if (scan.objects > kMaxOnnxObjects) {
    unsupported(path, "holds more than {} nodes, attributes, names and other parts (kMaxOnnxObjects)", kMaxOnnxObjects);
  }
  auto model = std::make_unique<::onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(static_cast<int>(kMaxMessageBytes));
  if (!scan.well_formed || !model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    bad_input(path, "is no ONNX model, or is damaged or cut short (it stops making sense at byte {})",
              scan.well_formed ? stream.CurrentPosition() : scan.position);
  }
  if (!model->has_graph()) bad_input(path, "is no ONNX model, or is cut short: it holds no graph");
  return model;
}

bool is_standard_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

int opset_of(const ::onnx::ModelProto& model, const std::string& path) {
  std::int64_t version = 0;
  for (const auto& opset : model.opset_import()) {
    if (!is_standard_domain(opset.domain())) continue;
    if (version != 0 && version != opset.version()) {
      bad_input(path, "says twice which version of ONNX's operators it uses: {} and {}", version, opset.version());
    }
    version = opset.version();
  }
  // A model of other operators alone need not say; what it has will be named.
  const bool has_others =
      std::ranges::none_of(model.graph().node(), [](const auto& node) { return is_standard_domain(node.domain()); });
  if (version == 0 && has_others && model.opset_import_size() > 0) return kNewestOpset;
  if (version == 0) bad_input(path, "does not say which version of ONNX's operators it uses (no opset_import)");
  if (version < kOldestOpset || version > kNewestOpset) {
    unsupported(path,
                "uses version {} of ONNX's operators (opset); burin reads {} to {}. Export it anew with "
                "opset_version={}, or convert it with onnx.version_converter",
                version, kOldestOpset, kNewestOpset, version < kOldestOpset ? 13 : kNewestOpset);
  }
  return static_cast<int>(version);
}

}  // namespace burin
