// nvJitLink: NVIDIA's linker library, which also assembles PTX. It is opened at run time; the functions used are
// declared here, so that no toolkit is needed to build.
//
// It compiles each function of a PTX text on its own, under the calling convention, and links them. A function that an
// entry calls therefore has fewer registers for itself than ptxas leaves it; an entry without calls comes out alike.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/assemble/assembler.h"

namespace burin {

class NvJitLink {
 public:
  // The first of `candidates` that opens and has all functions; null, with the reason of each in `why`, if none does.
  static std::unique_ptr<NvJitLink> open(const std::vector<std::string>& candidates, std::string& why);
  NvJitLink(const NvJitLink&) = delete;
  NvJitLink& operator=(const NvJitLink&) = delete;

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }

  // Thread-safe. Throws Error (see fail_assembly).
  AssemblerOutput assemble(const std::string& ptx, const std::string& arch) const;

 private:
  NvJitLink() = default;
  std::string open_library(const std::string& candidate);  // empty, or why not

  using Handle = void*;
  using Result = int;
  struct Functions {
    Result (*create)(Handle*, std::uint32_t option_count, const char* const* options) = nullptr;
    Result (*destroy)(Handle*) = nullptr;
    Result (*add_data)(Handle, int input_type, const void* data, std::size_t size, const char* name) = nullptr;
    Result (*complete)(Handle) = nullptr;
    Result (*cubin_size)(Handle, std::size_t*) = nullptr;
    Result (*cubin)(Handle, void*) = nullptr;
    Result (*error_log_size)(Handle, std::size_t*) = nullptr;
    Result (*error_log)(Handle, char*) = nullptr;
    Result (*info_log_size)(Handle, std::size_t*) = nullptr;
    Result (*info_log)(Handle, char*) = nullptr;
    Result (*version)(unsigned int* major, unsigned int* minor) = nullptr;  // absent before 12.3
  };

  Functions functions_;
  std::string path_;
  std::string version_;
};

}  // namespace burin
