// Sum or product of two tensors, of which the second may have one value for each channel.
#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

class CombineProvider : public PlainProvider {
 public:
  CombineProvider() : PlainProvider("combine") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override { return task.get<Combine>() != nullptr && has_one_format(task); }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const std::int64_t plane = values_of(task.output, 1);
    const bool per_channel = values_of(task.inputs[1]) != values_of(task.output);
    // Whether a channel's value stands for a whole plane; where the plane is one value, four of them are one load.
    const bool spread = per_channel && plane > 1;
    TemplatePlan plan = start(task);
    const Combine& op = *task.get<Combine>();
    set_function(plan, op.then);
    set_integers(plan, {{"multiply", op.combination == Combination::multiply},
                        {"per_channel", per_channel},
                        {"plane", per_channel ? plane : 1}});
    const bool vectors = spread ? plane % kVectorWords == 0 || place_words(task) > 1 : is_wide(plan.residual());
    if (spread) plan.residual().alignment = words_together(task.writes.layout) * kWordBytes;
    set_pieces(plan, task, task.writes.words(), vectors, chosen);
    set_word_images(plan);
    return plan;
  }
};

}  // namespace

const Provider& combine_provider() { return the_only<CombineProvider>(); }

}  // namespace burin
