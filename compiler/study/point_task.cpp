#include "compiler/study/point_task.h"

#include <algorithm>
#include <utility>

#include "compiler/choose/choose.h"
#include "compiler/program_tasks.h"
#include "compiler/synthetic_zeros.h"
#include "ir/error.h"

namespace burin {
namespace {

Network network_of(const StudyLayer& layer, std::uint64_t seed, const CompileOptions& options) {
  Network network;
  network.source = "study";
  network.layers = {with_weights(layer, seed)};
  separate_layers(network);
  network.separate = false;  // what lies around the layer in a network follows from it
  return in_formats(std::move(network), options, layer.batch);
}

Task only_convolution(const Network& network, const CompileOptions& options, int batch) {
  std::vector<Task> tasks = layer_tasks(network, options, batch);
  BURIN_CHECK(tasks.size() == 1 && tasks.front().layer != nullptr, "a point of a study is {} tasks", tasks.size());
  return std::move(tasks.front());
}

}  // namespace

PointTask::PointTask(const StudyLayer& layer, std::uint64_t seed, const CompileOptions& options)
    : network_(network_of(layer, seed, options)), task_(only_convolution(network_, options, layer.batch)) {
  const ConvShape& shape = layer.shape;
  if (!layer.input_zeros) return;
  task_.zeros = count_synthetic({.share = *layer.input_zeros}, shape.in_channels, shape.in_h, shape.in_w);
}

}  // namespace burin
