// Local response normalization across channels.
#include <algorithm>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class LrnProvider : public PlainProvider {
 public:
  LrnProvider() : PlainProvider("lrn") {}

 protected:
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override { return task.get<Lrn>() != nullptr && has_one_format(task); }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Lrn& op = *task.get<Lrn>();
    TemplatePlan plan = start(task);
    set_narrow(plan);
    constexpr int kThreadChannels = 8, kMaxHeld = 40;  // lrn.cu
    const std::int64_t channels = task.output[0], stored = stored_channels(task), plane = values_of(task.output, 1);
    const int held = op.size <= kMaxHeld - kThreadChannels ? kThreadChannels : 1;
    const std::int64_t thread_channels = std::min<std::int64_t>(held, stored);
    set_integers(plan,
                 {{"channels", channels}, {"plane", plane}, {"size", op.size}, {"thread_channels", thread_channels}});
    plan.reals["scale"] = op.alpha / static_cast<float>(op.size);
    plan.reals["exponent"] = -op.beta;
    plan.reals["bias"] = op.bias;
    set_items(plan, ceil_div(stored, thread_channels) * plane * place_words(task));
    set_word_images(plan);
    return plan;
  }
  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.waits = 2;  // for the first channels of its window, then for those that follow
    return work;
  }
};

}  // namespace

const Provider& lrn_provider() { return the_only<LrnProvider>(); }

}  // namespace burin
