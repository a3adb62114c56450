// Packages that may say anything, on the fake driver: whatever verifies is loaded and launched, and must stay within
// its memory.
#pragma once

#include <memory>

#include "ir/package/package.h"

namespace burin_test {

// What stands for the code and the data of a manifest's kernels, in the sizes that it needs: a driver takes the code
// for that of kernels with the parameters of their plans. Nothing where the files would be larger than `most_bytes`.
std::shared_ptr<burin::Package> with_sample_files(burin::Manifest manifest, std::int64_t most_bytes);

struct PackageRun {
  int launches = 0;  // of kernels and of programs
  int refusals = 0;  // errors of the runtime
};

// Launches each convolution by itself and each program, for several numbers of images, from memory of the sizes that
// the runtime asks for. Memory of the fake driver must be addresses alone. Errors but those of the user's or the
// device's making pass through.
PackageRun run_package(const std::shared_ptr<const burin::Package>& package);

}  // namespace burin_test
