#include "compiler/import/onnx/message_scan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace burin {
namespace {

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

}  // namespace

MessageScan scan_message(std::string_view bytes, const Descriptor& type) {
  MessageScan result;
  CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  const auto whole = stream.PushLimit(static_cast<int>(bytes.size()));
  result.well_formed = scan(stream, type, 0, result) && stream.BytesUntilLimit() == 0;
  result.position = stream.CurrentPosition();
  stream.PopLimit(whole);
  return result;
}

}  // namespace burin
