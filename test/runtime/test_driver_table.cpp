
#include "runtime/driver/driver_table.h"
#include "test/catch.h"
#include "test/runtime/fake_driver.h"
#include "test/scoped_variable.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

TEST_CASE("driver_table: missing_library names it and says what helps") {
  const ScopedVariable variable("BURIN_CUDA_DRIVER", "libno-such-driver.so.7");
  const Thrown error = BURIN_THROWN(device, driver_table());
  CHECK(error.has("no CUDA driver: libno-such-driver.so.7 could not be opened ("));
  CHECK(error.has("BURIN_CUDA_DRIVER"));
  CHECK(error.has("--device host"));
}

TEST_CASE("driver_table: missing_function names library and function") {
  const ScopedVariable variable("BURIN_CUDA_DRIVER", "libm.so.6");
  const Thrown error = BURIN_THROWN(device, driver_table());
  CHECK(error.has("the CUDA driver libm.so.6 lacks the function cuInit"));
  CHECK(error.has("update the NVIDIA driver"));
}

TEST_CASE("driver_table: scopes_nest") {
  const FakeDriver outer;
  const DriverTable* outer_table = &driver_table();
  {
    const DriverTable inner;
    const ScopedDriverTable scope(inner);
    CHECK(&driver_table() == &inner);
  }
  CHECK(&driver_table() == outer_table);
}

TEST_CASE("check: success_is_silent, failure names call, code, text and context") {
  const FakeDriver fake;
  const DriverTable& table = driver_table();
  CHECK_NOTHROW(check(table, kCudaSuccess, "cuInit", "while testing"));
  const Thrown error = BURIN_THROWN(device, check(table, kErrorOutOfMemory, "cuMemAlloc", "while testing"));
  CHECK(error.text == "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; while testing");
}

TEST_CASE("check: a_code_that_the_driver_does_not_know is still told") {
  const FakeDriver fake;
  const Thrown error = BURIN_THROWN(device, check(driver_table(), kErrorWithoutName, "cuInit"));
  CHECK(error.text == "cuInit failed: unknown error code (4242): the driver has no text for it");
}
