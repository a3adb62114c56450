#include "compiler/embed/settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "compiler/choose/choose.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/measure/tune_on_gpu.h"
#include "compiler/providers/provider.h"
#include "ir/derive_form.h"
#include "ir/error.h"

namespace burin {
namespace {

ElementType parse_linear_storage(const std::string& text) {
  check_choice("--linear-storage", text,
               {std::string(to_string(Precision::fp32)), std::string(to_string(Precision::fp16))});
  return element_of(*parse_enum<Precision>(text));
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

TensorChoice parse_tensor_choice(const std::string& precision, const std::optional<std::string>& layout) {
  const std::optional<Precision> known = parse_enum<Precision>(precision);
  if (!known) fail(ErrorKind::unsupported, "--precision {}: known are {}", precision, known_names<Precision>());
  TensorChoice choice{*known, is_half(*known) ? TensorLayout::n2chw : TensorLayout::nchw};
  if (!layout) return choice;
  choice.layout = parse_layout(*layout);
  if (!can_ask_for(choice.layout, *known)) {
    fail(ErrorKind::usage, "--layout {} with --precision {}: {}", *layout, precision, kWhatLiesWhere);
  }
  return choice;
}

CompileOptions options_of(const CompileSettings& settings, CompileOptions others) {
  CompileOptions options = std::move(others);
  options.archs = settings.archs;
  options.batches = settings.batches;
  if (settings.layout) options.layout = parse_layout(*settings.layout);
  options.precision = parse_tensor_choice(settings.precision, settings.layout).precision;
  options.kernels = parse_kernel_kinds(settings.kernels);
  options.keep_ptx = settings.ptx;
  options.linear_storage = parse_linear_storage(settings.linear_storage);
  options.plan = settings.plan;
  find_provider(options.kernels.all == kAutoKind ? std::string(kBakedProvider) : options.kernels.all)
      ->check_choices(options.plan);
  options.skip_dead_tiles = settings.skip_dead_tiles;
  options.jobs = settings.jobs;
  return options;
}

CompileResult run_pipeline(Network network, CompileOptions options, const CompileSettings& settings,
                           const PipelineWatch& watch) {
  std::vector<std::string> notes;
  if (settings.tune > 0) {
    TunedNetwork tuned = tune_on_gpu(prepare_graph(network, std::nullopt, graph_choices(options)), options,
                                     settings.tune, settings.tune_seconds, watch.tuning);
    options.tuned = std::move(tuned.kernels);
    notes = std::move(tuned.notes);
  }
  std::unique_ptr<KernelCache> cache;
  if (!settings.cache.empty()) cache = std::make_unique<KernelCache>(settings.cache, settings.cache_bytes);
  options.cache = cache.get();
  CompileResult result = compile_network(std::move(network), options, watch.compiling);
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace burin
