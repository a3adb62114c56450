// In which formats the tensors of a graph lie: held to all choices that there are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/choose/choose.h"
#include "compiler/choose/format_choice.h"
#include "compiler/kernel_cache.h"
#include "compiler/program_tasks.h"
#include "test/catch.h"
#include "test/ir/small_network.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr double kNobody = std::numeric_limits<double>::infinity();

ConvLayer pointwise(const std::string& name, bool residual = false, int channels = 8) {
  ConvLayer layer;
  layer.name = name;
  layer.shape.in_channels = layer.shape.out_channels = channels;
  layer.shape.kernel_h = layer.shape.kernel_w = 1;
  layer.shape.epilogue.residual = residual;
  layer.weights.assign(static_cast<std::size_t>(channels * channels), 0.5F);
  return layer;
}

constexpr TensorFormat kPlain, kPlaces = {ElementType::f16, TensorLayout::nchw8},
                               kLines = {ElementType::f16, TensorLayout::n8c8hw};

LayerPrecisions in_fp16() {
  LayerPrecisions precisions;
  precisions.all = Precision::fp16;
  return precisions;
}

bool is_places(const TensorFormat& format) { return format.layout == TensorLayout::nchw8; }

// Each plain side takes as much as two of places.
double rather_in_places(const Operator&, const ConvLayer&, const OperatorFormats& formats) {
  return (is_places(formats.input) ? 1 : 2) + (is_places(formats.output) ? 1 : 2);
}

// The convolutions, each with what it reads and writes in places: "a -x b xx".
std::string text_of(const Network& network, const std::map<std::string, OperatorFormats>& chosen) {
  std::string text;
  for (const Operator& op : network.operators) {
    if (!std::holds_alternative<Convolution>(op.kind)) continue;
    const auto found = chosen.find(op.name);
    const OperatorFormats formats = found == chosen.end() ? OperatorFormats{} : found->second;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : " ", op.name, is_places(formats.input) ? 'x' : '-',
                        is_places(formats.output) ? 'x' : '-');
  }
  return text;
}

using ConvolutionTime = decltype(FormatTimes::convolution);

// Plain tensors first, or in places on either side, or on both.
std::vector<OperatorFormats> in_places(const Operator&, const ConvLayer&) {
  return {{kPlain, kPlain}, {kPlaces, kPlain}, {kPlain, kPlaces}, {kPlaces, kPlaces}};
}

FormatTimes with_conversions(const ConvolutionTime& convolution, double conversion_us) {
  const auto other = [](const Network&, const Operator&, const OperatorFormats&) { return 0.0; };
  const auto conversion = [=](const std::vector<std::int64_t>&, const TensorFormat&, const TensorFormat&) {
    return conversion_us;
  };
  return {convolution, other, conversion};
}

Network formatted_as(const Network& network, const FormatChoice& choice) {
  const auto formats = [](const Operator&, const ConvLayer&) { return OperatorFormats{}; };
  const Network formatted = assign_formats(network, formats, choice.formats).network;
  CHECK(verify(formatted) == std::vector<std::string>{});
  return formatted;
}

int conversions_of(const Network& network) {
  return static_cast<int>(std::ranges::count_if(
      network.operators, [](const Operator& op) { return std::holds_alternative<Convert>(op.kind); }));
}

// Where a conversion costs more than anything.
std::string chosen_for(const Network& network, const ConvolutionTime& time = rather_in_places,
                       const FormatWays& ways = in_places) {
  REQUIRE(verify(network).empty());
  const FormatChoice choice = choose_formats(network, ways, 1, with_conversions(time, 1000));
  CHECK(choice.exact);
  CHECK(conversions_of(formatted_as(network, choice)) == 0);
  return text_of(network, choice.formats);
}

}  // namespace

TEST_CASE("choose_formats: between convolutions, not at the ends of the network") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  int y = graph.convolution(pointwise("a"), {x});
  y = graph.convolution(pointwise("b"), {y});
  y = graph.convolution(pointwise("c"), {y});
  const Network network = graph.finish({y});
  CHECK(chosen_for(network) == "a -x b xx c x-");
  const auto rather_plain = [](const Operator& op, const ConvLayer& layer, const OperatorFormats& formats) {
    return 5 - rather_in_places(op, layer, formats);
  };
  CHECK(chosen_for(network, rather_plain) == "a -- b -- c --");
  const auto plain_b = [](const Operator& op, const ConvLayer& layer) {
    return op.name == "b" ? std::vector<OperatorFormats>{{}} : in_places(op, layer);
  };
  CHECK(chosen_for(network, rather_in_places, plain_b) == "a -- b -- c --");
  const auto other_b = [](const Operator& op, const ConvLayer& layer) {
    std::vector<OperatorFormats> ways = in_places(op, layer);
    const auto to_bf16 = [](TensorFormat& format) {
      if (is_places(format)) format.element = ElementType::bf16;
    };
    for (OperatorFormats& formats : ways) {
      if (op.name != "b") continue;
      to_bf16(formats.input);
      to_bf16(formats.output);
    }
    return ways;
  };
  CHECK(chosen_for(network, rather_in_places, other_b) == "a -- b -- c --");
  const auto never = [](const Operator&, const ConvLayer&) { return std::vector<OperatorFormats>{{}}; };
  CHECK(chosen_for(network, rather_in_places, never) == "a -- b -- c --");
}

TEST_CASE("choose_formats: a conversion stands where it costs less than what it saves") {
  GraphBuilder graph;
  int y = graph.input({8, 4, 4});
  y = graph.convolution(pointwise("a"), {y});
  y = graph.add("added", Combine{Combination::add}, {y, graph.convolution(pointwise("b"), {y})});
  y = graph.convolution(pointwise("c"), {y});
  const Network network = graph.finish({graph.convolution(pointwise("d"), {y})});
  REQUIRE(verify(network).empty());
  const auto in_lines = [](const Operator&, const ConvLayer&) {
    return std::vector<OperatorFormats>{{kLines, kLines}, {kPlain, kPlain}};
  };
  // a and b are as fast in either, c is slow in lines, d in plain tensors.
  const auto time = [](const Operator& op, const ConvLayer&, const OperatorFormats& formats) {
    const bool lines = formats.input == kLines;
    return op.name == "c" ? (lines ? 9 : 1) : op.name == "d" ? (lines ? 1 : 9) : 2.0;
  };
  const auto chosen = [&](double conversion_us) {
    const FormatChoice choice = choose_formats(network, in_lines, 1, with_conversions(time, conversion_us));
    return std::pair(choice.us, conversions_of(formatted_as(network, choice)));
  };
  CHECK(chosen(3) == std::pair(2 + 2 + 1 + 1 + 2 * 3.0, 2));  // of what d reads, and of what it makes
  CHECK(chosen(5) == std::pair(2 + 2 + 1 + 9.0, 0));
}

TEST_CASE("choose_formats: parts of a concatenation lie alike, and what several read is converted once") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  const int a = graph.convolution(pointwise("a"), {x}), b = graph.convolution(pointwise("b"), {x});
  const int both = graph.add("both", Concat{0}, {a, b});
  const int c = graph.convolution(pointwise("c", false, 16), {both}),
            d = graph.convolution(pointwise("d", false, 16), {both});
  const int sum = graph.add("sum", Combine{Combination::add}, {c, d});
  const Network network = graph.finish({graph.add("mean", GlobalAveragePool{}, {sum})});
  REQUIRE(verify(network).empty());
  const auto in_lines = [](const Operator&, const ConvLayer&) {
    return std::vector<OperatorFormats>{{kLines, kLines}, {kPlain, kPlain}};
  };
  const auto chosen = [&](const std::string& slow_in_lines, const TensorFormat& whole) {
    const auto time = [&](const Operator& op, const ConvLayer&, const OperatorFormats& formats) {
      return (slow_in_lines.find(op.name) != std::string::npos) == (formats.input == kLines) ? 9.0 : 1.0;
    };
    const FormatChoice choice = choose_formats(network, in_lines, 1, with_conversions(time, 1));
    const Network formatted = formatted_as(network, choice);
    const int made = std::ranges::find(formatted.operators, "both", &Operator::name)->output;
    CHECK(formatted.tensors[static_cast<std::size_t>(made)].format == whole);
    return std::pair(choice.us, conversions_of(formatted));
  };
  CHECK(chosen("ab", kPlain) == std::pair(2 + 1 + 2.0, 1));  // both is converted for c and d
  CHECK(chosen("", kLines) == std::pair(1 + 4.0, 1));        // the input is, for a and b
}

TEST_CASE("in_formats: what excites an image keeps it in lines") {
  GraphBuilder graph;
  const auto layer = [](const std::string& name) {
    ConvLayer made = pointwise(name, false, 64);
    made.shape.kernel_h = made.shape.kernel_w = 3;
    made.shape.pad = {1, 1, 1, 1};
    made.weights.assign(64 * 64 * 9, 0.5F);
    return made;
  };
  const int y = graph.convolution(layer("a"), {graph.input({64, 28, 28})});
  const int sums = graph.add("squeeze", Squeeze{4, std::vector<float>(4 * 64, 0.5F), 28, 28}, {y});
  const Excite excite{{}, {}, {4, 64, std::vector<float>(4 * 64, 0.5F), {}}};
  const int excited = graph.add("excite", excite, {y, sums});
  const Network network = graph.finish({graph.convolution(layer("b"), {excited})});
  REQUIRE(verify(network) == std::vector<std::string>{});
  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = in_fp16();
  for (const FormatRule rule : {FormatRule::usual, FormatRule::estimated}) {
    options.format_rules[32] = rule;
    const Network formatted = in_formats(network, options, 32);
    const int made = std::ranges::find(formatted.operators, "excite", &Operator::name)->output;
    CHECK(formatted.tensors[static_cast<std::size_t>(made)].format == kLines);
  }
}

TEST_CASE("has_same_formats: a conversion of another tensor is another graph") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  const int a = graph.convolution(pointwise("a"), {x}), b = graph.convolution(pointwise("b"), {x});
  const Network network = graph.finish({graph.add("sum", Combine{Combination::add}, {a, b})});
  const auto with = [&](const std::string& in_lines) {
    return assign_formats(network,
                          [&](const Operator& op, const ConvLayer&) {
                            return op.name == in_lines ? OperatorFormats{kPlaces, kPlain} : OperatorFormats{};
                          })
        .network;
  };
  CHECK(has_same_formats(with("a"), with("a")));
  CHECK(std::ranges::equal(with("a").tensors, with("b").tensors, {}, &Activations::format, &Activations::format));
  CHECK_FALSE(has_same_formats(with("a"), with("b")));
}

TEST_CASE("choose_formats: what is added lies as the output does, and what others read is plain") {
  GraphBuilder graph;
  const int x = graph.input({8, 4, 4});
  const int a = graph.convolution(pointwise("a"), {x}), b = graph.convolution(pointwise("b"), {a});
  const int c = graph.convolution(pointwise("c", true), {b, a});
  const int d = graph.convolution(pointwise("d"), {graph.add("pool", Pool{.kernel_h = 2, .kernel_w = 2}, {c})});
  const int mean = graph.add("mean", GlobalAveragePool{}, {d});
  const Network network = graph.finish({mean});
  CHECK(chosen_for(network) == "a -x b xx c xx d x-");
}

TEST_CASE("choose_formats: concatenations of whole places, and of others") {
  for (const int channels : {8, 12}) {
    GraphBuilder graph;
    const int x = graph.input({channels, 4, 4});
    const int a = graph.convolution(pointwise("a", false, channels), {x});
    const int b = graph.convolution(pointwise("b", false, channels), {x});
    const int both = graph.add("both", Concat{0}, {a, b});
    const Network network = graph.finish({graph.convolution(pointwise("c", false, 2 * channels), {both})});
    CHECK(chosen_for(network) == (channels == 8 ? "a -x b -x c x-" : "a -- b -- c --"));
  }
}

TEST_CASE("choose_formats: a tensor stays plain where a convolution has no kernel for it") {
  GraphBuilder graph;
  int y = graph.input({8, 4, 4});
  for (const char* name : {"a", "b", "c", "d"}) y = graph.convolution(pointwise(name), {y});
  const Network network = graph.finish({y});
  const auto nobody_reads_c = [](const Operator& op, const ConvLayer& layer, const OperatorFormats& formats) {
    return op.name == "c" && is_places(formats.input) ? kNobody : rather_in_places(op, layer, formats);
  };
  CHECK(chosen_for(network, nobody_reads_c) == "a -x b x- c -x d x-");
  const auto nobody = [](const Operator& op, const ConvLayer& layer, const OperatorFormats& formats) {
    const bool plain = !is_places(formats.input) && !is_places(formats.output);
    return plain ? rather_in_places(op, layer, formats) : kNobody;
  };
  CHECK(chosen_for(network, nobody) == "a -- b -- c -- d --");
}

namespace {

// A graph of convolutions, pools, functions and sums with times of its own.
struct RandomChoice {
  Network network;
  std::map<std::string, std::vector<OperatorFormats>> ways;  // of the convolutions
  std::map<std::string, std::map<std::string, double>> us;   // of all operators, by formats
  std::map<std::string, double> conversion_us;               // by both formats

  static std::string key(const OperatorFormats& formats) {
    return to_string(formats.input) + " " + to_string(formats.output);
  }
  double time_of(const Operator& op, const OperatorFormats& formats) const { return us.at(op.name).at(key(formats)); }
  // Between halves in two layouts stands a plain copy.
  double conversion_of(const TensorFormat& from, const TensorFormat& to) const {
    if (from == to) return 0;
    if (can_convert(from, to)) return conversion_us.at(key({from, to}));
    return conversion_us.at(key({from, {}})) + conversion_us.at(key({{}, to}));
  }
  FormatTimes times() const {
    return {
        [this](const Operator& op, const ConvLayer&, const OperatorFormats& formats) { return time_of(op, formats); },
        [this](const Network&, const Operator& op, const OperatorFormats& formats) { return time_of(op, formats); },
        [this](const std::vector<std::int64_t>&, const TensorFormat& from, const TensorFormat& to) {
          REQUIRE(can_convert(from, to));
          return conversion_of(from, to);
        }};
  }
};

const std::vector<TensorFormat> kFormats = {kPlain, kPlaces, kLines};
// The ways of convolutions that there are kernels for.
const std::vector<OperatorFormats> kAllWays = {
    {kLines, kLines}, {kPlain, kPlain}, {kPlaces, kPlaces}, {kPlaces, kPlain}, {kPlain, kPlaces}};

RandomChoice random_choice(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
  RandomChoice made;
  GraphBuilder graph;
  std::vector<int> tensors = {graph.input({8, 4, 4})};
  const int count = draw(2, 6);
  for (int i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    const int read = tensors[static_cast<std::size_t>(draw(std::max(0, i - 2), i))];
    const int added = tensors[static_cast<std::size_t>(draw(0, i))];
    const int kind = i + 1 == count ? 0 : draw(0, 7);
    if (kind < 4) {
      const bool residual = kind == 0;
      std::vector<int> inputs = {read};
      if (residual) inputs.push_back(added);
      tensors.push_back(graph.convolution(pointwise(name, residual), inputs));
      for (const OperatorFormats& way : kAllWays) {
        if (made.ways[name].empty() || draw(0, 3) > 0) made.ways[name].push_back(way);
      }
      std::ranges::shuffle(made.ways[name], random);
    } else if (kind == 4) {
      tensors.push_back(graph.add(
          name, Pool{.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad = {1, 1, 1, 1}}, {read}));
    } else if (kind == 5) {
      tensors.push_back(graph.add(name, Elementwise{ElementFunction::relu}, {read}));
    } else {
      tensors.push_back(graph.add(name, Combine{Combination::add}, {read, added}));
    }
    // Operators that have no choice are not counted: a convolution of one way, and others that nobody gives halves.
    const bool is_counted = kind >= 4 || made.ways[name].size() > 1;
    for (const TensorFormat& from : kFormats) {
      for (const TensorFormat& to : kFormats) {
        const bool is_free = !is_counted || (kind >= 4 && from.is_plain());
        made.us[name][RandomChoice::key({from, to})] = is_free ? 0 : draw(10, 40) / 10.0;
      }
    }
  }
  for (const TensorFormat& from : kFormats) {
    for (const TensorFormat& to : kFormats) made.conversion_us[RandomChoice::key({from, to})] = draw(1, 12) / 10.0;
  }
  made.network = graph.finish({tensors.back()});
  return made;
}

// The ways of any operator where its output is made in `written`.
std::vector<OperatorFormats> ways_of(const RandomChoice& of, const Operator& op, const TensorFormat& written) {
  std::vector<OperatorFormats> ways;
  if (std::holds_alternative<Convolution>(op.kind)) {
    ways = of.ways.at(op.name);
  } else {
    for (const TensorFormat& format : kFormats) {
      if (can_take(op.kind, {8, 4, 4}, format, format)) ways.push_back({format, format});
    }
  }
  std::erase_if(ways, [&](const OperatorFormats& way) { return way.output != written; });
  return ways;
}

// The least of all choices: a format for each tensor, and a set of formats in which it is there for its readers.
double least_us(const RandomChoice& of) {
  const Network& network = of.network;
  const std::size_t tensors = network.tensors.size();
  std::vector<std::size_t> made(tensors, 0);
  const auto format = [&](int tensor) { return kFormats[made[static_cast<std::size_t>(tensor)]]; };
  // What its readers take, and the conversions, at least.
  const auto least_of = [&](int tensor) {
    double least = kNobody;
    for (unsigned set = 1; set < 1U << kFormats.size(); ++set) {
      const auto is_there = [&](const TensorFormat& wanted) {
        return (set >> (std::ranges::find(kFormats, wanted) - kFormats.begin()) & 1U) != 0;
      };
      double us = tensor == network.outputs.front() && !is_there(kPlain) ? kNobody : 0;
      for (const TensorFormat& to : kFormats) us += is_there(to) ? of.conversion_of(format(tensor), to) : 0;
      for (const Operator& op : network.operators) {
        if (op.inputs.size() > 1 && op.inputs[1] == tensor && !is_there(format(op.output))) us = kNobody;
        if (op.inputs[0] != tensor) continue;
        double fastest = kNobody;
        for (const OperatorFormats& way : ways_of(of, op, format(op.output))) {
          if (is_there(way.input)) fastest = std::min(fastest, of.time_of(op, way));
        }
        us += fastest;
      }
      least = std::min(least, us);
    }
    return least;
  };
  const auto is_used = [&](int tensor) {
    return tensor == network.outputs.front() || std::ranges::any_of(network.operators, [&](const Operator& op) {
             return std::ranges::find(op.inputs, tensor) != op.inputs.end();
           });
  };
  double least = kNobody;
  while (true) {
    if (format(network.inputs.front()).is_plain()) {
      double us = 0;
      for (std::size_t i = 0; i < tensors; ++i) us += is_used(static_cast<int>(i)) ? least_of(static_cast<int>(i)) : 0;
      least = std::min(least, us);
    }
    std::size_t digit = 0;
    while (digit < tensors && ++made[digit] == kFormats.size()) made[digit++] = 0;
    if (digit == tensors) return least;
  }
}

// What the operators of a graph take in the formats that their tensors have.
double us_of(const RandomChoice& of, const Network& formatted) {
  double us = 0;
  for (const Operator& op : formatted.operators) {
    const auto format = [&](int tensor) { return formatted.tensors[static_cast<std::size_t>(tensor)].format; };
    const OperatorFormats formats = {format(op.inputs[0]), format(op.output)};
    us += std::holds_alternative<Convert>(op.kind) ? of.conversion_of(formats.input, formats.output)
                                                   : of.time_of(op, formats);
  }
  return us;
}

}  // namespace

TEST_CASE("choose_formats: on small random graphs the best of all choices") {
  constexpr int kGraphs = 200;
  int mixed = 0, converted = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    INFO("graph " << seed);
    const RandomChoice of = random_choice(seed);
    if (!verify(of.network).empty()) continue;  // an operator that nobody reads
    const FormatWays ways = [&](const Operator& op, const ConvLayer&) { return of.ways.at(op.name); };
    const FormatChoice chosen = choose_formats(of.network, ways, 1, of.times());
    if (chosen.formats.empty()) continue;
    ++compared;
    CHECK(chosen.exact);
    CHECK(chosen.us == Approx(least_us(of)));
    const Network formatted = formatted_as(of.network, chosen);
    // A plain copy between two layouts serves all who read it.
    CHECK(us_of(of, formatted) <= chosen.us + 1e-9);
    converted += conversions_of(formatted) > 0 ? 1 : 0;
    std::set<std::string> formats;
    for (const Activations& tensor : formatted.tensors) formats.insert(to_string(tensor.format));
    mixed += formats.size() == kFormats.size() ? 1 : 0;
  }
  CHECK(compared >= kGraphs / 2);
  CHECK(mixed >= kGraphs / 20);
  CHECK(converted >= kGraphs / 8);
}

// Concatenations of what convolutions make of all concatenations before: any two hang together.
TEST_CASE("choose_formats: where tensors hang together in too many ways it has searched, and a note says so") {
  constexpr int kTensors = 22;
  GraphBuilder graph;
  std::vector<int> tensors = {graph.convolution(pointwise("stem"), {graph.input({8, 4, 4})})};
  for (int i = 1; i < kTensors; ++i) {
    std::vector<int> parts;
    for (int j = 0; j < i; ++j) {
      const int channels = 8 * std::max(j, 1);
      ConvLayer layer = pointwise(fmt::format("c{}_{}", i, j), false, channels);
      layer.shape.out_channels = 8;
      layer.weights.resize(static_cast<std::size_t>(8 * channels));
      parts.push_back(graph.convolution(layer, {tensors[static_cast<std::size_t>(j)]}));
    }
    tensors.push_back(i == 1 ? parts.front() : graph.add(fmt::format("all{}", i), Concat{0}, parts));
  }
  const int channels = 8 * (kTensors - 1);
  const Network network = graph.finish({graph.convolution(pointwise("end", false, channels), {tensors.back()})});
  REQUIRE(verify(network).empty());
  const FormatChoice chosen = choose_formats(network, in_places, 1, with_conversions(rather_in_places, 1000));
  CHECK_FALSE(chosen.exact);
  const auto is_found = [](const auto& formats) { return is_places(formats.second.input); };
  CHECK(std::ranges::count_if(chosen.formats, is_found) > static_cast<int>(network.layers.size()) / 2);

  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = in_fp16();
  const Network formatted = in_formats(network, options, 1);
  REQUIRE(formatted.notes.size() == 1);
  CHECK(formatted.notes.front().find("at batch 1 too many tensors hang together") != std::string::npos);
}

namespace {

// Convolutions with a pool behind the first and a sum between the others; the last one has a function that no library
// has.
Network of_several_kinds() {
  const auto layer = [](const std::string& name, bool residual = false) {
    ConvLayer made = pointwise(name, residual, 64);
    made.shape.epilogue.function = Elementwise{ElementFunction::relu};
    return made;
  };
  GraphBuilder graph;
  int y = graph.convolution(layer("a"), {graph.input({64, 28, 28})});
  y = graph.add("pool", Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}, {y});
  y = graph.convolution(layer("c", true), {graph.convolution(layer("b"), {y}), y});
  ConvLayer last = layer("d");
  last.shape.epilogue.function = Elementwise{ElementFunction::sigmoid};
  Network network = graph.finish({graph.convolution(last, {y})});
  REQUIRE(verify(network) == std::vector<std::string>{});
  return network;
}

CompileOptions for_calls(Precision precision, int batch) {
  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions.all = precision;
  options.format_rules[batch] = FormatRule::libraries;
  return options;
}

// The operators, each with the format of what it writes: "a nhwc8, b nchw".
std::string formats_of(const Network& network) {
  std::string text;
  for (const Operator& op : network.operators) {
    if (std::holds_alternative<Convert>(op.kind)) continue;
    const TensorFormat& made = network.tensors[static_cast<std::size_t>(op.output)].format;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", op.name, to_string(made.layout));
  }
  return text;
}

}  // namespace

TEST_CASE(
    "in_formats: convolutions that a library can be called for have their channels last, others the usual format") {
  const std::map<std::pair<Precision, int>, std::string> expected = {
      {{Precision::fp16, 1}, "a nhwc8, pool nhwc8, b nhwc8, c nhwc8, d nchw"},
      {{Precision::bf16, 1}, "a nhwc8, pool nhwc8, b nhwc8, c nhwc8, d nchw"},
      {{Precision::fp16, 8}, "a nhwc8, pool nhwc8, b nhwc8, c nhwc8, d n8c8hw"},
      {{Precision::tf32, 1}, "a nhwc4, pool nhwc4, b nhwc4, c nhwc4, d nchw"},
      {{Precision::tf32, 8}, "a nhwc4, pool nhwc4, b nhwc4, c nhwc4, d n4c8hw"},
      {{Precision::fp32, 8}, "a nchw, pool nchw, b nchw, c nchw, d nchw"}};
  for (const auto& [asked, formats] : expected) {
    const auto& [precision, batch] = asked;
    INFO(to_string(precision) << ", batch " << batch);
    CompileOptions options = for_calls(precision, batch);
    const Network formatted = in_formats(of_several_kinds(), options, batch);
    CHECK(verify(formatted) == std::vector<std::string>{});
    CHECK(formats_of(formatted) == formats);
    const auto is_usual = [&] {
      return has_same_formats(in_formats(of_several_kinds(), options, batch),
                              in_usual_formats(of_several_kinds(), options, batch));
    };
    CHECK(is_usual() == (precision == Precision::fp32));
    options.kernels.of_layers["b"] = "conv_baked";
    CHECK_THAT(formats_of(in_formats(of_several_kinds(), options, batch)), !Contains("b nhwc"));
    options.kernels.of_layers["b"] = "conv_cudnn";
    CHECK(formats_of(in_formats(of_several_kinds(), options, batch)) == formats);
    options.kernels.of_layers.clear();
    options.libraries = false;
    CHECK(is_usual());
    options.libraries = true;
    options.skip_dead_tiles = true;  // which no library does
    CHECK(is_usual());
    options.skip_dead_tiles = false;
    options.format_rules.clear();
    CHECK_THAT(formats_of(in_formats(of_several_kinds(), options, batch)), !Contains("nhwc"));
  }
}

TEST_CASE("choose: a library is called in the formats that calls read best, but for what was measured") {
  constexpr int kBatch = 8;
  for (const auto& [precision, layout] :
       {std::pair(Precision::tf32, TensorLayout::nhwc4), {Precision::fp16, TensorLayout::nhwc8}}) {
    INFO(to_string(precision));
    const ConvLayer layer = pointwise("a", false, 64);
    const Operator op{.name = "a", .kind = Convolution{}, .inputs = {}, .output = 0};
    const KernelCache cache;
    CompileOptions options = for_calls(precision, kBatch);
    options.cache = &cache;
    const auto task_in = [&](const TensorFormat& format) {
      return task_of(op, layer, format, format, kBatch, options);
    };
    const Task task = task_in(format_of(precision, layout));
    const auto chosen = [&] {
      const Choice choice = choose(task, options);
      CHECK(cached_choice(task, options).candidate == choice.candidate);
      return choice.candidate.provider;
    };
    CHECK(chosen() == "conv_cudnn");
    // Estimates stay those of kernels with a model, whatever was asked before.
    CHECK(choose_by_models(task, options).candidate.provider == "conv_warpgroup_rows");
    CHECK(estimated_us(task, options) > 0);
    CHECK(chosen() == "conv_cudnn");
    CHECK(choose(task_in({}), options).candidate.provider != "conv_cudnn");

    CompileOptions measured = options;
    TunedKernel tuned{.layer = "a",
                      .batch = kBatch,
                      .formats = task.formats(),
                      .candidate = choose_by_models(task, options).candidate};
    tuned.candidate.estimate = {5, Estimate::Source::measured};
    tuned.evidence.candidates.push_back({.provider = tuned.candidate.provider, .us = 5});
    measured.tuned = {tuned};
    std::swap(options, measured);
    CHECK(chosen() == "conv_warpgroup_rows");
    std::swap(options, measured);

    options.libraries = false;
    CHECK(chosen() == "conv_warpgroup_rows");
    options.libraries = true;
    options.format_rules.clear();
    CHECK(chosen() == "conv_warpgroup_rows");
  }
}

namespace {

// What the models would take for a convolution in these formats, as if it had been measured to take so long.
TunedKernel measured_in(const Task& task, const CompileOptions& options, double us) {
  TunedKernel tuned{.layer = task.name,
                    .batch = task.batch,
                    .formats = task.formats(),
                    .candidate = choose_by_models(task, options).candidate};
  tuned.evidence.candidates.push_back(
      {.provider = tuned.candidate.provider, .predicted_us = tuned.candidate.estimate.us, .us = us});
  tuned.candidate.estimate = {us, Estimate::Source::measured};
  return tuned;
}

// The formats of the convolutions alone.
std::string layouts_of(const Network& network, const std::map<std::string, OperatorFormats>& chosen) {
  std::string text;
  for (const Operator& op : network.operators) {
    if (!std::holds_alternative<Convolution>(op.kind)) continue;
    const OperatorFormats& formats = chosen.at(op.name);
    text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", op.name, to_string(formats.input.layout),
                        to_string(formats.output.layout));
  }
  return text;
}

}  // namespace

TEST_CASE("in_other_formats: the convolutions of a graph in those that they have not") {
  const Network graph = of_several_kinds();
  for (const auto& [precision, batch, others] :
       {std::tuple(Precision::tf32, 8, std::set<std::string>{"nchw-nchw", "nhwc4-nhwc4"}),
        {Precision::fp16, 8, {"nchw-nchw", "nhwc8-nhwc8"}},
        {Precision::fp16, 1, {"nchw8-nchw", "nchw-nchw8", "nchw8-nchw8", "nhwc8-nhwc8", "nchw-nchw"}},
        {Precision::fp32, 8, {}}}) {
    INFO(to_string(precision) << ", batch " << batch);
    CompileOptions options;
    options.precisions.all = precision;
    const Network formatted = in_usual_formats(graph, options, batch);
    const auto all = [](const Provider&) { return true; };
    const std::vector<Task> tasks = in_other_formats(graph, formatted, options, batch, all);
    CHECK(tasks.empty() == others.empty());
    for (const Task& task : tasks) {
      const OperatorFormats formats = task.formats();
      CHECK(others.contains(fmt::format("{}-{}", to_string(formats.input.layout), to_string(formats.output.layout))));
      const auto placed = std::ranges::find(formatted.operators, task.name, &Operator::name);
      REQUIRE(placed != formatted.operators.end());
      const auto format = [&](int tensor) { return formatted.tensors[static_cast<std::size_t>(tensor)].format; };
      CHECK(formats != OperatorFormats{format(placed->inputs.front()), format(placed->output)});
      CHECK(task.batch == batch);
    }
    options.layout = TensorLayout::nchw;  // whoever asks for a layout leaves no choice
    CHECK(in_other_formats(graph, in_usual_formats(graph, options, batch), options, batch, all).empty());
    CHECK(formats_by_measurement(graph, options, batch).empty());
  }
}

TEST_CASE("formats_by_measurement: times that were measured go before estimates, and correct those of a layer") {
  constexpr int kBatch = 8;
  const Network graph = of_several_kinds();
  CompileOptions options;
  options.precisions.all = Precision::tf32;
  const TensorFormat lines = {ElementType::f32, TensorLayout::n4c8hw}, last = {ElementType::f32, TensorLayout::nhwc4};
  const auto measure = [&](const std::string& name, const TensorFormat& format, double us) {
    const auto op = std::ranges::find(graph.operators, name, &Operator::name);
    const ConvLayer& layer = graph.layers[static_cast<std::size_t>(std::get<Convolution>(op->kind).layer)];
    options.tuned.push_back(measured_in(task_of(*op, layer, format, format, kBatch, options), options, us));
  };
  const auto chosen = [&] { return layouts_of(graph, formats_by_measurement(graph, options, kBatch)); };
  const std::vector<std::string> names = {"a", "b", "c", "d"};

  // Calls in channels last take next to nothing, which says nothing of the models.
  for (const std::string& name : names) {
    measure(name, last, 0.01);
    options.tuned.back().evidence.candidates.front().us = options.tuned.back().evidence.candidates.front().predicted_us;
  }
  CHECK(chosen() == "a nhwc4-nhwc4, b nhwc4-nhwc4, c nhwc4-nhwc4, d nhwc4-nhwc4");
  options.tuned.clear();
  for (const std::string& name : names) {
    measure(name, lines, 0.01);
    measure(name, last, 100);
    measure(name, kPlain, 100);
  }
  CHECK(chosen() == "a n4c8hw-n4c8hw, b n4c8hw-n4c8hw, c n4c8hw-n4c8hw, d n4c8hw-n4c8hw");
  // One that gains more than its conversions lies otherwise.
  std::erase_if(options.tuned, [](const TunedKernel& kernel) { return kernel.layer == "d"; });
  measure("d", lines, 100);
  measure("d", last, 100);
  measure("d", kPlain, 0.01);
  CHECK(chosen() == "a n4c8hw-n4c8hw, b n4c8hw-n4c8hw, c n4c8hw-n4c8hw, d nchw-nchw");

  // Layers that take ten times what the models say of one format are not taken into others for that alone.
  const auto estimate = [&](const Operator& op, const OperatorFormats& formats) {
    const ConvLayer& layer = graph.layers[static_cast<std::size_t>(std::get<Convolution>(op.kind).layer)];
    return estimated_us(task_of(op, layer, formats.input, formats.output, kBatch, options), options);
  };
  const auto op_of = [&](const std::string& name) -> const Operator& {
    return *std::ranges::find(graph.operators, name, &Operator::name);
  };
  options.tuned.clear();
  for (const std::string& name : names) measure(name, lines, 10 * estimate(op_of(name), {lines, lines}));
  const std::map<std::string, OperatorFormats> formats = formats_by_measurement(graph, options, kBatch);
  double chosen_us = 0, lines_us = 0;
  for (const std::string& name : names) {
    chosen_us += estimate(op_of(name), formats.at(name));
    lines_us += estimate(op_of(name), {lines, lines});
  }
  constexpr double kOfConversions = 1.1;
  CHECK(chosen_us <= kOfConversions * lines_us);
}

TEST_CASE("in_formats: formats that were measured to be the fastest go before every rule") {
  constexpr int kBatch = 8;
  const Network graph = of_several_kinds();
  CompileOptions options = for_calls(Precision::fp16, kBatch);
  const std::string by_rule = formats_of(in_formats(graph, options, kBatch));
  const TensorFormat last = {ElementType::f16, TensorLayout::nhwc8};
  options.formats[kBatch] = {{"a", {kPlain, kPlain}},
                             {"pool", {kPlain, kPlain}},
                             {"b", {last, last}},
                             {"c", {last, last}},
                             {"d", {kLines, kLines}}};
  const Network formatted = in_formats(graph, options, kBatch);
  CHECK(verify(formatted) == std::vector<std::string>{});
  CHECK(formats_of(formatted) == "a nchw, pool nchw, b nhwc8, c nhwc8, d n8c8hw");
  options.batches = {1};
  CHECK(formats_of(in_formats(graph, options, 16)) != formats_of(formatted));  // another batch size has its own
  options.formats.clear();
  CHECK(formats_of(in_formats(graph, options, kBatch)) == by_rule);
}
