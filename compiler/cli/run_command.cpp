// burin run: a package's network, or one layer, on input from files.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/cli/tensor_files.h"
#include "compiler/execute/executor.h"
#include "compiler/functions/user_operators.h"
#include "compiler/import/names.h"
#include "compiler/import/weights_tensor.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "ir/package/manifest_index.h"

namespace burin {
namespace {

struct RunArguments {
  std::string package;
  std::optional<std::string> layer;
  std::vector<std::string> inputs, outputs;
  std::string device = "auto";
  std::vector<std::string> own_operators;
};

// Leaves the programs of one layer. In a network, the convolution's kernels become programs of their own.
void keep_layer(Manifest& manifest, const std::string& layer) {
  if (std::erase_if(manifest.programs, [&](const Program& p) { return p.name != layer; });
      !manifest.programs.empty() && holds_layers(manifest)) {
    return;
  }
  manifest.programs.clear();
  for (const Kernel& kernel : manifest.kernels) {
    if (kernel.is_convolution() && kernel.op == layer)
      manifest.programs.push_back(program_of(kernel, std::max(1, kernel.planned_batch)));
  }
  if (manifest.programs.empty()) {
    const std::vector<std::string> names = ManifestIndex(manifest).convolutions();
    fail(ErrorKind::usage, "the package has no layer '{}'{}; it has {}", layer, did_you_mean(layer, names),
         listed(nearest_first(layer, names)));
  }
  std::ranges::sort(manifest.programs, {}, &Program::batch);
}

// An argument that a person gives or takes: maps are neither. The names of a layer's begin with the layer's own, which
// nobody has to repeat.
struct Argument {
  std::string name;
  const Buffer* buffer = nullptr;
};

std::vector<Argument> arguments_of(const Program& program, BufferHome home) {
  std::vector<Argument> arguments;
  for (const Buffer* buffer : program.arguments(home)) {
    if (buffer->map) continue;
    const bool prefixed = buffer->tensor.starts_with(program.name + ".");
    arguments.push_back({prefixed ? buffer->tensor.substr(program.name.size() + 1) : buffer->tensor, buffer});
  }
  return arguments;
}

std::vector<std::string> names_of(const std::vector<Argument>& arguments) {
  std::vector<std::string> names;
  for (const Argument& argument : arguments) names.push_back(argument.name);
  return names;
}

// Values that the program's tensors cannot hold.
void note_overflow(const std::string& path, const NpyTensor& tensor, ElementType element) {
  const auto count = std::ranges::count_if(
      tensor.values, [&](float value) { return std::isfinite(value) && !std::isfinite(rounded(element, value)); });
  if (count == 0) return;
  print_note(fmt::format("{}: {} of {} values become infinite: the kernel reads {}, whose largest number is {:g}", path,
                         count, tensor.values.size(), to_string(element), largest_of(element)));
}

// What each input of the program is given: of maps, that everything is live.
struct GivenInputs {
  Tensors tensors;
  int batch = 0;
  bool batched = false;  // images stand behind a number of them
};

GivenInputs read_inputs(const std::vector<const Program*>& programs, const std::vector<Argument>& arguments,
                        const std::vector<std::string>& files, const std::string& what) {
  GivenInputs given;
  given.tensors.resize(programs.front()->inputs().size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Buffer& buffer = *arguments[i].buffer;
    const ElementType element = buffer.format.is_loose() ? buffer.format.element : ElementType::f32;
    NpyTensor tensor = read_npy(files[i], element);
    const int images =
        images_of(tensor, files[i], fmt::format("{}'s input '{}'", what, arguments[i].name), buffer.shape);
    if (i > 0 && images != given.batch) {
      fail(ErrorKind::bad_input, "{}: holds {} images, but {} holds {}", files[i], images, files[0], given.batch);
    }
    given.batch = images;
    given.batched = given.batched || tensor.shape.size() > buffer.shape.size();
    note_overflow(files[i], tensor, buffer.format.element);
    print_step(
        fmt::format("read {}: {} image{} of input '{}'", files[i], images, images == 1 ? "" : "s", arguments[i].name));
    given.tensors[static_cast<std::size_t>(buffer.argument)] = std::move(tensor.values);
  }
  const Program& program = program_for(programs, given.batch);
  for (const Buffer* buffer : program.inputs()) {
    if (!buffer->map) continue;
    given.tensors[static_cast<std::size_t>(buffer->argument)].assign(
        static_cast<std::size_t>(program.bytes(*buffer, given.batch)), 1);
  }
  return given;
}

int run(const RunArguments& arguments) {
  Package package = read_given_package(arguments.package);
  if (arguments.layer) keep_layer(package.manifest, *arguments.layer);
  const std::vector<std::string> names = program_names(package.manifest);
  if (names.size() != 1) {
    fail(ErrorKind::usage, "{} holds {} layers, not a whole network: say which one with --layer NAME",
         arguments.package, names.size());
  }
  const std::vector<const Program*> programs = ManifestIndex(package.manifest).programs(names.front());
  const Program& program = *programs.front();
  const std::string what =
      holds_layers(package.manifest) ? fmt::format("layer '{}'", program.name) : std::string("the network");
  const std::vector<Argument> inputs = arguments_of(program, BufferHome::input),
                              outputs = arguments_of(program, BufferHome::output);
  const std::vector<std::string> input_files = files_of({"--input", "input"}, arguments.inputs, names_of(inputs), what);
  const std::vector<std::string> output_files =
      files_of({"--output", "output"}, arguments.outputs, names_of(outputs), what);
  check_output_files("--output", output_files, {arguments.package});
  const GivenInputs given = read_inputs(programs, inputs, input_files, what);
  UserOperators operators(arguments.own_operators);
  HostFunctions functions;
  const DeviceChoice device = device_for(arguments.device);
  if (!device.host && !arguments.own_operators.empty()) {
    fail(ErrorKind::usage, "--operator has no effect here: a GPU runs the code that the package has");
  }
  functions = operators.give(package.manifest);
  operators.check_used(arguments.package);
  const std::unique_ptr<Executor> executor = make_executor(device, package, 0, {}, std::move(functions));
  print_step(fmt::format("running: {} b{}", program.name, given.batch));
  const Tensors made = run_programs(*executor, programs, given.batch, given.tensors);
  for (const std::string& note : executor->notes()) print_note(note);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Buffer& buffer = *outputs[i].buffer;
    std::vector<std::int64_t> shape = buffer.shape;
    if (given.batched) shape.insert(shape.begin(), given.batch);
    const bool loose = buffer.format.is_loose();  // halves as the caller has them
    const ElementType element = loose ? buffer.format.element : ElementType::f32;
    write_npy(output_files[i], shape, made[static_cast<std::size_t>(buffer.argument)], element);
    const bool only_one = holds_layers(package.manifest) && outputs.size() == 1;
    print_data(fmt::format("{}: {} {} of {}{} on {}\n", output_files[i], npy_type_text(element), extents_text(shape),
                           only_one ? what : fmt::format("output '{}'", outputs[i].name),
                           buffer.format.is_plain() || loose ? "" : fmt::format(" ({})", to_string(buffer.format)),
                           executor->name()));
  }
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a package's network, or one of its layers, on input from files");
  add_option(*command, "PACKAGE", arguments->package, "A .burin file");
  add_operator_option(*command, arguments->own_operators);
  add_option(*command, "--layer NAME", arguments->layer, "The layer's name (default: the whole network)");
  add_option(*command, "--input FILE", arguments->inputs,
             "The input, [N,C,H,W] or [C,H,W], as .npy; NAME=FILE for each of several: a layer's residual")
      ->required()
      ->expected(1)
      ->take_all();
  add_option(*command, "--output FILE", arguments->outputs,
             "Where the output goes, as .npy; NAME=FILE for each of several")
      ->required()
      ->expected(1)
      ->take_all();
  add_option(*command, "--device DEVICE", arguments->device, "auto (default), host, cuda or cuda:N");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace burin
