// Which batch sizes of a range get a program: few enough, and fast enough.
#include <algorithm>
#include <optional>
#include <random>

#include "compiler/choose/batch_choice.h"
#include "compiler/embed/settings.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// Programs for more images take longer with few of them, but not always.
BatchTimes random_times(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  BatchTimes times;
  const auto count = static_cast<std::size_t>(draw(1, 11));
  int size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    size += static_cast<int>(draw(1, 4));
    times.sizes.push_back(size);
    times.own_us.push_back(5 + size * draw(0.5, 1));
    std::vector<double>& us = times.us.emplace_back();
    for (std::size_t s = 0; s < i; ++s)
      us.push_back(times.own_us[s] * draw(0.95, 1.1 + 0.1 * static_cast<double>(i - s)));
    us.push_back(times.own_us[i]);
    times.must.push_back(draw(0, 1) < 0.1);
    times.bounded.push_back(draw(0, 1) < 0.9);
  }
  times.must.back() = true;
  return times;
}

// The sum of the ratios; nothing where a size is over the bound.
std::optional<double> ratios_of(const BatchTimes& times, const std::vector<std::size_t>& programs) {
  double sum = 0;
  for (std::size_t size = 0; size < times.sizes.size(); ++size) {
    const auto program = std::ranges::lower_bound(programs, size);
    if (program == programs.end() || (times.must[size] && *program != size)) return std::nullopt;
    const double ratio = times.us[*program][size] / times.own_us[size];
    if (*program != size && times.bounded[size] && ratio > kBatchBound) return std::nullopt;
    sum += ratio;
  }
  return sum;
}

Network network_of_two() {
  Network network;
  network.source = "two.onnx";
  network.tensors = {{"x", {8, 10, 10}}, {"t", {24, 10, 10}}, {"y", {16, 10, 10}}};
  for (int i = 0; i < 2; ++i) {
    ConvShape shape;
    shape.in_channels = i == 0 ? 8 : 24;
    shape.out_channels = i == 0 ? 24 : 16;
    shape.kernel_h = shape.kernel_w = 3;
    shape.pad = {1, 1, 1, 1};
    shape.in_h = shape.in_w = 10;
    const std::string name = i == 0 ? "first" : "second";
    network.layers.push_back(make_layer(name, shape, 0.2));
    network.operators.push_back({name, Convolution{i}, {i}, i + 1});
  }
  network.inputs = {0};
  network.outputs = {2};
  return network;
}

}  // namespace

TEST_CASE("batch choice: as few programs as there can be, of 100 random tables") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const BatchTimes times = random_times(seed);
    const std::vector<std::size_t> programs = fewest_programs(times);
    const std::optional<double> ratios = ratios_of(times, programs);
    REQUIRE(ratios);
    std::pair<std::size_t, double> best{times.sizes.size() + 1, 0};
    for (unsigned set = 1; set < 1U << times.sizes.size(); ++set) {
      std::vector<std::size_t> tried;
      for (std::size_t i = 0; i < times.sizes.size(); ++i) {
        if ((set >> i & 1) != 0) tried.push_back(i);
      }
      if (const auto found = ratios_of(times, tried)) best = std::min(best, {tried.size(), *found});
    }
    CHECK(programs.size() == best.first);
    CHECK(*ratios == Approx(best.second));
  }
}

TEST_CASE("batch choice: a network keeps the bound with every size of a range") {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    CompileOptions options;
    options.precisions.all = precision;
    options.batches = {3};
    options.batch_ranges = {{1, 12}, {40, 41}};
    options.jobs = 2;
    const BatchChoice choice = choose_batches(network_of_two(), options, {});
    CHECK(choice.batches.back() == 41);
    CHECK(std::ranges::find(choice.batches, 3) != choice.batches.end());
    CHECK(choice.batches.size() < 8);
    REQUIRE(choice.curve.size() == 14);
    for (std::size_t i = 0; i < choice.curve.size(); ++i) {
      const auto& [images, program, us, own_us] = choice.curve[i];
      INFO(to_string(precision) << ", " << images << " images on a program for " << program);
      CHECK(images == (i < 12 ? static_cast<int>(i) + 1 : static_cast<int>(i) + 28));
      CHECK(program == *std::ranges::lower_bound(choice.batches, images));
      CHECK(own_us > 0);
      CHECK(us <= kBatchBound * own_us);
      if (program == images) CHECK(us == Approx(own_us));
    }
  }
}

TEST_CASE("batch choice: a package has the programs and says what each size takes") {
  CompileSettings settings;
  settings.batches = {};
  settings.batch_spans = {{1, 6}};
  settings.jobs = 2;
  const CompileResult result = run_pipeline(network_of_two(), options_of(settings), settings, {});
  const Manifest& manifest = result.package.manifest;
  CHECK(verify(manifest).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  REQUIRE(manifest.batches.size() == 6);
  std::vector<const Program*> programs;
  for (const Program& program : manifest.programs) programs.push_back(&program);
  for (const BatchEstimate& batch : manifest.batches) {
    CHECK(program_for(programs, batch.images).batch == batch.program);
  }
  // As many kernels' times as there are steps.
  double predicted = 0;
  for (const Step& step : programs.back()->steps) {
    predicted += std::ranges::find(manifest.kernels, step.kernel, &Kernel::symbol)->predicted_us;
  }
  CHECK(manifest.batches.back().us == Approx(predicted));

  Manifest wrong = manifest;
  wrong.batches.front().program = 7;
  CHECK(verify(wrong) == std::vector<std::string>{"batches[0].program: 1 images are not run by a program for 7"});
  wrong = manifest;
  wrong.batches[1].images = 1;
  CHECK_FALSE(verify(wrong).empty());
  wrong = manifest;
  wrong.batches[2].us = -1;
  CHECK(verify(wrong) == std::vector<std::string>{"batches[2].us: -1 is not a finite number from 0 up"});
}

TEST_CASE("batch choice: ranges that cannot be") {
  const auto thrown_by = [](std::vector<BatchRange> ranges, bool separate = false) {
    CompileOptions options;
    options.batch_ranges = std::move(ranges);
    Network network = network_of_two();
    if (separate) separate_layers(network);
    return BURIN_THROWN(usage, check_options(network, options));
  };
  CHECK(thrown_by({{5, 4}}).has("--batch 5..4: a range goes from a batch size up"));
  CHECK(thrown_by({{0, 4}}).has("--batch 0..4: "));
  CHECK(thrown_by({{1, 256}}).has("257 batch sizes are asked for, at most 256 can be planned for (kMaxBatchSizes)"));
  CHECK(thrown_by({{1, 4}}, true).has("ranges are for networks"));
  CompileOptions options;
  options.batch_ranges = {{1, 255}};
  CHECK_NOTHROW(check_options(network_of_two(), options));
  // Nobody predicts what a call of a library takes.
  options.batch_ranges = {{1, 2}};
  options.kernels = parse_kernel_kinds("cudnn");
  CHECK(BURIN_THROWN(unsupported, choose_batches(network_of_two(), options, {})).has("name the batch sizes"));
}
