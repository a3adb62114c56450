// What the arrays alone do not say of a layer: stride, padding, groups, input size and so on. From JSON (metadata of
// the weights file or a side file) or from the command line's flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/import/import.h"
#include "ir/conv_layer.h"
#include "ir/error.h"

namespace burin {

// Where an attribute was written, for messages, and whose fault a wrong one is.
struct GeometryPlace {
  ErrorKind kind = ErrorKind::bad_input;
  std::string text;  // "net.safetensors: geometry of layer 'conv1'"
};

struct LayerGeometry {
  enum class Bias { automatic, none, required };  // automatic: used where the tensor exists

  std::string name;
  GeometryPlace place;
  std::optional<std::string> weight;  // tensor; default: NAME.weight, else NAME
  Bias bias = Bias::automatic;
  std::optional<std::string> bias_tensor;  // default: beside the weight
  ConvShape shape;  // but for channels and kernel, which the weights say, the input's size, and the function
  Activation activation = Activation::none;
  float leaky_slope = 0.01F;
  std::optional<int> in_h, in_w;
  std::optional<int> in_channels;  // only to be checked
};

struct Geometry {
  std::vector<LayerGeometry> layers;  // in the order of the text
  std::vector<std::string> unknown;   // attributes that mean nothing to burin, each once
};

// `where` starts every message. Throws Error(bad_input) for values that make no sense, Error(unsupported) for those
// that exceed a limit of ir/limits.h.
Geometry parse_geometry(std::string_view json, const std::string& where);

// Sets what the flags give. Throws Error(usage), or Error(unsupported) as above.
void apply_flags(const GeometryFlags& flags, LayerGeometry& layer);

}  // namespace burin
