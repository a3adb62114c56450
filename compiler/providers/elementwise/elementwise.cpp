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
      for (const std::vector<float>* of_channels : {&affine->scale, &affine->shift}) {
        append_words(words, *of_channels);
        words.resize(static_cast<std::size_t>(round_up(std::ssize(words), stored_channels(task))));
      }
    }
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    const ChannelAffine* affine = task.get<ChannelAffine>();
    if (affine != nullptr) {
      set_function(plan, affine->then);
      plan.weights().run_words = 2 * stored_channels(task);
    } else {
      set_function(plan, *task.get<Elementwise>());
    }
    const std::int64_t plane = values_of(task.output, 1);
    set_integers(plan, {{"affine", affine != nullptr}, {"plane", affine != nullptr ? plane : 1}});
    const bool vectors = affine == nullptr || plane == 1 || plane % kVectorWords == 0 || place_words(task) > 1;
    set_pieces(plan, task, task.writes.words(), vectors, chosen);
    set_word_images(plan);
    return plan;
  }
};

}  // namespace

const Provider& elementwise_provider() { return the_only<ElementwiseProvider>(); }

}  // namespace burin
