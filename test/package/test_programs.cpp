// What a manifest says of its programs: it survives, and what the runtime could not run does not get through.
#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/limits.h"
#include "ir/package/manifest_index.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/package/sample_plans.h"
#include "test/package/samples.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using nlohmann::ordered_json;

namespace {

using Faults = std::vector<std::string>;

Manifest network_manifest() { return network_package().manifest; }

Faults faults_after(const std::function<void(Manifest&)>& edit) {
  Manifest manifest = network_manifest();
  edit(manifest);
  return verify(manifest);
}

// After an edit of all programs, of each of them, or of the first one.
Faults programs_faults(const std::function<void(std::vector<Program>&)>& edit) {
  return faults_after([&](Manifest& manifest) {
    edit(manifest.programs);
    std::ranges::for_each(manifest.programs, complete);
  });
}
Faults each_program_faults(const std::function<void(Program&)>& edit) {
  return programs_faults([&](std::vector<Program>& programs) { std::ranges::for_each(programs, edit); });
}
Faults program_faults(const std::function<void(Program&)>& edit) {
  return programs_faults([&](std::vector<Program>& programs) { edit(programs[0]); });
}
// The same text of both programs.
Faults both(const std::string& text) { return {"programs[0]: " + text, "programs[1]: " + text}; }

Kernel& kernel_of(Manifest& manifest, const std::string& symbol) {
  for (Kernel& kernel : manifest.kernels) {
    if (kernel.symbol == symbol) return kernel;
  }
  throw std::logic_error("no kernel " + symbol);
}

// After an edit of a kernel; after one of its plan, from which its form follows.
Faults kernel_faults(const std::string& symbol, const std::function<void(Kernel&)>& edit) {
  return faults_after([&](Manifest& manifest) { edit(kernel_of(manifest, symbol)); });
}
Faults baked_faults(const std::string& symbol, const std::function<void(BakedPlan&)>& edit) {
  return kernel_faults(symbol, [&](Kernel& kernel) { edit_baked(kernel, edit); });
}
Faults template_faults(const std::string& symbol, const std::function<void(TemplatePlan&)>& edit) {
  return kernel_faults(symbol, [&](Kernel& kernel) { edit_template(kernel, edit); });
}
// After a convolution's kernel has become a template's, which can have tensors that a baked one cannot.
Faults replaced_faults(const std::string& symbol, const std::function<void(TemplatePlan&)>& edit) {
  return kernel_faults(symbol, [&](Kernel& kernel) {
    TemplatePlan plan = sample_template("conv_any", kernel.layer->shape);
    plan.output().image_words = kernel.form.output().image_words;
    edit(plan);
    kernel.planned_batch = 0;
    set_plan(kernel, plan);
  });
}

std::string network_parse_error(const std::function<void(ordered_json&)>& edit) {
  ordered_json document = ordered_json::parse(print(network_manifest()));
  edit(document);
  return error_of([&] { parse_manifest(document.dump()); });
}

// Layers for pairs of images, with activity maps. Their kernels compute in different types, which one layer's do not.
Manifest half_layers() {
  Manifest manifest = sample_manifest();
  const Precision precisions[] = {Precision::fp16, Precision::bf16};
  for (std::size_t i = 0; i < manifest.kernels.size(); ++i) {
    Kernel& kernel = manifest.kernels[i];
    kernel.op = "layer" + std::to_string(i);
    set_plan(kernel, sample_plan(kernel.layer->shape, {.precision = precisions[i],
                                                       .batch = kernel.planned_batch,
                                                       .skips = ActivityMap{2, 7, 14},
                                                       .marks = true}));
  }
  add_layer_programs(manifest);
  return manifest;
}

// After an edit of the program of the second of these layers, which is for 32 images.
enum { kInput, kResidual, kOutput, kInputMap, kOutputMap };
Faults half_faults(const std::function<void(Program&)>& edit) {
  Manifest manifest = half_layers();
  edit(manifest.programs[1]);
  complete(manifest.programs[1]);
  return verify(manifest);
}

// Indices of the operators' kernels, behind three convolutions for two batches.
enum { kFcKernel = 6, kAddKernel, kCopyKernel };

}  // namespace

TEST_CASE("programs: round trip") {
  const Manifest manifest = network_manifest();
  CHECK(verify(manifest) == Faults{});
  const std::string text = print(manifest);
  const Manifest parsed = parse_manifest(text);
  CHECK(parsed == manifest);
  CHECK(parsed.programs == manifest.programs);
  CHECK(print(parsed) == text);
  // Plans can be read line by line; what is not there is not named.
  CHECK(text.find("\"step 3: ") != text.npos);
  CHECK(text.find("\"template: linear\",\n") != text.npos);
  const ordered_json document = ordered_json::parse(text);
  REQUIRE(document["kernels"].size() == 9);
  CHECK(document["kernels"][kFcKernel]["weights"] == "weights/fc");
  CHECK(document["kernels"][kFcKernel]["kind"] == "linear");
  CHECK_FALSE(document["kernels"][kFcKernel].contains("layer"));
  CHECK_FALSE(document["kernels"][kFcKernel].contains("planned_batch"));
  CHECK_FALSE(document["kernels"][kAddKernel].contains("weights"));
  CHECK(document["kernels"][0]["layer"]["nonzeros"] == 100);
  CHECK(text.find("\"output_image_words: 6272  # ") != text.npos);
  REQUIRE(document["programs"].size() == 2);
  CHECK(document["programs"][1][0] == "name: network");
  CHECK(document["programs"][1][1] == "batch: 8");
  CHECK(text.find(" kernel conv1_b2 options conv_baked,2.25,model;conv_dense,4,measured\",\n") != text.npos);
  CHECK_FALSE(document.contains("network"));
  CHECK(ordered_json::parse(print(sample_manifest()))["programs"] == ordered_json::array());
}

TEST_CASE("programs: of layers, with activity maps and halves as arguments") {
  const Manifest manifest = half_layers();
  CHECK(verify(manifest) == Faults{});
  const Manifest parsed = parse_manifest(print(manifest));
  CHECK(parsed == manifest);
  CHECK(verify(parsed) == Faults{});
  const Program& program = parsed.programs[1];
  CHECK(program.arena_bytes == 0);
  REQUIRE(program.inputs().size() == 3);
  CHECK(program.inputs()[0]->tensor == "layer1.input");
  CHECK(program.inputs()[0]->format_text() == "bf16 n2chw");
  CHECK(program.inputs()[2]->format_text() == "map 2x7x14");
  CHECK(program.outputs()[1]->tensor == "layer1.output.activity");
}

TEST_CASE("programs: by name") {
  Manifest manifest = network_manifest();
  CHECK(program_names(manifest) == std::vector<std::string>{"network"});
  CHECK(ManifestIndex(manifest).programs(kNetworkName) ==
        std::vector<const Program*>{&manifest.programs[0], &manifest.programs[1]});
  CHECK(ManifestIndex(manifest).programs("net").empty());
  CHECK_FALSE(holds_layers(manifest));
  Manifest layers = half_layers();
  CHECK(program_names(layers) == std::vector<std::string>{"layer0", "layer1"});
  CHECK(ManifestIndex(layers).programs("layer1") == std::vector<const Program*>{&layers.programs[1]});
  CHECK(holds_layers(layers));
  layers.programs[1].name = "layer";
  CHECK_FALSE(holds_layers(layers));
}

TEST_CASE("programs: a package, there and back") {
  const ScratchFolder folder;
  const Package package = network_package();
  write_package(package, folder / "x.burin");
  const Package read = read_package(folder / "x.burin");
  CHECK(read.manifest == package.manifest);
  CHECK(read.files == package.files);
}

TEST_CASE("programs: files of operators") {
  const auto package_faults = [](const std::function<void(Package&)>& edit) {
    Package package = network_package();
    edit(package);
    return verify(package);
  };
  CHECK(package_faults([](Package& p) { p.files.erase("weights/fc"); }) ==
        Faults{"manifest.json: kernels[6].weights: the file 'weights/fc' is missing"});
  CHECK(package_faults([](Package& p) { p.files["weights/fc"] = std::string(250919, '\3'); }) ==
        Faults{"manifest.json: kernels[6].weights: the file 'weights/fc' has 250919 bytes, expected 250920"});
  CHECK(package_faults([](Package& p) { p.files.erase("kernels/operator_add.ptx"); }) ==
        Faults{"manifest.json: kernels[7].binaries[0]: the file 'kernels/operator_add.ptx' is missing"});
  CHECK(package_faults([](Package& p) { p.files["weights/other"] = ""; }) ==
        Faults{"the file 'weights/other' belongs to nothing"});
}

TEST_CASE("programs: operators with the same weights share one file") {
  Package package = network_package();
  Kernel other = package.manifest.kernels[kFcKernel];
  other.symbol = "operator_fc2";
  for (KernelBinary& binary : other.binaries) {
    package.files["kernels/other" + binary.path.substr(binary.path.rfind('.'))] = package.files[binary.path];
    binary.path = "kernels/other" + binary.path.substr(binary.path.rfind('.'));
  }
  package.manifest.kernels.push_back(other);
  CHECK(verify(package) == Faults{});
  const ScratchFolder folder;
  write_package(package, folder / "x.burin");
  const Package read = read_package(folder / "x.burin");
  CHECK(read.manifest == package.manifest);
  CHECK(read.files == package.files);
  // The file is what both say it is, or what neither does.
  package.files["weights/fc"] = std::string(250919, '\3');
  const std::string text = ".weights: the file 'weights/fc' has 250919 bytes, expected 250920";
  CHECK(verify(package) == Faults{"manifest.json: kernels[6]" + text, "manifest.json: kernels[9]" + text});
}

TEST_CASE("programs: names that cannot be shown are the user's to change") {
  const auto error = [](const std::function<void(Manifest&)>& edit) {
    const ScratchFolder folder;
    Package package = network_package();
    edit(package.manifest);
    return error_of([&] { write_package(package, folder / "x.burin"); }, ErrorKind::unsupported);
  };
  CHECK(error([](Manifest& m) {
          m.programs[0].buffers[kImage].tensor = "a\nb";
        }).find("the input name 'a\\x0ab' must have") != std::string::npos);
  CHECK(error([](Manifest& m) {
          m.programs[1].buffers[kFeatures].tensor = "\xff";
        }).find("the output name '\\xff' must have") != std::string::npos);
  CHECK(error([](Manifest& m) { m.programs[1].name = "\x01"; }).find("the program name '\\x01' must have") !=
        std::string::npos);
  CHECK(error([](Manifest& m) { m.kernels[kFcKernel].op = ""; }).find("the operator name '' must have") !=
        std::string::npos);
}

TEST_CASE("programs: a wrong type, a missing key or a plan that cannot be read is named by its path") {
  CHECK(network_parse_error([](ordered_json& json) { json["programs"] = 7; }) ==
        "manifest.json: programs: expected an array, found 7");
  CHECK(network_parse_error([](ordered_json& json) { json.erase("programs"); }) ==
        "manifest.json: the key \"programs\" is missing");
  CHECK(network_parse_error([](ordered_json& json) { json["programs"][1] = "text"; }) ==
        "manifest.json: programs[1]: expected an array, found \"text\"");
  CHECK(network_parse_error([](ordered_json& json) { json["programs"][1][2] = 3; }) ==
        "manifest.json: programs[1][2]: expected a string, found 3");
  const auto line_error = [](int line, const std::string& text) {
    return network_parse_error([&](ordered_json& json) { json["programs"][1][static_cast<std::size_t>(line)] = text; });
  };
  CHECK(line_error(0, "x: 1") == "manifest.json: programs[1]: program: there is no line 'name: ...'");
  CHECK(line_error(1, "batch: two") ==
        "manifest.json: programs[1]: program, line 2: 'two' of 'batch' is not an integer");
  CHECK(line_error(2, "naive") ==
        "manifest.json: programs[1]: program, line 3: 'naive' is not of the form 'key: value'");
  const std::string constants =
      network_parse_error([](ordered_json& json) { json["kernels"][kCopyKernel]["plan"][1] = "template"; });
  CHECK(constants == "manifest.json: kernels[8].plan: plan, line 2: 'template' is not of the form 'key: value'");
  CHECK(network_parse_error([](ordered_json& json) { json["kernels"] = "none"; }) ==
        "manifest.json: kernels: expected an array, found \"none\"");
  const auto option = [](const std::string& text) {
    return network_parse_error([&](ordered_json& json) {
      for (ordered_json& line : json["programs"][0]) {
        const std::string whole = line.get<std::string>();
        const std::size_t at = whole.find("conv_dense,4,measured");
        if (at != whole.npos) line = whole.substr(0, at) + text;
      }
    });
  };
  CHECK(option("conv_dense,4,measured") == "no error");
  // Behind the name, two numbers, seven buffers and a comment.
  const std::string first_step = "manifest.json: programs[0]: program, line 12: ";
  for (const char* text : {"conv_dense,4", "conv_dense,measured", "4,measured"}) {
    CHECK(option(text) == first_step + "expected PROVIDER,MICROSECONDS,SOURCE, got '" + text + "'");
  }
  CHECK(option("conv_dense,fast,measured") == first_step + "'fast' of 'step 0' is not a number");
  CHECK(option("conv_dense,4,true") == first_step + "expected model or measured, got 'true'");
  for (const char* key : {"symbol", "operator", "kind", "provider", "precision", "source_hash", "binaries", "plan"}) {
    CHECK(network_parse_error([&](ordered_json& json) { json["kernels"][kAddKernel].erase(key); }) ==
          fmt::format("manifest.json: kernels[7]: the key \"{}\" is missing", key));
  }
}

TEST_CASE("programs: kernels that no program runs are fine") {
  // Tools launch them by themselves.
  CHECK(faults_after([](Manifest& m) { m.programs.pop_back(); }) == Faults{});
  CHECK(faults_after([](Manifest& m) { m.programs.clear(); }) == Faults{});
}

TEST_CASE("programs: an operator's kernel") {
  const std::string add = "operator_add", fc = "operator_fc";
  CHECK(kernel_faults(add, [](Kernel& k) { k.source_hash = ""; }) == Faults{"kernels[7].source_hash: is empty"});
  CHECK(kernel_faults(add, [](Kernel& k) { k.op = "\x01"; }) ==
        Faults{"kernels[7].operator: is not printable UTF-8 text"});
  CHECK(kernel_faults(add, [](Kernel& k) { k.kind = ""; }) == Faults{"kernels[7].kind: is empty"});
  CHECK(kernel_faults(add, [](Kernel& k) { k.plan.replace(k.plan.find("threads: 256"), 12, "threads: 100"); }) ==
        Faults{"kernels[7].plan: threads is 100, whole warps of 32 are needed"});
  CHECK(kernel_faults(add, [](Kernel& k) { k.provider = "conv_baked"; }) ==
        Faults{"kernels[7].plan: it is no convolution, which conv_baked kernels are"});
  CHECK(kernel_faults(add, [](Kernel& k) { k.weights = "weights/add"; }) ==
        Faults{"kernels[7].weights: the plan has none"});
  CHECK(kernel_faults(fc, [](Kernel& k) { k.weights = ""; }) == Faults{"kernels[6].weights: the plan has some"});
  CHECK(kernel_faults(fc, [](Kernel& k) { k.weights = "../fc"; }) ==
        Faults{"kernels[6].weights: '../fc' is not a relative path of plain names without '.' or '..'"});
  CHECK(kernel_faults(fc, [](Kernel& k) { k.binaries.clear(); }) ==
        Faults{"kernels[6].binaries: is empty: there would be nothing to load"});
  CHECK(kernel_faults(fc, [](Kernel& k) { k.binaries[1].path = k.binaries[0].path; }) ==
        Faults{"kernels[6].binaries[1].path: 'kernels/operator_fc.ptx' is named twice"});
  // Symbols are one name space; the first one of a name counts.
  const Faults twice = kernel_faults(fc, [](Kernel& k) { k.symbol = "conv1_b2"; });
  REQUIRE_FALSE(twice.empty());
  CHECK(twice[0] == "kernels[6].symbol: 'conv1_b2' is the symbol of two kernels");
}

TEST_CASE("programs: inputs and outputs") {
  const std::string other_inputs = "programs[1]: its inputs are not those of the program before it, which has its name";
  const std::string other_outputs =
      "programs[1]: its outputs are not those of the program before it, which has its name";
  CHECK(each_program_faults([](Program& p) { p.buffers[kImage].tensor = "\x7f"; }) ==
        both("buffer 0 (\\x7f) is an argument whose name is not printable text"));
  CHECK(each_program_faults([](Program& p) { p.buffers[kFeatures].tensor = "scores"; }) ==
        both("two outputs are named scores"));
  CHECK(each_program_faults([](Program& p) { p.buffers[kScores].tensor = "image"; }) == Faults{});
  // Of programs of one name they are the same, but for the batch.
  CHECK(program_faults([](Program& p) { p.buffers[kImage].tensor = "picture"; }) == Faults{other_inputs});
  CHECK(program_faults([](Program& p) { p.buffers[kFeatures].shape = {16, 196}; }) == Faults{other_outputs});
  CHECK(program_faults([](Program& p) { std::swap(p.buffers[kScores].argument, p.buffers[kFeatures].argument); }) ==
        Faults{other_outputs});
  CHECK(program_faults([](Program& p) {
          p.buffers.push_back({.tensor = "more", .shape = {1}, .home = BufferHome::input, .argument = 2});
        }) == Faults{other_inputs});
  CHECK(std::ranges::count(program_faults([](Program& p) { p.buffers[kImage].format.layout = TensorLayout::nchw4; }),
                           other_inputs) == 1);
  // What lies in between is each program's own affair.
  CHECK(program_faults([](Program& p) { p.buffers[kT].tensor = "u"; }) == Faults{});
  const auto with_shape = [&](std::vector<std::int64_t> shape) {
    return each_program_faults([&](Program& p) { p.buffers[kImage].shape = shape; });
  };
  const std::string image = "programs[0]: buffer 0 (image) is ";
  CHECK(with_shape({}).front() == "programs[0]: buffer 0 (image) has 0 axes; allowed are 1 to 6");
  CHECK(with_shape({8, 14, 15}).front() ==
        "programs[0]: step 0: its input has images of 1 x 6272 bytes, 6720 apart, and the kernel takes 1 x 6272, 6272 "
        "apart");
  CHECK(with_shape({8, 0, 14}).front() == image + "8x0x14; extents are 1 to 2147483647");
  CHECK(with_shape({-8, 14, -14}).front() == image + "-8x14x-14; extents are 1 to 2147483647");
  CHECK(with_shape({std::int64_t{1} << 31}).front() == image + "2147483648; extents are 1 to 2147483647");
  CHECK(with_shape({1, 1, 1, 1, 8, 14, 14}) == both("buffer 0 (image) has 7 axes; allowed are 1 to 6"));
  CHECK(with_shape({1, 1, 1, 8, 14, 14}) == Faults{});
  CHECK(each_program_faults([](Program& p) { p.buffers[kShift].argument = 2; }) ==
        both("the buffers of the program's inputs are not one for each of 0 to 2"));
}

TEST_CASE("programs: of one name, batch by batch") {
  CHECK(programs_faults([](std::vector<Program>& p) { std::swap(p[0], p[1]); }) ==
        Faults{"programs[1]: batch 2 follows 8"});
  CHECK(programs_faults([](std::vector<Program>& p) { p[1] = p[0]; }) == Faults{"programs[1]: batch 2 follows 2"});
  // Others begin anew, and stand side by side.
  CHECK(programs_faults([](std::vector<Program>& p) { p[0].name = "other"; }) == Faults{});
  CHECK(programs_faults([](std::vector<Program>& p) {
          std::swap(p[0], p[1]);
          p[0].name = "other";
        }) == Faults{});
  CHECK(programs_faults([](std::vector<Program>& p) {
          p.push_back(p[1]);
          p[1].name = "other";
        }) == Faults{"programs[2]: stands apart from the programs of its name"});
  CHECK(programs_faults([](std::vector<Program>& p) {
          p[0].name = "other";
          p.push_back(p[1]);
          p.push_back(p[0]);
          p[2].name = "third";
        }) == Faults{"programs[3]: stands apart from the programs of its name"});
}

TEST_CASE("programs: steps and their kernels") {
  CHECK(program_faults([](Program& p) { p.steps[kFc].kernel = "nothing"; }) ==
        Faults{"programs[0]: step 3: 'nothing' is no kernel of the package"});
  CHECK(program_faults([](Program& p) { p.steps[kFc].kernel = ""; }) ==
        Faults{"programs[0]: step 3: '' is no kernel of the package"});
  CHECK(program_faults([](Program& p) {
          p.steps[kConv1].options = {{"", 1}, {"conv_baked", std::numeric_limits<double>::infinity()}};
        }) == Faults{"programs[0]: step 0 (conv1): a provider's name is not printable text",
                     "programs[0]: step 0 (conv1): the time of conv_baked is not finite"});
  CHECK(program_faults([](Program& p) { p.steps.clear(); }) == Faults{"programs[0]: there are no steps"});
  // A program's own rules are those of verify(Program).
  CHECK(program_faults([](Program& p) { p.steps[kFc].after = {kLeft}; }) ==
        Faults{"programs[0]: step 2 (right) writes bytes of buffer 5 (concat) that step 3 (fc) reads; neither waits "
               "for the other",
               "programs[0]: step 3 (fc) reads bytes of buffer 5 (concat) that no step it waits for has written"});
  CHECK(program_faults([](Program& p) { p.buffers[kA].format.element = ElementType::f16; }).size() == 1);
}

TEST_CASE("programs: a buffer holds what its layout is for, and what kernels take") {
  // As two halves to a word the bytes would be right.
  CHECK(program_faults([](Program& p) {
          Buffer& t = p.buffers[kT];
          t.format.element = ElementType::f16;
          t.shape = {2 * kSampleFeatures};
        }) == Faults{"programs[0]: buffer 6 (t) holds f16 nchw in the arena: only inputs and outputs do"});
  const std::string halves = " lies in f16 n2chw, and the kernel takes f32 nchw";
  CHECK(program_faults([](Program& p) {
          Buffer& a = p.buffers[kA];
          a.format = {ElementType::f16, TensorLayout::n2chw};
          a.shape[0] *= p.batch;  // as many bytes
        }) == Faults{"programs[0]: step 0: its output" + halves, "programs[0]: step 1: its input" + halves,
                     "programs[0]: step 2: its input" + halves, "programs[0]: step 2: its residual" + halves,
                     "programs[0]: step 5: its input" + halves});
  // An argument too.
  CHECK(each_program_faults([](Program& p) {
          Buffer& image = p.buffers[kImage];
          image.format = {ElementType::f16, TensorLayout::n2chw};
        }) == both("step 0: its input" + halves));
}

TEST_CASE("programs: what a layer's kernel takes lies where the step has it") {
  const std::string conv1 = "programs[0]: step 0: ", left = "programs[0]: step 1: ", right = "programs[0]: step 2: ";
  // Another kernel's images.
  CHECK(program_faults([](Program& p) { p.steps[kLeft].kernel = "conv1_b2"; }) ==
        Faults{left + "its input has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 6272, 6272 apart",
               left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(program_faults([](Program& p) { p.steps[kLeft].kernel = "right_b2"; }) ==
        Faults{left + "it reads 1 tensors, and the kernel takes others"});
  CHECK(program_faults([](Program& p) { p.steps[kRight].kernel = "left_b2"; }) ==
        Faults{right + "it reads 2 tensors, and the kernel takes others"});
  CHECK(baked_faults("left_b2", [](BakedPlan& p) { p.output_image_words = 0; }) ==
        Faults{left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(baked_faults("right_b2", [](BakedPlan& p) { p.residual_image_words = 2 * kSampleTensorWords; }) ==
        Faults{right + "its residual has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 12544, 25088 "
                       "apart"});
  CHECK(baked_faults("conv1_b2", [](BakedPlan& p) { p.output_layout = TensorLayout::nchw4; }) ==
        Faults{conv1 + "its output lies in f32 nchw, and the kernel takes f32 nchw4"});
  CHECK(replaced_faults("right_b2", [](TemplatePlan& p) { p.output().alignment = 256; }) == Faults{});  // 12544 is one
  CHECK(program_faults([](Program& p) {
          p.steps[kLeft].writes.offset = kSampleTensorWords * 4;
          p.steps[kRight].writes.offset = 0;
        }) == Faults{});
  // Halves as pairs of images.
  const Faults half = kernel_faults("conv1_b2", [](Kernel& k) {
    set_plan(k, sample_plan(k.layer->shape, {.precision = Precision::fp16, .batch = 2}));
  });
  CHECK(half == Faults{conv1 + "its input lies in f32 nchw, and the kernel takes f16 n2chw",
                       conv1 + "its output lies in f32 nchw, and the kernel takes f16 n2chw"});
  // A layer with a fault of its own is reported once.
  const Faults shape = kernel_faults("conv1_b2", [](Kernel& k) { k.layer->shape.in_channels = 0; });
  CHECK(std::ranges::none_of(shape, [](const std::string& fault) { return fault.starts_with("programs"); }));
}

TEST_CASE("programs: activity maps are those of the kernel, or none") {
  const std::string step = "programs[1]: step 0: ";
  // A launch may be without.
  CHECK(baked_faults("conv1_b2", [](BakedPlan& p) { p.skips = ActivityMap{1, 7, 7}; }) == Faults{});
  CHECK(half_faults([](Program& p) {
          p.steps[0].input_map.reset();
          p.steps[0].output_map.reset();
          p.buffers.resize(kInputMap);
        }) == Faults{});
  // One that the kernel does not know.
  CHECK(program_faults([](Program& p) {
          const std::int64_t offset = p.arena_bytes;
          p.naive_bytes += 256;
          p.buffers.push_back(
              {.tensor = "a.activity", .shape = {16, 14, 14}, .map = ActivityMap{2, 14, 14}, .offset = offset});
          p.steps[kConv1].output_map = p.steps[kLeft].input_map = Place{7, 0, 16, 16, 1, 0};
        }) == Faults{"programs[0]: step 0: it has an output_map, and the kernel has none",
                     "programs[0]: step 1: it has an input_map, and the kernel has none"});
  // Of other cells, of another tensor, or no map at all.
  CHECK(half_faults([](Program& p) { p.buffers[kInputMap].map = ActivityMap{2, 14, 7}; }) ==
        Faults{step + "its input_map lies in map 2x14x7, and the kernel takes map 2x7x14"});
  CHECK(half_faults([](Program& p) { p.buffers[kInputMap].shape = {8, 13, 14}; }) ==
        Faults{step + "its input_map is of another tensor than the kernel's"});
  CHECK(half_faults([](Program& p) { p.steps[0].input_map = p.steps[0].reads[0]; }) ==
        Faults{step + "its input_map lies in bf16 n2chw, and the kernel takes map 2x7x14"});
  CHECK(half_faults([](Program& p) { p.steps[0].reads[1] = *p.steps[0].input_map; }) ==
        Faults{step + "its residual lies in map 2x7x14, and the kernel takes bf16 n2chw"});
}

TEST_CASE("programs: of one layer have the same arguments") {
  // Both kernels are those of one layer, which compute in one type.
  Manifest manifest = sample_manifest();
  for (Kernel& kernel : manifest.kernels) {
    set_plan(kernel, sample_plan(kernel.layer->shape, {.precision = Precision::fp16,
                                                       .batch = kernel.planned_batch,
                                                       .skips = ActivityMap{2, 7, 14},
                                                       .marks = true}));
  }
  const auto after = [&](const std::function<void(Manifest&)>& edit) {
    Manifest edited = manifest;
    edit(edited);
    add_layer_programs(edited);
    return verify(edited);
  };
  const std::string inputs = "programs[1]: its inputs are not those of the program before it, which has its name";
  const std::string outputs = "programs[1]: its outputs are not those of the program before it, which has its name";
  CHECK(after([](Manifest&) {}) == Faults{});
  // Each kernel has cells of its own, but maps they both have.
  CHECK(after([](Manifest& m) { edit_baked(m.kernels[1], [](BakedPlan& p) { p.skips = ActivityMap{4, 14, 14}; }); }) ==
        Faults{});
  CHECK(after([](Manifest& m) { edit_baked(m.kernels[1], [](BakedPlan& p) { p.skips.reset(); }); }) == Faults{inputs});
  CHECK(after([](Manifest& m) { edit_baked(m.kernels[1], [](BakedPlan& p) { p.marks = false; }); }) == Faults{outputs});
  CHECK(after([](Manifest& m) { edit_baked(m.kernels[1], [](BakedPlan& p) { p.precision = Precision::bf16; }); }) ==
        Faults{inputs, outputs});
}

TEST_CASE("programs: a place that its kernel's alignment does not allow") {
  // A channel of 14 x 14 floats has 784 bytes, a multiple of 16 but not of 32.
  const auto replace = [](Kernel& kernel, int alignment) {
    kernel.planned_batch = 0;
    TemplatePlan plan = sample_template("conv_any", kernel.layer->shape);
    plan.output().image_words = 2 * kSampleTensorWords;
    plan.output().alignment = alignment;
    set_plan(kernel, plan);
  };
  const auto faults = faults_after([&](Manifest& manifest) {
    for (Program& program : manifest.programs) {
      program.steps[kLeft].writes.offset = kSampleTensorWords * 4;
      program.steps[kRight].writes.offset = 0;
    }
    for (Kernel& kernel : manifest.kernels) {
      if (kernel.op == "left") replace(kernel, 256);
    }
  });
  CHECK(faults == Faults{});  // 12544 is 49 x 256
  for (const int channels : {15, 17}) {
    INFO(channels);
    // left writes 15 or 17 channels, right what is left of 32: its slice begins at an odd channel.
    Manifest manifest = network_manifest();
    manifest.programs.pop_back();
    Program& program = manifest.programs[0];
    const std::int64_t bytes = std::int64_t{channels} * 14 * 14 * 4;
    program.steps[kLeft].writes.run_bytes = bytes;
    program.steps[kRight].writes.offset = bytes;
    program.steps[kRight].writes.run_bytes = 2 * kSampleTensorWords * 4 - bytes;
    program.steps[kRight].reads.pop_back();
    Kernel &left = kernel_of(manifest, "left_b2"), &right = kernel_of(manifest, "right_b2");
    left.layer->shape.out_channels = channels;
    replace(left, 4);
    right.layer->shape.out_channels = 32 - channels;
    right.layer->shape.epilogue.residual = false;
    replace(right, 32);
    CHECK(verify(manifest) ==
          Faults{fmt::format("programs[0]: step 2: its output begins at byte {}, and the kernel takes multiples of 32",
                             bytes)});
  }
}

TEST_CASE("programs: what an operator's kernel takes lies where the step has it") {
  const std::string add = "operator_add";
  const std::string ten = "1 x 40 bytes, 40 apart, and the kernel takes ";
  CHECK(program_faults([](Program& p) { p.steps[kAdd].kernel = "operator_fc"; }) ==
        Faults{"programs[0]: step 4: its input has images of " + ten + "1 x 25088, 25088 apart",
               "programs[0]: step 4: it reads 2 tensors, and the kernel takes others"});
  CHECK(program_faults([](Program& p) { p.steps[kFc].kernel = "operator_add"; }) ==
        Faults{"programs[0]: step 3: its input has images of 1 x 25088 bytes, 25088 apart, and the kernel takes 1 x "
               "40, 40 apart",
               "programs[0]: step 3: it reads 1 tensors, and the kernel takes others"});
  // Both of the same tensor, or none of the second.
  const Faults others = both("step 4: it reads 2 tensors, and the kernel takes others");
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual().argument = 0; }) == others);
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual() = {.role = TensorRole::residual, .argument = 1}; }) ==
        others);
  CHECK(template_faults(add, [](TemplatePlan& p) { std::swap(p.input().argument, p.residual().argument); }) ==
        Faults{});
  CHECK(template_faults(add, [](TemplatePlan& p) { p.input().run_words = 9; }) ==
        both("step 4: its input has images of " + ten + "1 x 36, 40 apart"));
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual().image_words = 12; }) ==
        both("step 4: its residual has images of " + ten + "1 x 40, 48 apart"));
  CHECK(template_faults(add, [](TemplatePlan& p) { p.output().image_words = 11; }) ==
        both("step 4: its output has images of " + ten + "1 x 40, 44 apart"));
  CHECK(template_faults("operator_features",
                        [](TemplatePlan& p) {
                          p.output().run_words /= 2;
                          p.output().runs = 2;
                          p.output().run_pitch = p.output().run_words;
                        }) ==
        both("step 5: its output has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 2 x 6272, 12544 "
             "apart"));
}

TEST_CASE("programs: arguments that no launch has") {
  for (const int argument : {-1, 2}) {
    const Faults faults = kernel_faults("operator_add", [&](Kernel& kernel) {
      TemplatePlan plan = parse_template_plan(kernel.plan);
      plan.residual().argument = argument;
      kernel.plan = print(plan);
    });
    REQUIRE(faults.size() == 1);
    CHECK(faults[0] ==
          fmt::format("kernels[7].plan: the argument of the tensor 'residual' is {}, allowed is 0 to 1", argument));
  }
}
