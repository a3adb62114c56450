#include "compiler/cli/given_options.h"

#include "compiler/cli/console.h"
#include "ir/error.h"

namespace burin {

void refuse_given(const CLI::App& command, const std::vector<std::string>& options, const std::string& reason) {
  for (const std::string& option : options) {
    if (command.count(option) > 0) fail(ErrorKind::usage, "{} has no effect here: {}", option, reason);
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

}  // namespace burin
