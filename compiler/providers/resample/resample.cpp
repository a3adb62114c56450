// Weighted sums of rows and columns, by tables.
#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/providers/template_provider.h"

namespace burin {
namespace {

class ResampleProvider : public PlainProvider {
 public:
  ResampleProvider() : PlainProvider("resample") {}

 protected:
  bool knows_formats() const override { return true; }
  bool knows_places() const override { return true; }
  bool can(const Task& task) const override { return task.get<Resample>() != nullptr && has_one_format(task); }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    const Resample& op = *task.get<Resample>();
    std::vector<std::uint32_t> words;
    for (const Taps* taps : {&op.rows, &op.cols}) {
      for (const std::int32_t index : taps->indices) words.push_back(static_cast<std::uint32_t>(index));
      append_words(words, taps->weights);
    }
    return words;
  }
  TemplatePlan plan(const Task& task, const TemplatePlan*) const override {
    const Resample& op = *task.get<Resample>();
    TemplatePlan plan = start(task);
    set_narrow(plan);
    set_integers(plan, {{"channels", place_count(task.reads[0].layout, task.inputs[0][0])},
                        {"in_rows", task.inputs[0][1]},
                        {"in_cols", task.inputs[0][2]},
                        {"out_rows", task.output[1]},
                        {"out_cols", task.output[2]},
                        {"row_taps", op.rows.count},
                        {"col_taps", op.cols.count}});
    // What halves cannot hold does not become infinite.
    const auto most =
        static_cast<float>(std::min<double>(largest_of(task.writes.element), std::numeric_limits<float>::max()));
    plan.reals["outside"] = std::clamp(op.outside, -most, most);
    plan.weights().run_words = 2 * std::ssize(op.rows.indices) + 2 * std::ssize(op.cols.indices);
    set_items(plan, stored_channels(task) * task.output[1] * task.output[2] * place_words(task));
    set_word_images(plan);
    return plan;
  }

  LaunchWork work_of(const Task& task, const TemplatePlan& plan) const override {
    constexpr double kLoadsPerClock = 14;  // of a multiprocessor, as those of pools
    const Resample& op = *task.get<Resample>();
    // A word of two halves is one load. Indices and weights come from the first cache, beside the pixels.
    const double outputs =
        static_cast<double>(values_of(task.output)) * task.batch / elements_per_word(task.writes.element);
    const double loads = outputs * (op.rows.count * (2.0 * op.cols.count + 1) + op.cols.count);
    LaunchWork work = PlainProvider::work_of(task, plan);
    work.busy_us = clocks_us(loads / (kLoadsPerClock * arch_of(task).multiprocessors), arch_of(task));
    work.waits = 2;  // for the indices, then for the pixels
    return work;
  }
};

}  // namespace

const Provider& resample_provider() { return the_only<ResampleProvider>(); }

}  // namespace burin
