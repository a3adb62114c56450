// A function that a user gives: what an operator that burin does not know computes of the values at one place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

inline constexpr int kMaxFunctionInputs = 2;  // what a kernel reads beside its weights
inline constexpr std::string_view kUserSymbolPrefix = "burin_user_";

// A number of the model's node, which the function's text knows by its name: a constant.
struct UserAttribute {
  std::string name;
  double value = 0;
  bool whole = false;  // an integer
  bool operator==(const UserAttribute&) const = default;
};

struct UserFunction {
  std::string name;  // of the operator: "my.Domain::Op"
  int inputs = 1;
  std::vector<UserAttribute> attributes = {};
  std::string source_hash = {};  // BLAKE3 in hexadecimal of the text that defines it, attributes included

  // What a compiler made of the text; empty where none has. The PTX is of a function symbol() of so many floats.
  std::string ptx = {};
  // The host's: in float as a kernel calls it, whose parameters are so many floats, and in float64 of an array of them.
  const void* value = nullptr;
  double (*reference)(const double* inputs) = nullptr;
  bool in_double = false;                    // else the reference rounds to float as well
  std::shared_ptr<const void> library = {};  // that holds both

  // The name that it has in a kernel's code: "burin_user_my_Domain__Op_3fa91b5cd1e2".
  std::string symbol() const;
  // What the model's node is called by a C++ text: "Op".
  std::string identifier() const;
};

// Elementwise, Combine and a package's kernels share it. Null: it is none of a user's.
using SharedFunction = std::shared_ptr<const UserFunction>;

// "my.Domain::Op, beta 1.5, steps 2"
std::string describe(const UserFunction& function);

// Whether they are the same function, by their symbols.
bool is_same(const SharedFunction& a, const SharedFunction& b);

// All faults, each a sentence. What is sound may become part of a text that a compiler reads: names are identifiers.
std::vector<std::string> verify(const UserFunction& function);
// Whether it may stand for a function of a user's in a kernel's code.
bool is_user_symbol(std::string_view symbol);
bool is_identifier(std::string_view text);

// In float64. Throws Error(unsupported) where the function was not made for the host.
double reference_of(const UserFunction& function, double x);
double reference_of(const UserFunction& function, double a, double b);
// In float, as a kernel on the host computes it.
float value_of(const UserFunction& function, float x);
float value_of(const UserFunction& function, float a, float b);

// Where a kernel on the host finds the functions that it calls, by their symbols.
using HostFunctions = std::map<std::string, const void*, std::less<>>;

// Whoever makes functions of what a user gave, by the names of operators.
class FunctionSource {
 public:
  virtual ~FunctionSource() = default;
  virtual bool has(std::string_view name) const = 0;
  // `name` is of an operator that it has. The same function is made once. Throws Error.
  virtual SharedFunction make(const std::string& name, int inputs, std::vector<UserAttribute> attributes) = 0;
};

}  // namespace burin
