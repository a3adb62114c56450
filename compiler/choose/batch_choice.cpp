#include "compiler/choose/batch_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "compiler/kernel_cache.h"
#include "compiler/network/memory_plan.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

// Times of a program for `batches.back()` images with each number of them, by its steps one after the other.
std::vector<double> program_times(const Network& network, const CompileOptions& options,
                                  const std::vector<int>& batches) {
  const int own = batches.back();
  const Network formatted = in_formats(network, options, own);
  const Program program = plan_network(formatted, std::string(kNetworkName), own);
  std::vector<std::vector<double>> of_steps(program.steps.size());
  for_each_parallel(program.steps.size(), options.jobs, [&](std::size_t i) {
    const Task task = task_of(formatted, program, program.steps[i], options);
    const Candidate candidate = cached_choice(task, options).candidate;
    std::vector<double> us = find_provider(candidate.provider)->launch_us(task, candidate.plan, batches);
    if (us.size() != batches.size() || !std::isfinite(us.back()) || us.back() <= 0) {
      fail(ErrorKind::unsupported,
           "--batch: programs for a range of sizes are chosen by predicted times, and nobody predicts those of "
           "'{}' ({}); name the batch sizes",
           task.name, candidate.provider);
    }
    // What was compared is the estimate: the model says how it changes with the batch.
    const double factor = candidate.estimate.us / us.back();
    for (double& time : us) time *= factor;
    of_steps[i] = std::move(us);
  });
  std::vector<double> sums(batches.size());
  for (const std::vector<double>& us : of_steps) {
    for (std::size_t i = 0; i < us.size(); ++i) sums[i] += us[i];
  }
  return sums;
}

}  // namespace

std::vector<std::size_t> fewest_programs(const BatchTimes& times, double bound) {
  // The best choice of programs for the sizes before `next`, where the last of them has one, as a path back.
  struct Path {
    int programs = std::numeric_limits<int>::max();
    double ratios = 0;
    std::size_t before = 0;
  };
  const std::size_t count = times.sizes.size();
  std::vector<Path> best(count + 1);
  best[0].programs = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    const std::size_t program = end - 1;
    double ratios = 0;
    for (std::size_t begin = program + 1; begin-- > 0;) {  // it runs the sizes from `begin` on
      const double ratio = times.us[program][begin] / times.own_us[begin];
      if (begin < program && (times.must[begin] || (times.bounded[begin] && ratio > bound))) break;
      ratios += ratio;
      if (best[begin].programs == std::numeric_limits<int>::max()) continue;
      const Path path{best[begin].programs + 1, best[begin].ratios + ratios, begin};
      if (std::pair(path.programs, path.ratios) < std::pair(best[end].programs, best[end].ratios)) best[end] = path;
    }
  }
  std::vector<std::size_t> programs;
  for (std::size_t end = count; end > 0; end = best[end].before) programs.push_back(end - 1);
  std::ranges::reverse(programs);
  return programs;
}

BatchChoice choose_batches(const Network& network, const CompileOptions& options,
                           const std::function<void(int, int, const std::string&)>& planned) {
  std::set<int> bounded;
  for (const BatchRange& range : options.batch_ranges) {
    for (int batch = range.first; batch <= range.last; ++batch) bounded.insert(batch);
  }
  std::set<int> all = bounded;
  all.insert(options.batches.begin(), options.batches.end());
  BatchTimes times;
  times.sizes.assign(all.begin(), all.end());
  const auto is_named = [&](int batch) { return std::ranges::find(options.batches, batch) != options.batches.end(); };
  for (std::size_t i = 0; i < times.sizes.size(); ++i) {
    const int batch = times.sizes[i];
    times.us.push_back(program_times(network, options,
                                     {times.sizes.begin(), times.sizes.begin() + static_cast<std::ptrdiff_t>(i) + 1}));
    times.own_us.push_back(times.us.back().back());
    times.must.push_back(is_named(batch));
    times.bounded.push_back(bounded.contains(batch));
    if (planned) {
      planned(static_cast<int>(i) + 1, static_cast<int>(times.sizes.size()), fmt::format("a program for {}", batch));
    }
  }
  times.must.back() = true;
  BatchChoice choice;
  const std::vector<std::size_t> programs = fewest_programs(times);
  for (const std::size_t program : programs) choice.batches.push_back(times.sizes[program]);
  for (std::size_t size = 0; size < times.sizes.size(); ++size) {
    const std::size_t program = *std::ranges::lower_bound(programs, size);
    choice.curve.push_back({times.sizes[size], times.sizes[program], times.us[program][size], times.own_us[size]});
  }
  return choice;
}

}  // namespace burin
