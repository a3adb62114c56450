// Where the pieces of CUDA that may be absent are looked for: libraries opened with dlopen, programs started by path.
// Nothing is opened here; a candidate is a name to try.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace burin {

// Candidates for dlopen, best first. When the environment variable `variable` is set, its value is the only one: a
// choice that does not work is reported, never replaced. Otherwise each of `names` for the default loader path, then
// in the folders of CUDA toolkits and of the wheels that hold CUDA's libraries.
std::vector<std::string> library_candidates(const char* variable, const std::vector<std::string_view>& names);

// The same for a program: `variable`, else PATH, toolkits, wheels. Only files that exist and may be executed, except
// that the value of `variable` is returned unchecked.
std::vector<std::string> program_candidates(const char* variable, std::string_view name);

// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda; those that exist.
std::vector<std::string> toolkit_folders();

// The folders `nvidia/<package>` of Python's site-packages in $BURIN_CUDA_WHEELS (a site-packages folder or a virtual
// environment; then nothing else is looked at), else in `.venv` beside the program's folder, in the source tree, and in
// $VIRTUAL_ENV. Sorted.
std::vector<std::string> wheel_folders();

// The file that an open library came from, or `fallback`.
std::string path_of_library(void* handle, const std::string& fallback);

}  // namespace burin
