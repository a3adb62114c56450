#include "compiler/cli/network_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "compiler/cli/arguments.h"
#include "compiler/cli/console.h"
#include "compiler/cli/npy_reader.h"
#include "compiler/cli/npy_writer.h"
#include "compiler/cli/output_paths.h"
#include "compiler/execute/network_executor.h"
#include "compiler/import/names.h"
#include "compiler/import/suggest.h"
#include "ir/error.h"

namespace burin {
namespace {

// NAME=FILE where NAME is not the input's: FILE is there, and there is no file of the whole name.
bool is_misnamed(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  return option == "--input" && equals != std::string::npos && !std::filesystem::exists(text) &&
         std::filesystem::exists(text.substr(equals + 1));
}

// The file of each of the network's inputs, or outputs, in their order.
std::vector<std::string> files_of(const std::string& option, const std::vector<std::string>& given,
                                  const std::vector<NetworkArgument>& arguments) {
  std::vector<std::string> names, files(arguments.size());
  for (const NetworkArgument& argument : arguments) names.push_back(argument.name);
  for (const std::string& text : given) {
    // Names may hold a '=' themselves, and so may files.
    const auto is_named = [&](const std::string& name) { return text.starts_with(name + "="); };
    const auto found = std::ranges::find_if(names, is_named);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (found == names.end() && names.size() == 1 && given.size() == 1 && !is_misnamed(option, text)) {
      files.front() = text;
    } else if (found == names.end()) {
      const std::string name = text.substr(0, text.find('='));
      fail(ErrorKind::usage, "{} {}: the network has no {} '{}'{}; give NAME=FILE for each of {}", option, text,
           option.substr(2), name, did_you_mean(name, names), listed(nearest_first(name, names)));
    } else if (!files[index].empty()) {
      fail(ErrorKind::usage, "{} {}: '{}' is given twice", option, text, names[index]);
    } else {
      files[index] = text.substr(names[index].size() + 1);
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].empty()) continue;
    fail(ErrorKind::usage, "no file is given for the network's {} '{}': {} {}", option.substr(2), names[i], option,
         names.size() == 1 ? "FILE" : names[i] + "=FILE");
  }
  return files;
}

}  // namespace

int run_network_package(const NetworkRunArguments& arguments, const Package& package) {
  const NetworkRecord& network = *package.manifest.network;
  const std::vector<std::string> input_files = files_of("--input", arguments.inputs, network.inputs);
  const std::vector<std::string> output_files = files_of("--output", arguments.outputs, network.outputs);
  check_output_files("--output", output_files, {arguments.package});
  NetworkTensors inputs;
  int batch = 0;
  bool batched = false;
  for (std::size_t i = 0; i < input_files.size(); ++i) {
    const NetworkArgument& argument = network.inputs[i];
    NpyTensor tensor = read_npy(input_files[i]);
    const int images =
        images_of(tensor, input_files[i], fmt::format("the network's input '{}'", argument.name), argument.shape);
    if (i > 0 && images != batch) {
      fail(ErrorKind::bad_input, "{}: holds {} images, but {} holds {}", input_files[i], images, input_files[0], batch);
    }
    batch = images;
    batched = batched || tensor.shape.size() > argument.shape.size();
    inputs.push_back(std::move(tensor.values));
    print_step(
        fmt::format("read {}: {} image{} of input '{}'", input_files[i], batch, batch == 1 ? "" : "s", argument.name));
  }
  const std::unique_ptr<NetworkExecutor> executor = make_network_executor(device_for(arguments.device), package);
  const NetworkTensors outputs = run_network(*executor, network, batch, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::vector<std::int64_t> shape = network.outputs[i].shape;
    if (batched) shape.insert(shape.begin(), batch);
    write_npy(output_files[i], shape, outputs[i]);
    print_data(fmt::format("{}: float32 [{}] of output '{}' on {}\n", output_files[i], fmt::join(shape, ","),
                           network.outputs[i].name, executor->name()));
  }
  return 0;
}

}  // namespace burin
