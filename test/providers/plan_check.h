// What tests of convolutions whose weights are data ask of plans: those with some choices, and those that a person
// edited.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

namespace burin_test {

// Windows that tiles of outputs have whole, that lie in several of them, and that leave some out.
inline std::vector<burin::Pool> some_pools() {
  using burin::Pool;
  using burin::PoolKind;
  return {
      Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2},
      Pool{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}},
      Pool{.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 3, .round_up = true},
      Pool{.kind = PoolKind::average, .kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}, .count_padding = true},
      Pool{.kind = PoolKind::average, .kernel_h = 2, .kernel_w = 4, .stride_h = 3, .stride_w = 4, .pad = {1, 0, 0, 1}}};
}

inline ProviderCheck check_of_batch(int batch, double tolerance) {
  ProviderCheck check;
  check.batches = {batch};
  check.tuned_batch = batch;
  check.tolerance = tolerance;
  return check;
}

inline std::vector<burin::Candidate> plans_with(const char* provider, const burin::ConvLayer& layer,
                                                const std::string& choices, const ProviderCheck& check) {
  const burin::Network network = network_of(layer);
  return burin::find_provider(provider)->propose(task_of(network, network.operators.back(), check), {.plan = choices});
}

// Runs the plan of the layer with these choices, as the provider makes it. Empty: it is right.
inline std::string check_plan_with(const char* provider, const burin::ConvLayer& layer, const std::string& choices,
                                   const ProviderCheck& check) {
  const burin::Network network = network_of(layer);
  const std::vector<burin::Candidate> made = plans_with(provider, layer, choices, check);
  if (made.empty()) return "there is no such plan";
  return check_candidate(network, network.operators.back(), made.front(), check);
}

// Plans of the layer with these choices in which one number is another: each is refused, or computes the same. Every
// third of those that compute runs.
inline void check_edited_plans(const char* provider, const burin::ConvLayer& layer,
                               std::initializer_list<const char*> all_choices, const ProviderCheck& check) {
  const burin::Network network = network_of(layer);
  const burin::Operator& op = network.operators.back();
  const burin::Task task = task_of(network, op, check);
  int refused = 0, accepted = 0;
  for (const char* choices : all_choices) {
    burin::Candidate candidate = plans_with(provider, layer, choices, check).front();
    const std::string plan = candidate.plan;
    std::size_t end = 0;
    for (std::size_t at = plan.find_first_of("0123456789"); at != std::string::npos;
         at = plan.find_first_of("0123456789", end)) {
      end = std::min(plan.find_first_not_of("0123456789", at), plan.size());
      for (const char* number : {"0", "1", "3", "64", "65536", "2147483647", "99999999999999999999"}) {
        std::string edited = plan;
        edited.replace(at, end - at, number);
        if (edited == plan) continue;
        const auto thrown = thrown_by([&] { (void)burin::find_provider(provider)->make(task, edited); });
        INFO((thrown ? thrown->text : "") << "\n" << edited);
        if (!thrown) {
          candidate.plan = edited;
          if (is_taken(accepted++, 3)) REQUIRE(check_candidate(network, op, candidate, check) == "");
          continue;
        }
        ++refused;
        REQUIRE((thrown->kind == burin::ErrorKind::bad_input || thrown->kind == burin::ErrorKind::unsupported));
      }
    }
  }
  CHECK(refused > 200);
  CHECK(accepted > 0);
}

// One of the values, another one for each number; all where every case is taken.
inline std::vector<int> some_of(const std::vector<int>& values, int number) {
  std::vector<int> some;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    if (is_taken(number + i, static_cast<int>(values.size()))) some.push_back(values[static_cast<std::size_t>(i)]);
  }
  return some;
}

}  // namespace burin_test
