// burin verify: does a package compute what this model, or these weights, say?
#include <atomic>
#include <exception>
#include <random>
#include <thread>

#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/file_kind.h"
#include "compiler/cli/given_options.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/network_verify.h"
#include "compiler/cli/source_of_package.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "compiler/verify/layer_verification.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

struct VerifyArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string package, weights;
  std::optional<std::string> layer, geometry;
  std::string device = "auto";
  std::optional<std::string> batch;
  std::optional<std::uint64_t> seed;
  int jobs = 0;
  bool json = false;
  // Of packages with a network.
  bool layers = false;
  std::optional<int> images;
};

// A bare array says nothing of its geometry; the package does.
GeometryFlags flags_of(const ConvShape& shape) {
  GeometryFlags flags;
  flags.input_shape = fmt::format("{}x{}x{}", shape.in_channels, shape.in_h, shape.in_w);
  flags.stride = fmt::format("{}x{}", shape.stride_h, shape.stride_w);
  flags.pad = fmt::format("{},{},{},{}", shape.pad.top, shape.pad.bottom, shape.pad.left, shape.pad.right);
  flags.dilation = fmt::format("{}x{}", shape.dilation_h, shape.dilation_w);
  flags.groups = shape.groups;
  return flags;
}

Network import_weights(const VerifyArguments& arguments, const Manifest& manifest) {
  ImportOptions options;
  options.geometry_file = arguments.geometry;
  options.zero_threshold = manifest.zero_threshold;
  if (!options.geometry_file && has_ending(arguments.weights, ".npy") && !manifest.kernels.empty())
    options.flags = flags_of(manifest.kernels.front().layer->shape);
  return import_network(arguments.weights, options);
}

// All results, in the order of the tasks; the first exception ends the work and is thrown again.
std::vector<VerificationResult> verify_all(const std::vector<VerificationTask>& tasks, std::uint64_t seed,
                                           Executor& executor, int jobs) {
  std::vector<VerificationResult> results(tasks.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  ProgressBar progress("verifying");
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size() && !failed; i = next++) {
      try {
        progress.update(static_cast<int>(done), static_cast<int>(tasks.size()), tasks[i].kernel->op);
        results[i] = verify_kernel(tasks[i], seed, executor);
        ++done;
        progress.finished(
            fmt::format("{} b{} ({} of {})", tasks[i].kernel->op, tasks[i].batch, done.load(), tasks.size()));
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t wanted = jobs > 0 ? static_cast<std::size_t>(jobs) : processors;
  const std::size_t threads = executor.concurrent() ? std::min(wanted, tasks.size()) : 1;
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();  // joins
  if (failure) std::rethrow_exception(failure);
  return results;
}

// Told where it differs from the batch at hand, which tells apart the kernels of one layer.
std::string tuned_for(const VerificationTask& task) {
  return task.kernel->planned_batch == task.batch ? "" : fmt::format("{}", task.kernel->planned_batch);
}

std::string describe_verdict(std::size_t passed, std::size_t all) {
  if (passed < all) return coloured(fmt::format("{} of {} kernels FAILED", all - passed, all), Colour::red);
  return coloured(all == 1 ? "1 kernel verified" : fmt::format("all {} kernels verified", all), Colour::green);
}

// One line for each precision of the kernels; fp32 goes without saying.
void print_tolerances(const std::vector<VerificationTask>& tasks) {
  for (const Precision precision : kPrecisions) {
    const auto has = [&](const VerificationTask& task) { return task.kernel->precision == to_string(precision); };
    if (std::none_of(tasks.begin(), tasks.end(), has)) continue;
    print_data(fmt::format("tolerance of an element{}: {}\n",
                           precision == Precision::fp32 ? "" : fmt::format(", {}", to_string(precision)),
                           tolerance_text(precision)));
  }
}

void print_table(const std::vector<VerificationTask>& tasks, const std::vector<VerificationResult>& results) {
  using Align = Table::Align;
  Table table({{"layer"},
               {"precision"},
               {"batch", Align::right},
               {"tuned for", Align::right},
               {"result"},
               {"error/tolerance", Align::right},
               {"relative error", Align::right},
               {"sum of", Align::right},
               {"worst element"}});
  std::size_t passed = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const VerificationResult& result = results[i];
    const bool compared = result.fault.empty();
    passed += result.passed ? 1 : 0;
    const bool fp32 = result.arithmetic.precision == Precision::fp32;
    table.add({tasks[i].kernel->op, fp32 ? "" : tasks[i].kernel->precision, fmt::format("{}", tasks[i].batch),
               tuned_for(tasks[i]), result.passed ? "ok" : "FAILED",
               compared ? error_ratio_text(result.comparison.worst_ratio) : "-",
               compared ? fmt::format("{:.1e}", result.comparison.relative_error) : "-",
               with_separators(result.arithmetic.longest_reduction), describe_worst(tasks[i], result)});
  }
  print_data(table.print());
  print_data(describe_verdict(passed, tasks.size()) + "\n");
}

void print_json(const VerifyArguments& arguments, const std::vector<VerificationTask>& tasks,
                const std::vector<VerificationResult>& results, std::uint64_t seed, const std::string& device) {
  bool passed = true;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const VerificationResult& result = results[i];
    const Comparison& c = result.comparison;
    passed = passed && result.passed;
    nlohmann::ordered_json row = {{"layer", tasks[i].kernel->op},
                                  {"symbol", tasks[i].kernel->symbol},
                                  {"precision", tasks[i].kernel->precision},
                                  {"batch", tasks[i].batch},
                                  {"planned_batch", tasks[i].kernel->planned_batch},
                                  {"passed", result.passed},
                                  {"longest_reduction", result.arithmetic.longest_reduction}};
    if (result.fault.empty()) {
      // NaN has no JSON form; nlohmann writes null for it.
      row["error_over_tolerance"] = c.worst_ratio;
      row["relative_error"] = c.relative_error;
      row["worst"] = {{"at", describe_output_index(tasks[i].layer.shape, c.worst_index)},
                      {"value", c.worst_value},
                      {"expected", c.worst_expected},
                      {"tolerance", c.worst_tolerance}};
    } else {
      row["fault"] = result.fault;
    }
    rows.push_back(std::move(row));
  }
  const nlohmann::ordered_json document = {{"package", arguments.package},
                                           {"against", arguments.weights},
                                           {"device", device},
                                           {"seed", seed},
                                           {"passed", passed},
                                           {"kernels", rows}};
  print_data(json_output(document));
}

std::optional<int> one_batch(const VerifyArguments& arguments) {
  if (!arguments.batch) return std::nullopt;
  const std::vector<int> batches = parse_batches(*arguments.batch);
  if (batches.size() != 1) fail(ErrorKind::usage, "--batch '{}': verify takes one batch size", *arguments.batch);
  return batches.front();
}

int verify_whole(const VerifyArguments& arguments, const Package& package, std::optional<int> batch) {
  if (arguments.geometry) {
    fail(ErrorKind::usage, "--geometry: {} holds a network, whose model says itself what its layers are",
         arguments.package);
  }
  NetworkVerifyArguments whole{arguments.package, arguments.weights, arguments.device,
                               arguments.jobs,    arguments.json,    {}};
  NetworkVerifyOptions& options = whole.options;
  options.batch = batch;
  options.seed = arguments.seed ? *arguments.seed : std::random_device()();
  options.images = arguments.images.value_or(options.images);
  options.layer = arguments.layer;
  options.steps = arguments.layers || arguments.layer.has_value();
  return verify_network_package(whole, package);
}

int verify_package(const VerifyArguments& arguments) {
  const std::optional<int> batch = one_batch(arguments);
  if (arguments.device.starts_with("cuda")) {
    refuse_given(*arguments.command, {"--jobs"}, "a GPU verifies one kernel after the other");
  }
  const Package package = read_given_package(arguments.package);
  refuse_package("--against", arguments.weights);
  if (package.manifest.network) return verify_whole(arguments, package, batch);
  if (arguments.layers || arguments.images) {
    fail(ErrorKind::usage, "{}: {} holds layers, not a whole network", arguments.layers ? "--layers" : "--images",
         arguments.package);
  }
  if (package.manifest.kernels.empty()) fail(ErrorKind::bad_input, "{}: holds no kernels", arguments.package);
  const Network network = import_weights(arguments, package.manifest);
  const std::vector<VerificationTask> tasks = comparing_with(arguments.weights, package.manifest, [&] {
    return pair_with_weights(package.manifest, network, arguments.layer, batch);
  });
  const std::unique_ptr<Executor> executor = make_executor(device_for(arguments.device), package);
  const std::uint64_t seed = arguments.seed ? *arguments.seed : std::random_device()();

  if (!arguments.json) {
    print_data(
        fmt::format("{} against {} on {}, seed {}\n", arguments.package, arguments.weights, executor->name(), seed));
    print_tolerances(tasks);
  }
  const std::vector<VerificationResult> results = verify_all(tasks, seed, *executor, arguments.jobs);
  if (arguments.json) {
    print_json(arguments, tasks, results, seed, executor->name());
  } else {
    print_table(tasks, results);
  }
  const bool passed = std::all_of(results.begin(), results.end(), [](const VerificationResult& r) { return r.passed; });
  if (!passed) {
    fail(ErrorKind::verification, "{} does not compute what {} says; --seed {} repeats this{}", arguments.package,
         arguments.weights, seed, other_source(arguments.weights, package.manifest));
  }
  return 0;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Compare a package with its model or weights: random inputs, float64 reference");
  arguments->command = command;
  command->add_option("PACKAGE", arguments->package, "A .burin file")->required()->type_name("");
  command->add_option("--against", arguments->weights, "The model or weights that it was compiled from")
      ->required()
      ->type_name("MODEL");
  command->add_option("--geometry", arguments->geometry, "The geometry file that it was compiled with")
      ->type_name("FILE");
  command->add_option("--layer", arguments->layer, "Only layers whose name matches (*, ?, [..])")->type_name("GLOB");
  command->add_option("--device", arguments->device, "auto (default), host, cuda or cuda:N")->type_name("DEVICE");
  command->add_option("--batch", arguments->batch, "Images (default: what each kernel was tuned for)")->type_name("N");
  command->add_option("--seed", arguments->seed, "Of the random inputs (default: a new one)")->type_name("N");
  command->add_option("--jobs", arguments->jobs, "Kernels at once on the host (default: one for each processor)")
      ->type_name("N")
      ->check(whole_number(0, kMaxJobs));
  command->add_flag("--layers", arguments->layers,
                    "Network: each step, too, on what the package computed before it (done anyway where one is wrong)");
  command
      ->add_option("--images", arguments->images,
                   "Network: images of a batch that are compared with the reference (default 4: first, last, others)")
      ->type_name("N")
      ->check(whole_number(1, kMaxBatch));
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, &action] { action = [arguments] { return verify_package(*arguments); }; });
}

}  // namespace burin
