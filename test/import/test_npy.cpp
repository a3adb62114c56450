#include "compiler/import/npy.h"

#include <cmath>
#include <limits>

#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

std::vector<float> npy_values(const std::string& bytes) { return float_values(parse_npy(bytes, "a.npy", "a")); }

void rejects_npy(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  expect_bad_input({"a.npy"}, [&] { parse_npy(bytes, "a.npy", "a"); });
  expect_bad_input(parts, [&] { parse_npy(bytes, "a.npy", "a"); });
}

}  // namespace

TEST_CASE("npy: float32") {
  const std::string bytes = npy_ramp({2, 3});
  const auto tensor = parse_npy(bytes, "a.npy", "a");
  CHECK(tensor.name == "a");
  CHECK(tensor.shape == std::vector<std::int64_t>{2, 3});
  CHECK(float_values(tensor) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("npy: float64") {
  CHECK(npy_values(npy(npy_header("<f8", "(3,)"), raw<double>({1.5, -2.25, 1e-300}))) ==
        std::vector<float>{1.5F, -2.25F, 0});
}

TEST_CASE("npy: float16, all kinds of values") {
  const auto values = npy_values(npy(
      npy_header("<f2", "(8,)"), raw<std::uint16_t>({0x3C00, 0xC000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x8000})));
  CHECK(values == std::vector<float>{1, -2, 0x1p-24F, -0x1p-24F, 1023 * 0x1p-24F, 0x1p-14F, 65504, -0.0F});
  CHECK(std::signbit(values[7]));
  const auto others = npy_values(npy(npy_header("<f2", "(3,)"), raw<std::uint16_t>({0x7C00, 0xFC00, 0x7E00})));
  CHECK(others[0] == std::numeric_limits<float>::infinity());
  CHECK(others[1] == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(others[2]));
}

TEST_CASE("npy: big-endian values are turned around") {
  CHECK(npy_values(npy(npy_header(">f4", "(2,)"), std::string("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8))) ==
        std::vector<float>{1, -2});
  CHECK(npy_values(npy(npy_header(">f2", "(1,)"), std::string("\x3c\x00", 2))) == std::vector<float>{1});
}

TEST_CASE("npy: format versions 2 and 3") {
  CHECK(npy_values(npy(npy_header("<f4", "(2,)"), ramp(2), 2)) == std::vector<float>{1, 2});
  CHECK(npy_values(npy(npy_header("<f4", "(2,)"), ramp(2), 3)) == std::vector<float>{1, 2});
}

TEST_CASE("npy: Fortran order becomes C order") {
  // The array [[1, 2, 3], [4, 5, 6]], first index fastest.
  CHECK(npy_values(npy(npy_header("<f4", "(2, 3)", true), raw<float>({1, 4, 2, 5, 3, 6}))) ==
        std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(npy_values(npy(npy_header("<f4", "(2, 1, 2, 2)", true), raw<float>({1, 5, 3, 7, 2, 6, 4, 8}))) ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("npy: scalar, empty and Python 2 shapes") {
  CHECK(npy_values(npy(npy_header("<f4", "()"), ramp(1))) == std::vector<float>{1});
  CHECK(npy_values(npy(npy_header("<f4", "(0, 5)"), "")).empty());
  CHECK(npy_values(npy(npy_header("<f4", "(0, 5)", true), "")).empty());
  CHECK(npy_values(npy(npy_header("<f4", "(2L, 1L)"), ramp(2))) == std::vector<float>{1, 2});
}

TEST_CASE("npy: keys in any order, with double quotes") {
  CHECK(npy_values(npy(R"({"shape":(2,),"descr":"<f4","fortran_order":False})", ramp(2))) == std::vector<float>{1, 2});
}

TEST_CASE("npy: integers serve as masks, not as weights") {
  const std::string bytes = npy(npy_header("|b1", "(3,)"), std::string("\1\0\1", 3));
  CHECK(mask_values(parse_npy(bytes, "a.npy", "a")) == std::vector<float>{1, 0, 1});
  expect_bad_input({"a.npy", "'a'", "'|b1'", "float32"}, [&] { npy_values(bytes); });
  CHECK(mask_values(parse_npy(npy(npy_header(">i4", "(1,)"), std::string("\0\0\0\1", 4)), "a", "a")) ==
        std::vector<float>{1});
}

TEST_CASE("npy: float64 beyond float32") {
  expect_bad_input({"a.npy", "'a'", "element 1", "1e+300", "float32"},
                   [] { npy_values(npy(npy_header("<f8", "(2,)"), raw<double>({1, 1e300}))); });
  // Just above the largest float: rounds down to it.
  CHECK(npy_values(npy(npy_header("<f8", "(1,)"), raw<double>({0x1.fffffeffffffp127})))[0] ==
        std::numeric_limits<float>::max());
}

TEST_CASE("npy: float64 infinity and NaN stay what they are") {
  const auto values = npy_values(npy(npy_header("<f8", "(2,)"), raw<double>({-INFINITY, NAN})));
  CHECK(values[0] == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(values[1]));
}

TEST_CASE("npy: rejects another magic") { rejects_npy("\x93NUMPX\1\0 and more", {"does not start like"}); }
TEST_CASE("npy: rejects a file that ends in the magic") { rejects_npy("\x93NUMPY", {"cut off"}); }
TEST_CASE("npy: rejects a file that ends in the header length") {
  rejects_npy(std::string("\x93NUMPY\1\0\x10", 9), {"cut off"});
}
TEST_CASE("npy: rejects a cut header") {
  rejects_npy(npy_ramp({2}).substr(0, 40), {"claims 118 bytes", "only 30 follow"});
}
TEST_CASE("npy: rejects version 9") {
  rejects_npy(npy(npy_header("<f4", "(2,)"), ramp(2), 9), {"version 9.0", "1, 2 and 3"});
}
TEST_CASE("npy: rejects a header of 4 GB") {
  rejects_npy(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), {"claims 4294967295 bytes"});
}
TEST_CASE("npy: rejects cut data") {
  rejects_npy(npy_ramp({2, 3}).substr(0, 128 + 23), {"[2,3]", "needs 24 bytes", "23 follow"});
}
TEST_CASE("npy: rejects bytes after the data") { rejects_npy(npy_ramp({2, 3}) + "x", {"needs 24 bytes", "25 follow"}); }
TEST_CASE("npy: rejects a shape that overflows") {
  rejects_npy(npy(npy_header("<f4", "(4294967296, 4294967296, 2)"), ramp(2)),
              {"[4294967296,4294967296,2]", "larger than memory"});
}
TEST_CASE("npy: rejects a size that overflows in bytes only") {
  rejects_npy(npy(npy_header("<f8", "(2305843009213693952,)"), ramp(2)), {"larger than memory"});
}
TEST_CASE("npy: rejects an extent beyond 64 bits") {
  rejects_npy(npy(npy_header("<f4", "(99999999999999999999,)"), ramp(2)), {"extent", "too large"});
}
TEST_CASE("npy: rejects a negative extent") {
  rejects_npy(npy(npy_header("<f4", "(-2,)"), ramp(2)), {"negative extent"});
}
TEST_CASE("npy: rejects a shape of words") { rejects_npy(npy(npy_header("<f4", "(two,)"), ramp(2)), {"whole number"}); }
TEST_CASE("npy: rejects a shape without parentheses") {
  rejects_npy(npy(npy_header("<f4", "2"), ramp(2)), {"'(' expected"});
}
TEST_CASE("npy: rejects 33 dimensions") {
  std::string shape = "(";
  for (int i = 0; i < 33; ++i) shape += "1,";
  rejects_npy(npy(npy_header("<f4", shape + ")"), ramp(1)), {"more than 32 dimensions"});
}
TEST_CASE("npy: rejects a type it does not know") {
  rejects_npy(npy(npy_header("<q7", "(2,)"), ramp(2)), {"'<q7'", "'<f4'"});
}
TEST_CASE("npy: rejects an empty type") { rejects_npy(npy(npy_header("", "(2,)"), ramp(2)), {"the type is ''"}); }
TEST_CASE("npy: rejects Python objects") { rejects_npy(npy(npy_header("|O", "(2,)"), ramp(4)), {"'|O'"}); }
TEST_CASE("npy: rejects structured types") {
  rejects_npy(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}", ramp(2)), {"structured type"});
}
TEST_CASE("npy: rejects a header without a shape") {
  rejects_npy(npy("{'descr': '<f4', 'fortran_order': False}", ramp(2)), {"lacks 'shape'"});
}
TEST_CASE("npy: rejects a key twice") {
  rejects_npy(npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", ramp(2)),
              {"'descr'", "twice"});
}
TEST_CASE("npy: rejects an unknown key") {
  rejects_npy(npy("{'descr': '<f4', 'x': 1, 'fortran_order': False, 'shape': (2,)}", ramp(2)), {"'x'", "unknown"});
}
TEST_CASE("npy: rejects a header that is no dict") { rejects_npy(npy("garbage", ramp(2)), {"'{' expected"}); }
TEST_CASE("npy: rejects an open string") { rejects_npy(npy("{'descr", ramp(2)), {"does not end"}); }
TEST_CASE("npy: rejects an open dict") { rejects_npy(npy("{'descr': '<f4',", ramp(2)), {"a string expected"}); }
TEST_CASE("npy: rejects fortran_order that is no truth value") {
  rejects_npy(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", ramp(2)), {"True or False"});
}
TEST_CASE("npy: rejects text after the dict") {
  rejects_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} {}", ramp(2)), {"after the closing brace"});
}
