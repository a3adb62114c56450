#include "compiler/choose/choose.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "compiler/choose/format_choice.h"
#include "compiler/kernel_cache.h"
#include "compiler/launch_time.h"
#include "compiler/program_tasks.h"
#include "ir/arch.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

// Whether a provider is asked that nobody has named.
bool is_asked(const Provider& provider, const Task& task) { return !provider.needs_zeros() || task.zeros; }

// The provider that --kernels names for the task, which of fully connected layers it does one by one; else kAutoKind.
std::string_view asked_kind(const Task& task, const CompileOptions& options) {
  if (task.layer != nullptr) return options.kernels.of(task.name);
  const auto named = options.kernels.of_layers.find(task.name);
  return task.get<Linear>() == nullptr || named == options.kernels.of_layers.end() ? kAutoKind : named->second;
}

// Those that may make the task's kernel, by CompileOptions::kernels and ::plan; where two are estimated to take the
// same time, the first is taken, and the one that searches plans is last.
std::vector<const Provider*> allowed_providers(const Task& task, const CompileOptions& options) {
  std::vector<const Provider*> allowed = providers();
  std::string_view kind = asked_kind(task, options);
  // Choices are of baked plans.
  if (task.layer != nullptr && kind == kAutoKind && !options.plan.empty()) kind = kBakedProvider;
  std::erase_if(allowed, [&](const Provider* provider) {
    return kind == kAutoKind ? !is_asked(*provider, task) : provider->name() != kind;
  });
  std::ranges::stable_sort(allowed, {}, &Provider::searches_plans);
  return allowed;
}

// What was measured for the task; null: nothing, or of a provider that may not make its kernel.
const TunedKernel* tuned_for(const Task& task, const CompileOptions& options) {
  const TunedKernel* tuned = find_tuned(options, task);
  if (tuned == nullptr) return nullptr;
  const auto is_measured = [&](const Provider* provider) { return provider->name() == tuned->candidate.provider; };
  return std::ranges::any_of(allowed_providers(task, options), is_measured) ? tuned : nullptr;
}

// A candidate that was measured on tensors of its own, for those of the task.
Candidate placed(Candidate candidate, const Task& task) {
  candidate.plan = find_provider(candidate.provider)->placed(candidate.plan, task);
  return candidate;
}

// The fastest of each provider, by measurement.
Choice measured_choice(const Task& task, const TunedKernel& tuned) {
  Choice choice;
  choice.candidate = placed(tuned.candidate, task);
  choice.options = {{tuned.candidate.provider, tuned.candidate.estimate.us, true}};
  for (const TuningCandidate& candidate : tuned.evidence.candidates) {
    if (!candidate.fault.empty()) continue;
    const auto known = std::ranges::find(choice.options, candidate.provider, &KernelOption::provider);
    if (known == choice.options.end()) {
      choice.options.push_back({candidate.provider, candidate.us, true});
    } else {
      known->us = std::min(known->us, candidate.us);
    }
  }
  std::ranges::stable_sort(choice.options.begin() + 1, choice.options.end(), {}, &KernelOption::us);
  return choice;
}

// All candidates, in the order of the providers. An error of one is the task's only where no other can do it.
std::vector<Candidate> propose_all(const Task& task, const CompileOptions& options, int count,
                                   const std::vector<const Provider*>& allowed) {
  std::vector<Candidate> candidates;
  std::optional<Error> fault;
  for (const Provider* provider : allowed) {
    const ProposeOptions asked{.count = count, .plan = choices_for(*provider, options)};
    try {
      for (Candidate& candidate : provider->propose(task, asked)) candidates.push_back(std::move(candidate));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      fault = error;
    }
  }
  if (candidates.empty() && fault) throw *fault;
  return candidates;
}

std::vector<Candidate> candidates_of(const Task& task, const CompileOptions& options, int count) {
  std::vector<Candidate> candidates = propose_all(task, options, count, compared_by_models(task, options));
  const std::string& kind = options.kernels.of(task.name);
  if (!candidates.empty() || kind == kAutoKind) return candidates;
  if (task.get<Linear>() != nullptr) {
    fail(ErrorKind::unsupported, "--kernels {}={}: {} cannot compute {}", task.name, kind, kind, task.description);
  }
  if (task.layer == nullptr) return candidates;
  if (options.kernels.of_layers.contains(task.name)) {
    fail(ErrorKind::unsupported, "--kernels {}={}: {} cannot compute {}; baked code can", task.name,
         kind.substr(kind.find('_') + 1), kind, describe(task.layer->shape));
  }
  return propose_all(task, options, count, {find_provider(kBakedProvider)});
}

double best_us(const std::vector<Candidate>& candidates) {
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates) best = std::min(best, candidate.estimate.us);
  return best;
}

// Asks all providers but the one whose proposals take their time.
std::vector<Candidate> quick_candidates(const Task& task) {
  std::vector<Candidate> candidates;
  for (const Provider* provider : providers()) {
    if (provider->searches_plans() || provider->needs_measuring() || !is_asked(*provider, task)) continue;
    for (Candidate& candidate : provider->propose(task, {})) {
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

// Whether it is open in which formats a layer's tensors lie in a network.
bool has_free_layout(const ConvLayer& layer, const CompileOptions& options) {
  return factors_of(options.precisions.of(layer.name)) != FactorType::f32 && !options.layout;
}

// Floats in lines are multiplied by warpgroups, which code for sm_90 alone has: elsewhere depthwise layers alone would
// be in lines, between conversions.
bool multiplies_lines(TensorLayout lines, const CompileOptions& options) {
  return lines != TensorLayout::n4c8hw || options.archs == std::vector<std::string>{"sm_90"};
}

// The convolution in the formats in which a network has it. They follow the precision and the layouts, or where
// `is_free` the batch size; where nobody may compute so, a provider that was asked for gets halves as it knows them,
// and others FP32.
Task formatted_task(const Operator& op, const ConvLayer& layer, const CompileOptions& options, int batch,
                    bool is_free) {
  const bool is_asked = options.kernels.of(layer.name) != kAutoKind;
  const TensorLayout lines =
      options.precisions.of(layer.name) == Precision::tf32 ? TensorLayout::n4c8hw : TensorLayout::n8c8hw;
  std::vector<std::optional<TensorLayout>> layouts;
  // For few images FP32 is as fast to move, and most kernels know it.
  if (is_free && (batch >= kLeastImages || !is_asked)) {
    layouts.emplace_back(batch >= kLeastImages && multiplies_lines(lines, options) ? lines : TensorLayout::nchw);
  } else {
    layouts.push_back(options.layout);
  }
  if (is_asked) layouts.insert(layouts.end(), {lines, TensorLayout::nchw});
  CompileOptions tried = options;
  for (const std::optional<TensorLayout> layout : layouts) {
    tried.layout = layout;
    Task task = task_of(op, layer, batch, tried);
    const auto can_do = [&](const Provider* provider) { return provider->can_do(task); };
    if (std::ranges::any_of(allowed_providers(task, options), can_do)) return task;
  }
  tried.layout = TensorLayout::nchw;
  tried.output_layout.reset();
  return task_of(op, layer, batch, tried);
}

OperatorFormats formats_for(const Operator& op, const ConvLayer& layer, const CompileOptions& options, int batch,
                            bool is_free) {
  const Task task = formatted_task(op, layer, options, batch, is_free);
  return {task.reads[0].format(), task.writes.format()};
}

double conversion_us(const std::vector<std::int64_t>& shape, const TensorFormat& from, const TensorFormat& to,
                     int batch, const CompileOptions& options) {
  const Operator op{.name = "convert", .kind = Convert{}, .inputs = {}, .output = 0};
  return best_us(quick_candidates(task_of(op, {shape}, shape, from, to, batch, options)));
}

std::vector<std::int64_t> pooled_image(const ConvShape& pooled) {
  return {pooled.out_channels, pooled.out_h(), pooled.out_w()};
}

// What the pool of a layer writes as a kernel of its own, of what the convolution stores in `format`: where it can, as
// of a whole image, what all can read.
TensorFormat written_alone(const ConvShape& pooled, const TensorFormat& format) {
  const OperatorKind kind = *pooled.epilogue.pool;
  const std::vector<std::int64_t> input = {pooled.out_channels, pooled.conv_h(), pooled.conv_w()};
  const bool keeps = can_take(kind, input, format, format) && !can_take(kind, input, format, {});
  return keeps ? format : TensorFormat();
}

// What that kernel takes.
double pool_alone_us(const ConvShape& pooled, const TensorFormat& format, int batch, const CompileOptions& options) {
  const Operator op{.name = "pool", .kind = *pooled.epilogue.pool, .inputs = {}, .output = 0};
  const std::vector<std::int64_t> input = {pooled.out_channels, pooled.conv_h(), pooled.conv_w()};
  const Task task = task_of(op, {input}, pooled_image(pooled), format, written_alone(pooled, format), batch, options);
  return best_us(quick_candidates(task));
}

// One kernel may take so much of what the two take, where several providers' models say it: estimates are off by some
// percent.
constexpr double kPoolGain = 0.95;

// What a layer and the pool behind it take, as one kernel and as two, in the formats in which a network has them.
class PoolTimes {
 public:
  PoolTimes(const ConvLayer& layer, const Pool& pool, const CompileOptions& options)
      : options_(options), layer_(layer), pooled_(layer) {
    pooled_.shape.epilogue.pool = pool;
  }

  bool is_plain(int batch) const { return task_of(layer_, batch).writes.format().is_plain(); }

  bool apart_is_faster(int batch) const {
    const Task alone = task_of(layer_, batch), together = task_of(pooled_, batch);
    const double pool_us = pool_alone_us(pooled_.shape, alone.writes.format(), batch, options_);
    if (!alone.writes.format().is_plain()) {
      if (together.writes.format() != alone.writes.format()) return true;   // nobody pools in this format
      const double gain = quick_candidates(alone).empty() ? 1 : kPoolGain;  // baked code beside itself
      return estimated_us(together, options_) + conversion_behind_us(together, alone) >=
             gain * (estimated_us(alone, options_) + pool_us);
    }
    // Where they stay together, the options' cache has what their kernel is chosen from.
    return best_us(quick_candidates(alone)) + pool_us < estimated_us(together, options_);
  }

  // What one provider's kernels take: of those that only measurement knows, nothing.
  struct Ways {
    std::optional<double> apart, together;
  };
  Ways ways_of(const Provider& provider, int batch) const {
    const auto us = [&](const Task& task) -> std::optional<double> {
      // What takes its time to propose is remembered.
      const double least =
          provider.searches_plans() ? estimated_us(task, options_) : best_us(provider.propose(task, {}));
      return std::isfinite(least) ? std::optional(least) : std::nullopt;
    };
    const Task alone = task_of(layer_, batch), together = task_of(pooled_, batch);
    Ways ways{us(alone), us(together)};
    if (ways.together) *ways.together += conversion_behind_us(together, alone);
    if (ways.apart) *ways.apart += pool_alone_us(pooled_.shape, alone.writes.format(), batch, options_);
    return ways;
  }

 private:
  // A conversion of what one kernel stores to what the pool by itself would store, whoever reads it: where all readers
  // want halves a mean by itself has halves, too, and nothing is converted, which is not looked at here.
  double conversion_behind_us(const Task& together, const Task& alone) const {
    const TensorFormat stored = together.writes.format(), wanted = written_alone(pooled_.shape, alone.writes.format());
    return stored == wanted ? 0 : conversion_us(pooled_image(pooled_.shape), stored, wanted, together.batch, options_);
  }

  Task task_of(const ConvLayer& layer, int batch) const {
    return formatted_task(op_, layer, options_, batch, has_free_layout(layer, options_));
  }

  const CompileOptions& options_;
  const ConvLayer& layer_;
  ConvLayer pooled_;
  Operator op_{.name = layer_.name, .kind = Convolution{}, .inputs = {}, .output = 0};
};

// Some providers cannot pool, and what lies in windows of two blocks is computed twice. Where tensors are plain one
// always can; the layer and the pool apart are estimated to take less time together, for every batch size. Else one
// kernel must be faster for every batch size: those of one graph. Where CompileOptions::kernels asks for a provider,
// its kernels alone are compared, if it can pool.
bool stays_apart(const ConvLayer& layer, const Pool& pool, const CompileOptions& options) {
  if (options.skip_dead_tiles) return true;  // nobody knows an activity map of what was pooled
  const PoolTimes times(layer, pool, options);
  const auto is_plain = [&](int batch) { return times.is_plain(batch); };
  const bool all_plain = std::ranges::all_of(options.graph_batches(), is_plain);
  const std::string& kind = options.kernels.of(layer.name);
  // Choices in --plan were made for the layer with its pool.
  if (kind == kBakedProvider && !options.plan.empty()) return false;
  if (kind != kAutoKind) {
    std::vector<PoolTimes::Ways> ways;
    for (const int batch : options.graph_batches()) ways.push_back(times.ways_of(*find_provider(kind), batch));
    return std::ranges::any_of(ways, [](const auto& way) { return way.apart && !way.together; }) ||
           std::ranges::all_of(ways, [](const auto& way) { return way.apart && *way.apart < *way.together; });
  }
  const auto apart_is_faster = [&](int batch) { return times.apart_is_faster(batch); };
  return all_plain ? std::ranges::all_of(options.graph_batches(), apart_is_faster)
                   : std::ranges::any_of(options.graph_batches(), apart_is_faster);
}

// The least that us_of(task) says of a convolution in a network. Of few images in halves, what it reads and what it
// writes may lie in places (choose_formats()).
template <typename UsOf>
double least_us(const ConvLayer& layer, const CompileOptions& options, int batch, UsOf us_of) {
  const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  const bool is_free = has_free_layout(layer, options);
  double us = us_of(formatted_task(op, layer, options, batch, is_free));
  const Precision precision = options.precisions.of(layer.name);
  if (!is_free || !is_half(precision) || batch >= kLeastImages) return us;
  const TensorFormat plain, places = {element_of(precision), TensorLayout::nchw8};
  for (const auto& [input, output] : {std::pair(places, plain), {plain, places}, {places, places}}) {
    us = std::min(us, us_of(task_of(op, layer, input, output, batch, options)));
  }
  return us;
}

// What the best kernel of a convolution in a network is estimated to take; infinite where nobody can compute it.
double convolution_us(const ConvLayer& layer, const CompileOptions& options, int batch) {
  return least_us(layer, options, batch, [&](const Task& task) { return estimated_us(task, options); });
}

// The same without those whose proposals take their time, which is never less; --kernels does not count.
double quick_us(const ConvLayer& layer, const CompileOptions& options, int batch) {
  return least_us(layer, options, batch, [](const Task& task) { return best_us(quick_candidates(task)); });
}

// What a convolution in a network may read and write, that which formats_for() says first. A provider that was asked
// for computes so, or in places.
std::vector<OperatorFormats> ways_of(const Operator& op, const ConvLayer& layer, const CompileOptions& options,
                                     int batch) {
  const bool is_free = has_free_layout(layer, options);
  std::vector<OperatorFormats> ways = {formats_for(op, layer, options, batch, is_free)};
  const bool is_asked = options.kernels.of(layer.name) != kAutoKind;
  if (!is_free || (is_asked && batch >= kLeastImages)) return ways;
  const auto add = [&](const OperatorFormats& formats) {
    if (std::ranges::find(ways, formats) == ways.end()) ways.push_back(formats);
  };
  const Precision precision = options.precisions.of(layer.name);
  const TensorFormat plain, places = {element_of(precision), TensorLayout::nchw8};
  if (!is_asked) add({plain, plain});
  if (is_half(precision) && batch < kLeastImages) {
    for (const OperatorFormats& formats : {OperatorFormats{places, plain}, {plain, places}, {places, places}}) {
      add(formats);
    }
  }
  return ways;
}

// The format with channels last that a library's calls read best.
TensorFormat channels_last(Precision precision) {
  return format_of(precision, is_half(precision) ? TensorLayout::nhwc8 : TensorLayout::nhwc4);
}

// The same, and with its channels last, as calls of libraries read best, where someone may compute so.
std::vector<OperatorFormats> measurable_ways_of(const Operator& op, const ConvLayer& layer,
                                                const CompileOptions& options, int batch) {
  std::vector<OperatorFormats> ways = ways_of(op, layer, options, batch);
  if (!has_free_layout(layer, options)) return ways;
  const TensorFormat last = channels_last(options.precisions.of(layer.name));
  const Task task = task_of(op, layer, last, last, batch, options);
  const auto can_do = [&](const Provider* provider) { return provider->can_do(task); };
  if (std::ranges::any_of(allowed_providers(task, options), can_do)) ways.push_back({last, last});
  return ways;
}

FormatRule rule_of(const CompileOptions& options, int batch) {
  const auto found = options.format_rules.find(batch);
  return found == options.format_rules.end() ? usual_rule(batch) : found->second;
}

// What convolutions read and write that a library can be called for with their channels last, by their names.
std::map<std::string, OperatorFormats> formats_of_calls(const Network& network, const CompileOptions& options,
                                                        int batch) {
  std::map<std::string, OperatorFormats> formats;
  if (!options.libraries) return formats;
  for (const Operator& op : network.operators) {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution == nullptr) continue;
    const ConvLayer& layer = network.layers[static_cast<std::size_t>(convolution->layer)];
    if (!has_free_layout(layer, options)) continue;
    const TensorFormat last = channels_last(options.precisions.of(layer.name));
    const Task task = task_of(op, layer, last, last, batch, options);
    const auto can_call = [&](const Provider* provider) {
      return provider->needs_measuring() && provider->can_do(task);
    };
    if (std::ranges::any_of(allowed_providers(task, options), can_call)) formats[op.name] = {last, last};
  }
  return formats;
}

// Other formats must gain so much of what the usual ones of many images take: in networks the kernels of plain tensors
// take some 1.3 times what their models say, beside those of lines (docs/experiments.md). Else estimates are off by
// some percent.
constexpr double kCarefulGain = 0.75, kEstimatedGain = 0.95;

// What a choice of formats goes by where nothing was measured: the models' estimates.
FormatTimes format_times(const CompileOptions& options, int batch) {
  FormatTimes times;
  const double gain = rule_of(options, batch) == FormatRule::careful ? kCarefulGain : kEstimatedGain;
  times.convolution = [&options, batch, gain](const Operator& op, const ConvLayer& layer,
                                              const OperatorFormats& formats) {
    const double us = estimated_us(task_of(op, layer, formats.input, formats.output, batch, options), options);
    const bool is_usual =
        batch < kLeastImages || formats == formats_for(op, layer, options, batch, has_free_layout(layer, options));
    return is_usual ? us : us / gain;
  };
  times.other = [&options, batch](const Network& network, const Operator& op, const OperatorFormats& formats) {
    std::vector<std::vector<std::int64_t>> inputs;
    for (const int input : op.inputs) inputs.push_back(network.tensors[static_cast<std::size_t>(input)].shape);
    const auto& output = network.tensors[static_cast<std::size_t>(op.output)].shape;
    return best_us(quick_candidates(task_of(op, inputs, output, formats.input, formats.output, batch, options)));
  };
  times.conversion = [&options, batch](const std::vector<std::int64_t>& shape, const TensorFormat& from,
                                       const TensorFormat& to) {
    return conversion_us(shape, from, to, batch, options);
  };
  return times;
}

// How much longer a layer's kernels took than the models say, of those that the models choose, which are the first of
// the evidence; of several formats the geometric mean.
double models_are_off_by(const std::vector<const TunedKernel*>& tuned) {
  double sum = 0;
  int known = 0;
  for (const TunedKernel* kernel : tuned) {
    if (kernel->evidence.candidates.empty()) continue;
    const TuningCandidate& by_models = kernel->evidence.candidates.front();
    if (!by_models.fault.empty() || by_models.us <= 0 || by_models.predicted_us <= 0) continue;
    sum += std::log(by_models.us / by_models.predicted_us);
    ++known;
  }
  return known == 0 ? 1 : std::exp(sum / known);
}

// A convolution counts with what was measured of it, and in formats in which it was not with the estimate, which is as
// far off as others of the layer are; all else counts with its estimate.
FormatTimes measured_format_times(const CompileOptions& options, int batch) {
  FormatTimes times = format_times(options, batch);
  std::map<std::string, std::vector<const TunedKernel*>> tuned;
  for (const TunedKernel& kernel : options.tuned) {
    if (kernel.batch == batch) tuned[kernel.layer].push_back(&kernel);
  }
  std::map<std::string, double> off_by;
  for (const auto& [layer, kernels] : tuned) off_by[layer] = models_are_off_by(kernels);
  times.convolution = [&options, batch, off_by = std::move(off_by)](const Operator& op, const ConvLayer& layer,
                                                                    const OperatorFormats& formats) {
    const Task task = task_of(op, layer, formats.input, formats.output, batch, options);
    if (const TunedKernel* measured = tuned_for(task, options)) return measured->candidate.estimate.us;
    const auto known = off_by.find(op.name);
    return estimated_us(task, options) * (known == off_by.end() ? 1 : known->second);
  };
  return times;
}

// A layer that an option names must be there under its name.
bool is_named(const std::string& layer, const CompileOptions& options) {
  return options.kernels.of_layers.contains(layer) || options.precisions.of_layers.contains(layer) ||
         options.from_op == layer;
}

// One kernel may take so much of what the parts take: estimates are off by some percent.
constexpr double kSiblingsGain = 0.95;

// For every batch size one kernel is estimated to take less time than those of the parts one after the other.
class SiblingTimes {
 public:
  explicit SiblingTimes(const CompileOptions& options) : options_(options) {}

  bool together(const ConvLayer& merged, const std::vector<const ConvLayer*>& parts) {
    const auto named = [&](const ConvLayer* part) { return is_named(part->name, options_); };
    if (!options_.joins.siblings || std::ranges::any_of(parts, named)) return false;
    // Choices in --plan were made for the layers as they are.
    if (!options_.plan.empty()) return false;
    // Tensors with channels that share words have no views, and maps are of whole tensors.
    if (options_.skip_dead_tiles || channels_together(options_.layout.value_or(TensorLayout::nchw)) != 1) return false;
    // simplify() asks in every round.
    const auto [entry, is_new] = merges_.try_emplace(merged.name);
    if (is_new) entry->second = pays(merged, parts);
    return entry->second;
  }

 private:
  using LayerAndBatch = std::pair<std::string, int>;

  bool pays(const ConvLayer& merged, const std::vector<const ConvLayer*>& parts) {
    estimate(merged, parts);
    return std::ranges::all_of(options_.graph_batches(), [&](int batch) {
      double apart = 0;
      for (const ConvLayer* part : parts) apart += us_.at({part->name, batch});
      return std::isfinite(apart) && us_.at({merged.name, batch}) < apart * kSiblingsGain;
    });
  }

  // What is not known yet.
  void estimate(const ConvLayer& merged, std::vector<const ConvLayer*> layers) {
    layers.push_back(&merged);
    std::vector<std::pair<const ConvLayer*, int>> tasks;
    std::vector<double*> results;
    for (const ConvLayer* layer : layers) {
      for (const int batch : options_.graph_batches()) {
        const auto [entry, is_new] = us_.try_emplace({layer->name, batch});
        if (!is_new) continue;
        tasks.emplace_back(layer, batch);
        results.push_back(&entry->second);
      }
    }
    for_each_parallel(tasks.size(), options_.jobs,
                      [&](std::size_t i) { *results[i] = convolution_us(*tasks[i].first, options_, tasks[i].second); });
  }

  const CompileOptions& options_;
  std::map<std::string, bool> merges_;  // by the name of what would be made
  std::map<LayerAndBatch, double> us_;  // of layers, and of what would be made
};

// One kernel may take so much of what the parts take: estimates are off by some percent.
constexpr double kWindowGain = 0.95;

// For every batch size one kernel, which reads and writes tensors in the formats of the two, is estimated to take less
// time.
bool filters_its_outputs(const ConvLayer& made, const ConvLayer& convolution, const ConvLayer& depthwise,
                         const CompileOptions& options) {
  if (!options.joins.depthwise) return false;
  if (is_named(convolution.name, options) || is_named(depthwise.name, options)) return false;
  // Choices in --plan were made for the layers as they are, and maps are of whole tensors.
  if (!options.plan.empty() || options.skip_dead_tiles) return false;
  return std::ranges::all_of(options.graph_batches(), [&](int batch) {
    const auto formats = [&](const ConvLayer& layer) {
      const Operator op{.name = layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
      return formats_for(op, layer, options, batch, has_free_layout(layer, options));
    };
    const OperatorFormats together = formats(made);
    if (together.input != formats(convolution).input || together.output != formats(depthwise).output) return false;
    const double us = convolution_us(made, options, batch);
    const auto is_faster = [&](double (*part_us)(const ConvLayer&, const CompileOptions&, int)) {
      return us < kWindowGain * (part_us(convolution, options, batch) + part_us(depthwise, options, batch));
    };
    // That the parts are faster most often shows before baked code is planned for them.
    const bool may_be_faster = options.kernels.all != kAutoKind || is_faster(quick_us);
    return std::isfinite(us) && may_be_faster && is_faster(convolution_us);
  });
}

// Two launches are fewer than the four of its parts, and read no more. But each block computes all features by itself:
// with many of them, and many images, that takes longer than the launches (docs/experiments.md).
bool is_excitation(const Excitation& made, const CompileOptions& options) {
  const auto named = [&](const Operator* part) { return is_named(part->name, options); };
  constexpr int kMostFeatures = 112;
  if (std::get<Squeeze>(made.squeeze.kind).features > kMostFeatures) return false;
  return std::ranges::none_of(made.parts, named) && options.plan.empty() && !options.skip_dead_tiles;
}

// The inputs and outputs of a network are what CompileOptions::io says.
void set_ends(Network& network, const CompileOptions& options) {
  if (network.separate || options.io == ElementType::f32) return;
  for (const auto* ends : {&network.inputs, &network.outputs}) {
    for (const int end : *ends)
      network.tensors[static_cast<std::size_t>(end)].format = {options.io, TensorLayout::nchw};
  }
}

// Those that are chosen, by operators' names, or where nothing is those that formats_for() says.
Network formatted(Network network, const CompileOptions& options, int batch,
                  const std::map<std::string, OperatorFormats>& chosen) {
  const auto rounds = [](Precision precision) { return factors_of(precision) != FactorType::f32; };
  const bool computes_plain = !options.precisions.any(is_half) && !options.precisions.any(rounds) &&
                              options.layout.value_or(TensorLayout::nchw) == TensorLayout::nchw &&
                              options.output_layout.value_or(TensorLayout::nchw) == TensorLayout::nchw;
  const bool separate = network.separate;
  if (computes_plain && (separate || options.io == ElementType::f32)) return network;
  const auto formats = [&](const Operator& op, const ConvLayer& layer) {
    return formats_for(op, layer, options, batch, has_free_layout(layer, options) && !separate);
  };
  return assign_formats(std::move(network), formats, chosen).network;
}

}  // namespace

std::vector<const Provider*> compared_by_models(const Task& task, const CompileOptions& options) {
  std::vector<const Provider*> allowed = allowed_providers(task, options);
  if (asked_kind(task, options) != kAutoKind) return allowed;
  std::erase_if(allowed, [](const Provider* provider) { return provider->needs_measuring(); });
  return allowed;
}

double least_estimate_us(const Task& task, const CompileOptions& options,
                         const std::vector<const Provider*>& providers) {
  try {
    return best_us(propose_all(task, options, 1, providers));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::numeric_limits<double>::infinity();
  }
}

std::string choices_for(const Provider& provider, const CompileOptions& options) {
  const std::string_view asked = options.kernels.all == kAutoKind ? kBakedProvider : options.kernels.all;
  return provider.name() == asked ? options.plan : "";
}

std::vector<Candidate> all_candidates(const Task& task, const CompileOptions& options, int count) {
  std::vector<Candidate> candidates = candidates_of(task, options, count);
  if (candidates.empty()) {
    fail(ErrorKind::unsupported, "operator '{}': no provider has a kernel for {}", task.name,
         task.op == nullptr ? task.kind : std::string(kind_name(task.op->kind)));
  }
  std::ranges::stable_sort(candidates, {}, [](const Candidate& candidate) { return candidate.estimate.us; });
  return candidates;
}

std::vector<Candidate> unmodelled_candidates(const Task& task, const CompileOptions& options) {
  std::vector<Candidate> candidates;
  if (!options.libraries || asked_kind(task, options) != kAutoKind) return candidates;
  for (const Provider* provider : allowed_providers(task, options)) {
    if (!provider->needs_measuring()) continue;
    for (Candidate& candidate : provider->propose(task, {.count = kMaxUnmodelledCandidates})) {
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

bool is_laid_for_call(const Task& task, const CompileOptions& options) {
  return options.libraries && rule_of(options, task.batch) == FormatRule::libraries &&
         has_channels_last(task.writes.layout);
}

Choice choice_of(const std::vector<Candidate>& candidates) {
  Choice choice;
  choice.candidate = candidates.front();
  for (const Candidate& candidate : candidates) {
    const auto known = std::ranges::find(choice.options, candidate.provider, &KernelOption::provider);
    if (known != choice.options.end()) {
      // The chosen one is what counts for its provider.
      if (known != choice.options.begin()) known->us = std::min(known->us, candidate.estimate.us);
      continue;
    }
    const bool measured = candidate.estimate.source == Estimate::Source::measured;
    choice.options.push_back({candidate.provider, candidate.estimate.us, measured});
  }
  std::ranges::stable_sort(choice.options.begin() + 1, choice.options.end(), {}, &KernelOption::us);
  return choice;
}

Choice choose(const Task& task, const CompileOptions& options) {
  if (const TunedKernel* tuned = tuned_for(task, options)) return measured_choice(task, *tuned);
  if (is_laid_for_call(task, options)) {
    // Nobody has said what it takes, so it is compared with nothing.
    if (const std::vector<Candidate> calls = unmodelled_candidates(task, options); !calls.empty()) {
      return choice_of(calls);
    }
  }
  return choose_by_models(task, options);
}

std::vector<Candidate> rivals_for(const Task& task, const CompileOptions& options) {
  std::vector<Candidate> candidates;
  const TunedKernel* const tuned = tuned_for(task, options);
  if (tuned == nullptr) return candidates;
  for (const Rival& rival : tuned->rivals) candidates.push_back(placed(rival.candidate, task));
  return candidates;
}

Choice choose_by_models(const Task& task, const CompileOptions& options) {
  return choice_of(all_candidates(task, options, 1));
}

std::vector<Candidate> alternatives(const Task& task, const CompileOptions& options, int count) {
  std::vector<Candidate> all = {choose(task, options).candidate};
  const TunedKernel* tuned = tuned_for(task, options);
  std::vector<Candidate> others = all_candidates(task, options, count);
  if (tuned != nullptr) std::ranges::move(unmodelled_candidates(task, options), std::back_inserter(others));
  for (Candidate& other : others) {
    if (tuned != nullptr) {
      const auto is_it = [&](const TuningCandidate& record) {
        // What nobody compared with the reference may be wrong.
        return record.fault.empty() && record.error && record.provider == other.provider &&
               record.plan == find_provider(other.provider)->brief(other.plan);
      };
      const auto found = std::ranges::find_if(tuned->evidence.candidates, is_it);
      if (found == tuned->evidence.candidates.end()) continue;
      other.estimate = {found->us, Estimate::Source::measured};
    }
    if (std::ranges::find(all, other) == all.end()) all.push_back(std::move(other));
  }
  std::ranges::stable_sort(all.begin() + 1, all.end(), {}, [](const Candidate& c) { return c.estimate.us; });
  return all;
}

GraphChoices graph_choices(const CompileOptions& options) {
  GraphChoices choices;
  // simplify() asks in every round.
  choices.stays_apart = [&options, known = std::map<std::pair<std::string, std::string>, bool>()](
                            const std::string& op, const ConvLayer& layer, const Pool& pool) mutable {
    const auto [entry, is_new] = known.try_emplace({op, layer.name});
    if (is_new) entry->second = stays_apart(layer, pool, options);
    return entry->second;
  };
  choices.together = [times = std::make_shared<SiblingTimes>(options)](const ConvLayer& merged,
                                                                       const std::vector<const ConvLayer*>& parts) {
    return times->together(merged, parts);
  };
  choices.windowed = [&options](const ConvLayer& made, const ConvLayer& convolution, const ConvLayer& depthwise) {
    return filters_its_outputs(made, convolution, depthwise, options);
  };
  choices.jobs = options.jobs;
  choices.excitations = [&options](const Network&, const Excitation& made) { return is_excitation(made, options); };
  return choices;
}

namespace {

// What is estimated to take longer than so many times the formats that a layer has is not measured in others.
constexpr double kWorthMeasuring = 1.5;

// Those that an operator has in a graph whose tensors have theirs.
OperatorFormats formats_in(const Network& formatted, const std::string& op) {
  const auto placed = std::ranges::find(formatted.operators, op, &Operator::name);
  BURIN_CHECK(placed != formatted.operators.end(), "no operator '{}'", op);
  const auto format = [&](int tensor) { return formatted.tensors[static_cast<std::size_t>(tensor)].format; };
  return {format(placed->inputs.front()), format(placed->output)};
}

}  // namespace

std::vector<Task> in_other_formats(const Network& graph, const Network& formatted, const CompileOptions& options,
                                   int batch, const std::function<bool(const Provider& provider)>& measures) {
  std::vector<Task> tasks;
  if (graph.separate) return tasks;
  for (const Operator& op : graph.operators) {
    const auto* convolution = std::get_if<Convolution>(&op.kind);
    if (convolution == nullptr) continue;
    const ConvLayer& layer = graph.layers[static_cast<std::size_t>(convolution->layer)];
    const OperatorFormats chosen = formats_in(formatted, op.name);
    for (const OperatorFormats& formats : measurable_ways_of(op, layer, options, batch)) {
      if (formats != chosen) tasks.push_back(task_of(op, layer, formats.input, formats.output, batch, options));
    }
  }
  std::vector<char> worthwhile(tasks.size());
  for_each_parallel(tasks.size(), options.jobs, [&](std::size_t i) {
    const Task& task = tasks[i];
    const OperatorFormats chosen = formats_in(formatted, task.name);
    const double us = estimated_us(task, options);
    const double chosen_us =
        estimated_us(task_of(*task.op, *task.layer, chosen.input, chosen.output, batch, options), options);
    const auto is_measured = [&](const Candidate& call) { return measures(*find_provider(call.provider)); };
    // These are what calls of libraries read best; others are measured for the sake of what the models say alone.
    const bool is_as_called = has_channels_last(task.reads.front().layout) && has_channels_last(task.writes.layout);
    worthwhile[i] =
        std::isfinite(us) && (us < kWorthMeasuring * chosen_us ||
                              (is_as_called && std::ranges::any_of(unmodelled_candidates(task, options), is_measured)));
  });
  std::vector<Task> measured;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (worthwhile[i] != 0) measured.push_back(std::move(tasks[i]));
  }
  return measured;
}

std::map<std::string, OperatorFormats> formats_by_measurement(const Network& graph, const CompileOptions& options,
                                                              int batch) {
  if (graph.separate || options.layout) return {};
  Network network = graph;
  set_ends(network, options);
  const FormatWays ways = [&](const Operator& op, const ConvLayer& layer) {
    return measurable_ways_of(op, layer, options, batch);
  };
  return choose_formats(network, ways, options.jobs, measured_format_times(options, batch)).formats;
}

Network in_formats(Network network, const CompileOptions& options, int batch) {
  if (const auto known = options.formats.find(batch); known != options.formats.end()) {
    set_ends(network, options);
    return formatted(std::move(network), options, batch, known->second);
  }
  if (network.separate || options.layout || rule_of(options, batch) == FormatRule::usual) {
    return in_usual_formats(std::move(network), options, batch);
  }
  set_ends(network, options);
  if (rule_of(options, batch) == FormatRule::libraries) {
    const std::map<std::string, OperatorFormats> called = formats_of_calls(network, options, batch);
    return formatted(std::move(network), options, batch, called);
  }
  const FormatWays ways = [&](const Operator& op, const ConvLayer& layer) {
    return ways_of(op, layer, options, batch);
  };
  const FormatChoice choice = choose_formats(network, ways, options.jobs, format_times(options, batch));
  if (!choice.exact) {
    network.notes.push_back(fmt::format(
        "{}: at batch {} too many tensors hang together for the best choice of their formats to be computed; "
        "a good one was searched for",
        network.source, batch));
  }
  return formatted(std::move(network), options, batch, choice.formats);
}

FormatRule usual_rule(int batch) { return batch < kLeastImages ? FormatRule::estimated : FormatRule::usual; }

Network in_usual_formats(Network network, const CompileOptions& options, int batch) {
  set_ends(network, options);
  return formatted(std::move(network), options, batch, {});
}

}  // namespace burin
