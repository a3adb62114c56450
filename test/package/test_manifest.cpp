#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/limits.h"
#include "test/package/samples.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;
using burin_test::sample_manifest;
using nlohmann::ordered_json;

namespace {

// The sample manifest's JSON after an edit.
template <typename Edit>
std::string edited(Edit edit) {
  ordered_json document = ordered_json::parse(print(sample_manifest()));
  edit(document);
  return document.dump();
}

template <typename Edit>
std::string parse_error(Edit edit) {
  const std::string text = edited(edit);
  return error_of([&] { parse_manifest(text); });
}

// The only fault of the sample manifest after an edit.
template <typename Edit>
std::string fault(Edit edit) {
  Manifest manifest = sample_manifest();
  edit(manifest);
  const std::vector<std::string> faults = verify(manifest);
  CAPTURE(faults);
  CHECK(faults.size() == 1);
  return faults.empty() ? "" : faults.front();
}

}  // namespace

TEST_CASE("manifest: round trip") {
  const Manifest manifest = sample_manifest();
  CHECK(verify(manifest).empty());
  const std::string text = print(manifest);
  CHECK(parse_manifest(text) == manifest);
  CHECK(print(parse_manifest(text)) == text);
  CHECK(parse_manifest(print(Manifest{})) == Manifest{});
}

TEST_CASE("manifest: keys stand in a fixed order and plans can be read line by line") {
  const std::string text = print(sample_manifest());
  std::size_t last = 0;
  for (const char* key : {"\"format_version\"", "\"tool_version\"", "\"source\"", "\"zero_threshold\"", "\"kernels\"",
                          "\"symbol\"", "\"shape\"", "\"launch\"", "\"binaries\"", "\"plan\"", "\"tensors\""}) {
    INFO(key);
    const std::size_t position = text.find(key, last);
    REQUIRE(position != text.npos);
    last = position;
  }
  CHECK(text.find("\"# a comment\",\n") != text.npos);
  CHECK(text.find("\"leaky_slope\": 0.1\n") != text.npos);  // the shortest form that gives the float back
}

TEST_CASE("manifest: text of any shape survives") {
  for (const std::string plan : {"", "\n", "a", "a\n", "\n\na\n\n", "tab\there \"quoted\" \\ \xc3\xa9"}) {
    Manifest manifest = sample_manifest();
    manifest.kernels[0].plan = plan;
    CHECK(parse_manifest(print(manifest)).kernels[0].plan == plan);
  }
}

TEST_CASE("manifest: numbers survive exactly") {
  Manifest manifest = sample_manifest();
  for (const float slope :
       {0.0F, 0.2F, 1.0F / 3, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}) {
    manifest.kernels[0].shape.epilogue.leaky_slope = slope;
    manifest.kernels[0].predicted_us = static_cast<double>(slope) / 3;
    manifest.kernels[0].binaries[1].code_bytes = std::numeric_limits<std::int64_t>::max();
    CHECK(parse_manifest(print(manifest)) == manifest);
  }
}

TEST_CASE("manifest: unknown keys are ignored") {
  const std::string text = edited([](ordered_json& json) {
    json["from_the_future"] = {1, 2, 3};
    json["kernels"][0]["colour"] = "blue";
    json["kernels"][0]["launch"]["clusters"] = 2;
    json["kernels"][0]["shape"]["depth"] = nullptr;
    json["kernels"][0]["binaries"][0]["signature"] = {{"by", "nobody"}};
    json["tensors"][0]["dtype"] = "f32";
  });
  CHECK(parse_manifest(text) == sample_manifest());
}

TEST_CASE("manifest: an unknown version is one clear error") {
  CHECK(parse_error([](ordered_json& json) { json = {{"format_version", 5}}; }) ==
        "manifest.json: format_version: 5 is not one this burin (" BURIN_VERSION
        ") reads: it reads 4. A newer burin wrote the package");
  for (const int old : {1, 2, 3}) {
    CHECK(parse_error([&](ordered_json& json) { json["format_version"] = old; }) ==
          fmt::format("manifest.json: format_version: {} is not one this burin (" BURIN_VERSION
                      ") reads: it reads 4. Compile the layers again",
                      old));
  }
  Manifest manifest = sample_manifest();
  manifest.format_version = 7;
  CHECK(verify(manifest) == std::vector<std::string>{"format_version: 7 is not one this burin knows (4)"});
}

TEST_CASE("manifest: a wrong type is named by its path") {
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["launch"]["threads"] = "many"; }) ==
        "manifest.json: kernels[1].launch.threads: expected an integer, found \"many\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["launch"]["threads"] = 1.5; }) ==
        "manifest.json: kernels[1].launch.threads: expected an integer, found 1.5");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["shape"]["bias"] = 1; }) ==
        "manifest.json: kernels[0].shape.bias: expected true or false, found 1");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["plan"] = "text"; }) ==
        "manifest.json: kernels[0].plan: expected an array, found \"text\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["plan"][1] = ordered_json::array(); }) ==
        "manifest.json: kernels[0].plan[1]: expected a string, found an array");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["binaries"][2] = nullptr; }) ==
        "manifest.json: kernels[0].binaries[2]: expected an object, found null");
  CHECK(parse_error([](ordered_json& json) { json["zero_threshold"] = "0"; }) ==
        "manifest.json: zero_threshold: expected a number, found \"0\"");
  CHECK(parse_error([](ordered_json& json) { json = ordered_json::array(); }) ==
        "manifest.json: expected an object, found an array");
}

TEST_CASE("manifest: every key is needed") {
  const std::vector<const char*> optional = {"arch", "registers", "spill_bytes", "stack_bytes", "code_bytes"};
  const ordered_json whole = ordered_json::parse(print(sample_manifest()));
  const ordered_json leaves = whole.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    ordered_json document = whole;
    const ordered_json::json_pointer path(pointer);
    if (!document[path.parent_pointer()].is_object()) continue;
    document[path.parent_pointer()].erase(path.back());
    INFO(pointer);
    const bool may_miss = std::find(optional.begin(), optional.end(), path.back()) != optional.end();
    const std::string error = error_of([&] { parse_manifest(document.dump()); });
    if (may_miss) {
      CHECK(error == "no error");
    } else {
      CHECK(error.find("the key \"" + path.back() + "\" is missing") != error.npos);
    }
  }
}

TEST_CASE("manifest: hostile numbers in the JSON") {
  const auto with_threads = [](const std::string& number) {
    std::string text = print(sample_manifest());
    const std::string key = "\"threads\": ";
    const std::size_t begin = text.find(key) + key.size();
    text.replace(begin, text.find(',', begin) - begin, number);
    return error_of([&] { parse_manifest(text); });
  };
  const std::string path = "manifest.json: kernels[0].launch.threads: ";
  CHECK(with_threads("2147483648") == path + "2147483648 is over 2147483647");
  CHECK(with_threads("-2147483649") == path + "-2147483649 is under -2147483648");
  CHECK(with_threads("18446744073709551615") == path + "18446744073709551615 is over 2147483647");
  CHECK(with_threads("-9223372036854775808") == path + "-9223372036854775808 is under -2147483648");
  // beyond 64 bits nlohmann takes a number for a float
  CHECK(with_threads("99999999999999999999999").find(path + "expected an integer") == 0);
  CHECK(with_threads("1e3").find(path + "expected an integer") == 0);
  CHECK(with_threads("1e999").find("manifest.json: ") == 0);
  CHECK(with_threads("NaN").find("manifest.json: not valid JSON: parse error at line") == 0);
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["shape"]["leaky_slope"] = 1e300; }) ==
        "manifest.json: kernels[0].shape.leaky_slope: 1e+300 does not fit into a float32");
}

TEST_CASE("manifest: unknown words are named with those that are known") {
  const std::string activation =
      parse_error([](ordered_json& json) { json["kernels"][0]["shape"]["activation"] = "swish\n"; });
  CHECK(activation ==
        "manifest.json: kernels[0].shape.activation: 'swish\\x0a' is not an activation this burin knows (" +
            activation_names() + ")");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["binaries"][0]["kind"] = "exe"; }) ==
        "manifest.json: kernels[0].binaries[0].kind: 'exe' is none of ptx, cubin, bitcode");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["launch"]["input_layout"] = "nhwc\n"; }) ==
        "manifest.json: kernels[1].launch.input_layout: 'nhwc\\x0a' is not a tensor layout this burin knows (" +
            tensor_layout_names() + ")");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["launch"]["output_layout"] = 4; }) ==
        "manifest.json: kernels[1].launch.output_layout: expected a string, found 4");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["launch"]["input_element"] = "f64\n"; }) ==
        "manifest.json: kernels[0].launch.input_element: 'f64\\x0a' is not an element type this burin knows (f32, f16, "
        "bf16)");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["launch"]["output_element"] = nullptr; }) ==
        "manifest.json: kernels[0].launch.output_element: expected a string, found null");
}

TEST_CASE("manifest: what is not JSON is refused with line and column") {
  CHECK(error_of([] { parse_manifest(""); }).find("manifest.json: not valid JSON: parse error at line 1") == 0);
  CHECK(error_of([] {
          parse_manifest("{\n\"a\": }");
        }).find("manifest.json: not valid JSON: parse error at line 2, column 6") == 0);
  CHECK(error_of([] { parse_manifest("{} trailing"); }).find("manifest.json: not valid JSON: parse error") == 0);
  CHECK(error_of([] { parse_manifest("{\"\xff\": 1}"); }).find("manifest.json: not valid JSON: parse error") == 0);
  CHECK(error_of([] { parse_manifest("{\"format_version\": 4, \"format_version\": 4}"); }) ==
        "manifest.json: the key 'format_version' stands twice in one object");
  CHECK(error_of([] { parse_manifest(std::string(1'000'000, '[')); }) ==
        "manifest.json: is nested deeper than 16 levels");
}

TEST_CASE("manifest: long arrays take linear time, and there is an end to them") {
  Manifest manifest = sample_manifest();
  for (int i = 0; i < 50'000; ++i) manifest.tensors.push_back(manifest.tensors[0]);
  CHECK(parse_manifest(print(manifest)).tensors.size() == manifest.tensors.size());
  std::string text = "{\"format_version\": 4, \"x\": [";
  for (int i = 0; i < 4'000'000; ++i) text += "1,";
  CHECK(error_of([&] { parse_manifest(text + "1]}"); }) == "manifest.json: has more than 4000000 values");
  CHECK(error_of([&] { parse_manifest(std::string(kMaxManifestBytes + 1, ' ')); }) ==
        "manifest.json: 67108865 bytes are over 67108864");
}

TEST_CASE("manifest: a faulty manifest can still be printed") {
  Manifest manifest = sample_manifest();
  manifest.kernels[0].layer = std::string(1, '\xff');
  manifest.kernels[0].predicted_us = std::numeric_limits<double>::quiet_NaN();
  CHECK(print(manifest).find("\xef\xbf\xbd") != std::string::npos);  // U+FFFD
  CHECK(verify(manifest).size() == 2);
}

TEST_CASE("manifest: launch limits") {
  const auto launch = [](auto edit) { return fault([&](Manifest& m) { edit(m.kernels[1].launch); }); };
  CHECK(launch([](LaunchGeometry& l) { l.threads = 1056; }) == "kernels[1].launch.threads: 1056 is over 1024");
  CHECK(launch([](LaunchGeometry& l) { l.threads = 0; }) == "kernels[1].launch.threads: 0 is under 32");
  CHECK(launch([](LaunchGeometry& l) { l.threads = -32; }) == "kernels[1].launch.threads: -32 is under 32");
  CHECK(launch([](LaunchGeometry& l) { l.threads = 100; }) ==
        "kernels[1].launch.threads: 100 is not a multiple of 32: a block is whole warps");
  CHECK(launch([](LaunchGeometry& l) { l.shared_bytes = 232'449; }) ==
        "kernels[1].launch.shared_bytes: 232449 is over 232448");
  CHECK(launch([](LaunchGeometry& l) { l.shared_bytes = -1; }) == "kernels[1].launch.shared_bytes: -1 is under 0");
  CHECK(launch([](LaunchGeometry& l) { l.slices = 0; }) == "kernels[1].launch.slices: 0 is under 1");
  CHECK(launch([](LaunchGeometry& l) { l.slices = 65'536; }) == "kernels[1].launch.slices: 65536 is over 65535");
  CHECK(launch([](LaunchGeometry& l) { l.tile_images = 0; }) == "kernels[1].launch.tile_images: 0 is under 1");
  CHECK(launch([](LaunchGeometry& l) { l.tiles_per_image = 0; }) == "kernels[1].launch.tiles_per_image: 0 is under 1");
  CHECK(launch([](LaunchGeometry& l) { l.cluster_tiles = 0; }) == "kernels[1].launch.cluster_tiles: 0 is under 1");
  CHECK(launch([](LaunchGeometry& l) { l.cluster_tiles = 9; }) == "kernels[1].launch.cluster_tiles: 9 is over 8");
  CHECK(launch([](LaunchGeometry& l) { l.tiles_per_image = 197; }) ==
        "kernels[1].launch.tiles_per_image: 197 is over the 196 output pixels of an image: a tile would be empty");
  CHECK(launch([](LaunchGeometry& l) { l.workspace_bytes_per_tile = -4; }) ==
        "kernels[1].launch.workspace_bytes_per_tile: -4 is under 0");
  CHECK(launch([](LaunchGeometry& l) { l.workspace_bytes_per_tile = 5; }) ==
        "kernels[1].launch.workspace_bytes_per_tile: 5 is not a multiple of 4: partial sums are float32");
  CHECK(launch([](LaunchGeometry& l) { l.workspace_bytes_per_tile = (std::int64_t{1} << 40) + 4; }) ==
        "kernels[1].launch.workspace_bytes_per_tile: 1099511627780 is over 1099511627776");
  CHECK(launch([](LaunchGeometry& l) { l.workspace_bytes_per_tile = std::int64_t{1} << 36; }) ==
        "kernels[1].launch: 32 tiles of 68719476736 bytes of workspace are over 1099511627776 bytes");
  CHECK(launch([](LaunchGeometry& l) { l.counters_per_tile = -1; }) ==
        "kernels[1].launch.counters_per_tile: -1 is under 0");
  CHECK(launch([](LaunchGeometry& l) { l.counters_per_tile = 65'536; }) ==
        "kernels[1].launch.counters_per_tile: 65536 is over 65535");
}

namespace {

// The types whose values fill the layout's words.
std::vector<ElementType> elements_in(TensorLayout layout) {
  if (images_together(layout) == 1) return {ElementType::f32};
  return {ElementType::f16, ElementType::bf16};
}

const char* precision_of(ElementType element) {
  return element == ElementType::f32 ? "fp32" : element == ElementType::f16 ? "fp16x2" : "bf16";
}

}  // namespace

TEST_CASE("manifest: element types, layouts and alignments survive") {
  for (const TensorLayout input : kTensorLayouts) {
    for (const TensorLayout output : kTensorLayouts) {
      for (const ElementType read : elements_in(input)) {
        for (const ElementType written : elements_in(output)) {
          Manifest manifest = sample_manifest();
          manifest.kernels[1].precision = precision_of(read);
          LaunchGeometry& launch = manifest.kernels[1].launch;
          launch.input_element = read;
          launch.output_element = written;
          launch.input_layout = input;
          launch.output_layout = output;
          launch.tile_images = 2;
          launch.input_alignment = 256;
          launch.output_alignment = 32;
          CHECK(verify(manifest) == std::vector<std::string>{});
          CHECK(parse_manifest(print(manifest)) == manifest);
        }
      }
    }
  }
}

TEST_CASE("manifest: an element type must fill the words of its layout") {
  const auto kernel = [](auto edit) { return fault([&](Manifest& m) { edit(m.kernels[1]); }); };
  CHECK(
      kernel([](KernelRecord& k) { k.launch.output_element = ElementType::bf16; }) ==
      "kernels[1].launch.output_element: bf16 does not lie in nchw: 2 values of its type to a word of 4 bytes, 1 image "
      "of the layout");
  CHECK(kernel([](KernelRecord& k) {
          k.launch.output_layout = TensorLayout::n2chw;
          k.launch.tile_images = 2;
        }) ==
        "kernels[1].launch.output_element: f32 does not lie in n2chw: 1 value of its type to a word of 4 bytes, 2 "
        "images of the layout");
  CHECK(kernel([](KernelRecord& k) {
          k.precision = "fp16";
          k.launch.input_element = ElementType::f16;
          k.launch.tile_images = 2;
        }) ==
        "kernels[1].launch.input_element: f16 does not lie in nchw: 2 values of its type to a word of 4 bytes, 1 "
        "image of the layout");
}

TEST_CASE("manifest: pairs of images stay together") {
  const auto kernel = [](auto edit) {
    return fault([&](Manifest& m) {
      KernelRecord& k = m.kernels[1];
      k.precision = "bf16";
      k.launch.input_element = k.launch.output_element = ElementType::bf16;
      k.launch.input_layout = k.launch.output_layout = TensorLayout::n2chw;
      k.launch.tile_images = 2;
      edit(k);
    });
  };
  for (const int images : {1, 3, kMaxBatch - 1}) {
    CHECK(kernel([&](KernelRecord& k) { k.launch.tile_images = images; }) ==
          fmt::format("kernels[1].launch.tile_images: {} is not a multiple of 2: that many images share each word",
                      images));
  }
  CHECK(kernel([](KernelRecord& k) { k.launch.input_alignment = 2; }) ==
        "kernels[1].launch.input_alignment: 2 is under 4");
}

TEST_CASE("manifest: the precision is a known one, and of the tensors' type") {
  const auto kernel = [](auto edit) { return fault([&](Manifest& m) { edit(m.kernels[0]); }); };
  CHECK(kernel([](KernelRecord& k) { k.precision = "fp8\n"; }) ==
        "kernels[0].precision: 'fp8\\x0a' is not a precision this burin knows (fp32, fp16, bf16, fp16x2)");
  CHECK(kernel([](KernelRecord& k) { k.precision = ""; }).find("kernels[0].precision: '' is not a precision") == 0);
  CHECK(kernel([](KernelRecord& k) { k.precision = std::string(1 << 20, 'x'); }).find("kernels[0].precision: '") == 0);
  CHECK(kernel([](KernelRecord& k) { k.precision = "fp16x2"; }) ==
        "kernels[0].launch.input_element: f32 is not what fp16x2 kernels read: f16");
}

TEST_CASE("manifest: alignments that cannot be") {
  const auto launch = [](auto edit) { return fault([&](Manifest& m) { edit(m.kernels[1].launch); }); };
  CHECK(launch([](LaunchGeometry& l) { l.input_alignment = 0; }) == "kernels[1].launch.input_alignment: 0 is under 4");
  CHECK(launch([](LaunchGeometry& l) { l.input_alignment = -16; }) ==
        "kernels[1].launch.input_alignment: -16 is under 4");
  CHECK(launch([](LaunchGeometry& l) { l.input_alignment = 512; }) ==
        "kernels[1].launch.input_alignment: 512 is over 256");
  CHECK(launch([](LaunchGeometry& l) { l.output_alignment = 24; }) ==
        "kernels[1].launch.output_alignment: 24 is not a power of two");
  CHECK(launch([](LaunchGeometry& l) { l.input_layout = TensorLayout::nchw4; }) ==
        "kernels[1].launch.input_alignment: 4 is under 16: 4 channels of a pixel are read or written at once in nchw4");
  CHECK(
      launch([](LaunchGeometry& l) {
        l.output_layout = TensorLayout::nchw4;
        l.output_alignment = 8;
      }) ==
      "kernels[1].launch.output_alignment: 8 is under 16: 4 channels of a pixel are read or written at once in nchw4");
}

TEST_CASE("manifest: an image that only its filling makes too large") {
  Manifest manifest = sample_manifest();
  KernelRecord& kernel = manifest.kernels[1];
  kernel.shape = ConvShape{};
  kernel.shape.in_h = kernel.shape.in_w = 16'384;
  kernel.nonzeros = 1;
  kernel.dead_inputs = kernel.dead_outputs = 0;
  CHECK(verify(manifest).empty());
  kernel.launch.input_layout = TensorLayout::nchw4;
  kernel.launch.input_alignment = 16;
  CHECK(verify(manifest) ==
        std::vector<std::string>{"kernels[1].launch.input_layout: an image in nchw4 is over 2147483647 bytes"});
}

TEST_CASE("manifest: the grid of the largest batch and image does not overflow") {
  Manifest manifest = sample_manifest();
  KernelRecord& kernel = manifest.kernels[1];
  kernel.shape = ConvShape{};
  kernel.shape.in_h = kernel.shape.in_w = 16'384;
  kernel.nonzeros = 1;
  kernel.dead_inputs = kernel.dead_outputs = 0;
  REQUIRE(verify(kernel.shape).empty());
  kernel.planned_batch = kMaxBatch;
  kernel.launch.tiles_per_image = 16'384 * 16'384;
  kernel.launch.workspace_bytes_per_tile = kMaxWorkspaceBytes;
  CHECK(verify(manifest) == std::vector<std::string>{"kernels[1].launch: 281474976710656 tiles at batch 1048576 are "
                                                     "over 2147483647, the most blocks of a grid"});
  kernel.planned_batch = 4;  // 2^30 tiles of 2^40 bytes
  CHECK(verify(manifest).size() == 1);
}

TEST_CASE("manifest: names and paths") {
  CHECK(fault([](Manifest& m) { m.kernels[0].symbol = ""; }) ==
        "kernels[0].symbol: '' is not a symbol: [A-Za-z_][A-Za-z0-9_]*, at most 1024 bytes");
  CHECK(fault([](Manifest& m) { m.kernels[1].symbol = m.kernels[0].symbol; }) ==
        "kernels[1].symbol: 'burin_3_b1' is the symbol of two kernels");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer = ""; }) == "kernels[0].layer: is empty");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer = std::string(513, 'x'); }) ==
        "kernels[0].layer: 513 bytes are over 512");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer = "a\nb"; }) == "kernels[0].layer: is not printable UTF-8 text");
  CHECK(fault([](Manifest& m) { m.kernels[0].plan = "\xff"; }) == "kernels[0].plan: is not UTF-8 text");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[0].path = "../../etc/passwd"; }) ==
        "kernels[0].binaries[0].path: '../../etc/passwd' is not a relative path of plain names without '.' or '..'");
  CHECK(fault([](Manifest& m) { m.tensors[0].path = "/t"; }) ==
        "tensors[0].path: '/t' is not a relative path of plain names without '.' or '..'");
  CHECK(fault([](Manifest& m) { m.tensors[0].path = m.kernels[0].binaries[0].path; }) ==
        "tensors[0].path: 'kernels/burin_3_b1.ptx' is named twice");
  CHECK(fault([](Manifest& m) { m.tensors[1].name = m.tensors[0].name; }) ==
        "tensors[1].name: 'fc.weight' is the name of two tensors");
}

TEST_CASE("manifest: kernels and their binaries") {
  CHECK(fault([](Manifest& m) { m.kernels[0].shape.stride_h = 0; }).find("kernels[0].shape: ") == 0);
  CHECK(fault([](Manifest& m) { m.kernels[0].nonzeros = 8 * 8 * 9 + 1; }) == "kernels[0].nonzeros: 577 is over 576");
  CHECK(fault([](Manifest& m) { m.kernels[0].nonzeros = -1; }) == "kernels[0].nonzeros: -1 is under 0");
  CHECK(fault([](Manifest& m) { m.kernels[0].dead_inputs = 9; }) == "kernels[0].dead_inputs: 9 is over 8");
  CHECK(fault([](Manifest& m) { m.kernels[0].planned_batch = 0; }) == "kernels[0].planned_batch: 0 is under 1");
  CHECK(fault([](Manifest& m) { m.kernels[0].predicted_us = -1; }) ==
        "kernels[0].predicted_us: -1 is not a finite number from 0 up");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries.clear(); }) ==
        "kernels[0].binaries: is empty: there would be nothing to load");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[1].arch = ""; }) ==
        "kernels[0].binaries[1].arch: '' is not the name of an architecture, such as sm_90");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[2].arch = "sm_90"; }) ==
        "kernels[0].binaries[2].arch: 'sm_90': bitcode is for no architecture");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[0].registers = 9; }) ==
        "kernels[0].binaries[0]: carries an assembler's report, which only a cubin has");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[1].registers = 256; }) ==
        "kernels[0].binaries[1].registers: 256 is over 255");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[1].bytes = 0; }) == "kernels[0].binaries[1].bytes: 0 is under 1");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[1].bytes = kMaxPackageEntryBytes + 1; }) ==
        "kernels[0].binaries[1].bytes: 536870913 is over 536870912");
  CHECK(fault([](Manifest& m) {
          m.kernels[0].binaries.push_back(m.kernels[0].binaries[1]);
          m.kernels[0].binaries.back().path += "2";
        }) == "kernels[0].binaries[3]: is of the same kind and architecture as one before it");
}

TEST_CASE("manifest: tensor shapes") {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::vector<std::int64_t>> bad = {{-1},
                                                      {2, -3},
                                                      {huge},
                                                      {huge, huge},
                                                      {0, huge, huge},
                                                      {kMaxPackageEntryBytes / 4 + 1},
                                                      std::vector<std::int64_t>(kMaxTensorRank + 1, 1)};
  for (const std::vector<std::int64_t>& shape : bad) {
    CHECK(fault([&](Manifest& m) { m.tensors[0].shape = shape; }).find("tensors[0].shape: [") == 0);
  }
}

TEST_CASE("manifest: pools survive, and are left out where there are none") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("\"pool\"") == std::string::npos);
  manifest.kernels[0].shape.epilogue.pool = Pool{.kind = PoolKind::average,
                                                 .kernel_h = 3,
                                                 .kernel_w = 2,
                                                 .stride_w = 2,
                                                 .pad = {0, 1, 1, 0},
                                                 .round_up = true,
                                                 .count_padding = true};
  CHECK(parse_manifest(print(manifest)) == manifest);
  ordered_json document = ordered_json::parse(print(manifest));
  document["kernels"][0]["shape"]["pool"]["kind"] = "median";
  CHECK(error_of([&] { parse_manifest(document.dump()); }).find("'median' is not a pool this burin knows") !=
        std::string::npos);
}

TEST_CASE("manifest: activity maps survive, and are left out where there are none") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("activity\"") == std::string::npos);
  LaunchGeometry& launch = manifest.kernels[0].launch;
  const ConvShape& shape = manifest.kernels[0].shape;
  launch.input_activity = ActivityMap{3, 2, 1};
  launch.output_activity = ActivityMap{launch.tile_images, shape.out_h(), shape.out_w()};
  launch.tiles_per_image = 1;
  CHECK(verify(manifest).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  launch.output_activity.reset();
  CHECK(parse_manifest(print(manifest)) == manifest);
}

TEST_CASE("manifest: activity maps that cannot be") {
  const auto map_fault = [](auto edit) {
    return fault([&](Manifest& manifest) {
      LaunchGeometry& launch = manifest.kernels[0].launch;
      const ConvShape& shape = manifest.kernels[0].shape;
      launch.tiles_per_image = 1;
      launch.input_activity = ActivityMap{1, 1, 1};
      launch.output_activity = ActivityMap{launch.tile_images, shape.out_h(), shape.out_w()};
      edit(launch, manifest.kernels[0]);
    });
  };
  CHECK(map_fault([](LaunchGeometry& launch, KernelRecord&) {
          launch.input_activity->images = 0;
        }).starts_with("kernels[0].launch.input_activity: map: cell images is 0, allowed is 1 to"));
  CHECK(map_fault([](LaunchGeometry& launch, KernelRecord&) {
          launch.input_activity->rows = -1;
        }).starts_with("kernels[0].launch.input_activity: map: cell rows is -1"));
  CHECK(map_fault([](LaunchGeometry& launch, KernelRecord&) {
          launch.input_activity->cols = std::numeric_limits<int>::max();
        }).starts_with("kernels[0].launch.input_activity: map: cell columns is 2147483647"));
  CHECK(map_fault([](LaunchGeometry& launch, KernelRecord&) {
          launch.output_activity->images += 1;
        }).starts_with("kernels[0].launch.output_activity: cells of"));
  CHECK(map_fault([](LaunchGeometry& launch, KernelRecord&) {
          launch.output_activity->rows = 1;
        }).starts_with("kernels[0].launch.output_activity: cells of"));
  CHECK(parse_error([](ordered_json& json) {
          json["kernels"][0]["launch"]["input_activity"] = 7;
        }).find("input_activity: expected an object, found 7") != std::string::npos);
  CHECK(parse_error([](ordered_json& json) {
          json["kernels"][0]["launch"]["output_activity"] = {{"images", 1}, {"rows", 1}};
        }).find("cols") != std::string::npos);
}

TEST_CASE("manifest: an activity map of a half tensor keeps pairs of images together") {
  CHECK(fault([](Manifest& manifest) {
          KernelRecord& kernel = manifest.kernels[0];
          kernel.precision = "fp16";
          kernel.launch.input_element = kernel.launch.output_element = ElementType::f16;
          kernel.launch.input_layout = kernel.launch.output_layout = TensorLayout::n2chw;
          kernel.launch.tile_images = 2;
          kernel.launch.input_activity = ActivityMap{1, 1, 1};
        }).find("it must be a multiple of 2: that many images share each word") != std::string::npos);
}
