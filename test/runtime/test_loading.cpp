#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/burin/runtime.hpp"
#include "runtime/select_binary.h"
#include "test/catch.h"
#include "test/package/cubin_builder.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/sample_package.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

DeviceInfo device_of(int major, int minor) {
  DeviceInfo info;
  info.name = "Fake";
  info.compute_major = major;
  info.compute_minor = minor;
  return info;
}

// What a device of this version would run: "cubin sm_90", "ptx sm_75" or "none".
std::string choice(const SampleCode& code, int major, int minor, bool force_jit = false) {
  const auto package = sample_package(code);
  try {
    const KernelBinary& binary = select_binary(package->manifest.kernels[0], device_of(major, minor), force_jit);
    return (binary.kind == BinaryKind::cubin ? "cubin " : "ptx ") + binary.arch;
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
    return "none";
  }
}

}  // namespace

TEST_CASE("select_binary: cubin of the device's own architecture") {
  CHECK(choice({}, 9, 0) == "cubin sm_90");
  CHECK(choice({}, 8, 0) == "cubin sm_80");
}

TEST_CASE("select_binary: cubin of an older minor version, the newest that fits") {
  CHECK(choice({}, 8, 9) == "cubin sm_80");
  CHECK(choice({{"sm_86", "sm_80", "sm_89"}, {"sm_75"}}, 8, 7) == "cubin sm_86");
}

TEST_CASE("select_binary: no cubin of another major or newer minor version") {
  CHECK(choice({}, 10, 0) == "ptx sm_75");
  CHECK(choice({}, 7, 5) == "ptx sm_75");
  CHECK(choice({{"sm_86"}, {"sm_75"}}, 8, 0) == "ptx sm_75");
}

TEST_CASE("select_binary: architecture-specific code runs on that version alone") {
  CHECK(choice({{"sm_90a"}, {"sm_75"}}, 9, 0) == "cubin sm_90a");
  CHECK(choice({{"sm_100a"}, {"sm_75"}}, 10, 3) == "ptx sm_75");
  CHECK(choice({{}, {"sm_90a"}}, 10, 0) == "none");
  CHECK(choice({{"sm_100f"}, {}}, 10, 3) == "cubin sm_100f");
}

TEST_CASE("select_binary: a name that is no architecture") {
  const auto package = sample_package({{"sm_bad"}, {"sm_75"}});
  CHECK(BURIN_THROWN(bad_input, select_binary(package->manifest.kernels[0], device_of(9, 0), false))
            .has("'sm_bad' is not the name of a GPU architecture"));
}

TEST_CASE("select_binary: force_jit") {
  CHECK(choice({}, 9, 0, true) == "ptx sm_75");
  CHECK(choice({{"sm_90"}, {}}, 9, 0, true) == "none");
}

TEST_CASE("select_binary: device_too_old names both") {
  const auto package = sample_package({{"sm_90"}, {"sm_80"}});
  const Thrown error = BURIN_THROWN(device, select_binary(package->manifest.kernels[0], device_of(7, 5), false));
  CHECK(error.has("kernel conv1_b1 of layer conv1 does not run on cuda:0 (Fake), which is sm_75"));
  CHECK(error.has("a cubin for sm_90"));
  CHECK(error.has("PTX for sm_80"));
  CHECK(error.has("--arch sm_75"));
}

TEST_CASE("loading: lazy_loads_when_asked_for, once") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  CHECK(fake.calls_of("cuModuleLoadDataEx") == 0);
  const LoadedKernel kernel = package.kernel("conv1", 1);
  package.kernel("conv1", 1);
  REQUIRE(fake.loaded_code().size() == 1);
  CHECK(fake.loaded_code().front().find(
            "machine code for sm_90 of conv1_b1(input, output, residual, partials, counters, batch)\n") !=
        std::string::npos);
  CHECK(kernel.loaded_from() == LoadedFrom::cubin);
  CHECK(kernel.loaded_arch() == "sm_90");
  CHECK(kernel.attributes().registers == 40);
}

TEST_CASE("loading: eager_loads_all") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample", {.eager = true});
  CHECK(fake.loaded_code().size() == 4);
}

TEST_CASE("loading: jit_keeps_the_compilers_log") {
  FakeDriver fake;
  fake.jit_info_log = "ptxas info: 0 bytes stack frame\n";
  const LoadedPackage package(Device::open(0), sample_package({{}, {"sm_75"}}), "sample");
  const LoadedKernel kernel = package.kernel("conv1", 1);
  CHECK(kernel.loaded_from() == LoadedFrom::jit);
  CHECK(kernel.loaded_arch() == "sm_75");
  CHECK(kernel.load_log() == "ptxas info: 0 bytes stack frame");
}

TEST_CASE("loading: jit_error_carries_the_compilers_log") {
  FakeDriver fake;
  fake.jit_error_log = "ptxas application ptx input, line 7; error: Unexpected instruction";
  {
    const LoadedPackage package(Device::open(0), sample_package({{}, {"sm_75"}}), "sample");
    const Thrown error = BURIN_THROWN(device, package.kernel("conv1", 1));
    CHECK(error.has("cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218)"));
    CHECK(error.has("kernel conv1_b1 of layer conv1 (PTX for sm_75)"));
    CHECK(error.has("line 7; error: Unexpected instruction"));
    // A failure is not remembered: it can be tried again.
    fake.jit_error_log.clear();
    CHECK(package.kernel("conv1", 1).loaded_from() == LoadedFrom::jit);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("loading: a_log_longer_than_the_buffer is cut, not overrun") {
  FakeDriver fake;
  fake.jit_error_log = std::string(100'000, 'x');
  const LoadedPackage package(Device::open(0), sample_package({{}, {"sm_75"}}), "sample");
  const Thrown error = BURIN_THROWN(device, package.kernel("conv1", 1));
  CHECK(error.text.size() < 20'000);
  CHECK(error.has("xxxxxxxx"));
}

TEST_CASE("loading: too_little_shared_memory names both") {
  FakeDriver fake;
  fake.devices[0].shared_per_block = 65536;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  const Thrown error = BURIN_THROWN(device, package.kernel("conv1", 1));
  CHECK(error.has("needs 100000 bytes of shared memory per block"));
  CHECK(error.has("offers 65536"));
  CHECK(fake.calls_of("cuModuleLoadDataEx") == 0);
}

TEST_CASE("loading: static_shared_memory_is_none_of_burins") {
  FakeDriver fake;
  fake.function_static_shared = 200;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  CHECK(BURIN_THROWN(bad_input, package.kernel("conv1", 1)).has("takes 200 bytes of static shared memory"));
}

TEST_CASE("loading: too_many_registers_for_the_block") {
  FakeDriver fake;
  fake.function_max_threads = 32;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  const Thrown error = BURIN_THROWN(device, package.kernel("conv1", 1));
  CHECK(error.has("needs 64 threads per block"));
  CHECK(error.has("can run 32 of them"));
}

TEST_CASE("loading: shared_memory_is_opted_into") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample", {.eager = true});
  CHECK(fake.calls_of("cuFuncSetAttribute") == 4);
}

namespace {

// What is said of the sample's conv1 for one image when `content` stands in its cubin's place; nothing reaches the
// driver.
std::string refusal_of(const std::string& content, const EditKernels& edit = {}) {
  FakeDriver fake;
  auto package = sample_package({{"sm_90"}, {}}, edit);
  package->files.at("kernels/conv1_b1.sm_90.cubin") = content;
  package->manifest.kernels.front().binaries.front().bytes = static_cast<std::int64_t>(content.size());
  const LoadedPackage loaded(Device::open(0), package, "sample");
  const std::string text = BURIN_THROWN(bad_input, loaded.kernel("conv1", 1)).text;
  CHECK(fake.calls_of("cuModuleLoadDataEx") == 0);
  return text;
}

// The sample's cubin after a change.
CubinBuilder conv1_cubin() {
  CubinBuilder cubin;
  cubin.functions = {{"conv1_b1", 40, 0, true, "code", {8, 8, 8, 8, 8, 4}}};
  return cubin;
}

}  // namespace

TEST_CASE("loading: machine code that is not the plan's never reaches the driver") {
  const std::string of = "kernels/conv1_b1.sm_90.cubin, a cubin of layer conv1: ";
  CHECK(refusal_of("???") == of + "malformed cubin: the ELF header (64 bytes at 0) reaches beyond its end at 3");
  CubinBuilder cubin = conv1_cubin();
  cubin.functions[0].parameters = {8, 8, 8, 8, 8, 4, 8};
  CHECK(refusal_of(cubin.build()) ==
        of + "the kernel takes 8 + 8 + 8 + 8 + 8 + 4 + 8 bytes as parameters, 56 in all; its plan's takes 8 + 8 + 8 + "
             "8 + 8 + 4 bytes");
  cubin.functions[0].parameters = {8, 8, 8, 8, 4096, 4};
  CHECK_THAT(refusal_of(cubin.build()), Contains("takes 8 + 8 + 8 + 8 + 4096 + 4 bytes"));
  cubin = conv1_cubin();
  cubin.functions[0].name = "conv1_b2";
  CHECK(refusal_of(cubin.build()) == of + "it has no kernel 'conv1_b1'; its kernels: conv1_b2");
  cubin.functions[0] = {"conv1_b1", 40, 0, false, "code"};
  CHECK(refusal_of(cubin.build()) == of + "it has no kernel 'conv1_b1'; its kernels: none");
  cubin = conv1_cubin();
  cubin.compute = 80;
  CHECK(refusal_of(cubin.build()) == of + "it is for sm_80, and said to be for sm_90");
  cubin = conv1_cubin();
  cubin.functions[0].static_shared = 1024 + 16;
  CHECK(refusal_of(cubin.build()) == of + "the kernel takes 16 bytes of static shared memory, its plan's takes none");
}

TEST_CASE("loading: symbol_missing_from_the_ptx") {
  FakeDriver fake;
  auto package = sample_package({{}, {"sm_75"}});
  PackageFile& code = package->files.at("kernels/conv1_b1.sm_75.ptx");
  code = ".version 8.0" + std::string(static_cast<std::size_t>(code.bytes()) - 12, ' ');
  const LoadedPackage loaded(Device::open(0), package, "sample");
  CHECK(BURIN_THROWN(device, loaded.kernel("conv1", 1)).has("cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND"));
}

TEST_CASE("loading: a function need not be called like its kernel") {
  for (const SampleCode& code : {SampleCode{{"sm_90"}, {}}, SampleCode{{}, {"sm_75"}}}) {
    FakeDriver fake;
    const auto package = sample_package(code, [](std::vector<Kernel>& kernels) { kernels[0].entry = "made_for_all"; });
    const LoadedPackage loaded(Device::open(0), package, "sample");
    CHECK(loaded.kernel_by_symbol("conv1_b1").symbol() == "conv1_b1");
    CHECK(BURIN_THROWN(usage, loaded.kernel_by_symbol("made_for_all")).has("no kernel 'made_for_all'"));
    package->manifest.kernels[1].entry = "absent";
    const bool is_ptx = code.cubins.empty();
    const std::string fault = error_of([&] { (void)loaded.kernel_by_symbol(package->manifest.kernels[1].symbol); },
                                       is_ptx ? ErrorKind::device : ErrorKind::bad_input);
    CHECK_THAT(fault, Contains(is_ptx ? "CUDA_ERROR_NOT_FOUND" : "it has no kernel 'absent'"));
  }
}

TEST_CASE("loading: machine code with other figures than the manifest's") {
  FakeDriver fake;
  auto package = sample_package({{"sm_90"}, {}});
  burin::KernelBinary& binary = package->manifest.kernels.front().binaries.front();
  binary.registers = 41;
  binary.code_bytes = 7;
  const LoadedPackage loaded(Device::open(0), package, "sample");
  const Thrown error = BURIN_THROWN(bad_input, loaded.kernel("conv1", 1));
  CHECK(error.has("the kernel takes 40 registers, and is said to take 41"));
  CHECK(error.has("bytes of code, and is said to have 7"));
}

TEST_CASE("loading: PTX whose kernel takes other parameters is not launched") {
  FakeDriver fake;
  auto package = sample_package({{}, {"sm_75"}});
  PackageFile& code = package->files.at("kernels/conv1_b1.sm_75.ptx");
  const auto with_parameters = [&](const std::string& parameters) {
    code = ".version 8.0 .target sm_75 of conv1_b1(" + parameters + ")\n";
    package->manifest.kernels.front().binaries.front().bytes = code.bytes();
    return LoadedPackage(Device::open(0), package, "sample");
  };
  const std::string right = "input, output, residual, partials, counters, batch";
  CHECK(
      BURIN_THROWN(bad_input, with_parameters(right + ", more, even").kernel("conv1", 1))
          .has("(PTX for sm_75) takes 8 + 8 + 8 + 8 + 8 + 4 + 8 bytes and more as parameters; its plan's takes 8 + 8 + "
               "8 + 8 + 8 + 4 bytes"));
  CHECK(BURIN_THROWN(bad_input, with_parameters("input, batch").kernel("conv1", 1)).has("takes 8 + 4 bytes as"));
  CHECK(with_parameters(right).kernel("conv1", 1).loaded_from() == LoadedFrom::jit);
  fake.lacks_parameter_info();
  CHECK(with_parameters(right + ", more").kernel("conv1", 1).loaded_from() == LoadedFrom::jit);
}

namespace {

// The sample whose conv2 has weights: 59 words of 7s.
std::shared_ptr<Package> sample_with_weights() {
  std::shared_ptr<Package> package = sample_package({}, [](std::vector<Kernel>& kernels) {
    edit_template(kernels.back(), [](TemplatePlan& plan) { plan.weights() = flat_tensor(TensorRole::weights, 59); });
    kernels.back().weights = "weights/conv2";
  });
  package->files["weights/conv2"] = std::string(59 * 4, '\7');
  return package;
}

}  // namespace

TEST_CASE("loading: a kernel that takes no box, or one more, is not launched") {
  FakeDriver fake;
  const auto load = [&](const SampleCode& code, std::size_t boxes) {
    Kernel kernel = sample_box_kernel("conv3");
    const auto package = sample_package(code, [&](std::vector<Kernel>& kernels) {
      kernels = {kernel};
      edit_template(kernels[0], [&](TemplatePlan& plan) { plan.form.boxes.resize(boxes, plan.form.boxes[0]); });
    });
    // The code is that of another number of boxes; the plan is the sample's.
    package->manifest.kernels[0].plan = kernel.plan;
    package->manifest.kernels[0].form = kernel.form;
    const LoadedPackage loaded(Device::open(0), package, "sample");
    loaded.kernel("conv3", 4);
  };
  CHECK_NOTHROW(load({{"sm_90"}, {}}, 1));
  CHECK_NOTHROW(load({{}, {"sm_90"}}, 1));
  const std::string takes = "8 + 8 + 8 + 8 + 128 + 4 bytes";
  for (const auto& code : {SampleCode{{"sm_90"}, {}}, SampleCode{{}, {"sm_90"}}}) {
    CHECK(BURIN_THROWN(bad_input, load(code, 0)).has("its plan's takes " + takes));
    CHECK(BURIN_THROWN(bad_input, load(code, 2)).has("its plan's takes " + takes));
  }
}

TEST_CASE("loading: weights_are_uploaded with the code, once") {
  FakeDriver fake;
  {
    const LoadedPackage package(Device::open(0), sample_with_weights(), "sample");
    package.kernel("conv1", 1);
    CHECK(fake.allocations().empty());
    const LoadedKernel kernel = package.kernel("conv2", 1);
    package.kernel("conv2", 1);
    CHECK(fake.allocations() == std::vector<std::size_t>{59 * 4});
    const float value = 0;
    float output = 0;
    kernel.launch(nullptr, {.input = &value, .output = &output, .residual = &value});
    const auto* weights = static_cast<const char*>(fake.launches().back().weights);
    REQUIRE(weights != nullptr);
    CHECK(std::all_of(weights, weights + 59 * 4, [](char byte) { return byte == 7; }));
  }
  CHECK(fake.live().empty());
}

TEST_CASE("loading: kernels with the same plan share their code, but for baked and edited ones") {
  const auto loaded_with = [](const EditKernels& edit) {
    FakeDriver fake;
    {
      const auto package = sample_package({}, [&](std::vector<Kernel>& kernels) {
        kernels = {sample_template_kernel("conv2"), sample_template_kernel("conv3")};
        edit(kernels);
      });
      const LoadedPackage loaded(Device::open(0), package, "sample", {.eager = true});
      CHECK(loaded.kernel("conv3", 1).attributes().registers == 40);
    }
    CHECK(fake.live().empty());
    return fake.loaded_code().size();
  };
  CHECK(loaded_with([](std::vector<Kernel>&) {}) == 1);
  CHECK(loaded_with([](std::vector<Kernel>& kernels) { kernels[1].edited = true; }) == 2);
  CHECK(loaded_with([](std::vector<Kernel>& kernels) {
          edit_template(kernels[1], [](TemplatePlan& plan) { plan.output().alignment *= 4; });
        }) == 2);
  CHECK(loaded_with([](std::vector<Kernel>& kernels) {
          kernels = {sample_kernel("conv2", 1), sample_kernel("conv3", 1)};
        }) == 2);
}

TEST_CASE("loading: a file of weights that two kernels read is on the device once") {
  FakeDriver fake;
  const auto package = sample_package({}, [](std::vector<Kernel>& kernels) {
    kernels = {sample_template_kernel("conv2"), sample_template_kernel("conv3")};
    for (Kernel& kernel : kernels) {
      edit_template(kernel, [](TemplatePlan& plan) { plan.weights() = flat_tensor(TensorRole::weights, 59); });
      kernel.weights = "weights/both";
    }
  });
  package->files["weights/both"] = std::string(59 * 4, '\7');
  {
    const LoadedPackage loaded(Device::open(0), package, "sample");
    const LoadedKernel first = loaded.kernel("conv2", 1), second = loaded.kernel("conv3", 1);
    CHECK(fake.allocations() == std::vector<std::size_t>{59 * 4});
    const float value = 0;
    float output = 0;
    for (const LoadedKernel& kernel : {first, second}) {
      kernel.launch(nullptr, {.input = &value, .output = &output, .residual = &value});
    }
    const std::vector<FakeLaunch> launches = fake.launches();
    REQUIRE(launches.size() == 2);
    CHECK(launches[0].weights != nullptr);
    CHECK(launches[0].weights == launches[1].weights);
    const LoadedPackage other(Device::open(0), package, "another loading");
    other.kernel("conv2", 1);
    CHECK(fake.allocations().size() == 2);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("loading: weights_that_do_not_fit_on_the_device") {
  FakeDriver fake;
  {
    const LoadedPackage package(Device::open(0), sample_with_weights(), "sample");
    fake.fail_call = "cuMemAlloc";
    CHECK(BURIN_THROWN(device, package.kernel("conv2", 1)).has("cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY"));
    fake.fail_call.clear();
    CHECK(package.kernel("conv2", 1).symbol() == "conv2_b4");  // it can be tried again
  }
  CHECK(fake.live().empty());
}

TEST_CASE("loading: what_the_package_says_of_a_kernel") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  const LoadedKernel kernel = package.kernel("conv1", 8);
  CHECK(&kernel.kernel() == &package.manifest().kernels[1]);
  CHECK(kernel.layer() == "conv1");
  CHECK(kernel.symbol() == "conv1_b8");
  CHECK(kernel.shape() == package.manifest().kernels[1].layer->shape);
  CHECK_FALSE(kernel.needs_residual());
}

TEST_CASE("loading: an_inconsistent_package is refused") {
  FakeDriver fake;
  auto package = sample_package();
  package->files.erase(package->files.begin());
  CHECK(BURIN_THROWN(bad_input, LoadedPackage(Device::open(0), package, "my.burin")).has("my.burin: "));
  CHECK(BURIN_THROWN(usage, LoadedPackage(Device::open(0), nullptr, "my.burin")).has("no package was given"));
}

TEST_CASE("loading: from_a_file") {
  FakeDriver fake;
  const auto path = std::filesystem::temp_directory_path() / ("burin_loading_" + std::to_string(getpid()) + ".burin");
  write_package(*sample_package(), path.string());
  const LoadedPackage package(Device::open(0), path.string());
  std::filesystem::remove(path);
  CHECK(package.layers() == std::vector<std::string>{"conv1", "conv2"});
  CHECK(package.kernel("conv2", 4).needs_residual());
  CHECK(BURIN_THROWN(bad_input, LoadedPackage(Device::open(0), path.string())).has(path.string()));
}

TEST_CASE("choosing: the largest planned batch that does not exceed the batch, else the smallest") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  CHECK(package.kernel("conv1", 1).planned_batch() == 1);
  CHECK(package.kernel("conv1", 7).planned_batch() == 1);
  CHECK(package.kernel("conv1", 8).planned_batch() == 8);
  CHECK(package.kernel("conv1", 31).planned_batch() == 8);
  CHECK(package.kernel("conv1", 1 << 20).planned_batch() == 32);
  CHECK(package.kernel("conv2", 1).planned_batch() == 4);
  CHECK(package.kernel_by_symbol("conv1_b8").planned_batch() == 8);
}

TEST_CASE("choosing: unknown_names") {
  FakeDriver fake;
  const LoadedPackage package(Device::open(0), sample_package(), "sample");
  const Thrown error = BURIN_THROWN(usage, package.kernel("conv9", 1));
  CHECK(error.text == "sample has no layer 'conv9'; its layers are: conv1, conv2");
  CHECK(BURIN_THROWN(usage, package.kernel_by_symbol("x")).has("no kernel 'x'"));
  CHECK(BURIN_THROWN(usage, package.kernel("conv1", 0)).has("batch 0"));
  CHECK(BURIN_THROWN(usage, package.kernel("conv1", (1 << 20) + 1)).has("1048577"));
}

TEST_CASE("several_devices: one package, each with its own code and context") {
  FakeDriver fake;
  fake.devices = {{"Fake A", 8, 9, 101376}, {"Fake B", 9, 0, 232448}};
  {
    const std::shared_ptr<const Package> package = sample_package();
    const LoadedPackage first(Device::open(0), package, "sample");
    const LoadedPackage second(Device::open(1), package, "sample");
    CHECK(first.kernel("conv1", 1).loaded_arch() == "sm_80");
    CHECK(second.kernel("conv1", 1).loaded_arch() == "sm_90");
  }
  CHECK(fake.live().empty());
}
