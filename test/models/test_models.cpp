// How far the cost models are off, on the operators that they were fitted to and on others: times.tsv holds what
// burin_model_times (test/gpu/) measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/providers/provider.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/models/model_cases.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

struct Compared {
  MeasuredTime measured;
  bool fitted = false;
  double predicted_us = 0;
  double ratio() const { return predicted_us / measured.us; }
};

std::string text_of(const char* path) {
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A row of a table, which docs/performance.md has, too.
void show(const std::string& row) {
  static const std::string page = text_of(BURIN_PERFORMANCE_PAGE);
  fmt::print("{}\n", row);
  INFO("docs/performance.md should have the row '" << row << "'");
  CHECK(page.find("\n" + row + "\n") != std::string::npos);
}

std::vector<Compared> compare_all() {
  const std::vector<ModelCase> cases = model_cases();
  std::map<std::string, Network> networks;
  std::vector<Compared> all;
  for (const MeasuredTime& time : parse_times(text_of(BURIN_MODEL_TIMES))) {
    const auto found = std::ranges::find(cases, time.op, [](const ModelCase& c) { return c.edge.name; });
    INFO(time.op);
    REQUIRE(found != cases.end());
    const auto [network, is_new] = networks.try_emplace(time.op);
    if (is_new) network->second = network_of(found->edge);
    const Task task = task_in_form(network->second, time.form, time.batch, "sm_90");
    const Provider* provider = find_provider(time.provider);
    REQUIRE(provider != nullptr);
    const bool has_choices = time.plan.find('=') != std::string::npos;
    const std::vector<Candidate> candidates = provider->propose(task, {.plan = has_choices ? time.plan : ""});
    REQUIRE(candidates.size() == 1);
    all.push_back({time, found->fitted, candidates.front().estimate.us});
  }
  return all;
}

struct ModelError {
  int kernels = 0;
  double bias = 1;     // geometric mean of predicted / measured
  double typical = 1;  // the median of how far it is off, either way, as a factor
  double nine_of_ten = 1;
};

ModelError error_of(const std::vector<Compared>& compared) {
  std::vector<double> off;
  double sum = 0;
  for (const Compared& one : compared) {
    sum += std::log(one.ratio());
    off.push_back(std::exp(std::abs(std::log(one.ratio()))));
  }
  std::ranges::sort(off);
  ModelError error;
  error.kernels = static_cast<int>(off.size());
  error.bias = std::exp(sum / static_cast<double>(off.size()));
  error.typical = off[off.size() / 2];
  error.nine_of_ten = off[off.size() * 9 / 10];
  return error;
}

const std::vector<Compared>& compared() {
  static const std::vector<Compared> all = compare_all();
  return all;
}

// Factors that the kernels of a provider stay within on operators that the models were not fitted to. Where they cannot
// be kept any more, docs/performance.md says too little.
struct Bound {
  const char* provider;
  double typical, nine_of_ten;
};
constexpr Bound kBounds[] = {{"conv_baked", 1.15, 1.45},
                             {"conv_dense", 1.2, 1.35},
                             {"conv_depthwise", 1.2, 1.45},
                             {"conv_streamed", 1.25, 1.6},
                             {"linear", 1.35, 2},
                             {"linear_sparse", 1.25, 2},
                             {"pool", 1.2, 1.25},
                             {"elementwise", 1.2, 1.3},
                             {"combine", 1.35, 1.35},
                             {"copy", 1.25, 1.25},
                             {"global_average", 1.3, 1.3},
                             {"lrn", 1.2, 1.2},
                             {"softmax_channels", 1.4, 1.4},
                             {"conv_depthwise fp16:n8c8hw", 1.15, 1.4},
                             {"conv_depthwise tf32:n4c8hw", 1.25, 1.35},
                             {"conv_gathered fp16:n8c8hw", 1.15, 1.4},
                             {"conv_warpgroup fp16:n8c8hw", 1.2, 1.7},
                             {"conv_warpgroup_rows fp16:nchw8", 1.15, 1.35},
                             {"conv_warpgroup_rows fp16:nhwc8", 1.15, 1.45},
                             {"conv_warpgroup_rows tf32:nhwc4", 1.25, 1.45},
                             {"conv_warpgroup_tf32 tf32:n4c8hw", 1.15, 1.25}};

// "conv_baked", or "conv_gathered fp16:n8c8hw".
std::string name_of_kernels(const MeasuredTime& time) {
  return time.form.is_plain() ? time.provider : fmt::format("{} {}", time.provider, to_string(time.form));
}

void check_errors() {
  std::map<std::pair<std::string, bool>, std::vector<Compared>> groups;
  for (const Compared& one : compared()) groups[{name_of_kernels(one.measured), one.fitted}].push_back(one);
  for (const auto& [group, members] : groups) {
    const ModelError error = error_of(members);
    show(fmt::format("| `{}` | {} | {} | {:.2f} | {:.2f} | {:.2f} |", group.first, group.second ? "fitted" : "others",
                     error.kernels, error.bias, error.typical, error.nine_of_ten));
  }
  if (std::getenv("BURIN_MODEL_ROWS") != nullptr) {
    for (const Compared& one : compared()) {
      fmt::print("{:6.2f} {:8.2f} {:8.2f}  {} b{} {} {}\n", one.ratio(), one.predicted_us, one.measured.us,
                 one.measured.op, one.measured.batch, name_of_kernels(one.measured), one.measured.plan);
    }
  }
  for (const Bound& bound : kBounds) {
    INFO(bound.provider);
    const auto group = groups.find({bound.provider, false});
    REQUIRE(group != groups.end());
    const ModelError error = error_of(group->second);
    CHECK(error.typical < bound.typical);
    CHECK(error.nine_of_ten < bound.nine_of_ten);
  }
}

// There are at least so many choices between providers in a precision, in such a share of which the fastest is taken.
// In TF32 there are none but between plans.
struct ChoiceBound {
  Precision precision;
  int choices;
  double provider_right, mean, worst;
};
constexpr ChoiceBound kChoiceBounds[] = {{Precision::fp32, 30, 0.85, 1.04, 1.5}, {Precision::fp16, 15, 0.8, 1.08, 1.5}};

void check_choices(const ChoiceBound& bound) {
  constexpr double kNear = 1.25;
  using Kernels = std::vector<const Compared*>;
  std::map<bool, std::map<std::tuple<std::string, ModelForm, int>, Kernels>> tasks;
  for (const Compared& one : compared()) {
    const MeasuredTime& time = one.measured;
    if (time.form.precision != bound.precision) continue;
    tasks[one.fitted][{time.op, time.form, time.batch}].push_back(&one);
  }
  for (const auto& [fitted, kernels_of] : tasks) {
    double sum = 0, worst = 1;
    int count = 0, provider_right = 0, near = 0;
    for (const auto& [task, kernels] : kernels_of) {
      const auto provider = [](const Compared* one) { return one->measured.provider; };
      const auto is_first = [&](const Compared* one) { return provider(one) == provider(kernels.front()); };
      if (std::ranges::all_of(kernels, is_first)) continue;  // there is no choice between providers
      const Compared* chosen =
          *std::ranges::min_element(kernels, {}, [](const Compared* c) { return c->predicted_us; });
      const Compared* best = *std::ranges::min_element(kernels, {}, [](const Compared* c) { return c->measured.us; });
      const double loss = chosen->measured.us / best->measured.us;
      sum += std::log(loss);
      worst = std::max(worst, loss);
      near += loss <= kNear;
      ++count;
      provider_right += provider(chosen) == provider(best);
    }
    REQUIRE(count >= bound.choices);
    const double mean = std::exp(sum / count);
    show(fmt::format("| {}, {} | {} | {} | {} | {:.3f} | {:.2f} |", fitted ? "fitted" : "others",
                     to_string(bound.precision), count, provider_right, near, mean, worst));
    CHECK(near >= count * 80 / 100);
    CHECK(provider_right >= count * bound.provider_right);
    CHECK(mean < bound.mean);
    CHECK(worst < bound.worst);
  }
}

}  // namespace

// Both judge the same comparison, which takes its time.
TEST_CASE("models: how far each is off on operators that it was not fitted to, and what they choose") {
  check_errors();
  for (const ChoiceBound& bound : kChoiceBounds) check_choices(bound);
}

TEST_CASE("models: a file of times that cannot be read") {
  CHECK(BURIN_THROWN(bad_input, parse_times("case\tform\tbatch\n")).has("line 1: expected the header"));
  const std::string header = std::string(kTimesHeader) + "\n";
  CHECK(parse_times("# about\n" + header + print({"a", {}, 1, "pool", "pool", 2})).size() == 1);
  for (const char* line : {"a\tfp32:nchw\t1\tpool\tpool", "a\tfp32:nchw\t0\tpool\tpool\t2",
                           "a\tfp32:nchw\t1\tpool\tpool\tfast", "a\tfp32:nchw\t1\tp\tp\t-1"}) {
    INFO(line);
    CHECK(BURIN_THROWN(bad_input, parse_times(header + line)).has("line 2: expected six fields"));
  }
  CHECK(BURIN_THROWN(bad_input, parse_times(header + "a\tfp16:nchw4\t1\tp\tp\t1"))
            .has("line 2: 'fp16:nchw4' is no form"));
}
