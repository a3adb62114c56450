// NVRTC: NVIDIA's library that compiles CUDA C++ to PTX. It is opened at run time; the functions used are declared
// here, so that no toolkit is needed to build.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace burin {

class Nvrtc {
 public:
  // Where it is looked for.
  static std::vector<std::string> candidates();
  // The first of `candidates` that opens and has all functions; null, with the reason of each in `why`, if none does.
  static std::unique_ptr<Nvrtc> open(const std::vector<std::string>& candidates, std::string& why);
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }

  struct Result {
    std::string ptx;  // empty: it does not compile
    std::string log;  // errors and warnings, with file and line as `name` and #line say them
  };
  // `options`: as its documentation has them. Thread-safe.
  Result compile(const std::string& source, const std::string& name, const std::vector<std::string>& options) const;

 private:
  Nvrtc() = default;
  std::string open_library(const std::string& candidate);  // empty, or why not

  using Program = void*;
  struct Functions {
    int (*create)(Program*, const char* source, const char* name, int headers, const char* const* texts,
                  const char* const* names) = nullptr;
    int (*destroy)(Program*) = nullptr;
    int (*compile)(Program, int count, const char* const* options) = nullptr;
    int (*ptx_size)(Program, std::size_t*) = nullptr;
    int (*ptx)(Program, char*) = nullptr;
    int (*log_size)(Program, std::size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*version)(int* major, int* minor) = nullptr;
  };

  Functions functions_;
  std::string path_, version_;
};

}  // namespace burin
