// The whole pipeline: what it writes on the way, where it stops and starts again, what it makes of names.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compiler/assemble/assemble.h"
#include "compiler/compile.h"
#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
#include "compiler/observer.h"
#include "compiler/providers/provider.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/layer_data.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/ir/random_layers.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

namespace fs = std::filesystem;

constexpr const char* kFiles[] = {"10-layer.txt",      "20-pattern.txt", "30-plan.txt",   "40-template.ll",
                                  "50-specialised.ll", "60-kernel.ptx",  "70-kernel.json"};

ConvShape tiny_shape() {
  ConvShape shape;
  shape.in_channels = 4;
  shape.out_channels = 6;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 7;
  shape.epilogue.bias = true;
  return shape;
}

Network network_of(const std::vector<std::string>& names) {
  Network network;
  network.source = "folder/net.safetensors";
  std::uint64_t seed = 0;
  for (const std::string& name : names) network.layers.push_back(make_layer(name, tiny_shape(), 0.4, ++seed));
  separate_layers(network);
  return network;
}

// Baked code only: its stages and plans are what is looked at here.
CompileOptions baked(CompileOptions options) {
  options.kernels.all = kBakedProvider;
  return options;
}

// The layers may have other shapes than when the network was made.
CompileResult compile(Network network, const CompileOptions& options = {}) {
  separate_layers(network);
  return compile_network(std::move(network), baked(options), {});
}

CompileOptions dump_to(const std::string& folder) {
  CompileOptions options;
  options.dump_dir = folder;
  return options;
}

CompileOptions from(const std::string& file) {
  CompileOptions options;
  options.from_file = file;
  return options;
}

std::string file_of(const CompileResult& result, std::size_t kernel, BinaryKind kind) {
  for (const KernelBinary& binary : result.package.manifest.kernels.at(kernel).binaries) {
    if (binary.kind == kind) return *result.package.files.at(binary.path).content();
  }
  return {};
}

std::vector<std::string> symbols(const CompileResult& result) {
  std::vector<std::string> found;
  for (const Kernel& kernel : result.package.manifest.kernels) found.push_back(kernel.symbol);
  return found;
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

bool has_assembler() { return find_assembler().kind != AssemblerInfo::Kind::none; }

// The stages of one small layer, for the tests that go back in.
struct Dumped {
  ScratchFolder folder;
  Network network = network_of({"conv"});
  CompileResult result = compile(network, dump_to(folder / "d"));
  std::string file(const std::string& name) const { return folder / ("d/conv/" + name); }
  std::string text(const std::string& name) const { return read_file(file(name)); }
  // `name` with one part changed, in a folder where nothing else is.
  std::string edited(const std::string& name, const std::string& part, const std::string& by) const {
    return folder.write("edited/" + name, replaced(text(name), part, by));
  }
};

}  // namespace

// ---- packages

TEST_CASE("compile: a package holds what its manifest says") {
  Network network = network_of({"first", "second"});
  network.leftover.push_back({"fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6}});
  network.notes = {"a note of the importer"};
  CompileOptions options;
  options.batches = {1, 5};
  options.zero_threshold = 0.25F;
  const CompileResult result = compile(network, options);
  CHECK(verify(result.package).empty());
  CHECK_FALSE(result.stopped_early);
  CHECK(result.notes.at(0) == "a note of the importer");
  const Manifest& manifest = result.package.manifest;
  CHECK(manifest.source == "net.safetensors");
  CHECK(manifest.zero_threshold == 0.25F);
  REQUIRE(manifest.kernels.size() == 4);
  const std::vector<std::pair<std::string, int>> expected = {{"first", 1}, {"first", 5}, {"second", 1}, {"second", 5}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Kernel& kernel = manifest.kernels[i];
    CHECK(kernel.op == expected[i].first);
    CHECK(kernel.kind == "convolution");
    CHECK(kernel.provider == kBakedProvider);
    CHECK(kernel.planned_batch == expected[i].second);
    REQUIRE(kernel.layer);
    CHECK(kernel.layer->shape == tiny_shape());
    CHECK(kernel.layer->nonzeros == analyse(network.layers[i / 2]).statistics.nonzeros);
    CHECK(kernel.source_hash.size() == 64);
    const BakedPlan plan = parse_baked_plan(kernel.plan);
    CHECK(kernel.symbol == kernel_symbol(kernel.op, plan));
    CHECK(kernel.form == form_of(plan, tiny_shape()));
    CHECK(kernel.form.launch.threads == plan.threads);
    CHECK(kernel.form.launch.slices == static_cast<int>(plan.slices.size()));
    CHECK(kernel.binaries.size() == (has_assembler() ? 2 : 1));
  }
  REQUIRE(manifest.tensors.size() == 1);
  CHECK(result.package.files.at(manifest.tensors[0].path).bytes() == 6 * sizeof(float));
  // A program for each, which launches it on memory of its own.
  CHECK(holds_layers(manifest));
  CHECK(program_names(manifest) == std::vector<std::string>{"first", "second"});
  REQUIRE(manifest.programs.size() == 4);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Program& program = manifest.programs[i];
    CHECK(program.name == expected[i].first);
    CHECK(program.batch == expected[i].second);
    CHECK(program.arena_bytes == 0);
    REQUIRE(program.steps.size() == 1);
    CHECK(program.steps[0].kernel == manifest.kernels[i].symbol);
    CHECK(program.steps[0].options.size() == 1);
    REQUIRE(program.buffers.size() == 2);
    CHECK(program.inputs().at(0)->tensor == program.name + ".input");
    CHECK(program.outputs().at(0)->tensor == program.name + ".output");
  }
}

TEST_CASE("compile: batch sizes in any order give programs in ascending order") {
  CompileOptions options;
  options.batches = {5, 1};
  const Manifest manifest = compile(network_of({"a", "b"}), options).package.manifest;
  std::vector<std::pair<std::string, int>> made;
  for (const Program& program : manifest.programs) made.emplace_back(program.name, program.batch);
  CHECK(made == std::vector<std::pair<std::string, int>>{{"a", 1}, {"a", 5}, {"b", 1}, {"b", 5}});
}

TEST_CASE("compile: layers whose tensors are not plain, and their maps, are arguments in those formats") {
  Network network = network_of({"conv"});
  network.layers[0].shape.epilogue.residual = true;
  const auto inputs_of = [](const Package& package) {
    CHECK(verify(package) == std::vector<std::string>{});
    std::vector<std::string> texts;
    for (const Buffer* input : package.manifest.programs.at(0).inputs()) {
      texts.push_back(input->tensor + " " + input->format_text());
    }
    return texts;
  };
  CompileOptions options;
  options.precisions = {Precision::bf16};
  CHECK(inputs_of(compile(network, options).package) ==
        std::vector<std::string>{"conv.input bf16 n2chw", "conv.residual bf16 n2chw"});
  options.precisions = {Precision::fp32};
  options.layout = TensorLayout::nchw4;
  CHECK(inputs_of(compile(network, options).package) ==
        std::vector<std::string>{"conv.input f32 nchw4", "conv.residual f32 nchw4"});
  options.layout.reset();
  options.skip_dead_tiles = true;
  const Package package = compile(network, options).package;
  const KernelForm& form = package.manifest.kernels.at(0).form;
  REQUIRE(form.has(TensorRole::input_map));
  CHECK(inputs_of(package) ==
        std::vector<std::string>{"conv.input f32 nchw", "conv.residual f32 nchw",
                                 "conv.input.activity map " + print(*form.find(TensorRole::input_map)->map)});
  const Program& program = package.manifest.programs[0];
  REQUIRE(program.outputs().size() == 2);
  CHECK(program.outputs()[1]->tensor == "conv.output.activity");
  CHECK(program.steps[0].input_map.has_value());
  CHECK(program.steps[0].output_map.has_value());
}

TEST_CASE("compile: the number of threads changes nothing") {
  const Network network = network_of({"a", "b", "c"});
  CompileOptions options;
  options.batches = {1, 2};
  options.jobs = 1;
  const CompileResult one = compile(network, options);
  options.jobs = 3;
  const CompileResult three = compile(network, options);
  CHECK((one.package.files == three.package.files));
  CHECK((print(one.package.manifest) == print(three.package.manifest)));
}

TEST_CASE("compile: dumping changes nothing") {
  const Dumped dumped;
  const CompileResult plain = compile(dumped.network);
  CHECK((plain.package.files == dumped.result.package.files));
  CHECK((print(plain.package.manifest) == print(dumped.result.package.manifest)));
}

TEST_CASE("compile: what the host runs is made anew from the package") {
  const Dumped dumped;
  const Package& package = dumped.result.package;
  CHECK(dumped.result.edited_modules.empty());
  const Kernel& kernel = package.manifest.kernels[0];
  CHECK_FALSE(kernel.edited);
  const ConvLayer layer = decode_layer(*package.files.at(kernel.layer->data).content(), kernel.op, kernel.layer->shape);
  const SpecialisedModule module = find_provider(kernel.provider)->module_of(kernel, &layer);
  CHECK((print(module) == dumped.text("50-specialised.ll")));
  CHECK((rebuild_module(package, kernel) == to_bitcode(module)));

  Package damaged = package;
  damaged.files.at(kernel.layer->data) = "cut";
  CHECK(BURIN_THROWN(bad_input, rebuild_module(damaged, kernel)).has("conv"));
  Kernel unknown = kernel;
  unknown.provider = "conv_other";
  CHECK_THAT(BURIN_THROWN(bad_input, rebuild_module(package, unknown)).text, Contains("no provider 'conv_other'"));
}

TEST_CASE("compile: several architectures share PTX for the lowest") {
  CompileOptions options;
  options.archs = {"sm_90", "sm_80"};
  const CompileResult result = compile(network_of({"conv"}), options);
  CHECK(verify(result.package).empty());
  CHECK_THAT(file_of(result, 0, BinaryKind::ptx), Contains(".target sm_80"));
  std::vector<std::string> cubins;
  for (const KernelBinary& binary : result.package.manifest.kernels.at(0).binaries) {
    if (binary.kind == BinaryKind::ptx) CHECK(binary.arch == "sm_80");
    if (binary.kind == BinaryKind::cubin) cubins.push_back(binary.arch);
    if (binary.kind == BinaryKind::cubin) CHECK(binary.spill_bytes == 0);
  }
  if (has_assembler()) CHECK(cubins == options.archs);
}

TEST_CASE("compile: the source hash is that of weights, shape and plan") {
  const auto hash = [](const Network& network, const CompileOptions& options = {}) {
    return compile(network, options).package.manifest.kernels.at(0).source_hash;
  };
  CompileOptions quick;
  quick.jobs = 1;
  const Network network = network_of({"conv"});
  const std::string plain = hash(network);
  CHECK(plain == hash(network));
  CHECK(plain == hash(network, quick));

  Network other = network;
  float& weight =
      *std::find_if(other.layers[0].weights.begin(), other.layers[0].weights.end(), [](float w) { return w != 0; });
  weight = -weight;
  CHECK(plain != hash(other));
  other = network;
  other.layers[0].bias[0] += 1;
  CHECK(plain != hash(other));
  other = network;
  other.layers[0].shape.epilogue.function = function_of(Activation::relu);
  CHECK(plain != hash(other));
  CompileOptions batch_2;
  batch_2.batches = {2};
  CHECK(plain != hash(network, batch_2));
}

TEST_CASE("compile: progress counts every kernel once") {
  CompileOptions options;
  options.batches = {1, 2};
  options.jobs = 2;
  options.stop_after = "ptx";
  std::vector<int> done;
  std::vector<std::string> names;
  int planned = 0;
  compile_network(network_of({"a", "b"}), baked(options), [&](const CompileProgress& progress) {
    CHECK(progress.total == 4);
    if (progress.what.starts_with("planned ")) {
      CHECK(progress.done == 0);
      CHECK_THAT(progress.what, Contains(fmt::format("({} of 4)", ++planned)));
      return;
    }
    done.push_back(progress.done);
    names.push_back(progress.what);
  });
  CHECK(planned == 4);
  CHECK(done == std::vector<int>{1, 2, 3, 4});
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"a b1", "a b2", "b b1", "b b2"});
}

TEST_CASE("compile: the fault of one kernel is reported") {
  Network network = network_of({"a", "b", "c"});
  network.layers[1].shape.dilation_h = network.layers[1].shape.dilation_w = 64;  // a patch that no block can hold
  network.layers[1].shape.kernel_h = network.layers[1].shape.kernel_w = 11;
  network.layers[1].shape.pad = {320, 320, 320, 320};
  network.layers[1].weights.assign(static_cast<std::size_t>(network.layers[1].shape.weight_elements()), 1.0F);
  for (const int jobs : {1, 2}) {
    CompileOptions options;
    options.jobs = jobs;
    const Thrown thrown = BURIN_THROWN(unsupported, compile(network, options));
    CHECK_THAT(thrown.text, Contains("layer 'b'"));
  }
}

TEST_CASE("compile: options that make no sense") {
  const Network network = network_of({"conv"});
  const auto with = [](auto change) {
    CompileOptions options;
    change(options);
    return options;
  };
  const auto text = [&](ErrorKind kind, const CompileOptions& options) {
    return error_of([&] { compile(network, options); }, kind);
  };
  CHECK_THAT(text(ErrorKind::unsupported, with([](auto& o) { o.archs = {"sm_99"}; })), Contains("sm_99"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.archs = {}; })), Contains("--arch"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.archs = {"sm_90", "sm_90"}; })), Contains("twice"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.batches = {}; })), Contains("--batch"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.batches = {0}; })), Contains("--batch 0"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.batches = {2, 1, 2}; })), Contains("twice"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.layout = TensorLayout::n2chw; })),
             Contains("--layout n2chw with --precision fp32"));
  CHECK_THAT(
      text(ErrorKind::usage, with([](auto& o) { o.precisions = {Precision::fp16}, o.layout = TensorLayout::nchw4; })),
      Contains("--layout nchw4 with --precision fp16"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.stop_after = "cubins"; })),
             Contains("cubins") && Contains("specialised"));
  CHECK_THAT(text(ErrorKind::usage, with([](auto& o) { o.from_file = "x.json"; })), Contains("x.json"));
  CHECK_THAT(text(ErrorKind::bad_input, with([](auto& o) { o.from_file = "/nowhere/x.txt"; })),
             Contains("/nowhere/x.txt"));
  CompileOptions two = from("x.txt");
  two.batches = {1, 2};
  CHECK_THAT(text(ErrorKind::usage, two), Contains("--from"));
  CHECK_THAT(error_of([&] { compile(network_of({"a", "b"}), from("x.txt")); }, ErrorKind::usage), Contains("--from"));
}

// ---- names

TEST_CASE("compile: names that become the same are told apart") {
  const CompileResult result = compile(network_of({"a.b", "a_b", "a/b", "a_b_2", "a:b"}));
  CHECK(verify(result.package).empty());
  std::vector<std::string> found = symbols(result);
  REQUIRE(found.size() == 5);
  std::sort(found.begin(), found.end());
  CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
  int renamed = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const Kernel& kernel = result.package.manifest.kernels[i];
    CHECK_THAT(file_of(result, i, BinaryKind::ptx), Contains(".entry " + kernel.entry_name() + "("));
    renamed += !kernel.entry.empty();
  }
  CHECK(renamed == 3);  // the functions of a.b, a_b, a/b and a:b are called alike
}

TEST_CASE("compile: folders of layers with odd names") {
  const ScratchFolder folder;
  const std::vector<std::string> names = {"a/b", "..", "a:b", "a.b", "\xc3\xa4", std::string(300, 'x')};
  CompileOptions options = dump_to(folder / "d");
  options.stop_after = "plan";
  const CompileResult result = compile(network_of(names), options);
  CHECK(result.stopped_early);
  std::vector<std::string> made;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "d")) {
    if (!entry.is_directory()) continue;
    CHECK(entry.path().parent_path() == folder / "d");
    if (entry.path().filename() == "network") continue;  // the graph, pass by pass
    CHECK(fs::exists(entry.path() / "30-plan.txt"));
    made.push_back(entry.path().filename().string());
  }
  CHECK(made.size() == names.size());
  CHECK(folder.entries() == std::vector<std::string>{"d"});
  CHECK(folder_name("..") == "_..");
  CHECK(folder_name("features.0/conv") == "features.0_conv");
}

TEST_CASE("compile: the longest name that a layer may have") {
  Network network = network_of({std::string(kMaxLayerNameBytes, 'x')});
  network.layers[0].shape.epilogue.residual = true;  // the names of its tensors are longer still
  REQUIRE(verify(network.layers[0]).empty());
  const CompileResult result = compile(network);
  CHECK(verify(result.package) == std::vector<std::string>{});
  CHECK(result.package.manifest.programs.at(0).name == network.layers[0].name);
}

TEST_CASE("compile: a layer whose symbol starts like a device primitive") {
  for (const char* name : {"dev.x", "dev.note.stage"}) {
    const CompileResult result = compile(network_of({name}));
    CHECK(verify(result.package).empty());
    CHECK_THAT(file_of(result, 0, BinaryKind::ptx), Contains(".entry burin_dev_"));
  }
}

// ---- dumps

TEST_CASE("compile: every stage is dumped") {
  const Dumped dumped;
  for (const char* file : kFiles) {
    INFO(file);
    CHECK(fs::file_size(dumped.file(file)) > 0);
  }
  const std::string log = dumped.text("00-stages.txt");
  for (std::size_t i = 0; i < std::size(kFiles); ++i) {
    CHECK_THAT(log, Contains(std::string("\n") + kStageNames[i] + " ") && Contains(kFiles[i]));
  }
  CHECK(std::distance(fs::directory_iterator(dumped.folder / "d/conv"), {}) == std::size(kFiles) + 1);

  CHECK_THAT(dumped.text("10-layer.txt"), Contains("name: conv"));
  CHECK((dumped.text("20-pattern.txt") == print(analyse(dumped.network.layers[0]))));
  CHECK(parse_baked_plan(dumped.text("30-plan.txt")) ==
        parse_baked_plan(dumped.result.package.manifest.kernels[0].plan));
  CHECK_THAT(dumped.text("40-template.ll"), Contains("burin_hole_taps"));
  CHECK_THAT(dumped.text("50-specialised.ll"), !Contains("burin_hole_") && Contains("burin_dev_barrier"));
  CHECK((dumped.text("60-kernel.ptx") == file_of(dumped.result, 0, BinaryKind::ptx)));
  CHECK_THAT(dumped.text("70-kernel.json"), Contains("\"ptx_lines\"") && Contains("\"channel\""));
}

TEST_CASE("compile: with several batch sizes each has a folder of its own") {
  const ScratchFolder folder;
  CompileOptions options = dump_to(folder / "d");
  options.batches = {1, 4};
  options.stop_after = "plan";
  compile(network_of({"a", "b"}), options);
  for (const char* name : {"a/b1", "a/b4", "b/b1", "b/b4"}) {
    const BakedPlan plan = parse_baked_plan(read_file(folder / ("d/" + std::string(name) + "/30-plan.txt")));
    CHECK(plan.batch == name[3] - '0');
  }
}

TEST_CASE("compile: it stops after each stage") {
  for (std::size_t stage = 0; stage < std::size(kStageNames); ++stage) {
    INFO(kStageNames[stage]);
    const ScratchFolder folder;
    CompileOptions options = dump_to(folder / "d");
    options.stop_after = kStageNames[stage];
    const CompileResult result = compile(network_of({"conv"}), options);
    const bool last = stage + 1 == std::size(kStageNames);
    CHECK(result.stopped_early == !last);
    CHECK(result.package.manifest.kernels.size() == (last ? 1 : 0));
    for (std::size_t i = 0; i < std::size(kFiles); ++i) {
      CHECK(fs::exists(folder / (std::string("d/conv/") + kFiles[i])) == (i <= stage));
    }
  }
}

TEST_CASE("compile: a folder that cannot be written") {
  const ScratchFolder folder;
  const std::string file = folder.write("d", "a file");
  CHECK_THAT(BURIN_THROWN(usage, compile(network_of({"conv"}), dump_to(file))).text, Contains(file));
}

// ---- re-entry

TEST_CASE("compile: each stage that goes back in gives the same PTX") {
  const Dumped dumped;
  const std::string ptx = file_of(dumped.result, 0, BinaryKind::ptx);
  for (const char* file : {"30-plan.txt", "50-specialised.ll", "60-kernel.ptx"}) {
    INFO(file);
    const CompileResult again = compile(dumped.network, from(dumped.file(file)));
    CHECK(verify(again.package).empty());
    CHECK(symbols(again) == symbols(dumped.result));
    CHECK((file_of(again, 0, BinaryKind::ptx) == ptx));
    const Kernel& kernel = again.package.manifest.kernels.at(0);
    CHECK(kernel.edited == (std::string(file) != "30-plan.txt"));
    CHECK(again.edited_modules.contains(kernel.symbol) == (std::string(file) == "50-specialised.ll"));
  }
  // The plan alone is the whole input again; text that was fed back is part of what the code was made from.
  const std::string& hash = dumped.result.package.manifest.kernels[0].source_hash;
  const auto hash_from = [&](const char* file) {
    return compile(dumped.network, from(dumped.file(file))).package.manifest.kernels[0].source_hash;
  };
  CHECK(hash_from("30-plan.txt") == hash);
  CHECK(hash_from("50-specialised.ll") != hash);
  CHECK(hash_from("60-kernel.ptx") != hash);
}

TEST_CASE("compile: an edited plan changes the code") {
  const Dumped dumped;
  const BakedPlan plan = parse_baked_plan(dumped.text("30-plan.txt"));
  const std::string file =
      dumped.edited("30-plan.txt", fmt::format("barrier_every: {}", plan.barrier_every), "barrier_every: 1");
  const CompileResult changed = compile(dumped.network, from(file));
  CHECK((file_of(changed, 0, BinaryKind::ptx) != file_of(dumped.result, 0, BinaryKind::ptx)));
  CHECK(parse_baked_plan(changed.package.manifest.kernels[0].plan).barrier_every == 1);
  CHECK(changed.package.manifest.kernels[0].source_hash != dumped.result.package.manifest.kernels[0].source_hash);
}

TEST_CASE("compile: a plan that goes back in has its precision") {
  const ScratchFolder folder;
  CompileOptions options = dump_to(folder.path());
  options.precisions = {Precision::bf16};
  const CompileResult made = compile(network_of({"conv"}), options);
  CHECK(made.package.manifest.kernels.at(0).precision == "bf16");
  CompileOptions again = from(folder / "conv/30-plan.txt");
  CHECK(compile(network_of({"conv"}), again).package.manifest.kernels.at(0).precision == "bf16");
  again.precisions = {Precision::fp16};
  CHECK_THAT(error_of([&] { compile(network_of({"conv"}), again); }, ErrorKind::usage),
             Contains("--precision fp16: the plan for") && Contains("computes in bf16"));
}

TEST_CASE("compile: a weight that FP16 cannot hold") {
  Network network = network_of({"conv"});
  std::vector<float>& weights = network.layers[0].weights;
  *std::find_if(weights.begin(), weights.end(), [](float weight) { return weight != 0; }) = -65520;
  CompileOptions options;
  options.precisions = {Precision::fp16x2};
  CHECK_THAT(error_of([&] { compile(network, options); }, ErrorKind::unsupported),
             Contains("layer 'conv': the weight of output") && Contains("is -65520, with fp16x2 the largest is 65504"));
  options.precisions = {Precision::fp16};
  CHECK(compile(network, options).package.manifest.kernels.size() == 1);
}

TEST_CASE("compile: an edited module changes the code") {
  const Dumped dumped;
  // Beside no plan: the planner's own is taken, and the entry's name must be the one of that plan.
  const std::string file = dumped.edited("50-specialised.ll", "call void @burin_dev_barrier()", "");
  const CompileResult changed = compile(dumped.network, from(file));
  CHECK((file_of(changed, 0, BinaryKind::ptx) != file_of(dumped.result, 0, BinaryKind::ptx)));
  // The host runs the module as long as it is at hand; a package does not hold it.
  const Kernel& kernel = changed.package.manifest.kernels[0];
  CHECK((changed.edited_modules.at(kernel.symbol) == read_file(file)));
  CHECK_THAT(BURIN_THROWN(unsupported, rebuild_module(changed.package, kernel)).text,
             Contains("layer conv: its code was edited by hand"));
}

TEST_CASE("compile: a module may bring a primitive of its own") {
  const Dumped dumped;
  const std::string file = dumped.edited("50-specialised.ll", "declare dso_local float @burin_dev_zero()",
                                         "define dso_local float @burin_dev_zero() alwaysinline { ret float 0.0 } ;");
  const CompileResult changed = compile(dumped.network, from(file));
  CHECK_THAT(file_of(dumped.result, 0, BinaryKind::ptx), Contains("%ctaid.z"));
  CHECK_THAT(file_of(changed, 0, BinaryKind::ptx), !Contains("%ctaid.z"));
}

TEST_CASE("compile: edited PTX is what is assembled") {
  const Dumped dumped;
  const std::string file = dumped.edited("60-kernel.ptx", "//", "// edited\n//");
  const CompileResult changed = compile(dumped.network, from(file));
  CHECK_THAT(file_of(changed, 0, BinaryKind::ptx), Contains("// edited"));
}

TEST_CASE("compile: a plan that is no plan") {
  const Dumped dumped;
  const auto text_of = [&](ErrorKind kind, const std::string& file) {
    const std::string text = error_of([&] { compile(dumped.network, from(file)); }, kind);
    CHECK_THAT(text, Contains(kind == ErrorKind::bad_input ? file : "layer 'conv'"));
    return text;
  };
  CHECK_THAT(text_of(ErrorKind::bad_input, dumped.edited("30-plan.txt", "threads: ", "threads: x")), Contains("line"));
  CHECK_THAT(text_of(ErrorKind::bad_input, dumped.edited("30-plan.txt", "splits: ", "spilts: ")), Contains("splits"));
  CHECK_THAT(text_of(ErrorKind::bad_input, dumped.folder.write("empty.txt", "")), Contains("empty"));
  CHECK_THAT(text_of(ErrorKind::bad_input, dumped.folder.write("zero.txt", std::string("a\0b", 3))),
             Contains("not a text"));
  CHECK_THAT(text_of(ErrorKind::bad_input, dumped.folder / "d/conv/absent.txt"), Contains("absent"));
  CHECK_THAT(text_of(ErrorKind::unsupported, dumped.edited("30-plan.txt", "load_ahead: ", "load_ahead: 100")),
             Contains("load_ahead is 100"));
  CHECK_THAT(text_of(ErrorKind::unsupported, dumped.edited("30-plan.txt", "group 0: 0", "group 0: 1")),
             Contains("group"));
  CHECK_THAT(
      error_of([&] { compile(dumped.network, from(dumped.edited("30-plan.txt", "conv_baked", "conv_baked_x"))); },
               ErrorKind::unsupported),
      Contains("conv_baked_x"));
}

TEST_CASE("compile: a plan must be legal on every architecture") {
  const Dumped dumped;
  const BakedPlan plan = parse_baked_plan(dumped.text("30-plan.txt"));
  CompileOptions options = from(
      dumped.edited("30-plan.txt", fmt::format("channel_pitch: {}", plan.shared.channel_pitch), "channel_pitch: 5000"));
  options.archs = {"sm_90"};
  options.stop_after = "plan";
  REQUIRE(4 * 5000 * plan.stage_channels * plan.buffers > 64 * 1024);
  CHECK(compile(dumped.network, options).stopped_early);
  options.archs = {"sm_90", "sm_75"};
  CHECK_THAT(BURIN_THROWN(unsupported, compile(dumped.network, options)).text,
             Contains("layer 'conv'") && Contains("sm_75") && Contains("65536"));
}

TEST_CASE("compile: a module that is no module") {
  const Dumped dumped;
  const auto text_of = [&](const std::string& file) {
    const std::string text = error_of([&] { compile(dumped.network, from(file)); });
    return text;
  };
  const std::string broken = dumped.folder.write("x.ll", "define void @f( {");
  CHECK_THAT(text_of(broken), Contains(broken) && Contains("line 1"));
  const std::string invalid = dumped.folder.write("y.ll", "define i32 @f() { ret i32 %x\n }");
  CHECK_THAT(text_of(invalid), Contains(invalid) && Contains("%x"));
  const std::string other = dumped.folder.write("z.ll", "define void @f() { ret void }");
  CHECK_THAT(text_of(other), Contains(other) && Contains("there is no function 'burin_conv_"));
  const std::string unknown =
      dumped.edited("50-specialised.ll", "call void @burin_dev_barrier()", "call void @printf()");
  write_file(unknown, read_file(unknown) + "\ndeclare void @printf()\n");
  CHECK_THAT(text_of(unknown), Contains("'printf'") && Contains("primitive"));
}

TEST_CASE("compile: PTX that is no PTX") {
  const Dumped dumped;
  const auto text_of = [&](const std::string& file) { return error_of([&] { compile(dumped.network, from(file)); }); };
  const std::string other = dumped.folder.write("x.ptx", ".version 7.8\n.target sm_90\n.visible .entry f() { ret; }\n");
  CHECK_THAT(text_of(other), Contains(other) && Contains("there is no entry 'burin_conv_"));
  if (has_assembler()) {
    const std::string broken = dumped.edited("60-kernel.ptx", "fma.rn.f32", "fma.rm.f33");
    CHECK_THAT(text_of(broken), Contains(broken) && Contains("f33"));
  }
  CompileOptions too_early = from(dumped.file("60-kernel.ptx"));
  too_early.stop_after = "specialised";
  CHECK_THAT(BURIN_THROWN(usage, compile(dumped.network, too_early)).text, Contains("--stop-after"));
}

TEST_CASE("compile: a kernel is found in the cache for the same plan, whatever was measured for it") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  const Network network = network_of({"conv"});
  CompileOptions options;
  options.cache = &cache;
  CHECK(compile(network, options).cached == 0);
  CHECK(compile(network, options).cached == 1);

  const Kernel kernel = compile(network).package.manifest.kernels[0];
  BakedPlan plan = parse_baked_plan(kernel.plan);
  TuningRecord evidence;
  evidence.device = "A";
  evidence.arch = "sm_90";
  TuningCandidate& candidate = evidence.candidates.emplace_back();
  candidate.provider = kBakedProvider;
  candidate.plan = "tile=1x7x7";
  candidate.us = 3;
  candidate.samples = 9;
  const Candidate tuned = {kernel.provider, kernel.plan, kernel.symbol, {3, Estimate::Source::measured}};
  options.tuned = {{.layer = "conv", .batch = 1, .candidate = tuned, .evidence = evidence}};
  for (const double us : {3.0, 4.0}) {
    options.tuned[0].evidence.candidates[0].us = us;
    options.tuned[0].candidate.estimate.us = us;
    const CompileResult again = compile(network, options);
    CHECK(again.cached == 1);
    const Kernel& found = again.package.manifest.kernels[0];
    REQUIRE(found.tuning);
    CHECK(*found.tuning == options.tuned[0].evidence);
    // The cache changes nothing but the time that it takes.
    CompileOptions without = options;
    without.cache = nullptr;
    CHECK(found == compile(network, without).package.manifest.kernels[0]);
  }
  options.tuned.clear();
  CHECK(compile(network, options).package.manifest.kernels[0] == kernel);
  options.tuned = {{.layer = "conv", .batch = 1, .candidate = tuned, .evidence = evidence}};
  plan.load_ahead += 1;
  options.tuned[0].candidate.plan = print(plan);
  CHECK(compile(network, options).cached == 0);
}

TEST_CASE("compile: an entry of the cache under another name is none") {
  const ScratchFolder folder;
  const KernelCache cache(folder / "cache", std::int64_t{1} << 30);
  CompileOptions options;
  options.cache = &cache;
  const Network first = network_of({"first"}), second = network_of({"second"});
  compile(first, options);
  std::vector<fs::path> of_first(fs::directory_iterator(folder / "cache"), fs::directory_iterator{});
  const Package right = compile(second, options).package;
  std::vector<fs::path> of_second;
  for (const auto& file : fs::directory_iterator(folder / "cache")) {
    if (std::ranges::find(of_first, file.path()) == of_first.end()) of_second.push_back(file.path());
  }
  REQUIRE(of_first.size() == 2);
  REQUIRE(of_second.size() == 2);
  for (const fs::path& entry : of_second) {
    INFO(entry);
    const auto other =
        std::ranges::find(of_first, entry.extension(), [](const fs::path& path) { return path.extension(); });
    REQUIRE(other != of_first.end());
    fs::copy_file(*other, entry, fs::copy_options::overwrite_existing);
    const CompileResult made = compile(second, options);
    CHECK(made.cached == (entry.extension() == ".burin" ? 0 : 1));
    CHECK(made.package.manifest == right.manifest);
  }
}

TEST_CASE("compile: a damaged entry of the cache is made anew, and nothing stays beyond the limit") {
  const ScratchFolder folder;
  const fs::path entries = folder / "cache";
  const Network network = network_of({"conv"});
  CompileOptions options;
  {
    // Each time by another process, which remembers nothing.
    const auto compiled = [&] {
      const KernelCache cache(entries, std::int64_t{1} << 30);
      options.cache = &cache;
      return compile(network, options);
    };
    compiled();
    // The kernel, and the choice that led to it.
    REQUIRE(std::distance(fs::directory_iterator(entries), fs::directory_iterator()) == 2);
    const auto entry = [&](const std::string& extension) {
      const auto found = std::ranges::find_if(fs::directory_iterator(entries), fs::directory_iterator(),
                                              [&](const auto& file) { return file.path().extension() == extension; });
      REQUIRE(found != fs::directory_iterator());
      return found->path();
    };
    fs::resize_file(entry(".burin"), fs::file_size(entry(".burin")) / 2);
    CHECK(compiled().cached == 0);
    CHECK(compiled().cached == 1);
    const std::string choice = read_file(entry(".choice"));
    for (const std::size_t bytes : {choice.size() - 1, choice.size() / 2, choice.size() / 20, std::size_t{0}}) {
      INFO(bytes << " bytes of a choice");
      fs::resize_file(entry(".choice"), bytes);
      CHECK(compiled().cached == 1);
      CHECK(read_file(entry(".choice")) == choice);
    }
    write_file(entry(".choice"), replaced(choice, "load_ahead: ", "load_ahead: 1"));
    CHECK(compiled().cached == 1);
  }
  const KernelCache closed("/proc/no/such/folder", std::int64_t{1} << 30);
  options.cache = &closed;
  const CompileResult without = compile(network, options);
  CHECK(without.package.manifest.kernels.size() == 1);
  CHECK(std::ranges::any_of(without.notes, [](const std::string& note) {
    return note.find("/proc/no/such/folder: the cache of kernels cannot be written to") != std::string::npos;
  }));
  write_file(entries / ".burin-1-1.tmp", "of a process that was killed");
  const KernelCache none(entries, 0);
  options.cache = &none;
  compile(network, options);
  CHECK(fs::is_empty(entries));
}
