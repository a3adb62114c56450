// Reads pruned weights: .npy, .npz, .safetensors (also sharded by *.index.json); and models: .onnx. The format is taken
// from the content where it can be, else from the name's ending.
//
// Everything in a file is untrusted: sizes, offsets and names are checked before they are used, and each fault is one
// Error(bad_input) that names the file, the tensor or node and what is wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/import/weights_tensor.h"
#include "ir/network.h"

namespace burin {

// Geometry of one bare array, from the command line's flags; of a model the input's shape alone.
struct GeometryFlags {
  std::optional<std::string> input_shape;  // CxHxW or HxW
  std::optional<std::string> stride;       // N or HxW
  std::optional<std::string> pad;          // N, HxW, or top,bottom,left,right
  std::optional<std::string> dilation;     // N or HxW
  std::optional<int> groups;
  bool any() const { return input_shape || stride || pad || dilation || groups; }
};

struct ImportOptions {
  std::optional<std::string> geometry_file;  // the same form as the safetensors metadata key `geometry`
  GeometryFlags flags;
  std::optional<std::string> layer_glob;                // only layers whose name matches (*, ?, [..])
  std::optional<Activation> activation;                 // overrides the activation of every selected layer
  SharedFunction own_activation = {};                   // the same, where it is a user's function
  float zero_threshold = 0;                             // |w| <= T becomes 0
  QuantizedPairs quantized = QuantizedPairs::simulate;  // of a model
  std::vector<std::string> outputs;                     // of a model, in place of its own: tensors by their names
  // Operators of a model that a user gives, by what operator_text() says of a node: "my.Domain::Op". Null: none.
  std::shared_ptr<FunctionSource> operators = {};
  // What a layer ends with in place of what the file says; nothing: what the file says.
  std::optional<std::optional<Elementwise>> ending() const;
};

// A weights file of any format. The format is taken from the content, and from the name's ending where the content is
// too broken to tell. Throws Error(bad_input), also for a file of a format that burin does not read.
WeightsFile open_weights_file(const std::string& path);

// Weights give at least one layer, a model its graph, or where layer_glob is given those of its layers that match, each
// by itself. What is returned has been verified. Throws Error.
Network import_network(const std::string& path, const ImportOptions& options = {});

}  // namespace burin
