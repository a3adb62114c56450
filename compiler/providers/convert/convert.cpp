// The same values in another element type or layout.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

bool is_plain(const KernelTensor& tensor) { return tensor.format().is_plain(); }

class ConvertProvider : public PlainProvider {
 public:
  ConvertProvider() : PlainProvider("convert") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    return task.get<Convert>() != nullptr && is_plain(task.reads[0]) != is_plain(task.writes);
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    const bool writes_fours = task.writes.layout == TensorLayout::nchw4;
    set_integers(plan,
                 {{"channels", task.output[0]}, {"plane", values_of(task.output, 1)}, {"to_fours", writes_fours}});
    // A block's threads count the filling of a tensor whose channels lie in fours, too, where it is written.
    const std::int64_t items = writes_fours ? task.writes.words() : values_of(task.output);
    // Where words lie side by side on one side, they do not on the other.
    const bool vectors = words_together(task.reads[0].layout) == 1 && words_together(task.writes.layout) == 1;
    set_pieces(plan, task, items, vectors, chosen);
    set_word_images(plan);
    return plan;
  }
};

}  // namespace

const Provider& convert_provider() { return the_only<ConvertProvider>(); }

}  // namespace burin
