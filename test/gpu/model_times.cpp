// burin_model_times: measures what the cost models predict. Of each of the model_cases(), at batch 1 and 32, and of
// convolutions in each of the model_forms(), the best candidates of every provider are compiled and timed as `burin
// tune` times them: in a graph, with cold code. The lines go to stdout as test/models/times.tsv holds them, progress to
// stderr.
//
// burin_model_times [DEVICE [NAME [COUNT [FORM...]]]]: the ordinal of the device (0), a part of the names of the cases
// (all), how many candidates each provider is asked for (2), and the forms (all), such as fp16:nchw8.
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
  ModelForm form;
  Task task;
  Candidate candidate;
};

// What the providers propose in a form. Kernels that are the same in the plain form are measured there.
void add_candidates(const ModelCase& about, const Network& network, const ModelForm& form, int batch,
                    const std::string& arch, int count, std::vector<Measured>& all) {
  const Task task = task_in_form(network, form, batch, arch), plain = task_in_form(network, {}, batch, arch);
  for (const Provider* provider : providers()) {
    if (provider->needs_measuring()) continue;
    std::vector<Candidate> candidates = provider->propose(task, {.count = count});
    // In other layouts nobody has the same plans.
    if (!form.is_plain() && form.layout == ModelForm().layout) {
      const std::vector<Candidate> of_plain = provider->propose(plain, {.count = count});
      std::erase_if(candidates, [&](const Candidate& candidate) {
        return std::ranges::find(of_plain, candidate.plan, &Candidate::plan) != of_plain.end();
      });
    }
    for (Candidate& candidate : candidates) all.push_back({&about, form, task, std::move(candidate)});
  }
}

int run(int device_index, const std::string& part, int count, const std::vector<ModelForm>& forms) {
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
    const bool is_convolution = std::holds_alternative<Convolution>(network.operators.back().kind);
    for (const ModelForm& form : forms) {
      if (!is_convolution && !form.is_plain()) continue;
      for (const int batch : {1, 32}) {
        if (suits(form, batch)) add_candidates(model_case, network, form, batch, arch, count, all);
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
        print({name, measured.form, measured.task.batch, measured.candidate.provider,
               find_provider(measured.candidate.provider)->brief(measured.candidate.plan), time.median_us});
    fmt::print(stderr, "{} of {}\r", done + 1, all.size());
  }
  for (const std::string& line : lines) fmt::print("{}", line);
  return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::vector<ModelForm> forms;
    for (int i = 4; i < count; ++i) forms.push_back(parse_form(arguments[i]));
    return run(count > 1 ? std::atoi(arguments[1]) : 0, count > 2 ? arguments[2] : "",
               count > 3 ? std::atoi(arguments[3]) : 2, forms.empty() ? model_forms() : forms);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
