#include "ir/library_call.h"

#include "ir/derive_form.h"
#include "ir/kernel.h"
#include "ir/template_plan.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::Contains;
using burin_test::error_of;

namespace {

ConvShape called_shape() {
  ConvShape shape;
  shape.in_channels = 4;
  shape.out_channels = 6;
  shape.kernel_h = shape.kernel_w = 3;
  shape.pad = {1, 1, 1, 1};
  shape.in_h = shape.in_w = 8;
  shape.epilogue = {.bias = true, .function = function_of(Activation::relu)};
  return shape;
}

KernelTensor call_images(TensorRole role, int channels) {
  KernelTensor tensor{.role = role, .channels = channels, .rows = 8, .cols = 8};
  tensor.run_words = tensor.image_words = std::int64_t{channels} * 64;
  return tensor;
}

TemplatePlan plain_plan() {
  TemplatePlan plan;
  plan.template_name = "conv_dense";
  plan.input() = call_images(TensorRole::input, 4);
  plan.output() = call_images(TensorRole::output, 6);
  return plan;
}

LibraryPlan plan_with_call() {
  return {.call = {.algorithm = ConvolutionAlgorithm::fft_tiling, .factors = FactorType::tf32, .workspace_limit = 4096},
          .provider = "conv_dense",
          .plan = print(plain_plan())};
}

Kernel kernel_with_call(const LibraryPlan& plan = plan_with_call()) {
  Kernel kernel;
  kernel.op = "conv1";
  kernel.provider = kCudnnProvider;
  kernel.layer.emplace().shape = called_shape();
  kernel.plan = print(plan);
  return kernel;
}

std::string call_fault_of(Kernel kernel) {
  return error_of([&] { derive_form(kernel); });
}

std::string fault_of_call(const LibraryCall& call) {
  LibraryPlan plan = plan_with_call();
  plan.call = call;
  return call_fault_of(kernel_with_call(plan));
}

// A 1x1 convolution 4x8x8 -> 6x8x8 with a call of cuBLASLt.
Kernel kernel_with_product(const std::function<void(Kernel&, LibraryPlan&, TemplatePlan&)>& edit = {}) {
  Kernel kernel = kernel_with_call();
  ConvShape& shape = kernel.layer->shape;
  shape.kernel_h = shape.kernel_w = 1;
  shape.pad = {};
  kernel.provider = kConvCublasProvider;
  LibraryPlan plan{.call = {.algorithm = ProductAlgorithm::heuristic_1, .workspace_limit = 4096, .alignment = 8},
                   .provider = "conv_dense",
                   .plan = {}};
  TemplatePlan own = plain_plan();
  if (edit) edit(kernel, plan, own);
  plan.plan = print(own);
  kernel.plan = print(plan);
  return kernel;
}

// A fully connected layer of 12 features to 5.
Kernel linear_with_product(const std::function<void(Kernel&, LibraryPlan&, TemplatePlan&)>& edit = {}) {
  return kernel_with_product([&](Kernel& kernel, LibraryPlan& plan, TemplatePlan& own) {
    kernel.provider = kLinearCublasProvider;
    kernel.layer.reset();
    kernel.linear = WeightMatrix{5, 12, 30};
    kernel.called = CalledLinear{true, true, "layers/fc.bin"};
    plan.provider = own.template_name = "linear";
    for (KernelTensor* tensor : {&own.input(), &own.output()}) {
      tensor->channels = tensor->rows = tensor->cols = 0;
      tensor->run_words = tensor->image_words = tensor == &own.input() ? 12 : 5;
    }
    if (edit) edit(kernel, plan, own);
  });
}

std::string fault_of_called_shape(const std::function<void(ConvShape&)>& edit) {
  Kernel kernel = kernel_with_call();
  edit(kernel.layer->shape);
  return call_fault_of(kernel);
}

std::string fault_of_own(const std::function<void(TemplatePlan&)>& edit) {
  TemplatePlan own = plain_plan();
  edit(own);
  LibraryPlan plan = plan_with_call();
  plan.plan = print(own);
  return call_fault_of(kernel_with_call(plan));
}

}  // namespace

TEST_CASE("library_call: a plan is what its text says, and the own plan stays as it is") {
  const LibraryPlan plan = plan_with_call();
  CHECK(parse_library_plan(print(plan)) == plan);
  CHECK_THAT(print(plan), Contains("algorithm: fft_tiling\nfactors: tf32\nworkspace_limit: 4096  # bytes\n"
                                   "own: conv_dense\n# conv_dense"));
  CHECK(is_library_plan(print(plan)));
  CHECK(!is_library_plan(plan.plan));
  CHECK(!is_library_plan(""));
}

TEST_CASE("library_call: a kernel has the form of its own code, and the call") {
  Kernel kernel = kernel_with_call();
  derive_form(kernel);
  CHECK(kernel.call == plan_with_call().call);
  CHECK(kernel.form == plain_plan().form);
  CHECK(kernel.own_provider() == "conv_dense");
  CHECK(kernel.own_plan() == print(plain_plan()));
  CHECK(kernel.plan_short == "cudnn fft_tiling tf32; own: conv_dense, 1 block of 256 for an image");
  // Who edits code wants to see it run.
  kernel.edited = true;
  derive_form(kernel);
  CHECK(!kernel.call);
  CHECK(kernel.form == plain_plan().form);
}

TEST_CASE("library_call: what the text of a plan cannot say") {
  const std::string text = print(plan_with_call());
  const auto with = [&](const std::string& line, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(line), line.size(), other);
    return error_of([&] { (void)parse_library_plan(changed); });
  };
  CHECK_THAT(with("own: conv_dense", "mine: conv_dense"), Contains("the line 'own: PROVIDER' is missing"));
  CHECK_THAT(with("library: cudnn", "library: /tmp/libevil.so"), Contains("is not a library; known are cudnn"));
  CHECK_THAT(with("algorithm: fft_tiling", "algorithm: 12"), Contains("is not an algorithm"));
  CHECK_THAT(with("factors: tf32", "path: x"), Contains("factors"));
  CHECK_THAT(with("workspace_limit: 4096", "workspace_limit: many"), Contains("many"));
}

TEST_CASE("library_call: what a call cannot be, and layers and tensors that it cannot be for") {
  CHECK_THAT(fault_of_call({.factors = FactorType::bf16}), Contains("factors is bf16; a library's call has"));
  CHECK_THAT(fault_of_call({.workspace_limit = -1}), Contains("workspace_limit"));
  CHECK_THAT(fault_of_call({.workspace_limit = kMaxCallWorkspaceBytes + 1}), Contains("workspace_limit"));
  CHECK_THAT(fault_of_called_shape([](ConvShape& shape) { shape.pad.bottom = 0; }),
             Contains("pads opposite sides alike"));
  CHECK_THAT(fault_of_called_shape([](ConvShape& shape) { shape.epilogue.function = function_of(Activation::silu); }),
             Contains("the layer ends in silu, and the library knows relu alone"));
  CHECK_THAT(fault_of_called_shape([](ConvShape& shape) { shape.epilogue.pool.emplace(); }),
             Contains("ends in a pool"));
  CHECK_THAT(fault_of_own([](TemplatePlan& plan) { plan.input().channels = 0; }),
             Contains("its input is not images of floats in nchw or nhwc4, or of halves in nhwc8"));
  CHECK_THAT(fault_of_own([](TemplatePlan& plan) {
               plan.output().run_words /= 2;
               plan.output().runs = 2;
               plan.output().run_pitch = plan.output().run_words + 4;
               plan.output().image_words += 4;
             }),
             Contains("images of its output do not lie in one piece"));
  Kernel no_layer = kernel_with_call();
  no_layer.layer.reset();
  CHECK_THAT(call_fault_of(no_layer), Contains("it is no convolution"));
  // A call beside a call, or beside weights in the code.
  CHECK_THAT(call_fault_of(kernel_with_call({.call = {}, .provider = "conv_cudnn", .plan = print(plan_with_call())})),
             Contains("plan"));
  CHECK_THAT(call_fault_of(kernel_with_call({.call = {}, .provider = "conv_baked", .plan = print(plain_plan())})),
             Contains("its own code is of conv_baked"));
}

TEST_CASE("library_call: a call of cuBLASLt, whose tensors begin where it wants them to") {
  Kernel kernel = kernel_with_product();
  CHECK_THAT(kernel.plan, Contains("library: cublaslt\nalgorithm: heuristic_1\nfactors: fp32\n"
                                   "workspace_limit: 4096  # bytes\nalignment: 8  # bytes\nown: conv_dense\n"));
  CHECK(print(parse_library_plan(kernel.plan)) == kernel.plan);
  derive_form(kernel);
  REQUIRE(kernel.call);
  CHECK(kernel.call->library() == Library::cublaslt);
  CHECK(kernel.form.input().alignment == 8);
  CHECK(kernel.form.output().alignment == 8);
  CHECK(kernel.plan_short == "cublaslt heuristic_1; own: conv_dense, 1 block of 256 for an image");
  CHECK(bias_elements(*kernel.call, kernel.called_shape(), {}) == 6 * 64);
  CHECK(library_bytes(*kernel.call, kernel.called_shape(), {}) == 4 * (6 * 4 + 6 * 64));
  // What needs more than the call does stays as it is.
  Kernel wide = kernel_with_product([](Kernel&, LibraryPlan&, TemplatePlan& own) { own.input().alignment = 16; });
  derive_form(wide);
  CHECK(wide.form.input().alignment == 16);
}

TEST_CASE("library_call: on tensors whose channels are last, of one format, and in their own type") {
  const TensorFormat halves = {ElementType::f16, TensorLayout::nhwc8}, floats = {ElementType::f32, TensorLayout::nhwc4};
  const auto fault = [](const LibraryCall& call, const TensorFormat& input, const TensorFormat& output,
                        const std::function<void(ConvShape&)>& edit = {}) {
    ConvShape shape = called_shape();
    if (edit) edit(shape);
    KernelForm form = plain_plan().form;
    for (KernelTensor& tensor : form.tensors) {
      if (!tensor.exists()) continue;
      const TensorFormat& format = tensor.role == TensorRole::input ? input : output;
      tensor.element = format.element;
      tensor.layout = format.layout;
      tensor.image_words = tensor.run_words = image_words(format, {tensor.channels, tensor.rows, tensor.cols});
    }
    std::string all;
    for (const std::string& each : verify(call, shape, form)) all += each + "\n";
    return all;
  };
  CHECK(fault({.factors = FactorType::f16}, halves, halves) == "");
  CHECK(fault({.factors = FactorType::tf32}, floats, floats) == "");
  CHECK(fault({.factors = FactorType::f32}, floats, floats) == "");
  CHECK_THAT(fault({.factors = FactorType::tf32}, halves, halves), Contains("a library's call on f16 nhwc8 has fp16"));
  CHECK_THAT(fault({.factors = FactorType::f16}, floats, floats), Contains("a library's call has fp32 or tf32"));
  CHECK_THAT(fault({}, floats, {}), Contains("its input is f32 nhwc4 and its output f32 nchw"));
  CHECK_THAT(fault({.factors = FactorType::f16}, halves, {ElementType::f16, TensorLayout::nchw8}),
             Contains("its output is not images of floats in nchw or nhwc4, or of halves in nhwc8"));
  const auto pointwise = [](ConvShape& shape) {
    shape.kernel_h = shape.kernel_w = 1;
    shape.pad = {};
  };
  const LibraryCall product = {.algorithm = ProductAlgorithm::heuristic_0};
  const LibraryCall of_halves = {.algorithm = ProductAlgorithm::heuristic_0, .factors = FactorType::f16};
  CHECK(fault(product, floats, floats, pointwise) == "");
  CHECK(fault(of_halves, halves, halves, pointwise) == "");
  CHECK_THAT(fault(product, floats, floats), Contains("a matrix product is 1x1"));
  CHECK_THAT(fault(product, halves, halves, pointwise), Contains("a library's call on f16 nhwc8 has fp16"));
  CHECK_THAT(fault(product, floats, {}, pointwise), Contains("its input is f32 nhwc4 and its output f32 nchw"));
  CHECK_THAT(fault({.factors = FactorType::f16}, halves, halves, [](ConvShape& shape) { shape.groups = 2; }),
             Contains("2 groups have channels that are no multiples of 8"));
  CHECK_THAT(fault({.algorithm = ConvolutionAlgorithm::engine_1}, {}, {}),
             Contains("engine_1 may round floats to TF32, and factors is fp32"));
  CHECK(fault({.algorithm = ConvolutionAlgorithm::engine_1, .factors = FactorType::tf32}, {}, {}) == "");
  ConvShape shape = called_shape();
  CHECK(filled_shape(shape, {}) == shape);
  CHECK(filled_shape(shape, halves).in_channels == 8);
  CHECK(filled_shape(shape, floats).out_channels == 8);
  CHECK(library_bytes({.factors = FactorType::f16}, shape, halves) == 2 * (8 * 8 * 9 + 8));
  // A product has the bias of a channel once where channels are last, else for each pixel, and none where there is
  // none.
  CHECK(bias_elements(of_halves, shape, halves) == 8);
  CHECK(bias_elements(product, shape, {}) == shape.conv_elements());
  shape.epilogue.bias = false;
  CHECK(bias_elements(of_halves, shape, halves) == 0);
  shape.epilogue.bias = true;
  shape.in_channels = shape.out_channels = 1;
  shape.kernel_w = 1;
  const ConvLayer layer = {.name = "l", .shape = shape, .weights = {1, 2, 3}, .bias = {4}};
  const LibraryNumbers numbers = library_numbers({}, layer, floats);
  std::vector<float> weights(4 * 3 * 4);
  weights[0] = 1;
  weights[4] = 2;
  weights[8] = 3;
  CHECK(numbers.weights == weights);
  CHECK(numbers.biases == std::vector<float>{4, 0, 0, 0});
}

TEST_CASE("library_call: a fully connected layer is called as a convolution of images of one pixel") {
  Kernel kernel = linear_with_product();
  derive_form(kernel);
  CHECK(kernel.call->algorithm == CallAlgorithm(ProductAlgorithm::heuristic_1));
  const ConvShape shape = kernel.called_shape();
  CHECK(shape == fully_connected_shape(12, 5, true, function_of(Activation::relu)));
  CHECK(bias_elements(*kernel.call, shape, {}) == 5);
  CHECK(kernel.layer_data() == "layers/fc.bin");
  kernel.called->bias = false;
  CHECK(bias_elements(*kernel.call, kernel.called_shape(), {}) == 0);
}

TEST_CASE("library_call: the algorithms of each library") {
  CHECK(parse_algorithm(Library::cudnn, "gemm") == CallAlgorithm(ConvolutionAlgorithm::gemm));
  CHECK(parse_algorithm(Library::cublaslt, "heuristic_3") == CallAlgorithm(ProductAlgorithm::heuristic_3));
  CHECK(parse_algorithm(Library::cublaslt, "gemm") == std::nullopt);
  CHECK(parse_algorithm(Library::cudnn, "heuristic_0") == std::nullopt);
  CHECK(known_algorithms(Library::cublaslt) == "heuristic_0, heuristic_1, heuristic_2, heuristic_3");
}

TEST_CASE("library_call: what is no product of matrices, and plans of products that are not right") {
  const auto fault = [](const std::function<void(Kernel&, LibraryPlan&, TemplatePlan&)>& edit) {
    return call_fault_of(kernel_with_product(edit));
  };
  const auto fault_of_shape = [&](const std::function<void(ConvShape&)>& edit) {
    return fault([&](Kernel& kernel, LibraryPlan&, TemplatePlan&) { edit(kernel.layer->shape); });
  };
  CHECK(fault([](Kernel&, LibraryPlan&, TemplatePlan&) {}) == "no error");
  CHECK_THAT(fault_of_shape([](ConvShape& shape) {
               shape.kernel_h = 3;
               shape.pad = {1, 1, 0, 0};
             }),
             Contains("and a matrix product is 1x1, stride 1, pad 0, without groups"));
  CHECK_THAT(fault_of_shape([](ConvShape& shape) { shape.groups = 2; }), Contains("without groups"));
  CHECK_THAT(fault_of_shape([](ConvShape& shape) { shape.stride_w = 2; }), Contains("stride 1"));
  CHECK_THAT(fault_of_shape([](ConvShape& shape) { shape.epilogue.function = function_of(Activation::silu); }),
             Contains("the library knows relu alone"));
  CHECK_THAT(fault([](Kernel& kernel, LibraryPlan&, TemplatePlan& own) {
               kernel.layer->shape.epilogue.residual = true;
               own.residual() = call_images(TensorRole::residual, 6);
               own.residual().argument = 1;
             }),
             Contains("a product of images of several pixels adds one tensor"));
  CHECK_THAT(fault_of_shape([](ConvShape& shape) { shape.epilogue = {.residual = true}; }),
             Contains("the layer has a residual, and its own code none"));
  for (const int alignment : {0, 3, 12, 32}) {
    CHECK_THAT(fault([&](Kernel&, LibraryPlan& plan, TemplatePlan&) { plan.call.alignment = alignment; }),
               Contains("a library's call has 4, 8 or 16"));
  }
  CHECK_THAT(fault([](Kernel& kernel, LibraryPlan&, TemplatePlan&) { kernel.provider = kCudnnProvider; }),
             Contains("it calls cublaslt, and the kernel is said to be of conv_cudnn"));
  CHECK_THAT(fault([](Kernel&, LibraryPlan& plan, TemplatePlan&) { plan.call.algorithm = ConvolutionAlgorithm::gemm; }),
             Contains("it calls cudnn, and the kernel is said to be of conv_cublas"));

  const auto linear_fault = [](const std::function<void(Kernel&, LibraryPlan&, TemplatePlan&)>& edit) {
    return call_fault_of(linear_with_product(edit));
  };
  CHECK_THAT(linear_fault([](Kernel& kernel, LibraryPlan&, TemplatePlan&) { kernel.called.reset(); }),
             Contains("nothing says what the call computes"));
  CHECK_THAT(linear_fault([](Kernel& kernel, LibraryPlan&, TemplatePlan&) { kernel.linear.reset(); }),
             Contains("nothing says what the call computes"));
  CHECK_THAT(linear_fault([](Kernel& kernel, LibraryPlan&, TemplatePlan&) { kernel.linear->columns = 13; }),
             Contains("its input is not float images in nchw"));
  // Nothing but the call's own form says how large the tensors of a fully connected layer are.
  const auto in_last = [&](int features, int columns) {
    return linear_fault([&](Kernel& kernel, LibraryPlan&, TemplatePlan& own) {
      for (KernelTensor* tensor : {&own.input(), &own.output()}) {
        tensor->layout = TensorLayout::nhwc4;
        tensor->channels = features;
        tensor->rows = tensor->cols = 1;
        tensor->image_words = tensor->run_words = features;
        tensor->alignment = 16;
      }
      kernel.linear->rows = kernel.linear->columns = columns;
    });
  };
  CHECK_THAT(in_last(4, 4096), Contains("its input is not images of floats in nchw or nhwc4"));
  CHECK_THAT(in_last(8, 8),
             Contains("a fully connected layer is called on floats in nchw, and its tensors are f32 nhwc4"));
  CHECK_THAT(linear_fault([](Kernel& kernel, LibraryPlan&, TemplatePlan&) { kernel.linear->rows = 1LL << 40; }),
             Contains("out_channels"));
}
