// Picks and transposes that follow each other.
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

TEST_CASE("merge_picks: what is picked of a pick is picked of what it was picked of") {
  GraphBuilder graph;
  const int x = graph.input({3, 8, 9});
  const int rows = graph.add("rows", Pick{{{0, 1, 3}, {1, 2, 4}, {0, 1, 9}}}, {x});
  const int even = graph.add("even", Pick{{{0, 1, 3}, {0, 1, 4}, {0, 2, 5}}}, {rows});
  const int odd = graph.add("odd", Pick{{{0, 1, 3}, {3, -2, 2}, {1, 2, 4}}}, {rows});
  const Network merged = after(merge_picks, graph.finish({even, odd}), 1);
  CHECK(kinds(merged) == "pick pick");
  CHECK(std::get<Pick>(merged.operators[1].kind).axes[1].begin == 7);
  CHECK(std::get<Pick>(merged.operators[1].kind).axes[1].step == -4);
}

TEST_CASE("merge_picks: a pick and a transpose are one pick, whichever is the first") {
  for (const bool pick_first : {true, false}) {
    GraphBuilder graph;
    int x = graph.input({4, 5, 6});
    if (pick_first) x = graph.add("pick", Pick{{{3, -1, 3}, {0, 2, 3}, {1, 1, 5}}}, {x});
    x = graph.add("turned", Transpose{{2, 0, 1}}, {x});
    if (!pick_first) x = graph.add("pick", Pick{{{3, -1, 3}, {0, 2, 2}, {1, 1, 4}}}, {x});
    CHECK(kinds(after(merge_picks, graph.finish({x}), 1)) == "pick");
  }
}

TEST_CASE("merge_picks: of two that take all a transpose is left, or nothing") {
  for (const std::vector<int>& order : {std::vector<int>{2, 0, 1}, std::vector<int>{1, 2, 0}}) {
    GraphBuilder graph;
    const int x = graph.add("backwards", Pick{{{3, -1, 4}, {0, 1, 5}, {0, 1, 6}}, {2, 0, 1}}, {graph.input({4, 5, 6})});
    const int y = graph.add("again", Pick{{{0, 1, 6}, {3, -1, 4}, {0, 1, 5}}, order}, {x});
    const Network network = graph.finish({graph.add("relu", Elementwise{}, {y})});
    CHECK(kinds(after(merge_picks, network, 1)) == (order[0] == 2 ? "transpose elementwise" : "pick elementwise"));
    CHECK(kinds(simplify(network)).find("pick") == std::string::npos);
  }
}

TEST_CASE("merge_picks: an element that is repeated, and steps that lead nowhere") {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  GraphBuilder graph;
  int x = graph.input({4, 5, 6});
  x = graph.add("one", Pick{{{3, kFar, 1}, {2, 0, 4}, {1, 2, 3}}}, {x});
  x = graph.add("many", Pick{{{0, 0, 5}, {1, 1, 3}, {2, kFar, 1}}}, {x});
  CHECK(kinds(after(merge_picks, graph.finish({x}), 1)) == "pick");
}

TEST_CASE("merge_picks: what others read stays") {
  GraphBuilder graph;
  const int x = graph.add("turned", Transpose{{0, 2, 1}}, {graph.input({4, 5, 6})});
  const int pick = graph.add("pick", Pick{{{0, 1, 4}, {0, 2, 3}, {0, 1, 5}}}, {x});
  unchanged(merge_picks, graph.finish({pick, graph.add("relu", Elementwise{}, {x})}));
  GraphBuilder other;
  const int y = other.add("turned", Transpose{{0, 2, 1}}, {other.input({4, 5, 6})});
  unchanged(merge_picks, other.finish({y, other.add("pick", Pick{{{0, 1, 4}, {0, 2, 3}, {0, 1, 5}}}, {y})}));
}

TEST_CASE("merge_picks: channels that were the last axis are a view") {
  GraphBuilder graph;
  const int x = graph.add("turned", Transpose{{1, 2, 0}}, {graph.input({6, 4, 5})});
  const auto part = [&](const char* name, std::int64_t begin, std::int64_t channels) {
    const int taken = graph.add(name, Pick{{{0, 1, 4}, {0, 1, 5}, {begin, 1, channels}}}, {x});
    return graph.add(std::string(name) + ".back", Transpose{{2, 0, 1}}, {taken});
  };
  const int first = part("first", 0, 3), second = part("second", 3, 3);
  const Network merged = simplify(graph.finish({first, second}));
  CHECK(kinds(merged) == "channel_view channel_view");
  CHECK(std::get<ChannelView>(merged.operators[1].kind).begin == 3);
}

TEST_CASE("merge_picks: a view of what was another axis is picked") {
  GraphBuilder graph;
  int x = graph.add("turned", Transpose{{1, 2, 0}}, {graph.input({6, 4, 5})});
  x = graph.add("rows", ChannelView{1, 2}, {x});
  x = graph.add("columns", Pick{{{0, 1, 2}, {0, 2, 3}, {0, 1, 6}}}, {x});
  x = graph.add("back", Transpose{{2, 0, 1}}, {x});
  const Network merged = simplify(graph.finish({x}));
  CHECK(kinds(merged) == "pick");
  CHECK(std::get<Pick>(merged.operators[0].kind).axes[1].begin == 1);
}

TEST_CASE("merge_picks: views of what was another axis stay where there are several, and those of channels") {
  GraphBuilder graph;
  const int x = graph.add("turned", Transpose{{1, 2, 0}}, {graph.input({6, 4, 5})});
  const int first = graph.add("first", ChannelView{0, 2}, {x}), second = graph.add("second", ChannelView{2, 2}, {x});
  unchanged(merge_picks, graph.finish({graph.add("sum", Combine{}, {first, second})}));
  GraphBuilder rows;
  const int y = rows.add("rows", Pick{{{0, 1, 6}, {1, 1, 2}, {0, 1, 5}}}, {rows.input({6, 4, 5})});
  unchanged(merge_picks, rows.finish({rows.add("channels", ChannelView{1, 2}, {y})}));
}
