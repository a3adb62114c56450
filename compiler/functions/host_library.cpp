#include "compiler/functions/host_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "compiler/assemble/locate.h"
#include "compiler/assemble/run_program.h"
#include "compiler/functions/function_text.h"
#include "ir/error.h"
#include "ir/text.h"

namespace burin {
namespace {

// A kernel's threads have small stacks on the host.
constexpr int kMostStackBytes = 8192;

}  // namespace

std::string host_compiler() {
  for (const char* name : {"clang++-19", "clang++", "g++"}) {
    const std::vector<std::string> found = program_candidates("BURIN_HOST_COMPILER", name);
    if (!found.empty()) return found.front();
  }
  fail(ErrorKind::unsupported,
       "no C++ compiler was found for operators of --operator on the host: clang++-19, clang++ or g++ on the PATH, or "
       "one that BURIN_HOST_COMPILER names; --operator NAME=FILE.so gives one that was compiled before");
}

void load_for_host(UserFunction& function, const std::string& path) {
  const std::string absolute = std::filesystem::absolute(path).string();
  void* library = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::bad_input, "operator {}: {} cannot be opened: {}", function.name, path, ::dlerror());
  }
  function.library = std::shared_ptr<const void>(library, [](void* handle) { ::dlclose(handle); });
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  function.value = find("burin_value");
  function.reference = reinterpret_cast<double (*)(const double*)>(find("burin_reference"));
  if (function.value == nullptr || function.reference == nullptr) {
    fail(ErrorKind::bad_input, "operator {}: {} lacks the function burin_value or burin_reference", function.name,
         path);
  }
  const auto in_double = reinterpret_cast<int (*)()>(find("burin_in_double"));
  function.in_double = in_double == nullptr || in_double() != 0;
}

void compile_for_host(UserFunction& function, const std::string& text, const std::string& include_folder) {
  const std::string compiler = host_compiler();
  const TemporaryFolder folder;
  const std::filesystem::path source = std::filesystem::path(folder.path()) / "operator.cpp",
                              library = std::filesystem::path(folder.path()) / "operator.so";
  std::ofstream file(source, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(ErrorKind::device, "cannot write {}; is the disk full?", source.string());
  // Clang wants the error without the number, and GCC with it.
  const bool is_clang = std::filesystem::path(compiler).filename().string().find("clang") != std::string::npos;
  const std::string most = fmt::format("{}", kMostStackBytes);
  const ProgramResult result =
      run_program(compiler,
                  {"-x", "c++", "-std=c++20", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-exceptions",
                   "-fdiagnostics-color=never", "-Wframe-larger-than=" + most,
                   "-Werror=frame-larger-than=" + (is_clang ? "" : most), "-I", include_folder,
                   source.filename().string(), "-o", library.filename().string()},
                  folder);
  if (result.exit_code != 0) {
    fail(ErrorKind::bad_input, "operator {}: {} does not compile its text for the host ({} is looked for):\n{}",
         function.name, compiler, wanted_signature(function), trim(result.output));
  }
  load_for_host(function, library.string());
}

}  // namespace burin
