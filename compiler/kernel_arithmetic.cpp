#include "compiler/kernel_arithmetic.h"

#include "ir/baked_plan.h"
#include "ir/error.h"

namespace burin {

Arithmetic arithmetic_of(const Kernel& kernel) {
  const std::optional<Precision> precision = parse_enum<Precision>(kernel.precision);
  BURIN_CHECK(precision, "a package with precision '{}' was read", kernel.precision);
  Arithmetic arithmetic{.precision = *precision};
  if (arithmetic.precision != Precision::fp16x2) return arithmetic;
  try {
    arithmetic.promote_every = parse_baked_plan(kernel.plan).promote_every;
  } catch (const Error& error) {
    fail(ErrorKind::bad_input,
         "layer '{}': the package's plan says how often sums go over to FP32, and cannot be read: {}", kernel.op,
         error.what());
  }
  return arithmetic;
}

}  // namespace burin
