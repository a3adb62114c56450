// Packages whose manifest was changed at random, on the fake driver: refused, or within their memory.
#include <cstdlib>
#include <fstream>
#include <random>

#include "ir/error.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/run_package.h"
#include "test/runtime/sample_package.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::int64_t kMostBytes = 16 << 20;  // of a package's files

// Places of numbers, as (begin, end).
std::vector<std::pair<std::size_t, std::size_t>> numbers_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(i)) continue;
    const std::size_t begin = i;
    while (i < text.size() && is_digit(i)) ++i;
    numbers.emplace_back(begin, i);
  }
  return numbers;
}

// Changes one number, one byte or one line: a reader that believes any of them reaches too far.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    switch (random_() % 4) {
      case 0:
        text[random_() % text.size()] = static_cast<char>(' ' + random_() % 95);
        return text;
      case 1:
        return with_other_lines(text);
      default:
        return with_other_number(text);
    }
  }

 private:
  std::string with_other_number(std::string text) {
    const auto numbers = numbers_of(text);
    const auto [begin, end] = numbers[random_() % numbers.size()];
    const std::string old = text.substr(begin, end - begin);
    const std::int64_t value = old.size() < 15 ? std::stoll(old) : 0;
    const auto [other_begin, other_end] = numbers[random_() % numbers.size()];
    const std::string replacements[] = {"0",
                                        "1",
                                        "-1",
                                        std::to_string(value + 1),
                                        std::to_string(value - 1),
                                        std::to_string(value * 2),
                                        std::to_string(value / 2),
                                        std::to_string(value * 3),
                                        "4294967296",
                                        "2147483647",
                                        "65536",
                                        text.substr(other_begin, other_end - other_begin)};
    return text.replace(begin, end - begin, replacements[random_() % std::size(replacements)]);
  }

  // A line less, or one twice.
  std::string with_other_lines(std::string text) {
    const std::size_t at = random_() % text.size();
    const std::size_t before = text.rfind('\n', at);
    const std::size_t begin = before == std::string::npos ? 0 : before;
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    if (end <= begin) return text;
    const std::string line = text.substr(begin, end - begin);
    return random_() % 2 == 0 ? text.erase(begin, end - begin) : text.insert(begin, line);
  }

  std::mt19937 random_;
};

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
