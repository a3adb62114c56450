// Convolutions that read the same tensor: which become one, and where the parts of its output lie.
#include "compiler/network/memory_plan.h"
#include "compiler/network/sibling_layer.h"
#include "test/network/pass_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

Rewritten merge_all(Network network) { return merge_siblings(std::move(network), {}); }

const Operator& op_named(const Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.operators, name, &Operator::name);
  REQUIRE(found != network.operators.end());
  return *found;
}

ChannelView view_of(const Network& network, const std::string& name) {
  return std::get<ChannelView>(op_named(network, name).kind);
}

// Kinds of the steps that the memory plan has for it, "convolution copy".
std::string steps(const Network& network) {
  std::string text;
  const Program program = plan_network(network, "network", 2);
  CHECK(verify(program) == std::vector<std::string>{});
  for (const Step& step : program.steps) text += (text.empty() ? "" : " ") + step.kind;
  return text;
}

ConvLayer window(const std::string& name, int kernel_h, int kernel_w, const Padding& pad, int stride = 1) {
  ConvLayer layer;
  layer.name = name;
  ConvShape& s = layer.shape;
  s.in_channels = 2;
  s.out_channels = 3;
  s.kernel_h = kernel_h;
  s.kernel_w = kernel_w;
  s.pad = pad;
  s.stride_h = s.stride_w = stride;
  for (int i = 0; i < 6 * kernel_h * kernel_w; ++i) layer.weights.push_back(static_cast<float>(i + 1));
  return layer;
}

// Convolutions `a` and `b` of one input, and a reader for each.
Network two(const ConvLayer& a, const ConvLayer& b, std::int64_t extent = 8) {
  GraphBuilder graph;
  const int x = graph.input({a.shape.in_channels, extent, extent});
  const int left = graph.convolution(a, {x}), right = graph.convolution(b, {x});
  return graph.finish({graph.add("left", Lrn{}, {left}), graph.add("right", Lrn{}, {right})});
}

// Like an inception module: of four convolutions of x some go into a concat as they are, in its inputs' order.
Network module_of(const std::string& order) {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6});
  std::map<char, int> made;
  for (const char name : std::string("abcd")) {
    made[name] = graph.convolution(conv(std::string(1, name), 2, name - 'a' + 1), {x});
  }
  made['e'] = graph.convolution(conv("e", 3, 2, {.kernel = 3, .pad = 1}), {made['c']});
  made['f'] = graph.convolution(conv("f", 4, 2, {.kernel = 3, .pad = 1}), {made['d']});
  std::vector<int> inputs;
  for (const char name : order) inputs.push_back(made[name]);
  return graph.finish({graph.add("end", Lrn{}, {graph.add("concat", Concat{0}, inputs)})});
}

}  // namespace

TEST_CASE("merge_siblings: a concat of all parts is the output") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 7});
  const int a = graph.convolution(conv("f.a", 2, 3, {.bias = {1, 2, 3}, .activation = Activation::relu}), {x});
  const int b = graph.convolution(conv("f.b", 2, 4, {.kernel = 3, .pad = 1, .activation = Activation::relu}), {x});
  const int both = graph.add("concat", Concat{0}, {b, a});
  const Network network = graph.finish({graph.add("end", Lrn{}, {both})});
  const Network result = after(merge_all, network, 1);
  CHECK(kinds(result) == "convolution concat lrn");
  REQUIRE(result.layers.size() == 1);
  const ConvLayer& layer = result.layers[0];
  CHECK(layer.name == "f.a+b");
  CHECK(result.operators[0].name == "f.a+b");
  CHECK(layer.shape.out_channels == 7);
  CHECK(layer.shape.kernel_h == 3);
  CHECK(layer.shape.pad == Padding{1, 1, 1, 1});
  CHECK(layer.bias == std::vector<float>{0, 0, 0, 0, 1, 2, 3});  // the concat's order
  CHECK(std::ranges::count(layer.weights, 0.0F) == 3 * 2 * 8);   // around each filter of 1x1
  CHECK(kinds(simplify(network)) == "convolution lrn");
  CHECK(steps(simplify(network)) == "convolution lrn");
}

TEST_CASE("merge_siblings: parts beside a concat lie before its channels where the concat begins with the others") {
  const Network network = module_of("abef");
  const Network result = after(merge_all, network, 3);
  CHECK(result.operators[0].name == "a+b+c+d");
  CHECK(view_of(result, "c.view").begin == 0);
  CHECK(view_of(result, "d.view").begin == 3);
  CHECK(view_of(result, "concat.view").begin == 7);
  CHECK(view_of(result, "concat.view").channels == 7);
  CHECK(steps(result) == "convolution convolution convolution lrn");
  const Program program = plan_network(result, "network", 1);
  for (const Step& step : program.steps) {
    CHECK(program.buffer(step.reads[0]).tensor == (step.name == "a+b+c+d" ? "input0" : "concat_out.whole"));
  }
}

TEST_CASE("merge_siblings: and behind them where it ends with the others") {
  const Network result = after(merge_all, module_of("efba"), 3);
  CHECK(result.operators[0].name == "a+b+c+d");
  CHECK(view_of(result, "concat.view").begin == 0);
  CHECK(view_of(result, "c.view").begin == 3);
  CHECK(steps(result) == "convolution convolution convolution lrn");
}

TEST_CASE("merge_siblings: what would have to be copied stays by itself") {
  // The four of each have one that lies between others, or in two concats.
  Network result = after(merge_all, module_of("eaf"), 2);
  CHECK(result.operators[0].name == "a");
  CHECK(result.operators[1].name == "b+c+d");
  CHECK(steps(result).find("copy") == std::string::npos);
  result = after(merge_all, module_of("aeb"), 2);
  CHECK(steps(result).find("copy") == std::string::npos);

  const auto concats = [](int variant) {
    GraphBuilder graph;
    const int x = graph.input({2, 6, 6});
    const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.convolution(conv("b", 2, 2), {x});
    std::vector<int> ends = {graph.add("lrn", Lrn{}, {b})};
    const int other = graph.add("other", Lrn{}, {x});
    const int concat = graph.add("concat", Concat{0}, {a, variant == 1 ? a : other});
    if (variant == 0) ends.push_back(concat);                                                // is an output
    if (variant == 1) ends.push_back(graph.add("end", Lrn{}, {concat}));                     // has it twice
    if (variant == 2) ends.push_back(graph.add("more", Concat{0}, {concat, ends.front()}));  // is in another one
    if (variant == 3) {
      ends.push_back(graph.add("end", Lrn{}, {concat}));
      ends.push_back(graph.add("second", Concat{0}, {other, a}));
    }
    if (variant == 4) {
      ends.push_back(graph.add("end", Lrn{}, {concat}));
      ends.push_back(graph.add("second", Concat{0}, {b, other}));  // each is in one of its own
    }
    return graph.finish(ends);
  };
  for (int variant = 0; variant <= 4; ++variant) {
    INFO("variant " << variant);
    unchanged(merge_all, concats(variant));
  }
}

TEST_CASE("merge_siblings: a concat is widened twice") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6}), y = graph.input({2, 6, 6});
  const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.convolution(conv("b", 2, 2), {x});
  const int c = graph.convolution(conv("c", 2, 3), {y}), d = graph.convolution(conv("d", 2, 4), {y});
  const int all = graph.add("concat", Concat{0}, {a, c});
  const Network network =
      graph.finish({graph.add("end", Lrn{}, {all}), graph.add("left", Lrn{}, {b}), graph.add("right", Lrn{}, {d})});
  const Network result = after(merge_all, network, 2);
  CHECK(kinds(result) ==
        "convolution channel_view convolution channel_view concat channel_view channel_view lrn lrn lrn");
  CHECK(steps(result) == "convolution convolution lrn lrn lrn");
}

TEST_CASE("merge_siblings: parts that others read as well are views") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6});
  const int a = graph.convolution(conv("a", 2, 1), {x}), b = graph.convolution(conv("b", 2, 2), {x});
  const int both = graph.add("concat", Concat{0}, {a, b});
  const Network network = graph.finish({graph.add("end", Lrn{}, {both}), graph.convolution(conv("c", 2, 1), {b})});
  const Network result = after(merge_all, network, 1);
  CHECK(view_of(result, "b.view").begin == 1);
  CHECK(steps(result) == "convolution lrn convolution");
}

TEST_CASE("merge_siblings: windows of other sizes") {
  const auto merged = [](const ConvLayer& a, const ConvLayer& b, std::int64_t extent = 8) {
    return after(merge_all, two(a, b, extent), 1).layers[0].shape;
  };
  ConvShape shape = merged(window("a", 1, 3, {0, 0, 1, 1}), window("b", 3, 1, {1, 1, 0, 0}));
  CHECK(shape.kernel_h * shape.kernel_w == 9);
  CHECK(shape.pad == Padding{1, 1, 1, 1});
  shape = merged(window("a", 1, 1, {}, 2), window("b", 3, 3, {1, 1, 1, 1}, 2));  // the last row is not padded
  CHECK(shape.kernel_h == 3);
  CHECK(shape.pad == Padding{1, 0, 1, 0});
  shape = merged(window("a", 3, 3, {2, 0, 2, 0}), window("b", 3, 3, {0, 2, 0, 2}));  // side by side
  CHECK(shape.kernel_h == 5);
  CHECK(shape.pad == Padding{2, 2, 2, 2});
  shape = merged(window("a", 2, 2, {}, 3), window("b", 1, 1, {}, 3), 9);  // rows that no window reads
  CHECK(shape.pad == Padding{});
}

TEST_CASE("merge_siblings: not where most of it would be zeros around filters") {
  const auto network = [](int outputs) { return two(conv("a", 2, outputs), conv("b", 2, 1, {.kernel = 5, .pad = 2})); };
  after(merge_all, network(3), 1);   // 200 weights in place of 56
  unchanged(merge_all, network(4));  // 250 in place of 58
}

TEST_CASE("merge_siblings: convolutions that differ stay what they are") {
  const ConvLayer a = conv("a", 2, 2);
  const auto differs = [&](const ConvOptions& options) { unchanged(merge_all, two(a, conv("b", 2, 2, options))); };
  differs({.activation = Activation::relu});
  differs({.groups = 2});
  differs({.kernel = 3});                                  // another size of output
  unchanged(merge_all, two(a, window("b", 1, 1, {}, 2)));  // another step
  ConvLayer wide = window("b", 3, 3, {2, 2, 2, 2});
  wide.shape.dilation_h = wide.shape.dilation_w = 2;
  unchanged(merge_all, two(a, wide));
  ConvLayer pooled = conv("b", 2, 2);
  pooled.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  unchanged(merge_all, two(a, pooled));
  after(merge_all,
        two(pooled,
            [&] {
              ConvLayer other = pooled;
              other.name = "c";
              return other;
            }()),
        1);
  // Windows that have no room in the largest filter.
  unchanged(merge_all, two(window("a", 7, 7, {6, 0, 6, 0}), window("b", 7, 7, {0, 6, 0, 6})));
}

TEST_CASE("merge_siblings: residuals, outputs of the network and names that are taken") {
  const auto network = [](int variant) {
    GraphBuilder graph;
    const int x = graph.input({2, 6, 6});
    const int a = graph.convolution(conv("a", 2, 2), {x});
    const int b = variant == 0 ? graph.convolution(conv("b", 2, 2, {.residual = true}), {x, x})
                               : graph.convolution(conv("b", 2, 2), {x});
    const int end = graph.add(variant == 2 ? "a+b" : "end", Lrn{}, {a});
    return graph.finish({end, variant == 1 ? b : graph.add("other", Lrn{}, {b})});
  };
  for (int variant = 0; variant < 3; ++variant) {
    INFO("variant " << variant);
    unchanged(merge_all, network(variant));
  }
  after(merge_all, network(3), 1);
}

TEST_CASE("merge_siblings: it is asked for neighbours, the most of them first") {
  const Network network = module_of("abef");
  std::vector<std::string> asked;
  const Together together = [&](const ConvLayer& merged, const std::vector<const ConvLayer*>& parts) {
    asked.push_back(merged.name);
    CHECK(parts.size() == static_cast<std::size_t>(std::ranges::count(merged.name, '+')) + 1);
    return merged.name == "c+d";
  };
  const Rewritten result = merge_siblings(network, together);
  check_same(network, result.network);
  CHECK(result.changes == 1);
  // Not for those that would be copied: the concat neither begins nor ends with b.
  CHECK(asked == std::vector<std::string>{"a+b+c+d", "a+b+c", "a+b", "c+d", "a+b"});
}

TEST_CASE("merge_siblings: names") {
  const auto name = [](const std::vector<std::string>& names) { return joint_name(names); };
  CHECK(name({"a", "b"}) == "a+b");
  CHECK(name({"m/x.1x1", "m/x.3x3", "m/y"}) == "m/x.1x1+x.3x3+y");
  CHECK(name({"m.", "m.a"}) == "m.+a");
  const std::string longest(kMaxLayerNameBytes, 'x');
  CHECK(name({longest, "a"}).size() <= kMaxLayerNameBytes / 2);
  CHECK(name({longest, "a"}) != name({longest, "b"}));
  CHECK(name({"conv1", longest, longest}).starts_with("conv1+2_"));
}

TEST_CASE("merge_siblings: the largest number of parts") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6});
  std::vector<int> parts;
  for (int i = 0; i < static_cast<int>(kMaxSiblings) + 1; ++i) {
    parts.push_back(graph.convolution(conv("c" + std::to_string(i), 2, 1), {x}));
  }
  const int all = graph.add("concat", Concat{0}, parts);
  const Network network = graph.finish({graph.add("end", Lrn{}, {all})});
  CHECK(kinds(after(merge_all, network, static_cast<int>(kMaxSiblings) - 1)) == "convolution convolution concat lrn");
}
