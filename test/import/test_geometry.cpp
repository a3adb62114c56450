#include "compiler/import/geometry.h"

#include <fmt/format.h>

#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

LayerGeometry layer(const std::string& attributes) {
  const Geometry geometry = parse_geometry("{\"conv1\":{" + attributes + "}}", "g.json");
  REQUIRE(geometry.layers.size() == 1);
  return geometry.layers[0];
}

void rejects_geometry(const std::string& attributes, std::initializer_list<std::string_view> parts,
                      ErrorKind kind = ErrorKind::bad_input) {
  expect_error(kind, {"g.json", "'conv1'"}, [&] { layer(attributes); });
  expect_error(kind, parts, [&] { layer(attributes); });
}

LayerGeometry flagged(const GeometryFlags& flags) {
  LayerGeometry layer;
  apply_flags(flags, layer);
  return layer;
}

GeometryFlags input_shape(const std::string& text) { return {text, {}, {}, {}, {}}; }
GeometryFlags stride(const std::string& text) { return {{}, text, {}, {}, {}}; }
GeometryFlags pad(const std::string& text) { return {{}, {}, text, {}, {}}; }
GeometryFlags dilation(const std::string& text) { return {{}, {}, {}, text, {}}; }
GeometryFlags groups(int count) { return {{}, {}, {}, {}, count}; }

}  // namespace

TEST_CASE("geometry: defaults") {
  const LayerGeometry geometry = layer("");
  CHECK(geometry.name == "conv1");
  CHECK(!geometry.weight);
  CHECK(geometry.bias == LayerGeometry::Bias::automatic);
  CHECK(geometry.shape.stride_h == 1);
  CHECK(geometry.shape.dilation_w == 1);
  CHECK(geometry.shape.groups == 1);
  CHECK(geometry.shape.pad == Padding{});
  CHECK(!geometry.in_h);
  CHECK(geometry.activation == Activation::none);
  CHECK(!geometry.shape.epilogue.residual);
}

TEST_CASE("geometry: integers, strings and arrays") {
  for (const std::string text : {"2", "\"2\"", "\" 2 \"", "[2]", "[2,2]", "\"2x2\"", "[\"2\",\"2\"]"}) {
    INFO(text);
    CHECK(layer("\"stride\":" + text).shape.stride_h == 2);
    CHECK(layer("\"stride\":" + text).shape.stride_w == 2);
    CHECK(layer("\"dilation\":" + text).shape.dilation_h == 2);
    CHECK(layer("\"pad\":" + text).shape.pad == Padding{2, 2, 2, 2});
  }
  const LayerGeometry geometry = layer(R"("stride":[1,2],"dilation":"3x4","groups":"8","H":"56","W":57)");
  CHECK(geometry.shape.stride_h == 1);
  CHECK(geometry.shape.stride_w == 2);
  CHECK(geometry.shape.dilation_h == 3);
  CHECK(geometry.shape.dilation_w == 4);
  CHECK(geometry.shape.groups == 8);
  CHECK(geometry.in_h == 56);
  CHECK(geometry.in_w == 57);
}

TEST_CASE("geometry: padding of each side") {
  CHECK(layer(R"("pad":"1x2")").shape.pad == Padding{1, 1, 2, 2});
  CHECK(layer(R"("pad":[1,2])").shape.pad == Padding{1, 1, 2, 2});
  CHECK(layer(R"("pad":"1,2,3,4")").shape.pad == Padding{1, 2, 3, 4});
  CHECK(layer(R"("pad":"1, 2, 3, 4")").shape.pad == Padding{1, 2, 3, 4});
  CHECK(layer(R"("pad":[1,2,3,4])").shape.pad == Padding{1, 2, 3, 4});
}

TEST_CASE("geometry: epilogue") {
  const LayerGeometry geometry = layer(R"("activation":"leaky_relu","leaky_slope":0.2,"residual":true)");
  CHECK(geometry.activation == Activation::leaky_relu);
  CHECK(geometry.leaky_slope == 0.2F);
  CHECK(geometry.shape.epilogue.residual);
  CHECK(layer(R"("leaky_slope":"1e-1")").leaky_slope == 0.1F);
  CHECK(layer(R"("residual":"true")").shape.epilogue.residual);
  CHECK(!layer(R"("residual":0)").shape.epilogue.residual);
  CHECK(layer(R"("activation":null)").activation == Activation::none);
}

TEST_CASE("geometry: bias by name, required, or none") {
  CHECK(layer(R"("bias":"b")").bias_tensor == "b");
  CHECK(layer(R"("bias":"b")").bias == LayerGeometry::Bias::required);
  CHECK(layer(R"("bias":true)").bias == LayerGeometry::Bias::required);
  CHECK(layer(R"("bias":false)").bias == LayerGeometry::Bias::none);
  CHECK(layer(R"("bias":null)").bias == LayerGeometry::Bias::none);
}

TEST_CASE("geometry: layers keep the order of the text") {
  const Geometry geometry = parse_geometry(R"({"z":{},"a":{},"m":{"H":1}})", "g.json");
  REQUIRE(geometry.layers.size() == 3);
  CHECK(geometry.layers[0].name == "z");
  CHECK(geometry.layers[2].name == "m");
}

TEST_CASE("geometry: attributes without meaning are listed, but not 'source'") {
  const Geometry geometry = parse_geometry(R"({"a":{"source":"x","colour":1},"b":{"colour":2}})", "g.json");
  CHECK(geometry.unknown == std::vector<std::string>{"colour"});
}

TEST_CASE("geometry: rejects other tools' names for an attribute, and misspelt ones") {
  rejects_geometry(R"("stirde":2)", {"'stirde'", "called 'stride'"});
  rejects_geometry(R"("Stride":2)", {"'Stride'", "called 'stride'"});
  CHECK(parse_geometry(R"({"a":{"K":1,"C":2}})", "g.json").unknown.size() == 2);
  rejects_geometry(R"("padding":1)", {"'padding'", "called 'pad'"});
  rejects_geometry(R"("strides":[1,1])", {"'strides'", "called 'stride'"});
  rejects_geometry(R"("h":5)", {"'h'", "called 'H'"});
}

TEST_CASE("geometry: rejects a stride of 0") { rejects_geometry(R"("stride":0)", {"stride is \"0\"", "at least 1"}); }
TEST_CASE("geometry: rejects a negative stride") {
  rejects_geometry(R"("stride":-1)", {"stride is \"-1\"", "at least 1"});
}
TEST_CASE("geometry: rejects a stride of 0 in one direction") {
  rejects_geometry(R"("stride":"1x0")", {"stride is \"1x0\"", "at least 1"});
}
TEST_CASE("geometry: rejects a stride above the limit") {
  rejects_geometry(R"("stride":65)", {"stride is \"65\"", "limit is 64"}, ErrorKind::unsupported);
}
TEST_CASE("geometry: rejects a stride beyond 64 bits") {
  rejects_geometry(R"("stride":"99999999999999999999")", {"stride is", "limit is 64"}, ErrorKind::unsupported);
  rejects_geometry(R"("stride":"-99999999999999999999")", {"stride is", "at least 1"});
}
TEST_CASE("geometry: rejects a stride that is no number") {
  rejects_geometry(R"("stride":"fast")", {"\"fast\"", "whole number"});
}
TEST_CASE("geometry: rejects a fractional stride") { rejects_geometry(R"("stride":1.5)", {"\"1.5\"", "whole number"}); }
TEST_CASE("geometry: rejects three strides") { rejects_geometry(R"("stride":[1,1,1])", {"\"1,1,1\"", "HxW"}); }
TEST_CASE("geometry: rejects an empty stride") {
  rejects_geometry(R"("stride":"")", {"stride is \"\""});
  rejects_geometry(R"("stride":[])", {"stride is \"[]\""});
  rejects_geometry(R"("stride":null)", {"stride is \"null\""});
}
TEST_CASE("geometry: rejects a nested stride") { rejects_geometry(R"("stride":[[1]])", {"stride is \"[[1]]\""}); }
TEST_CASE("geometry: rejects a dilation of 0") {
  rejects_geometry(R"("dilation":0)", {"dilation is \"0\"", "at least 1"});
}
TEST_CASE("geometry: rejects padding of garbage") {
  for (const std::string text :
       {"same", "1,", ",1", "1x", "x", "1,2", "1,2,3", "1,2,3,4,5", "1x2x3", "0x1,2", "1 2", "+1", "1.0", "٣"}) {
    INFO(text);
    rejects_geometry("\"pad\":\"" + text + "\"", {"pad is", "top,bottom,left,right"});
  }
}
TEST_CASE("geometry: rejects negative padding") {
  rejects_geometry(R"("pad":"0,0,-1,0")", {"pad is \"0,0,-1,0\"", "at least 0"});
}
TEST_CASE("geometry: rejects padding above the limit") {
  rejects_geometry(R"("pad":"1025")", {"pad is \"1025\"", "limit is 1024"}, ErrorKind::unsupported);
}
TEST_CASE("geometry: rejects 0 groups") { rejects_geometry(R"("groups":0)", {"groups is \"0\"", "at least 1"}); }
TEST_CASE("geometry: rejects groups that are no number") {
  rejects_geometry(R"("groups":"two")", {"groups is \"two\"", "whole number"});
}
TEST_CASE("geometry: rejects an input of 0 rows") { rejects_geometry(R"("H":0)", {"H is \"0\"", "at least 1"}); }
TEST_CASE("geometry: rejects an input above the limit") {
  rejects_geometry(R"("W":32769)", {"W is \"32769\"", "limit is 32768"}, ErrorKind::unsupported);
}
TEST_CASE("geometry: rejects an unknown activation") {
  rejects_geometry(R"("activation":"gelu")", {"\"gelu\"", "one of", "silu"});
}
TEST_CASE("geometry: rejects a slope that is no number") {
  rejects_geometry(R"("leaky_slope":"steep")", {"\"steep\"", "finite number"});
  rejects_geometry(R"("leaky_slope":"nan")", {"\"nan\"", "finite number"});
  rejects_geometry(R"("leaky_slope":1e39)", {"finite number"});
}
TEST_CASE("geometry: rejects residual that is no truth value") {
  rejects_geometry(R"("residual":"maybe")", {"\"maybe\"", "true or false"});
}
TEST_CASE("geometry: rejects a weight that is no name") {
  rejects_geometry(R"("weight":5)", {"weight is \"5\"", "name"});
  rejects_geometry(R"("weight":"")", {"weight is \"\"", "name"});
}
TEST_CASE("geometry: rejects a bias that is no name") { rejects_geometry(R"("bias":7)", {"bias is \"7\"", "name"}); }
TEST_CASE("geometry: rejects an attribute twice") {
  expect_bad_input({"g.json", "'pad'", "twice"}, [] { layer(R"("pad":1,"pad":2)"); });
}
TEST_CASE("geometry: rejects a layer twice") {
  expect_bad_input({"g.json", "'a'", "twice"}, [] { parse_geometry(R"({"a":{},"a":{}})", "g.json"); });
}
TEST_CASE("geometry: rejects a layer that is no object") {
  expect_bad_input({"g.json", "'a'", "JSON object", "\"stride\""}, [] { parse_geometry(R"({"a":1})", "g.json"); });
}
TEST_CASE("geometry: rejects an empty object") {
  expect_bad_input({"g.json", "no layer"}, [] { parse_geometry("{}", "g.json"); });
}
TEST_CASE("geometry: rejects bad JSON") {
  expect_bad_input({"g.json", "not valid JSON"}, [] { parse_geometry("{'a':{}}", "g.json"); });
}

TEST_CASE("geometry flags: all of them") {
  GeometryFlags flags = input_shape("16x20x30");
  flags.stride = "1x2";
  flags.pad = "1,0,1,0";
  flags.dilation = "2";
  flags.groups = 4;
  const LayerGeometry layer = flagged(flags);
  CHECK(layer.in_channels == 16);
  CHECK(layer.in_h == 20);
  CHECK(layer.in_w == 30);
  CHECK(layer.shape.stride_w == 2);
  CHECK(layer.shape.pad == Padding{1, 0, 1, 0});
  CHECK(layer.shape.dilation_h == 2);
  CHECK(layer.shape.groups == 4);
  CHECK(!flagged(input_shape("20x30")).in_channels);
}

TEST_CASE("geometry flags: what makes no sense is a usage error that names the flag") {
  const auto rejects_flag = [](const GeometryFlags& flags, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::usage, parts, [&] { flagged(flags); });
  };
  rejects_flag(input_shape("14"), {"--input-shape is \"14\"", "CxHxW or HxW"});
  rejects_flag(input_shape("1x2x3x4"), {"--input-shape"});
  rejects_flag(input_shape("axb"), {"--input-shape"});
  rejects_flag(input_shape("0x5x5"), {"--input-shape", "at least 1"});
  rejects_flag(stride("0"), {"--stride is \"0\"", "at least 1"});
  rejects_flag(pad("1,2"), {"--pad is \"1,2\"", "top,bottom,left,right"});
  rejects_flag(dilation("-2"), {"--dilation is \"-2\"", "at least 1"});
  rejects_flag(groups(0), {"--groups is \"0\"", "at least 1"});
  expect_error(ErrorKind::unsupported, {"--input-shape", "limit is 32768"}, [] { flagged(input_shape("99999x4")); });
}
