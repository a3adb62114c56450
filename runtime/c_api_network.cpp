// The C ABI: whole networks.
#include <algorithm>

#include "ir/limits.h"
#include "runtime/burin/network.hpp"
#include "runtime/c_api.h"

struct burin_network {
  burin::LoadedNetwork network;
  std::vector<burin::NetworkTensor> inputs, outputs;
  std::vector<int> batches;
};
struct burin_network_run {
  burin::NetworkRun run;
};

namespace {

using burin::guarded;
using burin::NetworkTensor;
using burin::Required;

static_assert(BURIN_MAX_RANK == burin::kMaxActivationRank);

int count_of(const std::vector<NetworkTensor>& tensors) { return static_cast<int>(tensors.size()); }

burin_network_tensor tensor_at(const std::vector<NetworkTensor>& tensors, int index, const char* which) {
  if (index < 0 || index >= count_of(tensors)) {
    burin::fail(burin::ErrorKind::usage, "{} {} is none of the network's {}", which, index, tensors.size());
  }
  const NetworkTensor& tensor = tensors[static_cast<std::size_t>(index)];
  burin_network_tensor result = {};
  result.name = tensor.name.c_str();
  result.rank = static_cast<int>(tensor.shape.size());  // at most BURIN_MAX_RANK: the package was verified
  std::copy(tensor.shape.begin(), tensor.shape.end(), result.shape);
  result.image_bytes = static_cast<size_t>(tensor.bytes(1));
  result.element = static_cast<burin_element>(tensor.element);
  return result;
}

}  // namespace

int burin_network_note_count(const burin_network* network) {
  return network == nullptr ? 0 : burin::note_count(network->network.kept_notes());
}

const char* burin_network_note(const burin_network* network, int index) {
  return network == nullptr ? nullptr : burin::note_at(network->network.kept_notes(), index);
}

burin_status burin_network_open(const burin_device* device, const char* path, burin_network** network) {
  return guarded(__func__, [&](const Required& required) {
    burin_network*& result = required(network, "network");
    burin::LoadedNetwork opened(required(device, "device").device, &required(path, "path"));
    std::vector<NetworkTensor> inputs = opened.inputs(), outputs = opened.outputs();
    for (const std::vector<NetworkTensor>* tensors : {&inputs, &outputs}) {
      for (const NetworkTensor& tensor : *tensors) {
        if (tensor.is_nchw()) continue;
        burin::fail(burin::ErrorKind::unsupported,
                    "{}: '{}' is no tensor in NCHW, which is all that a burin_network_tensor says; launch the layer's "
                    "kernel (burin_kernel_find)",
                    path, tensor.name);
      }
    }
    std::vector<int> batches = opened.batches();
    result = new burin_network{std::move(opened), std::move(inputs), std::move(outputs), std::move(batches)};
  });
}

void burin_network_release(burin_network* network) { delete network; }

int burin_network_input_count(const burin_network* network) {
  return network == nullptr ? 0 : count_of(network->inputs);
}

int burin_network_output_count(const burin_network* network) {
  return network == nullptr ? 0 : count_of(network->outputs);
}

burin_status burin_network_get_input(const burin_network* network, int index, burin_network_tensor* input) {
  return guarded(__func__, [&](const Required& required) {
    burin_network_tensor& result = required(input, "input");
    result = tensor_at(required(network, "network").inputs, index, "input");
  });
}

burin_status burin_network_get_output(const burin_network* network, int index, burin_network_tensor* output) {
  return guarded(__func__, [&](const Required& required) {
    burin_network_tensor& result = required(output, "output");
    result = tensor_at(required(network, "network").outputs, index, "output");
  });
}

int burin_network_batch_count(const burin_network* network) {
  return network == nullptr ? 0 : static_cast<int>(network->batches.size());
}

int burin_network_batch(const burin_network* network, int index) {
  if (index < 0 || index >= burin_network_batch_count(network)) return 0;
  return network->batches[static_cast<std::size_t>(index)];
}

burin_status burin_network_bind(const burin_network* network, const void* const* inputs, void* const* outputs,
                                int batch, burin_network_run** run) {
  return guarded(__func__, [&](const Required& required) {
    burin_network_run*& result = required(run, "run");
    const burin::LoadedNetwork& ours = required(network, "network").network;
    const void* const* const first_input = &required(inputs, "inputs");
    void* const* const first_output = &required(outputs, "outputs");
    burin::NetworkIo io;
    io.inputs.assign(first_input, first_input + ours.inputs().size());
    io.outputs.assign(first_output, first_output + ours.outputs().size());
    io.batch = batch;
    result = new burin_network_run{ours.bind(io)};
  });
}

void burin_network_run_release(burin_network_run* run) { delete run; }

burin_status burin_network_launch(const burin_network_run* run, struct CUstream_st* stream) {
  return guarded(__func__, [&](const Required& required) { required(run, "run").run.launch(stream); });
}
