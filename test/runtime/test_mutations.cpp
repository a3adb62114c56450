// Packages whose manifest was changed at random, on the fake driver: refused, or within their memory.
#include <cstdlib>
#include <fstream>

#include "ir/error.h"
#include "test/catch.h"
#include "test/package/mutator.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/run_package.h"
#include "test/runtime/sample_package.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::int64_t kMostBytes = 16 << 20;  // of a package's files

std::vector<std::string> sample_texts() {
  const auto layers = half_sample_package(Precision::fp16);
  add_layer_programs(layers->manifest);
  Manifest kernels = sample_package()->manifest;
  add_layer_programs(kernels);
  return {print(network_package().manifest), print(layers->manifest), print(kernels)};
}

struct Count {
  int refused = 0, run = 0, launches = 0, checked_tensors = 0;
};

void try_text(const std::string& text, Count& count) {
  std::shared_ptr<Package> package;
  try {
    package = with_sample_files(parse_manifest(text), kMostBytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
  }
  if (package == nullptr || !verify(*package).empty()) {
    ++count.refused;
    return;
  }
  FakeDriver fake;
  fake.has_real_memory = false;
  fake.knows(package);
  count.launches += run_package(package).launches;
  ++count.run;
  count.checked_tensors += fake.checked_tensors();
  if (!fake.faults().empty() || !fake.live().empty()) {
    std::ofstream("mutation.json") << text;
    CHECK(fake.faults() == std::vector<std::string>{});
    CHECK(fake.live() == std::vector<std::string>{});
    FAIL("mutation.json has the manifest");
  }
}

}  // namespace

TEST_CASE("mutations: the samples run within their memory") {
  for (const std::string& text : sample_texts()) {
    Count count;
    try_text(text, count);
    CHECK(count.run == 1);
    CHECK(count.launches >= 4);
    CHECK(count.checked_tensors > 4);
  }
}

TEST_CASE("mutations: a manifest is refused or runs within its memory") {
  const char* more = std::getenv("BURIN_MUTATIONS");
  const int rounds = more == nullptr ? 800 : std::atoi(more);
  Mutator mutator(20261123);
  Count count;
  const std::vector<std::string> texts = sample_texts();
  for (int i = 0; i < rounds; ++i) {
    std::string text = mutator.mutate(texts[static_cast<std::size_t>(i) % texts.size()]);
    if (i % 3 == 0) text = mutator.mutate(text);
    try_text(text, count);
  }
  WARN(count.refused << " refused, " << count.run << " run with " << count.launches << " launches, "
                     << count.checked_tensors << " tensors checked");
  CHECK(count.refused > rounds / 4);
  CHECK(count.run > rounds / 20);
  CHECK(count.checked_tensors > count.run);
}

TEST_CASE("mutations: what reaches too far is a fault") {
  FakeDriver fake;
  const auto package = sample_package();
  const LoadedPackage loaded(Device::open(0), package, "sample");
  const auto known = std::make_shared<Package>(*package);
  known->manifest.kernels.front().form.tensors.front().image_words += 1;  // the second image lies further away
  fake.knows(known);
  static_cast<void>(run_package(package));
  REQUIRE_FALSE(fake.faults().empty());
  CHECK(fake.faults().front().find("conv1_b1 with batch 3: its input takes") == 0);
}
