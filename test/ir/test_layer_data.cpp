// Weights and biases as a package holds them: they survive, and no other bytes get through.
#include "ir/layer_data.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;
using burin_test::make_layer;
using burin_test::Random;

namespace {

constexpr std::size_t kCountBytes = 8, kValueBytes = 4;

// 1x1 filters: the weights are those of the input channels, for one output channel after the other.
ConvShape flat_shape(int in_channels, int out_channels, bool bias) {
  ConvShape shape;
  shape.in_channels = in_channels;
  shape.out_channels = out_channels;
  shape.epilogue.bias = bias;
  return shape;
}

ConvLayer flat_layer(int in_channels, int out_channels = 1) {
  const ConvShape shape = flat_shape(in_channels, out_channels, false);
  return {"flat", shape, std::vector<float>(static_cast<std::size_t>(shape.weight_elements())), {}};
}

template <typename Value>
std::string raw_bytes(Value value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string count_of(std::uint64_t count) { return raw_bytes(count); }

void check_round_trip(const ConvLayer& layer) {
  INFO(describe(layer.shape));
  const std::string bytes = encode_layer(layer);
  const ConvLayer back = decode_layer(bytes, layer.name, layer.shape);
  CHECK(back.name == layer.name);
  CHECK(back.shape == layer.shape);
  CHECK(back.weights == layer.weights);
  CHECK(back.bias == layer.bias);
  CHECK(back.filters == layer.filters);
  CHECK(back.filter_bias == layer.filter_bias);
  CHECK(verify(back) == std::vector<std::string>{});
  CHECK(encode_layer(back) == bytes);
}

// The error of reading these bytes as a layer of four weights, without a bias or with one.
std::string read_error(const std::string& bytes, bool bias = false) {
  const std::string before = "the weights of layer 'a\\x0ab' in the package: ";
  const std::string text = error_of([&] { decode_layer(bytes, "a\nb", flat_shape(4, 1, bias)); });
  if (text == "no error") return text;
  CHECK_THAT(text, burin_test::StartsWith(before));
  return text.substr(before.size());
}

const std::string kTooEarly = "they end too early";

}  // namespace

TEST_CASE("layer data: random layers survive") {
  Random random(17);
  int with_bias = 0;
  for (int i = 0; i < 60; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    const double density = i % 4 == 0 ? 0.01 : random.real();
    check_round_trip(make_layer("layer" + std::to_string(i), shape, density, static_cast<std::uint64_t>(i)));
    with_bias += shape.epilogue.bias ? 1 : 0;
  }
  CHECK(with_bias > 10);
  CHECK(with_bias < 50);
}

TEST_CASE("layer data: filters of a pool survive, and are needed") {
  ConvLayer layer = make_layer("filtered", burin_test::small_shape(), 0.2);
  burin_test::add_filters(layer, {.kernel_h = 2, .kernel_w = 3});
  check_round_trip(layer);
  std::string bytes = encode_layer(layer);
  bytes.resize(bytes.size() - sizeof(float));
  CHECK_THAT(error_of([&] { decode_layer(bytes, "filtered", layer.shape); }), burin_test::EndsWith(kTooEarly));
}

TEST_CASE("layer data: dense layers, and those of zeros alone") {
  for (const bool bias : {false, true}) {
    for (const double density : {0.0, 1.0}) {
      INFO(bias << " " << density);
      const ConvLayer layer = make_layer("layer", flat_shape(30, 20, bias), density);
      check_round_trip(layer);
      const std::size_t nonzeros = density == 0 ? 0 : layer.weights.size();
      CHECK(encode_layer(layer).size() == kCountBytes + nonzeros * (1 + kValueBytes) + layer.bias.size() * kValueBytes);
    }
  }
}

TEST_CASE("layer data: the bytes are those that are documented") {
  ConvLayer layer{"layer", flat_shape(200, 2, true), std::vector<float>(400), {-1, 0}};
  layer.weights[1] = 0.5F;
  layer.weights[2] = -0.25F;
  layer.weights[200] = 3;  // 197 zeros before it: 1 * 128 + 69
  CHECK(encode_layer(layer) == count_of(3) + std::string("\x01\x00\xc5\x01", 4) + raw_bytes(0.5F) + raw_bytes(-0.25F) +
                                   raw_bytes(3.0F) + raw_bytes(-1.0F) + raw_bytes(0.0F));
  check_round_trip(layer);
}

TEST_CASE("layer data: gaps of every length") {
  const struct {
    int gap;
    std::size_t bytes;
  } cases[] = {{0, 1}, {1, 1}, {127, 1}, {128, 2}, {129, 2}, {16'383, 2}, {16'384, 3}, {16'385, 3}, {40'000, 3}};
  for (const auto& [gap, bytes] : cases) {
    INFO(gap);
    ConvLayer layer = flat_layer(50'000);
    layer.weights[0] = 1;
    layer.weights[static_cast<std::size_t>(gap) + 1] = 2;
    CHECK(encode_layer(layer).size() == kCountBytes + 1 + bytes + 2 * kValueBytes);
    check_round_trip(layer);
    // The same before the first nonzero and behind the last one, which has no bytes.
    layer.weights[0] = 0;
    check_round_trip(layer);
    ConvLayer last = flat_layer(gap + 1);
    last.weights.back() = 3;
    CHECK(encode_layer(last).size() == kCountBytes + bytes + kValueBytes);
    check_round_trip(last);
  }
  ConvLayer large = flat_layer(1 << 11, 1 << 11);
  large.weights.back() = 1;  // a distance of four bytes
  CHECK(encode_layer(large).size() == kCountBytes + 4 + kValueBytes);
  check_round_trip(large);
}

TEST_CASE("layer data: values survive exactly, but for the sign of zero") {
  using Limits = std::numeric_limits<float>;
  ConvLayer layer = flat_layer(5);
  layer.weights = {Limits::denorm_min(), -Limits::max(), 0, Limits::min(), 1.0F / 3};
  check_round_trip(layer);
  layer.weights[2] = -0.0F;
  const ConvLayer back = decode_layer(encode_layer(layer), layer.name, layer.shape);
  CHECK(back.weights == layer.weights);  // zeros are equal
  CHECK_FALSE(std::signbit(back.weights[2]));
  // A bias is there, whatever it is.
  layer.shape.epilogue.bias = true;
  layer.bias = {-0.0F};
  CHECK(std::signbit(decode_layer(encode_layer(layer), layer.name, layer.shape).bias[0]));
}

TEST_CASE("layer data: cut short at every byte, or too long") {
  ConvLayer layer = make_layer("layer", flat_shape(300, 2, true), 0.03);
  const std::string bytes = encode_layer(layer);
  REQUIRE(bytes.size() > 80);
  const auto error = [&](const std::string& read) {
    return error_of([&] { decode_layer(read, layer.name, layer.shape); });
  };
  const std::string before = "the weights of layer 'layer' in the package: ";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO(size);
    CHECK(error(bytes.substr(0, size)) == before + kTooEarly);
  }
  CHECK(error(bytes + "x") == before + "1 bytes are left over");
  CHECK(error(bytes + bytes) == before + std::to_string(bytes.size()) + " bytes are left over");
  // It is that of a layer without a bias.
  layer.shape.epilogue.bias = false;
  CHECK(error(bytes) == before + "8 bytes are left over");
}

TEST_CASE("layer data: a count that is not true") {
  CHECK(read_error(count_of(0)) == "no error");
  CHECK(read_error(count_of(5)) == "it says that there are 5 nonzeros of 4 weights");
  CHECK(read_error(count_of(std::numeric_limits<std::uint64_t>::max())) ==
        "it says that there are 18446744073709551615 nonzeros of 4 weights");
  CHECK(read_error(count_of(4)) == kTooEarly);
  CHECK(read_error(count_of(1) + std::string(1, '\0')) == kTooEarly);
  CHECK(read_error(count_of(0) + std::string(1, '\0') + raw_bytes(1.0F)) == "5 bytes are left over");
  // As many as a large layer can have take no memory.
  const ConvShape large = flat_shape(1 << 14, 1 << 14, false);
  REQUIRE(verify(large).empty());
  CHECK_THAT(error_of([&] { decode_layer(count_of(1 << 28), "large", large); }), burin_test::EndsWith(kTooEarly));
}

TEST_CASE("layer data: nonzeros beyond the weights") {
  const auto with_gaps = [](const std::string& gaps, std::uint64_t count) {
    std::string bytes = count_of(count) + gaps;
    for (std::uint64_t i = 0; i < count; ++i) bytes += raw_bytes(1.0F);
    return read_error(bytes);
  };
  CHECK(with_gaps(std::string("\x03", 1), 1) == "no error");
  CHECK(with_gaps(std::string("\x04", 1), 1) == "nonzero 0 lies beyond the 4 weights");
  CHECK(with_gaps(std::string("\x03\x00", 2), 2) == "nonzero 1 lies beyond the 4 weights");
  CHECK(with_gaps(std::string("\x00\x01\x00", 3), 3) == "no error");
  CHECK(with_gaps(std::string("\x00\x01\x01", 3), 3) == "nonzero 2 lies beyond the 4 weights");
  // The largest distance that can be written does not wrap around.
  CHECK(with_gaps(std::string(8, '\xff') + "\x7f", 1) == "nonzero 0 lies beyond the 4 weights");
  CHECK(with_gaps(std::string(1, '\0') + std::string(8, '\xff') + "\x7f", 2) == "nonzero 1 lies beyond the 4 weights");
  CHECK(with_gaps("\x84" + std::string(1, '\0'), 1) == "nonzero 0 lies beyond the 4 weights");
}

TEST_CASE("layer data: distances without an end") {
  const std::string endless = "a distance between nonzeros has too many bytes";
  for (const std::size_t bytes : {9U, 10U, 100U}) {
    CHECK(read_error(count_of(1) + std::string(bytes, '\x80')) == endless);
    CHECK(read_error(count_of(1) + std::string(bytes, '\xff')) == endless);
  }
  CHECK(read_error(count_of(1) + std::string(8, '\x80')) == kTooEarly);
}

TEST_CASE("layer data: values that cannot be") {
  using Limits = std::numeric_limits<float>;
  const auto with = [](float weight, float bias) {
    return read_error(count_of(1) + std::string("\x02", 1) + raw_bytes(weight) + raw_bytes(bias), true);
  };
  CHECK(with(1, 0) == "no error");
  for (const float value : {Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity()}) {
    CHECK(with(value, 1) == "a number is not finite");
    CHECK(with(1, value) == "a number is not finite");
  }
  CHECK(with(0, 1) == "a nonzero is zero");
  CHECK(with(-0.0F, 1) == "a nonzero is zero");
  CHECK(with(Limits::denorm_min(), 1) == "no error");
}

TEST_CASE("layer data: whatever a byte is, what is read is a sound layer or an error") {
  const ConvLayer layer = make_layer("layer", flat_shape(70, 5, true), 0.1);
  const std::string bytes = encode_layer(layer);
  int readable = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; value += 5) {
      std::string mutated = bytes;
      mutated[i] = static_cast<char>(value);
      ConvLayer read;
      if (error_of([&] { read = decode_layer(mutated, layer.name, layer.shape); }) != "no error") continue;
      ++readable;
      if (!verify(read).empty()) FAIL("byte " << i << " as " << value << " gives a faulty layer");
      // The same distance can be written with more bytes.
      if (encode_layer(read).size() > bytes.size()) FAIL("byte " << i << " as " << value << " gives more nonzeros");
    }
  }
  CHECK(readable > 1000);
}
