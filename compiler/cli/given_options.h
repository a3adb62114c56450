// Options that a person gave and that would do nothing: whoever gives one wants something, so it is an error.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace burin {

// Throws Error(usage), "--batch has no effect here: REASON", for the first of `options` that was given.
void refuse_given(const CLI::App& command, const std::vector<std::string>& options, const std::string& reason);

// -q and -v, which every command has.
void add_console_options(CLI::App& command);

}  // namespace burin
