#include <chrono>
#include <set>
#include <string>

#include "ir/numbered_names.h"
#include "test/catch.h"

using burin::NumberedNames;

TEST_CASE("numbered names: each is given out once") {
  NumberedNames names;
  CHECK(names.give("conv") == "conv");
  CHECK(names.give("conv_2") == "conv_2");
  CHECK(names.give("conv") == "conv_3");
  CHECK(names.suffix("conv") == "_4");
  CHECK(names.give("conv_3") == "conv_3_2");
  CHECK(names.give("other") == "other");
}

TEST_CASE("numbered names: many that are alike take no longer than others") {
  // One after the other from 2 up they were five thousand million steps, which took minutes.
  constexpr int kCount = 100'000;
  const auto begin = std::chrono::steady_clock::now();
  NumberedNames names;
  std::set<std::string> seen;
  for (int i = 0; i < kCount; ++i) seen.insert(names.give("converted"));
  CHECK(seen.size() == kCount);
  CHECK(seen.contains("converted_100000"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
