// DriverTable: the CUDA Driver API as a table of function pointers, filled by dlopen, so that nothing links libcuda and
// a test can put another table in its place.
#pragma once

#include <string_view>

#include "runtime/burin/export.h"
#include "runtime/driver/driver_types.h"

namespace burin {

struct DriverTable {
#define BURIN_DRIVER_FUNCTION(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
#include "runtime/driver/driver_functions.def"
#undef BURIN_DRIVER_FUNCTION
};

// The driver's table: libcuda.so.1, or the library that the environment variable BURIN_CUDA_DRIVER names. Opened at the
// first call, never closed; a failure is not remembered. Throws Error(device) that says what is missing. Thread-safe.
BURIN_API const DriverTable& driver_table();

// While it lives, driver_table() returns `table` in every thread. What was made from the table keeps pointing at it, so
// the table must outlive that too. Scopes nest.
class BURIN_API ScopedDriverTable {
 public:
  explicit ScopedDriverTable(const DriverTable& table);
  ~ScopedDriverTable();
  ScopedDriverTable(const ScopedDriverTable&) = delete;
  ScopedDriverTable& operator=(const ScopedDriverTable&) = delete;

 private:
  const DriverTable* previous_;
};

// Throws Error(device): "CALL failed: CUDA_ERROR_X (code): the driver's text; context".
[[noreturn]] BURIN_API void fail_driver(const DriverTable& table, CUresult result, std::string_view call,
                                        std::string_view context);

// `call`: the function's name. `context`: what was being done, in words the user knows; may be empty.
inline void check(const DriverTable& table, CUresult result, std::string_view call, std::string_view context = {}) {
  if (result != kCudaSuccess) [[unlikely]]
    fail_driver(table, result, call, context);
}

}  // namespace burin
