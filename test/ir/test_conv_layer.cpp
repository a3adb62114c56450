#include <limits>

#include "ir/conv_layer.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"

using namespace burin;
using burin_test::any_contains;
using burin_test::small_shape;

namespace {

// Output positions counted one by one.
int brute_force_extent(int in, int before, int after, int kernel, int stride, int dilation) {
  int count = 0;
  for (int start = 0; start + (kernel - 1) * dilation < in + before + after; start += stride) ++count;
  return count;
}

template <typename Change>
std::vector<std::string> layer_faults_after(Change change) {
  ConvShape shape = small_shape();
  change(shape);
  return verify(shape);
}

}  // namespace

TEST_CASE("conv_shape: output extents match counting") {
  burin_test::Random random(11);
  for (int i = 0; i < 300; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    INFO("seed 11, case " << i << ": " << describe(shape));
    CHECK(verify(shape).empty());
    CHECK(shape.out_h() == brute_force_extent(shape.in_h, shape.pad.top, shape.pad.bottom, shape.kernel_h,
                                              shape.stride_h, shape.dilation_h));
    CHECK(shape.out_w() == brute_force_extent(shape.in_w, shape.pad.left, shape.pad.right, shape.kernel_w,
                                              shape.stride_w, shape.dilation_w));
  }
}

TEST_CASE("conv_shape: description in one line") {
  ConvShape shape = small_shape();
  CHECK(describe(shape) == "16x14x14 -> 32x14x14, 3x3, stride 1, pad 1");
  shape.stride_w = 2;
  shape.pad = {0, 1, 2, 3};
  shape.dilation_h = shape.dilation_w = 2;
  shape.groups = 4;
  CHECK(describe(shape) == "16x14x14 -> 32x11x8, 3x3, stride 1x2, pad 0,1,2,3, dilation 2, groups 4");
}

TEST_CASE("conv_shape: pad_larger_than_kernel is legal") {
  CHECK(layer_faults_after([](ConvShape& s) { s.pad = {9, 9, 9, 9}; }).empty());
}

TEST_CASE("conv_shape: every rule names attribute, value and what is allowed") {
  const auto expect = [](auto change, const std::string& part) {
    const std::vector<std::string> faults = layer_faults_after(change);
    INFO(part << " in " << (faults.empty() ? "nothing" : faults.front()));
    CHECK(any_contains(faults, part));
  };
  expect([](ConvShape& s) { s.in_channels = 0; }, "in_channels is 0, allowed is 1 to 65536");
  expect([](ConvShape& s) { s.out_channels = 65537; }, "out_channels is 65537, allowed is 1 to 65536");
  expect([](ConvShape& s) { s.kernel_h = 12; }, "kernel_h is 12, allowed is 1 to 11 (kMaxKernelExtent)");
  expect([](ConvShape& s) { s.kernel_w = 0; }, "kernel_w is 0");
  expect([](ConvShape& s) { s.stride_h = 65; }, "stride_h is 65");
  expect([](ConvShape& s) { s.stride_w = 0; }, "stride_w is 0");
  expect([](ConvShape& s) { s.dilation_h = -1; }, "dilation_h is -1");
  expect([](ConvShape& s) { s.dilation_w = 65; }, "dilation_w is 65");
  expect([](ConvShape& s) { s.pad.top = -1; }, "pad top is -1");
  expect([](ConvShape& s) { s.pad.bottom = 1025; }, "pad bottom is 1025");
  expect([](ConvShape& s) { s.pad.left = -1; }, "pad left is -1");
  expect([](ConvShape& s) { s.pad.right = -1; }, "pad right is -1");
  expect([](ConvShape& s) { s.in_h = 0; }, "in_h is 0");
  expect([](ConvShape& s) { s.in_w = 32769; }, "in_w is 32769");
  expect([](ConvShape& s) { s.groups = 0; }, "groups is 0");
  expect([](ConvShape& s) { s.groups = 5; }, "in_channels is 16, which groups 5 does not divide");
  expect([](ConvShape& s) { s.in_channels = s.groups = 48; }, "out_channels is 32, which groups 48 does not divide");
  expect([](ConvShape& s) { s.epilogue.function = Elementwise{static_cast<ElementFunction>(99)}; }, "function is 99");
  expect(
      [](ConvShape& s) {
        s.epilogue.function = Elementwise{ElementFunction::clip, 0, std::numeric_limits<float>::infinity()};
      },
      "beta is inf, it must be finite");
  expect([](ConvShape& s) { s.epilogue.function = Elementwise{ElementFunction::quantize, 0, 0}; }, "a scale of 0");
  expect([](ConvShape& s) { s.in_h = 1, s.pad = {}; }, "the output has no rows: in_h 1 with pad 0 + 0");
  expect([](ConvShape& s) { s.in_w = 2, s.pad = {}; }, "the output has no columns: in_w 2 with pad 0 + 0");
  expect([](ConvShape& s) { s.in_channels = s.out_channels = 65536; }, "(kMaxLayerWeights)");
  expect([](ConvShape& s) { s.in_h = s.in_w = 32768; }, "one input image is 68719476736 bytes");
  expect([](ConvShape& s) { s.in_channels = 1, s.in_h = s.in_w = 16384, s.out_channels = 32; }, "one output image is");
}

TEST_CASE("conv_shape: all faults are listed, not only the first") {
  const auto faults = layer_faults_after([](ConvShape& s) { s.in_channels = -1, s.kernel_h = 99, s.groups = 0; });
  CHECK(faults.size() == 3);
}

TEST_CASE("conv_shape: absurd values do not overflow") {
  constexpr int kLargest = std::numeric_limits<int>::max();
  constexpr int kSmallest = std::numeric_limits<int>::min();
  for (const int v : {kLargest, kSmallest}) {
    ConvShape shape{v, v, v, v, v, v, v, v, v, {v, v, v, v}, v, v, {}};
    CHECK(verify(shape).size() >= 10);
    shape.groups = 1;
    CHECK(shape.output_elements() >= 0);
    CHECK(shape.input_elements() >= 0);
    CHECK(shape.weight_elements() >= 0);
  }
}

TEST_CASE("conv_layer: sizes and values are checked") {
  ConvShape shape = small_shape();
  shape.epilogue.bias = true;
  const ConvLayer good = burin_test::make_layer("layer", shape, 0.5);
  CHECK(verify(good).empty());

  ConvLayer bad = good;
  bad.weights.pop_back();
  CHECK(any_contains(verify(bad), "there are 4607 weights"));
  bad = good;
  bad.weights[17] = std::numeric_limits<float>::quiet_NaN();
  bad.weights[18] = std::numeric_limits<float>::infinity();
  CHECK(verify(bad) == std::vector<std::string>{"2 of the weights are not finite; the first is element 17 (nan)"});
  bad = good;
  bad.bias[3] = -std::numeric_limits<float>::infinity();
  CHECK(any_contains(verify(bad), "the first is element 3 (-inf)"));
  bad = good;
  bad.bias.clear();
  CHECK(any_contains(verify(bad), "there are 0 biases, 32 are needed"));
  bad = good;
  bad.shape.epilogue.bias = false;
  CHECK(any_contains(verify(bad), "there are 32 biases, 0 are needed"));
  bad = good;
  bad.name.clear();
  CHECK(any_contains(verify(bad), "the layer has no name"));
  bad.name.assign(513, 'x');
  CHECK(any_contains(verify(bad), "the layer's name has 513 bytes"));
}

TEST_CASE("activation: names round trip") {
  CHECK(known_names<Activation>() == "none, relu, relu6, leaky_relu, sigmoid, silu");
  for (int i = 0; i < 6; ++i) {
    const auto activation = static_cast<Activation>(i);
    CHECK(parse_enum<Activation>(to_string(activation)) == activation);
  }
  CHECK(!parse_enum<Activation>("gelu"));
}
