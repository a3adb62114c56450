// What a manifest says of a network: it survives, and what the runtime could not run does not get through.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/limits.h"
#include "test/package/sample_network.h"
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
Faults program_faults(const std::function<void(NetworkProgram&)>& edit) {
  return network_faults([&](NetworkRecord& network) { edit(network.programs[0]); });
}

// After an edit of the kernel of a convolution that the first program runs.
Faults layer_faults(const std::string& symbol, const std::function<void(KernelRecord&)>& edit) {
  return faults_after([&](Manifest& manifest) {
    for (KernelRecord& record : manifest.kernels) {
      if (record.symbol == symbol) edit(record);
    }
  });
}

enum SampleOperator { kFcRecord, kAddRecord, kCopyRecord };
Faults operator_faults(SampleOperator which, const std::function<void(OperatorRecord&)>& edit) {
  return faults_after([&](Manifest& manifest) { edit(manifest.operators[which]); });
}

std::string parse_error(const std::function<void(ordered_json&)>& edit) {
  ordered_json document = ordered_json::parse(print(network_manifest()));
  edit(document);
  return error_of([&] { parse_manifest(document.dump()); });
}

const std::string kProgram = "network.programs[0]";

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
  CHECK(document["operators"][0]["weights"] == "weights/fc");
  CHECK_FALSE(document["operators"][1].contains("weights"));
  CHECK(document["kernels"][1]["launch"]["output_image_words"] == 2 * kSampleTensorWords);
  CHECK_FALSE(document["kernels"][0]["launch"].contains("output_image_words"));
  CHECK_FALSE(ordered_json::parse(print(sample_manifest())).contains("network"));
  CHECK_FALSE(ordered_json::parse(print(sample_manifest())).contains("operators"));
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
        Faults{"manifest.json: operators[0].weights: the file 'weights/fc' is missing"});
  CHECK(package_faults([](Package& p) { p.files["weights/fc"].pop_back(); }) ==
        Faults{"manifest.json: operators[0].weights: the file 'weights/fc' has 250919 bytes, expected 250920"});
  CHECK(package_faults([](Package& p) { p.files.erase("kernels/operator_add.ptx"); }) ==
        Faults{"manifest.json: operators[1].binaries[0]: the file 'kernels/operator_add.ptx' is missing"});
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
  CHECK(error([](Manifest& m) { m.operators[0].op = ""; }).find("the operator name '' must have") != std::string::npos);
}

TEST_CASE("network record: a wrong type, a missing key or a plan that cannot be read is named by its path") {
  CHECK(parse_error([](ordered_json& json) { json["network"] = 7; }) ==
        "manifest.json: network: expected an object, found 7");
  CHECK(parse_error([](ordered_json& json) { json["network"].erase("outputs"); }) ==
        "manifest.json: network: the key \"outputs\" is missing");
  CHECK(parse_error([](ordered_json& json) { json["network"]["inputs"][1]["shape"][0] = "ten"; }) ==
        "manifest.json: network.inputs[1].shape[0]: expected an integer, found \"ten\"");
  CHECK(parse_error([](ordered_json& json) { json["network"]["programs"][1]["kernels"][2] = 3; }) ==
        "manifest.json: network.programs[1].kernels[2]: expected a string, found 3");
  CHECK(parse_error([](ordered_json& json) { json["network"]["programs"][1].erase("plan"); }) ==
        "manifest.json: network.programs[1]: the key \"plan\" is missing");
  const std::string plan = parse_error([](ordered_json& json) { json["network"]["programs"][1]["plan"][0] = "x: 1"; });
  CHECK(plan.find("manifest.json: network.programs[1].plan: network plan: ") == 0);
  const std::string constants = parse_error([](ordered_json& json) { json["operators"][2]["plan"][1] = "template"; });
  CHECK(constants.find("manifest.json: operators[2].plan: operator plan") == 0);
  CHECK(parse_error([](ordered_json& json) { json["operators"] = "none"; }) ==
        "manifest.json: operators: expected an array, found \"none\"");
  CHECK(parse_error([](ordered_json& json) { json["operators"][0]["second"] = 0.5; }) ==
        "manifest.json: operators[0].second: expected an integer, found 0.5");
  for (const char* key : {"symbol", "operator", "kind", "input", "second", "source_hash", "binaries", "plan"}) {
    CHECK(parse_error([&](ordered_json& json) { json["operators"][1].erase(key); }) ==
          fmt::format("manifest.json: operators[1]: the key \"{}\" is missing", key));
  }
}

TEST_CASE("network record: operators belong to a network") {
  CHECK(faults_after([](Manifest& m) { m.network.reset(); }) == Faults{"operators: a package of layers has none"});
  // Kernels that no program runs are fine: tools launch them by themselves.
  CHECK(faults_after([](Manifest& m) { m.network->programs.pop_back(); }) == Faults{});
}

TEST_CASE("network record: an operator's record") {
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.source_hash = ""; }) ==
        Faults{"operators[1].source_hash: is empty"});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.op = "\x01"; }) ==
        Faults{"operators[1].operator: is not printable UTF-8 text"});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.kind = ""; }) == Faults{"operators[1].kind: is empty"});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.plan.threads = 100; }) ==
        Faults{"operators[1].plan: threads is 100, whole warps of 32 are needed"});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.weights = "weights/add"; }) ==
        Faults{"operators[1].weights: the plan has 0 words of them"});
  CHECK(operator_faults(kFcRecord, [](OperatorRecord& r) { r.weights = ""; }) ==
        Faults{"operators[0].weights: the plan has 62730 words of them"});
  CHECK(operator_faults(kFcRecord, [](OperatorRecord& r) { r.weights = "../fc"; }) ==
        Faults{"operators[0].weights: '../fc' is not a relative path of plain names without '.' or '..'"});
  CHECK(operator_faults(kFcRecord, [](OperatorRecord& r) { r.binaries.clear(); }) ==
        Faults{"operators[0].binaries: is empty: there would be nothing to load"});
  CHECK(operator_faults(kFcRecord, [](OperatorRecord& r) { r.binaries[1].path = r.binaries[0].path; }) ==
        Faults{"operators[0].binaries[1].path: 'kernels/operator_fc.ptx' is named twice"});
  // Symbols are one name space, of layers and operators together; the first one of a name counts.
  const Faults twice = operator_faults(kFcRecord, [](OperatorRecord& r) { r.symbol = "conv1_b2"; });
  REQUIRE_FALSE(twice.empty());
  CHECK(twice[0] == "operators[0].symbol: 'conv1_b2' is the symbol of two kernels");
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
  CHECK(program_faults([](NetworkProgram& p) { p.kernels.pop_back(); }) ==
        Faults{kProgram + ".kernels: 5 for 6 steps"});
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kFc] = "nothing"; }) ==
        Faults{kProgram + ".kernels[3]: 'nothing' is no kernel of the package"});
  CHECK(program_faults([](NetworkProgram& p) { p.options = {{{"conv_dense", 1.5}}}; }) ==
        Faults{kProgram + ".options: 1 for 6 steps"});
  CHECK(program_faults([](NetworkProgram& p) {
          p.options.resize(6);
          p.options[kConv1] = {{"", 1}, {"conv_baked", std::numeric_limits<double>::infinity()}};
        }) == Faults{kProgram + ".options: '' is not printable text",
                     kProgram + ".options: the time of conv_baked is not finite"});
  // The plan's own rules are those of verify(NetworkPlan).
  CHECK(program_faults([](NetworkProgram& p) { p.plan.steps[kFc].after = {kLeft}; }) ==
        Faults{kProgram + ".plan: step 2 (right) writes bytes of buffer 5 (concat) that step 3 (fc) reads; neither "
                          "waits for the other",
               kProgram + ".plan: step 3 (fc) reads bytes of buffer 5 (concat) that no step it waits for has written"});
  CHECK(program_faults([](NetworkProgram& p) { p.plan.buffers[kA].element = ElementType::f16; }).size() == 1);
}

TEST_CASE("network record: buffers hold float32") {
  // As two halves to a word the bytes would be right.
  const Faults faults = program_faults([](NetworkProgram& p) {
    Buffer& t = p.plan.buffers[kT];
    t.element = ElementType::f16;
    t.shape = {2 * kSampleFeatures};
  });
  CHECK(faults == Faults{kProgram + ".plan: buffer 6: holds no float32 values"});
}

TEST_CASE("network record: what a layer's kernel takes lies where the step has it") {
  const std::string conv1 = kProgram + ".kernels[0]: ", left = kProgram + ".kernels[1]: ";
  const std::string right = kProgram + ".kernels[2]: ";
  // Another kernel's images.
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kLeft] = "conv1_b2"; }) ==
        Faults{left + "its input has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 6272, 6272 apart",
               left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kLeft] = "right_b2"; }) ==
        Faults{left + "its step reads 1 tensors"});
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kRight] = "left_b2"; }) ==
        Faults{right + "its step reads 2 tensors"});
  CHECK(layer_faults("left_b2", [](KernelRecord& r) { r.launch.output_image_words = 0; }) ==
        Faults{left + "its output has images of 1 x 12544 bytes, 25088 apart, and the kernel takes 1 x 12544, 12544 "
                      "apart"});
  CHECK(layer_faults("right_b2", [](KernelRecord& r) { r.launch.residual_image_words = 2 * kSampleTensorWords; }) ==
        Faults{right + "its residual has images of 1 x 12544 bytes, 12544 apart, and the kernel takes 1 x 12544, 25088 "
                       "apart"});
  CHECK(layer_faults("conv1_b2", [](KernelRecord& r) {
          r.launch.output_layout = TensorLayout::nchw4;
          r.launch.output_alignment = 16;
        }) == Faults{conv1 + "its output lies in nchw, and the kernel takes nchw4"});
  CHECK(layer_faults("right_b2", [](KernelRecord& r) { r.launch.output_alignment = 256; }) ==
        Faults{});  // 12544 is one
  CHECK(program_faults([](NetworkProgram& p) {
          p.plan.steps[kLeft].writes.offset = kSampleTensorWords * 4;
          p.plan.steps[kRight].writes.offset = 0;
        }) == Faults{});
  CHECK(layer_faults("conv1_b2", [](KernelRecord& r) { r.launch.input_activity = ActivityMap{1, 7, 7}; }) ==
        Faults{conv1 + "is a kernel of half precision or with activity maps, which networks have none of"});
  const Faults half = layer_faults("conv1_b2", [](KernelRecord& r) {
    r.precision = "fp16";
    r.launch.input_element = r.launch.output_element = ElementType::f16;
    r.launch.input_layout = r.launch.output_layout = TensorLayout::n2chw;
    r.launch.tile_images = 2;
  });
  REQUIRE(half.size() == 3);
  CHECK(half[0] == conv1 + "is a kernel of half precision or with activity maps, which networks have none of");
  CHECK(half[1] == conv1 + "its input lies in nchw, and the kernel takes n2chw");
  // A layer with a fault of its own is reported once.
  const Faults shape = layer_faults("conv1_b2", [](KernelRecord& r) { r.shape.in_channels = 0; });
  CHECK(std::ranges::none_of(shape, [](const std::string& fault) { return fault.starts_with("network"); }));
}

TEST_CASE("network record: a place that its kernel's alignment does not allow") {
  // A channel of 14 x 14 floats has 784 bytes, a multiple of 16 but not of 32.
  const auto faults = faults_after([](Manifest& manifest) {
    for (NetworkProgram& program : manifest.network->programs) {
      program.plan.steps[kLeft].writes.offset = kSampleTensorWords * 4;
      program.plan.steps[kRight].writes.offset = 0;
    }
    for (KernelRecord& record : manifest.kernels) {
      if (record.layer == "left") record.launch.output_alignment = 256;
    }
  });
  CHECK(faults == Faults{});  // 12544 is 49 x 256
  for (const int channels : {15, 17}) {
    INFO(channels);
    // left writes 15 or 17 channels, right what is left of 32: its slice begins at an odd channel.
    Manifest manifest = network_manifest();
    manifest.network->programs.pop_back();
    NetworkPlan& plan = manifest.network->programs[0].plan;
    const std::int64_t bytes = std::int64_t{channels} * 14 * 14 * 4;
    plan.steps[kLeft].writes.run_bytes = bytes;
    plan.steps[kRight].writes.offset = bytes;
    plan.steps[kRight].writes.run_bytes = 2 * kSampleTensorWords * 4 - bytes;
    plan.steps[kRight].reads.pop_back();
    for (KernelRecord& record : manifest.kernels) {
      if (record.symbol == "left_b2") record.shape.out_channels = channels;
      if (record.symbol != "right_b2") continue;
      record.shape.out_channels = 32 - channels;
      record.shape.epilogue.residual = false;
      record.launch.output_alignment = 32;
    }
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
  const std::string elsewhere = " lies elsewhere than where the kernel takes it";
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kAdd] = "operator_fc"; }) ==
        Faults{kProgram + ".kernels[4]: its input" + elsewhere});
  CHECK(program_faults([](NetworkProgram& p) { p.kernels[kFc] = "operator_add"; }) ==
        Faults{kProgram + ".kernels[3]: its step reads 1 tensors, and the kernel takes others"});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.second = 2; }) ==
        both("[4]: its step reads 2 tensors, and the kernel takes others"));
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.second = -1; }) ==
        both("[4]: its step reads 2 tensors, and the kernel takes others"));
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.input = -1; }) ==
        both("[4]: its step reads 2 tensors, and the kernel takes others"));
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { std::swap(r.input, r.second); }) == Faults{});
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.plan.input.run_words = 9; }) ==
        both("[4]: its input" + elsewhere));
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) { r.plan.second.image_words = 12; }) ==
        both("[4]: its second input" + elsewhere));
  CHECK(operator_faults(kAddRecord, [](OperatorRecord& r) {
          r.plan.output.offset = 1;
          r.plan.output.image_words = 11;
        }) == both("[4]: its output" + elsewhere));
  CHECK(operator_faults(kCopyRecord, [](OperatorRecord& r) {
          r.plan.output.run_words /= 2;
          r.plan.output.runs = 2;
          r.plan.output.run_pitch = r.plan.output.run_words;
        }) == both("[5]: its output" + elsewhere));
}
