#include "compiler/import/onnx/model_file.h"

#include <google/protobuf/io/coded_stream.h>

#include <limits>

#include "compiler/import/faults.h"
#include "compiler/import/onnx/message_scan.h"

namespace burin {
namespace {

constexpr std::int64_t kMaxMessageBytes = std::numeric_limits<int>::max();  // protobuf's own limit

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
