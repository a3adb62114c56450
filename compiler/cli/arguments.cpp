#include "compiler/cli/arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>

#include "compiler/cli/console.h"
#include "compiler/functions/user_operators.h"
#include "compiler/import/names.h"
#include "ir/arch.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/text.h"

namespace burin {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

bool is_known(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_option(const CLI::App& command, const std::string& prefix, std::string_view argument) {
  const std::string name(argument.substr(0, argument.find('=')));
  const std::vector<std::string> names = option_names(command);
  if (is_known(names, name)) return;
  fail(ErrorKind::usage, "{} has no option '{}'{} ({} --help lists them)", prefix, name, did_you_mean(name, names),
       prefix);
}

// The extents of `layer`'s image, limited to what --max-extent asks for but never below one output pixel.
void crop(ConvLayer& layer, int max_extent) {
  ConvShape& shape = layer.shape;
  const auto cropped = [max_extent](int extent, int kernel, int dilation, int pad) {
    const int smallest = std::max(1, (kernel - 1) * dilation + 1 - pad);
    return std::min(extent, std::max(max_extent, smallest));
  };
  shape.in_h = cropped(shape.in_h, shape.kernel_h, shape.dilation_h, shape.pad.top + shape.pad.bottom);
  shape.in_w = cropped(shape.in_w, shape.kernel_w, shape.dilation_w, shape.pad.left + shape.pad.right);
}

}  // namespace

void check_names(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = nullptr;
  std::string prefix = "burin";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") return;
    if (argument.starts_with("--")) {
      check_option(command != nullptr ? *command : app, prefix, argument);
    } else if (argument.size() == 2 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1]))) {
      check_option(command != nullptr ? *command : app, prefix, argument);
    } else if (command == nullptr) {
      const std::vector<std::string> names = command_names(app);
      if (!is_known(names, argument)) {
        fail(ErrorKind::usage, "there is no command '{}'{} (burin --help lists them)", argument,
             did_you_mean(argument, names));
      }
      command = app.get_subcommand(std::string(argument));
      prefix += fmt::format(" {}", argument);
    }
  }
}

std::string describe_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const std::string prefix = commands.empty() ? "burin" : "burin " + commands.front()->get_name();
  return fmt::format("{}: {} ({} --help shows how)", prefix, trim(error.what()), prefix);
}

std::vector<std::string> split_list(const std::string& option, const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    items.push_back(text.substr(at, end - at));
    if (items.back().empty()) fail(ErrorKind::usage, "{} '{}': an item of the list is empty", option, text);
    at = end + 1;
  }
  return items;
}

std::vector<int> parse_batches(const std::string& text) {
  std::vector<int> batches;
  for (const std::string& item : split_list("--batch", text)) {
    const std::optional<int> batch = parse_number<int>(item);
    if (!batch || *batch < 1 || *batch > kMaxBatch)
      fail(ErrorKind::usage, "--batch '{}': '{}' is not a whole number from 1 to {}", text, item, kMaxBatch);
    if (std::find(batches.begin(), batches.end(), *batch) == batches.end()) batches.push_back(*batch);
  }
  return batches;
}

BatchList parse_batch_list(const std::string& text) {
  BatchList list;
  std::string sizes;
  for (const std::string& item : split_list("--batch", text)) {
    const std::size_t dots = item.find("..");
    if (dots == std::string::npos) {
      sizes += (sizes.empty() ? "" : ",") + item;
      continue;
    }
    const std::optional<int> first = parse_number<int>(item.substr(0, dots));
    const std::optional<int> last = parse_number<int>(item.substr(dots + 2));
    if (!first || !last || *first < 1 || *last > kMaxBatch || *first > *last) {
      fail(ErrorKind::usage, "--batch '{}': '{}' is no range from a batch size up, such as 1..32, within 1 to {}", text,
           item, kMaxBatch);
    }
    list.spans.push_back({*first, *last});
  }
  if (!sizes.empty()) list.sizes = parse_batches(sizes);
  return list;
}

double parse_duration(const std::string& option, const std::string& text) {
  const std::map<char, double> units = {{'s', 1}, {'m', 60}, {'h', 3600}};
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  const double seconds =
      unit == units.end() ? 0 : parse_number<int>(text.substr(0, text.size() - 1)).value_or(0) * unit->second;
  if (seconds <= 0) fail(ErrorKind::usage, "{} '{}': is no time such as 90s, 5m or 1h", option, text);
  return seconds;
}

CLI::Validator whole_number(int lowest, int highest) {
  return CLI::Validator(
      [lowest, highest](const std::string& text) {
        const std::optional<int> value = parse_number<int>(text);
        const bool fits = value && *value >= lowest && *value <= highest;
        return fits ? std::string() : fmt::format("'{}' is not a whole number from {} to {}", text, lowest, highest);
      },
      "");
}

const ArchSpec* arch_for_gpu(const std::string& arch) {
  const std::optional<ArchName> name = parse_arch_name(arch);
  return name ? arch_for_device(name->compute) : nullptr;
}

void check_arch(const std::string& name) {
  const std::vector<std::string> names = known_arch_names();
  if (is_known(names, name)) return;
  const auto digits = std::ranges::find_if(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  const std::string full_name = fmt::format("sm_{}", std::string(digits, name.end()));
  const std::optional<int> compute = parse_number<int>(full_name.substr(3));
  if (compute && !is_known(names, full_name) && *compute > known_archs().back().compute) {
    fail(ErrorKind::unsupported,
         "--arch {}: burin makes machine code for {}; --arch {} also puts PTX into the package, which the driver of a "
         "newer GPU compiles when it first loads the package",
         name, fmt::join(names, ", "), arch_for_device(*compute)->name);
  }
  const std::string nearest =
      is_known(names, full_name) ? fmt::format("; did you mean '{}'?", full_name) : did_you_mean(name, names);
  fail(ErrorKind::unsupported, "--arch {}: burin makes machine code for {}{}", name, fmt::join(names, ", "), nearest);
}

void refuse_given(const CLI::App& command, const std::vector<std::string>& options, const std::string& reason) {
  for (const std::string& option : options) {
    const CLI::Option* const known = command.get_option_no_throw(option);  // commands that are alike have not all
    if (known != nullptr && known->count() > 0) fail(ErrorKind::usage, "{} has no effect here: {}", option, reason);
  }
}

void add_console_options(CLI::App& command) {
  CLI::Option* quiet = command.add_flag_callback(
      "-q,--quiet", [] { set_verbosity(Verbosity::quiet); }, "Neither progress nor notes; errors all the same");
  command
      .add_flag_callback(
          "-v,--verbose", [] { set_verbosity(Verbosity::verbose); }, "A line for each kernel or step that is finished")
      ->excludes(quiet);
}

void ImportArguments::add_to(CLI::App& command) {
  add_option(command, "--layer GLOB", options.layer_glob, "Only layers whose name matches (*, ?, [..])");
  add_option(command, "--geometry FILE", options.geometry_file,
             "JSON file with each layer's stride, pad, H, W..., for weights that do not carry it");
  add_option(command, "--input-shape SHAPE", options.flags.input_shape,
             "For one bare array, or a model that leaves it open: CxHxW or HxW");
  add_option(command, "--stride N", options.flags.stride, "For one bare array: N or HxW");
  add_option(command, "--pad N", options.flags.pad, "For one bare array: N, HxW or top,bottom,left,right");
  add_option(command, "--dilation N", options.flags.dilation, "For one bare array: N or HxW");
  add_option(command, "--groups N", options.flags.groups, "For one bare array")->check(whole_number(1, kMaxChannels));
  add_option(command, "--activation NAME", activation,
             "Overrides the layers' activation: " + known_names<Activation>() + ", or one that --operator gives");
  add_operator_option(command, own_operators);
  add_option(command, "--zero-threshold T", options.zero_threshold, "Weights with |w| <= T count as zero (default 0)");
  add_option(command, "--outputs LIST", outputs, "For a model: these tensors are its outputs, e.g. boxes,scores");
  add_option(command, "--quantized HOW", quantized,
             "For a quantized model: what becomes of its pairs around activations: " + known_names<QuantizedPairs>());
  add_option(command, "--max-extent N", max_extent,
             "For tests: crop each layer's input to at most N rows and columns, same padding and stride")
      ->check(whole_number(1, kMaxSpatialExtent));
}

std::vector<std::string> ImportArguments::names() {
  return {"--geometry",   "--input-shape",    "--stride",  "--pad",       "--dilation",   "--groups",
          "--activation", "--zero-threshold", "--outputs", "--quantized", "--max-extent", "--operator"};
}

ImportOptions ImportArguments::checked() const {
  ImportOptions checked = options;
  if (!std::isfinite(checked.zero_threshold) || checked.zero_threshold < 0)
    fail(ErrorKind::usage, "--zero-threshold {}: must be a finite number, 0 or more", checked.zero_threshold);
  if (!own_operators.empty()) checked.operators = std::make_shared<UserOperators>(own_operators);
  if (activation && checked.operators != nullptr && checked.operators->has(*activation)) {
    checked.own_activation = checked.operators->make(*activation, 1, {});
  } else if (activation) {
    checked.activation = parse_enum<Activation>(*activation);
    if (!checked.activation) {
      fail(ErrorKind::usage, "--activation '{}' is not one of {}; --operator {}=FILE.cu gives one of your own",
           *activation, known_names<Activation>(), *activation);
    }
  }
  if (outputs) {
    for (const std::string_view name : split(*outputs, ',')) checked.outputs.emplace_back(name);
  }
  if (quantized) {
    const std::optional<QuantizedPairs> how = parse_enum<QuantizedPairs>(*quantized);
    if (!how) fail(ErrorKind::usage, "--quantized '{}' is not one of {}", *quantized, known_names<QuantizedPairs>());
    checked.quantized = *how;
  }
  return checked;
}

Network ImportArguments::import(const std::string& path) const { return import(path, checked()); }

Network ImportArguments::import(const std::string& path, const ImportOptions& checked) const {
  if (quantized && !has_ending(path, ".onnx")) {
    fail(ErrorKind::usage, "--quantized is for models (.onnx), {} holds weights", path);
  }
  Network network = import_network(path, checked);
  if (const auto* own = dynamic_cast<const UserOperators*>(checked.operators.get())) own->check_used(path);
  for (const std::string& note : network.notes) print_note(note);
  if (max_extent) {
    if (!network.separate) {
      fail(ErrorKind::usage, "--max-extent crops layers one by one, {} is a network; --input-shape makes it smaller",
           path);
    }
    for (ConvLayer& layer : network.layers) crop(layer, *max_extent);
    separate_layers(network);
  }
  return network;
}

void add_operator_option(CLI::App& command, std::vector<std::string>& given) {
  command
      .add_option("--operator", given,
                  "An element-wise operator of your own: of a model's nodes, or as --activation; CUDA C++ (.cu), or a "
                  "library (.so) of it for the host")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->take_all();
}

DeviceChoice device_for(const std::string& text) {
  DeviceChoice choice = choose_device(text);
  if (!choice.note.empty()) print_note(choice.note);
  return choice;
}

}  // namespace burin
