#include "compiler/providers/call_provider.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/specialise/specialised_module.h"
#include "ir/error.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

// What may stand beside a call: weights that are data take little time to pack, and are in the package once.
std::vector<const Provider*> own_providers(const Task& task) {
  std::vector<const Provider*> found;
  for (const Provider* provider : providers()) {
    if (!provider->bakes_weights() && !provider->needs_measuring() && provider->can_do(task)) found.push_back(provider);
  }
  return found;
}

// The best of the others; nothing where none has one.
std::optional<Candidate> own_candidate(const Task& task) {
  std::optional<Candidate> best;
  for (const Provider* provider : own_providers(task)) {
    for (Candidate& candidate : provider->propose(task, {})) {
      if (!best || candidate.estimate.us < best->estimate.us) best = std::move(candidate);
    }
  }
  return best;
}

// The one that a plan names for its own code.
const Provider& own_provider(const std::string& layer, const std::string& provider) {
  const Provider* found = find_provider(provider);
  if (found == nullptr || found->bakes_weights() || found->needs_measuring()) {
    fail(ErrorKind::bad_input, "layer '{}': no kernel of '{}' can stand beside a library's call", layer,
         printable(provider));
  }
  return *found;
}

// All tensors are of one format, which the library knows.
bool can_call_on_tensors(const Task& task) {
  const TensorFormat format = task.writes.format();
  const auto is_alike = [&](const KernelTensor& tensor) { return tensor.format() == format && tensor.runs == 1; };
  return can_call_on(format) && is_alike(task.writes) && std::ranges::all_of(task.reads, is_alike);
}

// Biases become elements as well, and may not become infinite.
bool can_hold_biases(const Task& task) {
  const ElementType element = task.writes.element;
  if (element == ElementType::f32 || task.layer == nullptr) return true;
  const double most = largest_of(element);
  return std::ranges::all_of(task.layer->bias, [&](float bias) { return std::abs(bias) <= most; });
}

// Where factors may be rounded to halves they may be to TF32, which has no fewer digits than either.
FactorType call_factors(const Task& task) {
  if (task.writes.element != ElementType::f32) return factors_of(task.writes.element);
  return task.factors == FactorType::f32 ? FactorType::f32 : FactorType::tf32;
}

// What the places of all tensors allow.
int call_alignment(Library library, const Task& task) {
  if (library == Library::cudnn) return kWordBytes;
  int alignment = std::min(kMaxCallAlignment, task.writes.alignment);
  for (const KernelTensor& read : task.reads) alignment = std::min(alignment, read.alignment);
  return std::max(alignment, kWordBytes);
}

std::string call_symbol(const Task& task, std::string_view provider) {
  return fmt::format("{}_{}", symbol_of(task.name), provider);
}

// What --plan chooses of a call.
struct CallChoices {
  std::optional<CallAlgorithm> algorithm;
  std::optional<std::int64_t> workspace_limit;
};

CallChoices parse_call_choices(Library library, const std::string& text) {
  CallChoices choices;
  if (text.empty()) return choices;
  for (const std::string_view item : split(text, ',')) {
    const std::string_view key = item.substr(0, item.find('='));
    const std::string value(item.substr(std::min(item.size(), key.size() + 1)));
    if (key == "algorithm") {
      choices.algorithm = parse_algorithm(library, value);
      if (!choices.algorithm) {
        fail(ErrorKind::usage, "--plan algorithm={}: known are {}", printable(value), known_algorithms(library));
      }
    } else if (key == "workspace_limit") {
      choices.workspace_limit = parse_number<std::int64_t>(value);
      if (!choices.workspace_limit || *choices.workspace_limit < 0 ||
          *choices.workspace_limit > kMaxCallWorkspaceBytes) {
        fail(ErrorKind::usage, "--plan workspace_limit={}: 0 to {} bytes", printable(value), kMaxCallWorkspaceBytes);
      }
    } else {
      fail(ErrorKind::usage, "--plan {}: a library's call has the choices algorithm=NAME and workspace_limit=BYTES",
           printable(std::string(item)));
    }
  }
  return choices;
}

}  // namespace

std::vector<CallAlgorithm> product_algorithms() {
  std::vector<CallAlgorithm> algorithms;
  for (std::size_t i = 0; i < names_of(ProductAlgorithm{}).names.size(); ++i) {
    algorithms.emplace_back(static_cast<ProductAlgorithm>(i));
  }
  return algorithms;
}

bool is_called_convolution(const Task& task) {
  const bool sums_floats = task.precision == Precision::fp32 || task.precision == precision_of(task.writes.element);
  return task.layer != nullptr && sums_floats && !task.activity_maps;
}

bool CallProvider::can_do(const Task& task) const {
  if (!is_for(task) || !can_call_on_tensors(task) || !can_hold_biases(task)) return false;
  const ConvShape shape = called_shape(task);
  return verify(shape).empty() && can_call(library_, shape, task.writes.format()) && !own_providers(task).empty();
}

void CallProvider::check_choices(const std::string& plan) const { (void)parse_call_choices(library_, plan); }

std::vector<Candidate> CallProvider::propose(const Task& task, const ProposeOptions& options) const {
  const CallChoices choices = parse_call_choices(library_, options.plan);
  if (!can_do(task)) return {};
  const std::optional<Candidate> own = own_candidate(task);
  if (!own) return {};
  const ConvShape shape = called_shape(task);
  std::vector<Candidate> candidates;
  for (const CallAlgorithm& algorithm : algorithms()) {
    const bool may_be = may_serve(algorithm, shape) && may_serve(algorithm, task.writes.format(), call_factors(task));
    if (choices.algorithm ? algorithm != *choices.algorithm : !may_be) continue;
    LibraryPlan plan{
        .call = {.algorithm = algorithm, .factors = call_factors(task), .alignment = call_alignment(library_, task)},
        .provider = own->provider,
        .plan = own->plan};
    if (choices.workspace_limit) plan.call.workspace_limit = *choices.workspace_limit;
    // Nobody has said what it takes.
    candidates.push_back({std::string(name()), print(plan), call_symbol(task, name()), {}});
    if (options.count == 1) break;  // which of several is the best, measuring alone tells
  }
  return candidates;
}

std::string CallProvider::brief(const std::string& plan) const {
  return fmt::format("algorithm={}", to_string(parse_library_plan(plan).call.algorithm));
}

std::string CallProvider::placed(const std::string& text, const Task& task) const {
  LibraryPlan plan = parse_library_plan(text);
  plan.call.alignment = call_alignment(library_, task);
  plan.plan = own_provider(task.name, plan.provider).placed(plan.plan, task);
  return print(plan);
}

SpecialisedModule CallProvider::module_of(const Kernel& kernel, const ConvLayer* layer) const {
  const LibraryPlan plan = parse_library_plan(kernel.plan);
  Kernel own = kernel;
  own.provider = plan.provider;
  own.plan = plan.plan;
  return own_provider(kernel.op, plan.provider).module_of(own, layer);
}

Recipe CallProvider::make(const Task& task, const std::string& text) const {
  const LibraryPlan plan = parse_library_plan(text);
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::unsupported, "layer '{}': this plan cannot be used: {}", task.name, why);
  };
  if (plan.call.library() != library_) {
    refuse(fmt::format("it calls {}, and {} calls {}", to_string(plan.call.library()), name(), to_string(library_)));
  }
  if (!can_do(task)) refuse(fmt::format("{} cannot compute it", name()));
  if (plan.call.factors != FactorType::f32 && plan.call.factors != call_factors(task)) {
    refuse(fmt::format("its call rounds to {}, which --precision does not ask for", to_string(plan.call.factors)));
  }
  Recipe recipe = own_provider(task.name, plan.provider).make(task, plan.plan);
  if (const auto faults = verify(plan.call, called_shape(task), recipe.form); !faults.empty()) refuse(faults.front());
  if (const int most = call_alignment(library_, task); plan.call.alignment > most) {
    refuse(fmt::format("alignment is {}, and its tensors begin at multiples of {} bytes", plan.call.alignment, most));
  }
  recipe.symbol = call_symbol(task, name());
  recipe.plan_short = describe(plan.call, recipe.plan_short);
  recipe.form = form_with_call(std::move(recipe.form), plan.call);
  recipe.call = plan.call;
  return recipe;
}

}  // namespace burin
