// Memory plans: run through their places, in orders that they allow, against the interpreter.
#include "compiler/network/memory_plan.h"

#include <fmt/format.h>

#include "compiler/network/passes.h"
#include "ir/arena.h"
#include "test/catch.h"
#include "test/network/pass_checks.h"
#include "test/network/plan_executor.h"
#include "test/network/random_graphs.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// Legal, and right in the order of the plan and in eight others.
Program checked_plan(const Network& network, int batch, std::uint64_t seed = 1) {
  const Program plan = plan_network(network, "checked", batch);
  INFO(print(network) << print(plan));
  const std::vector<std::string> illegal = verify(plan);
  INFO((illegal.empty() ? std::string() : illegal.front()));
  REQUIRE(illegal.empty());
  CHECK(plan.name == "checked");
  CHECK(plan.batch == batch);
  const std::vector<std::string> faults = faults_of_runs(network, plan, 8, seed);
  INFO((faults.empty() ? std::string() : faults.front()));
  REQUIRE(faults.empty());
  CHECK(plan.arena_bytes <= plan.naive_bytes);
  CHECK(parse_program(to_text(plan)) == plan);
  return plan;
}

// "conv1 copy conv2"
std::string names(const Program& plan) {
  std::string text;
  for (const Step& step : plan.steps) text += (text.empty() ? "" : " ") + (step.is_copy() ? step.kind : step.name);
  return text;
}

std::int64_t arena_buffers(const Program& plan) {
  return std::ranges::count(plan.buffers, BufferHome::arena, &Buffer::home);
}

const Elementwise kRelu = {ElementFunction::relu, 0, 0};

// A chain of convolutions 2 -> 2 on 16x16 images: 2048 bytes each.
Network chain(int length) {
  GraphBuilder graph;
  int x = graph.input({2, 16, 16});
  for (int i = 0; i < length; ++i) x = graph.convolution(conv("conv" + std::to_string(i), 2, 2), {x});
  return graph.finish({x});
}

}  // namespace

TEST_CASE("memory_plan: random graphs, as they are and simplified, in every order that is allowed") {
  constexpr std::uint64_t kGraphs = 200;
  int copies = 0, slices = 0, saved = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Network network = random_graph(seed);
    const Network simple = simplify(network);
    for (const Network* graph : {&network, &simple}) {
      for (const int batch : {1, 3}) {
        INFO("seed " << seed << ", batch " << batch);
        const Program plan = checked_plan(*graph, batch, seed);
        for (const Step& step : plan.steps) {
          copies += step.is_copy() ? 1 : 0;
          slices += !step.is_copy() && step.writes.is_slice() ? 1 : 0;
        }
        saved += plan.arena_bytes < plan.naive_bytes ? 1 : 0;
      }
    }
  }
  INFO(copies << " copies, " << slices << " slices, " << saved << " arenas smaller than the sum");
  CHECK(copies >= 50);
  CHECK(slices >= 50);
  CHECK(saved >= 200);
}

TEST_CASE("memory_plan: a chain needs two buffers at a time") {
  const Program plan = checked_plan(chain(6), 1);
  CHECK(plan.naive_bytes == 5 * 2048);
  CHECK(plan.arena_bytes == 2 * 2048);
  CHECK(plan.steps[3].after == std::vector<int>{2});
  CHECK(checked_plan(chain(6), 3).arena_bytes == 3 * 2 * 2048);
}

TEST_CASE("memory_plan: branches that may run together share nothing") {
  GraphBuilder graph;
  const int x = graph.input({2, 16, 16});
  std::vector<int> ends;
  for (const char* name : {"a", "b", "c"}) {
    int y = graph.convolution(conv(std::string(name) + "1", 2, 2), {x});
    y = graph.convolution(conv(std::string(name) + "2", 2, 2), {y});
    ends.push_back(graph.add(std::string(name) + "3", GlobalAveragePool{}, {y}));
  }
  const Program parallel = checked_plan(graph.finish(ends), 1);
  CHECK(parallel.arena_bytes == 6 * 2048);
  CHECK(parallel.steps[3].after.empty());
}

TEST_CASE("memory_plan: what a concat reads is written at its offset") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.convolution(conv("b", 2, 3), {x});
  const int both = graph.add("concat", Concat{0}, {a, b});
  const int out = graph.convolution(conv("out", 4, 1), {both});
  const Program plan = checked_plan(graph.finish({out}), 3);
  CHECK(names(plan) == "a b out");
  CHECK(arena_buffers(plan) == 1);
  CHECK(plan.steps[0].after.empty());
  CHECK(plan.steps[1].after.empty());
  CHECK(plan.steps[2].after == std::vector<int>{0, 1});
  CHECK(plan.steps[0].writes == Place{plan.steps[1].writes.buffer, 0, 256, 64, 1, 0});
  CHECK(plan.steps[1].writes == Place{plan.steps[0].writes.buffer, 64, 256, 192, 1, 0});
}

TEST_CASE("memory_plan: a concat that is an output of the network is written in the caller's memory") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.add("b", kRelu, {x});
  const Program plan = checked_plan(graph.finish({graph.add("concat", Concat{0}, {a, b})}), 3);
  CHECK(names(plan) == "a b");
  CHECK(plan.arena_bytes == 0);
}

TEST_CASE("memory_plan: concats within concats, through reshapes") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.convolution(conv("b", 2, 1), {x});
  const int c = graph.add("c", Reshape{{2, 8, 2}}, {graph.add("ab", Concat{0}, {a, b})});
  const int d = graph.add("d", Reshape{{2, 8, 2}}, {graph.add("mul", Combine{Combination::multiply}, {x, x})});
  const int all = graph.add("all", Concat{0}, {d, c});
  const Program plan = checked_plan(graph.finish({graph.add("out", Lrn{3, 0.1F, 0.75F, 1}, {all})}), 3);
  CHECK(names(plan) == "a b mul out");
  CHECK(arena_buffers(plan) == 1);
  CHECK(plan.steps[1].writes.offset == 3 * 64);
}

TEST_CASE("memory_plan: a concat copies what it cannot have written in place") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 2), {x});
  SECTION("an input of the network") {
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{0}, {x, a})});
    CHECK(names(checked_plan(graph.finish({out}), 3)) == "a copy out");
  }
  SECTION("an output of the network") {
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{0}, {a, a})});
    CHECK(names(checked_plan(graph.finish({a, out}), 3)) == "a copy copy out");
  }
  SECTION("the second time") {
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{0}, {a, a})});
    CHECK(names(checked_plan(graph.finish({out}), 3)) == "a copy out");
  }
  SECTION("what lies in another concat") {
    const int first = graph.add("first", Concat{0}, {a, x}), second = graph.add("second", Concat{0}, {x, a});
    const int out = graph.add("out", Combine{}, {first, second});
    CHECK(names(checked_plan(graph.finish({out}), 3)) == "a copy copy copy out");
  }
  SECTION("along rows") {
    const int b = graph.convolution(conv("b", 2, 2), {x});
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{1}, {a, b})});
    const Program plan = checked_plan(graph.finish({out}), 3);
    CHECK(names(plan) == "a b copy copy out");
    CHECK(plan.steps[3].writes == Place{plan.steps[2].writes.buffer, 64, 256, 64, 2, 128});
  }
}

TEST_CASE("memory_plan: views are no steps, of views and of reshapes, too") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 4), {x});
  const int high = graph.add("high", ChannelView{1, 3}, {a}), highest = graph.add("highest", ChannelView{1, 2}, {high});
  const int flat = graph.add("flat", Reshape{{32}}, {highest});
  const int b = graph.add("b", kRelu, {flat}),
            c = graph.convolution(conv("c", 2, 1), {graph.add("x", ChannelView{0, 2}, {a})});
  const Program plan = checked_plan(graph.finish({b, c}), 3);
  CHECK(names(plan) == "a b c");
  CHECK(plan.steps[1].reads[0] == Place{plan.steps[0].writes.buffer, 128, 256, 128, 1, 0});
  CHECK(plan.steps[2].reads[0] == Place{plan.steps[0].writes.buffer, 0, 256, 128, 1, 0});
}

TEST_CASE("memory_plan: a view is copied where it is an output or a part of a concat") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 4), {x});
  const int low = graph.add("low", ChannelView{0, 3}, {a});
  SECTION("an output of the network") { CHECK(names(checked_plan(graph.finish({low}), 3)) == "a copy"); }
  SECTION("of the input") {
    CHECK(names(checked_plan(graph.finish({graph.add("of", ChannelView{1, 1}, {x}), a}), 3)) == "a copy");
  }
  SECTION("of an output") { CHECK(names(checked_plan(graph.finish({low, a}), 3)) == "a copy"); }
  SECTION("reshaped") {
    CHECK(names(checked_plan(graph.finish({graph.add("flat", Reshape{{48}}, {low})}), 3)) == "a copy");
  }
  SECTION("in a concat") {
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{0}, {low, x})});
    CHECK(names(checked_plan(graph.finish({out}), 3)) == "a copy copy out");
  }
  SECTION("what it is of lies in a concat") {
    const int b = graph.add("b", kRelu, {low});
    const int out = graph.add("out", kRelu, {graph.add("concat", Concat{0}, {b, a})});
    const Program plan = checked_plan(graph.finish({out}), 3);
    CHECK(names(plan) == "a b out");
    CHECK(plan.steps[1].reads[0] == Place{plan.steps[0].writes.buffer, 3 * 64, 7 * 64, 3 * 64, 1, 0});
  }
}

TEST_CASE("memory_plan: a convolution reads a part of what others write") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(conv("a", 2, 2), {x}), b = graph.convolution(conv("b", 2, 2), {a});
  const int out = graph.convolution(conv("out", 4, 1), {graph.add("concat", Concat{0}, {b, a})});
  const Program plan = checked_plan(graph.finish({out}), 3);
  CHECK(names(plan) == "a b out");
  CHECK(plan.steps[1].reads[0] == plan.steps[0].writes);
  CHECK(plan.steps[1].reads[0] == Place{plan.steps[2].reads[0].buffer, 128, 256, 128, 1, 0});
}

TEST_CASE("memory_plan: what each layer of a DenseNet reads of those before it lies in one place") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  std::vector<int> made = {graph.convolution(conv("first", 2, 4), {x})};
  for (int i = 0; i < 5; ++i) {
    const int all = made.size() == 1 ? made[0] : graph.add("all" + std::to_string(i), Concat{0}, made);
    const int inputs = 4 + 2 * i;
    made.push_back(graph.convolution(conv("layer" + std::to_string(i), inputs, 2, {.kernel = 3, .pad = 1}), {all}));
  }
  const int all = graph.add("all", Concat{0}, made);
  const Network network = graph.finish({graph.convolution(conv("last", 14, 1), {all})});
  const Rewritten nested = nest_concats(network);
  CHECK(nested.changes == 4);
  check_same(network, nested.network);
  const Program plan = checked_plan(nested.network, 3);
  CHECK(names(plan) == "first layer0 layer1 layer2 layer3 layer4 last");
  CHECK(arena_buffers(plan) == 1);
  CHECK(plan.steps[3].reads[0] == Place{plan.steps[0].writes.buffer, 0, 14 * 64, 8 * 64, 1, 0});
  CHECK(plan_network(network, "as it was", 3).steps.size() > 2 * plan.steps.size());
}

TEST_CASE("nest_concats: views that are all of a tensor are the tensor, others stay") {
  GraphBuilder graph;
  const int x = graph.add("x", kRelu, {graph.input({6, 4, 4})});
  const int low = graph.add("low", ChannelView{0, 2}, {x}), high = graph.add("high", ChannelView{2, 4}, {x});
  const int made = graph.add("made", kRelu, {high});
  const int whole = graph.add("whole", Concat{0}, {low, high, made});
  const int behind = graph.add("behind", Concat{0}, {made, low, high, low});
  const int turned = graph.add("turned", Concat{0}, {high, low, made});
  const int rows = graph.add("rows", Concat{1}, {low, low});
  const Network network = graph.finish({whole, behind, turned, rows});
  const Rewritten nested = nest_concats(network);
  check_same(network, nested.network);
  CHECK(nested.changes == 2);
  std::vector<std::size_t> inputs;
  for (const Operator& op : nested.network.operators) {
    if (std::holds_alternative<Concat>(op.kind)) inputs.push_back(op.inputs.size());
  }
  CHECK(inputs == std::vector<std::size_t>{2, 3, 3, 2});
}

TEST_CASE("nest_concats: the longest that is there, along the same axis") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.add("a", kRelu, {x}), b = graph.add("b", kRelu, {x}), c = graph.add("c", kRelu, {x});
  const int ab = graph.add("ab", Concat{0}, {a, b}), rows = graph.add("rows", Concat{1}, {a, b, c});
  const int abc = graph.add("abc", Concat{0}, {a, b, c}), same = graph.add("same", Concat{0}, {a, b, c});
  const int abcd = graph.add("abcd", Concat{0}, {a, b, c, a}), ba = graph.add("ba", Concat{0}, {b, a});
  const Network network = graph.finish({ab, rows, abc, same, abcd, ba});
  const Rewritten nested = nest_concats(network);
  check_same(network, nested.network);
  const auto inputs_of = [&](const std::string& name) {
    std::string text;
    for (const Operator& op : nested.network.operators) {
      if (op.name != name) continue;
      for (const int input : op.inputs) text += nested.network.tensors[static_cast<std::size_t>(input)].name + " ";
    }
    return text;
  };
  CHECK(nested.changes == 3);
  CHECK(inputs_of("ab") == "a_out b_out ");
  CHECK(inputs_of("rows") == "a_out b_out c_out ");
  CHECK(inputs_of("abc") == "ab_out c_out ");
  CHECK(inputs_of("same") == "ab_out c_out ");
  CHECK(inputs_of("abcd") == "abc_out a_out ");
  CHECK(inputs_of("ba") == "b_out a_out ");
}

TEST_CASE("memory_plan: a reshape moves nothing") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int flat = graph.add("flat", Reshape{{32}}, {graph.convolution(conv("a", 2, 2), {x})});
  const Program plan = checked_plan(graph.finish({graph.add("softmax", Softmax{}, {flat})}), 3);
  CHECK(names(plan) == "a softmax");
  CHECK(arena_buffers(plan) == 1);
}

TEST_CASE("memory_plan: outputs that are an input or another output are copies") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int same = graph.add("same", Identity{}, {x});
  const int a = graph.convolution(conv("a", 2, 2), {x});
  const int flat = graph.add("flat", Reshape{{32}}, {a});
  const Program plan = checked_plan(graph.finish({same, a, flat}), 3);
  CHECK(names(plan) == "a copy copy");
  CHECK(plan.arena_bytes == 0);
  CHECK(plan.steps[1].after.empty());
  CHECK(plan.steps[2].after == std::vector<int>{0});
}

TEST_CASE("memory_plan: the batch changes nothing but sizes, so that kernels serve every batch") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Network network = random_graph(seed);
    INFO("seed " << seed);
    CHECK(plan_network(network, "a", 1).steps == plan_network(network, "a", 32).steps);
  }
}

TEST_CASE("memory_plan: every dependency is needed") {
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program plan = plan_network(random_graph(seed), "random", 1);
    for (std::size_t step = 0; step < plan.steps.size(); ++step) {
      for (std::size_t i = 0; i < plan.steps[step].after.size(); ++i) {
        Program other = plan;
        other.steps[step].after.erase(other.steps[step].after.begin() + static_cast<std::ptrdiff_t>(i));
        INFO("seed " << seed << ", step " << step << " without " << plan.steps[step].after[i] << "\n" << print(plan));
        CHECK_FALSE(verify(other).empty());
        ++dropped;
      }
    }
  }
  CHECK(dropped >= 200);
}

TEST_CASE("memory_plan: the executor notices memory given away too early") {
  const Network network = chain(4);
  Program plan = plan_network(network, "chain", 1);
  REQUIRE(faults_of_runs(network, plan, 1, 1).empty());
  plan.steps[1].writes.buffer = plan.steps[0].writes.buffer;  // and step 2 reads what nothing has written
  CHECK_FALSE(faults_of_runs(network, plan, 1, 1).empty());
}

TEST_CASE("arena: the largest first, each into a gap between those that it conflicts with") {
  const auto all = [](int, int) { return true; };
  CHECK(lay_out_arena({100, 1000, 300}, 256, all).offsets == std::vector<std::int64_t>{1536, 0, 1024});
  CHECK(lay_out_arena({100, 1000, 300}, 256, all).bytes == 1792);
  CHECK(lay_out_arena({100, 1000, 300}, 256, [](int, int) { return false; }).bytes == 1024);
  CHECK(lay_out_arena({}, 256, all).bytes == 0);
  // In the order of size: 0 at 0, 1 at 2048, 2 at 3584, 3 at 4608. The last, 512 bytes, conflicts with all but 1 and 3,
  // which leaves a gap of 1536 bytes and the end: it takes the gap.
  const auto without = [](int a, int b) { return std::max(a, b) != 4 || (std::min(a, b) != 1 && std::min(a, b) != 3); };
  const ArenaLayout layout = lay_out_arena({2048, 1536, 1024, 768, 512}, 256, without);
  CHECK(layout.offsets == std::vector<std::int64_t>{0, 2048, 3584, 4608, 2048});
  CHECK(layout.bytes == 5376);
}

TEST_CASE("memory plan: more uses of one tensor than are compared") {
  constexpr int kParts = 4096, kReaders = 4200;
  GraphBuilder graph;
  const int x = graph.input({1, 1, 1});
  std::vector<int> parts;
  for (int i = 0; i < kParts; ++i) parts.push_back(graph.add("part" + std::to_string(i), Elementwise{}, {x}));
  const int all = graph.add("all", Concat{0}, parts);
  int last = graph.add("first", Elementwise{}, {all});
  for (int i = 0; i < kReaders; ++i) last = graph.add("reader" + std::to_string(i), Combine{}, {last, all});
  const Network network = graph.finish({last});
  CHECK_THAT(BURIN_THROWN(unsupported, plan_network(network, "large", 1)).text, burin_test::Contains("kMaxPlanPairs"));
}

TEST_CASE("memory_plan: many steps that wait for many are refused before they are written") {
  // Each part of a concat is waited for by each of its readers.
  const auto plan_with = [](int parts, int readers) {
    GraphBuilder graph;
    const int x = graph.input({2, 2, 2});
    std::vector<int> all, outputs;
    for (int i = 0; i < parts; ++i) all.push_back(graph.add(fmt::format("part{}", i), kRelu, {x}));
    const int both = graph.add("concat", Concat{0}, all);
    for (int i = 0; i < readers; ++i) outputs.push_back(graph.add(fmt::format("reader{}", i), kRelu, {both}));
    return plan_network(graph.finish(outputs), "network", 1);
  };
  CHECK(plan_with(1000, 1000).steps.size() == 2000);
  CHECK_THAT(BURIN_THROWN(unsupported, plan_with(1100, 960)).text,
             Contains("wait 1056000 times") && Contains("kMaxPlanWaits"));
}

TEST_CASE("memory_plan: concats that hold each other, one more in each, are refused before their lists fill memory") {
  GraphBuilder graph;
  const int x = graph.input({1, 1, 1});
  int last = graph.add("first", kRelu, {x});
  for (int i = 0; i < 9000; ++i) {
    last = graph.add(fmt::format("c{}", i), Concat{0}, {last, graph.add(fmt::format("p{}", i), kRelu, {x})});
  }
  const Network network = graph.finish({last});
  CHECK_THAT(BURIN_THROWN(unsupported, plan_network(network, "network", 1)).text, Contains("kMaxPlanPairs"));
}
