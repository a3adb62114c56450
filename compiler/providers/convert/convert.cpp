// The same values in another element type or layout.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

bool is_plain(const KernelTensor& tensor) { return tensor.format().is_plain(); }
bool holds_halves(const KernelTensor& tensor) { return tensor.element != ElementType::f32; }

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
    const bool to_halves = holds_halves(task.writes), from_halves = holds_halves(task.reads[0]);
    const bool writes_fours = task.writes.layout == TensorLayout::nchw4;
    set_integers(plan,
                 {{"channels", task.output[0]}, {"plane", values_of(task.output, 1)}, {"to_fours", writes_fours}});
    const int input_alignment = plan.input().alignment, output_alignment = plan.output().alignment;
    // A block's threads count the filling of a tensor whose channels lie in fours, too, where it is written.
    const std::int64_t items = writes_fours ? task.writes.words() : values_of(task.output);
    set_pieces(plan, task, items, (to_halves || from_halves) && place_words(task) == 1, chosen);
    // Tensors of fours are said to be aligned whether or not four words are accessed at once.
    if (task.reads[0].layout == TensorLayout::nchw4) plan.input().alignment = input_alignment;
    if (writes_fours) plan.output().alignment = output_alignment;
    if (place_words(task) > 1) set_octets(plan, task);
    set_word_images(plan);
    return plan;
  }

 private:
  // A block has some pixels of eight channels of eight images, which go through shared memory.
  static void set_octets(TemplatePlan& plan, const Task& task) {
    constexpr int kTilePixels = 32, kTileChannels = 8, kPlaceBytes = 16;  // convert.cu
    set_narrow(plan);
    set_integers(plan, {{"steps", 1}});
    LaunchGeometry& launch = plan.launch();
    launch.threads = kTilePixels * kTileChannels;
    launch.tiles_per_image = ceil_div(task.output[0], kTileChannels) * ceil_div(values_of(task.output, 1), kTilePixels);
    launch.shared_bytes = kSharedReserveBytes + launch.threads * kPlaceBytes;
  }
};

}  // namespace

const Provider& convert_provider() { return the_only<ConvertProvider>(); }

}  // namespace burin
