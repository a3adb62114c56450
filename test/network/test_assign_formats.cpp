// In which format each tensor of a graph is, and where conversions stand.
#include "test/catch.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "compiler/network/memory_plan.h"
#include "compiler/network/passes.h"
#include "test/ir/small_network.h"

using namespace burin;
using namespace burin_test;

namespace {

// 3x3, of the same size.
ConvLayer same_size(const std::string& name, int in, int out) {
  ConvLayer layer;
  layer.name = name;
  layer.shape.in_channels = in;
  layer.shape.out_channels = out;
  layer.shape.kernel_h = layer.shape.kernel_w = 3;
  layer.shape.pad = {1, 1, 1, 1};
  layer.weights.assign(static_cast<std::size_t>(in * out * 9), 0.5F);
  return layer;
}

constexpr TensorFormat kHalf = {ElementType::f16, TensorLayout::n2chw},
                       kEights = {ElementType::f16, TensorLayout::n8c8hw};

Rewritten in_halves(Network network, const TensorFormat& format = kHalf) {
  return assign_formats(std::move(network),
                        [&](const Operator&, const ConvLayer&) { return OperatorFormats{format, format}; });
}

// The operators in their order, by their names.
std::string operators_of(const Network& network) {
  std::string text;
  for (const Operator& op : network.operators) text += (text.empty() ? "" : " ") + op.name;
  return text;
}

const Activations& named_tensor(const Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.tensors, name, &Activations::name);
  REQUIRE(found != network.tensors.end());
  return *found;
}

}  // namespace

TEST_CASE("assign_formats: convolutions hand on halves, and what others read is converted") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x}), b = graph.convolution(same_size("b", 2, 2), {a});
  const int softmax = graph.add("softmax", Softmax{}, {b});
  const Network network = graph.finish({softmax});
  REQUIRE(verify(network).empty());
  const auto [formatted, conversions] = in_halves(network);
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 2);
  const std::string input = network.tensors[static_cast<std::size_t>(x)].name;
  const std::string made = network.tensors[static_cast<std::size_t>(b)].name;
  CHECK(operators_of(formatted) == input + ".n2chw.convert a b " + made + ".f32.convert softmax");
  CHECK(named_tensor(formatted, made).format == kHalf);
  CHECK(named_tensor(formatted, input).format.is_plain());
}

TEST_CASE("assign_formats: what works place by place takes halves as they come") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  int y = graph.convolution(same_size("a", 2, 2), {x});
  const int gate = graph.convolution(same_size("gate", 2, 2), {graph.add("mean", GlobalAveragePool{}, {y})});
  y = graph.add("gated", Combine{Combination::multiply}, {y, gate});
  y = graph.add("pad", Pad{{1, 1, 1, 1}, 0.5F}, {y});
  y = graph.add("pool", Pool{.kernel_h = 2, .kernel_w = 2}, {y});
  y = graph.add("lrn", Lrn{}, {y});
  y = graph.add("bn", kAffine2, {y});
  y = graph.add("turned", Transpose{{0, 2, 1}}, {y});
  const Pool whole{.kind = PoolKind::average, .kernel_h = 5, .kernel_w = 5};
  const Network network =
      graph.finish({graph.add("average", whole, {graph.add("swish", Elementwise{ElementFunction::hard_swish}, {y})})});
  REQUIRE(verify(network) == std::vector<std::string>{});
  for (const TensorFormat& format : {kHalf, kEights}) {
    const auto [formatted, conversions] = in_halves(network, format);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(conversions == 1);  // the network's input
    for (const Operator& op : formatted.operators) {
      const bool plain = op.name == "average";  // which no convolution reads
      if (std::holds_alternative<Convert>(op.kind)) continue;
      INFO(op.name);
      CHECK(formatted.tensors[static_cast<std::size_t>(op.output)].format == (plain ? TensorFormat() : format));
    }
  }
}

TEST_CASE("assign_formats: squeeze-and-excitation keeps its image in halves, and its sums are floats") {
  GraphBuilder graph;
  const int y = graph.convolution(same_size("a", 2, 2), {graph.input({2, 4, 4})});
  const int sums = graph.add("squeeze", Squeeze{3, std::vector<float>(6, 0.5F), 8, 16}, {y});
  const Excite excite{{}, {}, {3, 2, std::vector<float>(6, 0.5F), {}}};
  const Network network = graph.finish({graph.add("excite", excite, {y, sums})});
  const auto [formatted, conversions] = in_halves(network, kEights);
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(named_tensor(formatted, "squeeze_out").format.is_plain());
  CHECK(conversions == 2);  // of the input and of the output
}

TEST_CASE("assign_formats: a mean is plain unless convolutions alone read it") {
  GraphBuilder graph;
  const int y = graph.convolution(same_size("a", 2, 2), {graph.input({2, 4, 4})});
  const int mean = graph.add("mean", GlobalAveragePool{}, {y});
  const int gate = graph.convolution(same_size("gate", 2, 2), {mean});
  const Network network = graph.finish({gate, graph.add("flat", Reshape{{2}}, {mean})});
  const auto [formatted, conversions] = in_halves(network, kEights);
  CHECK(verify(formatted) == std::vector<std::string>{});
  for (const Operator& op : formatted.operators) {
    if (op.name == "mean") CHECK(formatted.tensors[static_cast<std::size_t>(op.output)].format.is_plain());
  }
  CHECK(conversions == 3);  // of the input, of what the gate reads, and of what it makes
}

TEST_CASE("assign_formats: between halves of two images and of eight stands a plain copy") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x}), b = graph.convolution(same_size("b", 2, 2), {a});
  const Network network = graph.finish({b});
  const auto [formatted, conversions] = assign_formats(network, [](const Operator& op, const ConvLayer&) {
    return op.name == "a" ? OperatorFormats{kEights, kEights} : OperatorFormats{kHalf, kHalf};
  });
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 4);
  const std::string input = network.tensors[static_cast<std::size_t>(x)].name;
  const std::string made = network.tensors[static_cast<std::size_t>(a)].name;
  const std::string output = network.tensors[static_cast<std::size_t>(b)].name;
  CHECK(operators_of(formatted) ==
        input + ".n8c8hw.convert a " + made + ".f32.convert " + made + ".n2chw.convert b " + output + ".convert");
}

TEST_CASE("assign_formats: a tensor is converted once for all who read it") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x}), b = graph.convolution(same_size("b", 2, 2), {x});
  const int sum = graph.add("sum", Combine{}, {a, b});
  const auto [formatted, conversions] = in_halves(graph.finish({sum, a}));
  CHECK(verify(formatted) == std::vector<std::string>{});
  // The input; the output `a`, which the sum reads as well; `b`.
  CHECK(conversions == 3);
}

TEST_CASE("assign_formats: the network's outputs keep their names and are plain") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x}), b = graph.convolution(same_size("b", 2, 2), {a});
  const Network network = graph.finish({a, b});
  const auto [formatted, conversions] = in_halves(network);
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 3);
  CHECK(formatted.outputs == network.outputs);
  for (const int output : formatted.outputs) {
    const Activations& is = formatted.tensors[static_cast<std::size_t>(output)];
    CHECK(is.format.is_plain());
    CHECK(is.name == network.tensors[static_cast<std::size_t>(output)].name);
  }
  // `b` reads what `a` made, not the converted output.
  const auto op = std::ranges::find(formatted.operators, "b", &Operator::name);
  REQUIRE(op != formatted.operators.end());
  CHECK(formatted.tensors[static_cast<std::size_t>(op->inputs.front())].format == kHalf);
}

TEST_CASE("assign_formats: a concat of halves is one, and moves nothing") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 1), {x}), b = graph.convolution(same_size("b", 2, 3), {x});
  const int both = graph.add("both", Concat{0}, {a, b});
  const int out = graph.convolution(same_size("out", 4, 1), {both});
  const auto [formatted, conversions] = in_halves(graph.finish({out}));
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 2);
  const Program plan = plan_network(formatted, "assigned", 3);
  CHECK(std::ranges::none_of(plan.steps, &Step::is_copy));
  const auto step = std::ranges::find(plan.steps, "b", &Step::name);
  REQUIRE(step != plan.steps.end());
  // Two groups of images, of which each has four channels of 4 x 4 words.
  CHECK(step->writes.offset == 1 * 16 * 4);
  CHECK(step->writes.image_stride == 4 * 16 * 4);
  CHECK(plan.buffers[static_cast<std::size_t>(step->writes.buffer)].bytes == 2 * 4 * 16 * 4);
}

TEST_CASE("assign_formats: a concat of halves of eight images is one, and moves nothing") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 8), {x}), b = graph.convolution(same_size("b", 2, 3), {x});
  const int both = graph.add("both", Concat{0}, {a, b});
  const int out = graph.convolution(same_size("out", 11, 1), {both});
  const auto [formatted, conversions] = in_halves(graph.finish({out}), kEights);
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 2);
  const Program plan = plan_network(formatted, "assigned", 9);
  CHECK(std::ranges::none_of(plan.steps, &Step::is_copy));
  const auto step = std::ranges::find(plan.steps, "b", &Step::name);
  REQUIRE(step != plan.steps.end());
  // Two groups of images, of which each has sixteen channels of 4 x 4 elements of 16 bytes, filling included.
  CHECK(step->writes.offset == 8 * 16 * 16);
  CHECK(step->writes.run_bytes == 8 * 16 * 16);
  CHECK(step->writes.image_stride == 16 * 16 * 16);
  CHECK(plan.buffers[static_cast<std::size_t>(step->writes.buffer)].bytes == 2 * 16 * 16 * 16);
}

TEST_CASE("assign_formats: a concat whose parts do not begin at whole octets of channels is plain") {
  for (const auto& [first, second, plain] : {std::tuple{1, 3, true}, {12, 8, true}, {16, 12, false}}) {
    INFO(first << " and " << second << " channels");
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int a = graph.convolution(same_size("a", 2, first), {x});
    const int b = graph.convolution(same_size("b", 2, second), {x});
    const int both = graph.add("both", Concat{0}, {a, b});
    const int out = graph.convolution(same_size("out", first + second, 1), {both});
    const Network network = graph.finish({out});
    const auto [formatted, conversions] = in_halves(network, kEights);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(conversions == (plain ? 5 : 2));
    const std::string name = network.tensors[static_cast<std::size_t>(both)].name;
    CHECK(named_tensor(formatted, name).format == (plain ? TensorFormat() : kEights));
    CHECK(verify(plan_network(formatted, "assigned", 9)) == std::vector<std::string>{});
    // In halves of two images any channels will do.
    CHECK(in_halves(network).changes == 2);
  }
}

TEST_CASE("assign_formats: transposes that move channels are plain where channels lie side by side") {
  for (const auto& [order, plain] : {std::pair{std::vector<int>{0, 2, 1}, false}, {{1, 2, 0}, true}}) {
    GraphBuilder graph;
    const int a = graph.convolution(same_size("a", 2, 4), {graph.input({2, 4, 4})});
    const int turned = graph.add("turned", Transpose{order}, {a});
    const int out = graph.convolution(same_size("out", 4, 1), {turned});
    const Network network = graph.finish({out});
    const auto [formatted, conversions] = in_halves(network, kEights);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(conversions == (plain ? 4 : 2));
    CHECK(in_halves(network).changes == 2);
  }
}

TEST_CASE("assign_formats: picks of channels are plain where channels lie side by side, those of pixels are not") {
  const PickedAxis all{0, 1, 4}, some{0, 2, 2};
  for (const auto& [channels, plain] : {std::pair{all, false}, {some, true}}) {
    GraphBuilder graph;
    const int a = graph.convolution(same_size("a", 2, 4), {graph.input({2, 4, 4})});
    const int picked = graph.add("picked", Pick{{channels, {3, -1, 4}, all}}, {a});
    const Taps same{1, {0, 1, 2, 3}, {1, 1, 1, 1}}, turned{1, {3, 2, 1, 0}, {1, 1, 1, 1}};
    const int resampled = graph.add("resampled", Resample{same, turned}, {picked});
    const int out = graph.convolution(same_size("out", static_cast<int>(channels.extent), 1), {resampled});
    const Network network = graph.finish({out});
    const auto [formatted, conversions] = in_halves(network, kEights);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(conversions == (plain ? 4 : 2));
    CHECK(in_halves(network).changes == 2);
  }
}

TEST_CASE("assign_formats: views of whole octets of channels move nothing, others are taken of a plain tensor") {
  for (const auto& [begin, channels, plain] :
       {std::tuple{8, 8, false}, {16, 4, false}, {4, 8, true}, {8, 4, true}, {0, 20, false}}) {
    INFO(channels << " channels from " << begin << " on");
    GraphBuilder graph;
    const int whole = graph.convolution(same_size("whole", 2, 20), {graph.input({2, 4, 4})});
    const int view = graph.add("view", ChannelView{begin, channels}, {whole});
    const Network network = graph.finish({graph.convolution(same_size("out", channels, 1), {view})});
    const auto [formatted, conversions] = in_halves(network, kEights);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(conversions == (plain ? 4 : 2));
    const Program plan = plan_network(formatted, "assigned", 9);
    CHECK(verify(plan) == std::vector<std::string>{});
    CHECK(std::ranges::none_of(plan.steps, &Step::is_copy));
    // In halves of two images any channels will do.
    CHECK(in_halves(network).changes == 2);
    if (plain) continue;
    // Of 4 x 4 elements of 16 bytes; what fills up the last octet belongs to the view that it is in.
    const auto step = std::ranges::find(plan.steps, "out", &Step::name);
    REQUIRE(step != plan.steps.end());
    CHECK(step->reads[0].offset == begin * 16 * 16);
    CHECK(step->reads[0].run_bytes == (channels + 7) / 8 * 8 * 16 * 16);
    CHECK(step->reads[0].image_stride == 24 * 16 * 16);
  }
}

TEST_CASE("network formats: a concat in n8c8hw has parts of whole octets of channels") {
  GraphBuilder graph;
  const int a = graph.input({8, 4, 4}), b = graph.input({4, 4, 4});
  Network network = graph.finish({graph.add("both", Concat{0}, {a, b})});
  for (Activations& tensor : network.tensors) tensor.format = kEights;
  CHECK(verify(network) == std::vector<std::string>{});
  std::ranges::reverse(network.operators.front().inputs);
  const std::vector<std::string> faults = verify(network);
  REQUIRE(faults.size() == 1);
  CHECK(faults.front() ==
        "operator 'both' (concat): its parts but the last must have multiples of 8 channels to lie in n8c8hw");
}

TEST_CASE("assign_formats: a copy of halves of eight images moves whole elements") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 16), {x});
  const int twice = graph.add("twice", Concat{0}, {a, a});
  const auto formatted =
      in_halves(graph.finish({graph.convolution(same_size("out", 32, 1), {twice})}), kEights).network;
  CHECK(verify(formatted) == std::vector<std::string>{});
  const Program plan = plan_network(formatted, "assigned", 9);
  CHECK(verify(plan) == std::vector<std::string>{});
  REQUIRE(std::ranges::count_if(plan.steps, &Step::is_copy) == 1);
  const auto step = std::ranges::find_if(plan.steps, &Step::is_copy);
  CHECK(step->reads[0].run_bytes == 16 * 16 * 16);
  CHECK(step->writes.run_bytes == 16 * 16 * 16);
  CHECK(step->writes.image_stride == 32 * 16 * 16);
  CHECK(std::abs(step->writes.offset - step->reads[0].offset) == 16 * 16 * 16);
}

TEST_CASE("assign_formats: a concat of which one part is plain is plain") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 1), {x});
  const int both = graph.add("both", Concat{0}, {a, x});
  const auto [formatted, conversions] = in_halves(graph.finish({both}));
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 2);
}

TEST_CASE("assign_formats: separate layers are given their tensors as they want them") {
  Network network;
  network.layers = {same_size("a", 2, 3), same_size("b", 3, 2)};
  network.layers[0].shape.epilogue.residual = true;
  for (ConvLayer& layer : network.layers) layer.shape.in_h = layer.shape.in_w = 4;
  separate_layers(network);
  REQUIRE(verify(network) == std::vector<std::string>{});
  const TensorFormat packed = {ElementType::f32, TensorLayout::nchw4};
  const auto [formatted, conversions] = assign_formats(network, [&](const Operator& op, const ConvLayer&) {
    return op.name == "a" ? OperatorFormats{packed, {}} : OperatorFormats{kHalf, kHalf};
  });
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(conversions == 0);
  CHECK(operators_of(formatted) == "a b");
  CHECK(named_tensor(formatted, "a.input").format == packed);
  CHECK(named_tensor(formatted, "a.residual").format.is_plain());  // as the output
  CHECK(named_tensor(formatted, "a.output").format.is_plain());
  CHECK(named_tensor(formatted, "b.input").format == kHalf);
  CHECK(named_tensor(formatted, "b.output").format == kHalf);
}

TEST_CASE("network formats: that an operator cannot have are faults") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  Network network = graph.finish({graph.add("softmax", Softmax{}, {x})});
  network.tensors[static_cast<std::size_t>(x)].format = kHalf;
  CHECK(verify(network) ==
        std::vector<std::string>{"operator 'softmax' (softmax): it cannot read f16 n2chw and write f32 nchw"});
}

namespace {

constexpr TensorFormat kLoose = {ElementType::f16, TensorLayout::nchw},
                       kLooseBf16 = {ElementType::bf16, TensorLayout::nchw};

Network with_ends(Network network, const TensorFormat& format) {
  for (const auto* ends : {&network.inputs, &network.outputs}) {
    for (const int end : *ends) network.tensors[static_cast<std::size_t>(end)].format = format;
  }
  return network;
}

Rewritten in_floats(Network network) {
  return assign_formats(std::move(network), [](const Operator&, const ConvLayer&) { return OperatorFormats{}; });
}

// Every tensor of loose halves is an input or an output, and verify() finds nothing.
void check_loose(const Network& formatted, const TensorFormat& ends) {
  CHECK(verify(formatted) == std::vector<std::string>{});
  for (std::size_t i = 0; i < formatted.tensors.size(); ++i) {
    const auto is_in = [&](const std::vector<int>& list) {
      return std::ranges::find(list, static_cast<int>(i)) != list.end();
    };
    INFO(formatted.tensors[i].name);
    CHECK((formatted.tensors[i].format == ends) == (is_in(formatted.inputs) || is_in(formatted.outputs)));
  }
  CHECK(verify(plan_network(formatted, "loose", 3)) == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("assign_formats: loose halves at the ends of a network in FP32") {
  GraphBuilder graph;
  const int x = graph.input({2, 3, 3});
  const int a = graph.convolution(same_size("a", 2, 3), {x});
  const Network network = graph.finish({graph.add("softmax", Softmax{}, {a}), a});
  const auto [formatted, conversions] = in_floats(with_ends(network, kLoose));
  check_loose(formatted, kLoose);
  CHECK(conversions == 3);
  const std::string input = network.tensors[static_cast<std::size_t>(x)].name;
  const std::string made = network.tensors[static_cast<std::size_t>(a)].name;
  const std::string output = network.tensors[static_cast<std::size_t>(network.outputs[0])].name;
  // The softmax reads what the convolution made, not what was rounded for the caller.
  CHECK(operators_of(formatted) == input + ".f32.convert a " + made + ".convert softmax " + output + ".convert");
  const Program program = plan_network(formatted, "loose", 3);
  CHECK(program.inputs()[0]->bytes == 3 * 18 * 2);
  CHECK(program.outputs()[1]->bytes == 3 * 27 * 2);
}

TEST_CASE("assign_formats: loose halves become those of two or of eight images at once") {
  for (const TensorFormat& format : {kHalf, kEights}) {
    GraphBuilder graph;
    const int x = graph.input({2, 4, 4});
    const int a = graph.convolution(same_size("a", 2, 2), {x});
    const auto [formatted, conversions] = in_halves(with_ends(graph.finish({a}), kLooseBf16), format);
    check_loose(formatted, kLooseBf16);
    CHECK(conversions == 2);
  }
}

TEST_CASE("assign_formats: between loose halves and four channels side by side stands a plain copy") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x});
  const TensorFormat fours = {ElementType::f32, TensorLayout::nchw4};
  const auto [formatted, conversions] = in_halves(with_ends(graph.finish({a}), kLoose), fours);
  check_loose(formatted, kLoose);
  CHECK(conversions == 4);
}

TEST_CASE("assign_formats: what is rounded for the caller is not read again in another format") {
  GraphBuilder graph;
  const int x = graph.input({2, 4, 4});
  const int a = graph.convolution(same_size("a", 2, 2), {x}), b = graph.convolution(same_size("b", 2, 2), {a});
  const Network network = with_ends(graph.finish({a, b}), kLooseBf16);
  const auto [formatted, conversions] = assign_formats(network, [](const Operator& op, const ConvLayer&) {
    return op.name == "a" ? OperatorFormats{} : OperatorFormats{kHalf, kHalf};
  });
  check_loose(formatted, kLooseBf16);
  const auto op = std::ranges::find(formatted.operators, "b", &Operator::name);
  REQUIRE(op != formatted.operators.end());
  const auto maker = std::ranges::find(formatted.operators, op->inputs.front(), &Operator::output);
  REQUIRE(maker != formatted.operators.end());
  CHECK(formatted.tensors[static_cast<std::size_t>(maker->inputs.front())].format.is_plain());
}

TEST_CASE("assign_formats: loose inputs that are put together, reshaped or handed on are converted first") {
  GraphBuilder graph;
  const int x = graph.input({1, 3, 3}), y = graph.input({2, 3, 3});
  const int both = graph.add("both", Concat{0}, {x, y});
  const int flat = graph.add("flat", Reshape{{27}}, {both});
  const int same = graph.add("same", Identity{}, {x});
  const auto [formatted, conversions] = in_floats(with_ends(graph.finish({both, flat, same}), kLoose));
  check_loose(formatted, kLoose);
  CHECK(conversions == 5);
}

TEST_CASE("network formats: loose halves that are no input or output, or that no conversion reads, are faults") {
  GraphBuilder graph;
  const int x = graph.input({2, 3, 3});
  const Network network = graph.finish({graph.add("relu", Elementwise{ElementFunction::relu}, {x})});
  const Network loose = with_ends(network, kLoose);
  CHECK(verify(loose) ==
        std::vector<std::string>{
            "operator 'relu' (elementwise): it cannot read f16 nchw and write f16 nchw",
            "operator 'relu' (elementwise): its output is f16 nchw, which only a network's inputs and outputs "
            "are"});
  CHECK_FALSE(can_take(Elementwise{ElementFunction::relu}, {2, 3, 3}, kLoose, kLoose));
  CHECK_FALSE(can_take(GlobalAveragePool{}, {2, 3, 3}, kLoose, {}));
  CHECK(can_convert(kLoose, {}));
  CHECK(can_convert(kEights, kLooseBf16));
  CHECK_FALSE(can_convert(kLoose, kLooseBf16));
  CHECK_FALSE(can_convert(kLoose, {ElementType::f32, TensorLayout::nchw4}));
  CHECK_FALSE(can_convert(kHalf, kEights));
  CHECK_FALSE(can_convert({}, {}));
}
