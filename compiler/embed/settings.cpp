#include "compiler/embed/settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "compiler/calibrate/count_zeros.h"
#include "compiler/choose/batch_choice.h"
#include "compiler/choose/choose.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/measure/tune_on_gpu.h"
#include "compiler/providers/provider.h"
#include "compiler/tune/time_graphs.h"
#include "compiler/tune/tuned_network.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/factor_type.h"

namespace burin {
namespace {

ElementType parse_linear_storage(const std::string& text) {
  check_choice("--linear-storage", text,
               {std::string(to_string(Precision::fp32)), std::string(to_string(Precision::fp16))});
  return element_of(*parse_enum<Precision>(text));
}

ElementType parse_io(const std::string& text) {
  std::vector<std::string> known;
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    known.emplace_back(to_string(precision_of(type)));
  }
  check_choice("--io", text, known);
  return element_of(*parse_enum<Precision>(text));
}

std::vector<std::string> tunable_providers(const CompileSettings& settings) {
  std::vector<std::string> known = kernel_kind_names();
  std::ranges::copy(linear_kind_names(), std::back_inserter(known));
  return parse_providers(settings.tune_providers, known);
}

CompileResult tune_and_compile(const Network& network, CompileOptions options, const CompileSettings& settings,
                               const PipelineWatch& watch) {
  TuneOptions tune_options{.plans = settings.tune,
                           .budget = TimeBudget(settings.tune_seconds),
                           .jobs = options.jobs,
                           .providers = tunable_providers(settings),
                           .anew = settings.tune_anew};
  check_options(network, options);
  check_can_measure(options.archs);
  // What was calibrated is right in the formats that it was calibrated in.
  const bool is_calibrated = leaves_open(parse_precisions(settings.precision)) || !settings.calibration.empty();
  const std::vector<FormatRule> rules = is_calibrated ? std::vector<FormatRule>() : rules_for(tune_options.providers);
  tune_options.other_formats = !is_calibrated;
  // A timer keeps the networks of its last call loaded, so that each ends with its call.
  TimedGraphs graphs =
      time_graphs(network, options, rules, watch.compiling, network_timer(options.archs), tune_options.budget);
  options.measured_joins = std::move(graphs.joins);
  options.format_rules = std::move(graphs.formats);
  TunedNetwork tuned = tune_on_gpu(prepare_graphs(network, options), options, tune_options, watch.tuning);
  options.tuned = std::move(tuned.kernels);
  if (tune_options.other_formats) {
    TimedFormats formats =
        time_measured_formats(network, options, watch.compiling, network_timer(options.archs), tune_options.budget);
    options.formats = std::move(formats.formats);
    std::ranges::move(formats.notes, std::back_inserter(tuned.notes));
  }
  const NetworkTimer time = network_timer(options.archs);
  CompileResult result = compile_tuned(network, std::move(options), tune_options, watch.compiling, time);
  std::ranges::move(tuned.notes, std::back_inserter(graphs.notes));
  result.notes.insert(result.notes.begin(), graphs.notes.begin(), graphs.notes.end());
  return result;
}

LayerZeros zeros_of(const Network& graph, const CompileSettings& settings, const PipelineWatch& watch) {
  if (!settings.activation_sparsity.empty()) {
    return made_up_zeros(graph, parse_synthetic_zeros(settings.activation_sparsity));
  }
  return count_zeros(graph, settings.activations, [&](int done, int all) {
    if (watch.calibrating) watch.calibrating({done, all, "zeros of feature maps"});
  });
}

}  // namespace

void check_choice(const std::string& option, const std::string& value, const std::vector<std::string>& known) {
  if (std::ranges::find(known, value) != known.end()) return;
  fail(ErrorKind::usage, "{} '{}' is not one of {}{}", option, value, fmt::join(known, ", "),
       did_you_mean(value, known));
}

TensorLayout parse_layout(const std::string& text) {
  constexpr auto kNames = names_of(TensorLayout{}).names;
  check_choice("--layout", text, {kNames.begin(), kNames.end()});
  return *parse_enum<TensorLayout>(text);
}

CompileOptions options_of(const CompileSettings& settings, CompileOptions others) {
  CompileOptions options = std::move(others);
  options.archs = settings.archs;
  options.batches = settings.batches;
  for (const BatchSpan& span : settings.batch_spans) {
    options.batch_ranges.push_back({span.first, span.last});
    for (const int end : {span.first, span.last}) {
      if (std::ranges::find(options.batches, end) == options.batches.end()) options.batches.push_back(end);
    }
  }
  if (settings.layout) options.layout = parse_layout(*settings.layout);
  options.precisions = unmeasured(parse_precisions(settings.precision));
  check_layout(options);
  options.kernels = parse_kernel_kinds(settings.kernels);
  options.keep_ptx = settings.ptx;
  options.linear_storage = parse_linear_storage(settings.linear_storage);
  options.io = parse_io(settings.io);
  constexpr auto kObjectives = names_of(Objective{}).names;
  check_choice("--objective", settings.objective, {kObjectives.begin(), kObjectives.end()});
  options.objective = *parse_enum<Objective>(settings.objective);
  if (settings.memory_limit != 0) options.memory_limit = settings.memory_limit;
  if (!settings.activation_sparsity.empty()) {
    if (!settings.activations.empty()) {
      fail(ErrorKind::usage, "--activations says what zeros there are, and so does --activation-sparsity {}: give one",
           settings.activation_sparsity);
    }
    (void)parse_synthetic_zeros(settings.activation_sparsity);
  }
  options.plan = settings.plan;
  find_provider(options.kernels.all == kAutoKind ? std::string(kBakedProvider) : options.kernels.all)
      ->check_choices(options.plan);
  options.skip_dead_tiles = settings.skip_dead_tiles;
  options.seeks_weight_zeros = settings.flip;
  options.joins.siblings = settings.siblings;
  options.libraries = settings.libraries;
  options.jobs = settings.jobs;
  (void)tunable_providers(settings);  // a fault is said before the work
  return options;
}

void check_calibration(const CompileSettings& settings, bool has_inputs) {
  const AskedPrecisions asked = parse_precisions(settings.precision);
  if (settings.max_error) {
    if (!leaves_open(asked)) {
      fail(ErrorKind::usage, "--max-error has no effect here: it bounds the error of --precision auto, and not of {}",
           settings.precision);
    }
    if (!std::isfinite(*settings.max_error) || *settings.max_error <= 0) {
      fail(ErrorKind::usage, "--max-error {}: must be a finite number above 0", *settings.max_error);
    }
  }
  if (has_inputs && !unmeasured(asked).any(rounds)) {
    fail(ErrorKind::usage, "--calibrate has no effect here: it measures what rounding costs, and --precision is {}",
         settings.precision);
  }
}

CompileResult run_pipeline(Network network, CompileOptions options, const CompileSettings& settings,
                           const PipelineWatch& watch) {
  std::vector<std::string> notes;
  const auto cache = settings.cache.empty() ? std::make_unique<KernelCache>()
                                            : std::make_unique<KernelCache>(settings.cache, settings.cache_bytes);
  options.cache = cache.get();
  const AskedPrecisions asked = parse_precisions(settings.precision);
  check_calibration(settings, !settings.calibration.empty());
  if (leaves_open(asked) || !settings.calibration.empty()) {
    check_options(network, options);
    const CalibrateOptions calibration{asked, settings.calibration, settings.max_error.value_or(kDefaultMaxError)};
    // Each convolution is measured by itself: one that is kept in FP32 is a part of none.
    GraphChoices nothing_joined = graph_choices(options);
    nothing_joined.together = [](const ConvLayer&, const std::vector<const ConvLayer*>&) { return false; };
    nothing_joined.windowed = [](const ConvLayer&, const ConvLayer&, const ConvLayer&) { return false; };
    const auto compiled = [&](const LayerPrecisions& precisions) {
      CompileOptions as_compiled = options;
      as_compiled.precisions = precisions;
      return prepare_graphs(network, as_compiled);
    };
    Calibrated found = calibrate(prepare_graph(network, std::nullopt, nothing_joined), options, calibration, compiled,
                                 watch.calibrating);
    options.precisions = std::move(found.precisions);
    options.kept = std::move(found.kept);
    notes.push_back(std::move(found.note));
  }
  if (!options.batch_ranges.empty()) {
    check_options(network, options);
    options.asked_batches = std::exchange(options.batches, settings.batches);
    BatchChoice chosen =
        choose_batches(prepare_graph(network, std::nullopt, graph_choices(options)), options,
                       [&](int done, int all, const std::string& what) {
                         if (watch.compiling)
                           watch.compiling({0, all, 0, fmt::format("planned {} ({} of {})", what, done, all)});
                       });
    options.batches = std::move(chosen.batches);
    options.curve = std::move(chosen.curve);
    options.batch_ranges.clear();
  }
  if (!settings.activation_sparsity.empty() || !settings.activations.empty()) {
    check_options(network, options);
    const ProgramGraphs graphs = prepare_graphs(network, options);
    for (const ProgramGraphs::Shared& shared : graphs.shared_by(options.batches)) {
      options.activation_zeros.merge(zeros_of(*shared.graph, settings, watch));
    }
  }
  CompileResult result = settings.tune > 0 ? tune_and_compile(network, std::move(options), settings, watch)
                                           : compile_network(std::move(network), options, watch.compiling);
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace burin
