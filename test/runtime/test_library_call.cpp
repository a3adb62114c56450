// Kernels with a library's call, beside the fake cuDNN: the call, and burin's own code where there is none.
#include "ir/library_call.h"

#include <dlfcn.h>

#include <cmath>

#include "compiler/reference.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "ir/layer_data.h"
#include "runtime/bench/measure.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "runtime/burin/runtime.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_cudnn.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/last_error.h"
#include "test/runtime/sample_package.h"
#include "test/scoped_variable.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::FakeCudnnState;
using burin_test::FakeDriver;
using Refuses = FakeCudnnState::Refuses;

namespace {

constexpr std::size_t kPlainLayout = 0, kInFp32 = 0, kInTf32 = 1;
constexpr ConvolutionAlgorithm kWinograd = ConvolutionAlgorithm::winograd;
constexpr auto kWinogradIndex = static_cast<std::size_t>(kWinograd);
const std::string kNowhere = "/nowhere/libcudnn.so.9";

FakeCudnnState& fresh_library() {
  void* library = ::dlopen(BURIN_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  FakeCudnnState& state = *reinterpret_cast<FakeCudnnState* (*)()>(::dlsym(library, "fake_cudnn_state"))();
  state = FakeCudnnState{};
  state.computes = true;
  return state;
}

LoadOptions options_for(LibraryUse use, const std::string& file = BURIN_FAKE_CUDNN) {
  return {.libraries = use, .cudnn = {file}};
}

// A layer with a residual, a bias and relu, whose weights are random.
ConvLayer some_layer(const Kernel& kernel) {
  ConvLayer layer{.name = kernel.op, .shape = kernel.layer->shape, .weights = {}, .bias = {}};
  layer.weights = random_tensor(layer.shape.weight_elements(), 3);
  if (layer.shape.epilogue.bias) layer.bias = random_tensor(layer.shape.out_channels, 4);
  return layer;
}

struct Sample {
  std::shared_ptr<Package> package;
  ConvLayer layer;
  const Kernel& kernel() const { return package->manifest.kernels.front(); }
};

// One kernel, "conv2", with a call beside the code of a template, and a program for 4 images.
Sample sample(const LibraryCall& call = {.algorithm = kWinograd}) {
  Sample made;
  made.package = burin_test::sample_package({}, [&](std::vector<Kernel>& kernels) {
    kernels.erase(kernels.begin(), kernels.end() - 1);
    Kernel& kernel = kernels.front();
    Epilogue& epilogue = kernel.layer->shape.epilogue;
    epilogue.bias = true;
    epilogue.function = function_of(Activation::relu);
    kernel.layer->data = "layers/conv2.bin";
    kernel.plan = print(LibraryPlan{.call = call, .provider = kernel.provider, .plan = kernel.plan});
    kernel.provider = kCudnnProvider;
    derive_form(kernel);
  });
  made.layer = some_layer(made.kernel());
  made.kernel();
  made.package->manifest.kernels.front().layer->nonzeros = made.layer.shape.weight_elements();
  made.package->files["layers/conv2.bin"] = encode_layer(made.layer);
  made.package->manifest.programs = {program_of(made.kernel(), 4)};
  return made;
}

// Buffers of a launch of so many images.
struct Tensors {
  std::vector<float> input, residual;
  DeviceBuffer x, z, y;
  Tensors(const Device& device, const ConvShape& shape, int batch)
      : input(random_tensor(shape.input_elements() * batch, 1)),
        residual(random_tensor(shape.output_elements() * batch, 2)),
        x(device, std::span<const float>(input)),
        z(device, std::span<const float>(residual)),
        y(device, residual.size() * sizeof(float)) {}
  LaunchIo io(int batch) const { return {.input = x.data(), .output = y.data(), .residual = z.data(), .batch = batch}; }
};

void check_output(const ConvLayer& layer, const Tensors& tensors, int batch) {
  const std::vector<double> expected = reference_convolution(layer, batch, tensors.input, tensors.residual);
  const std::vector<float> made = tensors.y.to_vector<float>();
  REQUIRE(made.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < made.size(); ++i) worst = std::max(worst, std::abs(made[i] - expected[i]));
  CHECK(worst < 1e-5);
}

// How often the whole network is a call, and what was noted.
struct Bound {
  std::string call;
  std::vector<std::string> notes;
  burin_test::FakeGraph graph;
};

Bound bind(FakeDriver& fake, const Sample& of, const LoadOptions& options, int batch = 4) {
  const Device device = Device::open(0);
  const Tensors tensors(device, of.layer.shape, batch);
  const LoadedNetwork network(LoadedPackage(device, of.package, "sample", options));
  const NetworkRun run =
      network.bind({.inputs = {tensors.x.data(), tensors.z.data()}, .outputs = {tensors.y.data()}, .batch = batch});
  run.launch(nullptr);
  if (!run.library_call(0).empty()) check_output(of.layer, tensors, batch);
  return {run.library_call(0), network.notes(), fake.graphs().back()};
}

}  // namespace

TEST_CASE("library_call: the sample is a sound package") { CHECK(verify(*sample().package).empty()); }

TEST_CASE("library_call: a step is a captured graph within the network's graph, and computes the layer") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  library.algorithms[kPlainLayout][kInFp32][kWinogradIndex].workspace_bytes = 1000;
  library.algorithms[kPlainLayout][kInFp32][kWinogradIndex].launches = 3;
  const Bound bound = bind(fake, sample(), options_for(LibraryUse::where_there));
  CHECK(bound.call == "cuDNN 9.19.0 WINOGRAD");
  CHECK(bound.notes.empty());
  REQUIRE(bound.graph.nodes.size() == 1);
  CHECK(bound.graph.nodes[0].captured == 3);
  CHECK(library.fused_runs == library.runs[kWinogradIndex]);
  CHECK(library.last_mode == static_cast<int>(kInFp32));
  CHECK(library.input_dims == std::array<int, 4>{4, 8, 14, 14});
  CHECK(!library.too_small_workspace);
  CHECK(library.live_objects == 0);
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: a launch by itself computes the layer, with scratch memory as the library wants it") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  library.algorithms[kPlainLayout][kInTf32][kWinogradIndex].workspace_bytes = 4096;
  const Sample of = sample({.algorithm = kWinograd, .factors = FactorType::tf32});
  for (const int batch : {1, 3}) {
    const Device device = Device::open(0);
    const LoadedPackage package(device, of.package, "sample", options_for(LibraryUse::required));
    const LoadedKernel kernel = package.kernel("conv2", batch);
    CHECK(kernel.library_call(batch) == "cuDNN 9.19.0 WINOGRAD");
    CHECK(kernel.workspace_size(batch).total() == 4096);
    const Workspace workspace(device, kernel.workspace_size(batch));
    const Tensors tensors(device, of.layer.shape, batch);
    const Stream stream(device);
    kernel.launch(stream, tensors.io(batch), workspace);
    check_output(of.layer, tensors, batch);
    CHECK(BURIN_THROWN(usage, kernel.launch(stream, tensors.io(batch))).has("needs a workspace with 4096 bytes"));
  }
  CHECK(library.last_mode == static_cast<int>(kInTf32));
  CHECK(!library.too_small_workspace);
  CHECK(fake.launches().empty());
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: a plain convolution is the call that does not fuse") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  Sample of = sample();
  Kernel& kernel = of.package->manifest.kernels.front();
  LibraryPlan plan = parse_library_plan(kernel.plan);
  TemplatePlan own = parse_template_plan(plan.plan);
  own.residual() = KernelTensor{.role = TensorRole::residual, .argument = 1};
  kernel.plan = print(LibraryPlan{plan.call, plan.provider, print(own)});
  kernel.layer->shape.epilogue = {};
  derive_form(kernel);
  of.layer.shape = kernel.layer->shape;
  of.layer.bias.clear();
  of.package->files["layers/conv2.bin"] = encode_layer(of.layer);
  of.package->manifest.programs = {program_of(kernel, 1)};
  const Device device = Device::open(0);
  const LoadedPackage package(device, of.package, "sample", options_for(LibraryUse::required));
  const Tensors tensors(device, of.layer.shape, 1);
  LaunchIo io = tensors.io(1);
  io.residual = nullptr;
  const Stream stream(device);
  package.kernel("conv2", 1).launch(stream, io);
  const std::vector<double> expected = reference_convolution(of.layer, 1, tensors.input, {});
  CHECK(std::abs(tensors.y.to_vector<float>().at(5) - expected.at(5)) < 1e-5);
  CHECK(library.fused_runs == 0);
}

TEST_CASE("library_call: burin's own code runs where the library is not there") {
  fresh_library();
  FakeDriver fake;
  const Bound bound = bind(fake, sample(), options_for(LibraryUse::where_there, kNowhere));
  CHECK(bound.call.empty());
  REQUIRE(bound.graph.nodes.size() == 1);
  CHECK(bound.graph.nodes[0].captured == 0);
  CHECK(bound.graph.nodes[0].function != nullptr);
  REQUIRE(bound.notes.size() == 1);
  CHECK_THAT(bound.notes[0], burin_test::Contains("run burin's own code in its place: no cuDNN: ") &&
                                 burin_test::Contains(kNowhere) && burin_test::Contains("BURIN_CUDNN"));
  CHECK(BURIN_THROWN(device, bind(fake, sample(), options_for(LibraryUse::required, kNowhere))).has("no cuDNN: "));
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: nothing is opened where no library is wanted") {
  FakeCudnnState& library = fresh_library();
  library.create_status = 1;
  FakeDriver fake;
  const Bound bound = bind(fake, sample(), options_for(LibraryUse::none));
  CHECK(bound.call.empty());
  CHECK(bound.notes.empty());
}

TEST_CASE("library_call: burin's own code runs where the library refuses, for each batch by itself") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  FakeCudnnState::Algorithm& algorithm = library.algorithms[kPlainLayout][kInFp32][kWinogradIndex];
  const auto note_of = [&](const LibraryCall& call) {
    const Bound bound = bind(fake, sample(call), options_for(LibraryUse::where_there));
    CHECK(bound.call.empty());
    CHECK(bound.graph.nodes.at(0).captured == 0);
    REQUIRE(bound.notes.size() == 1);
    CHECK_THAT(bound.notes[0], burin_test::Contains("layer conv2, batch 4: cuDNN 9.19.0 refuses WINOGRAD: ") &&
                                   burin_test::Contains("; burin's own code runs in its place"));
    CHECK(BURIN_THROWN(unsupported, bind(fake, sample(call), options_for(LibraryUse::required))).has("refuses"));
    return bound.notes[0];
  };
  const LibraryCall call{.algorithm = kWinograd};
  algorithm.refuses = Refuses::workspace_query;
  CHECK_THAT(note_of(call), burin_test::Contains("cudnnGetConvolutionForwardWorkspaceSize failed"));
  algorithm.refuses = Refuses::forward;
  CHECK_THAT(note_of(call), burin_test::Contains("cudnnConvolutionBiasActivationForward failed"));
  algorithm.refuses = Refuses::capture;
  CHECK_THAT(note_of(call), burin_test::Contains("cudnnConvolutionBiasActivationForward failed"));
  algorithm.refuses = Refuses::nothing;
  algorithm.workspace_bytes = 2000;
  CHECK_THAT(note_of({.algorithm = kWinograd, .workspace_limit = 1999}),
             burin_test::Contains("it wants 2000 bytes of scratch memory, and its plan allows 1999"));
  CHECK(library.live_objects == 0);
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: edges from and to a call are whole") {
  fresh_library();
  FakeDriver fake;
  const Sample of = sample();
  const Device device = Device::open(0);
  const LoadedPackage with(device, of.package, "sample", options_for(LibraryUse::required));
  const LoadedPackage without(device, of.package, "sample", options_for(LibraryUse::none));
  const Tensors tensors(device, of.layer.shape, 1);
  const Stream stream(device);
  const auto launch = [&](int i) {
    const LoadedPackage& package = i == 2 ? with : without;
    return package.kernel("conv2", 1).prepared(tensors.io(1), {});
  };
  measure_chain(device, stream, launch, {.launches_per_graph = 5, .samples = 1});
  const std::vector<burin_test::FakeEdge> edges = fake.graphs().back().edges;
  REQUIRE(edges.size() == 4);
  for (const burin_test::FakeEdge& edge : edges) CHECK(edge.programmatic == (edge.from != 2 && edge.to != 2));
}

TEST_CASE("library_call: each call of the driver may fail, and nothing is lost") {
  FakeCudnnState& library = fresh_library();
  const Sample of = sample();
  int calls = 0;
  {
    FakeDriver fake;
    bind(fake, of, options_for(LibraryUse::where_there));
    calls = fake.calls();
  }
  REQUIRE(calls > 50);
  int refused = 0, failed = 0;
  for (int call = 1; call <= calls; ++call) {
    FakeDriver fake;
    fake.fail_at = call;
    try {
      refused += bind(fake, of, options_for(LibraryUse::where_there)).call.empty() ? 1 : 0;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::device);
      ++failed;
    } catch (const std::exception&) {
      ++failed;
    }
    fake.fail_at = 0;
    INFO("call " << call << ", " << fake.failed_call());
    CHECK(fake.live().empty());
    CHECK(library.live_objects == 0);
  }
  CHECK(refused > 3);  // while the call was tried out
  CHECK(failed > 10);
}

TEST_CASE("library_call: the C API opens what BURIN_CUDNN names, and tells what it did instead") {
  fresh_library();
  const burin_test::ScratchFolder folder;
  const std::string path = folder / "sample.burin";
  write_package(*sample().package, path);
  for (const bool there : {true, false}) {
    const burin_test::ScopedVariable variable("BURIN_CUDNN", there ? BURIN_FAKE_CUDNN : kNowhere.c_str());
    FakeDriver fake;
    burin_device* device = nullptr;
    burin_package* package = nullptr;
    burin_kernel* kernel = nullptr;
    REQUIRE(burin_device_open(0, &device) == BURIN_OK);
    REQUIRE(burin_package_open(device, path.c_str(), &package) == BURIN_OK);
    CHECK(burin_package_note_count(package) == 0);
    REQUIRE(burin_kernel_find(package, "conv2", 4, &kernel) == BURIN_OK);
    CHECK(burin_package_note_count(package) == (there ? 0 : 1));
    const char* note = burin_package_note(package, 0);
    CHECK((note == nullptr) == there);
    if (note != nullptr) CHECK_THAT(note, burin_test::Contains("no cuDNN"));
    CHECK(burin_package_note(package, 1) == nullptr);
    CHECK(burin_package_note(package, -1) == nullptr);
    burin_network* network = nullptr;
    REQUIRE(burin_network_open(device, path.c_str(), &network) == BURIN_OK);
    CHECK(burin_network_note_count(network) == 0);
    CHECK(burin_network_note(network, 0) == nullptr);
    burin_network_release(network);
    burin_kernel_release(kernel);
    burin_package_release(package);
    burin_device_release(device);
    CHECK(fake.live().empty());
  }
  CHECK(burin_package_note_count(nullptr) == 0);
  CHECK(burin_package_note(nullptr, 0) == nullptr);
  CHECK(burin_network_note(nullptr, 0) == nullptr);
}
