// A function of each value, or a factor and a summand for each channel.
#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

class ElementwiseProvider : public PlainProvider {
 public:
  ElementwiseProvider() : PlainProvider("elementwise") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    return (task.get<Elementwise>() != nullptr || task.get<ChannelAffine>() != nullptr) && has_one_format(task);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    std::vector<std::uint32_t> words;
    if (const ChannelAffine* affine = task.get<ChannelAffine>()) {
      append_words(words, affine->scale);
      append_words(words, affine->shift);
    }
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    const ChannelAffine* affine = task.get<ChannelAffine>();
    if (affine != nullptr) {
      set_function(plan, affine->then);
      plan.weights().run_words = static_cast<std::int64_t>(affine->scale.size() + affine->shift.size());
    } else {
      set_function(plan, *task.get<Elementwise>());
    }
    const std::int64_t plane = plane_words(task);
    set_integers(plan, {{"affine", affine != nullptr}, {"plane", affine != nullptr ? plane : 1}});
    const bool vectors = affine == nullptr || plane == 1 || plane % kVectorWords == 0;
    set_pieces(plan, task, plan.output().words(), vectors, chosen);
    set_word_images(plan);
    return plan;
  }
};

}  // namespace

const Provider& elementwise_provider() { return the_only<ElementwiseProvider>(); }

}  // namespace burin
