// FunctionLoader: a library that may be absent, as a table of functions filled by dlopen.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace burin {

class FunctionLoader {
 public:
  explicit FunctionLoader(void* library) : library_(library) {}

  template <typename Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<Function>>(address_of(name));
  }
  // "a, b"; empty: it has all that was loaded.
  const std::string& missing() const { return missing_; }

 private:
  void* address_of(const char* name);

  void* library_;
  std::string missing_;
};

// The file of the first candidate that opens and has every function that `load` asks for. It is never closed: such
// libraries keep state of their own in threads and in the context. Throws Error(device): "no TITLE: " what was tried
// and why each failed, then `help`.
std::string open_library(std::string_view title, const std::vector<std::string>& candidates, std::string_view help,
                         const std::function<void(FunctionLoader&)>& load);

}  // namespace burin
