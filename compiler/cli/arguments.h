// What the command line says, checked: names with suggestions, lists, choices. Every fault is one Error(usage) that
// names the option and the value.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "compiler/embed/settings.h"
#include "compiler/execute/executor.h"
#include "compiler/import/import.h"
#include "ir/arch.h"

namespace burin {

inline constexpr int kMaxJobs = 1024;  // threads; more is a slip of the finger

// Throws Error(usage) for the first command or option that `app` does not know, with the nearest that it does.
void check_names(const CLI::App& app, int argc, char** argv);

// CLI11's complaint as one line that names the command.
std::string describe_parse_error(const CLI::App& app, const CLI::ParseError& error);

// "1,32" -> {"1", "32"}. An empty item is an error.
std::vector<std::string> split_list(const std::string& option, const std::string& text);

// "1,32" -> {1, 32}: batch sizes from 1 to kMaxBatch, each once.
std::vector<int> parse_batches(const std::string& text);

// "1..32,64": the same, and ranges of them.
struct BatchList {
  std::vector<int> sizes;
  std::vector<BatchSpan> spans;
};
BatchList parse_batch_list(const std::string& text);

// "90s", "5m", "1h": seconds, more than none.
double parse_duration(const std::string& option, const std::string& text);

// Declares an option of a command. `name` also says what the value is in the help: "--batch LIST". One without dashes
// must be given.
template <typename Value>
CLI::Option* add_option(CLI::App& command, const std::string& name, Value& value, const std::string& help) {
  const std::size_t end = std::min(name.find(' '), name.size());
  CLI::Option* const option = command.add_option(name.substr(0, end), value, help)->required(!name.starts_with('-'));
  return option->type_name(name.substr(std::min(end + 1, name.size())));
}

// A check for options: a whole number from `lowest` to `highest`.
CLI::Validator whole_number(int lowest, int highest);

inline constexpr const char* kArchWithoutGpu = "sm_90";  // what is compiled for where there is none
// What is compiled for a GPU of the architecture; null: burin has no code for it.
const ArchSpec* arch_for_gpu(const std::string& arch);
// Throws Error(unsupported) for an architecture that burin makes no machine code for: the one that was meant, or what
// helps.
void check_arch(const std::string& name);

// -q and -v, which every command has.
void add_console_options(CLI::App& command);

// Whoever gives an option wants something, so one that would do nothing is an error. Throws Error(usage), "--batch has
// no effect here: REASON", for the first of `options` that was given.
void refuse_given(const CLI::App& command, const std::vector<std::string>& options, const std::string& reason);

// The options that say how weights are read; the same for every command that reads them.
struct ImportArguments {
  ImportOptions options;
  std::optional<std::string> activation, outputs, quantized;
  std::optional<int> max_extent;
  std::vector<std::string> own_operators;  // NAME=FILE

  void add_to(CLI::App& command);
  // The names of all that add_to() adds but --layer: packages have no use for these.
  static std::vector<std::string> names();
  // The options with all that was given. Throws Error(usage).
  ImportOptions checked() const;
  // The network, with --max-extent applied and its notes printed. Throws Error. What --operator gives is made, and not
  // compiled yet.
  Network import(const std::string& path) const;
  // The same, of options that were checked.
  Network import(const std::string& path, const ImportOptions& options) const;
};

// --operator, of every command that computes with a user's functions.
void add_operator_option(CLI::App& command, std::vector<std::string>& given);

// choose_device(); a note says what is taken instead of a GPU that is not there.
DeviceChoice device_for(const std::string& text);

}  // namespace burin
