// Texts that a person edits badly: each gives a value that verify() can judge, or one Error(bad_input).

#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_program.h"

using namespace burin;

namespace {

std::string mutate(std::string text, burin_test::Random& random) {
  static constexpr std::string_view kBytes = "0123456789-,:x =#\nkcrs.e\0\xff";
  for (int edits = random.integer(1, 4); edits > 0 && !text.empty(); --edits) {
    const auto at = static_cast<std::size_t>(random.integer(0, static_cast<int>(text.size()) - 1));
    const char byte = kBytes[random.integer(0, static_cast<int>(kBytes.size()) - 1)];
    switch (random.integer(0, 3)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.erase(at, random.integer(1, 12));
        break;
      default:
        text.insert(at, text.substr(random.integer(0, static_cast<int>(at)), random.integer(1, 40)));
        break;
    }
  }
  return text;
}

// How many of the mutations could still be read.
template <typename Read>
int read_mutations(const std::string& text, std::uint64_t seed, Read read) {
  burin_test::Random random(seed);
  int readable = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string mutated = mutate(text, random);
    INFO("seed " << seed << ", case " << i << "\n" << mutated);
    try {
      read(mutated);
      ++readable;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input || std::string_view(error.what()).empty()) FAIL(error.what());
    }
  }
  return readable;
}

}  // namespace

TEST_CASE("mutated text: kernel plans") {
  const int readable = read_mutations(print(burin_test::small_plan()), 81, [](const std::string& text) {
    const BakedPlan plan = parse_baked_plan(text);
    verify(plan, burin_test::small_shape());
    if (!(parse_baked_plan(print(plan)) == plan)) FAIL("no round trip");
  });
  CHECK(readable > 100);
  CHECK(readable < 4900);
}

TEST_CASE("mutated text: programs") {
  const Program programs[] = {burin_test::small_program(), burin_test::mapped_program()};
  for (const Program& whole : programs) {
    INFO(whole.name);
    const int readable = read_mutations(to_text(whole), 84, [](const std::string& text) {
      const Program program = parse_program(text);
      verify(program);
      print(program);
      if (!(parse_program(to_text(program)) == program)) FAIL("no round trip");
    });
    CHECK(readable > 100);
    CHECK(readable < 4900);
  }
}
