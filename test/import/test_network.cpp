// From tensors and geometry to layers.
#include <fmt/format.h>

#include <cmath>

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

ImportOptions with_flags(const std::string& input_shape, std::optional<int> groups = {}) {
  ImportOptions options;
  options.flags.input_shape = input_shape;
  options.flags.groups = groups;
  return options;
}

// A safetensors file of several float32 tensors, each counting up from 1 anew.
struct Tensor {
  std::string name;
  std::vector<int> shape;
  std::string data;  // empty: counts up
};
std::string tensors_file(const std::vector<Tensor>& tensors, const std::string& geometry) {
  std::string header, data;
  if (!geometry.empty()) {
    std::string escaped;
    for (const char ch : geometry) escaped += ch == '"' ? std::string("\\\"") : std::string(1, ch);
    header = R"("__metadata__":{"geometry":")" + escaped + "\"}";
  }
  for (const Tensor& tensor : tensors) {
    std::string shape = "[";
    int count = 1;
    for (const int extent : tensor.shape) {
      shape += (shape.size() > 1 ? "," : "") + std::to_string(extent);
      count *= extent;
    }
    const std::string bytes = tensor.data.empty() ? ramp(count) : tensor.data;
    header += (header.empty() ? "" : ",") +
              entry(tensor.name, "F32", shape + "]", fmt::format("[{},{}]", data.size(), data.size() + bytes.size()));
    data += bytes;
  }
  return safetensors("{" + header + "}", data);
}

Network import_bytes(const std::string& bytes, const ImportOptions& options = {},
                     const std::string& name = "n.safetensors") {
  const ScratchFolder folder;
  return import_network(folder.write(name, bytes), options);
}

void rejects_network(const std::string& bytes, ErrorKind kind, std::initializer_list<std::string_view> parts,
                     const ImportOptions& options = {}) {
  expect_error(kind, {"n.safetensors"}, [&] { import_bytes(bytes, options); });
  expect_error(kind, parts, [&] { import_bytes(bytes, options); });
}

const std::string kTwoLayers = tensors_file({{"a.weight", {2, 1, 1, 1}, ""}, {"b.weight", {1, 2, 3, 3}, ""}},
                                            R"({"a":{"H":4,"W":4},"b":{"H":4,"W":4}})");

}  // namespace

TEST_CASE("network: a bare array with flags") {
  ImportOptions options = with_flags("6x8x9", 2);
  options.flags.stride = "2x1";
  options.flags.pad = "1,0,1,0";
  options.flags.dilation = "2";
  options.activation = Activation::silu;
  const Network network = import_bytes(npy_ramp({4, 3, 3, 2}), options, "edge.npy");
  REQUIRE(network.layers.size() == 1);
  const ConvLayer& layer = network.layers[0];
  CHECK(layer.name == "edge");
  CHECK(layer.shape.in_channels == 6);
  CHECK(layer.shape.out_channels == 4);
  CHECK(layer.shape.kernel_h == 3);
  CHECK(layer.shape.kernel_w == 2);
  CHECK(layer.shape.stride_h == 2);
  CHECK(layer.shape.dilation_w == 2);
  CHECK(layer.shape.groups == 2);
  CHECK(layer.shape.pad == Padding{1, 0, 1, 0});
  CHECK(layer.shape.in_h == 8);
  CHECK(layer.shape.in_w == 9);
  CHECK(layer.shape.epilogue.function == function_of(Activation::silu));
  CHECK(!layer.shape.epilogue.bias);
  CHECK(layer.weight(3, 2, 2, 1) == 72);
}

TEST_CASE("network: each layer of a file is a graph of its own") {
  const Network network = import_bytes(tensors_file({{"a.weight", {2, 1, 1, 1}, ""}, {"b.weight", {1, 2, 3, 3}, ""}},
                                                    R"({"a":{"H":4,"W":4,"residual":true},"b":{"H":4,"W":5}})"));
  CHECK(network.separate);
  CHECK(verify(network).empty());
  std::vector<std::string> tensors, operators;
  for (const Activations& tensor : network.tensors) {
    tensors.push_back(tensor.name + " " + shape_text(tensor.shape));
    CHECK(tensor.format.is_plain());
  }
  for (const Operator& op : network.operators) operators.push_back(op.name);
  CHECK(tensors == std::vector<std::string>{"a.input 1x4x4", "a.residual 2x4x4", "a.output 2x4x4", "b.input 2x4x5",
                                            "b.output 1x2x3"});
  CHECK(operators == std::vector<std::string>{"a", "b"});
  CHECK(network.inputs == std::vector<int>{0, 1, 3});
  CHECK(network.outputs == std::vector<int>{2, 4});
}

TEST_CASE("network: a bare matrix is a 1x1 convolution") {
  const Network network = import_bytes(npy_ramp({4, 3}), with_flags("3x8x8"), "m.npy");
  CHECK(network.layers.at(0).shape.kernel_h == 1);
  CHECK(network.layers.at(0).weight(1, 0, 0, 0) == 4);
}

TEST_CASE("network: an archive with one 4-D array takes flags, the layer has the array's key") {
  const Network network = import_bytes(zip({{"conv.npy", npy_ramp({2, 1, 1, 1})}, {"other.npy", npy_ramp({3})}}),
                                       with_flags("1x4x4"), "n.npz");
  CHECK(network.layers.at(0).name == "conv");
  CHECK(network.leftover.at(0).name == "other");
}

TEST_CASE("network: one 4-D safetensors tensor takes flags, and its bias comes along") {
  const Network network =
      import_bytes(tensors_file({{"c.bias", {2}, ""}, {"c.weight", {2, 1, 1, 1}, ""}}, ""), with_flags("4x5"));
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].name == "c");
  CHECK(network.layers[0].bias == std::vector<float>{1, 2});
  CHECK(network.leftover.empty());
}

TEST_CASE("network: flags override single attributes of the only layer's geometry") {
  const auto file = tensors_file({{"a.weight", {2, 1, 1, 1}, ""}}, R"({"a":{"H":4,"W":4,"stride":2}})");
  const Network network = import_bytes(file, with_flags("9x9"));
  CHECK(network.layers.at(0).shape.in_h == 9);
  CHECK(network.layers.at(0).shape.stride_h == 2);
}

TEST_CASE("network: a side file stands above the metadata") {
  const ScratchFolder folder;
  ImportOptions options;
  options.geometry_file = folder.write("g.json", R"({"a":{"H":7,"W":6,"activation":"relu"}})");
  const Network network = import_network(folder.write("n.safetensors", kTwoLayers), options);
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].shape.in_h == 7);
  CHECK(network.layers[0].shape.epilogue.function == function_of(Activation::relu));
  CHECK(network.leftover.at(0).name == "b.weight");
}

TEST_CASE("network: a side file describes a bare array under any name, or picks it by name") {
  const ScratchFolder folder;
  const std::string array = folder.write("edge.npy", npy_ramp({2, 1, 1, 1}));
  ImportOptions options;
  options.geometry_file = folder.write("one.json", R"({"conv7":{"weight":"conv7.w","H":7,"W":6}})");
  CHECK(import_network(array, options).layers.at(0).name == "conv7");
  options.geometry_file = folder.write("many.json", R"({"x":{"H":1,"W":1},"edge":{"H":7,"W":6}})");
  CHECK(import_network(array, options).layers.at(0).name == "edge");
  options.geometry_file = folder.write("none.json", R"({"x":{"H":1,"W":1},"y":{"H":7,"W":6}})");
  expect_bad_input({"none.json", "'edge'"}, [&] { import_network(array, options); });
}

TEST_CASE("network: a side file that is missing") {
  ImportOptions options;
  options.geometry_file = "/nonexistent/g.json";
  expect_bad_input({"/nonexistent/g.json", "no such file"}, [&] { import_bytes(kTwoLayers, options); });
}

TEST_CASE("network: 2-D tensors named in the geometry are 1x1 convolutions") {
  const Network network = import_bytes(tensors_file({{"fc.weight", {3, 2}, ""}}, R"({"fc":{"H":1,"W":1}})"));
  CHECK(network.layers.at(0).shape.in_channels == 2);
  CHECK(network.layers.at(0).shape.out_channels == 3);
  CHECK(network.layers.at(0).weight(2, 1, 0, 0) == 6);
}

TEST_CASE("network: biases beside the weights, by name, and refused") {
  const std::vector<Tensor> tensors = {
      {"a.weight", {2, 1, 1, 1}, ""}, {"a.bias", {2}, ""}, {"other", {2}, raw<float>({7, 8})}};
  CHECK(import_bytes(tensors_file(tensors, R"({"a":{"H":4,"W":4}})")).layers[0].bias == std::vector<float>{1, 2});
  CHECK(import_bytes(tensors_file(tensors, R"({"x":{"weight":"a.weight","H":4,"W":4}})")).layers[0].bias ==
        std::vector<float>{1, 2});
  const Network named = import_bytes(tensors_file(tensors, R"({"a":{"H":4,"W":4,"bias":"other"}})"));
  CHECK(named.layers[0].bias == std::vector<float>{7, 8});
  CHECK(named.layers[0].shape.epilogue.bias);
  CHECK(named.leftover.at(0).name == "a.bias");
  const Network none = import_bytes(tensors_file(tensors, R"({"a":{"H":4,"W":4,"bias":false}})"));
  CHECK(none.layers[0].bias.empty());
  CHECK(!none.layers[0].shape.epilogue.bias);
}

TEST_CASE("network: epilogue from the geometry, activation overridden by the option") {
  const auto file = tensors_file({{"a.weight", {1, 1, 1, 1}, ""}},
                                 R"({"a":{"H":4,"W":4,"activation":"leaky_relu","leaky_slope":0.3,"residual":true}})");
  const Epilogue epilogue = import_bytes(file).layers.at(0).shape.epilogue;
  CHECK(epilogue.function == function_of(Activation::leaky_relu, 0.3F));
  CHECK(epilogue.residual);
  ImportOptions options;
  options.activation = Activation::none;
  CHECK(import_bytes(file, options).layers.at(0).shape.epilogue.function == function_of(Activation::none));
}

TEST_CASE("network: pruning pairs are multiplied") {
  const std::vector<Tensor> tensors = {{"a.weight_orig", {3, 1, 1, 1}, raw<float>({5, INFINITY, 7})},
                                       {"a.weight_mask", {3, 1, 1, 1}, raw<float>({1, 0, 1})},
                                       {"a.bias_orig", {3}, ""},
                                       {"a.bias_mask", {3}, raw<float>({0, 1, 1})}};
  const Network network = import_bytes(tensors_file(tensors, R"({"a":{"H":4,"W":4}})"));
  CHECK(network.layers.at(0).weights == std::vector<float>{5, 0, 7});
  CHECK(network.layers.at(0).bias == std::vector<float>{0, 2, 3});
  CHECK(network.leftover.empty());
}

TEST_CASE("network: a mask of booleans") {
  const std::string file = safetensors(R"({"__metadata__":{"geometry":"{\"a\":{\"H\":1,\"W\":1}}"},)" +
                                           entry("a.weight_mask", "BOOL", "[2,1,1,1]", "[0,2]") + "," +
                                           entry("a.weight_orig", "F32", "[2,1,1,1]", "[2,10]") + "}",
                                       std::string("\0\1", 2) + ramp(2));
  CHECK(import_bytes(file).layers.at(0).weights == std::vector<float>{0, 2});
}

TEST_CASE("network: half of a pruning pair is an ordinary tensor") {
  const Network network = import_bytes(tensors_file(
      {{"a.weight", {1, 1, 1, 1}, ""}, {"b_orig", {1}, ""}, {"c_mask", {1}, ""}}, R"({"a":{"H":4,"W":4}})"));
  REQUIRE(network.leftover.size() == 2);
  CHECK(network.leftover[0].name == "b_orig");
  CHECK(network.leftover[1].name == "c_mask");
}

TEST_CASE("network: rejects a mask of another shape") {
  rejects_network(
      tensors_file({{"a.weight_orig", {2, 1, 1, 1}, ""}, {"a.weight_mask", {2}, ""}}, R"({"a":{"H":4,"W":4}})"),
      ErrorKind::bad_input, {"'a.weight_orig'", "[2,1,1,1]", "'a.weight_mask'", "[2]"});
}
TEST_CASE("network: rejects a pruning pair beside the plain tensor") {
  rejects_network(tensors_file({{"w_orig", {1}, ""}, {"w_mask", {1}, ""}, {"w", {1}, ""}}, ""), ErrorKind::bad_input,
                  {"'w'", "beside"});
}

TEST_CASE("network: only the layers that match, and the others' tensors are not left over") {
  ImportOptions options;
  options.layer_glob = "b*";
  const Network network = import_bytes(kTwoLayers, options);
  REQUIRE(network.layers.size() == 1);
  CHECK(network.layers[0].name == "b");
  CHECK(network.leftover.empty());
}
TEST_CASE("network: a layer that is not asked for may be broken") {
  ImportOptions options;
  options.layer_glob = "a";
  CHECK(import_bytes(tensors_file({{"a.weight", {1, 1, 1, 1}, ""}}, R"({"a":{"H":4,"W":4},"b":{}})"), options)
            .layers.size() == 1);
}
TEST_CASE("network: a pattern that matches nothing lists the names") {
  ImportOptions options;
  options.layer_glob = "c";
  rejects_network(kTwoLayers, ErrorKind::usage, {"no layer matches 'c'", "'a', 'b'"}, options);
}

TEST_CASE("network: two layers may share their weights") {
  const Network network = import_bytes(
      tensors_file({{"w", {1, 1, 1, 1}, ""}}, R"({"a":{"weight":"w","H":4,"W":4},"b":{"weight":"w","H":2,"W":2}})"));
  CHECK(network.layers.size() == 2);
}

TEST_CASE("network: leftover tensors are converted, and what is not floating-point is named in a note") {
  const std::string file = safetensors(
      R"({"__metadata__":{"geometry":"{\"a\":{\"H\":1,\"W\":1}}"},)" + entry("a.weight", "F32", "[1,1,1,1]", "[0,4]") +
          "," + entry("half", "F16", "[2]", "[4,8]") + "," + entry("steps", "I32", "[]", "[8,12]") + "}",
      ramp(1) + raw<std::uint16_t>({0x3C00, 0x4000}) + raw<std::int32_t>({5}));
  const Network network = import_bytes(file);
  REQUIRE(network.leftover.size() == 1);
  CHECK(network.leftover[0].values == std::vector<float>{1, 2});
  CHECK(network.leftover[0].shape == std::vector<std::int64_t>{2});
  REQUIRE(network.notes.size() == 1);
  CHECK(network.notes[0].find("'steps'") != std::string::npos);
}

TEST_CASE("network: unknown attributes are noted once") {
  const Network network =
      import_bytes(tensors_file({{"a.weight", {1, 1, 1, 1}, ""}}, R"({"a":{"H":4,"W":4,"colour":"red"}})"));
  REQUIRE(network.notes.size() == 1);
  CHECK(network.notes[0].find("'colour'") != std::string::npos);
}

TEST_CASE("network: minus zero becomes zero") {
  const Network network =
      import_bytes(npy(npy_header("<f4", "(2,1,1,1)"), raw<float>({-0.0F, 1})), with_flags("1x1"), "z.npy");
  CHECK(!std::signbit(network.layers.at(0).weights[0]));
}

TEST_CASE("network: no nonzeros at all is legal") {
  const Network network =
      import_bytes(npy(npy_header("<f4", "(2,1,1,1)"), raw<float>({0, 0})), with_flags("1x1"), "z.npy");
  CHECK(network.layers.at(0).weights == std::vector<float>{0, 0});
  CHECK(network.notes.empty());
}

TEST_CASE("network: rejects flags for a file of several layers") {
  rejects_network(kTwoLayers, ErrorKind::usage, {"2 layers", "--input-shape", "--geometry"}, with_flags("4x4"));
}
TEST_CASE("network: rejects flags for several arrays without geometry") {
  rejects_network(tensors_file({{"a", {1, 1, 1, 1}, ""}, {"b", {1, 1, 1, 1}, ""}}, ""), ErrorKind::usage,
                  {"2 layers", "'a', 'b'", "--input-shape", "--geometry"}, with_flags("4x4"));
}
TEST_CASE("network: rejects several arrays without geometry") {
  rejects_network(tensors_file({{"a", {1, 1, 1, 1}, ""}, {"b", {1, 1, 1, 1}, ""}}, ""), ErrorKind::usage,
                  {"no 'geometry'", "--geometry", "--input-shape", "--stride"});
}
TEST_CASE("network: rejects a bare array without --input-shape") {
  ImportOptions options;
  options.flags.stride = "2";
  rejects_network(tensors_file({{"a", {1, 1, 1, 1}, ""}}, ""), ErrorKind::usage, {"--input-shape", "--geometry"},
                  options);
}
TEST_CASE("network: rejects a file without 4-D weights") {
  rejects_network(tensors_file({{"a", {3}, ""}}, ""), ErrorKind::bad_input, {"no 4-D weights", "'a'", "[3]"},
                  with_flags("4x4"));
}
TEST_CASE("network: rejects channels that do not fit the weights") {
  rejects_network(tensors_file({{"a", {4, 3, 1, 1}, ""}}, ""), ErrorKind::usage,
                  {"--input-shape", "4 channels", "take 6"}, with_flags("4x5x5", 2));
}
TEST_CASE("network: rejects output channels not divisible by groups") {
  rejects_network(tensors_file({{"a.weight", {3, 1, 1, 1}, ""}}, R"({"a":{"H":4,"W":4,"groups":2}})"),
                  ErrorKind::bad_input, {"'a'", "3 output channels", "2 groups"});
}
TEST_CASE("network: rejects a layer without H") {
  rejects_network(tensors_file({{"a.weight", {1, 1, 1, 1}, ""}}, R"({"a":{"W":4}})"), ErrorKind::bad_input,
                  {"'a'", "lacks 'H'"});
}
TEST_CASE("network: rejects a layer without W") {
  rejects_network(tensors_file({{"a.weight", {1, 1, 1, 1}, ""}}, R"({"a":{"H":4}})"), ErrorKind::bad_input,
                  {"'a'", "lacks 'W'"});
}
TEST_CASE("network: rejects weights that are not in the file, and suggests") {
  rejects_network(tensors_file({{"conv1.weight", {1, 1, 1, 1}, ""}}, R"({"c":{"weight":"conv1.wieght","H":4,"W":4}})"),
                  ErrorKind::bad_input, {"'c'", "'conv1.wieght'", "did you mean 'conv1.weight'?"});
}
TEST_CASE("network: rejects a required bias that is not in the file") {
  rejects_network(tensors_file({{"a.weight", {1, 1, 1, 1}, ""}}, R"({"a":{"H":4,"W":4,"bias":true}})"),
                  ErrorKind::bad_input, {"'a'", "bias 'a.bias'"});
}
TEST_CASE("network: rejects a bias of another length") {
  rejects_network(tensors_file({{"a.weight", {2, 1, 1, 1}, ""}, {"a.bias", {3}, ""}}, R"({"a":{"H":4,"W":4}})"),
                  ErrorKind::bad_input, {"'a'", "'a.bias'", "[3]", "2 output channels"});
}
TEST_CASE("network: rejects NaN weights by index") {
  rejects_network(tensors_file({{"a.weight", {1, 2, 1, 2}, raw<float>({1, 2, 3, NAN})}}, R"({"a":{"H":4,"W":4}})"),
                  ErrorKind::bad_input, {"'a'", "weight[0,1,0,1] is NaN"});
}
TEST_CASE("network: rejects infinite weights by index") {
  rejects_network(tensors_file({{"a.weight", {2, 1, 1, 1}, raw<float>({1, -INFINITY})}}, R"({"a":{"H":4,"W":4}})"),
                  ErrorKind::bad_input, {"'a'", "weight[1,0,0,0] is -infinity"});
}
TEST_CASE("network: rejects NaN biases by index") {
  rejects_network(
      tensors_file({{"a.weight", {2, 1, 1, 1}, ""}, {"a.bias", {2}, raw<float>({1, NAN})}}, R"({"a":{"H":4,"W":4}})"),
      ErrorKind::bad_input, {"'a'", "bias[1] is NaN"});
}
TEST_CASE("network: rejects integer weights") {
  rejects_network(safetensors(R"({"__metadata__":{"geometry":"{\"a\":{\"H\":1,\"W\":1}}"},)" +
                                  entry("a.weight", "I32", "[1,1,1,1]", "[0,4]") + "}",
                              ramp(1)),
                  ErrorKind::bad_input, {"'a.weight'", "'I32'", "float32"});
}
TEST_CASE("network: rejects weights of three dimensions") {
  rejects_network(tensors_file({{"a.weight", {2, 1, 3}, ""}}, R"({"a":{"H":4,"W":4}})"), ErrorKind::bad_input,
                  {"'a'", "[2,1,3]", "[K,C,R,S]"});
}
TEST_CASE("network: rejects weights of extent 0") {
  rejects_network(safetensors(R"({"__metadata__":{"geometry":"{\"a\":{\"H\":1,\"W\":1}}"},)" +
                                  entry("a.weight", "F32", "[0,1,1,1]", "[0,0]") + "}",
                              ""),
                  ErrorKind::bad_input, {"'a'", "extent of 0"});
}
TEST_CASE("network: rejects a kernel above the limit") {
  rejects_network(tensors_file({{"a.weight", {1, 1, 12, 1}, ""}}, R"({"a":{"H":44,"W":4}})"), ErrorKind::unsupported,
                  {"'a'", "12x1 kernel", "limit is 11"});
}
TEST_CASE("network: rejects channels above the limit") {
  rejects_network(tensors_file({{"a.weight", {65536, 2, 1, 1}, ""}}, R"({"a":{"H":4,"W":4,"groups":65536}})"),
                  ErrorKind::unsupported, {"'a'", "65536 groups", "limit of 65536 channels"});
}
TEST_CASE("network: rejects a kernel larger than the padded input") {
  rejects_network(tensors_file({{"a.weight", {1, 1, 5, 5}, ""}}, R"({"a":{"H":4,"W":9}})"), ErrorKind::bad_input,
                  {"'a'"});
}
TEST_CASE("network: rejects names that no layer may have") {
  rejects_network(tensors_file({{"w", {1, 1, 1, 1}, ""}}, R"({"":{"weight":"w","H":4,"W":4}})"), ErrorKind::bad_input,
                  {"name"});
  rejects_network(tensors_file({{"w", {1, 1, 1, 1}, ""}}, R"({"a\\u0007":{"weight":"w","H":4,"W":4}})"),
                  ErrorKind::bad_input, {"name", "control"});
  rejects_network(
      tensors_file({{"w", {1, 1, 1, 1}, ""}}, "{\"" + std::string(513, 'n') + R"(":{"weight":"w","H":4,"W":4}})"),
      ErrorKind::bad_input, {"name", "512 bytes"});
}
TEST_CASE("network: rejects broken geometry in the metadata") {
  rejects_network(tensors_file({{"w", {1, 1, 1, 1}, ""}}, "{"), ErrorKind::bad_input,
                  {"metadata key 'geometry'", "not valid JSON"});
}
