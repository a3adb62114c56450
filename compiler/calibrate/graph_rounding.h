// What half precision does to one graph on sample images, in float64: how large its tensors become, what each layer,
// convolution or fully connected, is off by by itself, and what the outputs are.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/calibrate/sample_images.h"
#include "compiler/options.h"
#include "ir/network.h"

namespace burin {

// A tensor with values that a half type cannot hold, and the layers that would compute with it in that type.
struct Overflow {
  std::string tensor;       // or of a weight, its layer
  bool of_weights = false;  // which a layer has by itself
  double largest = 0;       // of its magnitudes
  ElementType element = ElementType::f16;
  std::vector<std::string> layers;
};

// Which tensors count as stored in half precision, where overflows and the errors of layers are looked for: those that
// in_formats() stores so; or those that in_usual_formats() stores so for many images as well, since in_formats() goes
// by estimates, which are others in another graph of the same network.
enum class StoredHalves { as_compiled, where_possible };

// All arguments of the constructor must outlive it. Images are taken one at a time, so that memory is what one takes.
class GraphRounding {
 public:
  // `network` is as simple as it gets. `options` say batch sizes, layouts and the precisions to begin with. `step` is
  // called for each image that went through the graph; it may be empty.
  GraphRounding(const Network& network, const CompileOptions& options, const SampleImages& images, StoredHalves stored,
                std::function<void()> step);

  // They are those of the precisions to begin with.
  const std::vector<Overflow>& overflows() const { return overflows_; }
  // Each layer that rounds has one (rounds() of ir/factor_type.h): on exact inputs, the root mean square of what
  // rounding inputs, weights and outputs moves its outputs by, as a share of that of the outputs.
  const std::map<std::string, double>& layer_errors() const { return layer_errors_; }

  // The largest ||outputs - exact|| / ||exact|| of an output and an image when the layers compute in
  // `precisions`: every tensor is rounded to the type that it is stored in, as are the weights and inputs of
  // layers to what they multiply; sums are exact. Of several batch sizes, that of the worst. Infinite where
  // something overflows.
  double error(const LayerPrecisions& precisions) const;

 private:
  std::vector<Network> graphs_of(const LayerPrecisions& precisions) const;
  std::vector<std::vector<double>> inputs_of(int image) const;
  void measure();
  void find_overflows(const std::vector<double>& largest);

  const Network& network_;
  const CompileOptions& options_;
  const SampleImages& images_;
  std::function<void()> step_;
  std::vector<bool> halves_;  // of each tensor: whether it is stored in half precision for some batch size
  std::vector<std::vector<std::vector<double>>> exact_;  // outputs of each image
  std::vector<Overflow> overflows_;
  std::map<std::string, double> layer_errors_;
};

}  // namespace burin
