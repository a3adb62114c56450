// burin run: a package's network, or one layer, on input from files.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/file_kind.h"
#include "compiler/cli/network_run.h"
#include "compiler/cli/npy_reader.h"
#include "compiler/cli/npy_writer.h"
#include "compiler/cli/output_paths.h"
#include "compiler/execute/layer_executor.h"
#include "compiler/import/names.h"
#include "compiler/import/suggest.h"
#include "compiler/import/weights_tensor.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/precision.h"

namespace burin {
namespace {

struct RunArguments {
  std::string package;
  std::optional<std::string> layer, residual;
  std::vector<std::string> inputs, outputs;
  std::string device = "auto";
};

int batch_of(const NpyTensor& tensor, const std::string& path, const std::string& what, int channels, int height,
             int width) {
  return images_of(tensor, path, "the layer's " + what, {channels, height, width});
}

const Kernel& kernel_of(const Manifest& manifest, const std::string& layer, int batch) {
  if (const Kernel* kernel = kernel_for(manifest, layer, batch)) return *kernel;
  std::vector<std::string> names;
  for (const Kernel& kernel : manifest.kernels)
    if (kernel.is_convolution()) names.push_back(kernel.op);
  fail(ErrorKind::usage, "the package has no layer '{}'{}; it has {}", layer, did_you_mean(layer, names),
       listed(nearest_first(layer, names)));
}

// Values that the kernel's tensors cannot hold.
void note_overflow(const std::string& path, const NpyTensor& tensor, ElementType element) {
  const auto count = std::ranges::count_if(
      tensor.values, [&](float value) { return std::isfinite(value) && !std::isfinite(rounded(element, value)); });
  if (count == 0) return;
  print_note(fmt::format("{}: {} of {} values become infinite: the kernel reads {}, whose largest number is {:g}", path,
                         count, tensor.values.size(), to_string(element), largest_of(element)));
}

const std::string& one_file(const char* option, const std::vector<std::string>& files) {
  if (files.size() != 1) fail(ErrorKind::usage, "{} is given {} times; a layer has one", option, files.size());
  return files.front();
}

int run_layer(const RunArguments& arguments, const Package& package) {
  const std::string &name = *arguments.layer, &input_file = one_file("--input", arguments.inputs),
                    &output_file = one_file("--output", arguments.outputs);
  const ConvShape& shape = kernel_of(package.manifest, name, 1).layer->shape;
  check_output_file("--output", output_file, {arguments.package});
  const NpyTensor input = read_npy(input_file);
  const int batch = batch_of(input, input_file, "input", shape.in_channels, shape.in_h, shape.in_w);
  if (shape.epilogue.residual != arguments.residual.has_value()) {
    fail(ErrorKind::usage, "layer '{}' {}", name,
         shape.epilogue.residual ? "adds a residual; give it with --residual"
                                 : "adds no residual, but --residual is given");
  }
  NpyTensor residual;
  if (arguments.residual) {
    residual = read_npy(*arguments.residual);
    const int images =
        batch_of(residual, *arguments.residual, "residual", shape.out_channels, shape.conv_h(), shape.conv_w());
    if (images != batch)
      fail(ErrorKind::bad_input, "{}: holds {} images, but {} holds {}", *arguments.residual, images, input_file,
           batch);
  }

  const Kernel& kernel = kernel_of(package.manifest, name, batch);
  note_overflow(input_file, input, kernel.form.input().element);
  if (arguments.residual) note_overflow(*arguments.residual, residual, kernel.form.output().element);
  const std::unique_ptr<Executor> executor = make_executor(device_for(arguments.device), package);
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements()) * static_cast<std::size_t>(batch),
                            std::numeric_limits<float>::quiet_NaN());
  executor->run(kernel, batch, input.values, residual.values, output);
  print_step(fmt::format("running: {} b{}", name, batch));

  std::vector<std::int64_t> output_shape = {shape.out_channels, shape.out_h(), shape.out_w()};
  if (input.shape.size() == 4) output_shape.insert(output_shape.begin(), batch);
  write_npy(output_file, output_shape, output);
  const bool fp32 = kernel.precision == to_string(Precision::fp32);
  print_data(fmt::format("{}: float32 {} of layer '{}'{} on {}\n", output_file, extents_text(output_shape), name,
                         fp32 ? "" : fmt::format(" ({})", kernel.precision), executor->name()));
  return 0;
}

int run(const RunArguments& arguments) {
  const Package package = read_given_package(arguments.package);
  if (arguments.layer) return run_layer(arguments, package);
  if (!package.manifest.network) {
    fail(ErrorKind::usage, "{} holds layers, not a whole network: say which one with --layer NAME", arguments.package);
  }
  if (arguments.residual) fail(ErrorKind::usage, "--residual is for a layer: give --layer NAME");
  return run_network_package({arguments.package, arguments.inputs, arguments.outputs, arguments.device}, package);
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a package's network, or one of its layers, on input from files");
  command->add_option("PACKAGE", arguments->package, "A .burin file")->required()->type_name("");
  command->add_option("--layer", arguments->layer, "The layer's name (default: the whole network)")->type_name("NAME");
  command
      ->add_option("--input", arguments->inputs,
                   "The input, [N,C,H,W] or [C,H,W], as .npy; NAME=FILE for each where the network has several")
      ->required()
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_option("--output", arguments->outputs, "Where the output goes, as .npy; NAME=FILE for each of several")
      ->required()
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_option("--residual", arguments->residual, "Layer: what it adds before its activation, as .npy")
      ->type_name("FILE");
  command->add_option("--device", arguments->device, "auto (default), host, cuda or cuda:N")->type_name("DEVICE");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace burin
