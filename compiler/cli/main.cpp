// burin, the command line tool: parses, calls one command, and turns every fault into a line on stderr and an exit
// code.
#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <string>

#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr const char* kDescription =
    "burin compiles pruned convolutional networks for NVIDIA GPUs: a model (ONNX), or the weights of single layers,\n"
    "goes in, and a package of CUDA kernels comes out; where it pays, their code holds the nonzero weights alone.\n"
    "To begin with: burin compile model.onnx, then burin verify model.burin --against model.onnx";
constexpr const char* kFooter =
    "Exit codes: 0 ok, 1 verification failed, 2 usage, 3 bad input file, 4 unsupported, 5 device.\n"
    "burin COMMAND --help shows a command's options; docs/cli.md shows examples.";

int run(int argc, char** argv) {
  CLI::App app(kDescription, "burin");
  app.footer(kFooter);
  app.set_version_flag("--version", "burin " BURIN_VERSION);
  app.set_help_flag("-h,--help", "Show this and exit");
  app.require_subcommand(1);
  Action action;
  add_compile_command(app, action);
  add_tune_command(app, action);
  add_inspect_command(app, action);
  add_run_command(app, action);
  add_verify_command(app, action);
  add_bench_command(app, action);
  add_report_command(app, action);
  add_study_command(app, action);
  add_doctor_command(app, action);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) add_console_options(*command);

  if (argc < 2) {
    print_error("no command given\n");
    print_help(app.help());
    return exit_code(ErrorKind::usage);
  }
  check_names(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help or --version, which CLI11 reports by throwing
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::usage, "{}", describe_parse_error(app, error));
  }
  return action();
}

}  // namespace
}  // namespace burin

int main(int argc, char** argv) {
  using burin::ErrorKind;
  burin::prepare_streams();
  try {
    return burin::run(argc, argv);
  } catch (const burin::Error& error) {
    burin::print_error(error.what());
    return burin::exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    burin::print_error("out of memory; where there is --jobs, fewer need less");
    return burin::exit_code(ErrorKind::device);
  } catch (const std::exception& error) {
    burin::print_error(fmt::format("internal error: {}", error.what()));
  }
  return burin::exit_code(ErrorKind::internal);
}
