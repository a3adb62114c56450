// The public interface of the compiler, over the pipeline.
#include "compiler/burin/compiler.hpp"

#include "compiler/embed/settings.h"
#include "compiler/execute/executor.h"
#include "compiler/import/import.h"
#include "compiler/import/onnx/onnx_import.h"
#include "compiler/verify/verification.h"
#include "ir/error.h"

namespace burin {
namespace {

ImportOptions import_options(const ReadSettings& settings) {
  ImportOptions options;
  options.flags.input_shape = settings.input_shape;
  options.geometry_file = settings.geometry_file;
  options.layer_glob = settings.layer;
  options.zero_threshold = settings.zero_threshold;
  const std::optional<QuantizedPairs> quantized = parse_enum<QuantizedPairs>(settings.quantized);
  if (!quantized) {
    fail(ErrorKind::usage, "quantized '{}' is not one of {}", settings.quantized, known_names<QuantizedPairs>());
  }
  options.quantized = *quantized;
  return options;
}

ConvLayer layer_of(const PrunedLayer& pruned) {
  ConvLayer layer;
  layer.name = pruned.name;
  ConvShape& shape = layer.shape;
  shape.in_channels = pruned.in_channels;
  shape.out_channels = pruned.out_channels;
  shape.groups = pruned.groups;
  shape.in_h = pruned.in_height;
  shape.in_w = pruned.in_width;
  shape.kernel_h = pruned.kernel_height;
  shape.kernel_w = pruned.kernel_width;
  shape.stride_h = pruned.stride_height;
  shape.stride_w = pruned.stride_width;
  shape.pad = {pruned.pad_top, pruned.pad_bottom, pruned.pad_left, pruned.pad_right};
  shape.dilation_h = pruned.dilation_height;
  shape.dilation_w = pruned.dilation_width;
  shape.epilogue.bias = !pruned.bias.empty();
  shape.epilogue.residual = pruned.residual;
  const std::optional<Activation> activation = parse_enum<Activation>(pruned.activation);
  if (!activation) {
    fail(ErrorKind::usage, "layer '{}': activation '{}' is not one of {}", pruned.name, pruned.activation,
         known_names<Activation>());
  }
  shape.epilogue.function = function_of(*activation);
  layer.weights = pruned.weights;
  layer.bias = pruned.bias;
  if (const auto faults = verify(layer); !faults.empty()) {
    fail(ErrorKind::bad_input, "layer '{}': {}", pruned.name, faults.front());
  }
  return layer;
}

VerifiedOutput output_of(const VerifiedProgram& result, std::size_t index) {
  const OutputResult& output = result.outputs[index];
  return {result.program->name,          result.program->outputs()[index]->tensor, result.batch, output.passed,
          output.comparison.worst_ratio, output.comparison.relative_error,         output.fault};
}

}  // namespace

Model Model::read(const std::string& path, const ReadSettings& settings) {
  return Model(std::make_shared<const Network>(import_network(path, import_options(settings))));
}

Model Model::from_onnx(std::string_view bytes, const std::string& name, const ReadSettings& settings) {
  return Model(std::make_shared<const Network>(import_onnx(bytes, name, import_options(settings))));
}

Model Model::from_layers(const std::vector<PrunedLayer>& layers, const std::string& name) {
  Network network;
  network.source = name;
  for (const PrunedLayer& layer : layers) network.layers.push_back(layer_of(layer));
  if (layers.empty()) fail(ErrorKind::usage, "{}: there are no layers", name);
  separate_layers(network);
  if (const auto faults = burin::verify(network); !faults.empty()) {
    fail(ErrorKind::bad_input, "{}: {}", name, faults.front());
  }
  return Model(std::make_shared<const Network>(std::move(network)));
}

std::vector<std::string> Model::layers() const {
  std::vector<std::string> names;
  for (const ConvLayer& layer : network_->layers) names.push_back(layer.name);
  return names;
}

const std::vector<std::string>& Model::notes() const { return network_->notes; }

Compiled compile(const Model& model, const CompileSettings& settings, const CompileWatch& watch) {
  const auto tell = [&](const CompileState& state) {
    if (watch && !watch(state)) throw Cancelled();
  };
  const PipelineWatch pipeline = {
      [&](const CalibrateProgress& state) {
        tell({fmt::format("calibrated {}", state.what), state.done, state.total, 0});
      },
      [&](const TuneProgress& state) {
        tell({fmt::format("tuned {} b{}", state.layer, state.batch), state.kernels_done, state.kernels, 0});
      },
      [&](const CompileProgress& state) { tell({state.what, state.done, state.total, state.work_done}); }};
  Network network = *model.network();
  network.notes.clear();  // the model has told them
  CompileResult result = run_pipeline(std::move(network), options_of(settings), settings, pipeline);
  return {std::make_shared<const Package>(std::move(result.package)), std::move(result.notes), result.cached};
}

void save(const Package& package, const std::string& path) { write_package(package, path); }

Verified verify(const Package& package, const Model& model, const VerifySettings& settings) {
  const Network reference = reference_of(*model.network(), package.manifest, std::nullopt);
  const std::unique_ptr<Executor> executor = make_executor(choose_device(settings.device), package);
  const VerifyOptions options{.batch = settings.batch,
                              .seed = settings.seed,
                              .images = settings.images,
                              .steps = settings.layers,
                              .layer = {},
                              .code = settings.code};
  const Verification verification = verify_programs(package, reference, options, *executor);
  Verified verified{verification.passed(), executor->name(), {}};
  for (const VerifiedProgram& result : verification.results) {
    for (std::size_t i = 0; i < result.outputs.size(); ++i) verified.outputs.push_back(output_of(result, i));
    for (const std::string& fault : {result.fault, result.step_fault}) {
      if (!fault.empty()) verified.outputs.push_back({result.program->name, "", result.batch, false, 0, 0, fault});
    }
  }
  if (verification.code) {
    for (const std::string& fault : verification.code->different) {
      verified.outputs.push_back({"", "", 0, false, 0, 0, fault});
    }
  }
  for (const std::string& layer : verification.missing) {
    verified.outputs.push_back({layer, "", 0, false, 0, 0, "the package lacks this layer of the model"});
  }
  return verified;
}

}  // namespace burin
