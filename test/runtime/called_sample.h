// A package whose only kernel has a library's call beside the code of a template, and what runs it beside the fakes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "ir/template_plan.h"
#include "runtime/burin/device_memory.hpp"
#include "runtime/burin/network.hpp"
#include "test/runtime/fake_driver.h"

namespace burin_test {

struct CalledSample {
  std::shared_ptr<burin::Package> package;
  burin::ConvLayer layer;  // what is computed; of a fully connected layer, the convolution that it is
  const burin::Kernel& kernel() const { return package->manifest.kernels.front(); }
};

// The kernel "conv2", of a 3x3 convolution 8x14x14 -> 16x14x14 with bias, residual and relu whose weights are random,
// and a program for 4 images. `edit` changes the layer and the plan of its own code.
using EditCalled = std::function<void(burin::Kernel&, burin::TemplatePlan&)>;
CalledSample called_sample(const burin::LibraryCall& call, const EditCalled& edit = {});
void without_residual(burin::Kernel& kernel, burin::TemplatePlan& own);

// All tensors of the sample in the format. What its own code would be nobody asks.
EditCalled in_format(const burin::TensorFormat& format);

// Buffers of a launch of so many images, in the kernel's format; the values are those that are in them.
struct CalledTensors {
  std::vector<float> input, residual;
  burin::DeviceBuffer x, z, y;
  bool has_residual;
  CalledTensors(const burin::Device& device, const burin::Kernel& kernel, int batch);
  burin::LaunchIo io(int batch) const;
};

void check_output(const CalledSample& of, const CalledTensors& tensors, int batch);

// The call that a network of one step is, and what was noted. Checks what the call computes.
struct BoundCall {
  std::string call;
  std::vector<std::string> notes;
  FakeGraph graph;
};
BoundCall bind_called(FakeDriver& fake, const CalledSample& of, const burin::LoadOptions& options, int batch = 4);

}  // namespace burin_test
