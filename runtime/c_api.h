// What the parts of the C ABI share: handles around the C++ objects, exceptions turned into status codes.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "ir/error.h"
#include "runtime/burin/runtime.h"
#include "runtime/burin/runtime.hpp"

struct burin_device {
  burin::Device device;
};
struct burin_package {
  burin::LoadedPackage package;
  std::vector<std::string> layers;
};
struct burin_kernel {
  burin::LoadedKernel kernel;
};
struct burin_workspace {
  burin::Workspace workspace;
};

namespace burin {

class LoadNotes;
// Null: there is none of this index.
const char* note_at(const LoadNotes& notes, int index);
int note_count(const LoadNotes& notes);

// Makes `text` what burin_last_error() gives in this thread; returns `status`.
burin_status remember_error(burin_status status, const char* text) noexcept;

// The value of an argument that must not be NULL.
struct Required {
  const char* function;
  template <typename T>
  T& operator()(T* pointer, const char* argument) const {
    if (pointer == nullptr) fail(ErrorKind::usage, "{}: {} is NULL", function, argument);
    return *pointer;
  }
};

// Runs `body`; whatever it throws becomes a status.
template <typename Body>
burin_status guarded(const char* function, Body body) noexcept {
  try {
    body(Required{function});
    return BURIN_OK;
  } catch (const std::bad_alloc&) {
    return remember_error(BURIN_ERROR_DEVICE, "out of host memory");
  } catch (const std::exception& error) {
    return remember_error(static_cast<burin_status>(error_code(error)), error.what());
  } catch (...) {
    return remember_error(BURIN_ERROR_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace burin
