#include "compiler/providers/template_provider.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <ranges>

#include "compiler/specialise/template_module.h"
#include "ir/baked_plan_pool.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"
#include "ir/text.h"
#include "templates/embedded.h"

namespace burin {
namespace {

void set_function(TemplatePlan& plan, int function, float alpha, float beta) {
  plan.integers["function"] = function;
  plan.reals["alpha"] = alpha;
  plan.reals["beta"] = beta;
}

// Looks at the plan's form and at its constants: it has all that the provider's template has, and no others.
std::vector<std::string> faults_of(const TemplatePlan& plan, std::string_view provider) {
  if (std::vector<std::string> faults = verify(plan); !faults.empty()) return faults;
  const std::span<const TemplateConstant> constants = template_constants(provider);
  Faults faults;
  for (const TemplateConstant& constant : constants) {
    const std::string name(constant.name);
    if (constant.real ? !plan.reals.contains(name) : !plan.integers.contains(name)) {
      faults.add("the template {} needs {} '{}'", plan.template_name, constant.real ? "a real" : "an integer", name);
    } else if (!constant.real) {
      faults.require_range("integer " + name, plan.integers.at(name), constant.low, constant.high);
    } else if (std::isnan(plan.reals.at(name))) {
      faults.add("real {} is not a number", name);
    }
  }
  const auto check_known = [&](const auto& values, bool real) {
    for (const auto& [name, value] : values) {
      const auto is_it = [&, &name = name](const TemplateConstant& c) { return c.real == real && c.name == name; };
      if (std::ranges::any_of(constants, is_it)) continue;
      faults.add("the template {} has no {} {}", plan.template_name, real ? "real" : "integer", in_quotes(name));
    }
  };
  check_known(plan.integers, false);
  check_known(plan.reals, true);
  return faults.take();
}

// The first line of `text` that is not a line of `other`.
std::string first_difference(const std::string& text, const std::string& other) {
  for (const auto part : std::views::split(text, '\n')) {
    const std::string line(part.begin(), part.end());
    if (!line.starts_with("#") && other.find(line + "\n") == std::string::npos) return line;
  }
  return "";
}

// "NAME=NUMBER,..."; of a name that stands there twice, both.
std::vector<std::pair<std::string, int>> parse_choices(std::string_view text) {
  std::vector<std::pair<std::string, int>> choices;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::string_view name = item.substr(0, item.find('='));
    const std::string_view digits = item.substr(std::min(item.size(), name.size() + 1));
    const std::optional<int> value = parse_number<int>(digits);
    if (name.empty() || !value) {
      fail(ErrorKind::usage, "--plan {}: expected KEY=NUMBER", printable(std::string(item)));
    }
    choices.emplace_back(name, *value);
  }
  return choices;
}

// Where a plan says what was chosen.
int& choice_in(TemplatePlan& plan, const std::string& choice) {
  if (choice == "threads") return plan.launch().threads;
  if (choice == "images") return plan.launch().tile_images;
  if (choice == "cluster") return plan.launch().cluster_tiles;
  return plan.integers.at(choice);
}

[[noreturn]] void refuse_choices(const Task& task, const std::string& why) {
  fail(ErrorKind::unsupported, "{} '{}': this plan cannot be used: {}", task.layer != nullptr ? "layer" : "operator",
       task.name, why);
}

}  // namespace

std::int64_t round_up(std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; }

const ArchSpec& arch_of(const Task& task) { return arch_by_name(lowest_arch(task.archs)); }

bool is_plain_convolution(const Task& task) {
  return task.layer != nullptr && task.precision == Precision::fp32 && !task.activity_maps;
}

bool averages_image(const Task& task) {
  if (task.get<GlobalAveragePool>() != nullptr) return true;
  const Pool* pool = task.get<Pool>();
  return pool != nullptr && averages_whole(*pool, task.inputs[0][1], task.inputs[0][2]);
}

// ---- TemplateProvider

TemplatePlan TemplateProvider::start(const Task& task) const {
  TemplatePlan plan;
  plan.template_name = name();
  plan.arch = lowest_arch(task.archs);
  plan.input() = task.reads.at(0);
  if (task.reads.size() > 1) plan.residual() = task.reads.at(1);
  plan.output() = task.writes;
  return plan;
}

bool TemplateProvider::can_do(const Task& task) const {
  const auto is_plain = [](const KernelTensor& tensor) { return tensor.format().is_plain(); };
  const bool plain = std::ranges::all_of(task.reads, is_plain) && is_plain(task.writes);
  const auto is_loose = [](const KernelTensor& tensor) { return tensor.format().is_loose(); };
  const bool loose = std::ranges::any_of(task.reads, is_loose) || is_loose(task.writes);
  if (loose && task.get<Convert>() == nullptr) return false;
  if (task.layer != nullptr && task.layer->shape.epilogue.filters() && !knows_filters()) return false;
  const auto lies_in_places = [](const KernelTensor& tensor) { return has_places(tensor.layout); };
  const bool places = std::ranges::any_of(task.reads, lies_in_places) || lies_in_places(task.writes);
  if (places && !knows_places()) return false;
  return (plain || knows_formats()) && can(task);
}

Candidate TemplateProvider::candidate(const Task& task, const TemplatePlan& plan) const {
  return {std::string(name()),
          print(plan),
          kernel_symbol(task.name, plan),
          {predict_us(task, plan), Estimate::Source::model}};
}

void TemplateProvider::check_choices(const std::string& plan) const {
  const std::vector<std::string> known = choices();
  for (const auto& [choice, value] : parse_choices(plan)) {
    if (std::ranges::find(known, choice) != known.end()) continue;
    if (known.empty()) fail(ErrorKind::usage, "--plan {}: {} has no choices", plan, name());
    fail(ErrorKind::usage, "--plan {}={}: {} knows {}, as KEY=VALUE", choice, value, name(), fmt::join(known, ", "));
  }
}

std::string TemplateProvider::brief(const std::string& text) const {
  TemplatePlan plan = parse_template_plan(text);
  std::string brief;
  for (const std::string& choice : choices()) {
    brief += fmt::format("{}{}={}", brief.empty() ? "" : ",", choice, choice_in(plan, choice));
  }
  return brief.empty() ? describe(plan) : brief;
}

std::vector<Candidate> TemplateProvider::propose(const Task& task, const ProposeOptions& options) const {
  if (!can_do(task)) return {};
  if (!options.plan.empty()) return with_choices(task, options);
  return search(task, options);
}

std::vector<Candidate> TemplateProvider::with_choices(const Task& task, const ProposeOptions& options) const {
  const std::string& text = options.plan;
  check_choices(text);
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::usage, "layer '{}': no plan of {} keeps --plan {}: {}", task.name, name(), text, why);
  };
  constexpr int kAll = 1000;
  const std::vector<std::pair<std::string, int>> chosen = parse_choices(text);
  const auto has_chosen = [&](TemplatePlan& plan) {
    return std::ranges::all_of(chosen,
                               [&](const auto& choice) { return choice_in(plan, choice.first) == choice.second; });
  };
  // Another plan with these choices, or why there is none.
  TemplatePlan plan;
  const auto choose_in = [&](const std::string& other) -> std::string {
    plan = parse_template_plan(other);
    for (const auto& [choice, value] : chosen) choice_in(plan, choice) = value;
    // The number of blocks follows from the choices, and is computed anew.
    LaunchGeometry& launch = plan.launch();
    if (launch.cluster_tiles > 1) launch.tiles_per_image = round_up(launch.tiles_per_image, launch.cluster_tiles);
    if (const auto faults = faults_of(plan, name()); !faults.empty()) return faults.front();
    plan = plan_as(task, plan);
    if (plan.integers.empty() || !has_chosen(plan)) {
      return "together with the best of its other choices they do not fit; choose these, too";
    }
    const auto faults = faults_of(plan, name());
    return faults.empty() ? "" : faults.front();
  };
  // Where no choice is left open, any plan will do to begin with, and a search for all takes long.
  const auto is_open = [&](const std::string& choice) {
    return std::ranges::find(chosen, choice, &std::pair<std::string, int>::first) == chosen.end();
  };
  if (std::ranges::none_of(choices(), is_open)) {
    const std::vector<Candidate> one = search(task, {.count = 1});
    if (!one.empty() && choose_in(one.front().plan).empty()) return {candidate(task, plan)};
  }
  const std::vector<Candidate> all = search(task, {.count = kAll});
  if (all.empty()) refuse(fmt::format("it has none for {}", task.description));
  const auto first = std::ranges::find_if(all, [&](const Candidate& candidate) {
    TemplatePlan proposed = parse_template_plan(candidate.plan);
    return has_chosen(proposed);
  });
  std::vector<Candidate> found;
  if (first != all.end()) {
    found.push_back(*first);
  } else {
    // Nothing like it was proposed: the best plan, with these choices.
    if (const std::string fault = choose_in(all.front().plan); !fault.empty()) refuse(fault);
    found.push_back(candidate(task, plan));
  }
  if (options.count <= 1) return found;
  // Then come the other plans with these choices.
  for (const Candidate& other : all) {
    if (!choose_in(other.plan).empty()) continue;
    Candidate made = candidate(task, plan);
    if (std::ranges::find(found, made) == found.end()) found.push_back(std::move(made));
  }
  std::ranges::stable_sort(found.begin() + 1, found.end(), {}, [](const Candidate& c) { return c.estimate.us; });
  if (std::ssize(found) > options.count) found.resize(static_cast<std::size_t>(options.count));
  return found;
}

Recipe TemplateProvider::make(const Task& task, const std::string& text) const {
  const auto plan = std::make_shared<const TemplatePlan>(parse_template_plan(text));
  if (plan->template_name != name()) {
    refuse_choices(task, fmt::format("it is of {}, not of {}", printable(plan->template_name), name()));
  }
  if (const auto faults = faults_of(*plan, name()); !faults.empty()) refuse_choices(task, faults.front());
  if (!can_do(task)) refuse_choices(task, fmt::format("{} cannot compute it", name()));
  if (const TemplatePlan rebuilt = plan_as(task, *plan); rebuilt != *plan) {
    if (rebuilt.integers.empty()) refuse_choices(task, "its choices do not fit together");
    const std::string is = first_difference(text, print(rebuilt)), should = first_difference(print(rebuilt), text);
    refuse_choices(task,
                   fmt::format("'{}' does not follow from the operator and the other choices; '{}' would", is, should));
  }
  Recipe recipe;
  recipe.symbol = kernel_symbol(task.name, *plan);
  recipe.form = plan->form;
  recipe.plan_short = describe(*plan);
  recipe.precision = precision_of(plan->output().element);
  recipe.weights = pack(task, *plan);
  recipe.multiplied = multiplied(task, *plan);
  BURIN_CHECK(static_cast<std::int64_t>(recipe.weights.size()) == plan->weights().run_words,
              "{}: {} words of weights were packed, and the plan has {}", task.name, recipe.weights.size(),
              plan->weights().run_words);
  recipe.template_text = [plan] { return print_template(*plan); };
  recipe.specialise = [plan](const std::string& symbol) { return specialise_template(*plan, symbol); };
  return recipe;
}

std::vector<double> TemplateProvider::launch_us(const Task& task, const std::string& text,
                                                const std::vector<int>& batches) const {
  const TemplatePlan plan = parse_template_plan(text);
  std::vector<double> us;
  Task launched = task;
  for (const int batch : batches) {
    launched.batch = batch;
    us.push_back(predict_us(launched, plan));
  }
  return us;
}

TemplatePlan TemplateProvider::usable_plan(const Kernel& kernel) const {
  TemplatePlan plan = parse_template_plan(kernel.plan);
  if (const auto faults = faults_of(plan, name()); !faults.empty()) {
    fail(ErrorKind::bad_input, "{}: its plan cannot be used: {}", kernel.owner(), faults.front());
  }
  return plan;
}

SpecialisedModule TemplateProvider::module_of(const Kernel& kernel, const ConvLayer*) const {
  return specialise_template(usable_plan(kernel), kernel.entry_name());
}

double PlainProvider::predict_us(const Task& task, const TemplatePlan& plan) const {
  return launch_time_us(work_of(task, plan), arch_of(task));
}

LaunchWork PlainProvider::work_of(const Task& task, const TemplatePlan&) const {
  return {.activation_bytes = activation_bytes(task), .uncovered = {}};
}

// ---- parts of plans

bool has_one_format(const Task& task) {
  const TensorFormat format = task.writes.format();
  return format.layout != TensorLayout::nchw4 &&
         std::ranges::all_of(task.reads, [&](const KernelTensor& read) { return read.format() == format; });
}

std::int64_t place_words(const Task& task) {
  return std::max(element_words(task.reads[0].layout), element_words(task.writes.layout));
}

std::int64_t place_count(TensorLayout layout, std::int64_t channels) {
  return has_places(layout) ? ceil_div(channels, channels_together(layout)) : channels;
}

std::int64_t stored_channels(const Task& task) {
  const TensorLayout layout = task.writes.layout;
  return has_places(layout) ? place_count(layout, task.output[0]) : round_up(task.output[0], channels_together(layout));
}

void set_word_images(TemplatePlan& plan) {
  plan.launch().tile_images = std::max(images_together(plan.input().layout), images_together(plan.output().layout));
}

bool is_wide(const KernelTensor& tensor) { return tensor.alignment >= kWideAccessBytes; }

void set_narrow(TemplatePlan& plan) {
  for (KernelTensor* tensor : {&plan.input(), &plan.residual(), &plan.output()}) {
    tensor->alignment = words_together(tensor->layout) * kWordBytes;
  }
}

void set_no_function(TemplatePlan& plan) { set_function(plan, 0, 0, 0); }

void set_function(TemplatePlan& plan, const Elementwise& op) {
  set_function(plan, static_cast<int>(op.function) + 1, op.alpha, op.beta);
  if (op.user != nullptr) plan.calls["apply"] = op.user->symbol();
}

void set_function(TemplatePlan& plan, const std::optional<Elementwise>& function) {
  function ? set_function(plan, *function) : set_no_function(plan);
}

void set_integers(TemplatePlan& plan, std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  for (const auto& [name, value] : values) plan.integers[name] = saturate_to_int(value);
}

int choose_steps(const Task& task, std::int64_t elements, bool vectors) {
  const ArchSpec& arch = arch_of(task);
  const std::int64_t pieces = elements / (vectors ? kVectorWords : 1);
  // More pieces for a thread only where all multiprocessors are full without.
  const std::int64_t at_once = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor / kBlockThreads;
  const std::int64_t waves = ceil_div(pieces, kBlockThreads) * task.batch / at_once;
  int steps = waves >= 4 ? 4 : waves >= 2 ? 2 : 1;
  while (steps > 1 && pieces < std::int64_t{steps} * kBlockThreads) steps /= 2;
  return steps;
}

void set_pieces(TemplatePlan& plan, const Task& task, std::int64_t elements, bool vectors, const TemplatePlan* chosen) {
  const bool fours = vectors && elements % kVectorWords == 0 && is_wide(plan.input()) && is_wide(plan.output());
  const int vector = fours ? kVectorWords : 1;
  const int steps = chosen ? chosen->integers.at("steps") : choose_steps(task, elements, fours);
  if (!fours) set_narrow(plan);
  set_integers(plan, {{"elements", elements}, {"vector", vector}, {"steps", steps}});
  set_items(plan, ceil_div(elements / vector, steps));
}

void set_items(TemplatePlan& plan, std::int64_t items) {
  plan.launch().threads = static_cast<int>(std::min<std::int64_t>(kBlockThreads, round_up(items, kWarpSize)));
  plan.launch().tiles_per_image = ceil_div(items, plan.launch().threads);
}

void set_convolution(TemplatePlan& plan, const ConvShape& shape) {
  set_integers(plan, {{"in_rows", shape.in_h},
                      {"in_cols", shape.in_w},
                      {"out_cols", shape.conv_w()},
                      {"kernel_rows", shape.kernel_h},
                      {"kernel_cols", shape.kernel_w},
                      {"stride_rows", shape.stride_h},
                      {"stride_cols", shape.stride_w},
                      {"dilation_rows", shape.dilation_h},
                      {"dilation_cols", shape.dilation_w},
                      {"pad_top", shape.pad.top},
                      {"pad_left", shape.pad.left},
                      {"residual", shape.epilogue.residual},
                      {"residual_last", shape.epilogue.residual_last}});
  set_function(plan, shape.epilogue.function);
}

void set_pool(TemplatePlan& plan, const ConvShape& shape) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  set_integers(plan, {{"conv_rows", shape.conv_h()},
                      {"conv_cols", shape.conv_w()},
                      {"pools", shape.epilogue.pool.has_value()},
                      {"pool_averages", pool.kind == PoolKind::average},
                      {"pool_rows", pool.kernel_h},
                      {"pool_cols", pool.kernel_w},
                      {"pool_stride_rows", pool.stride_h},
                      {"pool_stride_cols", pool.stride_w},
                      {"pool_pad_top", pool.pad.top},
                      {"pool_pad_bottom", pool.pad.bottom},
                      {"pool_pad_left", pool.pad.left},
                      {"pool_pad_right", pool.pad.right},
                      {"pool_counts_padding", pool.count_padding},
                      {"windows_leave_rows", windows_leave_rows(shape)},
                      {"windows_leave_cols", windows_leave_cols(shape)}});
}

void set_pool_filter(TemplatePlan& plan, const ConvShape& shape) {
  const std::optional<Elementwise>& then = shape.epilogue.then;
  set_integers(plan, {{"pool_filters", shape.epilogue.filters()},
                      {"filtered_function", then ? static_cast<int>(then->function) + 1 : 0}});
  plan.reals["filtered_alpha"] = then ? then->alpha : 0;
  plan.reals["filtered_beta"] = then ? then->beta : 0;
}

double activation_bytes(const Task& task) {
  // The words of an image are those of all that lie side by side.
  const auto bytes = [&](const KernelTensor& tensor) {
    return static_cast<double>(tensor.words() * tensor.word_bytes() *
                               ceil_div(task.batch, images_together(tensor.layout)));
  };
  double all = bytes(task.writes);
  for (const KernelTensor& read : task.reads) all += bytes(read);
  return all;
}

std::uint32_t half_word(ElementType type, float first, float second) {
  return to_half(type, first) | static_cast<std::uint32_t>(to_half(type, second)) << 16;
}

void append_words(std::vector<std::uint32_t>& words, std::span<const float> values) {
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
}

}  // namespace burin
