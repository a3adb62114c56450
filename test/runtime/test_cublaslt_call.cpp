// Kernels with a call of cuBLASLt, beside the fake one: what the library is told, and burin's own code where there is
// none. What is the same whichever library is called: test_library_call.cpp.
#include <dlfcn.h>

#include "ir/error.h"
#include "runtime/library/cublaslt_product.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/called_sample.h"
#include "test/runtime/fake_cublaslt.h"
#include "test/scoped_variable.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::bind_called;
using burin_test::BoundCall;
using burin_test::called_sample;
using burin_test::CalledSample;
using burin_test::CalledTensors;
using burin_test::check_output;
using burin_test::Contains;
using burin_test::EditCalled;
using burin_test::FakeCublasltState;
using burin_test::FakeDriver;
using burin_test::without_residual;
using Added = CublasltProblem::Added;
using LtRefuses = FakeCublasltState::Refuses;

namespace {

constexpr int kComputeFp32 = 68, kComputeTf32 = 77;  // cublasComputeType_t
constexpr std::uint32_t kNoEnd = 1, kReluEnd = 2, kBiasEnd = 4, kReluBiasEnd = 6;
const std::string kNoCublaslt = "/nowhere/libcublasLt.so.13";

FakeCublasltState& fresh_cublaslt() {
  void* library = ::dlopen(BURIN_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  FakeCublasltState& state = *reinterpret_cast<FakeCublasltState* (*)()>(::dlsym(library, "fake_cublaslt_state"))();
  state = FakeCublasltState{};
  return state;
}

LoadOptions with_cublaslt(LibraryUse use, const std::string& file = BURIN_FAKE_CUBLASLT) {
  return {.libraries = use, .cublaslt = {file}};
}

// A convolution 8x14x14 -> 16x14x14 with a 1x1 filter.
EditCalled pointwise(const Epilogue& epilogue) {
  return [epilogue](Kernel& kernel, TemplatePlan& own) {
    ConvShape& shape = kernel.layer->shape;
    shape.kernel_h = shape.kernel_w = 1;
    shape.pad = {};
    if (!epilogue.residual) without_residual(kernel, own);
    shape.epilogue = epilogue;
  };
}

// The same of images of one pixel.
EditCalled of_one_pixel(const Epilogue& epilogue) {
  return [epilogue](Kernel& kernel, TemplatePlan& own) {
    pointwise(epilogue)(kernel, own);
    kernel.layer->shape.in_h = kernel.layer->shape.in_w = 1;
    own.input() = burin_test::image_tensor(TensorRole::input, 8, 1, 1);
    own.output() = burin_test::image_tensor(TensorRole::output, 16, 1, 1);
    if (epilogue.residual) own.residual() = burin_test::image_tensor(TensorRole::residual, 16, 1, 1);
  };
}

// A fully connected layer of 24 features to 10.
EditCalled fully_connected(bool bias, bool relu) {
  return [bias, relu](Kernel& kernel, TemplatePlan& own) {
    kernel.layer.reset();
    kernel.kind = "linear";
    kernel.linear = WeightMatrix{10, 24, 0};
    kernel.called = CalledLinear{bias, relu, {}};
    own.template_name = "linear";
    own.input() = burin_test::flat_tensor(TensorRole::input, 24);
    own.output() = burin_test::flat_tensor(TensorRole::output, 10);
    own.residual() = KernelTensor{.role = TensorRole::residual, .argument = 1};
  };
}

const std::optional<Elementwise> kRelu = function_of(Activation::relu);
const LibraryCall kFirst{.algorithm = ProductAlgorithm::heuristic_0};

CalledSample some_linear(const LibraryCall& call = kFirst) { return called_sample(call, fully_connected(true, true)); }

void check_told(const FakeCublasltState& library) {
  CHECK_FALSE(library.bad_attribute);
  CHECK_FALSE(library.misfit);
  CHECK_FALSE(library.misaligned);
  CHECK_FALSE(library.too_small_workspace);
  CHECK(library.live_objects == 0);
}

}  // namespace

TEST_CASE("cublaslt_call: the samples are sound packages") {
  CHECK(verify(*some_linear().package) == std::vector<std::string>{});
  CHECK(verify(*called_sample(kFirst, pointwise({.bias = true, .function = kRelu})).package) ==
        std::vector<std::string>{});
  CHECK(some_linear().kernel().provider == "linear_cublas");
  CHECK(called_sample(kFirst, pointwise({})).kernel().provider == "conv_cublas");
}

TEST_CASE("cublaslt_call: each layer that can be called is computed, in a graph and in one product") {
  struct Case {
    std::string name;
    EditCalled edit;
    std::uint32_t epilogue;
    bool transposed;
    float beta;
  };
  const Case cases[] = {
      {"pointwise", pointwise({}), kNoEnd, false, 0},
      {"pointwise relu", pointwise({.function = kRelu}), kReluEnd, false, 0},
      {"pointwise bias", pointwise({.bias = true}), kNoEnd, false, 1},
      {"pointwise bias relu", pointwise({.bias = true, .function = kRelu}), kReluEnd, false, 1},
      {"pointwise residual relu", pointwise({.residual = true, .function = kRelu}), kReluEnd, false, 1},
      {"one pixel, all", of_one_pixel({.bias = true, .residual = true, .function = kRelu}), kReluBiasEnd, true, 1},
      {"one pixel, plain", of_one_pixel({}), kNoEnd, true, 0},
      {"linear", fully_connected(false, false), kNoEnd, true, 0},
      {"linear bias", fully_connected(true, false), kBiasEnd, true, 0},
      {"linear bias relu", fully_connected(true, true), kReluBiasEnd, true, 0},
  };
  for (const Case& one : cases) {
    for (const int batch : {1, 4}) {
      INFO(one.name << ", batch " << batch);
      FakeCublasltState& library = fresh_cublaslt();
      library.algorithms[0] = {.launches = 2, .workspace_bytes = 512};
      FakeDriver fake;
      const BoundCall bound =
          bind_called(fake, called_sample(kFirst, one.edit), with_cublaslt(LibraryUse::required), batch);
      CHECK(bound.call == "cuBLASLt 13.0.2 HEURISTIC_0");
      CHECK(bound.notes.empty());
      REQUIRE(bound.graph.nodes.size() == 1);
      CHECK(bound.graph.nodes[0].captured == 2);
      CHECK(library.compute == kComputeFp32);
      CHECK(library.epilogue == one.epilogue);
      CHECK(library.transposed == one.transposed);
      CHECK(library.beta == one.beta);
      CHECK(library.d.products == (one.transposed ? 1 : batch));
      CHECK(library.most_workspace == std::uint64_t{256} << 20);
      check_told(library);
      CHECK(fake.live().empty());
    }
  }
}

TEST_CASE("cublaslt_call: of images whose channels are last all pixels are one product, with bias and residual") {
  struct Case {
    TensorFormat format;
    FactorType factors;
    int type, compute;
  };
  const Case cases[] = {{{ElementType::f32, TensorLayout::nhwc4}, FactorType::f32, 0, kComputeFp32},
                        {{ElementType::f32, TensorLayout::nhwc4}, FactorType::tf32, 0, kComputeTf32},
                        {{ElementType::f16, TensorLayout::nhwc8}, FactorType::f16, 2, kComputeFp32},
                        {{ElementType::bf16, TensorLayout::nhwc8}, FactorType::bf16, 14, kComputeFp32}};
  for (const Case& one : cases) {
    for (const bool are_filled : {false, true}) {
      for (const Epilogue& epilogue : {Epilogue{.bias = true, .residual = true, .function = kRelu}, Epilogue{},
                                       Epilogue{.residual = true}, Epilogue{.bias = true}}) {
        INFO(to_string(one.format) << ", filled " << are_filled << ", bias " << epilogue.bias << ", residual "
                                   << epilogue.residual);
        FakeCublasltState& library = fresh_cublaslt();
        FakeDriver fake;
        LibraryCall call = kFirst;
        call.factors = one.factors;
        const EditCalled edit = [&](Kernel& kernel, TemplatePlan& own) {
          pointwise(epilogue)(kernel, own);
          if (are_filled) {  // 5 input and 11 output channels lie in whole places
            kernel.layer->shape.in_channels = 5;
            kernel.layer->shape.out_channels = 11;
            own.input() = burin_test::image_tensor(TensorRole::input, 5, 14, 14);
            own.output() = burin_test::image_tensor(TensorRole::output, 11, 14, 14);
            if (epilogue.residual) own.residual() = burin_test::image_tensor(TensorRole::residual, 11, 14, 14);
          }
          burin_test::in_format(one.format)(kernel, own);
        };
        const CalledSample of = called_sample(call, edit);
        CHECK(verify(*of.package) == std::vector<std::string>{});
        const BoundCall bound = bind_called(fake, of, with_cublaslt(LibraryUse::required));
        CHECK(bound.call == "cuBLASLt 13.0.2 HEURISTIC_0");
        CHECK(library.compute == one.compute);
        CHECK(library.transposed);
        CHECK(library.d.type == one.type);
        CHECK(library.d.products == 1);
        CHECK(library.d.cols == 4U * 14 * 14);
        CHECK(library.beta == (epilogue.residual ? 1 : 0));
        CHECK(((library.epilogue & kBiasEnd) != 0) == epilogue.bias);
        check_told(library);
        CHECK(fake.live().empty());
      }
    }
  }
}

TEST_CASE("cublaslt_call: matrices of images that are slices of larger tensors") {
  ConvShape shape;
  shape.in_channels = 3;
  shape.out_channels = 5;
  shape.in_h = 2;
  shape.in_w = 7;
  shape.epilogue.residual = true;
  const CublasltProblem images = product_of(shape, 4, {.input = 100, .residual = 200, .output = 300});
  CHECK(images.products == 4);
  CHECK_FALSE(images.a_is_weights);
  CHECK(images.a == CublasltMatrix{14, 3, 14, 100});
  CHECK(images.b == CublasltMatrix{3, 5, 3, 0});
  CHECK(images.c == CublasltMatrix{14, 5, 14, 200});
  CHECK(images.d == CublasltMatrix{14, 5, 14, 300});
  CHECK(images.added == Added::residual);

  shape.epilogue = {.bias = true};
  CHECK(product_of(shape, 4, {100, 0, 300}).added == Added::bias);
  CHECK(product_of(shape, 4, {100, 0, 300}).c == CublasltMatrix{14, 5, 14, 0});

  const CublasltProblem features =
      product_of(fully_connected_shape(3, 5, true, kRelu), 4, {.input = 100, .residual = 0, .output = 300});
  CHECK(features.products == 1);
  CHECK((features.a_is_weights && features.adds_bias && features.relu));
  CHECK(features.a == CublasltMatrix{3, 5, 3, 0});
  CHECK(features.b == CublasltMatrix{3, 4, 100, 0});
  CHECK(features.d == CublasltMatrix{5, 4, 300, 0});
  CHECK(features.added == Added::nothing);
}

TEST_CASE("cublaslt_call: a launch by itself is the proposal that the plan names, and rounds as it says") {
  FakeCublasltState& library = fresh_cublaslt();
  FakeDriver fake;
  library.algorithms[2].workspace_bytes = 4096;
  const CalledSample of =
      some_linear({.algorithm = ProductAlgorithm::heuristic_2, .factors = FactorType::tf32, .workspace_limit = 5000});
  for (const int batch : {1, 3}) {
    const Device device = Device::open(0);
    const LoadedPackage package(device, of.package, "sample", with_cublaslt(LibraryUse::required));
    const LoadedKernel kernel = package.kernel_by_symbol(of.kernel().symbol);
    CHECK(kernel.library_call(batch) == "cuBLASLt 13.0.2 HEURISTIC_2");
    CHECK(kernel.workspace_size(batch).total() == 4096);
    const Workspace workspace(device, kernel.workspace_size(batch));
    const CalledTensors tensors(device, of.kernel(), batch);
    const Stream stream(device);
    kernel.launch(stream, tensors.io(batch), workspace);
    check_output(of, tensors, batch);
    CHECK(BURIN_THROWN(usage, kernel.launch(stream, tensors.io(batch))).has("needs a workspace with 4096 bytes"));
  }
  CHECK(library.compute == kComputeTf32);
  CHECK(library.runs[2] > 0);
  CHECK(library.runs[0] + library.runs[1] + library.runs[3] == 0);
  CHECK(library.most_workspace == 5000);
  check_told(library);
  CHECK(fake.launches().empty());
  CHECK(fake.live().empty());
}

TEST_CASE("cublaslt_call: proposals are for tensors that begin where the kernel's do") {
  const std::uint32_t own = 256;  // of memory that the runtime asks the driver for
  const auto asked = [&](const EditCalled& edit, int alignment) {
    FakeCublasltState& library = fresh_cublaslt();
    FakeDriver fake;
    LibraryCall call = kFirst;
    call.alignment = alignment;
    const CalledSample of = called_sample(call, edit);
    CHECK(of.kernel().form.input().alignment == alignment);
    CHECK(of.kernel().form.output().alignment == alignment);
    bind_called(fake, of, with_cublaslt(LibraryUse::required));
    check_told(library);
    return library.alignments;
  };
  using Alignments = std::array<std::uint32_t, 4>;
  CHECK(asked(fully_connected(true, true), 4) == Alignments{own, 4, 4, 4});
  CHECK(asked(fully_connected(true, true), 8) == Alignments{own, 8, 8, 8});
  CHECK(asked(pointwise({.bias = true}), 16) == Alignments{16, own, own, 16});
  CHECK(asked(pointwise({.residual = true}), 16) == Alignments{16, own, 16, 16});
}

TEST_CASE("cublaslt_call: burin's own code runs where the library is not there") {
  fresh_cublaslt();
  FakeDriver fake;
  const BoundCall bound = bind_called(fake, some_linear(), with_cublaslt(LibraryUse::where_there, kNoCublaslt));
  CHECK(bound.call.empty());
  REQUIRE(bound.graph.nodes.size() == 1);
  CHECK(bound.graph.nodes[0].captured == 0);
  CHECK(bound.graph.nodes[0].function != nullptr);
  REQUIRE(bound.notes.size() == 1);
  CHECK_THAT(bound.notes[0], Contains("kernels that call cuBLASLt run burin's own code in its place: no cuBLASLt: ") &&
                                 Contains(kNoCublaslt) && Contains("BURIN_CUBLASLT"));
  CHECK(BURIN_THROWN(device, bind_called(fake, some_linear(), with_cublaslt(LibraryUse::required, kNoCublaslt)))
            .has("no cuBLASLt: "));
  CHECK(fake.live().empty());
}

TEST_CASE("cublaslt_call: a library that lacks a function, or does not start, is none") {
  FakeCublasltState& library = fresh_cublaslt();
  FakeDriver fake;
  const auto thrown = [&](const std::string& file) {
    return BURIN_THROWN(device, bind_called(fake, some_linear(), with_cublaslt(LibraryUse::required, file)));
  };
  CHECK(thrown(BURIN_INCOMPLETE_CUBLASLT).has("lacks cublasLtGetStatusName, cublasLtCreate"));
  library.create_status = 1;
  CHECK(thrown(BURIN_FAKE_CUBLASLT).has("cublasLtCreate failed"));
  CHECK(fake.live().empty());
}

TEST_CASE("cublaslt_call: burin's own code runs where the library refuses") {
  FakeCublasltState& library = fresh_cublaslt();
  FakeDriver fake;
  const auto note_of = [&](const LibraryCall& call) {
    const BoundCall bound = bind_called(fake, some_linear(call), with_cublaslt(LibraryUse::where_there));
    CHECK(bound.call.empty());
    CHECK(bound.graph.nodes.at(0).captured == 0);
    REQUIRE(bound.notes.size() == 1);
    CHECK_THAT(bound.notes[0], Contains("operator conv2, batch 4: cuBLASLt 13.0.2 refuses HEURISTIC_0: ") &&
                                   Contains("; burin's own code runs in its place"));
    CHECK(BURIN_THROWN(unsupported, bind_called(fake, some_linear(call), with_cublaslt(LibraryUse::required)))
              .has("refuses"));
    return bound.notes[0];
  };
  library.refuses = LtRefuses::proposals;
  CHECK_THAT(note_of(kFirst), Contains("cublasLtMatmulAlgoGetHeuristic failed: CUBLAS_STATUS_NOT_SUPPORTED (15)"));
  library.refuses = LtRefuses::proposal;
  CHECK_THAT(note_of(kFirst), Contains("of this proposal"));
  library.refuses = LtRefuses::product;
  CHECK_THAT(note_of(kFirst), Contains("cublasLtMatmul failed: CUBLAS_STATUS_NOT_SUPPORTED (15)"));
  library.refuses = LtRefuses::capture;
  CHECK_THAT(note_of(kFirst), Contains("cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED (13)"));
  library.refuses = LtRefuses::nothing;
  library.proposed = 0;
  CHECK_THAT(note_of(kFirst), Contains("cublasLtMatmulAlgoGetHeuristic proposes 0 algorithms"));
  // What wants more scratch memory than the plan allows is not proposed.
  library.proposed = 1;
  library.algorithms[0].workspace_bytes = 2000;
  LibraryCall call = kFirst;
  call.workspace_limit = 1999;
  CHECK_THAT(note_of(call), Contains("proposes 0 algorithms"));
  CHECK(library.live_objects == 0);
  CHECK(fake.live().empty());
}

TEST_CASE("cublaslt_call: each call of the driver may fail, and nothing is lost") {
  FakeCublasltState& library = fresh_cublaslt();
  const CalledSample of = called_sample(kFirst, pointwise({.bias = true, .function = kRelu}));
  int calls = 0;
  {
    FakeDriver fake;
    bind_called(fake, of, with_cublaslt(LibraryUse::where_there));
    calls = fake.calls();
  }
  REQUIRE(calls > 50);
  int refused = 0, failed = 0;
  for (int call = 1; call <= calls; ++call) {
    FakeDriver fake;
    fake.fail_at = call;
    try {
      refused += bind_called(fake, of, with_cublaslt(LibraryUse::where_there)).call.empty() ? 1 : 0;
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

TEST_CASE("cublaslt_call: what BURIN_CUBLASLT names is opened, and nothing else") {
  fresh_cublaslt();
  for (const bool there : {true, false}) {
    const burin_test::ScopedVariable variable("BURIN_CUBLASLT", there ? BURIN_FAKE_CUBLASLT : kNoCublaslt.c_str());
    FakeDriver fake;
    const BoundCall bound = bind_called(fake, some_linear(), {});
    CHECK(bound.call.empty() == !there);
    CHECK(bound.notes.size() == (there ? 0U : 1U));
  }
}

TEST_CASE("cublaslt_call: versions as people write them") {
  CHECK(cublaslt_version_text(130002) == "13.0.2");
  CHECK(cublaslt_version_text(120604) == "12.6.4");
}
