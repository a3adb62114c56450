#include "compiler/calibrate/count_zeros.h"

#include <span>

#include "compiler/calibrate/sample_images.h"
#include "compiler/network/reference_network.h"

namespace burin {
namespace {

std::int64_t plane_of(const ConvLayer& layer) { return std::int64_t{layer.shape.in_h} * layer.shape.in_w; }

// The convolutions of a graph and their layers.
template <typename Visit>
void for_each_convolution(const Network& network, const Visit& visit) {
  for (const Operator& op : network.operators) {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution != nullptr) visit(op, network.layers[static_cast<std::size_t>(convolution->layer)]);
  }
}

class Counting {
 public:
  void run(const Network& graph, const SampleImages& images, const std::function<void()>& step) {
    for (int image = 0; image < images.count; ++image) {
      std::vector<std::span<const float>> inputs;
      for (const std::vector<float>& all : images.inputs) {
        const std::size_t size = all.size() / static_cast<std::size_t>(images.count);
        inputs.push_back(std::span(all).subspan(static_cast<std::size_t>(image) * size, size));
      }
      run_reference(graph, 1, inputs, [&](int tensor, std::span<const double> values) {
        for_each_convolution(graph, [&](const Operator& op, const ConvLayer& layer) {
          if (op.inputs.front() == tensor) counters_[layer.name].add(values, plane_of(layer));
        });
      });
      step();
    }
  }

  LayerZeros zeros() const {
    LayerZeros zeros;
    for (const auto& [layer, counter] : counters_) zeros[layer] = counter.zeros();
    return zeros;
  }

 private:
  std::map<std::string, ZeroCounter> counters_;
};

}  // namespace

LayerZeros count_zeros(const Network& network, const std::vector<CalibrationInput>& inputs,
                       const std::function<void(int done, int all)>& progress) {
  const SampleImages images = sample_images(network, inputs, "--activations");
  const int all = images.count * (network.separate ? static_cast<int>(network.operators.size()) : 1);
  int done = 0;
  const auto step = [&] {
    if (progress) progress(++done, all);
  };
  Counting counting;
  if (!network.separate) {
    counting.run(network, images, step);
    return counting.zeros();
  }
  for (const Operator& op : network.operators) {
    const Network graph = network_of(network, op);
    counting.run(graph, images_of(graph, network, images), step);
  }
  return counting.zeros();
}

LayerZeros made_up_zeros(const Network& network, const SyntheticZeros& zeros) {
  LayerZeros layers;
  for_each_convolution(network, [&](const Operator&, const ConvLayer& layer) {
    layers[layer.name] = count_synthetic(zeros, layer.shape.in_channels, layer.shape.in_h, layer.shape.in_w);
  });
  return layers;
}

}  // namespace burin
