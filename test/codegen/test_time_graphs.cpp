// Layers that the models join are left apart, and tensors lie in other formats, where the whole network is faster so.
#include "compiler/tune/time_graphs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compiler/assemble/assemble.h"
#include "compiler/choose/choose.h"
#include "compiler/compile.h"
#include "compiler/program_graphs.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"
#include "test/skip.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

// The end of a fire module: one launch of the two is estimated to be faster than two.
Network two_siblings() {
  ConvShape shape;
  shape.in_channels = 16, shape.out_channels = 8;
  shape.in_h = shape.in_w = 8;
  ConvShape wide = shape;
  wide.kernel_h = wide.kernel_w = 3;
  wide.pad = {1, 1, 1, 1};
  GraphBuilder graph;
  const int input = graph.input({16, 8, 8}, "x");
  const int left = graph.convolution(make_layer("left", shape, 0.3), {input});
  const int right = graph.convolution(make_layer("right", wide, 0.3), {input});
  Network network = graph.finish({graph.add("both", Concat{}, {left, right})});
  network.source = "fire.onnx";
  return network;
}

CompileOptions two_sizes() {
  CompileOptions options;
  options.batches = {1, 2};
  options.jobs = 2;
  return options;
}

std::size_t operators_of(const CompileOptions& options, int batch) {
  return prepare_graphs(two_siblings(), options).of(batch).operators.size();
}

}  // namespace

TEST_CASE("siblings: they stay apart for the batch sizes for which the network is faster so") {
  CompileOptions options = two_sizes();
  const std::size_t joined = operators_of(options, 1);
  std::vector<int> timed;
  const auto time = [&](std::span<const TimedProgram> programs, int) {
    REQUIRE(programs.size() == 2);
    CHECK(programs[0].program->steps.size() < programs[1].program->steps.size());
    CHECK(verify(*programs[0].package).empty());
    const int batch = programs[0].program->batch;
    CHECK(programs[1].program->batch == batch);
    timed.push_back(batch);
    return std::vector<double>{10.0, batch == 1 ? 9.95 : 8.0};  // half a percent is not worth a change
  };
  const TimedGraphs siblings = time_graphs(two_siblings(), options, rules_for({}), {}, time);
  CHECK(timed == std::vector<int>{1, 2});
  CHECK(siblings.joins == std::map<int, Joins>{{2, {.siblings = false}}});
  REQUIRE(siblings.notes.size() == 2);
  CHECK_THAT(siblings.notes[0], Contains("batch 1: ") && Contains("10.0 us with the layers joined") &&
                                    Contains("9.9") && !Contains("packed"));
  CHECK_THAT(siblings.notes[1], Contains("8.0 us with all of them apart, as it is packed"));
  options.measured_joins = siblings.joins;
  CHECK(operators_of(options, 1) == joined);
  CHECK(operators_of(options, 2) > joined);
  options.batches = {2};
  CHECK(operators_of(options, 2) > joined);
}

TEST_CASE("depthwise layers: they stay apart for the batch sizes for which the network is faster so") {
  GraphBuilder graph;
  ConvShape shape;
  shape.in_channels = 32, shape.out_channels = 64;
  shape.in_h = shape.in_w = 112;
  ConvShape window = shape;
  window.in_channels = window.groups = 64;
  window.kernel_h = window.kernel_w = 3;
  window.pad = {1, 1, 1, 1};
  const int y = graph.convolution(make_layer("expand", shape, 0.1), {graph.input({32, 112, 112}, "x")});
  Network network = graph.finish({graph.convolution(make_layer("depthwise", window, 1), {y})});
  network.source = "block.onnx";
  CompileOptions options;
  options.archs = {"sm_90"};
  options.batches = {1};
  options.precisions.all = Precision::fp16;
  const auto has_joined = [&] {
    const ProgramGraphs graphs = prepare_graphs(network, options);
    return std::ranges::any_of(graphs.of(1).operators,
                               [](const Operator& op) { return op.name == "expand+depthwise"; });
  };
  REQUIRE(has_joined());
  for (const bool apart_is_faster : {false, true}) {
    int timed = 0;
    const auto time = [&](std::span<const TimedProgram> programs, int) {
      REQUIRE(programs.size() == 2);
      CHECK(programs[0].program->steps.size() + 1 == programs[1].program->steps.size());
      ++timed;
      return std::vector<double>{10.0, apart_is_faster ? 9.0 : 10.0};
    };
    const TimedGraphs graphs = time_graphs(network, options, {}, {}, time);
    CHECK(timed == 1);
    REQUIRE(graphs.notes.size() == 1);
    CHECK_THAT(graphs.notes[0], Contains("10.0 us with the depthwise layers and those before them joined"));
    CHECK(graphs.joins.contains(1) == apart_is_faster);
    if (!apart_is_faster) continue;
    CHECK(graphs.joins == std::map<int, Joins>{{1, {.depthwise = false}}});
    options.measured_joins = graphs.joins;
    CHECK(!has_joined());
  }
}

TEST_CASE("siblings: where nothing can be joined, or asked, nothing is timed") {
  const auto never = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    throw std::logic_error("there is nothing to compare");
  };
  CompileOptions options = two_sizes();
  options.joins.siblings = false;
  CHECK(time_graphs(two_siblings(), options, rules_for({}), {}, never).notes.empty());
  options = two_sizes();
  options.asked_batches = {1, 2};
  CHECK(time_graphs(two_siblings(), options, rules_for({}), {}, never).notes.empty());
  GraphBuilder graph;
  ConvShape shape;
  shape.in_channels = 16, shape.out_channels = 8;
  shape.in_h = shape.in_w = 8;
  const int output = graph.convolution(make_layer("alone", shape, 0.3), {graph.input({16, 8, 8}, "x")});
  const Network one = graph.finish({output});
  CHECK(time_graphs(one, two_sizes(), rules_for({}), {}, never).notes.empty());
}

TEST_CASE("siblings: after a quarter of the budget no other network is timed") {
  double now = 0;
  int timed = 0;
  const auto time = [&](std::span<const TimedProgram>, int) {
    ++timed;
    now += 30;
    return std::vector<double>{10.0, 8.0};
  };
  const TimeBudget budget(100, [&now] { return now; });
  const TimedGraphs siblings = time_graphs(two_siblings(), two_sizes(), rules_for({}), {}, time, budget);
  CHECK(timed == 1);
  CHECK(siblings.joins == std::map<int, Joins>{{1, {.siblings = false}}});
  REQUIRE(siblings.notes.size() == 2);
  CHECK_THAT(siblings.notes[1], Contains("batch 2: a quarter of the time was up"));
}

TEST_CASE("siblings: a network that cannot be timed stays as the models say") {
  const auto lost = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    fail(ErrorKind::device, "cuMemAlloc: out of memory");
  };
  const TimedGraphs siblings = time_graphs(two_siblings(), two_sizes(), rules_for({}), {}, lost);
  CHECK(siblings.joins.empty());
  REQUIRE(siblings.notes.size() == 2);
  CHECK_THAT(siblings.notes[0], Contains("was not timed") && Contains("out of memory"));
  const auto broken = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    fail(ErrorKind::internal, "broken");
  };
  CHECK_THAT(BURIN_THROWN(internal, time_graphs(two_siblings(), two_sizes(), rules_for({}), {}, broken)).text,
             Contains("broken"));
}

namespace {

// A first layer, which is better off in plain tensors, and one whose zeros lines ignore.
Network two_layers() {
  ConvShape shape;
  shape.in_channels = 16, shape.out_channels = 64;
  shape.in_h = shape.in_w = 28;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  ConvShape second = shape;
  second.in_channels = 64;
  GraphBuilder graph;
  int y = graph.input({16, 28, 28}, "x");
  y = graph.convolution(make_layer("first", shape, 0.9), {y});
  y = graph.convolution(make_layer("second", second, 0.005), {y});
  Network network = graph.finish({graph.add("mean", GlobalAveragePool{}, {y})});
  network.source = "net.onnx";
  return network;
}

CompileOptions of_eight() {
  CompileOptions options;
  options.archs = {"sm_90"};
  options.batches = {8};
  options.jobs = 2;
  options.precisions.all = Precision::tf32;
  return options;
}

std::string formats_of(const CompileOptions& options) {
  std::string text;
  for (const Activations& tensor : in_formats(two_layers(), options, 8).tensors) {
    text += (text.empty() ? "" : " ") + std::string(to_string(tensor.format.layout));
  }
  return text;
}

}  // namespace

TEST_CASE("formats: the rule that makes the whole network fastest is taken") {
  CompileOptions options = of_eight();
  std::map<FormatRule, std::string> texts;
  for (const FormatRule rule : rules_for({})) {
    options.format_rules[8] = rule;
    texts[rule] = formats_of(options);
  }
  CHECK(texts[FormatRule::usual] == "nchw n4c8hw n4c8hw nchw n4c8hw");
  REQUIRE(texts[FormatRule::careful] != texts[FormatRule::usual]);
  std::set<std::string> unlike;
  for (const auto& [rule, text] : texts) unlike.insert(text);
  const std::size_t count = unlike.size();
  CHECK(formats_of(of_eight()) == texts[FormatRule::usual]);

  // The usual one is timed first.
  for (const double careful_us : {9.95, 8.0}) {
    const auto time = [&](std::span<const TimedProgram> programs, int) {
      REQUIRE(programs.size() == count);
      std::vector<double> us(count, 10.0);
      us[1] = careful_us;
      return us;
    };
    const TimedGraphs timed = time_graphs(two_layers(), of_eight(), rules_for({}), {}, time);
    REQUIRE(timed.notes.size() == 1);
    CHECK(timed.formats.size() == (careful_us < 9 ? 1 : 0));
    if (careful_us < 9) CHECK(timed.formats.at(8) == FormatRule::careful);
    CHECK_THAT(timed.notes[0], Contains("10.0 us with tensors in the formats that its batch size suggests") &&
                                   Contains("us with those that the models find clearly faster"));
  }
  const auto never = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    throw std::logic_error("nothing is to be compared");
  };
  CHECK(time_graphs(two_layers(), of_eight(), {}, {}, never).notes.empty());
  options = of_eight();
  options.layout = TensorLayout::nchw;
  CHECK(time_graphs(two_layers(), options, rules_for({}), {}, never).notes.empty());
}

namespace {

// The providers of a network's convolutions.
std::set<std::string> convolution_providers(const TimedProgram& timed) {
  std::set<std::string> names;
  for (const Kernel& kernel : timed.package->manifest.kernels) {
    if (kernel.layer) names.insert(kernel.provider);
  }
  return names;
}

}  // namespace

TEST_CASE("formats: networks are timed with calls of libraries in the formats that these read best") {
  for (const auto& [precision, layout] : {std::pair(Precision::tf32, "nhwc4"), {Precision::bf16, "nhwc8"}}) {
    INFO(to_string(precision));
    CompileOptions options = of_eight();
    options.precisions.all = precision;
    const std::string usual = formats_of(options);
    CHECK_THAT(usual, !Contains("nhwc"));
    std::size_t without = 0;
    const auto none_called = [&](std::span<const TimedProgram> programs, int) {
      without = programs.size();
      for (const TimedProgram& timed : programs) CHECK_FALSE(convolution_providers(timed).contains("conv_cudnn"));
      return std::vector<double>(programs.size(), 10.0);
    };
    const auto called = [&](std::span<const TimedProgram> programs, int) {
      CHECK(programs.size() == std::max<std::size_t>(without, 1) + 1);
      for (const TimedProgram& timed : programs) {
        CHECK(verify(*timed.package).empty());
        const bool is_last = &timed == &programs.back();
        CHECK(convolution_providers(timed).contains("conv_cudnn") == is_last);
        if (is_last) CHECK(convolution_providers(timed).size() == 1);
      }
      std::vector<double> us(programs.size(), 10.0);
      us.back() = 8.0;
      return us;
    };
    // Neither without libraries nor where none of their calls is measured.
    CompileOptions forbidden = options;
    forbidden.libraries = false;
    (void)time_graphs(two_layers(), forbidden, rules_for({}), {}, none_called);
    (void)time_graphs(two_layers(), options, rules_for({"conv_warpgroup", "linear_cublas"}), {}, none_called);

    const TimedGraphs timed = time_graphs(two_layers(), options, rules_for({}), {}, called);
    REQUIRE(timed.notes.size() == 1);
    CHECK_THAT(timed.notes[0], Contains("8.0 us with those that calls of libraries read best, as it is packed"));
    REQUIRE(timed.formats.contains(8));
    CHECK(timed.formats.at(8) == FormatRule::libraries);
    options.format_rules = timed.formats;
    CHECK(formats_of(options) == fmt::format("nchw {0} {0} nchw {0} nchw", layout));
    options.libraries = false;
    CHECK(formats_of(options) == usual);
  }
}

TEST_CASE("formats: without a convolution that a library can be called for its rule changes nothing") {
  CompileOptions options = of_eight();
  options.format_rules[8] = FormatRule::libraries;
  for (const bool is_elsewhere : {false, true}) {
    // Calls are not for FP32, and burin's own code beside them is for sm_90 alone.
    options.precisions.all = is_elsewhere ? Precision::fp16 : Precision::fp32;
    options.archs = {is_elsewhere ? "sm_80" : "sm_90"};
    const std::string formats = formats_of(options);
    CHECK_THAT(formats, !Contains("nhwc"));
    CompileOptions usual = options;
    usual.format_rules[8] = FormatRule::usual;
    CHECK(formats == formats_of(usual));
  }
}

namespace {

// Both layers measured in lines and in plain tensors, by the models' kernels.
std::vector<TunedKernel> tuned_in_two_formats(const CompileOptions& options, double lines_us, double plain_us) {
  const ProgramGraphs graphs = prepare_graphs(two_layers(), options);
  const Network& network = graphs.of(8);
  std::vector<TunedKernel> tuned;
  const TensorFormat plain, lines = {ElementType::f32, TensorLayout::n4c8hw};
  for (const Operator& op : network.operators) {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution == nullptr) continue;
    const ConvLayer& layer = network.layers[static_cast<std::size_t>(convolution->layer)];
    for (const auto& [format, us] : {std::pair(lines, lines_us), {plain, plain_us}}) {
      const Task task = task_of(op, layer, format, format, 8, options);
      TunedKernel& kernel = tuned.emplace_back();
      kernel = {.layer = op.name,
                .batch = 8,
                .formats = task.formats(),
                .candidate = choose_by_models(task, options).candidate};
      kernel.evidence.device = "Fake H200";
      kernel.evidence.arch = "sm_90";
      kernel.evidence.candidates.push_back(
          {.provider = kernel.candidate.provider, .plan = "the models'", .us = us, .samples = 50});
      kernel.candidate.estimate = {us, Estimate::Source::measured};
    }
  }
  return tuned;
}

}  // namespace

TEST_CASE("formats: those that measured times of layers lead to are taken where the network is faster so") {
  CompileOptions options = of_eight();
  const std::string usual = formats_of(options);
  options.tuned = tuned_in_two_formats(options, 100, 1);
  for (const double us : {9.95, 8.0}) {
    const auto time = [&](std::span<const TimedProgram> programs, int) {
      REQUIRE(programs.size() == 2);
      for (const TimedProgram& timed : programs) {
        CHECK(fmt::format("{}", fmt::join(verify(*timed.package), "\n")) == "");
      }
      return std::vector<double>{10.0, us};
    };
    const TimedFormats timed = time_measured_formats(two_layers(), options, {}, time);
    REQUIRE(timed.notes.size() == 1);
    CHECK_THAT(timed.notes[0], Contains("in which its kernels were tuned first") &&
                                   Contains("the times of its layers in several formats lead to"));
    CHECK(timed.formats.size() == (us < 9 ? 1 : 0));
    CompileOptions packed = options;
    packed.formats = timed.formats;
    CHECK((formats_of(packed) == usual) == (us > 9));
    if (us < 9) CHECK_THAT(formats_of(packed), !Contains("n4c8hw"));
  }

  const auto never = [](std::span<const TimedProgram>, int) -> std::vector<double> {
    throw std::logic_error("nothing is to be compared");
  };
  options.tuned = tuned_in_two_formats(options, 1, 100);  // as they lie already
  CHECK(time_measured_formats(two_layers(), options, {}, never).notes.empty());
  options.tuned = tuned_in_two_formats(options, 100, 1);
  options.objective = Objective::memory;  // how long it takes does not decide
  CHECK(time_measured_formats(two_layers(), options, {}, never).notes.empty());
  CHECK(time_graphs(two_layers(), options, rules_for({}), {}, never).notes.empty());
}

TEST_CASE("formats: within a limit of memory those are taken in which the network keeps it") {
  if (find_assembler().kind == AssemblerInfo::Kind::none) BURIN_SKIP("no assembler");
  CompileOptions options = of_eight();
  options.libraries = false;
  const auto bytes_of = [&](FormatRule rule) {
    CompileOptions ruled = options;
    ruled.format_rules[8] = rule;
    ruled.objective = Objective::memory;
    return compile_network(two_layers(), ruled, {}).choice->bytes;
  };
  const std::int64_t usual = bytes_of(FormatRule::usual), careful = bytes_of(FormatRule::careful);
  INFO(usual << " and " << careful);
  REQUIRE(usual != careful);
  const bool usual_is_less = usual < careful;
  int timed = 0;
  const auto time = [&](std::span<const TimedProgram> programs, int) {
    ++timed;
    std::vector<double> us(programs.size(), 10.0);
    us.back() = 8.0;
    return us;
  };
  options.memory_limit = 2 * std::max(usual, careful);
  const TimedGraphs both = time_graphs(two_layers(), options, {FormatRule::careful}, {}, time);
  CHECK(timed == 1);
  CHECK(both.formats.contains(8));
  options.memory_limit = (usual + careful) / 2;
  const TimedGraphs one = time_graphs(two_layers(), options, {FormatRule::careful}, {}, time);
  CHECK(timed == 1);
  INFO(fmt::format("{}", fmt::join(one.notes, "\n")));
  REQUIRE(one.notes.size() == 2);
  CHECK_THAT(one.notes[0], Contains("the network was not timed with"));
  CHECK_THAT(one.notes[1], Contains("the network is packed with"));
  CHECK(one.formats.contains(8) == !usual_is_less);
  // What each of several batch sizes keeps by itself says nothing of what they take together.
  options.batches = {1, 8};
  CHECK(time_graphs(two_layers(), options, {FormatRule::careful}, {}, time).notes.empty());
  CHECK(timed == 1);
}
