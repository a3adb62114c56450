// Networks through the C API, against the fake driver.
#include <string>

#include "runtime/burin/runtime.h"
#include "test/catch.h"
#include "test/package/sample_network.h"
#include "test/runtime/fake_driver.h"
#include "test/runtime/last_error.h"
#include "test/runtime/sample_package.h"
#include "test/scratch_folder.h"

using namespace burin_test;

namespace {

struct Files {
  ScratchFolder folder;
  std::string network = folder / "network.burin", layers = folder / "layers.burin", layer = folder / "layer.burin",
              kernels = folder / "kernels.burin", loose = folder / "loose.burin";
  Files() {
    burin::write_package(network_package(), network);
    burin::write_package(loose_network_package(), loose);
    const std::shared_ptr<burin::Package> package = sample_package();
    burin::write_package(*package, kernels);
    add_layer_programs(package->manifest);
    burin::write_package(*package, layers);
    // One layer alone, whose tensors are halves.
    const std::shared_ptr<burin::Package> halves = half_sample_package(burin::Precision::fp16);
    add_layer_programs(halves->manifest);
    halves->manifest.programs.pop_back();
    burin::write_package(*halves, layer);
  }
};

// Addresses, which the fake driver does not follow.
void* at(std::uintptr_t megabytes) { return reinterpret_cast<void*>(megabytes << 20); }

// What a C program does from beginning to end; the first status that is not BURIN_OK. All handles are released.
burin_status c_network_session(const std::string& path) {
  burin_device* device = nullptr;
  burin_network* network = nullptr;
  burin_network_run* run = nullptr;
  const void* inputs[] = {at(1), at(2)};
  void* outputs[] = {at(3), at(4)};
  burin_status status = burin_device_open(0, &device);
  if (status == BURIN_OK) status = burin_network_open(device, path.c_str(), &network);
  if (status == BURIN_OK) status = burin_network_bind(network, inputs, outputs, 5, &run);
  burin_network_release(network);  // in any order
  if (status == BURIN_OK) status = burin_network_launch(run, nullptr);
  burin_network_run_release(run);
  burin_device_release(device);
  return status;
}

}  // namespace

TEST_CASE("c_api network: whole_session") {
  const Files files;
  FakeDriver fake;
  CHECK(c_network_session(files.network) == BURIN_OK);
  REQUIRE(fake.graphs().size() == 1);
  const std::vector<FakeLaunch> nodes = fake.graphs()[0].nodes;
  CHECK(nodes[kConv1].input == at(1));
  CHECK(nodes[kConv1].batch == 5);
  CHECK(nodes[kAdd].residual == at(2));
  CHECK(nodes[kAdd].output == at(3));
  CHECK(nodes[kCopy].output == at(4));
  CHECK(fake.calls_of("cuGraphLaunch") == 1);
  CHECK(fake.live().empty());
}

TEST_CASE("c_api network: each_call_failing_in_turn") {
  const Files files;
  for (int n = 1;; ++n) {
    FakeDriver fake;
    fake.fail_at = n;
    const burin_status status = c_network_session(files.network);
    const std::string call = fake.failed_call();
    INFO("call " << n << ", " << call << ": " << burin_last_error());
    CHECK(fake.live() == std::vector<std::string>{});
    if (call.empty()) {
      CHECK(status == BURIN_OK);
      CHECK(n > 60);
      break;
    }
    if (status == BURIN_OK) {
      CHECK((FakeDriver::is_release(call) || call == "cuCtxPushCurrent"));
    } else {
      CHECK(status == BURIN_ERROR_DEVICE);
      CHECK(last_error_has(call + " failed: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    }
  }
}

TEST_CASE("c_api network: what it says of itself") {
  const Files files;
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_network* network = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_network_open(device, files.network.c_str(), &network) == BURIN_OK);
  CHECK(burin_network_input_count(network) == 2);
  CHECK(burin_network_output_count(network) == 2);
  burin_network_tensor tensor = {};
  REQUIRE(burin_network_get_input(network, 0, &tensor) == BURIN_OK);
  CHECK(tensor.name == std::string("image"));
  CHECK(tensor.rank == 3);
  CHECK(tensor.shape[0] == 8);
  CHECK(tensor.shape[2] == 14);
  CHECK(tensor.shape[3] == 0);
  CHECK(tensor.image_bytes == kSampleImageWords * 4);
  CHECK(tensor.element == BURIN_F32);
  REQUIRE(burin_network_get_output(network, 0, &tensor) == BURIN_OK);
  CHECK(tensor.name == std::string("scores"));
  CHECK(tensor.rank == 1);
  CHECK(burin_network_batch_count(network) == 2);
  CHECK(burin_network_batch(network, 0) == 2);
  CHECK(burin_network_batch(network, 1) == 8);
  CHECK(burin_network_batch(network, 2) == 0);
  CHECK(burin_network_batch(network, -1) == 0);
  CHECK(burin_network_get_output(network, 2, &tensor) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("output 2 is none of the network's 2"));
  CHECK(burin_network_get_input(network, -1, &tensor) == BURIN_ERROR_USAGE);
  CHECK(tensor.name == std::string("scores"));  // untouched
  burin_network_release(network);
  burin_device_release(device);
}

TEST_CASE("c_api network: inputs and outputs of halves") {
  const Files files;
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_network* network = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  REQUIRE(burin_network_open(device, files.loose.c_str(), &network) == BURIN_OK);
  burin_network_tensor tensor = {};
  REQUIRE(burin_network_get_input(network, 0, &tensor) == BURIN_OK);
  CHECK(tensor.element == BURIN_F16);
  CHECK(tensor.image_bytes == std::size_t{kLooseBytes});
  REQUIRE(burin_network_get_output(network, 0, &tensor) == BURIN_OK);
  CHECK(tensor.element == BURIN_BF16);
  CHECK(tensor.image_bytes == std::size_t{kLooseBytes});
  burin_network_release(network);
  burin_device_release(device);
}

TEST_CASE("c_api network: errors") {
  const Files files;
  FakeDriver fake;
  burin_device* device = nullptr;
  burin_network* network = nullptr;
  burin_network_run* run = nullptr;
  REQUIRE(burin_device_open(0, &device) == BURIN_OK);
  CHECK(burin_network_open(device, files.layers.c_str(), &network) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("layers.burin holds 2 layers and no network"));
  CHECK(burin_network_open(device, files.kernels.c_str(), &network) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("kernels.burin holds no programs; launch its kernels one by one"));
  CHECK(burin_network_open(device, files.layer.c_str(), &network) == BURIN_ERROR_UNSUPPORTED);
  CHECK(last_error_has("layer.burin: 'conv1.input' is no tensor in NCHW"));
  CHECK(burin_network_open(device, "no-such-file.burin", &network) == BURIN_ERROR_BAD_INPUT);
  CHECK(burin_network_open(nullptr, files.network.c_str(), &network) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_network_open: device is NULL"));
  CHECK(burin_network_open(device, nullptr, &network) == BURIN_ERROR_USAGE);
  CHECK(burin_network_open(device, files.network.c_str(), nullptr) == BURIN_ERROR_USAGE);
  CHECK(network == nullptr);

  REQUIRE(burin_network_open(device, files.network.c_str(), &network) == BURIN_OK);
  const void* inputs[] = {at(1), nullptr};
  void* outputs[] = {at(3), at(4)};
  CHECK(burin_network_bind(network, inputs, outputs, 2, &run) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("input 'shift' is a null pointer"));
  inputs[1] = at(2);
  CHECK(burin_network_bind(network, inputs, outputs, 0, &run) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("batch 0"));
  CHECK(burin_network_bind(nullptr, inputs, outputs, 2, &run) == BURIN_ERROR_USAGE);
  CHECK(burin_network_bind(network, nullptr, outputs, 2, &run) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_network_bind: inputs is NULL"));
  CHECK(burin_network_bind(network, inputs, nullptr, 2, &run) == BURIN_ERROR_USAGE);
  CHECK(burin_network_bind(network, inputs, outputs, 2, nullptr) == BURIN_ERROR_USAGE);
  CHECK(run == nullptr);
  CHECK(burin_network_launch(nullptr, nullptr) == BURIN_ERROR_USAGE);
  CHECK(last_error_has("burin_network_launch: run is NULL"));
  CHECK(burin_network_input_count(nullptr) == 0);
  CHECK(burin_network_output_count(nullptr) == 0);
  CHECK(burin_network_batch_count(nullptr) == 0);
  burin_network_release(nullptr);
  burin_network_run_release(nullptr);
  burin_network_release(network);
  burin_device_release(device);
  CHECK(fake.live().empty());
}
