
#include "runtime/bench/measure.h"
#include "test/catch.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

struct Bench {
  FakeDriver fake;
  Device device = Device::open(0);
  Stream stream{device};
  LoadedKernel kernel = LoadedPackage(device, sample_package(), "sample").kernel("conv1", 1);
  Workspace workspace{device, kernel.workspace_size(1)};
  float value = 0;
  std::vector<int> indices;
  std::function<void(CUstream_st*, int)> enqueue = [this](CUstream_st* target, int i) {
    indices.push_back(i);
    kernel.launch(target, {&value, &value, nullptr, 1}, workspace);
  };
};

}  // namespace

TEST_CASE("measure: a_launch_of_known_length") {
  Bench bench;
  bench.fake.microseconds_per_launch = 12.5;
  const Measurement result =
      measure(bench.device, bench.stream, bench.enqueue, {.launches_per_graph = 4, .samples = 7, .warmup = 2});
  CHECK(result.launches_per_graph == 4);
  REQUIRE(result.samples_us.size() == 7);
  CHECK(result.min_us == Approx(12.5));
  CHECK(result.median_us == Approx(12.5));
  CHECK(result.p99_us == Approx(12.5));
  CHECK(bench.indices == std::vector<int>{0, 1, 2, 3});
  CHECK(bench.fake.calls_of("cuGraphLaunch") == 9);
}

TEST_CASE("measure: the graph is filled when its length is left open") {
  for (const auto& [microseconds, launches] :
       std::vector<std::pair<double, int>>{{5.1, 99}, {1e-4, 2000}, {0, 2000}, {1e6, 8}, {7, 72}}) {
    Bench bench;
    bench.fake.microseconds_per_launch = microseconds;
    INFO(microseconds);
    CHECK(measure(bench.device, bench.stream, bench.enqueue, {.samples = 3}).launches_per_graph == launches);
  }
}

TEST_CASE("measure: bad_options") {
  Bench bench;
  CHECK(BURIN_THROWN(usage, measure(bench.device, bench.stream, bench.enqueue, {.samples = 0})).has("0 samples"));
  CHECK(BURIN_THROWN(usage, measure(bench.device, bench.stream, bench.enqueue, {.launches_per_graph = -1})).has("-1"));
  CHECK(BURIN_THROWN(usage, measure(bench.device, bench.stream, bench.enqueue, {.warmup = -2})).has("-2"));
}

TEST_CASE("summarize: statistics") {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);
  const Measurement result = summarize(samples, 3);
  CHECK(result.min_us == 0);
  CHECK(result.p10_us == Approx(10));
  CHECK(result.median_us == Approx(50));
  CHECK(result.p90_us == Approx(90));
  CHECK(result.p99_us == Approx(99));
  CHECK(result.mean_us == Approx(50));
  CHECK(result.launches_per_graph == 3);
  CHECK(result.samples_us.front() == 0);
}

TEST_CASE("summarize: few_samples") {
  CHECK(summarize({}, 1).median_us == 0);
  const Measurement one = summarize({4}, 1);
  CHECK(one.min_us == 4);
  CHECK(one.p99_us == 4);
  CHECK(summarize({1, 2}, 1).median_us == Approx(1.5));
}
