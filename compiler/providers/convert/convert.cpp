// The same values in another element type or layout.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

bool holds_halves(const KernelTensor& tensor) { return tensor.element != ElementType::f32; }

constexpr int kHalfBytes = 2;

// Values of an image that a thread has at once where one side's halves are loose: what fills the widest access to them,
// but a word of each image where eight share the other side's.
int loose_run(const Task& task) {
  constexpr int kWordRun = kWordBytes / kHalfBytes;
  const bool reads_loose = task.reads[0].format().is_loose();
  const KernelTensor& loose = reads_loose ? task.reads[0] : task.writes;
  const KernelTensor& other = reads_loose ? task.writes : task.reads[0];
  const int run = std::min(loose.alignment, kWideAccessBytes) / kHalfBytes;
  return is_wide(other) && element_words(other.layout) == 1 ? run : std::min(run, kWordRun);
}

class ConvertProvider : public PlainProvider {
 public:
  ConvertProvider() : PlainProvider("convert") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    return task.get<Convert>() != nullptr && can_convert(task.reads[0].format(), task.writes.format());
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    const bool to_halves = holds_halves(task.writes), from_halves = holds_halves(task.reads[0]);
    const bool writes_fours = task.writes.layout == TensorLayout::nchw4;
    set_integers(plan,
                 {{"channels", task.output[0]}, {"plane", values_of(task.output, 1)}, {"to_fours", writes_fours}});
    if (task.reads[0].format().is_loose() || task.writes.format().is_loose()) {
      set_loose(plan, task, chosen);
      return plan;
    }
    const int input_alignment = plan.input().alignment, output_alignment = plan.output().alignment;
    // A block's threads count the filling of a tensor whose channels lie in fours, too, where it is written.
    const std::int64_t items = writes_fours ? task.writes.words() : values_of(task.output);
    set_pieces(plan, task, items, (to_halves || from_halves) && place_words(task) == 1, chosen);
    // Tensors of fours are said to be aligned whether or not four words are accessed at once.
    if (task.reads[0].layout == TensorLayout::nchw4) plan.input().alignment = input_alignment;
    if (writes_fours) plan.output().alignment = output_alignment;
    if (place_words(task) > 1) {  // an element of eight images at once
      set_narrow(plan);
      plan.output().alignment = words_together(task.writes.layout) * kWordBytes;
    }
    set_word_images(plan);
    return plan;
  }

 private:
  // A block has the images that share words on the other side.
  static void set_loose(TemplatePlan& plan, const Task& task, const TemplatePlan* chosen) {
    const std::int64_t elements = values_of(task.output);
    const int run = loose_run(task);
    const int steps = chosen ? chosen->integers.at("steps") : choose_steps(task, elements / run, false);
    set_integers(plan, {{"elements", elements}, {"vector", run}, {"steps", steps}});
    set_items(plan, ceil_div(elements / run, steps));
    const bool wide = run > kVectorWords;
    for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
      const int word = words_together(tensor->layout) * kWordBytes;
      tensor->alignment = tensor->format().is_loose() ? run * kHalfBytes : wide ? kWideAccessBytes : word;
    }
    set_word_images(plan);
  }
};

}  // namespace

const Provider& convert_provider() { return the_only<ConvertProvider>(); }

}  // namespace burin
