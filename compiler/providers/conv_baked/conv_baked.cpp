// Every nonzero is an instruction, every weight an immediate: the search for a plan is in plan/, what fills the holes
// of the template (conv_baked.cu, template/) in slices/.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "compiler/providers/conv_baked/plan/code_size.h"
#include "compiler/providers/conv_baked/plan/constraints.h"
#include "compiler/providers/conv_baked/plan/cost_model.h"
#include "compiler/providers/conv_baked/plan/grouping.h"
#include "compiler/providers/conv_baked/plan/neighbours.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "compiler/providers/provider.h"
#include "compiler/providers/template_provider.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/sparse_pattern.h"

namespace burin {
namespace {

PlanRequest request_of(const Task& task, const ProposeOptions& options) {
  return {.batch = task.batch,
          .archs = task.archs,
          .constraints = parse_plan_constraints(options.plan),
          .input_layout = task.reads[0].layout,
          .output_layout = task.writes.layout,
          .precision = task.precision,
          .aligned_input = task.reads[0].alignment >= kWideAccessBytes,
          .skip_dead_tiles = task.activity_maps};
}

// The words from image to image of a slice of a larger tensor; 0: images follow one another.
std::int64_t slice_words(const KernelTensor& tensor) {
  return tensor.image_words == tensor.words() ? 0 : tensor.image_words;
}

// What follows from where the task's tensors lie.
void place(BakedPlan& plan, const Task& task) {
  plan.input_image_words = slice_words(task.reads[0]);
  plan.output_image_words = slice_words(task.writes);
  plan.residual_image_words = task.reads.size() > 1 ? slice_words(task.reads[1]) : 0;
}

[[noreturn]] void refuse(const Task& task, const std::string& why) {
  fail(ErrorKind::unsupported, "layer '{}': this plan cannot be used: {}", task.name, why);
}

void check_weights(const BakedPlan& plan, const ConvLayer& layer, const SparsePattern& pattern) {
  if (plan.precision != Precision::fp16x2) return;
  for (const Tap& tap : pattern.taps) {
    if (std::isfinite(rounded(ElementType::f16, tap.value))) continue;
    fail(ErrorKind::unsupported,
         "layer '{}': the weight of output {}, channel {}, tap ({}, {}) is {}, with fp16x2 the largest is {}: weights "
         "are rounded to FP16; with fp16 they are not",
         layer.name, tap.k, tap.c, tap.r, tap.s, tap.value, largest_of(ElementType::f16));
  }
}

// Checks that the plan is legal on all architectures and for exactly this task.
void check_plan(const BakedPlan& plan, const Task& task, const SparsePattern& pattern) {
  const ConvLayer& layer = *task.layer;
  std::vector<std::string> faults = verify(plan, layer.shape, pattern);
  for (std::size_t i = 0; faults.empty() && i < task.archs.size(); ++i) {
    BakedPlan on_arch = plan;
    on_arch.arch = task.archs[i];
    faults = verify(on_arch, layer.shape);
  }
  if (!faults.empty()) refuse(task, fmt::format("{}", fmt::join(faults, "; ")));
  if (plan.batch != task.batch) {
    refuse(task, fmt::format("it is for batch {}, and batch {} is asked for", plan.batch, task.batch));
  }
  const KernelForm form = form_of(plan, layer.shape);
  const auto is_as = [](const KernelTensor& plans, const KernelTensor& tasks) {
    KernelTensor aligned = tasks;
    aligned.alignment = plans.alignment;
    return aligned == plans && tasks.alignment >= plans.alignment;
  };
  const KernelTensor* residual = form.find(TensorRole::residual);
  if (!is_as(form.input(), task.reads[0]) || !is_as(form.output(), task.writes) ||
      (residual != nullptr && !is_as(*residual, task.reads.at(1)))) {
    refuse(task, "it reads or writes tensors that lie elsewhere than the task's");
  }
  check_weights(plan, layer, pattern);
}

class ConvBakedProvider : public Provider {
 public:
  ConvBakedProvider() : Provider(kBakedProvider) {}

  // A thread computes the images that share a word.
  bool can_do(const Task& task) const override {
    const auto has_words = [](const KernelTensor& tensor) { return element_words(tensor.layout) == 1; };
    return task.layer != nullptr && !task.layer->shape.epilogue.filters() &&
           std::ranges::all_of(task.reads, has_words) && has_words(task.writes);
  }

  bool searches_plans() const override { return true; }

  // Compiling takes a fifth of a millisecond for each of its nonzeros.
  bool takes_long_to_make(const Task& task) const override {
    constexpr std::int64_t kManyNonzeros = 20'000;
    return nonzeros_of(task) > kManyNonzeros;
  }

  void check_choices(const std::string& plan) const override { parse_plan_constraints(plan); }

  std::vector<Candidate> propose(const Task& task, const ProposeOptions& options) const override {
    if (!can_do(task)) return {};
    const SparsePattern pattern = analyse(*task.layer);
    std::vector<Candidate> candidates;
    for (BakedPlan& plan :
         make_plans(*task.layer, pattern, request_of(task, options), static_cast<std::size_t>(options.count))) {
      place(plan, task);
      candidates.push_back(candidate_of(task, plan));
    }
    return candidates;
  }

  std::vector<Candidate> neighbours(const Task& task, const std::string& text,
                                    const ProposeOptions& options) const override {
    const SparsePattern pattern = analyse(*task.layer);
    const BakedPlan here = parse_baked_plan(text);
    std::vector<Candidate> candidates;
    for (const PlanConstraints& constraints :
         neighbours_of(here, parse_plan_constraints(options.plan), group_options(task.layer->shape, pattern))) {
      if (static_cast<int>(candidates.size()) >= options.count) break;
      PlanRequest request = request_of(task, options);
      request.constraints = constraints;
      try {
        BakedPlan plan = make_plan(*task.layer, pattern, request);
        place(plan, task);
        Candidate candidate = candidate_of(task, plan);
        if (candidate.plan != text && std::ranges::find(candidates, candidate) == candidates.end()) {
          candidates.push_back(std::move(candidate));
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;  // no plan keeps these constraints: there is no such neighbour
      }
    }
    return candidates;
  }

  std::string brief(const std::string& text) const override { return print(constraints_of(parse_baked_plan(text))); }

  std::string placed(const std::string& text, const Task& task) const override {
    BakedPlan plan = parse_baked_plan(text);
    // What was measured on whole tensors may need a slice to be aligned that is not.
    const PlanRequest request = request_of(task, {});
    if (plan.staging == Staging::bulk && !request.aligned_input) {
      plan = make_plan(*task.layer, analyse(*task.layer), request);
    }
    place(plan, task);
    return print(plan);
  }

  std::vector<double> launch_us(const Task& task, const std::string& text,
                                const std::vector<int>& batches) const override {
    BakedPlan plan = parse_baked_plan(text);
    const std::vector<SliceWork> work = work_of(task, plan);
    std::vector<double> us;
    for (const int batch : batches) {
      plan.batch = batch;
      us.push_back(launch_cost(figures_of(plan, task.layer->shape, work), arch_of(task)).total_us);
    }
    return us;
  }

  std::int64_t code_bytes(const Task& task, const std::string& text) const override {
    const BakedPlan plan = parse_baked_plan(text);
    return burin::code_bytes(plan, task.layer->shape, work_of(task, plan));
  }

  bool bakes_weights() const override { return true; }
  NonFiniteReach non_finite_reach() const override { return NonFiniteReach::nonzeros; }

  SpecialisedModule module_of(const Kernel& kernel, const ConvLayer* layer) const override {
    BURIN_CHECK(layer != nullptr, "a baked kernel without its layer");
    const BakedPlan plan = parse_baked_plan(kernel.plan);
    const SparsePattern pattern = analyse(*layer);
    if (const auto faults = verify(plan, layer->shape, pattern); !faults.empty()) {
      fail(ErrorKind::bad_input, "{}: its plan cannot be used: {}", kernel.owner(), faults.front());
    }
    check_weights(plan, *layer, pattern);
    return specialise_baked(*layer, pattern, plan, kernel.entry_name());
  }

  Recipe make(const Task& task, const std::string& text) const override {
    if (task.layer == nullptr) refuse(task, "it is a plan of a convolution");
    const auto plan = std::make_shared<const BakedPlan>(parse_baked_plan(text));
    const auto pattern = std::make_shared<const SparsePattern>(analyse(*task.layer));
    check_plan(*plan, task, *pattern);
    const ConvLayer& layer = *task.layer;
    Recipe recipe;
    recipe.symbol = kernel_symbol(layer.name, *plan);
    recipe.form = form_of(*plan, layer.shape);
    recipe.plan_short = describe(*plan);
    recipe.precision = plan->precision;
    recipe.template_text = [plan, &layer] { return print_template(*plan, layer.shape); };
    recipe.specialise = [plan, pattern, &layer](const std::string& symbol) {
      return specialise_baked(layer, *pattern, *plan, symbol);
    };
    return recipe;
  }

 private:
  static std::vector<SliceWork> work_of(const Task& task, const BakedPlan& plan) {
    const ConvShape& shape = task.layer->shape;
    const auto by_group = count_work(analyse(*task.layer), group_of_outputs(plan.groups, shape.out_channels),
                                     plan.groups.size(), channels_together(plan.input_layout));
    return slice_work(plan, by_group, shape.in_channels);
  }

  Candidate candidate_of(const Task& task, const BakedPlan& plan) const {
    return {std::string(name()),
            print(plan),
            kernel_symbol(task.layer->name, plan),
            {plan.predicted_us, Estimate::Source::model}};
  }
};

}  // namespace

const Provider& conv_baked_provider() { return the_only<ConvBakedProvider>(); }

}  // namespace burin
