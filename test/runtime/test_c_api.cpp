#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "runtime/burin/runtime.h"
#include "test/catch.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/last_error.h"
#include "test/runtime/sample_package.h"

using namespace burin_test;

namespace {

// The sample package as a file that is gone again afterwards.
struct PackageOnDisk {
  std::string path =
      (std::filesystem::temp_directory_path() / ("burin_c_api_" + std::to_string(getpid()) + ".burin")).string();
  explicit PackageOnDisk(const burin::Package& package = *sample_package()) { burin::write_package(package, path); }
  ~PackageOnDisk() { std::filesystem::remove(path); }
};

// What a C program does from beginning to end; the first status that is not BURIN_OK. All handles are released.
burin_status c_session(const std::string& path) {
  burin_device* device = nullptr;
  burin_package* package = nullptr;
  burin_kernel* kernel = nullptr;
  burin_workspace* workspace = nullptr;
  CUstream_st* stream = nullptr;
  void* memory = nullptr;
  int count = 0;
  size_t bytes = 0;
  float values[4] = {1, 2, 3, 4};
  burin_status status = BURIN_OK;
  const auto then = [&](auto call) {
    if (status == BURIN_OK) status = call();
  };
  then([&] { return burin_device_count(&count); });
  then([&] { return burin_device_open(0, &device); });
  then([&] { return burin_package_open(device, path.c_str(), &package); });
  then([&] { return burin_kernel_find(package, "conv1", 8, &kernel); });
  then([&] { return burin_kernel_workspace_bytes(kernel, 8, &bytes); });
  then([&] { return burin_workspace_create(device, kernel, 8, &workspace); });
  then([&] { return burin_stream_create(device, &stream); });
  then([&] { return burin_memory_alloc(device, sizeof(values), &memory); });
  then([&] { return burin_copy_to_device(device, memory, values, sizeof(values)); });
  float* data = static_cast<float*>(memory);
  then([&] { return burin_launch(kernel, stream, data, data, nullptr, 8, workspace); });
  then([&] { return burin_stream_synchronize(device, stream); });
  then([&] { return burin_device_synchronize(device); });
  then([&] { return burin_copy_to_host(device, values, memory, sizeof(values)); });
  // A free that failed before it reached the driver's own free can be called again.
  const auto give_back = [&](auto call) {
    if (device == nullptr) return BURIN_OK;
    const burin_status first = call();
    if (first != BURIN_OK && std::strstr(burin_last_error(), "cuCtx") != nullptr) call();
    return first;
  };
  const burin_status freed = give_back([&] { return burin_memory_free(device, memory); });
  const burin_status destroyed = give_back([&] { return burin_stream_destroy(device, stream); });
  then([&] { return freed; });
  then([&] { return destroyed; });
  burin_workspace_release(workspace);
  burin_kernel_release(kernel);
  burin_package_release(package);
  burin_device_release(device);
  return status;
}

}  // namespace

TEST_CASE("c_api: whole_session") {
  const PackageOnDisk file;
  FakeDriver fake;
  const burin_status status = c_session(file.path);
  INFO(burin_last_error());
  CHECK(status == BURIN_OK);
  CHECK(fake.launches().size() == 1);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api: each_call_failing_in_turn") {
  const PackageOnDisk file;
  for (int n = 1;; ++n) {
    FakeDriver fake;
    fake.fail_at = n;
    const burin_status status = c_session(file.path);
    const std::string call = fake.failed_call();
    INFO("call " << n << ", " << call << ": " << burin_last_error());
    if (call.empty()) {
      CHECK(status == BURIN_OK);
      CHECK(n > 40);
      break;
    }
    CHECK(fake.live() == std::vector<std::string>{});
    if (status != BURIN_OK) {
      CHECK(status == BURIN_ERROR_DEVICE);
      CHECK(last_error_has(call + " failed: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    } else {
      CHECK((FakeDriver::is_release(call) || call == "cuCtxPushCurrent"));
    }
  }
}

TEST_CASE("c_api: null_arguments") {
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_package* package = nullptr;
  CHECK(burin_device_count(nullptr) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_device_count: count is NULL"));
  CHECK(burin_device_open(0, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_package_open(nullptr, "x", &package) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_package_open: device is NULL"));
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  CHECK(burin_package_open(device, nullptr, &package) == BURIN_ERROR_USAGE);
  CHECK(burin_package_open(device, "x", nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_kernel_find(nullptr, "conv1", 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_kernel_get_shape(nullptr, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_kernel_workspace_bytes(nullptr, 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_workspace_create(device, nullptr, 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_launch(nullptr, nullptr, nullptr, nullptr, nullptr, 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_launch: kernel is NULL"));
  CHECK(burin_memory_alloc(device, 16, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_copy_to_device(device, nullptr, &device, 4) == BURIN_ERROR_USAGE);
  CHECK(burin_copy_to_host(device, nullptr, &device, 4) == BURIN_ERROR_USAGE);
  CHECK(burin_stream_create(nullptr, nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_device_synchronize(nullptr) == BURIN_ERROR_USAGE);
  CHECK(burin_device_name(nullptr) == nullptr);
  CHECK(burin_package_layer_count(nullptr) == 0);
  CHECK(burin_package_layer_name(nullptr, 0) == nullptr);
  burin_device_release(nullptr);
  burin_package_release(nullptr);
  burin_kernel_release(nullptr);
  burin_workspace_release(nullptr);
  burin_device_release(device);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api: package_contents") {
  const PackageOnDisk file;
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_package* package = nullptr;
  burin_kernel* kernel = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_package_open(device, file.path.c_str(), &package) == BURIN_OK);
  CHECK(std::string(burin_device_name(device)) == "Fake H200");
  REQUIRE(burin_package_layer_count(package) == 2);
  CHECK(std::string(burin_package_layer_name(package, 0)) == "conv1");
  CHECK(std::string(burin_package_layer_name(package, 1)) == "conv2");
  CHECK(burin_package_layer_name(package, 2) == nullptr);
  CHECK(burin_package_layer_name(package, -1) == nullptr);

  CHECK(burin_kernel_find(package, "conv9", 1, &kernel) == BURIN_ERROR_USAGE);
  CHECK(kernel == nullptr);
  CHECK(last_error_has("no layer 'conv9'"));
  REQUIRE(burin_kernel_find(package, "conv2", 1, &kernel) == BURIN_OK);
  burin_kernel_shape shape;
  REQUIRE(burin_kernel_get_shape(kernel, &shape) == BURIN_OK);
  CHECK(shape.in_channels == 8);
  CHECK(shape.in_width == 14);
  CHECK(shape.out_channels == 16);
  CHECK(shape.out_height == 14);
  CHECK(shape.needs_residual == 1);
  CHECK(shape.in_channels_together == 1);
  CHECK(shape.out_channels_together == 1);
  CHECK(shape.in_alignment == 4);
  CHECK(shape.out_alignment == 4);
  CHECK(shape.in_element == BURIN_F32);
  CHECK(shape.out_element == BURIN_F32);
  CHECK(shape.in_images_together == 1);
  CHECK(shape.out_images_together == 1);
  size_t input_bytes = 0, output_bytes = 0;
  CHECK(burin_kernel_tensor_bytes(kernel, 3, &input_bytes, &output_bytes) == BURIN_OK);
  CHECK(input_bytes == 3 * 8 * 14 * 14 * sizeof(float));
  CHECK(output_bytes == 3 * 16 * 14 * 14 * sizeof(float));
  size_t bytes = 1;
  CHECK(burin_kernel_workspace_bytes(kernel, 1, &bytes) == BURIN_OK);
  CHECK(bytes == 0);
  CHECK(burin_kernel_workspace_bytes(kernel, 0, &bytes) == BURIN_ERROR_USAGE);
  // In any order: the kernel holds what it needs.
  burin_device_release(device);
  burin_package_release(package);
  float value = 0;
  CHECK(burin_launch(kernel, nullptr, &value, &value, &value, 1, nullptr) == BURIN_OK);
  CHECK(burin_launch(kernel, nullptr, &value, &value, nullptr, 1, nullptr) == BURIN_ERROR_USAGE);
  burin_kernel_release(kernel);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api: layouts_and_alignments") {
  const auto package = sample_package({}, [](std::vector<burin::Kernel>& kernels) {
    edit_template(kernels.back(), [](burin::TemplatePlan& plan) {  // conv2
      const burin::TensorLayout nchw4 = burin::TensorLayout::nchw4;
      plan.input().alignment = 16;
      plan.output() = image_tensor(burin::TensorRole::output, 16, 14, 14, nchw4);
      plan.residual() = image_tensor(burin::TensorRole::residual, 16, 14, 14, nchw4);
      plan.output().alignment = plan.residual().alignment = 64;
    });
  });
  const PackageOnDisk file(*package);
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_package* loaded = nullptr;
  burin_kernel* kernel = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_package_open(device, file.path.c_str(), &loaded) == BURIN_OK);
  REQUIRE(burin_kernel_find(loaded, "conv2", 4, &kernel) == BURIN_OK);
  burin_kernel_shape shape;
  REQUIRE(burin_kernel_get_shape(kernel, &shape) == BURIN_OK);
  CHECK(shape.in_channels_together == 1);
  CHECK(shape.out_channels_together == 4);
  CHECK(shape.in_alignment == 16);
  CHECK(shape.out_alignment == 64);
  alignas(64) float memory[32] = {};
  CHECK(burin_launch(kernel, nullptr, memory + 4, memory, memory + 16, 1, nullptr) == BURIN_OK);
  CHECK(burin_launch(kernel, nullptr, memory + 1, memory, memory + 16, 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("input is not aligned to 16 bytes"));
  CHECK(burin_launch(kernel, nullptr, memory, memory, memory + 8, 1, nullptr) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("residual is not aligned to 64 bytes"));
  burin_kernel_release(kernel);
  burin_package_release(loaded);
  burin_device_release(device);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api: half_tensors") {
  const auto package = half_sample_package(burin::Precision::bf16, [](std::vector<burin::Kernel>& kernels) {
    edit_template(kernels.back(), [](burin::TemplatePlan& plan) { plan.output().element = burin::ElementType::f16; });
  });
  const PackageOnDisk file(*package);
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_package* loaded = nullptr;
  burin_kernel* kernel = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_package_open(device, file.path.c_str(), &loaded) == BURIN_OK);
  REQUIRE(burin_kernel_find(loaded, "conv2", 4, &kernel) == BURIN_OK);
  burin_kernel_shape shape;
  REQUIRE(burin_kernel_get_shape(kernel, &shape) == BURIN_OK);
  CHECK(shape.in_element == BURIN_BF16);
  CHECK(shape.out_element == BURIN_F16);
  CHECK(shape.in_images_together == 2);
  CHECK(shape.out_images_together == 2);
  CHECK(shape.in_channels_together == 1);
  CHECK(shape.in_alignment == 4);
  size_t input = 0, output = 0;
  CHECK(burin_kernel_tensor_bytes(kernel, 3, &input, &output) == BURIN_OK);
  CHECK(input == 4 * 8 * 14 * 14 * 2);  // a fourth image fills up the last pair
  CHECK(output == 4 * 16 * 14 * 14 * 2);
  CHECK(burin_kernel_tensor_bytes(kernel, 0, &input, &output) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("batch 0"));
  CHECK(burin_kernel_tensor_bytes(kernel, 1, nullptr, &output) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_kernel_tensor_bytes: input is NULL"));
  CHECK(burin_kernel_tensor_bytes(kernel, 1, &input, nullptr) == BURIN_ERROR_USAGE);
  CHECK(input == 4 * 8 * 14 * 14 * 2);  // a failure leaves the outputs alone
  alignas(4) uint16_t values[2] = {};
  CHECK(burin_launch(kernel, nullptr, values, values, values, 1, nullptr) == BURIN_OK);
  burin_kernel_release(kernel);
  burin_package_release(loaded);
  burin_device_release(device);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api: conversions") {
  const float values[3] = {1.0F, -2.0F, 1.01F};
  uint16_t halves[4] = {7, 7, 7, 7};
  CHECK(burin_to_elements(BURIN_F16, values, 2, halves) == BURIN_OK);
  CHECK(halves[0] == 0x3C00);
  CHECK(halves[1] == 0xC000);
  CHECK(halves[2] == 7);
  CHECK(burin_to_elements(BURIN_BF16, values, 3, halves) == BURIN_OK);
  CHECK(halves[0] == 0x3F80);
  float back[4] = {7, 7, 7, 7};
  CHECK(burin_from_elements(BURIN_BF16, halves, 3, back) == BURIN_OK);
  CHECK(back[1] == -2.0F);
  CHECK(back[2] == 1.0078125F);  // the nearest
  CHECK(back[3] == 7);
  CHECK(burin_to_elements(BURIN_F32, values, 3, back) == BURIN_OK);
  CHECK(back[2] == 1.01F);
  CHECK(burin_to_elements(BURIN_F16, nullptr, 0, nullptr) == BURIN_OK);
  CHECK(burin_to_elements(BURIN_F16, nullptr, 1, halves) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_to_elements: values is NULL"));
  CHECK(burin_from_elements(BURIN_F16, nullptr, 1, back) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_from_elements: elements is NULL"));
  CHECK(burin_to_elements(static_cast<burin_element>(3), values, 1, halves) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("3 is not a burin_element"));
}

TEST_CASE("c_api: status_codes") {
  FakeDriver fake;
  burin_device* device = nullptr;
  CHECK(burin_device_open(9, &device) == BURIN_ERROR_DEVICE);
  CHECK(device == nullptr);
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  burin_package* package = nullptr;
  CHECK(burin_package_open(device, "no-such-file.burin", &package) == BURIN_ERROR_BAD_INPUT);
  CHECK(last_error_has("no-such-file.burin"));
  CHECK(package == nullptr);
  burin_device_release(device);
  CHECK(std::strlen(burin_version()) > 0);
}

TEST_CASE("c_api: errors_belong_to_a_thread") {
  FakeDriver fake;
  burin_device* device = nullptr;
  CHECK(burin_device_open(5, &device) == BURIN_ERROR_DEVICE);
  std::string other = "unset";
  std::thread([&] { other = burin_last_error(); }).join();
  CHECK(other.empty());
  CHECK(last_error_has("cuda:5"));
}

TEST_CASE("c_api: activity_maps") {
  FakeDriver fake;
  const auto package = sample_package({}, [](std::vector<burin::Kernel>& kernels) {
    edit_baked(kernels.front(), [](burin::BakedPlan& plan) { plan.skips = burin::ActivityMap{2, 7, 7}; });
  });
  const PackageOnDisk file(*package);
  burin_device* device = nullptr;
  burin_package* opened = nullptr;
  burin_kernel* kernel = nullptr;
  burin_workspace* workspace = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_package_open(device, file.path.c_str(), &opened) == BURIN_OK);
  REQUIRE(burin_kernel_find(opened, "conv1", 1, &kernel) == BURIN_OK);
  REQUIRE(burin_workspace_create(device, kernel, 3, &workspace) == BURIN_OK);
  burin_activity_shape in = {1, 1, 1}, out = {1, 1, 1};
  REQUIRE(burin_kernel_get_activity(kernel, &in, &out) == BURIN_OK);
  CHECK((in.cell_images == 2 && in.cell_rows == 7 && in.cell_cols == 7));
  CHECK((out.cell_images == 0 && out.cell_rows == 0 && out.cell_cols == 0));
  size_t in_bytes = 1, out_bytes = 1;
  REQUIRE(burin_kernel_activity_bytes(kernel, 3, &in_bytes, &out_bytes) == BURIN_OK);
  CHECK(in_bytes == 2 * 4 * 8);
  CHECK(out_bytes == 0);
  CHECK(burin_kernel_activity_bytes(kernel, 0, &in_bytes, &out_bytes) == BURIN_ERROR_USAGE);
  CHECK(burin_kernel_get_activity(nullptr, &in, &out) == BURIN_ERROR_USAGE);
  CHECK(burin_kernel_get_activity(kernel, &in, nullptr) == BURIN_ERROR_USAGE);

  float data = 0;
  unsigned char map = 0;
  CHECK(burin_launch_with_activity(kernel, nullptr, &data, &data, nullptr, 3, workspace, &map, nullptr) == BURIN_OK);
  CHECK(fake.launches().back().input_activity == &map);
  CHECK(burin_launch(kernel, nullptr, &data, &data, nullptr, 3, workspace) == BURIN_OK);
  CHECK(fake.launches().back().input_activity == nullptr);
  CHECK(burin_launch_with_activity(kernel, nullptr, &data, &data, nullptr, 3, workspace, &map, &map) ==
        BURIN_ERROR_USAGE);
  CHECK(std::string(burin_last_error()).find("activity map of the output") != std::string::npos);
  burin_workspace_release(workspace);
  burin_kernel_release(kernel);
  burin_package_release(opened);
  burin_device_release(device);
}
