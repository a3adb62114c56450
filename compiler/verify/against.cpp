// What a package is compared with.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "compiler/import/faults.h"
#include "compiler/import/import.h"
#include "compiler/import/names.h"
#include "compiler/verify/verification.h"
#include "ir/package/manifest_index.h"

namespace burin {
namespace {

void check_arguments(const Network& model, const char* what, const std::vector<int>& have,
                     const std::vector<const Buffer*>& want) {
  const auto describe = [](const std::string& name, const std::vector<std::int64_t>& shape) {
    return fmt::format("{} ({})", name, shape_text(shape));
  };
  std::vector<std::string> has, wants;
  for (const int index : have) {
    const Activations& tensor = model.tensors[static_cast<std::size_t>(index)];
    has.push_back(describe(tensor.name, tensor.shape));
  }
  for (const Buffer* argument : want) wants.push_back(describe(argument->tensor, argument->shape));
  if (has == wants) return;
  bad_input(model.source, "its {} are {}, those of the package {}", what, fmt::join(has, ", "), fmt::join(wants, ", "));
}

// The model with the package's size of images. That nobody typed, so a model that has no use for it is another one.
Network import_model(const std::string& path, const Manifest& manifest, ImportOptions options) {
  if (!has_ending(path, ".onnx")) {
    bad_input(path, "is no .onnx file, but the package holds a network: it is compared with its model");
  }
  const std::vector<const Buffer*> inputs = manifest.programs.front().inputs();
  // A model may leave its image's size open, or have been compiled for another.
  if (inputs.size() == 1 && inputs.front()->shape.size() == 3) {
    options.flags.input_shape = fmt::format("{}", fmt::join(inputs.front()->shape, "x"));
  }
  // The package's outputs may be others than the model's.
  for (const Buffer* output : manifest.programs.front().outputs()) options.outputs.push_back(output->tensor);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return import_network(path, options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
    }
    options.outputs.clear();
  }
  bad_input(path, "its inputs cannot be those of the package, which has {} ({})", inputs.front()->tensor,
            shape_text(inputs.front()->shape));
}

// A bare array says nothing of its geometry; the package does.
GeometryFlags flags_of(const ConvShape& shape) {
  GeometryFlags flags;
  flags.input_shape = fmt::format("{}x{}x{}", shape.in_channels, shape.in_h, shape.in_w);
  flags.stride = fmt::format("{}x{}", shape.stride_h, shape.stride_w);
  flags.pad = fmt::format("{},{},{},{}", shape.pad.top, shape.pad.bottom, shape.pad.left, shape.pad.right);
  flags.dilation = fmt::format("{}x{}", shape.dilation_h, shape.dilation_w);
  flags.groups = shape.groups;
  return flags;
}

[[noreturn]] void refuse_layer(const Network& network, const std::string& name) {
  std::vector<std::string> names;
  for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
  bad_input(network.source, "has no layer '{}', which the package was compiled from{}", name,
            did_you_mean(name, names));
}

const ConvShape& shape_of(const ManifestIndex& index, const std::string& name) {
  const Kernel& kernel = index.kernel(index.programs(name).front()->steps.front().kernel);
  BURIN_CHECK(kernel.layer, "the program '{}' of a package is no layer", name);
  return kernel.layer->shape;
}

// The file's weights in the package's shapes, and after them the layers that the package lacks.
Network pair_layers(const Network& imported, const Manifest& manifest, const std::optional<std::string>& layer_glob) {
  const std::vector<std::string> names = program_names(manifest);
  const bool only_one = names.size() == 1 && imported.layers.size() == 1;
  const ManifestIndex index(manifest);
  std::map<std::string_view, const ConvLayer*> layers;
  for (const ConvLayer& layer : imported.layers) layers.emplace(layer.name, &layer);
  Network paired;
  paired.source = imported.source;
  for (const std::string& name : names) {
    if (!matches(layer_glob, name)) continue;
    if (only_one) layers = {{name, &imported.layers.front()}};
    const auto found = layers.find(name);
    if (found == layers.end()) refuse_layer(imported, name);
    const ConvLayer& source = *found->second;
    const ConvShape &have = source.shape, &want = shape_of(index, name);
    const bool same_weights = have.out_channels == want.out_channels &&
                              have.channels_per_group() == want.channels_per_group() &&
                              have.kernel_h == want.kernel_h && have.kernel_w == want.kernel_w;
    if (!same_weights) {
      bad_input(imported.source,
                "weights of layer '{}' are [{},{},{},{}], but the package was compiled from [{},{},{},{}]", source.name,
                have.out_channels, have.channels_per_group(), have.kernel_h, have.kernel_w, want.out_channels,
                want.channels_per_group(), want.kernel_h, want.kernel_w);
    }
    if (have.epilogue.bias != want.epilogue.bias) {
      bad_input(imported.source, "layer '{}' has {} bias, but the package was compiled with {}", source.name,
                have.epilogue.bias ? "a" : "no", want.epilogue.bias ? "one" : "none");
    }
    ConvLayer& layer = paired.layers.emplace_back(source);
    layer.name = name;
    layer.shape = want;
  }
  for (const ConvLayer& layer : imported.layers) {
    const bool here = only_one || !index.programs(layer.name).empty();
    if (!here && matches(layer_glob, layer.name)) paired.layers.push_back(layer);
  }
  if (paired.layers.empty()) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer_glob);
  separate_layers(paired);
  return paired;
}

}  // namespace

Network reference_of(Network imported, const Manifest& manifest, const std::optional<std::string>& layer) {
  if (holds_layers(manifest)) return pair_layers(imported, manifest, layer);
  check_arguments(imported, "inputs", imported.inputs, manifest.programs.front().inputs());
  check_arguments(imported, "outputs", imported.outputs, manifest.programs.front().outputs());
  return imported;
}

Network import_reference(const std::string& path, const Manifest& manifest, const std::optional<std::string>& geometry,
                         const std::optional<std::string>& layer, std::shared_ptr<FunctionSource> operators) {
  if (manifest.programs.empty()) fail(ErrorKind::bad_input, "the package holds no programs that could be compared");
  ImportOptions options;
  options.zero_threshold = manifest.zero_threshold;
  options.quantized = manifest.quantized;
  options.operators = std::move(operators);
  if (!holds_layers(manifest)) return reference_of(import_model(path, manifest, options), manifest, layer);
  options.geometry_file = geometry;
  if (!geometry && has_ending(path, ".npy"))
    options.flags = flags_of(shape_of(ManifestIndex(manifest), manifest.programs[0].name));
  return reference_of(import_network(path, options), manifest, layer);
}

}  // namespace burin
