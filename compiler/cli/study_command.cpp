// burin study: which algorithm is the fastest for which layer, around a base layer.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/arguments.h"
#include "compiler/cli/cache_arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/study/study_document.h"
#include "compiler/cli/study/study_page.h"
#include "compiler/cli/study/study_tables.h"
#include "compiler/cli/table.h"
#include "compiler/execute/reused_memory.h"
#include "compiler/import/import.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/measure/study_on_gpu.h"
#include "ir/arch.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/atomic_file.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr int kDefaultPlans = 2;
constexpr int kMostPlans = 20;

struct StudyArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string base;
  std::map<StudyAxis, std::optional<std::string>> axes;
  std::vector<std::string> maps, outputs;
  std::string precision = "fp32";
  std::optional<std::string> layer, geometry, layout, providers, budget, arch;
  int plans = kDefaultPlans;
  int jobs = 0;
  std::uint64_t seed = 1;
  CacheArguments cache;
  bool anew = false, estimate = false, json = false;
};

// What the axes are where the command names none. Of the input's zeros few kernels know anything.
const std::map<StudyAxis, std::string> kUsualValues = {{StudyAxis::batch, "1,2,4,8,16,32"},
                                                       {StudyAxis::channels, "64,128,256,512"},
                                                       {StudyAxis::filter, "1,3,5"},
                                                       {StudyAxis::image, "7,14,28,56"},
                                                       {StudyAxis::zeros, "0,0.5,0.7,0.8,0.9,0.95,0.98"}};

std::vector<double> parse_values(StudyAxis axis, const std::string& text) {
  const std::string option = fmt::format("--{}", to_string(axis));
  std::vector<double> values;
  for (const std::string& item : split_list(option, text)) {
    const std::optional<double> value = parse_number<double>(item);
    if (is_share(axis)) {
      const bool may_be_all = axis == StudyAxis::input_zeros;
      if (!value || !(*value >= 0 && (*value < 1 || (may_be_all && *value == 1)))) {
        fail(ErrorKind::usage, "{} '{}': '{}' is not a share from 0 to {}1", option, text, item,
             may_be_all ? "" : "below ");
      }
    } else if (const std::optional<int> whole = parse_number<int>(item); !whole || *whole < 1) {
      fail(ErrorKind::usage, "{} '{}': '{}' is not a whole number from 1 on", option, text, item);
    }
    values.push_back(*value);
  }
  return values;
}

AxisValues axes_of(const StudyArguments& arguments) {
  AxisValues axes;
  for (const auto& [axis, text] : arguments.axes) {
    if (text) axes[axis] = parse_values(axis, *text);
  }
  if (!axes.empty()) return axes;
  for (const auto& [axis, text] : kUsualValues) axes[axis] = parse_values(axis, text);
  return axes;
}

std::vector<MapAxes> maps_of(const StudyArguments& arguments) {
  std::vector<MapAxes> maps;
  for (const std::string& text : arguments.maps) {
    std::vector<StudyAxis> axes;
    for (const std::string& item : split_list("--map", text)) {
      const std::optional<StudyAxis> axis = parse_enum<StudyAxis>(item);
      if (!axis) fail(ErrorKind::usage, "--map '{}': '{}' is none of {}", text, item, known_names<StudyAxis>());
      axes.push_back(*axis);
    }
    if (axes.size() != 2) fail(ErrorKind::usage, "--map '{}': a map has two axes, such as zeros,batch", text);
    maps.emplace_back(axes[0], axes[1]);
  }
  return maps;
}

// The names of providers: "baked,cudnn" -> {"conv_baked", "conv_cudnn"}.
std::vector<std::string> providers_of(const StudyArguments& arguments) {
  if (!arguments.providers) return {};
  std::vector<std::string> names = parse_providers(*arguments.providers, kernel_kind_names());
  if (names.empty()) fail(ErrorKind::usage, "--providers '': names no provider");
  for (const std::string& name : names) {
    if (!arguments.estimate || !find_provider(name)->needs_measuring()) continue;
    fail(ErrorKind::usage, "--providers {}: no model speaks of {}, and --estimate measures nothing",
         *arguments.providers, name);
  }
  return names;
}

StudyOptions options_of(const StudyArguments& arguments) {
  StudyOptions options;
  options.providers = providers_of(arguments);
  options.jobs = arguments.jobs;
  options.compile.jobs = arguments.jobs;
  const std::optional<Precision> precision = parse_enum<Precision>(arguments.precision);
  if (!precision) {
    fail(ErrorKind::unsupported, "--precision {}: known are {}", arguments.precision, known_names<Precision>());
  }
  options.compile.precisions.all = *precision;
  if (arguments.layout) options.compile.layout = parse_layout(*arguments.layout);
  check_layout(options.compile);
  if (arguments.arch) check_arch(*arguments.arch);
  options.compile.archs =
      arguments.estimate ? std::vector{arguments.arch.value_or(kArchWithoutGpu)} : known_arch_names();
  options.anew = arguments.anew;
  options.budget_s = parse_duration("--budget", arguments.budget.value_or(fmt::format("{}m", kDefaultStudyMinutes)));
  return options;
}

// The files, each with its ending.
std::vector<std::string> outputs_of(const StudyArguments& arguments) {
  std::vector<std::string> outputs = arguments.outputs;
  if (outputs.empty() && !arguments.json) outputs = {"study.json", "study.html"};
  for (const std::string& path : outputs) {
    if (has_ending(path, ".json") || has_ending(path, ".html")) continue;
    fail(ErrorKind::usage, "-o {}: a study is written as .json or .html", path);
  }
  std::vector<std::string> inputs;
  if (std::filesystem::exists(arguments.base)) inputs.push_back(arguments.base);
  if (arguments.geometry) inputs.push_back(*arguments.geometry);
  check_output_files("-o", outputs, inputs);
  return outputs;
}

void check_effects(const StudyArguments& arguments) {
  if (arguments.estimate) {
    refuse_given(*arguments.command, {"--budget", "--plans", "--anew", "--cache", "--no-cache", "--cache-limit"},
                 "--estimate measures nothing");
  } else {
    refuse_given(*arguments.command, {"--arch"}, "the GPU that measures has one; it is for --estimate");
    arguments.cache.check(*arguments.command);
    if (arguments.anew) check_anew(arguments.cache);
  }
}

// What the command names: a layer as text, or one of a file.
StudyLayer base_of(const StudyArguments& arguments) {
  const std::string& base = arguments.base;
  if (base.find('=') != std::string::npos && !std::filesystem::exists(base)) {
    refuse_given(*arguments.command, {"--layer", "--geometry"}, "LAYER is no file");
    return parse_study_layer(base);
  }
  refuse_package("LAYER", base);
  const Network network = import_network(base, {.geometry_file = arguments.geometry,
                                                .flags = {},
                                                .layer_glob = arguments.layer,
                                                .activation = {},
                                                .outputs = {}});
  if (network.layers.size() != 1) {
    std::vector<std::string> names;
    for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
    fail(ErrorKind::usage, "{}: has {} convolutions, and a study is of one; --layer chooses it{}", base, names.size(),
         names.empty() ? "" : ": " + listed(names));
  }
  return study_layer_of(network.layers.front());
}

// A bar for each part of the work.
class StudyProgressBars {
 public:
  StudyWatch watch() {
    return {.proposing = [this](const StudyProgress& state) { show("planning", state); },
            .measuring = [this](const StudyProgress& state) { show("measuring", state); }};
  }

 private:
  void show(const std::string& title, const StudyProgress& state) {
    if (title != title_) {
      bar_.reset();
      bar_.emplace(title);
      title_ = title;
    }
    bar_->update(state.done, state.total, state.what);
    bar_->finished(fmt::format("{} ({} of {})", state.what, state.done, state.total));
  }

  std::string title_;
  std::optional<ProgressBar> bar_;
};

std::vector<std::string> fill(Study& study, const StudyOptions& options, bool estimate) {
  StudyProgressBars bars;
  const StudyWatch watch = bars.watch();
  if (!estimate) return study_on_gpu(study, options, watch);
  study.device = {.name = {}, .arch = options.compile.archs.front()};
  propose(study, options, TimeBudget(0), watch.proposing);
  return {"times and memory are predictions of the cost models; nothing was measured"};
}

int run_study(const StudyArguments& arguments) {
  keep_freed_memory();
  check_effects(arguments);
  const std::vector<std::string> outputs = outputs_of(arguments);
  StudyOptions options = options_of(arguments);
  std::optional<KernelCache> cache;
  if (const std::string folder = arguments.cache.folder(); !arguments.estimate && !folder.empty()) {
    options.compile.cache = &cache.emplace(folder, arguments.cache.limit_bytes());
  }
  Study study = plan_study(base_of(arguments), axes_of(arguments), maps_of(arguments));
  study.precision = options.compile.precisions.all;
  study.seed = arguments.seed;
  study.plans = arguments.estimate ? 1 : arguments.plans;
  const std::vector<std::string> notes = fill(study, options, arguments.estimate);
  for (const std::string& note : notes) print_note(note);
  const nlohmann::ordered_json document = study_document(study, notes);
  for (const std::string& path : outputs) {
    write_file_atomically(path, has_ending(path, ".json") ? json_output(document) : study_page(document));
  }
  if (arguments.json) {
    print_data(json_output(document));
    return 0;
  }
  print_data(study_tables(study));
  print_data(fmt::format("{}: {} of {} points\n", fmt::join(outputs, ", "), study.done(), study.points.size()));
  return 0;
}

}  // namespace

void add_study_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<StudyArguments>();
  CLI::App* command = app.add_subcommand(
      "study",
      "Measure which algorithm is the fastest for which layer: batch, channels, filter, image and zeros around "
      "a base layer, all candidates, cuDNN's too");
  arguments->command = command;
  add_option(*command, "LAYER", arguments->base,
             "The base, e.g. 'c=256 h=14 k=256 r=3 zeros=0.9'; also n, w, s, stride, pad, dilation, groups, "
             "input-zeros. Or a model or "
             "weights, of which --layer chooses a convolution");
  add_option(*command, "--layer GLOB", arguments->layer,
             "Of a file: the convolution whose sizes and zeros are the base");
  add_option(*command, "--geometry FILE", arguments->geometry,
             "Of a file: its layers' stride, pad, H, W..., for weights that do not carry it");
  const std::map<StudyAxis, std::string> helps = {
      {StudyAxis::batch, "Numbers of images"},
      {StudyAxis::channels, "Input channels; output channels stay in proportion"},
      {StudyAxis::filter, "Rows of the filter; columns stay in proportion"},
      {StudyAxis::image, "Rows of the image; columns stay in proportion"},
      {StudyAxis::zeros, "Shares of zeros among the weights"},
      {StudyAxis::input_zeros, "Shares of zeros among the values of the input, of which some kernels take advantage"}};
  for (const auto& [axis, help] : helps) {
    const auto usual = kUsualValues.find(axis);
    add_option(*command, fmt::format("--{} LIST", to_string(axis)), arguments->axes[axis],
               fmt::format("{}, e.g. {}", help, usual == kUsualValues.end() ? "0,0.5,0.8,0.9" : usual->second));
  }
  add_option(*command, "--map AXES", arguments->maps,
             "Also every value of one axis with every value of another: zeros,batch; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_option(*command, "-o,--output FILE", arguments->outputs,
             "What to write, .json or .html; may be given again (default: study.json and study.html, here)")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_option(*command, "--precision NAME", arguments->precision, "fp32 (default), tf32, fp16, bf16 or fp16x2");
  add_option(
      *command, "--layout NAME", arguments->layout,
      "How tensors lie in memory: nchw, nchw4, n2chw, n8c8hw, nchw8, n4c8hw, nhwc8, nhwc4 (default: as in a network)");
  add_option(*command, "--providers LIST", arguments->providers,
             fmt::format("Whose candidates are compared (default: all): {}", fmt::join(kernel_kind_names(), ", ")));
  add_option(*command, "--plans N", arguments->plans,
             fmt::format("Candidates of each provider that are measured at a point (default {})", kDefaultPlans))
      ->check(whole_number(1, kMostPlans));
  add_option(
      *command, "--budget TIME", arguments->budget,
      fmt::format("After so much time nothing new is begun, e.g. 90s, 5m, 1h (default {}m)", kDefaultStudyMinutes));
  add_anew_option(*command, arguments->anew);
  arguments->cache.add_to(*command);
  command->add_flag("--estimate", arguments->estimate,
                    "Go by the cost models instead of measuring: needs no GPU, and says nothing of cuDNN");
  add_option(*command, "--arch NAME", arguments->arch, "With --estimate: the architecture (default sm_90)");
  add_option(*command, "--seed N", arguments->seed, "Of the weights (default 1)");
  add_option(*command, "--jobs N", arguments->jobs, "Threads (default: one for each processor)")
      ->check(whole_number(0, kMaxJobs));
  command->add_flag("--json", arguments->json, "Print the document, and no tables");
  command->callback([arguments, &action] { action = [arguments] { return run_study(*arguments); }; });
}

}  // namespace burin
