// Kernels with a library's call, beside the fake cuDNN: the call, and burin's own code where there is none.
#include "ir/library_call.h"

#include <dlfcn.h>

#include "ir/error.h"
#include "runtime/bench/measure.h"
#include "runtime/burin/runtime.h"
#include "test/catch.h"
#include "test/runtime/called_sample.h"
#include "test/runtime/fake_cudnn.h"
#include "test/runtime/last_error.h"
#include "test/scoped_variable.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::bind_called;
using burin_test::BoundCall;
using burin_test::called_sample;
using burin_test::CalledSample;
using burin_test::CalledTensors;
using burin_test::check_output;
using burin_test::FakeCudnnState;
using burin_test::FakeDriver;
using burin_test::in_format;
using burin_test::without_residual;
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

CalledSample sample(const LibraryCall& call = {.algorithm = kWinograd}) { return called_sample(call); }

}  // namespace

TEST_CASE("library_call: the sample is a sound package") { CHECK(verify(*sample().package).empty()); }

TEST_CASE("library_call: a step is a captured graph within the network's graph, and computes the layer") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  library.algorithms[kPlainLayout][kInFp32][kWinogradIndex].workspace_bytes = 1000;
  library.algorithms[kPlainLayout][kInFp32][kWinogradIndex].launches = 3;
  const BoundCall bound = bind_called(fake, sample(), options_for(LibraryUse::where_there));
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
  const CalledSample of = sample({.algorithm = kWinograd, .factors = FactorType::tf32});
  for (const int batch : {1, 3}) {
    const Device device = Device::open(0);
    const LoadedPackage package(device, of.package, "sample", options_for(LibraryUse::required));
    const LoadedKernel kernel = package.kernel("conv2", batch);
    CHECK(kernel.library_call(batch) == "cuDNN 9.19.0 WINOGRAD");
    CHECK(kernel.workspace_size(batch).total() == 4096);
    const Workspace workspace(device, kernel.workspace_size(batch));
    const CalledTensors tensors(device, of.kernel(), batch);
    const Stream stream(device);
    kernel.launch(stream, tensors.io(batch), workspace);
    check_output(of, tensors, batch);
    CHECK(BURIN_THROWN(usage, kernel.launch(stream, tensors.io(batch))).has("needs a workspace with 4096 bytes"));
  }
  CHECK(library.last_mode == static_cast<int>(kInTf32));
  CHECK(!library.too_small_workspace);
  CHECK(fake.launches().empty());
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: the first launch may be one that is captured") {
  fresh_library();
  FakeDriver fake;
  const CalledSample of = sample();
  const Device device = Device::open(0);
  const LoadedPackage package(device, of.package, "sample", options_for(LibraryUse::required));
  const CalledTensors tensors(device, of.kernel(), 1);
  const Stream stream(device);
  const LoadedKernel kernel = package.kernel("conv2", 1);
  const Graph graph = Graph::capture(stream, [&](CUstream_st* target) { kernel.launch(target, tensors.io(1)); });
  graph.launch(stream);
  check_output(of, tensors, 1);
  // Whoever allocates in the midst of a capture breaks it.
  CHECK(BURIN_THROWN(device, Graph::capture(stream, [&](CUstream_st*) { DeviceBuffer(device, 4); }))
            .has("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"));
}

TEST_CASE("library_call: a plain convolution is the call that does not fuse") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  const CalledSample of = called_sample({.algorithm = kWinograd}, [](Kernel& kernel, TemplatePlan& own) {
    without_residual(kernel, own);
    kernel.layer->shape.epilogue = {};
  });
  const Device device = Device::open(0);
  const LoadedPackage package(device, of.package, "sample", options_for(LibraryUse::required));
  const CalledTensors tensors(device, of.kernel(), 1);
  const Stream stream(device);
  package.kernel("conv2", 1).launch(stream, tensors.io(1));
  check_output(of, tensors, 1);
  CHECK(library.fused_runs == 0);
}

TEST_CASE("library_call: engines of the graph API, the first that can be had and those behind it") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  library.engines = {{.refuses = Refuses::workspace_query}, {}, {.launches = 2, .workspace_bytes = 64}};
  const auto bound = [&](ConvolutionAlgorithm algorithm, const burin_test::EditCalled& edit, LibraryUse use) {
    return bind_called(fake, called_sample({.algorithm = algorithm, .factors = FactorType::tf32}, edit),
                       options_for(use));
  };
  const auto none = [](Kernel&, TemplatePlan&) {};
  const BoundCall first = bound(ConvolutionAlgorithm::engine_0, none, LibraryUse::required);
  CHECK(first.call == "cuDNN 9.19.0 ENGINE_0");
  CHECK(library.engine_runs.back() == 1);
  CHECK(first.graph.nodes.at(0).captured == 1);
  const BoundCall second = bound(ConvolutionAlgorithm::engine_1, without_residual, LibraryUse::required);
  CHECK(second.call == "cuDNN 9.19.0 ENGINE_1");
  CHECK(library.engine_runs.back() == 2);
  CHECK(second.graph.nodes.at(0).captured == 2);
  // What is fused: nothing, and a bias alone.
  for (const bool bias : {false, true}) {
    const auto edit = [&](Kernel& kernel, TemplatePlan& own) {
      without_residual(kernel, own);
      kernel.layer->shape.epilogue = {.bias = bias};
    };
    CHECK(bound(ConvolutionAlgorithm::engine_0, edit, LibraryUse::required).call == "cuDNN 9.19.0 ENGINE_0");
  }
  const BoundCall third = bound(ConvolutionAlgorithm::engine_2, none, LibraryUse::where_there);
  CHECK(third.call.empty());
  REQUIRE(third.notes.size() == 1);
  CHECK_THAT(third.notes[0], burin_test::Contains("refuses ENGINE_2: its graph API has 2 engines"));
  // More are proposed than are looked at.
  library.engines.assign(20, {.refuses = Refuses::workspace_query});
  const BoundCall refused = bound(ConvolutionAlgorithm::engine_0, none, LibraryUse::where_there);
  REQUIRE(refused.notes.size() == 1);
  CHECK_THAT(refused.notes[0], burin_test::Contains("refuses ENGINE_0: its graph API has 0 engines"));
  CHECK(!library.too_small_workspace);
  CHECK(library.live_objects == 0);
}

TEST_CASE("library_call: tensors whose channels are last, in halves and in floats, filled up or not") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  struct Case {
    TensorFormat format;
    FactorType factors;
    int mode;
  };
  const Case cases[] = {{{ElementType::f16, TensorLayout::nhwc8}, FactorType::f16, 2},
                        {{ElementType::bf16, TensorLayout::nhwc8}, FactorType::bf16, 3},
                        {{ElementType::f32, TensorLayout::nhwc4}, FactorType::tf32, 1}};
  for (const Case& each : cases) {
    for (const int channels : {8, 3}) {
      INFO(to_string(each.format) << ", " << channels << " channels");
      const auto edit = [&](Kernel& kernel, TemplatePlan& own) {
        kernel.layer->shape.in_channels = own.input().channels = channels;
        kernel.layer->shape.out_channels = own.output().channels = 2 * channels;
        if (own.residual().exists()) own.residual().channels = 2 * channels;
        in_format(each.format)(kernel, own);
      };
      const CalledSample of = called_sample({.factors = each.factors}, edit);
      const BoundCall bound = bind_called(fake, of, options_for(LibraryUse::required));
      CHECK(bound.call == "cuDNN 9.19.0 IMPLICIT_PRECOMP_GEMM");
      CHECK(library.last_mode == each.mode);
      const int filled = channels == 8 ? 8 : each.format.element == ElementType::f32 ? 4 : 8;
      CHECK(library.input_dims == std::array<int, 4>{4, filled, 14, 14});
      CHECK(library.filter_dims[0] == (channels == 8 ? 16 : 8));
      const CalledSample by_engine =
          called_sample({.algorithm = ConvolutionAlgorithm::engine_0, .factors = each.factors}, edit);
      CHECK(bind_called(fake, by_engine, options_for(LibraryUse::required)).call == "cuDNN 9.19.0 ENGINE_0");
    }
  }
  CHECK(library.live_objects == 0);
}

TEST_CASE("library_call: burin's own code runs where the library is not there") {
  fresh_library();
  FakeDriver fake;
  const BoundCall bound = bind_called(fake, sample(), options_for(LibraryUse::where_there, kNowhere));
  CHECK(bound.call.empty());
  REQUIRE(bound.graph.nodes.size() == 1);
  CHECK(bound.graph.nodes[0].captured == 0);
  CHECK(bound.graph.nodes[0].function != nullptr);
  REQUIRE(bound.notes.size() == 1);
  CHECK_THAT(bound.notes[0], burin_test::Contains("run burin's own code in its place: no cuDNN: ") &&
                                 burin_test::Contains(kNowhere) && burin_test::Contains("BURIN_CUDNN"));
  CHECK(
      BURIN_THROWN(device, bind_called(fake, sample(), options_for(LibraryUse::required, kNowhere))).has("no cuDNN: "));
  CHECK(fake.live().empty());
}

TEST_CASE("library_call: nothing is opened where no library is wanted") {
  FakeCudnnState& library = fresh_library();
  library.create_status = 1;
  FakeDriver fake;
  const BoundCall bound = bind_called(fake, sample(), options_for(LibraryUse::none));
  CHECK(bound.call.empty());
  CHECK(bound.notes.empty());
}

TEST_CASE("library_call: burin's own code runs where the library refuses, for each batch by itself") {
  FakeCudnnState& library = fresh_library();
  FakeDriver fake;
  FakeCudnnState::Algorithm& algorithm = library.algorithms[kPlainLayout][kInFp32][kWinogradIndex];
  const auto note_of = [&](const LibraryCall& call) {
    const BoundCall bound = bind_called(fake, sample(call), options_for(LibraryUse::where_there));
    CHECK(bound.call.empty());
    CHECK(bound.graph.nodes.at(0).captured == 0);
    REQUIRE(bound.notes.size() == 1);
    CHECK_THAT(bound.notes[0], burin_test::Contains("layer conv2, batch 4: cuDNN 9.19.0 refuses WINOGRAD: ") &&
                                   burin_test::Contains("; burin's own code runs in its place"));
    CHECK(BURIN_THROWN(unsupported, bind_called(fake, sample(call), options_for(LibraryUse::required))).has("refuses"));
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
  const CalledSample of = sample();
  const Device device = Device::open(0);
  const LoadedPackage with(device, of.package, "sample", options_for(LibraryUse::required));
  const LoadedPackage without(device, of.package, "sample", options_for(LibraryUse::none));
  const CalledTensors tensors(device, of.kernel(), 1);
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
  const CalledSample of = sample();
  int calls = 0;
  {
    FakeDriver fake;
    bind_called(fake, of, options_for(LibraryUse::where_there));
    calls = fake.calls();
  }
  REQUIRE(calls > 50);
  int refused = 0, failed = 0;
  for (int call = 1; call <= calls; ++call) {
    FakeDriver fake;
    fake.fail_at = call;
    try {
      refused += bind_called(fake, of, options_for(LibraryUse::where_there)).call.empty() ? 1 : 0;
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
