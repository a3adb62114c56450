// ONNX models as files and as graphs: what holds them together, and every way in which that can be broken.
#include <fmt/format.h>

#include <limits>

#include "compiler/import/mapped_file.h"
#include "compiler/import/onnx/model_file.h"
#include "compiler/import/onnx/onnx_import.h"
#include "test/import/files.h"
#include "test/import/onnx_model.h"
#include "test/scratch_folder.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

// Two convolutions, a pool, a fully connected layer.
OnnxModel small_network() {
  OnnxModel model = OnnxModel::of_image({2, 6, 6});
  model.floats("w1", {4, 2, 3, 3});
  model.floats("w2", {3, 4, 1, 1});
  model.floats("m", {3, 5});
  model.add_node("Conv", {"x", "w1"}, "c1").set("pads", Dims{1, 1, 1, 1}).node.set_name("first");
  model.add_node("Relu", {"c1"}, "r1");
  model.add_node("Conv", {"r1", "w2"}, "c2").node.set_name("second");
  model.add_node("GlobalAveragePool", {"c2"}, "g");
  model.add_node("Flatten", {"g"}, "f");
  model.add_node("Gemm", {"f", "m"});
  return model;
}

void rejects_file(const OnnxModel& model, std::initializer_list<std::string_view> parts,
                  const ImportOptions& options = {}) {
  expect_bad_input({"net.onnx: "}, [&] { model.import(options); });
  expect_bad_input(parts, [&] { model.import(options); });
}

void refuses_file(const OnnxModel& model, std::initializer_list<std::string_view> parts,
                  const ImportOptions& options = {}) {
  expect_error(ErrorKind::unsupported, parts, [&] { model.import(options); });
}

void is_usage_error(const OnnxModel& model, std::initializer_list<std::string_view> parts,
                    const ImportOptions& options = {}) {
  expect_error(ErrorKind::usage, parts, [&] { model.import(options); });
}

ImportOptions with_shape(const std::string& shape) {
  ImportOptions options;
  options.flags.input_shape = shape;
  return options;
}

ImportOptions with_layers(const std::string& glob) {
  ImportOptions options;
  options.layer_glob = glob;
  return options;
}

}  // namespace

TEST_CASE("onnx file: a whole network by its name's ending") {
  const ScratchFolder folder;
  const std::string path = folder.write("net.onnx", small_network().bytes());
  const Network network = import_network(path);
  CHECK(network.source == path);
  CHECK(kinds(network) == "convolution elementwise convolution global_average_pool reshape linear");
  CHECK(verify(network).empty());
  CHECK(network.layers.size() == 2);
  CHECK(network.operators[0].name == "first");
  CHECK(network.operators[1].name == "r1");
  expect_bad_input({folder / "none.onnx", "no such file"}, [&] { import_network(folder / "none.onnx"); });
}

TEST_CASE("onnx file: cut at any byte") {
  const std::string bytes = small_network().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO("the first " << size << " of " << bytes.size() << " bytes");
    expect_bad_input({"net.onnx: "}, [&] { import_onnx(bytes.substr(0, size), "net.onnx", {}); });
  }
}

TEST_CASE("onnx file: a byte that is another") {
  const std::string bytes = small_network().bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      INFO("byte " << i << " of " << bytes.size());
      // Weights and names may change to others; what is read must verify.
      std::vector<std::string> faults;
      try {
        faults = verify(import_onnx(damaged, "net.onnx", {}));
      } catch (const Error& error) {
        CHECK((error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::unsupported ||
               error.kind() == ErrorKind::usage));
        CHECK(std::string(error.what()).starts_with("net.onnx: "));
      }
      CHECK(faults.empty());
    }
  }
}

TEST_CASE("onnx file: is something else") {
  const auto reading = [](const std::string& bytes) { return [bytes] { import_onnx(bytes, "net.onnx", {}); }; };
  expect_bad_input({"net.onnx: is no ONNX model"}, reading("PK\x03\x04 a zip file"));
  expect_bad_input({"net.onnx: is no ONNX model", "holds no graph"}, reading(""));
  expect_bad_input({"net.onnx: is no ONNX model"}, reading(std::string(1000, '\0')));
  // Messages in messages, deeper than protobuf goes: graph.node.attribute.g.node.attribute.g...
  std::string nested;
  for (int depth = 0; depth < 200; ++depth) {
    std::string length;
    for (std::size_t left = nested.size(); left > 0x7f || length.empty(); left >>= 7) {
      length += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
      if (left <= 0x7f) break;
      if (left >> 7 <= 0x7f) {
        length += static_cast<char>(left >> 7);
        break;
      }
    }
    const char tag = depth % 3 == 0 ? '\x0a' : depth % 3 == 1 ? '\x2a' : '\x32';  // node, attribute, g
    nested = std::string(1, tag) + length + nested;
  }
  expect_bad_input({"net.onnx: is no ONNX model"}, reading("\x3a" + nested));
}

TEST_CASE("onnx file: more parts than any model has") {
  OnnxModel model = small_network();
  std::string bytes = model.bytes();
  std::string empty_nodes;
  for (std::int64_t i = 0; i <= kMaxOnnxObjects; ++i) empty_nodes += std::string("\x0a\x00", 2);
  std::string length;
  for (std::size_t left = empty_nodes.size(); left > 0; left >>= 7) {
    length += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  }
  bytes += "\x3a" + length + empty_nodes;  // fields that appear again are merged
  expect_error(ErrorKind::unsupported, {"net.onnx: ", "kMaxOnnxObjects"}, [&] { import_onnx(bytes, "net.onnx", {}); });
}

TEST_CASE("onnx file: opsets") {
  const auto with_opset = [](std::int64_t version) {
    OnnxModel model = OnnxModel::of_image({2, 3, 3}, static_cast<int>(version));
    model.add_node("Relu", {"x"});
    return model;
  };
  for (const int version : {kOldestOpset, kNewestOpset}) CHECK_NOTHROW(with_opset(version).import());
  refuses_file(with_opset(5), {"version 5", "6 to 23", "opset_version=13"});
  refuses_file(with_opset(24), {"version 24", "6 to 23"});
  refuses_file(with_opset(-1), {"version -1"});
  OnnxModel none = with_opset(13);
  none.proto.clear_opset_import();
  rejects_file(none, {"no opset_import"});
  OnnxModel two = with_opset(13);
  two.proto.add_opset_import()->set_version(14);
  rejects_file(two, {"13 and 14"});
  OnnxModel other = with_opset(13);
  other.proto.add_opset_import()->set_domain("ai.onnx.ml");
  CHECK_NOTHROW(other.import());
}

TEST_CASE("onnx graph: unknown operators are listed in one error") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("LSTM", {"x"}, "a").node.set_name("memory");
  model.add_node("Relu", {"a"}, "b");
  model.add_node("FusedConv", {"b"}, "c").node.set_domain("com.microsoft");
  model.add_node("LSTM", {"c"});
  expect_error(ErrorKind::unsupported,
               {"net.onnx: burin does not know 2 of its operators", "LSTM (nodes 'memory', 'y')",
                "com.microsoft::FusedConv (node 'c')"},
               [&] { model.import(); });
}

TEST_CASE("onnx graph: quantized models whose operators compute with integers") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("DynamicQuantizeLinear", {"x"}, "q");
  model.add_node("ConvInteger", {"q"});
  refuses_file(model, {"DynamicQuantizeLinear (node 'q')", "ConvInteger (node 'y')", "QuantFormat.QDQ"});
}

TEST_CASE("onnx graph: nodes in any order") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Sigmoid", {"b"});
  model.add_node("Relu", {"a"}, "b");
  model.add_node("Identity", {"x"}, "a");
  const Network network = model.import();
  CHECK(kinds(network) == "identity elementwise elementwise");
  CHECK(network.operators[2].name == "y");
}

TEST_CASE("onnx graph: cycles") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Add", {"x", "c"}, "a").node.set_name("entry");
  model.add_node("Relu", {"a"}, "b");
  model.add_node("Relu", {"b"}, "c");
  model.add_node("Relu", {"c"});
  rejects_file(model, {"form a cycle", "'entry' (Add), 'c' (Relu), 'b' (Relu)"});
  OnnxModel self = OnnxModel::of_image({2, 3, 3});
  self.add_node("Add", {"x", "y"});
  rejects_file(self, {"form a cycle", "'y' (Add)"});
}

TEST_CASE("onnx graph: values that nobody or two make") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  SECTION("nobody") {
    model.add_node("Relu", {"z"}).node.set_name("r");
    rejects_file(model, {"node 'r' (Relu): reads 'z', which no node makes", "did you mean 'x'?"});
  }
  SECTION("two nodes") {
    model.add_node("Relu", {"x"});
    model.add_node("Sigmoid", {"x"});
    rejects_file(model, {"node 'y' (Sigmoid): makes 'y', which node 'y' (Relu) makes too"});
  }
  SECTION("a node and an input") {
    model.add_node("Relu", {"x"}, "x");
    rejects_file(model, {"makes 'x'", "an input or an initializer"});
  }
  SECTION("an initializer twice") {
    model.floats("w", {1});
    model.floats("w", {1});
    model.add_node("Relu", {"x"});
    rejects_file(model, {"'w' is made twice"});
  }
  SECTION("an initializer without a name") {
    model.floats("", {1});
    model.add_node("Relu", {"x"});
    rejects_file(model, {"an initializer has no name"});
  }
  SECTION("an output that nobody makes") {
    model.add_node("Relu", {"x"}, "z");
    rejects_file(model, {"has the output 'y', which no node makes"});
  }
  SECTION("a node without an output") {
    model.add_node("Relu", {"x"}, "");
    rejects_file(model, {"has no output"});
  }
}

TEST_CASE("onnx graph: outputs") {
  OnnxModel none(13);
  none.input("x", {1, 2, 3, 3});
  rejects_file(none, {"has no outputs"});
  OnnxModel input(13);
  input.input("x", {1, 2, 3, 3});
  input.output("x");
  CHECK(kinds(input.import()) == "identity");
  CHECK(verify(input.import()).empty());
  OnnxModel twice = OnnxModel::of_image({2, 3, 3});
  twice.add_node("Relu", {"x"});
  twice.output("y");
  rejects_file(twice, {"the output 'y' twice"});
  OnnxModel constant(13);
  constant.floats("w", {1});
  constant.output("w");
  rejects_file(constant, {"has no input that its outputs depend on"});
}

TEST_CASE("onnx graph: what no output depends on is left out") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.input("unused", {1, 4});
  model.add_node("LSTM", {"x"}, "dead");
  model.add_node("Relu", {"x"});
  const Network network = model.import();
  CHECK(kinds(network) == "elementwise");
  CHECK(network.inputs.size() == 1);
  REQUIRE(network.notes.size() == 2);
  CHECK(network.notes[0].find("'dead'") != std::string::npos);
  CHECK(network.notes[1].find("'unused'") != std::string::npos);
}

TEST_CASE("onnx graph: names that are no text") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Relu", {"x"}).node.set_name("\x1b[31m");
  rejects_file(model, {"without control characters", "\\x1b"});
  OnnxModel longer = OnnxModel::of_image({2, 3, 3});
  longer.add_node("Relu", {"x"}).node.set_name(std::string(513, 'n'));
  rejects_file(longer, {"at most 512 bytes"});
}

TEST_CASE("onnx graph: a name that is given twice, and one that burin would give") {
  OnnxModel model = OnnxModel::of_image({4, 3, 3});
  model.add_node("ReduceMean", {"x"}, "n/mean").set("axes", Dims{2, 3}).set("keepdims", 0).node.set_name("n");
  model.add_node("Relu", {"n/mean"}).node.set_name("n/mean");
  CHECK(verify(model.import()).empty());
  CHECK(model.import().operators.size() == 3);
}

TEST_CASE("onnx input: sizes that the file leaves open") {
  OnnxModel model(13);
  model.input("x", {kSymbolic, 2, kSymbolic, kSymbolic});
  model.output("y");
  model.add_node("Relu", {"x"});
  is_usage_error(model, {"net.onnx: input 'x'", "[N,2,N,N]", "--input-shape CxHxW"});
  CHECK(last_shape(model.import(with_shape("8x9"))) == Dims{2, 8, 9});
  CHECK(last_shape(model.import(with_shape("2x8x9"))) == Dims{2, 8, 9});
  is_usage_error(model, {"2 channels, --input-shape 3"}, with_shape("3x8x9"));
  is_usage_error(model, {"--input-shape"}, with_shape("eight"));
  model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  CHECK(last_shape(model.import(with_shape("3x8x9"))) == Dims{3, 8, 9});
}

TEST_CASE("onnx input: fixed sizes may be replaced") {
  OnnxModel model = OnnxModel::of_image({2, 8, 8});
  model.add_node("Relu", {"x"});
  CHECK(last_shape(model.import(with_shape("4x5"))) == Dims{2, 4, 5});
}

TEST_CASE("onnx input: sizes that cannot be") {
  const auto input = [](const Dims& dims) {
    OnnxModel model(13);
    model.input("x", dims);
    model.output("y");
    model.add_node("Relu", {"x"});
    return model;
  };
  rejects_file(input({1, 2, 0, 3}), {"input 'x'", "[1,2,0,3]", "at least 1"});
  rejects_file(input({1, 2, -5, 3}), {"[1,2,-5,3]"});
  rejects_file(input({0, 2, 3, 3}), {"a batch of 0 images"});
  rejects_file(input({-7, 2, 3, 3}), {"a batch of -7 images"});
  refuses_file(input({1}), {"has the shape [1]"});
  refuses_file(input({1, 2, std::int64_t{1} << 40, std::int64_t{1} << 40}), {"kMaxImageBytes"});
  refuses_file(input({1, 1, 1, 1, 1, 1, 1, 1}), {"[1,1,1,1,1,1,1,1]"});
  OnnxModel integers = input({1, 2, 3, 3});
  integers.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
  refuses_file(integers, {"input 'x'", "ONNX's type 7"});
  OnnxModel two = input({1, 2, 3, 3});
  two.input("x2", {4, 2, 3, 3});
  two.output("z");
  two.add_node("Relu", {"x2"}, "z");
  refuses_file(two, {"a batch of 4 images, another input has 1"});
  is_usage_error(two, {"2 inputs"}, with_shape("3x3"));
}

TEST_CASE("onnx input: initializers that old files list as inputs") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.floats("w", {1, 2, 1, 1});
  model.input("w", {1, 2, 1, 1});
  model.add_node("Conv", {"x", "w"});
  CHECK(model.import().inputs.size() == 1);
}

TEST_CASE("onnx input: half precision is a note") {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  model.add_node("Relu", {"x"});
  model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(10);
  REQUIRE(model.import().notes.size() == 1);
  CHECK(model.import().notes[0].find("input 'x'") != std::string::npos);
}

TEST_CASE("onnx options: chosen layers come without the network around them") {
  CHECK_FALSE(small_network().import().separate);
  const Network network = small_network().import(with_layers("sec*"));
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].name == "second");
  CHECK(network.separate);
  REQUIRE(network.operators.size() == 1);
  CHECK(network.operators[0].name == "second");
  REQUIRE(network.tensors.size() == 2);
  CHECK(network.tensors[0].name == "second.input");
  CHECK(network.tensors[1].name == "second.output");
  REQUIRE(network.notes.size() == 1);
  CHECK(network.notes[0].find("1 of 2 convolutions") != std::string::npos);
  is_usage_error(small_network(), {"no layer matches 'thirb'", "'first', 'second'"}, with_layers("thirb"));
}

TEST_CASE("onnx options: an activation is for chosen layers") {
  ImportOptions options;
  options.activation = Activation::relu;
  is_usage_error(small_network(), {"--activation", "--layer"}, options);
  options.layer_glob = "*";
  const Network network = small_network().import(options);
  REQUIRE(network.layers.size() == 2);
  CHECK(network.layers[1].shape.epilogue.function == function_of(Activation::relu));
}

TEST_CASE("onnx options: those of bare arrays are refused") {
  ImportOptions stride;
  stride.flags.stride = "2";
  is_usage_error(small_network(), {"--stride"}, stride);
  ImportOptions geometry;
  geometry.geometry_file = "geometry.json";
  is_usage_error(small_network(), {"--geometry"}, geometry);
  ImportOptions threshold;
  threshold.zero_threshold = -1;
  is_usage_error(small_network(), {"--zero-threshold is -1"}, threshold);
}

TEST_CASE("onnx options: the zero threshold applies to fully connected layers too") {
  ImportOptions options;
  options.zero_threshold = 14;
  const std::vector<float> weights = last<Linear>(small_network().import(options)).weights;
  CHECK(std::count(weights.begin(), weights.end(), 0.0F) == 14);
}

TEST_CASE("onnx: the size of the inputs that the weights were made for") {
  const auto std_of = [](const char* key, const char* value) {
    OnnxModel model = OnnxModel::of_image({1, 2, 2});
    model.add_node("Relu", {"x"});
    auto* const property = model.proto.add_metadata_props();
    property->set_key(key);
    property->set_value(value);
    return model.import().input_std;
  };
  CHECK(std_of("input_std", "58.0") == 58);
  CHECK(std_of("another", "58") == 1);
  for (const char* other : {"", "0", "-1", "nan", "inf", "0.229,0.224,0.225", "1e300"})
    CHECK(std_of("input_std", other) == 1);
}
