// What convolutions round their factors to: names, the precisions that mean them, and the rounding itself.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/factor_type.h"
#include "test/catch.h"

using namespace burin;

namespace {

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint32_t rounded_bits(std::uint32_t bits) { return bits_of(rounded(FactorType::tf32, float_of(bits))); }

}  // namespace

TEST_CASE("factor type: names are those of the precisions that round to them") {
  CHECK(known_names<FactorType>() == "fp32, fp16, bf16, tf32");
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::tf32}) {
    CHECK(to_string(factors_of(precision)) == to_string(precision));
  }
  CHECK(factors_of(Precision::fp16x2) == FactorType::f32);  // on FP32 tensors
  CHECK(factors_of(Precision::fp16x2, ElementType::f16) == FactorType::f16);
  CHECK(factors_of(Precision::tf32, ElementType::f32) == FactorType::tf32);
  CHECK(factors_of(ElementType::f32) == FactorType::f32);
  CHECK(factors_of(ElementType::bf16) == FactorType::bf16);
  for (const Precision precision : kPrecisions) CHECK(rounds(precision) == (precision != Precision::fp32));
}

TEST_CASE("factor type: sizes") {
  CHECK(bytes_of(FactorType::f16) == 2);
  CHECK(bytes_of(FactorType::bf16) == 2);
  CHECK(bytes_of(FactorType::tf32) == 4);
  CHECK(epsilon_of(FactorType::tf32) == 0x1p-10);
  CHECK(epsilon_of(FactorType::f16) == epsilon_of(ElementType::f16));
  CHECK(epsilon_of(FactorType::bf16) == epsilon_of(ElementType::bf16));
  CHECK(epsilon_of(FactorType::f32) == epsilon_of(ElementType::f32));
}

TEST_CASE("factor type: TF32 keeps ten bits behind the leading one, ties to even") {
  CHECK(rounded(FactorType::tf32, 1.0F) == 1.0F);
  CHECK(rounded(FactorType::tf32, 1 + 0x1p-10F) == 1 + 0x1p-10F);
  CHECK(rounded(FactorType::tf32, 1 + 0x1p-11F) == 1.0F);
  CHECK(rounded(FactorType::tf32, 1 + 0x1p-11F + 0x1p-23F) == 1 + 0x1p-10F);
  CHECK(rounded(FactorType::tf32, 1 + 0x3p-11F) == 1 + 0x1p-9F);
  CHECK(rounded(FactorType::tf32, -1 - 0x3p-11F) == -1 - 0x1p-9F);
  CHECK(rounded_bits(0x3FFFF000) == 0x40000000);  // carries into the exponent
  CHECK(rounded_bits(0x3FFFEFFF) == 0x3FFFE000);
  CHECK(rounded_bits(0x80000000) == 0x80000000);
}

TEST_CASE("factor type: TF32 has the range of FP32") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(rounded(FactorType::tf32, 1e30F) == Approx(1e30F).epsilon(0x1p-11));
  CHECK(rounded_bits(0x7F7FEFFF) == 0x7F7FE000);  // the largest
  CHECK(rounded(FactorType::tf32, std::numeric_limits<float>::max()) == kInf);
  CHECK(rounded(FactorType::tf32, -kInf) == -kInf);
  CHECK(std::isnan(rounded(FactorType::tf32, std::numeric_limits<float>::quiet_NaN())));
  CHECK(rounded_bits(0x00002000) == 0x00002000);  // the smallest
  CHECK(rounded_bits(0x00001001) == 0x00002000);
  CHECK(rounded_bits(0x00001000) == 0);
}

TEST_CASE("factor type: every float is rounded to the nearer of its neighbours") {
  constexpr std::uint32_t kStep = 40009;
  for (std::uint32_t bits = 1; bits < 0x7F7FE000 - kStep; bits += kStep) {
    const std::uint32_t below = bits >> 13 << 13, above = below + (1U << 13), result = rounded_bits(bits);
    const double value = static_cast<double>(float_of(bits));
    const double down = value - static_cast<double>(float_of(below)), up = static_cast<double>(float_of(above)) - value;
    const std::uint32_t even = below >> 13 & 1U ? above : below;
    const std::uint32_t expected = down < up ? below : up < down ? above : even;
    if (result != expected) FAIL(bits << " is rounded to " << result << ", not to " << expected);
    if (rounded(FactorType::tf32, -float_of(bits)) != -float_of(expected)) FAIL(bits << " with a sign");
  }
  CHECK(rounded(FactorType::f16, 1 + 0x1p-12F) == 1.0F);
  CHECK(rounded(FactorType::f32, 1 + 0x1p-23F) == 1 + 0x1p-23F);
}
