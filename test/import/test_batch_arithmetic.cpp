// Arithmetic with the number of images as a symbol, beside the same arithmetic with numbers of images put in.
#include <optional>

#include "compiler/import/onnx/batch_arithmetic.h"
#include "test/catch.h"

using namespace burin;

namespace {

using Integer = BatchNumber<std::int64_t>;
using Real = BatchNumber<double>;

constexpr int kMostImages = 6;

template <typename T>
BatchNumber<T> with_images(const BatchNumber<T>& number, int images) {
  return {number.value + number.per_image * static_cast<T>(images), 0};
}

// Nothing where it is refused.
template <typename T, typename Apply>
std::optional<BatchNumber<T>> tried(Apply apply, const BatchNumber<T>& a, const BatchNumber<T>& b) {
  try {
    return apply(a, b);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What holds for the symbol must hold for each number of images. Returns how often it did hold for a symbol.
template <typename T, typename Apply>
int compare(Apply apply) {
  int held = 0;
  for (int a = -3; a <= 3; ++a) {
    for (int a_images = -2; a_images <= 2; ++a_images) {
      for (int b = -3; b <= 3; ++b) {
        for (int b_images = -2; b_images <= 2; ++b_images) {
          const BatchNumber<T> first{static_cast<T>(a), static_cast<T>(a_images)};
          const BatchNumber<T> second{static_cast<T>(b), static_cast<T>(b_images)};
          const auto result = tried(apply, first, second);
          if (!result) continue;
          held += first.depends() || second.depends() ? 1 : 0;
          for (int images = 1; images <= kMostImages; ++images) {
            const auto expected = tried(apply, with_images(first, images), with_images(second, images));
            CAPTURE(number_text(first), number_text(second), images, number_text(*result));
            REQUIRE(expected);
            CHECK(with_images(*result, images) == *expected);
          }
        }
      }
    }
  }
  return held;
}

struct Fixture {
  ::onnx::NodeProto proto = [] {
    ::onnx::NodeProto made;
    made.set_name("n");
    made.add_output("y");
    return made;
  }();
  Node node{proto, "n", 13, "net.onnx"};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "batch arithmetic: integers hold for every number of images") {
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return add(node, a, b); }) > 1000);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return subtract(node, a, b); }) > 1000);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return multiply(node, a, b); }) > 300);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return divide(node, a, b); }) > 50);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return modulo(node, a, b, false); }) > 50);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return modulo(node, a, b, true); }) > 10);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return smaller(node, a, b); }) > 300);
  CHECK(compare<std::int64_t>([&](const Integer& a, const Integer& b) { return larger(node, a, b); }) > 300);
}

TEST_CASE_METHOD(Fixture, "batch arithmetic: real numbers hold for every number of images") {
  CHECK(compare<double>([&](const Real& a, const Real& b) { return add(node, a, b); }) > 1000);
  CHECK(compare<double>([&](const Real& a, const Real& b) { return multiply(node, a, b); }) > 300);
  CHECK(compare<double>([&](const Real& a, const Real& b) { return smaller(node, a, b); }) > 300);
}

TEST_CASE_METHOD(Fixture, "batch arithmetic: the signs that a number can have") {
  for (int value = -5; value <= 5; ++value) {
    for (int per_image = -3; per_image <= 3; ++per_image) {
      const Signs signs = signs_of(Integer{value, per_image});
      for (int images = 1; images <= kMostImages; ++images) {
        const std::int64_t number = value + std::int64_t{per_image} * images;
        CAPTURE(value, per_image, images);
        CHECK((number < 0 ? signs.negative : number == 0 ? signs.zero : signs.positive));
      }
    }
  }
}

TEST_CASE("batch numbers: as text") {
  CHECK(number_text(Integer{3, 0}) == "3");
  CHECK(number_text(Integer{0, 1}) == "N");
  CHECK(number_text(Integer{-3, 2}) == "2 * N - 3");
}
