// app PACKAGE: a C++ program that links the runtime. Reads the package's manifest, and expects clear errors where there
// is no package and no driver. Says what went wrong and ends with 1 where something is not as it should be.
#include <burin/runtime.h>
#include <burin/device_memory.hpp>
#include <burin/network.hpp>
#include <burin/package.hpp>
#include <burin/runtime.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

namespace {

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::cerr << "app: " << what << '\n';
  std::exit(1);
}

void expect_error(int code, const std::string& part, const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    expect(burin::error_code(error) == code, "code " + std::to_string(burin::error_code(error)) + ": " + error.what());
    expect(std::string(error.what()).find(part) != std::string::npos, "no '" + part + "' in: " + error.what());
    return;
  }
  expect(false, "no error that has '" + part + "'");
}

// Never called, for there is no device here: the types that these functions return must be complete.
[[maybe_unused]] std::size_t size_of_all(const burin::LoadedPackage& package, const burin::LoadedKernel& kernel,
                                         const burin::LoadedNetwork& network, const burin::NetworkRun& run) {
  return network.inputs(2).size() + network.outputs(2).size() + package.manifest().kernels.size() +
         kernel.kernel().symbol.size() + kernel.shape().in_channels + run.step(0).reads.size() +
         run.program_of(0).steps.size() + sizeof(burin::Place) + sizeof(burin::DeviceBuffer);
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 2, "usage: app PACKAGE");
  const std::shared_ptr<const burin::Package> package = burin::open_package(argv[1]);
  const std::vector<burin::Kernel>& kernels = package->manifest.kernels;
  expect(kernels.size() == 2, "the package has " + std::to_string(kernels.size()) + " kernels instead of 2");
  for (const burin::Kernel& kernel : kernels) {
    expect(!kernel.symbol.empty() && kernel.planned_batch >= 1, "a kernel without a symbol or a batch");
    std::cout << kernel.op << ' ' << kernel.symbol << '\n';
  }
  expect_error(3, "no-such-file.burin", [] { burin::open_package("no-such-file.burin"); });
  expect_error(5, "no CUDA driver", [] { burin::Device::open(0); });
  std::cout << "a C++ program runs with burin " << burin_version() << '\n';
}
