#include "compiler/functions/function_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/kernel_cache.h"

namespace burin {
namespace {

// What CUDA knows beside C++'s library, as far as functions of numbers have a use for it. Old names of the C library,
// which CUDA has not, would clash with attributes that are called so.
constexpr const char* kHostPrelude = R"(
#define gamma burin_old_gamma
#define y0 burin_old_y0
#define y1 burin_old_y1
#define yn burin_old_yn
#define j0 burin_old_j0
#define j1 burin_old_j1
#define jn burin_old_jn
#define significand burin_old_significand
#include <math.h>
#undef gamma
#undef y0
#undef y1
#undef yn
#undef j0
#undef j1
#undef jn
#undef significand
#include <stdint.h>
#include <algorithm>
#include <type_traits>
#define __device__
#define __host__
#define __forceinline__ inline
#define __inline__ inline
#define __noinline__
using std::max;
using std::min;
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
)";

std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text;
}

std::string in_file(const std::string& path, const std::string& text) {
  return fmt::format("#line 1 \"{}\"\n{}\n", escaped(path), text);
}

std::string literal(const UserAttribute& attribute) {
  if (!attribute.whole) return fmt::format("constexpr float {} = {:a}f;", attribute.name, attribute.value);
  const auto value = static_cast<std::int64_t>(attribute.value);
  const bool is_int = value > std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
  return fmt::format("constexpr {} {} = {};", is_int ? "int" : "long long", attribute.name, value);
}

std::string attributes_text(const UserFunction& function) {
  std::vector<std::string> lines;
  for (const UserAttribute& attribute : function.attributes) lines.push_back(literal(attribute));
  return fmt::format("{}", fmt::join(lines, " "));
}

// "float a, float b", "a, b"
std::string list_of(const UserFunction& function, const std::string& first, const std::string& second) {
  return function.inputs == 1 ? first : first + ", " + second;
}

std::string call_of(const UserFunction& function) { return fmt::format("the call of {}", wanted_signature(function)); }

}  // namespace

std::string wanted_signature(const UserFunction& function) {
  return fmt::format("float {}({})", function.identifier(), list_of(function, "float", "float"));
}

std::string FunctionText::hash(const UserFunction& function) const {
  return content_hash({function.name, std::to_string(function.inputs), attributes_text(function), source});
}

std::string FunctionText::for_device(const UserFunction& function) const {
  return in_file("attributes of " + function.name, attributes_text(function)) + in_file(path, source) +
         in_file(call_of(function), fmt::format("extern \"C\" __device__ float {}({}) {{ return {}({}); }}",
                                                function.symbol(), list_of(function, "float a", "float b"),
                                                function.identifier(), list_of(function, "a", "b")));
}

std::string FunctionText::for_host(const UserFunction& function) const {
  const std::string name = function.identifier();
  const std::string calls = fmt::format(
      "extern \"C\" float burin_value({}) {{ return {}({}); }}\n"
      "extern \"C\" double burin_reference(const double* of) {{ return {}({}); }}\n"
      "extern \"C\" int burin_in_double() {{ return std::is_same<decltype({}({})), double>::value; }}",
      list_of(function, "float a", "float b"), name, list_of(function, "a", "b"), name,
      list_of(function, "of[0]", "of[1]"), name, list_of(function, "0.0", "0.0"));
  return kHostPrelude + in_file("attributes of " + function.name, attributes_text(function)) + in_file(path, source) +
         in_file(call_of(function), calls);
}

}  // namespace burin
