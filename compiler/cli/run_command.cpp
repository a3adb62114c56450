// burin run: one layer of a package on one input.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/executing.h"
#include "compiler/cli/npy_writer.h"
#include "compiler/cli/suggest.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/precision.h"

namespace burin {
namespace {

struct RunArguments {
  std::string package, layer, input, output;
  std::optional<std::string> residual;
  std::string device = "auto";
};

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

Tensor read_tensor(const std::string& path) {
  const MappedFile file(path);
  const WeightsTensor tensor = parse_npy(file.bytes(), path, path);
  if (!is_float(tensor.type))
    fail(ErrorKind::bad_input, "{}: holds {}, not floating-point numbers", path, tensor.type_name);
  return {tensor.shape, float_values(tensor)};
}

// The images of a tensor that should be [N,C,H,W], or [C,H,W] for one image.
int batch_of(const Tensor& tensor, const std::string& path, const std::string& what, int channels, int height,
             int width) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  const std::vector<std::int64_t> image = {channels, height, width};
  const bool batched = shape.size() == 4;
  const bool fits = (batched || shape.size() == 3) && std::equal(image.rbegin(), image.rend(), shape.rbegin());
  if (!fits || (batched && (shape[0] < 1 || shape[0] > std::numeric_limits<int>::max()))) {
    fail(ErrorKind::bad_input, "{}: has shape {}, but the layer's {} is [N,{},{},{}] or [{},{},{}]", path,
         extents_text(shape), what, channels, height, width, channels, height, width);
  }
  return batched ? static_cast<int>(shape[0]) : 1;
}

const KernelRecord& find_kernel(const Manifest& manifest, const std::string& layer, int batch) {
  if (const KernelRecord* kernel = kernel_for(manifest, layer, batch)) return *kernel;
  std::vector<std::string> names;
  for (const KernelRecord& kernel : manifest.kernels) names.push_back(kernel.layer);
  fail(ErrorKind::usage, "the package has no layer '{}'{}", layer, did_you_mean(layer, names));
}

// Values that the kernel's tensors cannot hold.
void note_overflow(const std::string& path, const Tensor& tensor, ElementType element) {
  const auto count = std::ranges::count_if(
      tensor.values, [&](float value) { return std::isfinite(value) && !std::isfinite(rounded(element, value)); });
  if (count == 0) return;
  print_note(fmt::format("{}: {} of {} values become infinite: the kernel reads {}, whose largest number is {:g}", path,
                         count, tensor.values.size(), to_string(element), largest_of(element)));
}

int run_layer(const RunArguments& arguments) {
  const Package package = read_package(arguments.package);
  const ConvShape& shape = find_kernel(package.manifest, arguments.layer, 1).shape;
  const Tensor input = read_tensor(arguments.input);
  const int batch = batch_of(input, arguments.input, "input", shape.in_channels, shape.in_h, shape.in_w);
  if (shape.epilogue.residual != arguments.residual.has_value()) {
    fail(ErrorKind::usage, "layer '{}' {}", arguments.layer,
         shape.epilogue.residual ? "adds a residual; give it with --residual"
                                 : "adds no residual, but --residual is given");
  }
  Tensor residual;
  if (arguments.residual) {
    residual = read_tensor(*arguments.residual);
    const int images =
        batch_of(residual, *arguments.residual, "residual", shape.out_channels, shape.out_h(), shape.out_w());
    if (images != batch)
      fail(ErrorKind::bad_input, "{}: holds {} images, but {} holds {}", *arguments.residual, images, arguments.input,
           batch);
  }

  const KernelRecord& kernel = find_kernel(package.manifest, arguments.layer, batch);
  note_overflow(arguments.input, input, kernel.launch.input_element);
  if (arguments.residual) note_overflow(*arguments.residual, residual, kernel.launch.output_element);
  const std::unique_ptr<Executor> executor = make_executor(choose_device(arguments.device), package);
  std::vector<float> output(static_cast<std::size_t>(shape.output_elements()) * static_cast<std::size_t>(batch),
                            std::numeric_limits<float>::quiet_NaN());
  executor->run(kernel, batch, input.values, residual.values, output);

  std::vector<std::int64_t> output_shape = {shape.out_channels, shape.out_h(), shape.out_w()};
  if (input.shape.size() == 4) output_shape.insert(output_shape.begin(), batch);
  write_npy(arguments.output, output_shape, output);
  const bool fp32 = kernel.precision == to_string(Precision::fp32);
  print_data(fmt::format("{}: float32 {} of layer '{}'{} on {}\n", arguments.output, extents_text(output_shape),
                         arguments.layer, fp32 ? "" : fmt::format(" ({})", kernel.precision), executor->name()));
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run one layer of a package on an input from a file");
  command->add_option("PACKAGE", arguments->package, "A .burin file")->required()->type_name("");
  command->add_option("--layer", arguments->layer, "The layer's name")->required()->type_name("NAME");
  command->add_option("--input", arguments->input, "The input, [N,C,H,W] or [C,H,W], as .npy")
      ->required()
      ->type_name("FILE");
  command->add_option("--output", arguments->output, "Where the output goes, as .npy")->required()->type_name("FILE");
  command->add_option("--residual", arguments->residual, "What the layer adds before its activation, as .npy")
      ->type_name("FILE");
  command->add_option("--device", arguments->device, "auto (default), host, cuda or cuda:N")->type_name("DEVICE");
  command->callback([arguments, &action] { action = [arguments] { return run_layer(*arguments); }; });
}

}  // namespace burin
