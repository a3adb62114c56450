// What providers share whose convolutions are computed from transformed patches and filters
// (templates/kernels/transformed_tiles.h): all but the transform and its roundings.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/providers/template_provider.h"
#include "compiler/providers/transformed_tiles.h"

namespace burin {

// Writes the words of a filter's points, TileTransform::words() of them, which it computes in float64: `filter` has
// the values of one output and one input channel.
using FilterTransform = std::function<void(std::span<const float> filter, std::span<float> points)>;

class TransformedProvider : public TemplateProvider {
 public:
  // `size`: the choice, a constant of the template, that says which of its transforms a plan has.
  TransformedProvider(std::string_view name, const char* size) : TemplateProvider(name), size_(size) {}

  bool is_dense() const final { return true; }
  NonFiniteReach non_finite_reach() const final { return NonFiniteReach::image; }

 protected:
  // The sizes of its transforms for filters of this shape; none: it computes no such filters.
  virtual std::vector<int> sizes(const ConvShape& shape) const = 0;
  virtual TileTransform transform(const ConvShape& shape, int size) const = 0;
  virtual FilterTransform filter_transform(const ConvShape& shape, int size) const = 0;
  // About what the worst output's error will be on random inputs, as transform_error() has it.
  virtual double error(const ConvLayer& layer, int size) const = 0;

  bool can(const Task& task) const final;
  std::vector<std::string> choices() const final;
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const final;
  double predict_us(const Task& task, const TemplatePlan& plan) const final;
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const final;
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan& plan) const final;

 private:
  std::vector<SizedTransform> allowed(const ConvLayer& layer) const;
  // The tiles of a plan; of no transform, where its size is none of the layer's.
  TransformedTiles tiles_of(const ConvLayer& layer, const TemplatePlan& plan) const;
  TemplatePlan plan_of(const Task& task, const TransformedTiles& tiles) const;

  const char* size_;
};

// About what the worst output's error will be on random inputs, as a share of the tolerance that is kept by every
// kernel (compiler/reference.h): it says nothing of how weights are distributed, and an error here is that of the whole
// tile. `roundings` are those of a transform whose errors go with the root of all squares of a filter, found by
// simulation. Where an output is the sum of nothing, and what its neighbours read would leave a rounding there, it is
// infinite, unless `nothing_is_exact`.
double transform_error(const ConvLayer& layer, double roundings, bool nothing_is_exact);

}  // namespace burin
