// The same values in another element type or layout.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

bool holds_halves(const KernelTensor& tensor) { return tensor.element != ElementType::f32; }

constexpr int kLooseBytes = 2;

bool converts_places(const Task& task) { return has_places(task.reads[0].layout) || has_places(task.writes.layout); }

bool has_loose(const Task& task) { return task.reads[0].format().is_loose() || task.writes.format().is_loose(); }

// Values of an image that a thread accesses at once where one side's halves are loose: what fills the widest access to
// them; where the other side's channels lie side by side, a word, as long as channels are whole words.
int loose_run(const Task& task) {
  constexpr int kWordRun = kWordBytes / kLooseBytes;
  const bool reads_loose = task.reads[0].format().is_loose();
  const KernelTensor& loose = reads_loose ? task.reads[0] : task.writes;
  const KernelTensor& other = reads_loose ? task.writes : task.reads[0];
  const int run = std::min(loose.alignment, kWideAccessBytes) / kLooseBytes;
  if (place_words(task) > 1) return values_of(task.output, 1) % kWordRun == 0 ? std::min(run, kWordRun) : 1;
  return is_wide(other) ? run : std::min(run, kWordRun);
}

class ConvertProvider : public PlainProvider {
 public:
  ConvertProvider() : PlainProvider("convert") {}

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool can(const Task& task) const override {
    return task.get<Convert>() != nullptr && can_convert(task.reads[0].format(), task.writes.format());
  }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    TemplatePlan plan = start(task);
    set_integers(plan, {{"channels", task.output[0]},
                        {"plane", values_of(task.output, 1)},
                        {"brings_together", channels_together(task.writes.layout) > 1}});
    if (converts_places(task)) {
      set_places(plan, task);
    } else if (place_words(task) > 1) {
      set_octets(plan, task);
    } else if (has_loose(task)) {
      set_loose(plan, task, chosen);
    } else {
      set_words(plan, task, chosen);
    }
    set_word_images(plan);
    return plan;
  }

  std::optional<LibraryTask> library_task(const Kernel& kernel, int batch) const override {
    const TemplatePlan plan = usable_plan(kernel);
    const KernelTensor &from = plan.input(), &to = plan.output();
    if (from.element != to.element) return std::nullopt;  // libraries move values, and change no type by that
    const std::int64_t channels = plan.integers.at("channels"), pixels = plan.integers.at("plane");
    const std::optional<MovedTensor> moved = moved_between(from.layout, to.layout, batch, channels, pixels);
    return moved ? std::optional<LibraryTask>(*moved) : std::nullopt;
  }

 private:
  static void set_words(TemplatePlan& plan, const Task& task, const TemplatePlan* chosen) {
    const bool to_halves = holds_halves(task.writes), from_halves = holds_halves(task.reads[0]);
    const bool reads_fours = task.reads[0].layout == TensorLayout::nchw4;
    const bool writes_fours = task.writes.layout == TensorLayout::nchw4;
    const int input_alignment = plan.input().alignment, output_alignment = plan.output().alignment;
    // A block's threads count the filling of a tensor whose channels lie in fours, too, where it is written.
    const std::int64_t items = writes_fours ? task.writes.words() : values_of(task.output);
    set_pieces(plan, task, items, to_halves || from_halves, chosen);
    // Tensors of fours are said to be aligned whether or not four words are accessed at once.
    if (reads_fours) plan.input().alignment = input_alignment;
    if (writes_fours) plan.output().alignment = output_alignment;
  }

  // A thread has a place.
  static void set_places(TemplatePlan& plan, const Task& task) {
    constexpr int kSidePlaces = 4, kSidePixels = 8;  // convert.cu
    const bool reads = has_places(task.reads[0].layout);
    const TensorLayout layout = reads ? task.reads[0].layout : task.writes.layout;
    const std::int64_t places = place_count(layout, task.output[0]), pixels = values_of(task.output, 1);
    set_narrow(plan);
    set_integers(plan, {{"elements", values_of(task.output)}, {"vector", 1}, {"steps", 1}});
    const bool has_groups = has_channels_last(layout) && places > 1;
    set_items(plan, has_groups ? round_up(places, kSidePlaces) * round_up(pixels, kSidePixels) : places * pixels);
  }

  // A block has some pixels of eight channels of all images side by side, which go through shared memory.
  static void set_octets(TemplatePlan& plan, const Task& task) {
    constexpr int kTileRuns = 32, kTileChannels = 8, kLoosePixels = 2, kPlaceBytes = 16;  // convert.cu
    const int run = has_loose(task) ? loose_run(task) : 1, pixels = has_loose(task) ? kLoosePixels : 1;
    set_narrow(plan);
    for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
      if (tensor->format().is_loose()) tensor->alignment = run * kLooseBytes;
    }
    set_integers(plan, {{"elements", values_of(task.output)}, {"vector", run}, {"steps", 1}});
    LaunchGeometry& launch = plan.launch();
    launch.threads = kTileRuns * kTileChannels;
    launch.tiles_per_image =
        ceil_div(task.output[0], kTileChannels) * ceil_div(values_of(task.output, 1), kTileRuns * pixels);
    launch.shared_bytes = kSharedReserveBytes + launch.threads * pixels * kPlaceBytes;
  }

  // A block has the images that share words on the other side.
  static void set_loose(TemplatePlan& plan, const Task& task, const TemplatePlan* chosen) {
    const std::int64_t elements = values_of(task.output);
    const int run = loose_run(task);
    const int steps = chosen ? chosen->integers.at("steps") : choose_steps(task, elements / run, false);
    set_integers(plan, {{"elements", elements}, {"vector", run}, {"steps", steps}});
    set_items(plan, ceil_div(elements / run, steps));
    const bool wide = run > kVectorWords;
    for (KernelTensor* tensor : {&plan.input(), &plan.output()}) {
      tensor->alignment = tensor->format().is_loose() ? run * kLooseBytes : wide ? kWideAccessBytes : kWordBytes;
    }
  }
};

}  // namespace

const Provider& convert_provider() { return the_only<ConvertProvider>(); }

}  // namespace burin
