// burin verify: does a package compute what this model, or these weights, say?
#include <filesystem>
#include <random>

#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/verify_report.h"
#include "compiler/execute/reused_memory.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

struct VerifyArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string package, against;
  std::optional<std::string> geometry;
  std::string device = "auto";
  std::optional<std::string> batch, activation_sparsity;
  std::optional<std::uint64_t> seed;
  bool no_code = false;
  std::vector<std::string> own_operators;
  bool json = false;
  VerifyOptions options;
};

std::optional<int> one_batch(const VerifyArguments& arguments) {
  if (!arguments.batch) return std::nullopt;
  const std::vector<int> batches = parse_batches(*arguments.batch);
  if (batches.size() != 1) fail(ErrorKind::usage, "--batch '{}': verify takes one batch size", *arguments.batch);
  return batches.front();
}

void check_effects(const VerifyArguments& arguments, const Manifest& manifest) {
  if (holds_layers(manifest)) {
    refuse_given(*arguments.command, {"--layers"},
                 fmt::format("{} holds layers, not a whole network", arguments.package));
  } else if (arguments.options.non_finite > 0) {
    fail(ErrorKind::usage, "--non-finite: {} holds a network, whose outputs would all be NaN", arguments.package);
  } else if (arguments.geometry) {
    fail(ErrorKind::usage, "--geometry: {} holds a network, whose model says itself what its layers are",
         arguments.package);
  }
}

// "; the package was compiled from net.onnx" where `path` has another name, else nothing.
std::string other_source(const std::string& path, const Manifest& manifest) {
  if (manifest.source.empty() || std::filesystem::path(path).filename() == manifest.source) return "";
  return "; the package was compiled from " + manifest.source;
}

// Does `work`, whose faults of input say what the package was compiled from.
template <typename Work>
auto comparing_with(const std::string& path, const Manifest& manifest, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    fail(error.kind(), "{}{}", error.what(), other_source(path, manifest));
  }
}

int verify_package(VerifyArguments arguments) {
  keep_freed_memory();
  VerifyOptions& options = arguments.options;
  options.batch = one_batch(arguments);
  if (arguments.activation_sparsity) options.zeros = parse_synthetic_zeros(*arguments.activation_sparsity);
  if (!(options.non_finite >= 0 && options.non_finite <= 1)) {
    fail(ErrorKind::usage, "--non-finite {}: not a share from 0 to 1", options.non_finite);
  }
  if (arguments.device.starts_with("cuda")) {
    refuse_given(*arguments.command, {"--jobs"}, "a GPU verifies one kernel after the other");
  }
  Package package = read_given_package(arguments.package);
  check_contents(package);
  refuse_package("--against", arguments.against);
  check_effects(arguments, package.manifest);
  options.code = !arguments.no_code;
  options.steps = options.steps || options.layer.has_value();
  options.seed = arguments.seed ? *arguments.seed : std::random_device()();
  const std::shared_ptr<UserOperators> operators = std::make_shared<UserOperators>(arguments.own_operators);
  HostFunctions functions = operators->give(package.manifest);
  const Network reference = comparing_with(arguments.against, package.manifest, [&] {
    return import_reference(arguments.against, package.manifest, arguments.geometry, options.layer, operators);
  });
  operators->check_used(arguments.against);
  operators->compile_for_host();
  const std::unique_ptr<Executor> executor =
      make_executor(device_for(arguments.device), package, options.jobs, {}, std::move(functions));
  if (!arguments.json) {
    print_data(fmt::format("{} against {} on {}, seed {}\n", arguments.package, arguments.against, executor->name(),
                           options.seed) +
               references_text(*operators));
  }
  Verification verification;
  {
    ProgressBar progress("verifying");
    verification = comparing_with(arguments.against, package.manifest, [&] {
      return verify_programs(package, reference, options, *executor, [&](int done, int all, const std::string& what) {
        progress.update(done, all, what);
        if (all > 0) progress.finished(fmt::format("{} ({} of {})", what, done, all));
      });
    });
  }
  for (const std::string& note : executor->notes()) print_note(note);
  if (verification.code) {
    const UserOperators::CodeFaults own = operators->compare_code(package);
    for (const std::string& note : own.notes) print_note(note);
    verification.code->different.insert(verification.code->different.end(), own.faults.begin(), own.faults.end());
  }
  if (arguments.json) {
    nlohmann::ordered_json result = {{"package", arguments.package},
                                     {"against", arguments.against},
                                     {"device", executor->name()},
                                     {"seed", options.seed},
                                     {"passed", verification.passed()},
                                     {"deepest_reduction", verification.deepest_reduction},
                                     {"missing", verification.missing},
                                     {"code", code_json(verification)},
                                     {"programs", verification_json(verification)}};
    if (!arguments.own_operators.empty()) result["operators"] = references_json(*operators);
    print_data(json_output(result));
  } else {
    print_data(verification_text(verification, package.manifest));
  }
  if (!verification.passed()) {
    fail(ErrorKind::verification, "{} does not compute what {} says; --seed {} repeats this{}", arguments.package,
         arguments.against, options.seed, other_source(arguments.against, package.manifest));
  }
  return 0;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Compare a package with its model or weights: random inputs, float64 reference");
  arguments->command = command;
  add_option(*command, "PACKAGE", arguments->package, "A .burin file");
  add_option(*command, "--against MODEL", arguments->against, "The model or weights that it was compiled from")
      ->required();
  add_option(*command, "--geometry FILE", arguments->geometry, "The geometry file that it was compiled with");
  add_operator_option(*command, arguments->own_operators);
  add_option(*command, "--layer GLOB", arguments->options.layer, "Only layers whose name matches (*, ?, [..])");
  add_option(*command, "--device DEVICE", arguments->device, "auto (default), host, cuda or cuda:N");
  add_option(*command, "--batch N", arguments->batch, "Images (default: what each program was compiled for)");
  add_option(*command, "--seed N", arguments->seed, "Of the random inputs (default: a new one)");
  add_option(*command, "--activation-sparsity SHARE", arguments->activation_sparsity,
             fmt::format("Zeros among the random inputs: 0.8, or 0.8:blobs; patterns: {}", known_names<ZeroPattern>()));
  add_option(*command, "--non-finite SHARE", arguments->options.non_finite,
             "Package of layers: NaN and infinities among the random inputs: 0.01");
  add_option(*command, "--jobs N", arguments->options.jobs,
             "Kernels at once on the host (default: one for each processor)")
      ->check(whole_number(0, kMaxJobs));
  command->add_flag("--layers", arguments->options.steps,
                    "Network: each step, too, on what the package computed before it (done anyway where one is wrong)");
  add_option(*command, "--images N", arguments->options.images,
             "Images of a batch that are compared: first, last, others (default: of a network 4, of layers all)")
      ->check(whole_number(1, kMaxBatch));
  command->add_flag("--no-code", arguments->no_code,
                    "Do not make the package's PTX anew to compare it, which takes a third of the time of compiling");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, &action] { action = [arguments] { return verify_package(*arguments); }; });
}

}  // namespace burin
