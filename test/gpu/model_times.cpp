// burin_model_times: measures what the cost models predict. Of each of the model_cases(), at batch 1 and 32, the best
// candidates of every provider are compiled and timed as `burin tune` times them: in a graph, with cold code. The
// lines go to stdout as test/models/times.tsv holds them, progress to stderr.
//
// burin_model_times [DEVICE [NAME [COUNT]]]: the ordinal of the device (0), a part of the names of the cases (all), and
// how many candidates each provider is asked for (2).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "compiler/make_kernel.h"
#include "compiler/measure/layer_times.h"
#include "compiler/providers/provider.h"
#include "compiler/tune/compile_pool.h"
#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "test/models/model_cases.h"

using namespace burin;
using namespace burin_test;

namespace {

struct Measured {
  const ModelCase* about = nullptr;
  Task task;
  Candidate candidate;
};

int run(int device_index, const std::string& part, int count) {
  const Device device = Device::open(device_index);
  const std::string arch = device.info().arch();
  fmt::print("# {}, driver for CUDA {}\n{}\n", device.info().name, device.info().driver_version, kTimesHeader);
  CompileOptions options;
  options.archs = {arch};
  const std::vector<ModelCase> cases = model_cases();
  std::deque<Network> networks;  // tasks refer to them
  std::vector<Measured> all;
  for (const ModelCase& model_case : cases) {
    if (model_case.edge.name.find(part) == std::string::npos) continue;
    const Network& network = networks.emplace_back(network_of(model_case.edge));
    for (const int batch : {1, 32}) {
      const Task task = whole_task(network, batch, arch);
      for (const Provider* provider : providers()) {
        if (provider->needs_measuring()) continue;
        for (Candidate& candidate : provider->propose(task, {.count = count})) {
          all.push_back({&model_case, task, std::move(candidate)});
        }
      }
    }
  }
  if (all.empty()) fail(ErrorKind::usage, "no case has the part '{}' in its name", part);
  CompilePool pool(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    pool.add({i, 0}, [&, i] { return compile_candidate(all[i].task, all[i].candidate, options, arch); });
  }
  int faults = 0;
  std::vector<std::string> lines(all.size());
  for (std::size_t done = 0; done < all.size(); ++done) {
    const CompilePool::Result compiled = pool.next();
    const Measured& measured = all[compiled.key.first];
    const std::string& name = measured.about->edge.name;
    if (compiled.fault) {
      fmt::print(stderr, "{}, {}: {}\n", name, measured.candidate.provider, compiled.fault->what());
      ++faults;
      continue;
    }
    const Kernel& kernel = compiled.package.manifest.kernels.front();
    const Measurement time =
        Bench(device, compiled.package, {.samples = 50}).time_in_chain(kernel, measured.task.batch);
    lines[compiled.key.first] =
        print({name, measured.task.batch, measured.candidate.provider,
               find_provider(measured.candidate.provider)->brief(measured.candidate.plan), time.median_us});
    fmt::print(stderr, "{} of {}\r", done + 1, all.size());
  }
  for (const std::string& line : lines) fmt::print("{}", line);
  return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count > 1 ? std::atoi(arguments[1]) : 0, count > 2 ? arguments[2] : "",
               count > 3 ? std::atoi(arguments[3]) : 2);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
