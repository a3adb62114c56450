#include "compiler/import/network_builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/import/geometry.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"
#include "compiler/import/tensor_table.h"
#include "ir/limits.h"

namespace burin {
namespace {

constexpr std::string_view kWeightEnding = ".weight";
constexpr std::size_t kConvRank = 4;    // OIHW
constexpr std::size_t kMatrixRank = 2;  // a 1x1 convolution without its last two extents
constexpr std::string_view kFlagsHelp =
    "--input-shape CxHxW [--stride S] [--pad P] [--dilation D] [--groups G] describes one bare array";

std::string without_weight_ending(const std::string& name) {
  if (!name.ends_with(kWeightEnding) || name.size() == kWeightEnding.size()) return name;
  return name.substr(0, name.size() - kWeightEnding.size());
}

bool may_be_weights(const TensorTable::Row& row, bool bare_array) {
  const std::size_t rank = row.values->shape.size();
  return rank == kConvRank || (bare_array && rank == kMatrixRank);
}

// The one array of a file without geometry, described by flags alone.
Geometry geometry_from_flags(const WeightsFile& file, const TensorTable& table, const ImportOptions& options) {
  std::vector<std::string> candidates;
  for (const auto& row : table.rows()) {
    if (may_be_weights(row, file.bare_array)) candidates.push_back(row.name);
  }
  if (candidates.empty()) {
    const auto& first = table.rows().front();
    bad_input(file.path, "has no 4-D weights [K,C,R,S]; {} has the shape {}", in_quotes(first.name),
              extents_text(first.values->shape));
  }
  if (candidates.size() > 1) {
    if (options.flags.any()) {
      usage(file.path, "holds {} layers ({}), but {}; give --geometry FILE instead", candidates.size(),
            listed(candidates), kFlagsHelp);
    }
    usage(file.path,
          "says nothing of its layers' stride, padding and input size (no 'geometry' in it); give --geometry FILE "
          "({})",
          kFlagsHelp);
  }
  if (!options.flags.input_shape) {
    usage(file.path,
          "says nothing of its layer's geometry; give --input-shape CxHxW (and --stride, --pad, "
          "--dilation, --groups where they are not 1, 0, 1, 1), or --geometry FILE");
  }
  LayerGeometry layer;
  layer.weight = candidates.front();
  layer.name = without_weight_ending(candidates.front());
  layer.place = {ErrorKind::bad_input, fmt::format("{}: layer {}", file.path, in_quotes(layer.name))};
  return {{std::move(layer)}, {}};
}

// A bare array has no name of its own: a side file may call it what it wants.
void match_bare_array(Geometry& geometry, const TensorTable& table) {
  const std::string& array = table.rows().front().name;
  if (geometry.layers.size() > 1) {
    std::erase_if(geometry.layers, [&](const LayerGeometry& layer) {
      return layer.name != array && layer.weight.value_or(layer.name + std::string(kWeightEnding)) != array;
    });
  }
  for (LayerGeometry& layer : geometry.layers) layer.weight = array;
}

Geometry find_geometry(const WeightsFile& file, const TensorTable& table, const ImportOptions& options) {
  Geometry geometry;
  if (options.geometry_file) {
    const MappedFile side(*options.geometry_file);
    geometry = parse_geometry(side.bytes(), *options.geometry_file);
    if (file.bare_array) match_bare_array(geometry, table);
    if (geometry.layers.empty()) {
      bad_input(*options.geometry_file, "describes no layer {}", in_quotes(table.rows().front().name));
    }
  } else {
    std::set<std::string> names;
    for (const auto& [json, where] : file.geometry) {
      Geometry part = parse_geometry(json, where);
      for (LayerGeometry& layer : part.layers) {
        if (!names.insert(layer.name).second) bad_input(layer.place.text, "another file of the model describes it too");
        geometry.layers.push_back(std::move(layer));
      }
      geometry.unknown.insert(geometry.unknown.end(), part.unknown.begin(), part.unknown.end());
    }
  }
  if (geometry.layers.empty()) geometry = geometry_from_flags(file, table, options);
  if (options.flags.any()) {
    if (geometry.layers.size() > 1) {
      usage(file.path, "has {} layers, but {}; give --geometry FILE instead", geometry.layers.size(), kFlagsHelp);
    }
    apply_flags(options.flags, geometry.layers.front());
  }
  return geometry;
}

// The tensors of a layer in the table.
struct LayerTensors {
  TensorTable::Row* weight = nullptr;
  TensorTable::Row* bias = nullptr;
  std::string weight_name, bias_name;  // found or not
};

LayerTensors find_tensors(const LayerGeometry& layer, TensorTable& table) {
  LayerTensors tensors;
  tensors.weight_name = layer.weight.value_or(layer.name + std::string(kWeightEnding));
  tensors.weight = table.find(tensors.weight_name);
  if (tensors.weight == nullptr && !layer.weight) tensors.weight = table.find(layer.name);
  const std::string found = tensors.weight == nullptr ? tensors.weight_name : tensors.weight->name;
  if (layer.bias == LayerGeometry::Bias::none) return tensors;
  // Beside X.weight lies X.bias; an array that is called X itself has it there too.
  tensors.bias_name = layer.bias_tensor.value_or(without_weight_ending(found) + ".bias");
  tensors.bias = table.find(tensors.bias_name);
  return tensors;
}

void check_name(const LayerGeometry& layer) {
  if (layer.name.empty() || layer.name.size() > kMaxLayerNameBytes || !is_plain_text(layer.name)) {
    fail(layer.place.kind, "{}: a layer's name must have 1 to {} bytes of UTF-8 without control characters",
         layer.place.text, kMaxLayerNameBytes);
  }
}

// Shape from the weights' extents and the geometry; what cannot be is said here, with names.
ConvShape make_shape(const LayerGeometry& layer, const TensorTable::Row& weight) {
  const std::string& at = layer.place.text;
  std::vector<std::int64_t> extents = weight.values->shape;
  if (extents.size() == kMatrixRank) extents.resize(kConvRank, 1);
  const std::string tensor =
      fmt::format("weights {} of shape {}", in_quotes(weight.name), extents_text(weight.values->shape));
  if (extents.size() != kConvRank) bad_input(at, "{} are not [K,C,R,S] (or [K,C] for 1x1)", tensor);
  if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent < 1; })) {
    bad_input(at, "{} have an extent of 0", tensor);
  }
  if (extents[2] > kMaxKernelExtent || extents[3] > kMaxKernelExtent) {
    unsupported(at, "{} have a {}x{} kernel; burin's limit is {} rows and columns", tensor, extents[2], extents[3],
                kMaxKernelExtent);
  }
  if (extents[0] > kMaxChannels || extents[1] > kMaxChannels / layer.shape.groups) {
    unsupported(at, "{} with {} groups exceed burin's limit of {} channels", tensor, layer.shape.groups, kMaxChannels);
  }
  if (weight.values->elements() > kMaxLayerWeights) {
    unsupported(at, "{} exceed burin's limit of {} weights", tensor, kMaxLayerWeights);
  }
  if (extents[0] % layer.shape.groups != 0) {
    bad_input(at, "{} output channels cannot be divided into {} groups", extents[0], layer.shape.groups);
  }
  ConvShape shape = layer.shape;
  shape.out_channels = static_cast<int>(extents[0]);
  shape.in_channels = static_cast<int>(extents[1]) * layer.shape.groups;
  shape.kernel_h = static_cast<int>(extents[2]);
  shape.kernel_w = static_cast<int>(extents[3]);
  if (layer.in_channels && *layer.in_channels != shape.in_channels) {
    usage(at, "--input-shape has {} channels, but {} and {} groups take {}", *layer.in_channels, tensor,
          layer.shape.groups, shape.in_channels);
  }
  if (!layer.in_h || !layer.in_w) {
    fail(layer.place.kind, "{}: lacks {} (the {} of its input)", at, !layer.in_h ? "'H'" : "'W'",
         !layer.in_h ? "rows" : "columns");
  }
  shape.in_h = *layer.in_h, shape.in_w = *layer.in_w;
  return shape;
}

void check_finite(const std::vector<float>& values, const std::string& what, const std::vector<std::int64_t>& shape,
                  const std::string& at) {
  const auto found = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found == values.end()) return;
  std::vector<std::int64_t> index(shape.size());
  auto flat = static_cast<std::int64_t>(found - values.begin());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  bad_input(at, "{}[{}] is {}; weights must be finite", what, fmt::join(index, ","),
            std::isnan(*found) ? "NaN"
            : *found > 0       ? "infinity"
                               : "-infinity");
}

ConvLayer make_layer(const LayerGeometry& geometry, const LayerTensors& tensors, const TensorTable& table,
                     const ImportOptions& options) {
  const std::string& at = geometry.place.text;
  check_name(geometry);
  if (tensors.weight == nullptr) {
    bad_input(at, "its weights {} are not in the file{}", in_quotes(tensors.weight_name),
              did_you_mean(tensors.weight_name, table.names()));
  }
  ConvLayer layer;
  layer.name = geometry.name;
  layer.shape = make_shape(geometry, *tensors.weight);
  layer.weights = TensorTable::values(*tensors.weight);
  check_finite(layer.weights, "weight", tensors.weight->values->shape, at);
  // Also turns -0 into 0, which no later stage needs to know apart.
  for (float& weight : layer.weights) weight = std::abs(weight) <= options.zero_threshold ? 0.0F : weight;

  if (tensors.bias != nullptr) {
    const auto& shape = tensors.bias->values->shape;
    if (tensors.bias->values->elements() != layer.shape.out_channels) {
      bad_input(at, "bias {} has the shape {}, but there are {} output channels", in_quotes(tensors.bias->name),
                extents_text(shape), layer.shape.out_channels);
    }
    layer.bias = TensorTable::values(*tensors.bias);
    check_finite(layer.bias, "bias", {layer.shape.out_channels}, at);
  } else if (geometry.bias == LayerGeometry::Bias::required) {
    bad_input(at, "its bias {} is not in the file{}", in_quotes(tensors.bias_name),
              did_you_mean(tensors.bias_name, table.names()));
  }
  Epilogue& epilogue = layer.shape.epilogue;
  epilogue.bias = tensors.bias != nullptr;
  epilogue.function = function_of(options.activation.value_or(geometry.activation), geometry.leaky_slope);
  if (options.own_activation != nullptr) epilogue.function = *options.ending();
  if (const auto faults = verify(layer); !faults.empty()) bad_input(at, "{}", fmt::join(faults, "; "));
  return layer;
}

}  // namespace

void check_zero_threshold(const ImportOptions& options) {
  if (options.zero_threshold >= 0 && std::isfinite(options.zero_threshold)) return;
  fail(ErrorKind::usage, "--zero-threshold is {}; it must be a finite number, at least 0", options.zero_threshold);
}

void note_tiny_weights(Network& network) {
  std::int64_t tiny_weights = 0, nonzeros_of_tiny = 0;
  std::size_t tiny_layers = 0;
  for (const ConvLayer& layer : network.layers) {
    float largest = 0;
    for (const float weight : layer.weights) largest = std::max(largest, std::abs(weight));
    std::int64_t tiny = 0, nonzeros = 0;
    for (const float weight : layer.weights) {
      nonzeros += weight != 0 ? 1 : 0;
      tiny += weight != 0 && std::abs(weight) < kTinyFactor * largest ? 1 : 0;
    }
    if (static_cast<double>(tiny) <= kTinyShare * static_cast<double>(nonzeros)) continue;
    ++tiny_layers;
    tiny_weights += tiny;
    nonzeros_of_tiny += nonzeros;
  }
  if (tiny_layers == 0) return;
  network.notes.push_back(fmt::format(
      "{} of {} layers hold many weights that are tiny but not zero ({} of their {} nonzeros are below {:g} of the "
      "layer's largest); --zero-threshold T treats |w| <= T as zero",
      tiny_layers, network.layers.size(), tiny_weights, nonzeros_of_tiny, kTinyFactor));
}

Network build_network(const WeightsFile& file, const ImportOptions& options) {
  check_zero_threshold(options);
  TensorTable table(file);
  const Geometry geometry = find_geometry(file, table, options);
  Network network;
  network.source = file.path;
  network.notes = file.notes;

  std::vector<std::string> names;
  for (const LayerGeometry& each : geometry.layers) {
    names.push_back(each.name);
    const LayerTensors tensors = find_tensors(each, table);
    // Layers that were not asked for keep their tensors to themselves: those are not left over.
    if (tensors.weight != nullptr) tensors.weight->used = true;
    if (tensors.bias != nullptr) tensors.bias->used = true;
    if (options.layer_glob && !glob_match(*options.layer_glob, each.name)) continue;
    network.layers.push_back(make_layer(each, tensors, table, options));
  }
  if (network.layers.empty()) {
    const std::string& glob = options.layer_glob.value_or("");
    usage(file.path, "no layer matches {}; there are {}{}", in_quotes(glob), listed(names), did_you_mean(glob, names));
  }

  TensorTable::Leftover leftover = table.leftover();
  network.leftover = std::move(leftover.tensors);
  if (!leftover.not_float.empty()) {
    network.notes.push_back(fmt::format("{}: tensors that are not floating-point are left out of the package: {}",
                                        file.path, listed(leftover.not_float)));
  }
  if (!geometry.unknown.empty()) {
    network.notes.push_back(
        fmt::format("the geometry has attributes that burin does not know and ignores: {}", listed(geometry.unknown)));
  }
  if (options.zero_threshold == 0) note_tiny_weights(network);
  separate_layers(network);
  return network;
}

}  // namespace burin
