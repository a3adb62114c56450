#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/package/samples.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::edit_baked;
using burin_test::error_of;
using burin_test::sample_manifest;
using burin_test::sample_plan;
using burin_test::sample_template;
using burin_test::set_plan;
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

// The same after an edit of the second kernel's plan alone: the rest of the kernel is as before.
template <typename Edit>
std::string plan_fault(Edit edit) {
  return fault([&](Manifest& m) {
    BakedPlan plan = parse_baked_plan(m.kernels[1].plan);
    edit(plan);
    m.kernels[1].plan = print(plan);
  });
}

// The sample with a kernel that no planner made: a template's, without constants.
Manifest template_manifest() {
  Manifest manifest = sample_manifest();
  Kernel& kernel = manifest.kernels[1];
  kernel.planned_batch = 0;
  set_plan(kernel, sample_template("conv_any", kernel.layer->shape));
  return manifest;
}

}  // namespace

TEST_CASE("manifest: round trip") {
  const Manifest manifest = sample_manifest();
  CHECK(verify(manifest).empty());
  const std::string text = print(manifest);
  CHECK(parse_manifest(text) == manifest);
  CHECK(print(parse_manifest(text)) == text);
  CHECK(parse_manifest(print(Manifest{})) == Manifest{});
  Manifest renamed = manifest;
  renamed.kernels[0].entry = "made_for_all";
  CHECK(parse_manifest(print(renamed)) == renamed);
  CHECK(parse_manifest(print(renamed)) != manifest);
}

TEST_CASE("manifest: what became of quantized pairs is said where they were dropped") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("\"quantized\"") == std::string::npos);
  manifest.quantized = QuantizedPairs::drop;
  CHECK(parse_manifest(print(manifest)).quantized == QuantizedPairs::drop);
}

TEST_CASE("manifest: multiplied columns are said where they are known") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("\"multiplied\"") == std::string::npos);
  KernelLayer& layer = *manifest.kernels[0].layer;
  CHECK_FALSE(layer.fill());
  CHECK(multiplied_text(layer).empty());
  layer.multiplied = MultipliedColumns{.columns = 72, .live = 18, .slots = 4 * layer.nonzeros};
  CHECK(layer.multiplied->live_share() == 0.25);
  CHECK(layer.fill() == 0.25);
  CHECK(multiplied_text(layer) == "25.0 % of the columns live, 25.0 % of what is multiplied is not zero");
  CHECK(verify(manifest).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  const auto multiplied_fault = [](const MultipliedColumns& multiplied) {
    return fault([&](Manifest& m) { m.kernels[0].layer->multiplied = multiplied; });
  };
  CHECK(multiplied_fault({0, 0, 100}) == "kernels[0].layer.multiplied.columns: 0 is under 1");
  CHECK(multiplied_fault({577, 1, 100}) == "kernels[0].layer.multiplied.columns: 577 is over 576");
  CHECK(multiplied_fault({72, 73, 100}) == "kernels[0].layer.multiplied.live: 73 is over 72");
  CHECK(multiplied_fault({72, 72, 58}) == "kernels[0].layer.multiplied.slots: 58 is under 59");
  CHECK(multiplied_fault({72, 72, std::int64_t{1} << 44}) ==
        "kernels[0].layer.multiplied.slots: 17592186044416 is over 8796093022208");
  // Where all is zero nothing is multiplied.
  layer.nonzeros = 0;
  layer.multiplied = MultipliedColumns{.columns = 72};
  CHECK_FALSE(layer.fill());
  CHECK(multiplied_text(layer) == "0.0 % of the columns live");
  CHECK(verify(manifest).empty());
}

TEST_CASE("manifest: keys stand in a fixed order and plans can be read line by line") {
  const std::string text = print(sample_manifest());
  std::size_t last = 0;
  for (const char* key :
       {"\"format_version\"", "\"tool_version\"", "\"source\"",      "\"zero_threshold\"", "\"kernels\"",
        "\"symbol\"",         "\"operator\"",     "\"kind\"",        "\"provider\"",       "\"precision\"",
        "\"layer\"",          "\"shape\"",        "\"nonzeros\"",    "\"dead_outputs\"",   "\"data\"",
        "\"planned_batch\"",  "\"predicted_us\"", "\"source_hash\"", "\"binaries\"",       "\"plan\"",
        "\"tensors\"",        "\"programs\""}) {
    INFO(key);
    const std::size_t position = text.find(key, last);
    REQUIRE(position != text.npos);
    last = position;
  }
  CHECK(text.find("\"# tile 1x14x14, 1 group of 8, 2 splits, clusters of 2x1, 2 ch x 2\",\n") != text.npos);
  CHECK(text.find("\"threads: 224\",\n") != text.npos);
  CHECK(text.find("\"alpha\": 0.1,\n") != text.npos);  // the shortest form that gives the float back
}

TEST_CASE("manifest: text of any shape survives") {
  Manifest manifest = sample_manifest();
  const std::string plan = manifest.kernels[0].plan;
  for (const std::string more : {"", "\n", "# a", "# a\n", "\n\n  # a\n\n", "# tab\there \"quoted\" \\ \xc3\xa9"}) {
    for (const std::string& text : {more + "\n" + plan, plan + more}) {
      manifest.kernels[0].plan = text;
      CHECK(verify(manifest).empty());
      CHECK(parse_manifest(print(manifest)) == manifest);
      CHECK(parse_manifest(print(manifest)).kernels[0].plan == text);
    }
  }
}

TEST_CASE("manifest: what a plan implies is derived, and not said a second time") {
  const std::string text = print(sample_manifest());
  for (const char* key : {"plan_short", "\"launch\"", "\"form\"", "slices\""}) CHECK(text.find(key) == text.npos);
  const Kernel kernel = parse_manifest(text).kernels[1];
  CHECK(kernel.plan_short == "tile 1x14x14, 1 group of 8, 2 splits, clusters of 2x1, 2 ch x 2");
  const LaunchGeometry wanted = {.threads = 224,
                                 .shared_bytes = 128 + 2 * 2 * 16 * 16 * 4,
                                 .slices = 2,
                                 .tile_images = 1,
                                 .tiles_per_image = 1,
                                 .cluster_tiles = 2,
                                 .workspace_bytes_per_tile = 2 * 224 * 8 * 4,
                                 .counters_per_tile = 1};
  CHECK(kernel.form.launch == wanted);
  CHECK(kernel.form.input() == burin_test::image_tensor(TensorRole::input, 8, 14, 14));
  CHECK(kernel.form.output() == burin_test::image_tensor(TensorRole::output, 8, 14, 14));
}

TEST_CASE("manifest: numbers survive exactly") {
  Manifest manifest = sample_manifest();
  for (const float slope :
       {0.0F, 0.2F, 1.0F / 3, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}) {
    manifest.kernels[0].layer->shape.epilogue.function->alpha = slope;
    manifest.kernels[0].predicted_us = static_cast<double>(slope) / 3;
    manifest.kernels[0].binaries[1].code_bytes = std::numeric_limits<std::int64_t>::max();
    CHECK(parse_manifest(print(manifest)) == manifest);
  }
}

TEST_CASE("manifest: unknown keys are ignored") {
  const std::string text = edited([](ordered_json& json) {
    json["from_the_future"] = {1, 2, 3};
    json["kernels"][0]["colour"] = "blue";
    json["kernels"][0]["layer"]["density"] = 0.5;
    json["kernels"][0]["layer"]["shape"]["depth"] = nullptr;
    json["kernels"][0]["binaries"][0]["signature"] = {{"by", "nobody"}};
    json["tensors"][0]["dtype"] = "f32";
  });
  CHECK(parse_manifest(text) == sample_manifest());
}

TEST_CASE("manifest: an unknown version is one clear error") {
  CHECK(parse_error([](ordered_json& json) { json = {{"format_version", 10}}; }) ==
        "manifest.json: format_version: 10 is not one this burin (" BURIN_VERSION
        ") reads: it reads 9. A newer burin wrote the package");
  for (const int old : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CHECK(parse_error([&](ordered_json& json) { json["format_version"] = old; }) ==
          fmt::format("manifest.json: format_version: {} is not one this burin (" BURIN_VERSION
                      ") reads: it reads 9. Compile it again from its weights or model: 'burin compile'",
                      old));
  }
  Manifest manifest = sample_manifest();
  manifest.format_version = 10;
  CHECK(verify(manifest) == std::vector<std::string>{"format_version: 10 is not one this burin knows (9)"});
}

TEST_CASE("manifest: a package of format 4 gives the same error, whatever else stands in it") {
  // Kernels had a template and a launch then, and operators a list of their own.
  const std::string old = R"({"format_version": 4, "tool_version": "0.1.0", "source": "model.onnx", "zero_threshold": 0,
    "kernels": [{"symbol": "conv1_b1", "layer": "conv1", "shape": {"in_channels": 8}, "template": "conv_baked",
                 "launch": {"threads": 64}, "plan": ["template: conv_baked"]}],
    "tensors": [], "operators": [{"symbol": "pool1", "operator": "pool1", "input": 0, "second": -1}], "files": []})";
  CHECK(error_of([&] { parse_manifest(old); }) ==
        "manifest.json: format_version: 4 is not one this burin (" BURIN_VERSION
        ") reads: it reads 9. Compile it again from its weights or model: 'burin compile'");
}

TEST_CASE("manifest: a wrong type is named by its path") {
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["planned_batch"] = "many"; }) ==
        "manifest.json: kernels[1].planned_batch: expected an integer, found \"many\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["planned_batch"] = 1.5; }) ==
        "manifest.json: kernels[1].planned_batch: expected an integer, found 1.5");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["layer"]["shape"]["bias"] = 1; }) ==
        "manifest.json: kernels[0].layer.shape.bias: expected true or false, found 1");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["layer"] = "conv"; }) ==
        "manifest.json: kernels[0].layer: expected an object, found \"conv\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["weights"] = 1; }) ==
        "manifest.json: kernels[0].weights: expected a string, found 1");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["edited"] = "yes"; }) ==
        "manifest.json: kernels[0].edited: expected true or false, found \"yes\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["layer"]["data"] = false; }) ==
        "manifest.json: kernels[0].layer.data: expected a string, found false");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["plan"] = "text"; }) ==
        "manifest.json: kernels[0].plan: expected an array, found \"text\"");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["plan"][1] = ordered_json::array(); }) ==
        "manifest.json: kernels[0].plan[1]: expected a string, found an array");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["binaries"][1] = nullptr; }) ==
        "manifest.json: kernels[0].binaries[1]: expected an object, found null");
  CHECK(parse_error([](ordered_json& json) { json["zero_threshold"] = "0"; }) ==
        "manifest.json: zero_threshold: expected a number, found \"0\"");
  CHECK(parse_error([](ordered_json& json) { json = ordered_json::array(); }) ==
        "manifest.json: expected an object, found an array");
}

TEST_CASE("manifest: every key is needed") {
  const std::vector<const char*> optional = {"arch",       "registers",    "spill_bytes", "stack_bytes",
                                             "code_bytes", "predicted_us", "data"};
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
    } else if (path.back() == "planned_batch") {  // 0, of a plan that is for all batches alike
      CHECK(error.find(".plan: it is for batch ") != error.npos);
      CHECK(error.find(", and the kernel is said to be for 0") != error.npos);
    } else {
      CHECK(error.find("the key \"" + path.back() + "\" is missing") != error.npos);
    }
  }
}

TEST_CASE("manifest: the parts of a kernel are needed, but for those that not every kernel has") {
  for (const char* key : {"symbol", "operator", "kind", "provider", "precision", "source_hash", "binaries", "plan"}) {
    CHECK(parse_error([&](ordered_json& json) { json["kernels"][1].erase(key); }) ==
          fmt::format("manifest.json: kernels[1]: the key \"{}\" is missing", key));
  }
  CHECK(parse_error([&](ordered_json& json) { json["kernels"][1].erase("layer"); }) ==
        "manifest.json: kernels[1].plan: it is no convolution, which conv_baked kernels are");
  CHECK(parse_error([&](ordered_json& json) { json["kernels"][1]["layer"].erase("shape"); }) ==
        "manifest.json: kernels[1].layer: the key \"shape\" is missing");
}

TEST_CASE("manifest: why a convolution stayed in FP32") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("kept_in_fp32") == std::string::npos);
  manifest.kernels[0].kept_in_fp32 = "'a' reaches 1e+05";
  CHECK(verify(manifest).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  const auto with = [](const std::string& reason) {
    return fault([&](Manifest& m) { m.kernels[0].kept_in_fp32 = reason; });
  };
  CHECK(with(std::string(257, 'x')).starts_with("kernels[0].kept_in_fp32: "));
  CHECK(with("a\nb").starts_with("kernels[0].kept_in_fp32: "));
  CHECK(fault([](Manifest& m) {
          Kernel& kernel = m.kernels[1];
          set_plan(kernel, sample_plan(kernel.layer->shape, {.splits = 2, .precision = Precision::fp16, .batch = 32}));
          kernel.kept_in_fp32 = "because";
        }) == "kernels[1].kept_in_fp32: only a convolution or fully connected layer in fp32 is kept in it");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["kept_in_fp32"] = 1; }) ==
        "manifest.json: kernels[0].kept_in_fp32: expected a string, found 1");
}

TEST_CASE("manifest: hostile numbers in the JSON") {
  const auto with_batch = [](const std::string& number) {
    std::string text = print(sample_manifest());
    const std::string key = "\"planned_batch\": ";
    const std::size_t begin = text.find(key) + key.size();
    text.replace(begin, text.find(',', begin) - begin, number);
    return error_of([&] { parse_manifest(text); });
  };
  const std::string path = "manifest.json: kernels[0].planned_batch: ";
  CHECK(with_batch("2147483648") == path + "2147483648 is over 2147483647");
  CHECK(with_batch("-2147483649") == path + "-2147483649 is under -2147483648");
  CHECK(with_batch("18446744073709551615") == path + "18446744073709551615 is over 2147483647");
  CHECK(with_batch("-9223372036854775808") == path + "-9223372036854775808 is under -2147483648");
  // beyond 64 bits nlohmann takes a number for a float
  CHECK(with_batch("99999999999999999999999").find(path + "expected an integer") == 0);
  CHECK(with_batch("1e3").find(path + "expected an integer") == 0);
  CHECK(with_batch("1e999").find("manifest.json: ") == 0);
  CHECK(with_batch("NaN").find("manifest.json: not valid JSON: parse error at line") == 0);
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["layer"]["shape"]["function"]["alpha"] = 1e300; }) ==
        "manifest.json: kernels[0].layer.shape.function.alpha: 1e+300 does not fit into a float32");
}

TEST_CASE("manifest: unknown words are named with those that are known") {
  const std::string function =
      parse_error([](ordered_json& json) { json["kernels"][0]["layer"]["shape"]["function"]["function"] = "swish\n"; });
  CHECK(function ==
        "manifest.json: kernels[0].layer.shape.function.function: 'swish\\x0a' is not a function this burin knows (" +
            known_names<ElementFunction>() + ")");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][0]["binaries"][0]["kind"] = "exe"; }) ==
        "manifest.json: kernels[0].binaries[0].kind: 'exe' is not a kind of code this burin knows (ptx, cubin)");
}

TEST_CASE("manifest: a layer that cannot be is named by its shape") {
  CHECK(parse_error([](ordered_json& json) {
          json["kernels"][0]["layer"]["shape"]["stride_h"] = 0;
        }).starts_with("manifest.json: kernels[0].layer.shape: "));
}

TEST_CASE("manifest: a plan that cannot be read, is not legal or is for another kernel") {
  const auto with_line = [](const std::string& key, const std::string& value) {
    return parse_error([&](ordered_json& json) {
      for (ordered_json& line : json["kernels"][1]["plan"]) {
        if (line.get<std::string>().starts_with(key + ": ")) line = key + ": " + value;
      }
    });
  };
  const std::string path = "manifest.json: kernels[1].plan: ";
  CHECK(with_line("threads", "many").starts_with(path + "kernel plan, line "));
  CHECK(with_line("threads", "many").ends_with("'many' of 'threads' is not an integer"));
  CHECK(with_line("threads", "4294967328").ends_with("4294967328 of 'threads' does not fit 32 bits"));
  CHECK(with_line("threads", "1056").starts_with(path + "threads is 1056, allowed is 32 to 1024"));
  CHECK(with_line("input_layout", "nhwc")
            .find("'nhwc' is not a tensor layout; known are " + known_names<TensorLayout>()) != std::string::npos);
  CHECK(with_line("precision", "fp8").find("'fp8' is not a precision; known are") != std::string::npos);
  CHECK(with_line("batch", "31") == path + "it is for batch 31, and the kernel is said to be for 32");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["plan"] = ordered_json::array(); }) ==
        path + "kernel plan: there is no line 'template: ...'");
  CHECK(parse_error([](ordered_json& json) { json["kernels"][1]["precision"] = "fp16"; }) ==
        path + "it computes in fp32, and the kernel is said to in fp16");
  CHECK(parse_error([](ordered_json& json) {
          json["kernels"][1]["layer"]["shape"]["in_h"] = 13;
        }).starts_with(path + "tile rows is 14, allowed is 1 to 13"));
  // A baked plan is none of a template.
  CHECK(parse_error([](ordered_json& json) {
          json["kernels"][1]["provider"] = "conv_dense";
        }).starts_with(path + "plan"));
}

TEST_CASE("manifest: the plan of a template") {
  const Manifest manifest = template_manifest();
  CHECK(verify(manifest) == std::vector<std::string>{});
  const std::string text = print(manifest);
  CHECK(parse_manifest(text) == manifest);
  CHECK(text.find("\"# conv_any, 1 block of 256 for an image\",\n") != text.npos);
  CHECK(text.find("\"tensor 0: input, f32 nchw 8x14x14, 1568 words\",\n") != text.npos);
  const auto after = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    return error_of([&] { parse_manifest(edited); });
  };
  const std::string path = "manifest.json: kernels[1].plan: ";
  CHECK(after("template: conv_any", "template: conv_all") ==
        path + "it is of conv_all, and the kernel is said to be of conv_any");
  CHECK(after("threads: 256", "threads: 100") == path + "threads is 100, whole warps of 32 are needed");
  CHECK(after("tensor 1: output", "tensor 1: weights") ==
        path + "its tensors are not an input, an output, a residual and weights, in this order");
  CHECK(after("tensor 0: input, f32", "tensor 0: input, f64").starts_with(path + "plan, line "));
  CHECK(after("\"tensor 0: ", "\"box 0: of tensor 0, 14x14, 1x3x4\", \"tensor 0: ") ==
        path + "box 0: it is of tensor 0, which is not one of images in n8c8hw or n4c8hw that the kernel reads");
  CHECK(after("\"tensor 0: ", "\"box 0: all\", \"tensor 0: ")
            .ends_with("'all' is not of the form 'of tensor N, HxW, OxHxW[, steps NxN][, swizzled]'"));
  CHECK(after("1568 words", "1567 words") ==
        path + "the tensor 'input' has 1 x 1567 words, and an image of 8x14x14 in nchw has 1568");
}

TEST_CASE("manifest: a kernel's form is what its plan implies") {
  const std::string path = "kernels[1].plan: implies another form of the kernel than the one it has";
  const auto kernel = [](auto edit) { return fault([&](Manifest& m) { edit(m.kernels[1]); }); };
  CHECK(kernel([](Kernel& k) { k.form.launch.threads = 256; }) == path);
  CHECK(kernel([](Kernel& k) { k.form.launch.tiles_per_image = 2; }) == path);
  CHECK(kernel([](Kernel& k) { k.form.tensors.pop_back(); }) == path);
  CHECK(kernel([](Kernel& k) { k.form.tensors[0].alignment = 16; }) == path);
  CHECK(kernel([](Kernel& k) { k.form = {}; }) == path);
  CHECK(kernel([](Kernel& k) { k.plan_short = "other"; }) == path);
  Manifest manifest = template_manifest();
  manifest.kernels[1].form.launch.threads = 128;
  CHECK(verify(manifest) == std::vector<std::string>{path});
}

TEST_CASE("manifest: the tensors of a layer's kernel are those of the layer") {
  Manifest manifest = template_manifest();
  Kernel& kernel = manifest.kernels[1];
  kernel.layer->shape.in_channels = 7;
  kernel.layer->shape.out_channels = 9;
  kernel.layer->nonzeros = 1;
  kernel.layer->dead_inputs = 0;
  const std::string path = "kernels[1].layer: the kernel's ";
  CHECK(verify(manifest) == std::vector<std::string>{path + "input has 1568 words of an image, the layer's 1372",
                                                     path + "output has 1568 words of an image, the layer's 1764",
                                                     path + "residual has 1568 words of an image, the layer's 1764"});
  kernel.layer->shape.in_channels = kernel.layer->shape.out_channels = 8;
  kernel.layer->shape.epilogue.residual = false;
  CHECK(verify(manifest) == std::vector<std::string>{path + "residual has 1568 words of an image, the layer's 0"});
  set_plan(kernel, sample_template("conv_any", kernel.layer->shape));
  kernel.layer->shape.epilogue.residual = true;
  CHECK(verify(manifest) == std::vector<std::string>{path + "residual has 0 words of an image, the layer's 1568"});
}

TEST_CASE("manifest: weights are there exactly where the plan has some") {
  Manifest manifest = template_manifest();
  Kernel& kernel = manifest.kernels[1];
  kernel.weights = "weights/3";
  CHECK(verify(manifest) == std::vector<std::string>{"kernels[1].weights: the plan has none"});
  burin_test::edit_template(kernel,
                            [](TemplatePlan& p) { p.weights() = burin_test::flat_tensor(TensorRole::weights, 59); });
  CHECK(verify(manifest) == std::vector<std::string>{});
  CHECK(parse_manifest(print(manifest)) == manifest);
  kernel.weights = "";
  CHECK(verify(manifest) == std::vector<std::string>{"kernels[1].weights: the plan has some"});
  kernel.weights = "../3";
  CHECK(
      verify(manifest) ==
      std::vector<std::string>{"kernels[1].weights: '../3' is not a relative path of plain names without '.' or '..'"});
  kernel.weights = manifest.tensors[0].path;
  CHECK(verify(manifest) == std::vector<std::string>{"tensors[0].path: 'tensors/0.f32' is named twice"});
  CHECK(fault([](Manifest& m) { m.kernels[0].weights = "weights/baked"; }) == "kernels[0].weights: the plan has none");
}

TEST_CASE("manifest: data that kernels have in common may be named by several, and by nothing else") {
  const std::string data = burin_test::kSampleLayerPath;
  const Manifest sample = sample_manifest();
  CHECK(sample.kernels[0].layer->data == data);
  CHECK(sample.kernels[1].layer->data == data);
  CHECK(verify(sample) == std::vector<std::string>{});
  CHECK(fault([&](Manifest& m) { m.tensors[0].path = data; }) == "tensors[0].path: '" + data + "' is named twice");
  // Of a binary, whether it is named before the data or after it.
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->data = m.kernels[0].binaries[0].path; }) ==
        "kernels[0].layer.data: 'kernels/burin_3_b1.ptx' is named twice");
  CHECK(fault([&](Manifest& m) { m.kernels[1].binaries[0].path = data; }) ==
        "kernels[1].binaries[0].path: '" + data + "' is named twice");
  CHECK(fault([](Manifest& m) { m.kernels[1].layer->data = "layers/../3.bin"; }) ==
        "kernels[1].layer.data: 'layers/../3.bin' is not a relative path of plain names without '.' or '..'");
  // Not every kernel has such data.
  Manifest manifest = sample;
  manifest.kernels[1].layer->data = "";
  CHECK(verify(manifest) == std::vector<std::string>{});
  CHECK(parse_manifest(print(manifest)) == manifest);
  CHECK_FALSE(ordered_json::parse(print(manifest))["kernels"][1]["layer"].contains("data"));
}

TEST_CASE("manifest: weights that kernels have in common") {
  Manifest manifest = template_manifest();
  burin_test::edit_template(manifest.kernels[1],
                            [](TemplatePlan& p) { p.weights() = burin_test::flat_tensor(TensorRole::weights, 59); });
  manifest.kernels[1].weights = "weights/3";
  Kernel other = manifest.kernels[1];
  other.symbol += "_again";
  for (KernelBinary& binary : other.binaries) binary.path += ".again";
  manifest.kernels.push_back(other);
  CHECK(verify(manifest) == std::vector<std::string>{});
  CHECK(parse_manifest(print(manifest)) == manifest);
  manifest.kernels[2].binaries[0].path = "weights/3";
  CHECK(verify(manifest) == std::vector<std::string>{"kernels[2].binaries[0].path: 'weights/3' is named twice"});
}

TEST_CASE("manifest: whether a person changed a kernel's code survives, and is left out where nobody did") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("\"edited\"") == std::string::npos);
  manifest.kernels[1].edited = true;
  CHECK(verify(manifest) == std::vector<std::string>{});
  const Manifest parsed = parse_manifest(print(manifest));
  CHECK_FALSE(parsed.kernels[0].edited);
  CHECK(parsed.kernels[1].edited);
  CHECK(parsed == manifest);
  CHECK_FALSE(
      parse_manifest(edited([](ordered_json& json) { json["kernels"][0]["edited"] = false; })).kernels[0].edited);
}

TEST_CASE("manifest: what is not JSON is refused with line and column") {
  CHECK(error_of([] { parse_manifest(""); }).find("manifest.json: not valid JSON: parse error at line 1") == 0);
  CHECK(error_of([] {
          parse_manifest("{\n\"a\": }");
        }).find("manifest.json: not valid JSON: parse error at line 2, column 6") == 0);
  CHECK(error_of([] { parse_manifest("{} trailing"); }).find("manifest.json: not valid JSON: parse error") == 0);
  CHECK(error_of([] { parse_manifest("{\"\xff\": 1}"); }).find("manifest.json: not valid JSON: parse error") == 0);
  CHECK(error_of([] { parse_manifest("{\"format_version\": 9, \"format_version\": 8}"); }) ==
        "manifest.json: the key 'format_version' stands twice in one object");
  CHECK(error_of([] { parse_manifest(std::string(1'000'000, '[')); }) ==
        "manifest.json: is nested deeper than 16 levels");
}

TEST_CASE("manifest: long arrays take linear time, and there is an end to them") {
  Manifest manifest = sample_manifest();
  for (int i = 0; i < 50'000; ++i) manifest.tensors.push_back(manifest.tensors[0]);
  CHECK(parse_manifest(print(manifest)).tensors.size() == manifest.tensors.size());
  std::string text = "{\"format_version\": 9, \"x\": [";
  for (int i = 0; i < 4'000'000; ++i) text += "1,";
  CHECK(error_of([&] { parse_manifest(text + "1]}"); }) == "manifest.json: has more than 4000000 values");
  CHECK(error_of([&] { parse_manifest(std::string(kMaxManifestBytes + 1, ' ')); }) ==
        "manifest.json: 67108865 bytes are over 67108864");
}

TEST_CASE("manifest: a faulty manifest can still be printed") {
  Manifest manifest = sample_manifest();
  manifest.kernels[0].op = std::string(1, '\xff');
  manifest.kernels[0].predicted_us = std::numeric_limits<double>::quiet_NaN();
  CHECK(print(manifest).find("\xef\xbf\xbd") != std::string::npos);  // U+FFFD
  CHECK(verify(manifest).size() == 2);
}

TEST_CASE("manifest: a baked plan's limits of a launch") {
  const std::string path = "kernels[1].plan: ";
  CHECK(
      plan_fault([](BakedPlan& p) { p.threads = 1056; }).starts_with(path + "threads is 1056, allowed is 32 to 1024"));
  CHECK(plan_fault([](BakedPlan& p) { p.threads = 0; }).starts_with(path + "threads is 0, allowed is 32 to"));
  CHECK(plan_fault([](BakedPlan& p) { p.threads = 225; }).starts_with(path + "threads is 225, it must be a multiple"));
  CHECK(plan_fault([](BakedPlan& p) { p.shared.channel_pitch = 20'000; }).find("2 buffers of 160000 bytes") !=
        std::string::npos);
  CHECK(plan_fault([](BakedPlan& p) { p.tile.images = 0; }).starts_with(path + "tile images is 0"));
  CHECK(plan_fault([](BakedPlan& p) { p.cluster.tiles = 9; }).starts_with(path + "cluster is 9x1, allowed are 8"));
  CHECK(plan_fault([](BakedPlan& p) { p.splits = 65'536; }).starts_with(path + "splits is 65536, allowed is 1 to"));
  CHECK(plan_fault([](BakedPlan& p) { p.batch = 8; }) ==
        path + "it is for batch 8, and the kernel is said to be for 32");
  CHECK(plan_fault([](BakedPlan& p) { p.precision = Precision::bf16; }).find("input_layout is nchw with bf16") !=
        std::string::npos);
  CHECK(plan_fault([](BakedPlan& p) {
          p.skips = ActivityMap{0, 1, 1};
        }).starts_with(path + "skips: cell images is 0, allowed is 1 to"));
}

namespace {

// The types whose values fill the layout's words.
std::vector<ElementType> elements_in(TensorLayout layout) {
  std::vector<ElementType> elements;
  for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    if (can_compute_in(element, layout)) elements.push_back(element);
  }
  return elements;
}

}  // namespace

TEST_CASE("manifest: element types, layouts and alignments survive") {
  for (const TensorLayout input : kTensorLayouts) {
    for (const TensorLayout output : kTensorLayouts) {
      for (const ElementType read : elements_in(input)) {
        for (const ElementType written : elements_in(output)) {
          Manifest manifest = template_manifest();
          burin_test::edit_template(manifest.kernels[1], [&](TemplatePlan& plan) {
            plan.input() = burin_test::image_tensor(TensorRole::input, 8, 14, 14, input, read);
            plan.output() = burin_test::image_tensor(TensorRole::output, 8, 14, 14, output, written);
            plan.launch().tile_images = 8;
            plan.input().alignment = 256;
            plan.output().alignment = 32;
          });
          CHECK(verify(manifest) == std::vector<std::string>{});
          CHECK(parse_manifest(print(manifest)) == manifest);
        }
      }
    }
  }
}

TEST_CASE("manifest: every precision of a baked kernel survives") {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp16x2}) {
    Manifest manifest = sample_manifest();
    Kernel& kernel = manifest.kernels[1];
    set_plan(kernel, sample_plan(kernel.layer->shape, {.splits = 2, .precision = precision, .batch = 32}));
    CHECK(kernel.precision == to_string(precision));
    CHECK(kernel.form.input().element == element_of(precision));
    CHECK(kernel.form.output().layout == (is_half(precision) ? TensorLayout::n2chw : TensorLayout::nchw));
    CHECK(kernel.form.launch.tile_images == (is_half(precision) ? 2 : 1));
    CHECK(verify(manifest) == std::vector<std::string>{});
    CHECK(parse_manifest(print(manifest)) == manifest);
  }
}

TEST_CASE("manifest: the precision is a known one") {
  const auto with = [](const std::string& precision) {
    Manifest manifest = template_manifest();
    manifest.kernels[1].precision = precision;
    const std::vector<std::string> faults = verify(manifest);
    REQUIRE(faults.size() == 1);
    return faults[0];
  };
  const std::string path = "kernels[1].precision: ";
  CHECK(with("fp8\n") == path + "'fp8\\x0a' is not a precision this burin knows (fp32, fp16, bf16, fp16x2, tf32)");
  CHECK(with("").starts_with(path + "'' is not a precision"));
  CHECK(with(std::string(1 << 20, 'x')).starts_with(path + "'"));
  CHECK(with(std::string(1 << 20, 'x')).size() < 400);
  CHECK(fault([](Manifest& m) { m.kernels[0].precision = "fp16x2"; }) ==
        "kernels[0].plan: it computes in fp32, and the kernel is said to in fp16x2");
}

namespace {

// A layer of one channel of 16384 x 16384 pixels, for one image.
Manifest large_image() {
  Manifest manifest = sample_manifest();
  Kernel& kernel = manifest.kernels[1];
  kernel.layer = KernelLayer{};
  kernel.layer->shape.in_h = kernel.layer->shape.in_w = 16'384;
  kernel.layer->nonzeros = 1;
  REQUIRE(verify(kernel.layer->shape).empty());
  set_plan(kernel, sample_plan(kernel.layer->shape, {.tile = {1, 32, 32}}));
  return manifest;
}

}  // namespace

TEST_CASE("manifest: the grid of the largest batch and image does not overflow") {
  Manifest manifest = large_image();
  CHECK(verify(manifest) == std::vector<std::string>{});
  Kernel& kernel = manifest.kernels[1];
  kernel.planned_batch = kMaxBatch;
  kernel.plan = print(sample_plan(kernel.layer->shape, {.tile = {1, 1, 1}, .batch = kMaxBatch}));
  const std::vector<std::string> faults = verify(manifest);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].starts_with(
      "kernels[1].plan: the number of tiles is 281474976710656, allowed is 1 to 2147483647: the grid's limit in x"));
}

TEST_CASE("manifest: an image that only its filling makes too large") {
  Manifest manifest = large_image();
  Kernel& kernel = manifest.kernels[1];
  const auto fill = [](BakedPlan& plan) { plan.output_layout = TensorLayout::nchw4; };
  CHECK(error_of([&] { edit_baked(kernel, fill); }).find("(kMaxImageBytes)") != std::string::npos);
}

TEST_CASE("manifest: names and paths") {
  CHECK(fault([](Manifest& m) { m.kernels[0].symbol = ""; }) ==
        "kernels[0].symbol: '' is not a symbol: [A-Za-z_][A-Za-z0-9_]*, at most 1024 bytes");
  CHECK(fault([](Manifest& m) { m.kernels[0].entry = "an entry"; }) ==
        "kernels[0].entry: 'an entry' is not a symbol: [A-Za-z_][A-Za-z0-9_]*, at most 1024 bytes");
  CHECK(fault([](Manifest& m) { m.kernels[1].symbol = m.kernels[0].symbol; }) ==
        "kernels[1].symbol: 'burin_3_b1' is the symbol of two kernels");
  CHECK(fault([](Manifest& m) { m.kernels[0].op = ""; }) == "kernels[0].operator: is empty");
  CHECK(fault([](Manifest& m) { m.kernels[0].op = std::string(4097, 'x'); }) ==
        "kernels[0].operator: 4097 bytes are over 4096");
  CHECK(fault([](Manifest& m) { m.kernels[0].op = "a\nb"; }) == "kernels[0].operator: is not printable UTF-8 text");
  CHECK(fault([](Manifest& m) { m.kernels[0].kind = ""; }) == "kernels[0].kind: is empty");
  CHECK(fault([](Manifest& m) { m.kernels[0].source_hash = ""; }) == "kernels[0].source_hash: is empty");
  CHECK(fault([](Manifest& m) { m.kernels[0].plan += "# \xff"; }) == "kernels[0].plan: is not UTF-8 text");
  CHECK(fault([](Manifest& m) {
          m.kernels[0].plan += std::string(16 << 20, '#');
        }).ends_with(" bytes are over 16777216"));
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
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->shape.stride_h = 0; }).find("kernels[0].layer.shape: ") == 0);
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->nonzeros = 8 * 8 * 9 + 1; }) ==
        "kernels[0].layer.nonzeros: 577 is over 576");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->nonzeros = -1; }) == "kernels[0].layer.nonzeros: -1 is under 0");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->dead_inputs = 9; }) == "kernels[0].layer.dead_inputs: 9 is over 8");
  CHECK(fault([](Manifest& m) { m.kernels[0].planned_batch = -1; }) == "kernels[0].planned_batch: -1 is under 0");
  CHECK(fault([](Manifest& m) { m.kernels[0].layer->dead_outputs = 9; }) ==
        "kernels[0].layer.dead_outputs: 9 is over 8");
  CHECK(fault([](Manifest& m) { m.kernels[0].planned_batch = kMaxBatch + 1; }) ==
        "kernels[0].planned_batch: 1048577 is over 1048576");
  CHECK(fault([](Manifest& m) { m.kernels[0].planned_batch = 0; }) ==
        "kernels[0].plan: it is for batch 1, and the kernel is said to be for 0");
  CHECK(fault([](Manifest& m) { m.kernels[0].predicted_us = -1; }) ==
        "kernels[0].predicted_us: -1 is not a finite number from 0 up");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries.clear(); }) ==
        "kernels[0].binaries: is empty: there would be nothing to load");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[1].arch = ""; }) ==
        "kernels[0].binaries[1].arch: '' is not the name of an architecture, such as sm_90");
  CHECK(fault([](Manifest& m) { m.kernels[0].binaries[0].arch = ""; }) ==
        "kernels[0].binaries[0].arch: '' is not the name of an architecture, such as sm_90");
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
        }) == "kernels[0].binaries[2]: is of the same kind and architecture as one before it");
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
  Manifest manifest = template_manifest();
  CHECK(print(manifest).find("\"pool\"") == std::string::npos);
  Kernel& kernel = manifest.kernels[1];
  kernel.layer->shape.epilogue.pool = Pool{.kind = PoolKind::average,
                                           .kernel_h = 3,
                                           .kernel_w = 2,
                                           .stride_w = 2,
                                           .pad = {0, 1, 1, 0},
                                           .round_up = true,
                                           .count_padding = true};
  set_plan(kernel, sample_template("conv_any", kernel.layer->shape));
  CHECK(verify(manifest) == std::vector<std::string>{});
  CHECK(parse_manifest(print(manifest)) == manifest);
  Epilogue& epilogue = kernel.layer->shape.epilogue;
  epilogue.pool = Pool{.kind = PoolKind::filter, .kernel_h = 3, .kernel_w = 2, .stride_w = 2, .pad = {0, 1, 1, 0}};
  epilogue.then = Elementwise{ElementFunction::clip, 0, 6};
  set_plan(kernel, sample_template("conv_any", kernel.layer->shape));
  CHECK(parse_manifest(print(manifest)) == manifest);
  ordered_json document = ordered_json::parse(print(manifest));
  document["kernels"][1]["layer"]["shape"]["pool"]["kind"] = "median";
  CHECK(error_of([&] { parse_manifest(document.dump()); }).find("'median' is not a pool this burin knows") !=
        std::string::npos);
}

TEST_CASE("manifest: the matrix of a fully connected layer survives, and is bounded") {
  Manifest manifest = sample_manifest();
  const auto faults_with = [&](WeightMatrix matrix, bool is_linear = true) {
    Kernel& kernel = manifest.kernels[0];
    kernel.linear = matrix;
    kernel.kind = is_linear ? "linear" : "convolution";
    return verify(manifest);
  };
  CHECK(faults_with({10, 20, 30}).empty());
  CHECK(parse_manifest(print(manifest)) == manifest);
  using Faults = std::vector<std::string>;
  const std::string path = "kernels[0].linear";
  CHECK(faults_with({10, 20, 30}, false) == Faults{path + ": the kernel is of no fully connected layer"});
  CHECK(faults_with({0, 20, 0}) == Faults{path + ".rows: 0 is under 1"});
  CHECK(faults_with({10, 20, 201}) == Faults{path + ".nonzeros: 201 is over 200"});
  CHECK(faults_with({1 << 20, 1 << 20, 1}) == Faults{path + ".columns: 1048576 is over 256"});
}

TEST_CASE("manifest: what a call computes of a fully connected layer survives, and is of such kernels alone") {
  Manifest sample = sample_manifest();
  Kernel& kernel = sample.kernels[0];
  kernel.kind = "linear";
  kernel.called = CalledLinear{true, false, kernel.layer->data};
  kernel.layer.reset();
  kernel.linear = WeightMatrix{10, 20, 30};
  kernel.provider = kLinearCublasProvider;
  kernel.precision = "fp32";
  TemplatePlan own;
  own.template_name = "linear";
  own.input() = burin_test::flat_tensor(TensorRole::input, 20);
  own.output() = burin_test::flat_tensor(TensorRole::output, 10);
  kernel.plan = print(
      LibraryPlan{.call = {.algorithm = ProductAlgorithm::heuristic_3}, .provider = "linear", .plan = print(own)});
  derive_form(kernel);
  CHECK(verify(sample) == std::vector<std::string>{});
  CHECK(parse_manifest(print(sample)) == sample);

  const auto read_fault = [&](const std::function<void(ordered_json&)>& edit) {
    ordered_json document = ordered_json::parse(print(sample));
    edit(document["kernels"][0]);
    return error_of([&] { parse_manifest(document.dump()); });
  };
  CHECK(read_fault([](ordered_json& k) { k["called"]["relu"] = "yes"; }) ==
        "manifest.json: kernels[0].called.relu: expected true or false, found \"yes\"");
  CHECK(read_fault([](ordered_json& k) { k["called"].erase("data"); }) ==
        "manifest.json: kernels[0].called: the key \"data\" is missing");
  CHECK(read_fault([](ordered_json& k) { k.erase("called"); }) ==
        "manifest.json: kernels[0].plan: nothing says what the call computes of a fully connected layer: 'linear' and "
        "'called'");
  CHECK(read_fault([](ordered_json& k) { k["linear"]["columns"] = 21; }).find("its input is not float images") !=
        std::string::npos);
  CHECK(read_fault([](ordered_json& k) { k["linear"]["rows"] = std::int64_t{1} << 50; }).find("out_channels") !=
        std::string::npos);
  CHECK(read_fault([](ordered_json& k) { k["provider"] = "conv_cudnn"; }) ==
        "manifest.json: kernels[0].plan: it is no convolution, which conv_cudnn kernels are");

  using Faults = std::vector<std::string>;
  Manifest without_data = sample;
  without_data.kernels[0].called->data = "";
  CHECK(verify(without_data) ==
        Faults{"kernels[0].called.data: '' is not a relative path of plain names without '.' or '..'"});
  Manifest of_others = sample_manifest();
  of_others.kernels[0].called = CalledLinear{true, false, burin_test::kSampleLayerPath};
  CHECK(verify(of_others) ==
        Faults{"kernels[0].called: the plan of a kernel of conv_baked calls no library for a fully connected layer"});
}

TEST_CASE("manifest: activity maps survive, and are left out where there are none") {
  Manifest manifest = sample_manifest();
  CHECK_FALSE(manifest.kernels[0].form.has_maps());
  edit_baked(manifest.kernels[0], [](BakedPlan& plan) {
    plan.skips = ActivityMap{3, 2, 1};
    plan.marks = true;
  });
  CHECK(verify(manifest).empty());
  const KernelForm form = parse_manifest(print(manifest)).kernels[0].form;
  REQUIRE(form.has_maps());
  CHECK(form.find(TensorRole::input_map)->map == ActivityMap{3, 2, 1});
  CHECK(form.find(TensorRole::output_map)->map == ActivityMap{1, 14, 14});
  CHECK(parse_manifest(print(manifest)) == manifest);
  edit_baked(manifest.kernels[0], [](BakedPlan& plan) { plan.marks = false; });
  CHECK_FALSE(manifest.kernels[0].form.has(TensorRole::output_map));
  CHECK(manifest.kernels[0].form.tensors.size() == 7);  // both stand there, one of them as a null pointer
  CHECK(parse_manifest(print(manifest)) == manifest);
}

TEST_CASE("manifest: activity maps that cannot be") {
  const auto map_fault = [](ActivityMap map) { return plan_fault([&](BakedPlan& plan) { plan.skips = map; }); };
  const std::string path = "kernels[1].plan: skips: cell ";
  CHECK(map_fault({0, 1, 1}).starts_with(path + "images is 0, allowed is 1 to"));
  CHECK(map_fault({1, -1, 1}).starts_with(path + "rows is -1"));
  CHECK(map_fault({1, 1, std::numeric_limits<int>::max()}).starts_with(path + "columns is 2147483647"));
  const auto with_line = [](const std::string& line) {
    return parse_error([&](ordered_json& json) { json["kernels"][0]["plan"].push_back(line); });
  };
  CHECK(with_line("skips: 7").find("'7' of 'skips' must be 3 integers") != std::string::npos);
  CHECK(with_line("marks: 1").find("'1' of 'marks' is neither 'yes' nor 'no'") != std::string::npos);
}

TEST_CASE("manifest: an activity map of a half tensor keeps pairs of images together") {
  CHECK(plan_fault([](BakedPlan& plan) {
          plan.precision = Precision::fp16;
          plan.input_layout = plan.output_layout = TensorLayout::n2chw;
          plan.skips = ActivityMap{1, 1, 1};
        }).find("it must be a multiple of 2: that many images lie side by side") != std::string::npos);
}

TEST_CASE("manifest: zeros that a kernel was chosen for are shares") {
  Manifest manifest = sample_manifest();
  CHECK(print(manifest).find("\"zeros\"") == std::string::npos);
  manifest.kernels[0].layer->zeros = InputZeros{0.8, true, 0.55};
  CHECK(parse_manifest(print(manifest)).kernels[0].layer->zeros == InputZeros{0.8, true, 0.55});
  manifest.kernels[0].layer->zeros->pays_from.reset();
  CHECK(parse_manifest(print(manifest)).kernels[0].layer->zeros == InputZeros{0.8, true, {}});
  const auto with = [](const InputZeros& zeros) {
    return fault([&](Manifest& m) { m.kernels[0].layer->zeros = zeros; });
  };
  CHECK(with({1.5, true, {}}).starts_with("kernels[0].layer.zeros.share: 1.5 is not a share from 0 to 1"));
  CHECK(with({0.5, true, -1.0}).starts_with("kernels[0].layer.zeros.pays_from: -1 is not a share from 0 to 1"));
  CHECK(with({0.5, false, 0.5}).starts_with("kernels[0].layer.zeros.pays_from: nothing was compared"));
}

TEST_CASE("manifest: shares of zero weights from which on they pay") {
  Manifest manifest = sample_manifest();
  // That of an older burin says nothing of them.
  CHECK(print(manifest).find("weight_zeros") == std::string::npos);
  CHECK(parse_manifest(print(manifest)).kernels[0].weight_zeros.empty());
  const std::vector<WeightZeros> known = {{1, 0.25}, {32, {}}};
  manifest.kernels[0].weight_zeros = known;
  const Kernel kernel = parse_manifest(print(manifest)).kernels[0];
  CHECK(kernel.weight_zeros == known);
  REQUIRE(kernel.weight_zeros_of(32) != nullptr);
  CHECK_FALSE(kernel.weight_zeros_of(32)->pays_from);
  CHECK(kernel.weight_zeros_of(2) == nullptr);
  const auto with = [](const std::vector<WeightZeros>& zeros) {
    return fault([&](Manifest& m) { m.kernels[0].weight_zeros = zeros; });
  };
  CHECK(with({{1, 1.5}}).starts_with("kernels[0].weight_zeros[0].pays_from: 1.5 is not a share from 0 to 1"));
  CHECK(with({{1, 0.5}, {2, -0.1}}).starts_with("kernels[0].weight_zeros[1].pays_from: -0.1 is not a share"));
  CHECK(with({{1, std::numeric_limits<double>::quiet_NaN()}}).starts_with("kernels[0].weight_zeros[0].pays_from: nan"));
  CHECK(with({{0, 0.5}}).starts_with("kernels[0].weight_zeros[0].batch: 0 is under 1"));
  CHECK(with({{2, 0.5}, {1, 0.5}}).starts_with("kernels[0].weight_zeros[1].batch: 1 does not come after 2"));
  CHECK(with({{2, 0.5}, {2, 0.5}}).starts_with("kernels[0].weight_zeros[1].batch: 2 does not come after 2"));
  const auto with_json = [](const char* text) {
    return parse_error([&](ordered_json& json) { json["kernels"][0]["weight_zeros"] = ordered_json::parse(text); });
  };
  CHECK(with_json("7").find("weight_zeros: expected an array") != std::string::npos);
  CHECK(with_json("[{}]").find("the key \"batch\" is missing") != std::string::npos);
  CHECK(with_json("[{\"batch\": 1, \"pays_from\": \"x\"}]").find("pays_from: expected a number") != std::string::npos);
  manifest.kernels[0].kind = "pool";
  manifest.kernels[0].layer.reset();
  const std::vector<std::string> faults = verify(manifest);
  CHECK(
      std::ranges::find(faults, "kernels[0].weight_zeros: the kernel is of no convolution or fully connected layer") !=
      faults.end());
}

namespace {

// The sample whose first kernel's convolution ends with a user's function.
Manifest own_manifest() {
  Manifest manifest = sample_manifest();
  Kernel& kernel = manifest.kernels[0];
  const UserFunction function{.name = "my.Domain::Op",
                              .attributes = {{"beta", 1.5, false}, {"steps", 3, true}},
                              .source_hash = std::string(64, 'a')};
  kernel.functions = {{function, "functions/op.ptx"}};
  kernel.layer->shape.epilogue.function =
      Elementwise{.function = ElementFunction::user, .user = std::make_shared<UserFunction>(function)};
  return manifest;
}

template <typename Edit>
std::string own_fault(Edit edit) {
  Manifest manifest = own_manifest();
  edit(manifest.kernels[0].functions[0]);
  const std::vector<std::string> faults = verify(manifest);
  CAPTURE(faults);
  CHECK(faults.size() == 1);
  return faults.empty() ? "" : faults.front();
}

}  // namespace

TEST_CASE("manifest: users' functions survive") {
  const Manifest manifest = own_manifest();
  CHECK(verify(manifest).empty());
  const Manifest read = parse_manifest(print(manifest));
  CHECK(read == manifest);
  const SharedFunction& user = read.kernels[0].layer->shape.epilogue.function->user;
  REQUIRE(user != nullptr);
  CHECK(user->name == "my.Domain::Op");
  CHECK(user->symbol() == "burin_user_my_Domain__Op_aaaaaaaaaaaa");
  CHECK(describe(*user) == "my.Domain::Op, beta 1.5, steps 3");
  CHECK(print(sample_manifest()).find("functions") == std::string::npos);
}

TEST_CASE("manifest: nothing of a user's function can become another text") {
  using Function = KernelFunction;
  CHECK(own_fault([](Function& f) { f.function.attributes[0].name = "x = 1; int y"; }) ==
        "kernels[0].functions[0]: its attribute 'x = 1; int y' has a name that is no identifier of C++");
  CHECK(own_fault([](Function& f) { f.function.name = "Op(){} int x"; }).find("no identifier of C++") !=
        std::string::npos);
  CHECK(own_fault([](Function& f) { f.function.inputs = 3; }) ==
        "kernels[0].functions[0]: inputs is 3, allowed is 1 to 2");
  CHECK(own_fault([](Function& f) { f.function.attributes[1].value = 0.5; }).find("no whole number") !=
        std::string::npos);
  CHECK(own_fault([](Function& f) { f.function.attributes[1].value = 1e300; }).find("beyond") != std::string::npos);
  CHECK(own_fault([](Function& f) { f.function.attributes[0].value = 1e300; }).find("beyond") != std::string::npos);
  CHECK(own_fault([](Function& f) { f.function.inputs = 2; }).find("with 1 values; it takes 2") != std::string::npos);
  CHECK(own_fault([](Function& f) { f.function.source_hash = "../x"; }).find("no BLAKE3") != std::string::npos);
  CHECK(own_fault([](Function& f) { f.path = "../x"; }).find("kernels[0].functions[0].ptx") == 0);

  ordered_json document = ordered_json::parse(print(own_manifest()));
  ordered_json& shape = document["kernels"][0]["layer"]["shape"];
  shape["function"]["user"] = "printf";
  CHECK(error_of([&] { parse_manifest(document.dump()); }).find("is no symbol of a user's function") !=
        std::string::npos);
  shape["function"]["user"] = "burin_user_other";
  CHECK(error_of([&] { parse_manifest(document.dump()); }).find("burin_user_other is none of the kernel's functions") !=
        std::string::npos);
  shape["function"].erase("user");
  CHECK(error_of([&] { parse_manifest(document.dump()); }).find("names one, alone") != std::string::npos);
}

TEST_CASE("manifest: a plan calls nothing but users' functions") {
  Manifest manifest = template_manifest();
  TemplatePlan plan = parse_template_plan(manifest.kernels[1].plan);
  plan.calls["apply"] = "burin_user_op";
  CHECK(parse_template_plan(print(plan)) == plan);
  CHECK(verify(plan).empty());
  plan.calls["apply"] = "malloc";
  REQUIRE(verify(plan).size() == 1);
  CHECK(verify(plan)[0].find("it calls 'malloc', which is no symbol of a user's function") == 0);
}
