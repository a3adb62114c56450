// From which share of zero weights on they pay: the search, the patterns that it tries, and what kernels keep of it.
#include "compiler/choose/pays_from.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/kernel_job.h"
#include "compiler/program_tasks.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kNoShare = 2;

// The search on estimates that pay from a share on, and the shares that it asked for.
struct Search {
  explicit Search(double from, std::optional<double> own = std::nullopt)
      : found(least_paying_share(
            [&](double share) {
              asked.push_back(share);
              return share >= from;
            },
            own)) {}
  std::vector<double> asked;
  std::optional<double> found;
};

std::vector<float> weights_with(std::size_t count, std::size_t nonzeros) {
  std::vector<float> weights(count, 0);
  for (std::size_t i = 0; i < nonzeros; ++i) weights[i * 7 % count] = static_cast<float>(i % 5 + 1) / 4;
  return weights;
}

std::size_t zeros_in(const std::vector<float>& weights) {
  return static_cast<std::size_t>(std::ranges::count(weights, 0.0F));
}

ConvLayer layer_with(int in, int out, int size, double density) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.in_h = shape.in_w = size;
  return make_layer("conv", shape, density);
}

std::optional<WeightZeros> zeros_of_layer(const ConvLayer& layer, const CompileOptions& options = {}, int batch = 1) {
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  return zero_weights_pay_from(task_of(op, layer, batch, options), options);
}

}  // namespace

TEST_CASE("pays from: the share is found to a step, whatever it is") {
  for (const double from : {0.005, 0.1, 0.37, 0.5, 0.9, 0.995, 1.0}) {
    CAPTURE(from);
    for (const std::optional<double> own : {std::optional<double>(), {0.0}, {0.2}, {0.9}, {1.0}}) {
      const std::optional<double> found = Search(from, own).found;
      REQUIRE(found);
      CHECK(*found >= from);
      CHECK(*found <= from + kShareStep);
    }
  }
}

TEST_CASE("pays from: always and never") {
  for (const std::optional<double> own : {std::optional<double>(), {0.0}, {0.6}, {1.0}}) {
    CHECK(Search(0, own).found == 0.0);
    CHECK(Search(kNoShare, own).found == std::nullopt);
  }
}

TEST_CASE("pays from: what takes long to estimate is not asked for in vain") {
  const Search search(0.9);
  CHECK(std::ranges::min(search.asked) == 0.5);
  CHECK(search.asked.size() < 10);
  CHECK(Search(kNoShare).asked == std::vector<double>{1});
  CHECK(Search(kNoShare, 0.6).asked == std::vector<double>{0.6, 1});
}

TEST_CASE("pays from: what is estimated of the layer itself counts where estimates contradict each other") {
  const auto but_at = [](double own, double from) {
    return least_paying_share([=](double share) { return (share == own) != (share >= from); }, own);
  };
  const std::optional<double> above = but_at(0.9, 0.8);  // it pays from 0.8 on, but not with the layer's own zeros
  REQUIRE(above);
  CHECK(*above > 0.9);
  const std::optional<double> below = but_at(0.6, 0.8);  // it pays from 0.8 on, and with the layer's own zeros
  REQUIRE(below);
  CHECK(*below <= 0.6);
}

TEST_CASE("pays from: patterns have as many zeros as they are asked for, and hold each other") {
  const std::vector<float> own = weights_with(1000, 300);
  REQUIRE(zeros_in(own) == 700);
  std::vector<float> last = with_zero_share(own, 0, 1);
  CHECK(zeros_in(last) == 0);
  for (const double share : {0.1, 0.5, 0.6994, 0.7, 0.85, 0.999, 1.0}) {
    CAPTURE(share);
    const std::vector<float> weights = with_zero_share(own, share, 1);
    CHECK(zeros_in(weights) == static_cast<std::size_t>(std::llround(1000 * share)));
    bool held = true;
    for (std::size_t i = 0; i < weights.size(); ++i) held = held && (last[i] != 0 || weights[i] == 0);
    CHECK(held);
    if (share == 0.7) CHECK(weights == own);
    last = weights;
  }
  CHECK(with_zero_share(own, 0.9, 1) != with_zero_share(own, 0.9, 2));
  CHECK(std::ranges::max(with_zero_share(own, 0, 1)) == std::ranges::max(own));
  CHECK(with_zero_share(std::vector<float>(4, 0.0F), 0, 1) == std::vector<float>(4, 1.0F));
}

TEST_CASE("pays from: it agrees with the kernel that is chosen") {
  int dense = 0, sparse = 0;
  for (const double density : {0.05, 0.1, 0.2, 0.5, 1.0}) {
    CAPTURE(density);
    const ConvLayer layer = layer_with(128, 128, 14, density);
    const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
    const Choice choice = choose(task_of(op, layer, 1, {}), {});
    const std::optional<WeightZeros> zeros = zeros_of_layer(layer);
    REQUIRE(zeros);
    CHECK(zeros->batch == 1);
    REQUIRE(zeros->pays_from);
    const double own =
        static_cast<double>(zeros_in(layer.weights)) / static_cast<double>(layer.shape.weight_elements());
    const bool is_dense = find_provider(choice.candidate.provider)->is_dense();
    CHECK((*zeros->pays_from > own) == is_dense);
    ++(is_dense ? dense : sparse);
  }
  CHECK(dense > 0);
  CHECK(sparse > 0);
}

TEST_CASE("pays from: nothing is said where kernels of one kind alone are compared") {
  const ConvLayer layer = layer_with(16, 24, 9, 0.3);
  CHECK(zeros_of_layer(layer));
  for (const char* kind : {"baked", "dense"}) {
    CompileOptions options;
    options.kernels = parse_kernel_kinds(kind);
    CHECK_FALSE(zeros_of_layer(layer, options));
  }
  CompileOptions planned;
  planned.plan = "groups=4";
  CHECK_FALSE(zeros_of_layer(layer, planned));
  const Operator pool{.name = "pool", .kind = Pool{}, .inputs = {}, .output = 0};
  CHECK_FALSE(zero_weights_pay_from(task_of(pool, {{4, 6, 6}}, {4, 6, 6}, {}, {}, 1, {}), {}));
}

TEST_CASE("pays from: each kernel keeps it for the batch sizes whose programs launch it") {
  // A fully connected layer behind a convolution.
  Network network;
  network.source = "m.onnx";
  network.layers = {layer_with(8, 16, 4, 1)};
  network.tensors = {{"x", {8, 4, 4}}, {"y", {16, 4, 4}}, {"z", {40}}};
  network.operators.push_back({"conv", Convolution{}, {0}, 1});
  network.operators.push_back(
      {"fc",
       Linear{.in_features = 256, .out_features = 40, .weights = std::vector<float>(256 * 40, 0.5F), .bias = {}},
       {1},
       2});
  network.inputs = {0};
  network.outputs = {2};
  CompileOptions options;
  options.batches = {1, 2, 3, 4};
  static const Reentry kNone;
  for (const KernelJob& job : KernelLister(network, options, kNone, {}).list().kernels) {
    CHECK(job.weight_zeros.empty());
  }
  options.seeks_weight_zeros = true;
  const KernelJobs jobs = KernelLister(network, options, kNone, {}).list();
  std::map<std::size_t, std::vector<int>> launched;  // with batches of so many, by kernel
  for (const ProgramJob& program : jobs.programs) {
    for (const std::size_t kernel : program.kernels) launched[kernel].push_back(program.program.batch);
  }
  bool is_shared = false;
  for (const auto& [kernel, batches] : launched) {
    const KernelJob& job = jobs.kernels[kernel];
    if (job.task.layer == nullptr && job.task.get<Linear>() == nullptr) continue;
    std::vector<int> kept;
    for (const WeightZeros& zeros : job.weight_zeros) kept.push_back(zeros.batch);
    CHECK(kept == batches);
    is_shared = is_shared || batches.size() > 1;
  }
  CHECK(is_shared);
}
