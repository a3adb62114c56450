// Which convolutions of a network are baked, and which have their weights as data.

#include <array>

#include "compiler/choose/choose.h"
#include "compiler/compile.h"
#include "compiler/kernel_job.h"
#include "compiler/make_kernel.h"
#include "compiler/network/memory_plan.h"
#include "compiler/program_tasks.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/template_plan.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/ir/small_network.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvLayer layer_of(int in, int out, int size, double density) {
  ConvShape shape;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.in_h = shape.in_w = size;
  return make_layer("conv", shape, density);
}

Choice choose(const ConvLayer& layer, const CompileOptions& options = {}, int batch = 1) {
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  return burin::choose(task_of(op, layer, batch, options), options);
}

// Only one provider was asked, or had something to propose.
bool is_only(const Choice& choice, std::string_view provider) {
  return choice.candidate.provider == provider && choice.options.size() == 1 &&
         choice.options[0] == KernelOption{std::string(provider), choice.candidate.estimate.us, false};
}

KernelJobs jobs_of(const Network& network, const CompileOptions& options = {}) {
  static const Reentry kNone;
  return KernelLister(network, options, kNone, {}).list();
}

Network network_of(const ConvLayer& layer) {
  Network network;
  network.source = "m.onnx";
  network.layers = {layer};
  const ConvShape& shape = layer.shape;
  network.tensors = {{"x", {shape.in_channels, shape.in_h, shape.in_w}},
                     {"y", {shape.out_channels, shape.out_h(), shape.out_w()}}};
  network.operators.push_back({"conv", Convolution{}, {0}, 1});
  network.inputs = {0};
  network.outputs = {1};
  return network;
}

// Large, and without a zero: half a million instructions.
ConvLayer dense_layer() { return layer_of(512, 1000, 13, 1); }

}  // namespace

TEST_CASE("kernel choice: a large dense layer has its weights as data") {
  const ConvLayer layer = dense_layer();
  const Choice choice = choose(layer);
  CHECK(choice.candidate.provider == "conv_dense");
  CHECK(parse_template_plan(choice.candidate.plan).template_name == "conv_dense");
  REQUIRE(choice.options.size() == 2);
  CHECK(choice.options[0].provider == "conv_dense");
  CHECK(choice.options[0].us == choice.candidate.estimate.us);
  CHECK(choice.options[1].provider == "conv_baked");
  CHECK(choice.options[0].us < choice.options[1].us);
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  const Task task = task_of(op, layer, 1, {});
  const Recipe recipe = find_provider("conv_dense")->make(task, choice.candidate.plan);
  REQUIRE(recipe.form.has(TensorRole::weights));
  CHECK(static_cast<std::int64_t>(recipe.weights.size()) == recipe.form.find(TensorRole::weights)->words());
}

TEST_CASE("kernel choice: who is far behind is compared all the same") {
  const Choice choice = choose(layer_of(256, 256, 14, 0.03), {}, 32);
  CHECK(choice.candidate.provider == "conv_baked");
  REQUIRE(choice.options.size() > 1);
  CHECK(choice.options[1].us > 3 * choice.options[0].us);
}

TEST_CASE("kernel choice: the plan that was compared is the one that is compiled") {
  const ConvLayer layer = layer_of(512, 512, 13, 0.25);
  const Choice choice = choose(layer);
  CHECK(choice.candidate.provider == "conv_baked");
  REQUIRE(choice.options.size() == 2);
  CHECK(choice.options[0].provider == "conv_baked");
  CHECK(choice.options[0].us == choice.candidate.estimate.us);
  const Network network = network_of(layer);
  const KernelJobs jobs = jobs_of(network);
  REQUIRE(jobs.kernels.size() == 1);
  CHECK(jobs.kernels[0].candidate == choice.candidate);
  REQUIRE(jobs.programs.size() == 1);
  CHECK(jobs.programs[0].kernels == std::vector<std::size_t>{0});
  CHECK(jobs.programs[0].program.steps.at(0).options == choice.options);
}

TEST_CASE("kernel choice: a tuned kernel counts with the time that was measured") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("baked");
  TunedKernel tuned;
  tuned.layer = layer.name;
  tuned.candidate = choose(layer, options).candidate;
  options.kernels = {};
  tuned.candidate.estimate = {100, Estimate::Source::measured};
  options.tuned = {tuned};
  options.tuned[0].evidence.candidates = {{.provider = "conv_dense", .plan = "a", .us = 300},
                                          {.provider = "conv_baked", .plan = "b", .us = 100},
                                          {.provider = "conv_dense", .plan = "c", .us = 200},
                                          {.provider = "conv_streamed", .plan = "d", .fault = "wrong"}};
  const Choice measured = choose(layer, options);
  CHECK(measured.candidate == tuned.candidate);
  CHECK(measured.options == std::vector<KernelOption>{{"conv_baked", 100, true}, {"conv_dense", 200, true}});
  const Choice other = choose(layer, options, 2);  // nothing was measured for this batch size
  CHECK_FALSE(other.options.front().measured);
  options.kernels = parse_kernel_kinds("dense");
  CHECK(choose(layer, options).candidate.provider == "conv_dense");
}

TEST_CASE("kernel choice: of measured kernels those alone are alternatives that were compared with the reference") {
  const ConvLayer layer = layer_of(64, 64, 14, 0.3);
  CompileOptions options;
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  const Task task = task_of(op, layer, 1, options);
  const std::vector<Candidate> all = all_candidates(task, options, 2);
  REQUIRE(all.size() > 2);
  TunedKernel tuned;
  tuned.layer = layer.name;
  tuned.candidate = all[0];
  tuned.candidate.estimate = {1, Estimate::Source::measured};
  for (std::size_t i = 0; i < all.size(); ++i) {
    TuningCandidate& record = tuned.evidence.candidates.emplace_back();
    record.provider = all[i].provider;
    record.plan = find_provider(all[i].provider)->brief(all[i].plan);
    record.us = 1 + static_cast<double>(i);
    record.samples = 9;
    if (i != 1) record.error = 0.5;
  }
  options.tuned = {tuned};
  const std::vector<Candidate> found = alternatives(task, options, 2);
  CHECK(found.size() == all.size() - 1);
  for (const Candidate& candidate : found) CHECK(candidate.plan != all[1].plan);
}

TEST_CASE("kernel choice: a tuned kernel writes where its task's tensor lies") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("baked");
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  Task task = task_of(op, layer, 1, options);
  TunedKernel tuned;
  tuned.layer = layer.name;
  tuned.candidate = burin::choose(task, options).candidate;
  tuned.candidate.estimate = {1, Estimate::Source::measured};
  tuned.evidence.candidates = {{.provider = "conv_baked", .plan = "group=4", .predicted_us = 7, .us = 1, .samples = 9}};
  options.tuned = {tuned};
  task.writes.image_words += 50 * task.writes.run_words;
  const Choice choice = burin::choose(task, options);
  CHECK(choice.candidate.estimate.us == 1);
  CHECK(choice.candidate.estimate.source == Estimate::Source::measured);
  CHECK(choice.candidate.plan != tuned.candidate.plan);
  const Recipe recipe = find_provider(kBakedProvider)->make(task, choice.candidate.plan);
  CHECK(recipe.form.output().image_words == task.writes.image_words);
  Kernel kernel;
  note_choice(kernel, task, choice.candidate, options);
  CHECK(kernel.tuning == tuned.evidence);
  CHECK(kernel.predicted_us == 7);

  options.kernels = parse_kernel_kinds("dense");  // what was measured is none of its kernels
  const Choice dense = burin::choose(task, options);
  CHECK(dense.candidate.provider == "conv_dense");
  CHECK(dense.options.size() == 1);
}

TEST_CASE("kernel choice: whoever made what was measured, it goes where its task's tensors lie") {
  ConvLayer depthwise = layer_of(16, 16, 7, 1);
  depthwise.shape.groups = 16;
  depthwise.weights.resize(16);
  for (const std::string kind : {"baked", "dense", "streamed", "depthwise"}) {
    CAPTURE(kind);
    const ConvLayer layer = kind == "depthwise" ? depthwise : layer_of(16, 24, 7, 0.3);
    CompileOptions options;
    options.kernels = parse_kernel_kinds(kind);
    const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
    const Task alone = task_of(op, layer, 1, options);
    TunedKernel tuned;
    tuned.layer = layer.name;
    tuned.candidate = burin::choose(alone, options).candidate;
    CHECK(tuned.candidate.provider == "conv_" + kind);
    options.tuned = {tuned};
    Task task = alone;
    task.writes.image_words = 3 * alone.writes.image_words + 1;
    task.writes.alignment = kWordBytes;
    const Choice choice = burin::choose(task, options);
    CHECK(choice.candidate.provider == "conv_" + kind);
    const Recipe recipe = find_provider(choice.candidate.provider)->make(task, choice.candidate.plan);
    CHECK(recipe.form.output().image_words == task.writes.image_words);
  }
}

TEST_CASE("kernel choice: by name, of all and of one") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("dense");
  CHECK(is_only(choose(layer, options), "conv_dense"));
  options.kernels = parse_kernel_kinds("dense,conv=baked");
  CHECK(is_only(choose(layer, options), "conv_baked"));
  options.kernels = parse_kernel_kinds("baked,conv=dense");
  CHECK(is_only(choose(layer, options), "conv_dense"));
  CHECK(parse_kernel_kinds("a=b=dense").of("a=b") == "conv_dense");
  CHECK(parse_kernel_kinds("auto").of("x") == "auto");
}

TEST_CASE("kernel choice: what a template cannot compute") {
  ConvLayer layer = layer_of(8, 8, 6, 1);
  layer.shape.groups = 8;
  layer.weights.resize(8);
  CompileOptions options;
  options.kernels = parse_kernel_kinds("dense");
  CHECK(is_only(choose(layer, options), "conv_baked"));
  options.kernels = parse_kernel_kinds("conv=dense");
  CHECK(error_of([&] { choose(layer, options); }, ErrorKind::unsupported)
            .starts_with("--kernels conv=dense: conv_dense cannot compute 8x6x6"));
}

TEST_CASE("kernel choice: a kernel for each batch size, of one kind or of two") {
  const ConvLayer layer = dense_layer();
  const Network network = network_of(layer);
  CompileOptions options;
  options.batches = {4, 1};
  options.kernels = parse_kernel_kinds("dense");
  const KernelJobs jobs = jobs_of(network, options);
  REQUIRE(jobs.kernels.size() == 2);
  const auto symbol = [&](std::size_t i) { return jobs.kernels[i].candidate.symbol + jobs.kernels[i].suffix; };
  CHECK(symbol(0) == "burin_conv_conv_dense");
  CHECK(symbol(1) == "burin_conv_conv_dense_2");
  CHECK(jobs.kernels[0].candidate.provider == "conv_dense");
  CHECK(jobs.kernels[1].candidate.provider == "conv_dense");
  REQUIRE(jobs.programs.size() == 2);
  CHECK(jobs.programs[0].program.batch == 1);
  CHECK(jobs.programs[0].kernels == std::vector<std::size_t>{0});
  CHECK(jobs.programs[1].kernels == std::vector<std::size_t>{1});
}

TEST_CASE("kernel choice: layers that are no network have the same choice, and a program each") {
  Network layers;
  layers.source = "m.safetensors";
  layers.layers = {dense_layer(), layer_of(512, 512, 13, 0.25)};
  layers.layers[1].name = "sparse";
  separate_layers(layers);
  const KernelJobs jobs = jobs_of(layers);
  REQUIRE(jobs.kernels.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(jobs.kernels[i].candidate == choose(layers.layers[i]).candidate);
  CHECK(jobs.kernels[0].candidate.provider == "conv_dense");
  CHECK(jobs.kernels[1].candidate.provider == "conv_baked");
  REQUIRE(jobs.programs.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(jobs.programs[i].program.name == layers.layers[i].name);
    CHECK(jobs.programs[i].program.steps.size() == 1);
    CHECK(jobs.programs[i].kernels == std::vector<std::size_t>{i});
  }
  layers.layers.resize(1);
  separate_layers(layers);
  const Package package = compile_network(layers, {}, {}).package;
  CHECK(verify(package).empty());
  REQUIRE(package.manifest.kernels.size() == 1);
  const Kernel& dense = package.manifest.kernels[0];
  CHECK(dense.provider == "conv_dense");
  CHECK(dense.is_convolution());
  CHECK(package.files.contains(dense.weights));
  REQUIRE(package.manifest.programs.size() == 1);
  CHECK(package.manifest.programs[0].steps.at(0).options.size() == 2);
}

TEST_CASE("kernel choice: what only baked code can") {
  const ConvLayer layer = layer_of(16, 24, 9, 0.3);
  REQUIRE(choose(layer).candidate.provider != "conv_baked");
  const auto with = [](auto change) {
    CompileOptions options;
    change(options);
    return options;
  };
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp16x2}) {
    CHECK(is_only(choose(layer, with([&](auto& o) { o.precisions = {precision}; })), "conv_baked"));
  }
  CHECK(is_only(choose(layer, with([](auto& o) { o.layout = TensorLayout::nchw4; })), "conv_baked"));
  CHECK(is_only(choose(layer, with([](auto& o) { o.output_layout = TensorLayout::nchw4; })), "conv_baked"));
  CHECK(is_only(choose(layer, with([](auto& o) { o.skip_dead_tiles = true; })), "conv_baked"));
}

TEST_CASE("kernel choice: a depthwise convolution becomes the end of the one before it where that is faster") {
  const auto filtered = [](int channels, int size, int before) {
    ConvLayer convolution = layer_of(before, channels, size, 0.1), depthwise = layer_of(channels, channels, size, 1);
    convolution.name = "expand";
    ConvShape& shape = depthwise.shape;
    shape.groups = channels;
    shape.kernel_h = shape.kernel_w = 3;
    shape.pad = {1, 1, 1, 1};
    depthwise = make_layer("depthwise", shape, 1);
    ConvLayer made = convolution;
    made.name = "expand+depthwise";
    add_filters(made, {.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}});
    REQUIRE(verify(made).empty());
    return std::array<ConvLayer, 3>{made, convolution, depthwise};
  };
  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = {Precision::fp16};
  const auto goes = [&](const std::array<ConvLayer, 3>& layers) {
    return graph_choices(options).windowed(layers[0], layers[1], layers[2]);
  };
  const auto large = filtered(64, 112, 32), deep = filtered(512, 28, 512);
  CHECK(goes(large));
  CHECK(!goes(deep));  // what a block cannot share out among others takes longer than another launch
  const CompileOptions plain = options;
  const auto goes_with = [&](auto change) {
    options = plain;
    change(options);
    return goes(large);
  };
  CHECK(goes_with([](CompileOptions& o) { o.precisions = {Precision::bf16}; }));
  CHECK(goes_with([](CompileOptions& o) { o.kernels.all = "conv_warpgroup_rows"; }));
  // Nobody else filters: neither in FP32, nor for many images, whose tensors lie otherwise, nor on other chips.
  CHECK(!goes_with([](CompileOptions& o) { o.precisions = {Precision::fp32}; }));
  CHECK(!goes_with([](CompileOptions& o) { o.batches = {1, 32}; }));
  CHECK(!goes_with([](CompileOptions& o) { o.archs = {"sm_80"}; }));
  // What an option names is there under its name.
  CHECK(!goes_with([](CompileOptions& o) { o.precisions.of_layers["depthwise"] = Precision::fp16; }));
  CHECK(!goes_with([](CompileOptions& o) { o.kernels.of_layers["expand"] = "conv_warpgroup_rows"; }));
  CHECK(!goes_with([](CompileOptions& o) { o.kernels.all = "conv_gathered_rows"; }));
  CHECK(!goes_with([](CompileOptions& o) { o.skip_dead_tiles = true; }));
}

TEST_CASE("kernel choice: a pool of halves goes into a convolution where one kernel is faster for every batch size") {
  const auto layer_before_pool = [](int channels, int size, int filter) {
    ConvLayer layer = layer_of(channels, channels, size, 0.1);
    layer.shape.kernel_h = layer.shape.kernel_w = filter;
    layer.shape.pad = {filter / 2, filter / 2, filter / 2, filter / 2};
    return make_layer("conv", layer.shape, 0.1);
  };
  const Pool two{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const Pool three{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {1, 1, 1, 1}};
  CompileOptions options;
  const auto stays_apart = [&](const ConvLayer& layer, const Pool& pool) {
    return graph_choices(options).stays_apart("pool", layer, pool);
  };
  const ConvLayer large = layer_before_pool(64, 56, 3), small = layer_before_pool(256, 14, 3);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    options.precisions = {precision};
    options.batches = {32};
    CHECK(!stays_apart(large, two));
    // Most pixels would be computed twice, which such a convolution feels.
    CHECK(stays_apart(small, three));
    // A warpgroup has too few pixels for a window of the whole image.
    CHECK(stays_apart(small, {.kind = PoolKind::average, .kernel_h = 14, .kernel_w = 14}));
    // Where a provider is asked for, its own kernels are compared, if it can pool at all.
    for (const char* provider : {"conv_warpgroup", "conv_gathered"}) {
      options.kernels.all = provider;
      INFO(provider);
      CHECK(!stays_apart(large, two));
      CHECK(stays_apart(small, three));
      CHECK(stays_apart(small, {.kind = PoolKind::average, .kernel_h = 14, .kernel_w = 14}));  // it has no kernel
    }
    options.kernels.all = "conv_gathered_rows";  // on floats
    CHECK(!stays_apart(large, two));
    options.kernels = {};
    options.skip_dead_tiles = true;
    CHECK(stays_apart(large, two));
    options.skip_dead_tiles = false;
  }
  // Pairs of images baked code pools, where it is estimated to be faster.
  for (const Precision precision : {Precision::fp16x2, Precision::fp16, Precision::bf16}) {
    INFO(to_string(precision));
    options.precisions = {precision};
    options.layout = TensorLayout::n2chw;
    CHECK(!stays_apart(large, two));
    if (precision == Precision::fp16x2) {
      options.batches = {2};
      CHECK(!stays_apart(large, two));
      options.kernels.all = "conv_baked";
      CHECK(!stays_apart(large, two));
      // Windows that overlap so far make blocks compute many pixels twice.
      CHECK(stays_apart(layer_before_pool(160, 96, 3), {.kernel_h = 9, .kernel_w = 9, .stride_h = 1, .stride_w = 1}));
    }
    options.kernels = {};
    options.layout.reset();
    options.batches = {32};
  }
  // Other GPUs have gathered columns.
  options.precisions = {Precision::fp16};
  options.archs = {"sm_80"};
  CHECK(!stays_apart(large, two));
}

TEST_CASE("kernel choice: every step of a network in nchw8 has a provider, copies too") {
  GraphBuilder graph;
  const auto layer = [](const char* name, int in) {
    ConvLayer made = layer_of(in, 64, 56, 0.1);
    made.name = name;
    return made;
  };
  const int x = graph.input({64, 56, 56});
  const int a = graph.convolution(layer("a", 64), {x}), b = graph.convolution(layer("b", 64), {a});
  const int c = graph.convolution(layer("c", 128), {graph.add("first", Concat{0}, {a, b})});
  // A tensor that lies in one concat already is copied into the other one.
  const int d = graph.convolution(layer("d", 128), {graph.add("second", Concat{0}, {c, a})});
  const Network network = graph.finish({d});
  REQUIRE(verify(network).empty());
  CompileOptions options;
  options.archs = {"sm_90"};
  options.precisions = {Precision::fp16};
  const Network formatted = in_formats(network, options, 1);
  CHECK(verify(formatted) == std::vector<std::string>{});
  const auto lies_in_places = [](const Activations& tensor) { return has_places(tensor.format.layout); };
  REQUIRE(std::ranges::count_if(formatted.tensors, lies_in_places) >= 5);
  const Program program = plan_network(formatted, "network", 1);
  int copies = 0;
  for (const Step& step : program.steps) {
    const Task task = burin::task_of(formatted, program, step, options);
    INFO(task.name);
    const Choice choice = choose(task, options);
    CHECK_FALSE(find_provider(choice.candidate.provider)->make(task, choice.candidate.plan).form.tensors.empty());
    copies += step.is_copy() && task.writes.layout == TensorLayout::nchw8 ? 1 : 0;
  }
  CHECK(copies == 1);
}
