// Runs a Program on the CPU in float64, step by step, through nothing but its places: one arena, poisoned before,
// and the arguments. Each read is compared, bit by bit, with the tensor that the operator should find there, so that a
// wrong offset, a missing dependency or memory given away too early shows at the step that meets it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/reference.h"
#include "ir/program.h"
#include "test/ir/random_layers.h"
#include "test/network/reference_tensors.h"

namespace burin_test {

// One of the orders in which the steps can run.
inline std::vector<int> random_order(const burin::Program& plan, Random& random) {
  std::vector<std::size_t> waits(plan.steps.size());
  std::vector<std::vector<int>> behind(plan.steps.size());
  std::vector<int> ready, order;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    waits[i] = plan.steps[i].after.size();
    for (const int before : plan.steps[i].after)
      behind[static_cast<std::size_t>(before)].push_back(static_cast<int>(i));
    if (waits[i] == 0) ready.push_back(static_cast<int>(i));
  }
  while (!ready.empty()) {
    std::swap(ready[static_cast<std::size_t>(random.integer(0, static_cast<int>(ready.size()) - 1))], ready.back());
    const int step = ready.back();
    ready.pop_back();
    order.push_back(step);
    for (const int next : behind[static_cast<std::size_t>(step)]) {
      if (--waits[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
    }
  }
  return order;
}

class PlanExecutor {
 public:
  // Runs a network's plan; the places must be nchw. Inputs are random, of the plan's batch.
  PlanExecutor(const burin::Network& network, const burin::Program& plan) : network_(network), plan_(plan) {
    for (const int input : network.inputs) {
      const std::int64_t elements = network.tensors[static_cast<std::size_t>(input)].elements();
      inputs_.push_back(burin::random_tensor(plan.batch * elements, 17 + inputs_.size()));
    }
    expected_ = reference_tensors(network, plan.batch, {inputs_.begin(), inputs_.end()});
    for (std::size_t i = 0; i < network.tensors.size(); ++i) by_name_[network.tensors[i].name] = static_cast<int>(i);
  }

  // What is wrong, a sentence for each fault; empty when every read and every output was as the interpreter has it.
  std::vector<std::string> run(const std::vector<int>& order) {
    faults_.clear();
    poison();
    if (order.size() != plan_.steps.size()) faults_.push_back("the steps wait for each other in a circle");
    for (const int index : order) run_step(plan_.steps[static_cast<std::size_t>(index)]);
    for (const burin::Buffer& buffer : plan_.buffers) {
      if (buffer.home != burin::BufferHome::output) continue;
      const int tensor = network_.outputs.at(static_cast<std::size_t>(buffer.argument));
      compare(outputs_.at(static_cast<std::size_t>(buffer.argument)), tensor, "the network");
    }
    return faults_;
  }

 private:
  static constexpr std::int64_t kElementBytes = 4;  // f32, each of which is a double here

  void poison() {
    constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();
    arena_.assign(static_cast<std::size_t>(plan_.arena_bytes / kElementBytes), kPoison);
    arguments_.clear();
    outputs_.assign(network_.outputs.size(), {});
    for (const std::vector<float>& input : inputs_) arguments_.emplace_back(input.begin(), input.end());
    for (const burin::Buffer& buffer : plan_.buffers) {
      if (buffer.home != burin::BufferHome::output) continue;
      outputs_.at(static_cast<std::size_t>(buffer.argument))
          .assign(static_cast<std::size_t>(buffer.bytes / kElementBytes), kPoison);
    }
  }

  // visit(an element) for each of the place, in the order of the tensor.
  template <typename Visit>
  void visit(const burin::Place& place, Visit visit) {
    const burin::Buffer& buffer = plan_.buffers.at(static_cast<std::size_t>(place.buffer));
    const auto argument = static_cast<std::size_t>(buffer.argument);
    std::vector<double>& memory = buffer.home == burin::BufferHome::arena   ? arena_
                                  : buffer.home == burin::BufferHome::input ? arguments_.at(argument)
                                                                            : outputs_.at(argument);
    for (std::int64_t image = 0; image < plan_.batch; ++image) {
      for (std::int64_t run = 0; run < place.runs; ++run) {
        const std::int64_t begin = buffer.offset + image * place.image_stride + place.offset + run * place.run_stride;
        for (std::int64_t i = 0; i < place.run_bytes / kElementBytes; ++i) {
          visit(memory.at(static_cast<std::size_t>(begin / kElementBytes + i)));
        }
      }
    }
  }

  void compare(const std::vector<double>& values, int tensor, const std::string& who) {
    const auto same = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    };
    if (std::ranges::equal(values, expected_[static_cast<std::size_t>(tensor)], same)) return;
    faults_.push_back(fmt::format("{}: tensor {} is not what the interpreter makes", who,
                                  network_.tensors[static_cast<std::size_t>(tensor)].name));
  }

  void run_step(const burin::Step& step) {
    std::vector<int> tensors = {step.is_copy() ? by_name_.at(step.name) : 0};
    if (!step.is_copy()) tensors = network_.operators.at(static_cast<std::size_t>(step.op)).inputs;
    std::vector<std::vector<double>> read;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      read.emplace_back();
      visit(step.reads.at(i), [&](double value) { read.back().push_back(value); });
      compare(read.back(), tensors[i], step.name);
    }
    // What was found is passed on only where it is right: operators need not expect poison.
    if (!faults_.empty()) return;
    const std::vector<double> made =
        step.is_copy() ? read[0]
                       : burin::run_reference_operator(network_, network_.operators[static_cast<std::size_t>(step.op)],
                                                       plan_.batch, {read.begin(), read.end()});
    std::size_t next = 0;
    visit(step.writes, [&](double& value) { value = made.at(next++); });
    if (next != made.size()) faults_.push_back(step.name + ": the place is smaller than what is written");
  }

  const burin::Network& network_;
  const burin::Program& plan_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<double>> expected_;
  std::map<std::string, int> by_name_;
  std::vector<double> arena_;
  std::vector<std::vector<double>> arguments_, outputs_;
  std::vector<std::string> faults_;
};

// In the order of the plan and in others that it allows.
inline std::vector<std::string> faults_of_runs(const burin::Network& network, const burin::Program& plan, int orders,
                                               std::uint64_t seed) {
  PlanExecutor executor(network, plan);
  Random random(seed);
  std::vector<int> order(plan.steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::vector<std::string> faults = executor.run(order);
  for (int i = 0; i < orders && faults.empty(); ++i) faults = executor.run(random_order(plan, random));
  return faults;
}

}  // namespace burin_test
