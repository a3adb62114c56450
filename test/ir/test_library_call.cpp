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
             Contains("its input is not float images in nchw"));
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
