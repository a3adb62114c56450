#include "compiler/import/onnx/operator_help.h"

#include <algorithm>

#include "compiler/import/onnx/model_file.h"
#include "ir/printable.h"

namespace burin {
namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

}  // namespace

std::string operator_text(const ::onnx::NodeProto& node) {
  return printable((is_standard_domain(node.domain()) ? "" : node.domain() + "::") + node.op_type());
}

bool is_quantization(std::string_view op) {
  return op.find("Quantize") != op.npos || op.starts_with("QLinear") || op.ends_with("Integer");
}

std::string_view help_for(const ::onnx::NodeProto& node) {
  const std::string_view op = node.op_type();
  if (is_quantization(op)) return kQuantizationHelp;
  if (!is_standard_domain(node.domain())) {
    return "export the model with ONNX's own operators, which an optimizer or a custom layer has replaced, or give "
           "this "
           "one, where it is element-wise, as CUDA C++: --operator NAME=FILE.cu";
  }
  if (is_one_of(op, {"Loop", "Scan", "SequenceMap"})) {
    return "export the model so that its loops are unrolled, or simplify it with onnxsim";
  }
  if (op.starts_with("Sequence") || op.starts_with("Optional") || op.starts_with("String")) {
    return "burin knows tensors of numbers alone; simplify the model with onnxsim";
  }
  if (is_one_of(op, {"LSTM", "GRU", "RNN"})) return "burin compiles convolutional networks, not recurrent ones";
  if (is_one_of(op, {"NonMaxSuppression", "TopK", "RoiAlign", "MaxRoiPool", "Unique", "ArgMax", "ArgMin"})) {
    return "cut the model in front of it (--outputs), and do what follows the network on the CPU";
  }
  if (op.starts_with("Random") || is_one_of(op, {"Bernoulli", "Multinomial"})) {
    return "export the model for inference (model.eval())";
  }
  return "export the layer in terms of operators that docs/formats.md lists";
}

}  // namespace burin
