// Operators that move values: what is read, what is refused, and what comes out of small images in float64.
#include <numeric>

#include "compiler/network/reference_network.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/import/onnx_faults.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

// What the model makes of the values 0, 1, 2 ... of one image.
std::vector<Doubles> counted(const OnnxModel& model) {
  const Network network = model.import();
  std::vector<float> values(static_cast<std::size_t>(network.tensors[0].elements()));
  std::iota(values.begin(), values.end(), 0.0F);
  return run_reference(network, 1, {values});
}

OnnxModel slice(const Dims& shape, const Dims& starts, const Dims& ends, const Dims& axes, const Dims& steps) {
  OnnxModel model = OnnxModel::of_image(shape);
  model.integers("starts", starts);
  model.integers("ends", ends);
  model.integers("axes", axes);
  model.integers("steps", steps);
  model.add_node("Slice", {"x", "starts", "ends", "axes", "steps"});
  return model;
}

OnnxModel split(const Dims& shape, int axis, int outputs, int opset = 13) {
  OnnxModel model = OnnxModel::of_image(shape, opset);
  NodeMaker node = model.add_node("Split", {"x"}).set("axis", axis);
  for (int i = 1; i < outputs; ++i) {
    const std::string name = "y" + std::to_string(i);
    node.node.add_output(name);
    model.output(name);
  }
  return model;
}

}  // namespace

TEST_CASE("onnx slice: channels are a view") {
  const OnnxModel model = slice({4, 1, 2}, {-3}, {3}, {1}, {1});
  CHECK(kinds(model.import()) == "channel_view");
  CHECK(counted(model)[0] == Doubles{2, 3, 4, 5});
}

TEST_CASE("onnx slice: rows and columns, with steps, from the ends and beyond them") {
  CHECK(counted(slice({1, 2, 5}, {0, 1}, {9, 9}, {2, 3}, {1, 2}))[0] == Doubles{1, 3, 6, 8});
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(counted(slice({1, 1, 5}, {-1}, {kLeast}, {-1}, {-1}))[0] == Doubles{4, 3, 2, 1, 0});
  CHECK(counted(slice({1, 1, 5}, {kLargest}, {-5}, {-1}, {-2}))[0] == Doubles{4, 2});
  CHECK(counted(slice({1, 1, 5}, {1}, {kLargest}, {-1}, {kLargest}))[0] == Doubles{1});
  CHECK(counted(slice({4, 1, 1}, {0}, {4}, {1}, {3}))[0] == Doubles{0, 3});
}

TEST_CASE("onnx slice: channels and columns at once, and all of everything") {
  const OnnxModel both = slice({3, 1, 3}, {1, 1}, {3, 3}, {1, 3}, {1, 1});
  CHECK(kinds(both.import()) == "channel_view pick");
  CHECK(counted(both)[0] == Doubles{4, 5, 7, 8});
  CHECK(kinds(slice({3, 1, 3}, {0, 0}, {1 << 30, 9}, {1, 2}, {1, 1}).import()) == "identity");
}

TEST_CASE("onnx slice: attributes of old opsets") {
  OnnxModel model = OnnxModel::of_image({1, 1, 5}, 9);
  model.add_node("Slice", {"x"}).set("axes", Dims{3}).set("starts", Dims{1}).set("ends", Dims{-1});
  CHECK(counted(model)[0] == Doubles{1, 2, 3});
}

TEST_CASE("onnx slice: what is refused") {
  refuses(slice({3, 4, 5}, {1}, {2}, {0}, {1}), {"cuts the batch"});
  refuses(slice({3, 4, 5}, {2}, {2}, {3}, {1}), {"takes nothing of an axis of 5 elements"});
  refuses(slice({3, 4, 5}, {2}, {4}, {3}, {-1}), {"takes nothing"});
  rejects(slice({3, 4, 5}, {0}, {2}, {3}, {0}), {"its step is 0"});
  rejects(slice({3, 4, 5}, {0, 0}, {2, 2}, {3, -1}, {1, 1}), {"names axis 3 twice"});
  rejects(slice({3, 4, 5}, {0}, {2}, {4}, {1}), {"axis 4 is none of 4"});
  rejects(slice({3, 4, 5}, {0, 0}, {2}, {1}, {1}), {"2 starts, 1 ends"});
}

TEST_CASE("onnx split: in equal parts, by sizes and with a smaller last part") {
  const OnnxModel equal = split({4, 1, 1}, 1, 2);
  CHECK(kinds(equal.import()) == "channel_view channel_view");
  CHECK(counted(equal) == std::vector<Doubles>{{0, 1}, {2, 3}});
  OnnxModel sizes = split({1, 1, 5}, -1, 3);
  sizes.integers("sizes", {1, 3, 1});
  sizes.proto.mutable_graph()->mutable_node(0)->add_input("sizes");
  CHECK(kinds(sizes.import()) == "pick pick pick");
  CHECK(counted(sizes) == std::vector<Doubles>{{0}, {1, 2, 3}, {4}});
  OnnxModel uneven = split({5, 1, 1}, 1, 3, 18);
  NodeMaker(*uneven.proto.mutable_graph()->mutable_node(0)).set("num_outputs", 3);
  CHECK(counted(uneven) == std::vector<Doubles>{{0, 1}, {2, 3}, {4}});
  OnnxModel old = split({3, 1, 1}, 1, 2, 11);
  NodeMaker(*old.proto.mutable_graph()->mutable_node(0)).set("split", Dims{1, 2});
  CHECK(counted(old) == std::vector<Doubles>{{0}, {1, 2}});
}

TEST_CASE("onnx split: what is refused") {
  refuses(split({4, 1, 1}, 0, 2), {"splits the batch"});
  rejects(split({5, 1, 1}, 1, 2), {"5 elements cannot be split into 2 parts"});
  const auto sized = [](const Dims& sizes) {
    OnnxModel model = split({4, 1, 1}, 1, 2);
    model.integers("sizes", sizes);
    model.proto.mutable_graph()->mutable_node(0)->add_input("sizes");
    return model;
  };
  rejects(sized({1, 2}), {"its parts have 3 elements, its input has 4"});
  refuses(sized({0, 4}), {"its part 0 has no elements"});
  rejects(sized({3, 2}), {"its part 1 has 2 of 1"});
  rejects(sized({1, 1, 2}), {"2 outputs, and 3 sizes"});
}

TEST_CASE("onnx gather: ranges are views, regular steps picks, other rows and columns resampled") {
  const auto gather = [](const Dims& shape, const Dims& indices, int axis) {
    OnnxModel model = OnnxModel::of_image(shape);
    model.integers("indices", indices);
    model.add_node("Gather", {"x", "indices"}).set("axis", axis);
    return model;
  };
  const OnnxModel range = gather({4, 1, 1}, {1, 2, 3}, 1);
  CHECK(kinds(range.import()) == "channel_view");
  CHECK(counted(range)[0] == Doubles{1, 2, 3});
  const OnnxModel reversed = gather({4, 1, 1}, {3, 2, 1, 0}, 1);
  CHECK(kinds(reversed.import()) == "pick");
  CHECK(counted(reversed)[0] == Doubles{3, 2, 1, 0});
  const OnnxModel same = gather({1, 1, 4}, {2, 2, 2}, 3);
  CHECK(kinds(same.import()) == "pick");
  CHECK(counted(same)[0] == Doubles{2, 2, 2});
  const OnnxModel cols = gather({2, 1, 3}, {2, 0, -2}, -1);
  CHECK(kinds(cols.import()) == "reshape resample reshape reshape");
  CHECK(counted(cols)[0] == Doubles{2, 0, 1, 5, 3, 4});
  CHECK(counted(gather({2, 3, 1}, {2, 0, 1}, 2))[0] == Doubles{2, 0, 1, 5, 3, 4});
  CHECK(counted(gather({3}, {2, 0, 1}, 1))[0] == Doubles{2, 0, 1});
}

TEST_CASE("onnx gather: more channels than lists of sizes may have") {
  OnnxModel model = OnnxModel::of_image({200, 1, 1});
  Dims indices(200);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i * 7 % 200);
  model.integers("indices", indices);
  model.add_node("Gather", {"x", "indices"}).set("axis", 1);
  CHECK(kinds(model.import()) == "convolution");
  CHECK(counted(model)[0] == Doubles(indices.begin(), indices.end()));
}

TEST_CASE("onnx moves: what a small file would make large is refused before it is made") {
  OnnxModel phases = OnnxModel::of_image({64, 3, 3});
  phases.floats("w", {64, 32, 1, 1}, std::vector<float>(64 * 32, 1.0F));
  phases.add_node("ConvTranspose", {"x", "w"}).set("strides", Dims{64, 64});
  refuses(phases, {"burin's limit is 65536"});
  OnnxModel fewer = OnnxModel::of_image({512, 3, 3});
  fewer.floats("w", {512, 15, 1, 1}, std::vector<float>(512 * 15, 1.0F));
  fewer.add_node("ConvTranspose", {"x", "w"}).set("strides", Dims{64, 64});
  refuses(fewer, {"its 7680 weights make 31457280 of its phases", "(kMaxMadeWeights)"});
  OnnxModel padded = OnnxModel::of_image({4096, 1, 1});
  padded.integers("pads", {0, 1, 0, 0, 0, 0, 0, 0});
  padded.add_node("Pad", {"x", "pads"});
  refuses(padded, {"it makes 4097 channels of 4096", "(kMaxMadeWeights)"});
  OnnxModel reflected = OnnxModel::of_image({1, 1, 1 << 26});
  reflected.integers("pads", {0, 0, 0, 1, 0, 0, 0, 0});
  reflected.add_node("Pad", {"x", "pads"}).set("mode", "reflect");
  refuses(reflected, {"an extent of its input is 67108864"});
  OnnxModel wide = OnnxModel::of_image({1, 4, 1 << 24});
  wide.integers("indices", {3, 0, 2});
  wide.add_node("Gather", {"x", "indices"}).set("axis", 2);
  refuses(wide, {"(kMaxTapTable)"});
  refuses(split({5000, 1, 1}, 1, 5000), {"it has 5000 outputs"});
  OnnxModel many = OnnxModel::of_image({4096, 1, 2});  // no convolution of 4096 x 4096
  Dims indices(4096);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i * 7 % 4096);
  many.proto.mutable_graph()->clear_initializer();
  many.integers("indices", indices);
  many.add_node("Gather", {"x", "indices"}).set("axis", 1);
  CHECK(kinds(many.import()) == "reshape resample reshape reshape");
  CHECK(counted(many)[0][3] == 15);
}

TEST_CASE("onnx depth to space and back: both orders of channels") {
  const auto through = [](const char* mode, bool back) {
    OnnxModel model = OnnxModel::of_image({8, 1, 2});
    model.add_node("DepthToSpace", {"x"}, back ? "space" : "y").set("blocksize", 2).set("mode", mode);
    if (back) model.add_node("SpaceToDepth", {"space"}).set("blocksize", 2);
    return counted(model)[0];
  };
  CHECK(through("DCR", false) == Doubles{0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15});
  CHECK(through("CRD", false) == Doubles{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15});
  Doubles all(16);
  std::iota(all.begin(), all.end(), 0.0);
  CHECK(through("DCR", true) == all);
}

TEST_CASE("onnx depth to space: what is refused") {
  const auto model = [](const std::string& op, const char* mode, int block) {
    OnnxModel made = OnnxModel::of_image({6, 3, 4});
    NodeMaker node = made.add_node(op, {"x"}).set("blocksize", block);
    if (op == "DepthToSpace") node.set("mode", mode);
    return made;
  };
  rejects(model("DepthToSpace", "DCR", 2), {"its input has 6 channels, which are no multiple of 2 x 2"});
  rejects(model("DepthToSpace", "XYZ", 1), {"'mode' is 'XYZ'; it must be DCR or CRD"});
  rejects(model("DepthToSpace", "DCR", 0), {"'blocksize' is 0"});
  rejects(model("SpaceToDepth", "", 2), {"its input is 6x3x4, whose rows and columns are no multiples of 2"});
}

TEST_CASE("onnx pad: modes that repeat, negative padding, and channels") {
  const auto padded = [](const char* mode, const Dims& shape, const Dims& pads) {
    OnnxModel model = OnnxModel::of_image(shape);
    model.integers("pads", pads);
    model.add_node("Pad", {"x", "pads"}).set("mode", mode);
    return counted(model)[0];
  };
  CHECK(padded("reflect", {1, 1, 3}, {0, 0, 0, 2, 0, 0, 0, 1}) == Doubles{2, 1, 0, 1, 2, 1});
  CHECK(padded("edge", {1, 1, 3}, {0, 0, 0, 2, 0, 0, 0, 1}) == Doubles{0, 0, 0, 1, 2, 2});
  CHECK(padded("wrap", {1, 1, 3}, {0, 0, 0, 2, 0, 0, 0, 1}) == Doubles{1, 2, 0, 1, 2, 0});
  CHECK(padded("reflect", {1, 2, 2}, {0, 0, 1, 0, 0, 0, 1, 0}) == Doubles{2, 3, 0, 1, 2, 3, 0, 1});
  CHECK(padded("reflect", {1, 1, 2}, {0, 0, 0, 3, 0, 0, 0, 0}) == Doubles{1, 0, 1, 0, 1});  // further than the axis
  CHECK(padded("constant", {1, 1, 4}, {0, 0, 0, -1, 0, 0, 0, 1}) == Doubles{1, 2, 3, 0});
  CHECK(padded("reflect", {1, 1, 4}, {0, 0, 0, -1, 0, 0, 0, 1}) == Doubles{1, 2, 3, 2});
  CHECK(padded("constant", {2, 1, 1}, {0, 1, 0, 0, 0, 2, 0, 0}) == Doubles{0, 0, 1, 0, 0});
  CHECK(padded("constant", {2, 3}, {0, 0, 1, 0, 0, 0}) == Doubles{0, 0, 1, 2, 0, 3, 4, 5});  // of one row
  // Rows and columns of an image whose channels are the last axis.
  CHECK(padded("constant", {1, 1, 2}, {0, 1, 1, 0, 0, 0, 0, 0}) == Doubles{0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(padded("edge", {2, 1, 2}, {0, 0, 1, 0, 0, 1, 0, 0}) == Doubles{0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3});
}

TEST_CASE("onnx pad: channels with a value") {
  OnnxModel model = OnnxModel::of_image({2, 1, 1});
  model.integers("pads", {0, 1, 0, 1, 0, 0, 0, 0});
  model.floats("value", {}, {0.5F});
  model.add_node("Pad", {"x", "pads", "value"});
  CHECK(counted(model)[0] == Doubles{0.5, 0.5, 0.5, 0, 0.5, 1});
}

TEST_CASE("onnx expand and tile") {
  const auto of = [](const std::string& op, const Dims& shape, const Dims& list) {
    OnnxModel model = OnnxModel::of_image(shape);
    model.integers("list", list);
    model.add_node(op, {"x", "list"});
    return model;
  };
  CHECK(counted(of("Expand", {2, 1, 1}, {1, 2, 1, 3}))[0] == Doubles{0, 0, 0, 1, 1, 1});
  CHECK(counted(of("Expand", {1, 1, 2}, {3, 1, 1}))[0] == Doubles{0, 1, 0, 1, 0, 1});
  CHECK(kinds(of("Expand", {2, 3, 4}, {4}).import()) == "identity");
  CHECK(counted(of("Tile", {1, 2, 2}, {1, 1, 2, 2}))[0] == Doubles{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(counted(of("Tile", {2, 1, 1}, {1, 2, 1, 1}))[0] == Doubles{0, 1, 0, 1});
  rejects(of("Expand", {2, 3, 4}, {5}), {"it makes 5 of an axis of 4 elements"});
  refuses(of("Expand", {2, 3, 4}, {7, 2, 3, 4}), {"makes 7 images of one"});
  refuses(of("Expand", {2, 3, 4}, {1, 1, 2, 3, 4}), {"makes 5 axes of 4"});
  refuses(of("Tile", {2, 3, 4}, {2, 1, 1, 1}), {"repeats the batch"});
  refuses(of("Tile", {2, 3, 4}, {1, 1, 1, 0}), {"repeats axis 3 0 times"});
  rejects(of("Tile", {2, 3, 4}, {1, 1}), {"2 repeats for 4 axes"});
}

namespace {

struct Transposed {
  int channels = 2, outputs = 3, groups = 1, rows = 3, cols = 4;
  Dims kernel = {3, 3}, strides = {1, 1}, dilations = {1, 1}, pads = {0, 0, 0, 0}, output_padding = {0, 0};
};

Dims transposed_shape(const Transposed& of) {
  const auto out = [&](std::size_t axis, std::int64_t in) {
    return of.strides[axis] * (in - 1) + of.output_padding[axis] + (of.kernel[axis] - 1) * of.dilations[axis] + 1 -
           of.pads[axis] - of.pads[axis + 2];
  };
  return {of.outputs, out(0, of.rows), out(1, of.cols)};
}

float weight_at(std::size_t i) { return 0.25F * static_cast<float>(i % 13) - 1.25F; }

// As the operator is defined: each pixel adds the filter to the output around it.
Doubles scattered(const Transposed& of) {
  const Dims shape = transposed_shape(of);
  Doubles result(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = 0.5 * static_cast<double>(static_cast<std::int64_t>(i) / (shape[1] * shape[2]));
  }
  const std::int64_t made = of.outputs / of.groups, read = of.channels / of.groups;
  std::size_t weight = 0;
  for (std::int64_t c = 0; c < of.channels; ++c) {
    for (std::int64_t m = 0; m < made; ++m) {
      for (std::int64_t r = 0; r < of.kernel[0]; ++r) {
        for (std::int64_t s = 0; s < of.kernel[1]; ++s, ++weight) {
          for (std::int64_t y = 0; y < of.rows; ++y) {
            for (std::int64_t x = 0; x < of.cols; ++x) {
              const std::int64_t row = y * of.strides[0] + r * of.dilations[0] - of.pads[0];
              const std::int64_t col = x * of.strides[1] + s * of.dilations[1] - of.pads[1];
              if (row < 0 || row >= shape[1] || col < 0 || col >= shape[2]) continue;
              const std::int64_t k = c / read * made + m;
              result[static_cast<std::size_t>((k * shape[1] + row) * shape[2] + col)] +=
                  double{weight_at(weight)} * static_cast<double>((c * of.rows + y) * of.cols + x);
            }
          }
        }
      }
    }
  }
  return result;
}

OnnxModel model_of(const Transposed& of) {
  OnnxModel model = OnnxModel::of_image({of.channels, of.rows, of.cols});
  const Dims shape = {of.channels, of.outputs / of.groups, of.kernel[0], of.kernel[1]};
  std::vector<float> weights(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weight_at(i);
  std::vector<float> bias(static_cast<std::size_t>(of.outputs));
  for (std::size_t k = 0; k < bias.size(); ++k) bias[k] = 0.5F * static_cast<float>(k);
  model.floats("w", shape, weights);
  model.floats("b", {of.outputs}, bias);
  model.add_node("ConvTranspose", {"x", "w", "b"})
      .set("strides", of.strides)
      .set("dilations", of.dilations)
      .set("pads", of.pads)
      .set("output_padding", of.output_padding)
      .set("group", of.groups);
  return model;
}

void check_transposed(const Transposed& of) {
  const OnnxModel model = model_of(of);
  CHECK(last_shape(model.import()) == transposed_shape(of));
  const Doubles values = counted(model)[0], expected = scattered(of);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-9));
}

}  // namespace

TEST_CASE("onnx conv transpose: steps, padding, dilation and groups, as each pixel adds its filter") {
  for (const std::int64_t kernel : {1, 2, 3, 4, 5}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      for (const std::int64_t dilation : {1, 2, 3}) {
        for (const std::int64_t pad : {0, 1, 2}) {
          for (const std::int64_t more : {0, 1}) {
            Transposed of;
            of.kernel = {kernel, 6 - kernel};
            of.strides = {stride, 4 - stride};
            of.dilations = {dilation, 1};
            of.pads = {pad, 2 - pad, 0, pad};
            of.output_padding = {more, 1 - more};
            const Dims shape = transposed_shape(of);
            if (shape[1] < 1 || shape[2] < 1) continue;
            INFO("kernel " << kernel << ", stride " << stride << ", dilation " << dilation << ", pad " << pad
                           << ", output padding " << more);
            check_transposed(of);
          }
        }
      }
    }
  }
  Transposed grouped;
  grouped.channels = 4;
  grouped.outputs = 6;
  grouped.groups = 2;
  grouped.strides = {2, 2};
  check_transposed(grouped);
  grouped.groups = grouped.channels = grouped.outputs = 3;
  check_transposed(grouped);
}

TEST_CASE("onnx conv transpose: the usual forms of a U-Net need no cut, and stride 1 is one convolution") {
  Transposed twice;
  twice.strides = {2, 2};
  for (const auto& [kernel, pad, more] : {std::tuple(2, 0, 0), std::tuple(4, 1, 0), std::tuple(3, 1, 1)}) {
    twice.kernel = {kernel, kernel};
    twice.pads = {pad, pad, pad, pad};
    twice.output_padding = {more, more};
    CHECK(kinds(model_of(twice).import()) == "convolution reshape transpose reshape identity");
    CHECK(last_shape(model_of(twice).import()) == Dims{3, 6, 8});
  }
  CHECK(kinds(model_of(Transposed{}).import()) == "convolution");
}

TEST_CASE("onnx conv transpose: output_shape and auto_pad") {
  const auto shape_of = [](auto change) {
    OnnxModel model = OnnxModel::of_image({1, 3, 3});
    model.floats("w", {1, 1, 3, 3});
    NodeMaker node = model.add_node("ConvTranspose", {"x", "w"}).set("strides", Dims{3, 2});
    change(node);
    return last_shape(model.import());
  };
  CHECK(shape_of([](NodeMaker& node) { node.set("output_shape", Dims{10, 8}); }) == Dims{1, 10, 8});
  CHECK(shape_of([](NodeMaker& node) { node.set("output_shape", Dims{7, 5}); }) == Dims{1, 7, 5});
  CHECK(shape_of([](NodeMaker& node) { node.set("auto_pad", "SAME_UPPER"); }) == Dims{1, 9, 6});
  CHECK(shape_of([](NodeMaker& node) { node.set("auto_pad", "SAME_LOWER"); }) == Dims{1, 9, 6});
  CHECK(shape_of([](NodeMaker& node) { node.set("auto_pad", "VALID"); }) == Dims{1, 9, 7});
}

TEST_CASE("onnx rows: convolutions and pools of channels x columns are those of an image of one row") {
  OnnxModel conv = OnnxModel::of_image({2, 5});
  conv.floats("w", {1, 2, 3}, {1, 0, 2, 0, 1, 0});
  conv.add_node("Conv", {"x", "w"}).set("strides", Dims{2}).set("pads", Dims{1, 0}).set("kernel_shape", Dims{3});
  CHECK(kinds(conv.import()) == "reshape convolution reshape");
  CHECK(conv.import().layers.at(0).name == "y");
  CHECK(conv.import().operators.at(1).name == "y");
  CHECK(counted(conv)[0] == Doubles{7, 14});
  const auto pool = [](const std::string& op, const Dims& kernel) {
    OnnxModel model = OnnxModel::of_image({2, 4});
    NodeMaker node = model.add_node(op, {"x"});
    if (!kernel.empty()) node.set("kernel_shape", kernel).set("strides", Dims{2});
    return counted(model)[0];
  };
  CHECK(pool("MaxPool", {2}) == Doubles{1, 3, 5, 7});
  CHECK(pool("AveragePool", {2}) == Doubles{0.5, 2.5, 4.5, 6.5});
  CHECK(pool("GlobalMaxPool", {}) == Doubles{3, 7});
  CHECK(pool("GlobalAveragePool", {}) == Doubles{1.5, 5.5});
  OnnxModel transposed = OnnxModel::of_image({1, 3});
  transposed.floats("w", {1, 1, 2}, {1, 10});
  transposed.add_node("ConvTranspose", {"x", "w"}).set("strides", Dims{2}).set("pads", Dims{0, 1});
  CHECK(counted(transposed)[0] == Doubles{0, 0, 1, 10, 2});
  CHECK(last_shape(transposed.import()) == Dims{1, 5});
}

TEST_CASE("onnx rows: lists with a number for the columns alone") {
  const auto model = [](const char* attribute, const Dims& list) {
    OnnxModel made = OnnxModel::of_image({2, 8});
    made.floats("w", {1, 2, 3});
    made.add_node("Conv", {"x", "w"}).set(attribute, list);
    return made;
  };
  rejects(model("strides", {1, 2}), {"'strides' has 2 values, 1 is needed"});
  rejects(model("pads", {1, 1, 1, 1}), {"'pads' has 4 values, 2 are needed"});
  rejects(model("kernel_shape", {1, 3}), {"'kernel_shape' is [1,3]"});
  OnnxModel image = OnnxModel::of_image({2, 8});
  image.floats("w", {1, 2, 3, 3});
  image.add_node("Conv", {"x", "w"});
  refuses(image, {"[1,2,3,3] make it a 2-D convolution, its input is that of a 1-D one"});
}

TEST_CASE("onnx conv transpose: the layer has the node's name") {
  Transposed twice;
  twice.strides = {2, 2};
  CHECK(model_of(twice).import().layers.at(0).name == "y");
  CHECK(model_of(twice).import().operators.back().name == "y/output");
}

TEST_CASE("onnx conv transpose: what is refused") {
  const auto model = [](const Dims& weights, auto change) {
    OnnxModel made = OnnxModel::of_image({2, 3, 3});
    made.floats("w", weights);
    NodeMaker node = made.add_node("ConvTranspose", {"x", "w"});
    change(node);
    return made;
  };
  const auto nothing = [](NodeMaker&) {};
  refuses(model({2, 1, 3, 3, 3}, nothing), {"[2,1,3,3,3]"});
  rejects(model({3, 1, 3, 3}, nothing), {"its input has 2 channels, but its weights [3,1,3,3]"});
  refuses(model({2, 1, 30, 1}, nothing), {"rows of the filter of a phase is 30, burin's limit is 11"});
  rejects(model({2, 1, 3, 3}, [](NodeMaker& node) { node.set("pads", Dims{3, 3, 3, 3}); }), {"its padding leaves"});
  rejects(model({2, 1, 3, 3}, [](NodeMaker& node) { node.set("strides", Dims{2}); }), {"'strides' has 1 values"});
  rejects(model({2, 1, 3, 3}, [](NodeMaker& node) { node.set("auto_pad", "SAME"); }), {"'auto_pad' is 'SAME'"});
}
