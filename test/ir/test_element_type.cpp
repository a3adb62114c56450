#include "ir/element_type.h"

#include <bit>
#include <cmath>
#include <limits>

#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kAllHalves = 0x10000;

// What to_half must give, found among all values: the nearest, of two as near the even one.
std::uint16_t nearest(ElementType type, double value) {
  const double spacing_of_largest = type == ElementType::f16 ? 0x1p5 : 0x1p120;
  double least = kInfinity;
  std::uint16_t best = 0;
  for (std::uint32_t bits = 0; bits < kAllHalves; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    double candidate = from_half(type, half);
    if (std::isnan(candidate) || std::signbit(candidate) != std::signbit(value)) continue;
    // Infinity stands where the next number would.
    if (std::isinf(candidate)) {
      candidate = std::copysign(std::abs(from_half(type, static_cast<std::uint16_t>(half - 1))) + spacing_of_largest,
                                candidate);
    }
    const double distance = std::abs(candidate - value);
    if (distance < least || (distance == least && half % 2 == 0)) {
      least = distance;
      best = half;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("element type: names and sizes") {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
    CHECK(parse_enum<ElementType>(to_string(type)) == type);
  for (const char* other : {"", "f8", "F16", "fp16", "f16 "}) CHECK_FALSE(parse_enum<ElementType>(other));
  CHECK(known_names<ElementType>() == "f32, f16, bf16");
  for (const Precision precision : kPrecisions) CHECK(parse_enum<Precision>(to_string(precision)) == precision);
  for (const char* other : {"", "fp8", "f16", "FP16", "fp16x"}) CHECK_FALSE(parse_enum<Precision>(other));
  CHECK(known_names<Precision>() == "fp32, fp16, bf16, fp16x2, tf32");
  CHECK(bytes_of(ElementType::f32) == 4);
  CHECK(bytes_of(ElementType::f16) == 2);
  CHECK(elements_per_word(ElementType::bf16) == 2);
  CHECK(element_of(Precision::fp32) == ElementType::f32);
  CHECK(element_of(Precision::fp16) == ElementType::f16);
  CHECK(element_of(Precision::fp16x2) == ElementType::f16);
  CHECK(element_of(Precision::bf16) == ElementType::bf16);
  CHECK(element_of(Precision::tf32) == ElementType::f32);
  CHECK(epsilon_of(ElementType::f32) == std::numeric_limits<float>::epsilon());
  CHECK(epsilon_of(ElementType::f16) == 0x1p-10);
  CHECK(epsilon_of(ElementType::bf16) == 0x1p-7);
  CHECK(smallest_of(ElementType::f16) == 0x1p-24);
  CHECK(smallest_of(ElementType::bf16) == 0x1p-133);
  CHECK(smallest_of(ElementType::f32) == 0x1p-149);
  CHECK(largest_of(ElementType::f16) == 65504);
  CHECK(largest_of(ElementType::bf16) == 0x1.FEp127);
  CHECK(largest_of(ElementType::f32) == std::numeric_limits<float>::max());
}

TEST_CASE("element type: all 65,536 halves there and back") {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    int faults = 0, nans = 0;
    for (std::uint32_t bits = 0; bits < kAllHalves; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const float value = from_half(type, half);
      const std::uint16_t back = to_half(type, value);
      if (std::isnan(value)) {
        ++nans;
        faults += !std::isnan(from_half(type, back)) || (back ^ half) >> 15 != 0;
      } else {
        faults += back != half;
      }
    }
    INFO(to_string(type));
    CHECK(faults == 0);
    CHECK(nans == 2 * ((1 << (type == ElementType::f16 ? 10 : 7)) - 1));
  }
}

TEST_CASE("element type: known values") {
  const auto f16 = [](double value) { return to_half(ElementType::f16, value); };
  CHECK(f16(0) == 0);
  CHECK(f16(-0.0) == 0x8000);
  CHECK(f16(1) == 0x3C00);
  CHECK(f16(-2) == 0xC000);
  CHECK(f16(65504) == 0x7BFF);
  CHECK(f16(65519.99) == 0x7BFF);
  CHECK(f16(65520) == 0x7C00);  // halfway to 2^16: to the even one
  CHECK(f16(-1e300) == 0xFC00);
  CHECK(f16(kInfinity) == 0x7C00);
  CHECK(f16(0x1p-14) == 0x0400);
  CHECK(f16(0x1p-24) == 0x0001);
  CHECK(f16(0x1p-25) == 0x0000);  // halfway to the smallest
  CHECK(f16(0x1.8p-24) == 0x0002);
  CHECK(f16(0x1.000001p-25) == 0x0001);
  CHECK(f16(1 + 0x1p-11) == 0x3C00);
  CHECK(f16(1 + 0x3p-11) == 0x3C02);
  CHECK(from_half(ElementType::f16, 0x3555) == 0.333251953125F);
  CHECK(std::isnan(from_half(ElementType::f16, 0x7C01)));
  CHECK(std::isnan(from_half(ElementType::f16, f16(std::nan("")))));

  const auto bf16 = [](double value) { return to_half(ElementType::bf16, value); };
  CHECK(bf16(1) == 0x3F80);
  CHECK(bf16(-3.140625) == 0xC049);
  CHECK(bf16(1 + 0x1p-8) == 0x3F80);
  CHECK(bf16(1 + 0x3p-8) == 0x3F82);
  CHECK(bf16(3.4e38) == 0x7F80);
  CHECK(bf16(3.38e38) == 0x7F7E);
  CHECK(bf16(0x1p-133) == 0x0001);
  CHECK(rounded(ElementType::bf16, 1.01F) == 1.0078125F);
  CHECK(rounded(ElementType::f16, 1e-9F) == 0);
  CHECK(rounded(ElementType::f32, 1.01F) == 1.01F);
  CHECK(rounded(ElementType::bf16, std::vector<float>{1.01F, -2}) == std::vector<float>{1.0078125F, -2});
}

TEST_CASE("element type: the nearest value, ties to even") {
  burin_test::Random random(7);
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    for (int i = 0; i < 60; ++i) {
      const auto half = static_cast<std::uint16_t>(random.integer(0, 0xFFFF));
      const double from = from_half(type, half), next = from_half(type, static_cast<std::uint16_t>(half + 1));
      if (!std::isfinite(from) || !std::isfinite(next)) continue;
      // The middle of two neighbours, and a little to either side of it.
      const double middle = (from + next) / 2;
      for (const double value : {middle, std::nextafter(middle, kInfinity), std::nextafter(middle, -kInfinity)}) {
        INFO(to_string(type) << ", seed 7, case " << i << ", " << value);
        CHECK(to_half(type, value) == nearest(type, value));
      }
    }
  }
}

TEST_CASE("element type: a fused multiply-add of halves rounds once") {
  const auto half = [](double value) { return to_half(ElementType::f16, value); };
  const auto value = [](std::uint16_t bits) { return static_cast<double>(from_half(ElementType::f16, bits)); };
  CHECK(value(fma_f16(half(3), half(5), half(7))) == 22);
  // The product 1 - 2^-20 would round to 1, and 1 - 1 to 0.
  CHECK(value(fma_f16(half(1 + 0x1p-10), half(1 - 0x1p-10), half(-1))) == -0x1p-20);
  CHECK(value(fma_f16(half(0x1p-24), half(0x1p-24), half(2048))) == 2048);
  CHECK(value(fma_f16(half(-0x1p-24), half(0x1p-24), half(2048))) == 2048);
  CHECK(value(fma_f16(half(683), half(3), half(-0x1p-24))) == 2048);  // 2049 is the middle of 2048 and 2050
  CHECK(value(fma_f16(half(683), half(3), half(0))) == 2048);
  CHECK(value(fma_f16(half(683), half(3), half(0x1p-24))) == 2050);
  CHECK(std::isinf(value(fma_f16(half(60000), half(2), half(1)))));
  CHECK(std::isnan(value(fma_f16(half(kInfinity), half(0), half(1)))));
}

TEST_CASE("element type: words of two values") {
  const std::vector<float> values = {1, -2, 0.5F, 65504};
  const std::vector<float> words = pack_words(ElementType::f16, values);
  REQUIRE(words.size() == 2);
  CHECK(std::bit_cast<std::uint32_t>(words[0]) == 0xC0003C00);
  CHECK(unpack_words(ElementType::f16, words) == values);
  CHECK(unpack_words(ElementType::bf16, pack_words(ElementType::bf16, values)) ==
        std::vector<float>{1, -2, 0.5F, 65536});
  CHECK(pack_words(ElementType::f32, values) == values);
  CHECK(unpack_words(ElementType::f32, values) == values);
  CHECK(burin_test::error_of([] { pack_words(ElementType::f16, std::vector<float>{1}); }, ErrorKind::internal)
            .find("1 values of f16 are no whole words") != std::string::npos);
}
