
#include "runtime/burin/device_memory.hpp"
#include "test/catch.h"
#include "test/runtime/fake_driver.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

TEST_CASE("device: info") {
  FakeDriver fake;
  fake.devices = {{"Fake A", 8, 6, 101376}, {"Fake B", 9, 0, 232448}};
  CHECK(device_count() == 2);
  const Device device = Device::open(1);
  CHECK(device.info().ordinal == 1);
  CHECK(device.info().name == "Fake B");
  CHECK(device.info().arch() == "sm_90");
  CHECK(device.info().max_shared_per_block == 232448);
  CHECK(device.info().driver_version == 13000);
  CHECK(Device::open(0).info().arch() == "sm_86");
}

TEST_CASE("device: none") {
  FakeDriver fake;
  fake.devices.clear();
  CHECK(device_count() == 0);
  CHECK(BURIN_THROWN(device, Device::open(0)).has("no CUDA device"));
}

TEST_CASE("device: ordinal_out_of_range") {
  FakeDriver fake;
  CHECK(BURIN_THROWN(device, Device::open(1)).has("no device cuda:1: the driver finds 1 device, cuda:0"));
  CHECK(BURIN_THROWN(device, Device::open(-1)).has("no device cuda:-1"));
  fake.devices.resize(3);
  CHECK(BURIN_THROWN(device, Device::open(3)).has("3 devices, cuda:0 to cuda:2"));
  CHECK(fake.live().empty());
}

TEST_CASE("device: context_lives_as_long_as_anything_made_from_it") {
  FakeDriver fake;
  {
    DeviceBuffer buffer;
    {
      const Device device = Device::open(0);
      const Device copy = device;
      buffer = DeviceBuffer(copy, 16);
    }
    CHECK(fake.live() == std::vector<std::string>{"memory", "context of device 0, 1"});
    buffer.fill(7);
    CHECK(buffer.to_vector<unsigned char>() == std::vector<unsigned char>(16, 7));
  }
  CHECK(fake.live().empty());
}

TEST_CASE("device: the_callers_context_stays_current") {
  FakeDriver fake;
  fake.devices.resize(2);
  const Device first = Device::open(0);
  const Device second = Device::open(1);
  const DriverTable& driver = driver_table();
  REQUIRE(driver.cuCtxPushCurrent(first.context()) == kCudaSuccess);
  {
    const DeviceBuffer buffer(second, 64);
  }
  second.synchronize();
  CUcontext current = nullptr;
  driver.cuCtxGetCurrent(&current);
  CHECK(current == first.context());
  driver.cuCtxPopCurrent(&current);
}

TEST_CASE("device_buffer: copies_and_bounds") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const std::vector<float> values = {1, 2, 3, 4};
  DeviceBuffer buffer(device, std::span<const float>(values));
  CHECK(buffer.to_vector<float>() == values);
  const float five = 5;
  buffer.upload(&five, sizeof(float), 2 * sizeof(float));
  CHECK(buffer.to_vector<float>() == std::vector<float>{1, 2, 5, 4});
  float target = 0;
  CHECK(BURIN_THROWN(usage, buffer.download(&target, 4, 13)).has("4 bytes at offset 13"));
  CHECK(BURIN_THROWN(usage, buffer.upload(&target, 17)).has("a device buffer of 16 bytes"));
  CHECK(BURIN_THROWN(usage, buffer.upload(&target, 4, SIZE_MAX)).has("does not fit"));
}

TEST_CASE("device_buffer: empty") {
  FakeDriver fake;
  const Device device = Device::open(0);
  DeviceBuffer buffer(device, 0);
  buffer.fill(1);
  buffer.upload(nullptr, 0);
  CHECK(buffer.to_vector<float>().empty());
  CHECK(fake.calls_of("cuMemAlloc") == 0);
}

TEST_CASE("device_buffer: out_of_memory names the size") {
  FakeDriver fake;
  const Device device = Device::open(0);
  const Thrown error = BURIN_THROWN(device, DeviceBuffer(device, std::size_t{1} << 50));
  CHECK(error.has("cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY"));
  CHECK(error.has("1125899906842624 bytes on cuda:0"));
}

TEST_CASE("device_buffer: moves") {
  FakeDriver fake;
  {
    const Device device = Device::open(0);
    DeviceBuffer a(device, 16);
    DeviceBuffer b(std::move(a));
    DeviceBuffer c(device, 32);
    c = std::move(b);
    CHECK(c.bytes() == 16);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("graph: what_cannot_be_captured is discarded") {
  FakeDriver fake;
  {
    const Device device = Device::open(0);
    const Stream stream(device);
    CHECK_THROWS_WITH(Graph::capture(stream, [](CUstream_st*) { throw std::runtime_error("not now"); }), "not now");
    CHECK_FALSE(stream.handle()->capturing);
    const Graph graph = Graph::capture(stream, [](CUstream_st*) {});
    graph.launch(stream);
  }
  CHECK(fake.live().empty());
}
