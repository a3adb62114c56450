#include "test/cli/small_model.h"

#include "test/cli/weights_file.h"

namespace burin_test {
namespace {

void add_conv(OnnxModel& model, const std::string& name, const std::string& input, int out, int in, int size,
              float scale = 1, const std::vector<float>& bias = {}) {
  std::vector<float> weights = sparse_weights(static_cast<std::size_t>(out * in * size * size), name.back());
  for (float& weight : weights) weight *= scale;
  model.floats(name + "_w", {out, in, size, size}, weights);
  std::vector<std::string> inputs = {input, name + "_w"};
  if (!bias.empty()) {
    inputs.push_back(name + "_b");
    model.floats(inputs.back(), {out}, bias);
  }
  model.add_node("Conv", inputs, name + "_out").set("pads", std::vector<std::int64_t>(4, size / 2)).node.set_name(name);
}

}  // namespace

OnnxModel branched_model(float scale) {
  OnnxModel model = OnnxModel::of_image({3, 12, 12});
  add_conv(model, "conv1", "x", 8, 3, 3);
  model.add_node("Relu", {"conv1_out"}, "relu1");
  add_conv(model, "conv2", "relu1", 4, 8, 1);
  add_conv(model, "conv3", "relu1", 4, 8, 3, scale);
  model.add_node("Relu", {"conv3_out"}, "relu3");
  model.add_node("Concat", {"conv2_out", "relu3"}, "both").set("axis", 1);
  model.add_node("MaxPool", {"both"}, "pooled")
      .set("kernel_shape", std::vector<std::int64_t>{2, 2})
      .set("strides", std::vector<std::int64_t>{2, 2})
      .node.set_name("pool");
  model.add_node("GlobalAveragePool", {"pooled"}, "averages");
  model.add_node("Flatten", {"averages"}, "features");
  model.floats("fc_w", {5, 8}, sparse_weights(40, 7));
  model.floats("fc_b", {5}, sparse_weights(5, 8));
  model.add_node("Gemm", {"features", "fc_w", "fc_b"}, "logits").set("transB", 1).node.set_name("fc");
  model.add_node("Softmax", {"logits"}, "y").node.set_name("softmax");
  return model;
}

OnnxModel chain_model(float scale) {
  OnnxModel model = OnnxModel::of_image({3, 12, 12});
  add_conv(model, "conv1", "x", 8, 3, 3, 1, {0, -1000, 0, 1, -1000, 0, 0, 0});
  model.add_node("Relu", {"conv1_out"}, "relu1");
  add_conv(model, "conv2", "relu1", 8, 8, 3, scale);
  model.add_node("Relu", {"conv2_out"}, "relu2");
  add_conv(model, "conv3", "relu2", 4, 8, 1);
  model.add_node("Relu", {"conv3_out"}, "y");
  return model;
}

namespace {

// A convolution with a relu; returns the name of its output.
std::string add_relu(OnnxModel& model, const std::string& name, const std::string& input, int out, int in, int size) {
  add_conv(model, name, input, out, in, size);
  model.add_node("Relu", {name + "_out"}, name + "_relu");
  return name + "_relu";
}

}  // namespace

OnnxModel inception_model() {
  OnnxModel model = OnnxModel::of_image({3, 12, 12});
  const std::string x = add_relu(model, "conv1", "x", 8, 3, 3);
  const std::string one = add_relu(model, "m.1x1", x, 6, 8, 1);
  const std::string three = add_relu(model, "m.3x3", add_relu(model, "m.reduce3", x, 4, 8, 1), 5, 4, 3);
  const std::string five = add_relu(model, "m.5x5", add_relu(model, "m.reduce5", x, 2, 8, 1), 3, 2, 5);
  model.add_node("MaxPool", {x}, "pooled")
      .set("kernel_shape", std::vector<std::int64_t>{3, 3})
      .set("pads", std::vector<std::int64_t>{1, 1, 1, 1})
      .node.set_name("pool");
  const std::string projected = add_relu(model, "m.proj", "pooled", 4, 8, 1);
  model.add_node("Concat", {one, three, five, projected}, "all").set("axis", 1);
  add_relu(model, "last", "all", 4, 18, 1);
  model.add_node("Identity", {"last_relu"}, "y");
  return model;
}

OnnxModel fire_model() {
  OnnxModel model = OnnxModel::of_image({3, 12, 12});
  const std::string x = add_relu(model, "squeeze", "x", 4, 3, 1);
  const std::string one = add_relu(model, "expand1x1", x, 8, 4, 1), three = add_relu(model, "expand3x3", x, 8, 4, 3);
  model.add_node("Concat", {one, three}, "all").set("axis", 1);
  add_relu(model, "last", "all", 4, 16, 1);
  model.add_node("Identity", {"last_relu"}, "y");
  return model;
}

OnnxModel dense_model(int extent) {
  OnnxModel model = OnnxModel::of_image({3, extent, extent});
  add_conv(model, "conv0", "x", 6, 3, 3);
  std::vector<std::string> made = {"conv0_out"};
  int channels = 6;
  for (int i = 1; i <= 5; ++i) {
    const std::string number = std::to_string(i);
    std::string all = made[0];
    if (made.size() > 1) {
      all = "all" + number;
      model.add_node("Concat", made, all).set("axis", 1);
    }
    const bool normalized = i % 2 == 0;
    if (normalized) {
      for (const char* part : {"scale", "shift", "mean", "var"}) {
        std::vector<float> values(static_cast<std::size_t>(channels), part[0] == 's' ? 0.5F : 1.0F);
        model.floats(part + number, {channels}, values);
      }
      model.add_node("BatchNormalization", {all, "scale" + number, "shift" + number, "mean" + number, "var" + number},
                     "normal" + number);
      all = "relu" + number;
      model.add_node("Relu", {"normal" + number}, all);
    }
    const bool last = i == 5;
    add_conv(model, "conv" + number, all, last ? 2 : 3, channels, normalized || i == 3 ? 1 : 3);
    made.push_back("conv" + number + "_out");
    channels += 3;
  }
  model.add_node("Identity", {made.back()}, "y");
  return model;
}

OnnxModel model_of_two_inputs() {
  OnnxModel model;
  model.input("a", {kSymbolic, 2, 6, 6});
  model.input("b", {kSymbolic, 2, 6, 6});
  add_conv(model, "conv1", "a", 3, 2, 3);
  add_conv(model, "conv2", "b", 3, 2, 1);
  model.add_node("Add", {"conv1_out", "conv2_out"}, "s").node.set_name("sum");
  model.add_node("Relu", {"s"}, "r");
  model.output("s");
  model.output("r");
  return model;
}

}  // namespace burin_test
