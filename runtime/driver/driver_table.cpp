#include "runtime/driver/driver_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/error.h"

namespace burin {
namespace {

constexpr const char* kDefaultDriver = "libcuda.so.1";
constexpr const char* kDriverVariable = "BURIN_CUDA_DRIVER";

std::atomic<const DriverTable*> scoped_table = nullptr;

std::string last_dl_error() {
  const char* text = dlerror();
  return text == nullptr ? "no reason given" : text;
}

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

DriverTable open_driver() {
  const char* variable = std::getenv(kDriverVariable);
  const bool chosen = variable != nullptr && *variable != '\0';
  const std::string name = chosen ? variable : kDefaultDriver;
  std::unique_ptr<void, CloseLibrary> library(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    fail(ErrorKind::device, "no CUDA driver: {} could not be opened ({}); {}, or use --device host", name,
         last_dl_error(),
         chosen ? fmt::format("correct or unset {}", kDriverVariable) : std::string("install the NVIDIA driver"));
  }
  DriverTable table;
#define BURIN_DRIVER_FUNCTION(name_in_table, symbol, ...)                                                            \
  table.name_in_table = reinterpret_cast<decltype(table.name_in_table)>(dlsym(library.get(), symbol));               \
  if (table.name_in_table == nullptr) {                                                                              \
    fail(ErrorKind::device,                                                                                          \
         "the CUDA driver {} lacks the function {}; burin needs a driver for CUDA 11.4 or newer: update the NVIDIA " \
         "driver, or use --device host",                                                                             \
         name, symbol);                                                                                              \
  }
#define BURIN_OPTIONAL_DRIVER_FUNCTION(name_in_table, symbol, ...) \
  table.name_in_table = reinterpret_cast<decltype(table.name_in_table)>(dlsym(library.get(), symbol));
#include "runtime/driver/driver_functions.def"
#undef BURIN_DRIVER_FUNCTION
  library.release();  // stays open until the process ends: modules and contexts may outlive any object of ours
  return table;
}

}  // namespace

const DriverTable& driver_table() {
  if (const DriverTable* table = scoped_table.load(std::memory_order_acquire)) return *table;
  // Trivially destructible: still there for what is destroyed when the process ends.
  static const DriverTable table = open_driver();
  return table;
}

ScopedDriverTable::ScopedDriverTable(const DriverTable& table) : previous_(scoped_table.exchange(&table)) {}
ScopedDriverTable::~ScopedDriverTable() { scoped_table.store(previous_, std::memory_order_release); }

void fail_driver(const DriverTable& table, CUresult result, std::string_view call, std::string_view context) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (table.cuGetErrorName(result, &name) != kCudaSuccess) name = nullptr;
  if (table.cuGetErrorString(result, &text) != kCudaSuccess) text = nullptr;
  fail(ErrorKind::device, "{} failed: {} ({}): {}{}{}", call, name == nullptr ? "unknown error code" : name, result,
       text == nullptr ? "the driver has no text for it" : text, context.empty() ? "" : "; ", context);
}

}  // namespace burin
