// The commands of burin, one file each. add_X_command() declares a command's options; where the command was given,
// parsing stores what is to be done in `action`, whose result is the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace burin {

using Action = std::function<int()>;

void add_compile_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_study_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);

}  // namespace burin
