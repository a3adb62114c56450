// burin_random_layers: seeded random layers through the whole pipeline - planned, compiled to machine code, run on a
// GPU with poisoned output and scratch memory, compared with the float64 reference. --device host runs the same layers
// on the host executor.
//
//   burin_random_layers --count 10000                    # summary; a line for each failure
//   burin_random_layers --seed 1 --only 4711 --verbose   # one of them again
//   burin_random_layers --precision fp16x2               # the same layers, all in one precision
//   burin_random_layers --precision tf32                 # the same, of conv_gathered_rows and kernels of warpgroups
//   burin_random_layers --zero-skip                      # with zeros in the input, and kernels that skip them
//   burin_random_layers --transformed                    # others in fp32, with kernels of conv_winograd and conv_fft
#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <thread>

#include "compiler/assemble/assemble.h"
#include "compiler/cli/arguments.h"
#include "compiler/cli/console.h"
#include "compiler/execute/executor.h"
#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "test/gpu/case_runner.h"
#include "test/gpu/crash_report.h"
#include "test/gpu/tally.h"

using namespace burin;
using namespace burin_test;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStuck{60};  // a kernel of these takes microseconds, under a sanitizer seconds

struct Arguments {
  std::uint64_t seed = 1, first = 0, count = 1000;
  std::optional<std::uint64_t> only;
  std::optional<std::string> precision_name;
  std::optional<Precision> precision;  // nothing: drawn for each layer
  bool zero_skip = false, transformed = false;
  CaseKind kind() const {
    return zero_skip ? CaseKind::zero_skip : transformed ? CaseKind::transformed : CaseKind::usual;
  }
  int jobs = 0;
  double time_limit = 0;  // seconds; 0: none
  std::string device = "auto";
  bool verbose = false;
};

class Run {
 public:
  Run(const Arguments& arguments, const DeviceChoice& device, std::string arch)
      : arguments_(arguments), arch_(std::move(arch)), runner_(device), next_(arguments.first) {}

  // True when every case was right or not supported.
  bool run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < arguments_.jobs; ++i) threads.emplace_back([this] { work(); });
      wait(arguments_.jobs);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    print_data(tally_.print());
    print_data(fmt::format("{:.0f} s on {} threads\n", seconds, arguments_.jobs));
    if (!stopped_by_.empty()) {
      print_data(fmt::format("stopped after {} of {} layers: {}\n", tally_.cases(), arguments_.count, stopped_by_));
    }
    if (tally_.right() == 0) print_data("no layer was right, so nothing was shown\n");
    return tally_.wrong() == 0 && tally_.right() > 0;
  }

 private:
  void work() {
    while (const std::optional<std::uint64_t> index = take()) {
      // Drawing asks the planner, too, which may crash before there is more to say.
      const CrashLine number(fmt::format(
          "FAILED --seed {} --only {}{}: it ends the process\n", arguments_.seed, *index,
          arguments_.precision_name ? " --precision " + *arguments_.precision_name : option_of(arguments_.kind())));
      const RandomCase drawn = draw_case(arguments_.seed, *index, arch_, arguments_.precision, arguments_.kind());
      if (arguments_.verbose) report(fmt::format("{}: {}\n", drawn.arguments(), drawn.describe()));
      finish(drawn, runner_.run(drawn));
    }
    const std::lock_guard lock(mutex_);
    ++workers_done_;
    changed_.notify_all();
  }

  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (next_ == arguments_.first + arguments_.count || !stopped_by_.empty()) return std::nullopt;
    if (arguments_.time_limit > 0 && Clock::now() - start_ > std::chrono::duration<double>(arguments_.time_limit)) {
      stopped_by_ = "the time limit was reached";
      return std::nullopt;
    }
    return next_++;
  }

  void finish(const RandomCase& drawn, const CaseOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    // After the error that lost the device every other case fails too, which says nothing about them.
    if (device_lost_ && outcome.device_lost) return;
    tally_.add(drawn, outcome);
    if (outcome.kind == CaseOutcome::Kind::wrong) {
      report_unlocked(fmt::format("FAILED {}: {}\n  {}\n", drawn.arguments(), drawn.describe(), outcome.text));
    }
    if (outcome.device_lost) {
      device_lost_ = true;
      stopped_by_ = "the device failed, and takes no more work from this process";
    }
  }

  void report(const std::string& text) {
    const std::lock_guard lock(mutex_);
    report_unlocked(text);
  }

  static void report_unlocked(const std::string& text) {
    print_data(text);
    std::fflush(stdout);
  }

  // Until the last worker is done. A kernel that never ends cannot be stopped, only named.
  void wait(int workers) {
    std::unique_lock lock(mutex_);
    while (workers_done_ < workers) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      if (const std::optional<std::string> what = runner_.stuck(kStuck)) {
        report_unlocked(
            fmt::format("FAILED {}\n  the GPU has not finished it in {} s\n{}", *what, kStuck.count(), tally_.print()));
        std::_Exit(exit_code(ErrorKind::verification));
      }
    }
  }

  const Arguments arguments_;
  const std::string arch_;
  CaseRunner runner_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // guards what follows, and stdout
  std::condition_variable changed_;
  std::uint64_t next_;
  Tally tally_;
  std::string stopped_by_;
  bool device_lost_ = false;
  int workers_done_ = 0;
};

int random_layers(Arguments arguments) {
  if (arguments.only) {
    arguments.first = *arguments.only;
    arguments.count = 1;
  }
  if (arguments.precision_name) {
    arguments.precision = parse_enum<Precision>(*arguments.precision_name);
    if (!arguments.precision) {
      fail(ErrorKind::usage, "--precision '{}' is not one of {}", *arguments.precision_name, known_names<Precision>());
    }
  }
  if (arguments.jobs == 0) arguments.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  arguments.jobs = static_cast<int>(std::min<std::uint64_t>(arguments.jobs, arguments.count));

  const DeviceChoice choice = choose_device(arguments.device);
  std::string arch = "sm_90", name = "the host executor";
  std::optional<Device> device;  // keeps the context, which every case would make anew
  if (choice.host) {
    setenv("BURIN_ASSEMBLER", "none",
           0);  // the host executor makes code of its own; whoever sets it can have cubins too
  } else {
    device = Device::open(choice.ordinal);
    arch = device->info().arch();
    name = fmt::format("cuda:{} ({}, {})", choice.ordinal, device->info().name, arch);
    if (find_assembler().kind == AssemblerInfo::Kind::none) fail(ErrorKind::unsupported, "{}", find_assembler().note);
  }
  install_crash_report();
  print_data(fmt::format("random layers {} to {} of seed {} on {}\n", arguments.first,
                         arguments.first + arguments.count - 1, arguments.seed, name));
  return Run(arguments, choice, arch).run() ? 0 : exit_code(ErrorKind::verification);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs seeded random layers and compares them with the float64 reference.", "burin_random_layers");
  app.add_option("--seed", arguments.seed, "Of all layers (default 1)")->type_name("N");
  app.add_option("--count", arguments.count, "Layers (default 1000)")->type_name("N")->check(CLI::PositiveNumber);
  app.add_option("--first", arguments.first, "Number of the first (default 0)")->type_name("N");
  app.add_option("--only", arguments.only, "This one alone")->type_name("N");
  app.add_option("--precision", arguments.precision_name, "Of all layers (default: drawn for each, half of them fp32)")
      ->type_name("NAME");
  app.add_flag("--zero-skip", arguments.zero_skip,
               "With zeros in the input and kernels that skip them, in fp32 or on tensor cores")
      ->excludes("--precision");
  app.add_flag("--transformed", arguments.transformed,
               "Dense layers of step 1 in fp32, with kernels that transform their patches")
      ->excludes("--precision", "--zero-skip");
  app.add_option("--jobs", arguments.jobs, "Threads (default: one for each processor)")
      ->type_name("N")
      ->check(whole_number(0, kMaxJobs));
  app.add_option("--device", arguments.device, "auto (default), host, cuda or cuda:N")->type_name("DEVICE");
  app.add_option("--time-limit", arguments.time_limit, "Begin no layer after so many seconds (default: no limit)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  app.add_flag("--verbose", arguments.verbose, "A line for each layer before it runs");
  CLI11_PARSE(app, argc, argv);
  try {
    return random_layers(arguments);
  } catch (const Error& error) {
    print_error(error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    print_error(error.what());
    return exit_code(ErrorKind::internal);
  }
}
