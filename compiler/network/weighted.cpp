#include "compiler/network/weighted.h"

#include <algorithm>
#include <cmath>

namespace burin {

std::optional<Weighted> Weighted::of(Network& network, Operator& op) {
  Weighted view;
  view.linear_ = std::get_if<Linear>(&op.kind);
  if (const auto* convolution = std::get_if<Convolution>(&op.kind)) {
    view.layer_ = &network.layers[static_cast<std::size_t>(convolution->layer)];
  }
  if (!view.linear_ && !view.layer_) return std::nullopt;
  return view;
}

double Weighted::bias(int k) const {
  const std::vector<float>& values = linear_ ? linear_->bias : layer_->bias;
  return values.empty() ? 0.0 : values[static_cast<std::size_t>(k)];
}

bool Weighted::set_bias(const std::vector<double>& bias) {
  std::vector<float>& values = linear_ ? linear_->bias : layer_->bias;
  const auto is_zero = [](double x) { return x == 0; };
  if (values.empty() && std::all_of(bias.begin(), bias.end(), is_zero)) return true;
  std::vector<float> rounded(bias.begin(), bias.end());
  if (!std::all_of(rounded.begin(), rounded.end(), [](float x) { return std::isfinite(x); })) return false;
  values = std::move(rounded);
  if (layer_) layer_->shape.epilogue.bias = true;
  return true;
}

}  // namespace burin
