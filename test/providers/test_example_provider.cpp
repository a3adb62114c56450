// The example of docs/hacking.md: a provider that is one folder and one line. The page shows it as it is.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "compiler/emit/ptx.h"
#include "compiler/specialise/specialised_module.h"
#include "test/catch.h"
#include "test/providers/provider_check.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kExample = "example_relu";
const std::string kExampleList = BURIN_SOURCE_FOLDER "/test/providers/example/providers.def";
const std::string kExampleFolder = BURIN_SOURCE_FOLDER "/test/providers/example/example_relu";

Network relu_of(const std::vector<std::int64_t>& shape) {
  return network_of(Elementwise{ElementFunction::relu}, {shape});
}

// What the provider says of its plan of a ReLU when somebody has edited a line of it.
std::string refusal_of(const std::string& line, const std::string& by) {
  const Network network = relu_of({4, 30, 30});
  const Task task = task_of(network, network.operators.back(), {});
  Candidate candidate = candidate_of(task, kExample);
  const std::size_t at = candidate.plan.find(line + "\n");
  REQUIRE(at != std::string::npos);
  candidate.plan.replace(at, line.size(), by);
  return error_of([&] { find_provider(kExample)->make(task, candidate.plan); }, ErrorKind::unsupported);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The blocks of code in the section of a page whose heading is `heading`, in their order.
std::vector<std::string> code_blocks(const std::string& page, const std::string& heading) {
  std::vector<std::string> blocks;
  bool in_section = false, in_block = false;
  for (const std::string& line : lines_of(page)) {
    if (!in_block && line.starts_with("## ")) in_section = line == heading;
    if (!in_section) continue;
    if (line.starts_with("```")) {
      in_block = !in_block;
      if (in_block) blocks.emplace_back();
    } else if (in_block) {
      blocks.back() += line + "\n";
    }
  }
  REQUIRE_FALSE(in_block);
  return blocks;
}

}  // namespace

TEST_CASE("example provider: it is one of the list, behind the product's") {
  CHECK(find_provider("elementwise") != nullptr);
  REQUIRE(find_provider(kExample) != nullptr);
  CHECK(providers().back() == find_provider(kExample));
}

TEST_CASE("example provider: it proposes kernels for a ReLU and for nothing else") {
  CHECK(providers_of(relu_of({4, 6, 6})) == std::set<std::string>{"elementwise", kExample});
  const Elementwise sigmoid{ElementFunction::sigmoid};
  CHECK(providers_of(network_of(sigmoid, {{4, 6, 6}})) == std::set<std::string>{"elementwise"});
}

TEST_CASE("example provider: its numbers on the edges, on whole tensors and slices") {
  const std::vector<std::vector<std::int64_t>> shapes = {{1, 1, 1}, {3, 11, 13}, {4, 4, 4}, {67, 3, 5}, {1000}};
  for (const auto& shape : shapes) {
    const OperatorCase edge{"relu", Elementwise{ElementFunction::relu}, {shape}};
    INFO(fmt::format("{}", fmt::join(shape, "x")));
    CHECK(check_everywhere(edge) == "");
  }
}

TEST_CASE("example provider: every number of words that a thread may have") {
  const Network network = relu_of({2049});  // of 2, 4 and 8 words a thread, one beyond whole blocks
  const Operator& op = network.operators.back();
  const Task task = task_of(network, op, {});
  for (int words = 1; words <= 8; ++words) {
    const auto candidates = find_provider(kExample)->propose(task, {.plan = fmt::format("words={}", words)});
    REQUIRE(candidates.size() == 1);
    CHECK(parse_template_plan(candidates.front().plan).integers.at("words") == words);
    CHECK(check_candidate(network, op, candidates.front(), {}) == "");
  }
  CHECK(BURIN_THROWN(usage, find_provider(kExample)->propose(task, {.plan = "words=9"}))
            .has("integer words is 9, allowed is 1 to 8"));
}

TEST_CASE("example provider: a plan that was edited") {
  CHECK(refusal_of("integer words: 1", "integer words: 1") == "no error");
  CHECK_THAT(refusal_of("integer words: 1", "integer words: 0"), burin_test::Contains("words is 0, allowed is 1 to 8"));
  CHECK_THAT(refusal_of("integer words: 1", "integer words: 2"),
             burin_test::Contains("'tiles_per_image: 15' does not follow from the operator and the other choices"));
  CHECK_THAT(refusal_of("integer elements: 3600", "integer elements: 3599"),
             burin_test::Contains("'integer elements: 3599' does not follow"));
}

TEST_CASE("example provider: its kernel for a GPU") {
  const Network network = relu_of({64, 8, 8});
  const Task task = task_of(network, network.operators.back(), {});
  const Recipe recipe = find_provider(kExample)->make(task, candidate_of(task, kExample).plan);
  const std::string ptx = emit_ptx(recipe.specialise(recipe.symbol), "sm_90");
  CHECK_THAT(ptx, burin_test::Contains(".entry " + recipe.symbol));
  CHECK_THAT(ptx, !burin_test::Contains(".local"));
}

TEST_CASE("example provider: docs/hacking.md shows the folder and the line") {
  const std::vector<std::string> blocks =
      code_blocks(read_file(BURIN_SOURCE_FOLDER "/docs/hacking.md"), "## To add a provider");
  std::vector<std::string> expected;
  for (const char* ending : {".def", ".cu", ".cpp"}) {
    expected.push_back(read_file(kExampleFolder + "/" + kExample + ending));
    CHECK_FALSE(expected.back().empty());
  }
  const auto files = std::filesystem::directory_iterator(kExampleFolder);
  CHECK(std::distance(begin(files), end(files)) == std::ssize(expected));
  const std::vector<std::string> list = lines_of(read_file(kExampleList));
  REQUIRE_FALSE(list.empty());
  expected.push_back(list.back() + "\n");
  REQUIRE(blocks.size() == expected.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) CHECK(blocks[i] == expected[i]);
}
