// Every provider of operators beside the convolutions on the edge list: on the host executor, against the float64
// reference.

#include <bit>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "compiler/host/executor.h"
#include "compiler/reference.h"
#include "compiler/specialise/specialised_module.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/network/random_graphs.h"
#include "test/providers/provider_cases.h"
#include "test/providers/provider_check.h"

using namespace burin;
using namespace burin_test;

namespace {

// Lists are made of pairs, and of pairs of these: each half has some of all.
int half_of(std::size_t number) { return std::popcount(number) % 2; }

void check_all(const std::vector<OperatorCase>& cases) {
  constexpr std::size_t kFewCases = 24;
  REQUIRE_FALSE(cases.empty());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const OperatorCase& edge = cases[i];
    INFO(edge.name);
    CHECK(check_whole(edge) == "");
    const int half = half_of(i);
    if (cases.size() < kFewCases || is_taken(half, 2)) CHECK(check_slices(edge, SlicesBegin::aligned) == "");
    if (cases.size() < kFewCases || is_taken(half + 1, 2)) CHECK(check_slices(edge, SlicesBegin::anywhere) == "");
  }
}

// What is no step of a program.
bool moves_nothing(const Operator& op) {
  return std::holds_alternative<Concat>(op.kind) || std::holds_alternative<ChannelView>(op.kind) ||
         std::holds_alternative<Reshape>(op.kind) || std::holds_alternative<Identity>(op.kind);
}

}  // namespace

TEST_CASE("providers: the example of docs/hacking.md is none of the product's") {
  CHECK(find_provider("elementwise") != nullptr);
  CHECK(find_provider("example_relu") == nullptr);
}
TEST_CASE("providers: pools") { check_all(pool_cases()); }
TEST_CASE("providers: element by element and channel by channel") { check_all(channel_cases()); }
TEST_CASE("providers: functions where they have their ends, roots and steps") { check_all(function_cases()); }
TEST_CASE("providers: second operands that repeat values along any axes, and constants") { check_all(operand_cases()); }
TEST_CASE("providers: products of matrices") { check_all(matmul_cases()); }
TEST_CASE("providers: a product of matrices has several tiles for those who measure, the best by its model first") {
  const OperatorCase edge = {"product", MatMul{}, {{2, 70, 40}, {2, 40, 70}}, 2e-5};
  const Network network = network_of(edge);
  const Task task = task_of(network, network.operators.back(), {});
  const Provider& matmul = *find_provider("matmul");
  const std::vector<Candidate> all = matmul.propose(task, {.count = 100});
  REQUIRE(all.size() == 6);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  for (const Candidate& candidate : all) {
    CHECK(candidate.estimate.us >= all.front().estimate.us);
    CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
    CHECK(matmul.propose(task, {.plan = matmul.brief(candidate.plan)}) == std::vector{candidate});
  }
  CHECK(matmul.propose(task, {}) == std::vector{all.front()});
  CHECK(matmul.propose(task, {.count = 2}).size() == 2);
}
TEST_CASE("providers: reductions and normalizations along any axes") { check_all(group_cases()); }
TEST_CASE("providers: normalizations") { check_all(normalization_cases()); }
TEST_CASE("providers: copies") { check_all(copy_cases()); }
TEST_CASE("providers: all orders of axes, in all tiles") {
  const Provider& copy = *find_provider("copy");
  int tiled = 0, number = 0;
  for (const OperatorCase& edge : order_cases()) {
    INFO(edge.name);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.batches = {3};
    check.before = number++ % 2 * 3;  // by turns slices that begin between multiples of four words
    const Task task = task_of(network, network.operators.back(), check);
    const std::vector<Candidate> all = copy.propose(task, {.count = 100});
    for (const Candidate& candidate : all) {
      CHECK(candidate.estimate.us >= all.front().estimate.us);
      CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
      CHECK(copy.propose(task, {.plan = copy.brief(candidate.plan)}) == std::vector{candidate});
    }
    tiled += all.size() > 1 ? 1 : 0;
  }
  CHECK(tiled >= 20);
}
TEST_CASE("providers: transposes go in tiles where both runs are long, by fours where all lies so") {
  struct Expected {
    bool tiled;
    int in_vector, out_vector;
  };
  const auto check = [](const OperatorKind& kind, const std::vector<std::int64_t>& input, const Expected& expected,
                        int before = 0) {
    ProviderCheck slices;
    slices.before = before;
    const TemplatePlan plan = plan_of(network_of(kind, {input}), "copy", slices);
    const auto number = [&](const char* name) { return plan.integers.at(name); };
    CHECK((number("tile_in") > 0) == expected.tiled);
    CHECK((number("tile_out") > 0) == expected.tiled);
    CHECK(number("in_vector") == expected.in_vector);
    CHECK(number("out_vector") == expected.out_vector);
    CHECK(plan.input().alignment == (expected.in_vector == 4 ? 16 : 4));
    CHECK(plan.output().alignment == (expected.out_vector == 4 ? 16 : 4));
  };
  const Transpose last{{1, 2, 0}};
  check(last, {256, 56, 56}, {true, 4, 4});
  check(last, {256, 7, 7}, {true, 1, 4});
  check(last, {85, 20, 20}, {true, 4, 1});
  check(last, {85, 19, 21}, {true, 1, 1});
  check(last, {256, 56, 56}, {true, 1, 1}, 1);  // slices that begin between multiples of 16 bytes
  check(last, {3, 56, 56}, {false, 1, 1});      // three channels are no run
  check(Transpose{{1, 0}}, {3, 400}, {false, 1, 1});
  check(Transpose{{1, 0, 2}}, {12, 197, 64}, {false, 1, 1});  // runs stay runs
  const auto pick = [&](std::int64_t begin, std::int64_t step, const Expected& expected) {
    check(Pick{{{0, 1, 64}, {begin, step, 32}}, {1, 0}}, {64, 256}, expected);
  };
  pick(4, 1, {true, 4, 4});
  pick(5, 1, {true, 1, 4});
  pick(255, -1, {true, 1, 4});
  pick(0, 2, {true, 1, 4});
  pick(0, 8, {false, 1, 1});
  pick(3, 0, {false, 1, 1});
}
TEST_CASE("providers: weighted sums of rows and columns") { check_all(resample_cases()); }
TEST_CASE("providers: halves") { check_all(half_cases()); }
namespace {

// The cases have 1 to 12 channels and 1 to 9 images; what fills up channels is zero.
void check_octets(const TensorFormat& octets) {
  const std::vector<OperatorCase> cases = octet_cases(octets);
  REQUIRE_FALSE(cases.empty());
  const int side = images_together(octets.layout);
  const std::vector<int> batches = side == 8   ? std::vector{1, 8, 7, 9}
                                   : side == 4 ? std::vector{3, 5}
                                               : std::vector{1, 2};
  std::size_t number = 0;
  int dealt = 0;
  for (const OperatorCase& edge : cases) {
    INFO(edge.name);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.batches.clear();
    for (const int batch : batches) {
      if (is_taken(dealt++, 2)) check.batches.push_back(batch);
    }
    ++dealt;  // the next case has the other ones
    CHECK(check_operator(network, check) == "");
    if (!can_be_slices(octets.layout) || !is_taken(half_of(number++), 2)) continue;
    check.before = check.behind = 1;
    check.batches = {side + 1};
    check.tuned_batch = 64;
    CHECK(check_operator(network, check) == "");
  }
}

}  // namespace

TEST_CASE("providers: n8c8hw, with all there is to fill up") { check_octets({ElementType::f16, TensorLayout::n8c8hw}); }
TEST_CASE("providers: nchw8, with all there is to fill up") { check_octets({ElementType::f16, TensorLayout::nchw8}); }
TEST_CASE("providers: n4c8hw, with all there is to fill up") { check_octets({ElementType::f32, TensorLayout::n4c8hw}); }
TEST_CASE("providers: nhwc8, with all there is to fill up") { check_octets({ElementType::bf16, TensorLayout::nhwc8}); }
TEST_CASE("providers: nhwc4, with all there is to fill up") { check_octets({ElementType::f32, TensorLayout::nhwc4}); }
TEST_CASE("providers: conversions between formats") { check_all(convert_cases()); }
TEST_CASE("providers: conversions of loose halves, of odd and even images, in words and one by one") {
  check_all(loose_cases());
}
TEST_CASE("providers: loose halves become n8c8hw by words where a channel is whole words, else one by one") {
  constexpr TensorFormat kLoose = {ElementType::f16, TensorLayout::nchw},
                         kOctets = {ElementType::f16, TensorLayout::n8c8hw};
  const auto run_of = [&](const std::vector<std::int64_t>& shape, const TensorFormat& from, const TensorFormat& to) {
    const OperatorCase edge{.name = "convert", .kind = Convert{}, .inputs = {shape}, .from = from, .to = to};
    const TemplatePlan plan = plan_of(network_of(edge), "convert");
    const KernelTensor& loose = from.is_loose() ? plan.input() : plan.output();
    CHECK(loose.alignment == 2 * plan.integers.at("vector"));
    return plan.integers.at("vector");
  };
  for (const auto& [from, to] : {std::pair(kLoose, kOctets), std::pair(kOctets, kLoose)}) {
    CHECK(run_of({3, 6, 10}, from, to) == 2);
    CHECK(run_of({3, 7, 7}, from, to) == 1);  // images of an odd number of halves
    CHECK(run_of({2, 7, 7}, from, to) == 1);  // images of words, of which channels begin in the middle
  }
}
TEST_CASE("providers: fully connected layers") { check_all(linear_cases()); }

TEST_CASE("providers: those of random graphs") {
  constexpr int kGraphs = 30;
  ProviderCheck check;
  check.before = 4;
  check.behind = 1;
  check.tolerance = 1e-5;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Network network = random_graph(seed);
    for (const Operator& op : network.operators) {
      if (std::holds_alternative<Convolution>(op.kind) || moves_nothing(op)) continue;
      INFO("graph " << seed << ", operator " << op.name);
      check.batches = {1 + static_cast<int>(seed % 3)};
      check.tuned_batch = check.batches.front();
      CHECK(check_operator(network, op, check) == "");
    }
  }
}

namespace {

// A copy of runs from one tensor to another, each of which has more words around them.
struct MovedRuns {
  std::int64_t run_words, runs, from_pitch, to_pitch;
};

std::string check_copy(const MovedRuns& moved, bool wide) {
  const auto tensor = [&](TensorRole role, std::int64_t pitch) {
    KernelTensor made{.role = role};
    made.run_words = moved.run_words;
    made.runs = moved.runs;
    made.run_pitch = moved.runs == 1 ? 0 : pitch;
    made.image_words = pitch * moved.runs;
    made.alignment = wide ? kWideAccessBytes : kWordBytes;
    return made;
  };
  Task task;
  task.name = "moved";
  task.kind = kCopyKind;
  task.inputs = {{moved.run_words * moved.runs}};
  task.output = task.inputs[0];
  task.reads = {tensor(TensorRole::input, moved.from_pitch)};
  task.writes = tensor(TensorRole::output, moved.to_pitch);
  const Recipe recipe = find_provider("copy")->make(task, candidate_of(task, "copy").plan);
  constexpr int kBatch = 3;
  const std::vector<float> input = random_tensor(task.reads[0].spanned_words(kBatch), 7);
  std::vector<float> output(static_cast<std::size_t>(task.writes.spanned_words(kBatch)), -99.0F), expected = output;
  for (std::int64_t image = 0; image < kBatch; ++image) {
    for (std::int64_t run = 0; run < moved.runs; ++run) {
      for (std::int64_t i = 0; i < moved.run_words; ++i) {
        const std::int64_t from = image * task.reads[0].image_words + run * moved.from_pitch + i;
        const std::int64_t to = image * task.writes.image_words + run * moved.to_pitch + i;
        expected[static_cast<std::size_t>(to)] = input[static_cast<std::size_t>(from)];
      }
    }
  }
  HostKernel host(to_bitcode(recipe.specialise("moved")), "moved", recipe.form);
  host.run({.batch = kBatch, .input = input, .output = output});
  return output == expected ? "" : "other values than were moved:\n" + recipe.plan_short;
}

}  // namespace

TEST_CASE("providers: copies of runs") {
  const MovedRuns all[] = {{1, 1, 1, 1},  {12, 1, 12, 20},      {12, 1, 16, 12},  {5, 4, 5, 9},
                           {5, 4, 8, 11}, {16, 3, 16, 48},      {64, 7, 100, 64}, {784, 16, 784, 1568},
                           {7, 1, 7, 7},  {1000, 1, 1000, 1000}};
  for (const MovedRuns& moved : all) {
    INFO(moved.runs << " runs of " << moved.run_words << ", " << moved.from_pitch << " apart, to " << moved.to_pitch);
    CHECK(check_copy(moved, false) == "");
    const bool wide = moved.from_pitch % 4 == 0 && moved.to_pitch % 4 == 0;
    if (wide) CHECK(check_copy(moved, true) == "");
  }
}
