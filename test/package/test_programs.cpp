// What a manifest says of a network: it survives, and what the runtime could not run does not get through.
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/limits.h"
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

// After an edit of the network, of its first program, or of a step of that.
Faults network_faults(const std::function<void(NetworkRecord&)>& edit) {
  return faults_after([&](Manifest& manifest) { edit(*manifest.network); });
}
Faults program_faults(const std::function<void(Program&)>& edit) {
  return network_faults([&](NetworkRecord& network) { edit(network.programs[0]); });
}

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

const std::string kProgram = "network.programs[0]";

// Indices of the operators' kernels, behind three convolutions for two batches.
enum { kFcKernel = 6, kAddKernel, kCopyKernel };

}  // namespace

TEST_CASE("network record: round trip") {
  const Manifest manifest = network_manifest();
  CHECK(verify(manifest) == Faults{});
  const std::string text = print(manifest);
  const Manifest parsed = parse_manifest(text);
  CHECK(parsed == manifest);
  CHECK(parsed.network->programs == manifest.network->programs);
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
  const ordered_json options = document["network"]["programs"][0]["options"][kConv1];
  CHECK(options == ordered_json::parse(R"([{"provider": "conv_baked", "us": 2.25, "source": "model"},
                                           {"provider": "conv_dense", "us": 4.0, "source": "measured"}])"));
  CHECK_FALSE(document.contains("operators"));
  CHECK_FALSE(ordered_json::parse(print(sample_manifest())).contains("network"));
}

TEST_CASE("network record: a package, there and back") {
  const ScratchFolder folder;
  const Package package = network_package();
  write_package(package, folder / "x.burin");
  const Package read = read_package(folder / "x.burin");
  CHECK(read.manifest == package.manifest);
  CHECK(read.files == package.files);
}

TEST_CASE("network record: files of operators") {
  const auto package_faults = [](const std::function<void(Package&)>& edit) {
    Package package = network_package();
    edit(package);
    return verify(package);
  };
  CHECK(package_faults([](Package& p) { p.files.erase("weights/fc"); }) ==
        Faults{"manifest.json: kernels[6].weights: the file 'weights/fc' is missing"});
  CHECK(package_faults([](Package& p) { p.files["weights/fc"].pop_back(); }) ==
        Faults{"manifest.json: kernels[6].weights: the file 'weights/fc' has 250919 bytes, expected 250920"});
  CHECK(package_faults([](Package& p) { p.files.erase("kernels/operator_add.ptx"); }) ==
        Faults{"manifest.json: kernels[7].binaries[0]: the file 'kernels/operator_add.ptx' is missing"});
  CHECK(package_faults([](Package& p) { p.files["weights/other"] = ""; }) ==
        Faults{"the file 'weights/other' belongs to nothing"});
}

TEST_CASE("network record: names that cannot be shown are the user's to change") {
  const auto error = [](const std::function<void(Manifest&)>& edit) {
    const ScratchFolder folder;
    Package package = network_package();
    edit(package.manifest);
    return error_of([&] { write_package(package, folder / "x.burin"); }, ErrorKind::unsupported);
  };
  CHECK(error([](Manifest& m) { m.network->inputs[0].name = "a\nb"; }).find("the input name 'a\\x0ab' must have") !=
        std::string::npos);
  CHECK(error([](Manifest& m) { m.network->outputs[1].name = "\xff"; }).find("the output name '\\xff' must have") !=
        std::string::npos);
  CHECK(error([](Manifest& m) { m.kernels[kFcKernel].op = ""; }).find("the operator name '' must have") !=
        std::string::npos);
}

TEST_CASE("network record: a wrong type, a missing key or a plan that cannot be read is named by its path") {
  CHECK(network_parse_error([](ordered_json& json) { json["network"] = 7; }) ==
        "manifest.json: network: expected an object, found 7");
  CHECK(network_parse_error([](ordered_json& json) { json["network"].erase("outputs"); }) ==
        "manifest.json: network: the key \"outputs\" is missing");
  CHECK(network_parse_error([](ordered_json& json) { json["network"]["inputs"][1]["shape"][0] = "ten"; }) ==
        "manifest.json: network.inputs[1].shape[0]: expected an integer, found \"ten\"");
  CHECK(network_parse_error([](ordered_json& json) { json["network"]["programs"][1]["kernels"][2] = 3; }) ==
        "manifest.json: network.programs[1].kernels[2]: expected a string, found 3");
  CHECK(network_parse_error([](ordered_json& json) { json["network"]["programs"][1].erase("plan"); }) ==
        "manifest.json: network.programs[1]: the key \"plan\" is missing");
  const std::string plan =
      network_parse_error([](ordered_json& json) { json["network"]["programs"][1]["plan"][0] = "x: 1"; });
  CHECK(plan.find("manifest.json: network.programs[1].plan: network plan: ") == 0);
  const std::string constants =
      network_parse_error([](ordered_json& json) { json["kernels"][kCopyKernel]["plan"][1] = "template"; });
  CHECK(constants == "manifest.json: kernels[8].plan: plan, line 2: 'template' is not of the form 'key: value'");
  CHECK(network_parse_error([](ordered_json& json) { json["kernels"] = "none"; }) ==
        "manifest.json: kernels: expected an array, found \"none\"");
  const auto option = [](const std::function<void(ordered_json&)>& edit) {
    return network_parse_error([&](ordered_json& json) { edit(json["network"]["programs"][0]["options"][0][1]); });
  };
  const std::string path = "manifest.json: network.programs[0].options[0][1]";
  for (const char* key : {"provider", "us", "source"}) {
    CHECK(option([&](ordered_json& json) { json.erase(key); }) == path + ": the key \"" + key + "\" is missing");
  }
  CHECK(option([](ordered_json& json) { json["us"] = "4"; }) == path + ".us: expected a number, found \"4\"");
  CHECK(option([](ordered_json& json) { json["source"] = true; }) == path + ".source: expected a string, found true");
  for (const char* key : {"symbol", "operator", "kind", "provider", "precision", "source_hash", "binaries", "plan"}) {
    CHECK(network_parse_error([&](ordered_json& json) { json["kernels"][kAddKernel].erase(key); }) ==
          fmt::format("manifest.json: kernels[7]: the key \"{}\" is missing", key));
  }
}

TEST_CASE("network record: kernels that no program runs are fine") {
  // Tools launch them by themselves.
  CHECK(faults_after([](Manifest& m) { m.network->programs.pop_back(); }) == Faults{});
  CHECK(faults_after([](Manifest& m) { m.network.reset(); }) == Faults{});
}

TEST_CASE("network record: an operator's kernel") {
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

TEST_CASE("network record: inputs and outputs") {
  CHECK(network_faults([](NetworkRecord& n) { n.inputs[0].name = "\x7f"; }) ==
        Faults{"network.inputs[0].name: '\\x7f' is not printable text"});
  CHECK(network_faults([](NetworkRecord& n) { n.outputs[1].name = n.outputs[0].name; }) ==
        Faults{"network.outputs[1].name: is the name of two"});
  const std::string image = ".plan: buffer 0: is not the network's input 0";
  const Faults twice = {"network.programs[0]" + image, "network.programs[1]" + image};
  CHECK(network_faults([](NetworkRecord& n) { n.inputs[0].shape = {8, 14, 15}; }) == twice);
  const auto with_shape = [&](std::vector<std::int64_t> shape) {
    return network_faults([&](NetworkRecord& n) { n.inputs[0].shape = std::move(shape); });
  };
  CHECK(with_shape({}).front() == "network.inputs[0].shape: [] is not 1 to 6 extents from 1 up");
  CHECK(with_shape({8, 0, 14}).front() == "network.inputs[0].shape: [8, 0, 14] is not 1 to 6 extents from 1 up");
  CHECK(with_shape({1, 1, 1, 1, 1, 1, 1}).size() == 3);
  CHECK(with_shape({std::int64_t{1} << 31}).size() == 3);
  const Faults none = network_faults([](NetworkRecord& n) { n.outputs.clear(); });
  REQUIRE(none.size() == 7);
  CHECK(none[0] == "network.outputs: is empty");
  CHECK(none[3] == "network.programs[0].plan: has 2 inputs and 2 outputs, the network 2 and 0");
  const Faults more = network_faults([](NetworkRecord& n) { n.inputs.push_back({"more", {1}}); });
  REQUIRE(more.size() == 2);
  CHECK(more[0] == "network.programs[0].plan: has 2 inputs and 2 outputs, the network 3 and 2");
}

TEST_CASE("network record: programs") {
  CHECK(network_faults([](NetworkRecord& n) { n.programs.clear(); }) ==
        Faults{"network.programs: is empty: there would be nothing to run"});
  CHECK(network_faults([](NetworkRecord& n) { std::swap(n.programs[0], n.programs[1]); }) ==
        Faults{"network.programs[1]: batch 2 follows 8"});
  CHECK(network_faults([](NetworkRecord& n) { n.programs[1] = n.programs[0]; }) ==
        Faults{"network.programs[1]: batch 2 follows 2"});
  CHECK(program_faults([](Program& p) { p.kernels.pop_back(); }) ==
        Faults{kProgram + ".kernels: 5 for 6 steps"});
  CHECK(program_faults([](Program& p) { p.kernels[kFc] = "nothing"; }) ==
        Faults{kProgram + ".kernels[3]: 'nothing' is no kernel of the package"});
  CHECK(program_faults([](Program& p) { p.options = {{{"conv_dense", 1.5}}}; }) ==
        Faults{kProgram + ".options: 1 for 6 steps"});
  CHECK(program_faults([](Program& p) {
          p.options.resize(6);
          p.options[kConv1] = {{"", 1}, {"conv_baked", std::numeric_limits<double>::infinity()}};
        }) == Faults{kProgram + ".options: '' is not printable text",
                     kProgram + ".options: the time of conv_baked is not finite"});
  // The plan's own rules are those of verify(Program).
  CHECK(program_faults([](Program& p) { p.plan.steps[kFc].after = {kLeft}; }) ==
        Faults{kProgram + ".plan: step 2 (right) writes bytes of buffer 5 (concat) that step 3 (fc) reads; neither "
                          "waits for the other",
               kProgram + ".plan: step 3 (fc) reads bytes of buffer 5 (concat) that no step it waits for has written"});
  CHECK(program_faults([](Program& p) { p.plan.buffers[kA].element = ElementType::f16; }).size() == 1);
}

TEST_CASE("network record: a buffer holds what its layout is for, and what kernels take") {
  // As two halves to a word the bytes would be right.
  CHECK(program_faults([](Program& p) {
          Buffer& t = p.plan.buffers[kT];
          t.element = ElementType::f16;
          t.shape = {2 * kSampleFeatures};
        }) == Faults{kProgram + ".plan: buffer 6 (t) holds f16 in nchw: n2chw holds halves, the others float32"});
  const std::string halves = " lies in n2chw as f16, and the kernel takes nchw as f32";
  const Faults faults = program_faults([](Program& p) {
    Buffer& a = p.plan.buffers[kA];
    a.element = ElementType::f16;
    a.layout = TensorLayout::n2chw;
    a.bytes /= p.plan.batch;
  });
  CHECK(std::ranges::any_of(faults, [&](const std::string& fault) { return fault.ends_with(halves); }));
}

TEST_CASE("network record: what a layer's kernel takes lies where the step has it") {
  const std::string conv1 = kProgram + ".kernels[0]: ", left = kProgram + ".kernels[1]: ";
  const std::string right = kProgram + ".kernels[2]: ";
  // Another kernel's images.
  CHECK(program_faults([](Program& p) { p.kernels[kLeft] = "conv1_b2"; }) ==
        Faults{left + "its input has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 6272, 6272 apart",
               left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(program_faults([](Program& p) { p.kernels[kLeft] = "right_b2"; }) ==
        Faults{left + "its step reads 1 tensors, and the kernel takes others"});
  CHECK(program_faults([](Program& p) { p.kernels[kRight] = "left_b2"; }) ==
        Faults{right + "its step reads 2 tensors, and the kernel takes others"});
  CHECK(baked_faults("left_b2", [](BakedPlan& p) { p.output_image_words = 0; }) ==
        Faults{left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(baked_faults("right_b2", [](BakedPlan& p) { p.residual_image_words = 2 * kSampleTensorWords; }) ==
        Faults{right + "its residual has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 12544, 25088 "
                       "apart"});
  CHECK(baked_faults("conv1_b2", [](BakedPlan& p) { p.output_layout = TensorLayout::nchw4; }) ==
        Faults{conv1 + "its output lies in nchw as f32, and the kernel takes nchw4 as f32"});
  CHECK(replaced_faults("right_b2", [](TemplatePlan& p) { p.output().alignment = 256; }) == Faults{});  // 12544 is one
  CHECK(program_faults([](Program& p) {
          p.plan.steps[kLeft].writes.offset = kSampleTensorWords * 4;
          p.plan.steps[kRight].writes.offset = 0;
        }) == Faults{});
  CHECK(baked_faults("conv1_b2", [](BakedPlan& p) { p.skips = ActivityMap{1, 7, 7}; }) ==
        Faults{conv1 + "is a kernel with activity maps, which networks have none of"});
  // Halves as pairs of images.
  const Faults half = kernel_faults("conv1_b2", [](Kernel& k) {
    set_plan(k, sample_plan(k.layer->shape, {.precision = Precision::fp16, .batch = 2}));
  });
  CHECK(half == Faults{conv1 + "its input lies in nchw as f32, and the kernel takes n2chw as f16",
                       conv1 + "its output lies in nchw as f32, and the kernel takes n2chw as f16"});
  // A layer with a fault of its own is reported once.
  const Faults shape = kernel_faults("conv1_b2", [](Kernel& k) { k.layer->shape.in_channels = 0; });
  CHECK(std::ranges::none_of(shape, [](const std::string& fault) { return fault.starts_with("network"); }));
}

TEST_CASE("network record: a place that its kernel's alignment does not allow") {
  // A channel of 14 x 14 floats has 784 bytes, a multiple of 16 but not of 32.
  const auto replace = [](Kernel& kernel, int alignment) {
    kernel.planned_batch = 0;
    TemplatePlan plan = sample_template("conv_any", kernel.layer->shape);
    plan.output().image_words = 2 * kSampleTensorWords;
    plan.output().alignment = alignment;
    set_plan(kernel, plan);
  };
  const auto faults = faults_after([&](Manifest& manifest) {
    for (Program& program : manifest.network->programs) {
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
    manifest.network->programs.pop_back();
    Program& plan = manifest.network->programs[0].plan;
    const std::int64_t bytes = std::int64_t{channels} * 14 * 14 * 4;
    plan.steps[kLeft].writes.run_bytes = bytes;
    plan.steps[kRight].writes.offset = bytes;
    plan.steps[kRight].writes.run_bytes = 2 * kSampleTensorWords * 4 - bytes;
    plan.steps[kRight].reads.pop_back();
    Kernel &left = kernel_of(manifest, "left_b2"), &right = kernel_of(manifest, "right_b2");
    left.layer->shape.out_channels = channels;
    replace(left, 4);
    right.layer->shape.out_channels = 32 - channels;
    right.layer->shape.epilogue.residual = false;
    replace(right, 32);
    CHECK(
        verify(manifest) ==
        Faults{kProgram +
               fmt::format(".kernels[2]: its output begins at byte {}, and the kernel takes multiples of 32", bytes)});
  }
}

TEST_CASE("network record: what an operator's kernel takes lies where the step has it") {
  const auto both = [](const std::string& text) {
    return Faults{"network.programs[0].kernels" + text, "network.programs[1].kernels" + text};
  };
  const std::string add = "operator_add";
  const std::string ten = "1 x 40 bytes, 40 apart, and the kernel takes ";
  CHECK(program_faults([](Program& p) { p.kernels[kAdd] = "operator_fc"; }) ==
        Faults{kProgram + ".kernels[4]: its input has images of " + ten + "1 x 25088, 25088 apart",
               kProgram + ".kernels[4]: its step reads 2 tensors, and the kernel takes others"});
  CHECK(program_faults([](Program& p) { p.kernels[kFc] = "operator_add"; }) ==
        Faults{kProgram + ".kernels[3]: its input has images of 1 x 25088 bytes, 25088 apart, and the kernel takes 1 x "
                          "40, 40 apart",
               kProgram + ".kernels[3]: its step reads 1 tensors, and the kernel takes others"});
  // Both of the same tensor, or none of the second.
  const Faults others = both("[4]: its step reads 2 tensors, and the kernel takes others");
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual().argument = 0; }) == others);
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual() = {.role = TensorRole::residual, .argument = 1}; }) ==
        others);
  CHECK(template_faults(add, [](TemplatePlan& p) { std::swap(p.input().argument, p.residual().argument); }) ==
        Faults{});
  CHECK(template_faults(add, [](TemplatePlan& p) { p.input().run_words = 9; }) ==
        both("[4]: its input has images of " + ten + "1 x 36, 40 apart"));
  CHECK(template_faults(add, [](TemplatePlan& p) { p.residual().image_words = 12; }) ==
        both("[4]: its residual has images of " + ten + "1 x 40, 48 apart"));
  CHECK(template_faults(add, [](TemplatePlan& p) { p.output().image_words = 11; }) ==
        both("[4]: its output has images of " + ten + "1 x 40, 44 apart"));
  CHECK(template_faults("operator_features",
                        [](TemplatePlan& p) {
                          p.output().run_words /= 2;
                          p.output().runs = 2;
                          p.output().run_pitch = p.output().run_words;
                        }) ==
        both("[5]: its output has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 2 x 6272, 12544 "
             "apart"));
}

TEST_CASE("network record: arguments that no launch has") {
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
