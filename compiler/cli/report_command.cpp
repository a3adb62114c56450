// burin report: what a package holds and what it takes, as one page for a browser.
#include <filesystem>

#include "compiler/cli/arguments.h"
#include "compiler/cli/bench_figures.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/report/report_document.h"
#include "compiler/cli/report/report_page.h"
#include "compiler/cli/table.h"
#include "ir/error.h"
#include "ir/package/atomic_file.h"

namespace burin {
namespace {

struct ReportArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string package;
  std::optional<std::string> output, arch, dump_dir;
  std::vector<std::string> bench;
  bool json = false;
};

int report(const ReportArguments& arguments) {
  if (arguments.json) refuse_given(*arguments.command, {"--output"}, "--json prints the document, and no page is made");
  const std::string output =
      arguments.output.value_or(std::filesystem::path(arguments.package).stem().string() + ".html");
  if (!arguments.json) {
    std::vector<std::string> inputs = arguments.bench;
    inputs.push_back(arguments.package);
    check_output_file("-o", output, inputs);
  }
  const Package package = read_given_package(arguments.package);
  check_arch_of(package, arguments.arch);
  std::vector<std::string> notes;
  BenchFigures bench;
  for (const std::string& path : arguments.bench) bench.add(path, package.manifest, notes);
  ReportOptions options{
      .package = arguments.package, .arch = arguments.arch, .dump_dir = arguments.dump_dir, .beside = "."};
  if (!arguments.json) options.beside = std::filesystem::absolute(output).parent_path().string();
  const nlohmann::ordered_json document = report_document(package, bench, options, notes);
  for (const std::string& note : notes) print_note(note);
  if (arguments.json) {
    print_data(json_output(document));
    return 0;
  }
  const std::string page = report_page(document);
  write_file_atomically(output, page);
  print_data(fmt::format("{}: {}, open it in a browser\n", output, bytes_text(static_cast<long long>(page.size()))));
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Make one HTML page of a package: its steps, their times, zeros, memory and choices");
  arguments->command = command;
  add_option(*command, "PACKAGE", arguments->package, "A .burin file");
  add_option(*command, "-o,--output FILE", arguments->output,
             "The page (default: the package's name with .html, in the current folder)");
  add_option(*command, "--bench FILE", arguments->bench,
             "What bench --json has measured of the package: its times instead of predicted ones; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_option(*command, "--dump-dir DIR", arguments->dump_dir,
             "What compile --dump-dir has written of the package: the page links to it");
  add_option(*command, "--arch NAME", arguments->arch, "Show this cubin's figures (default: the first)");
  command->add_flag("--json", arguments->json, "Print what the page shows as JSON, and make no page");
  command->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace burin
