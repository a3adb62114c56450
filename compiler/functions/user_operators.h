// What --operator gives: element-wise operators that burin does not know, as CUDA C++. Nothing of a package is ever
// compiled or run here, but what the user's own files say.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/functions/function_text.h"
#include "ir/package/package.h"
#include "ir/user_function.h"

namespace burin {

class UserOperators : public FunctionSource {
 public:
  // Each is "NAME=FILE": a text of CUDA C++, or a library (.so, host_library.h) that the host takes in its place.
  // Throws Error(usage) for what is none, and Error(bad_input) for a file that cannot be read.
  explicit UserOperators(const std::vector<std::string>& given);

  bool has(std::string_view name) const override { return files_.contains(name); }
  SharedFunction make(const std::string& name, int inputs, std::vector<UserAttribute> attributes) override;

  // Compiles what was made, for GPUs of the architecture ("sm_80") and later. Throws Error(bad_input) with the
  // compiler's messages, Error(unsupported) where there is no NVRTC, Error(usage) where there is no text.
  void compile_for_device(const std::string& arch);
  // The same for this CPU.
  void compile_for_host();

  // What the kernels of a package call, compiled for the host, where it is given. What the manifest's layers end with
  // can be computed then. Throws Error(bad_input) for a text that the package was not compiled from.
  HostFunctions give(Manifest& manifest);

  // Compares the PTX that a package holds of its functions with what NVRTC makes of their texts. Each is a sentence; a
  // note says what could not be compared.
  struct CodeFaults {
    std::vector<std::string> faults, notes;
  };
  CodeFaults compare_code(const Package& package);

  // Throws Error(usage) for one that nobody asked for: an option that would do nothing. `where`: "net.onnx".
  void check_used(const std::string& where) const;
  // The same for one that is not among these.
  void check_used(const std::string& where, const std::vector<std::string>& operators) const;

  // What the host computes with, once it is compiled.
  struct Reference {
    std::string name, made_of;  // "op.cu, compiled by /usr/bin/clang++-19", "op.so"
    bool in_double = false;
  };
  std::vector<Reference> references() const;

 private:
  struct Made;
  // The function as NVRTC compiles it. Throws as compile_for_device() does.
  static std::string ptx_of(const Made& made, const std::string& arch);

  struct Files {
    FunctionText text;
    std::string library;  // its path; empty: none
    bool has_text() const { return !text.path.empty(); }
  };
  struct Made {
    std::shared_ptr<UserFunction> function;
    const Files* files = nullptr;
    std::string compiler = {};  // for the host; empty: a library was given
  };

  std::map<std::string, Files, std::less<>> files_;  // by operator
  std::vector<Made> made_;
};

}  // namespace burin
