// Convolutions by cuDNN: each of its forward algorithms is a candidate, with bias, residual and relu in the same call.
// Beside the call a kernel has code of another provider, which runs where the library does not.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/providers/provider.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/library_call.h"
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

bool is_plain(const KernelTensor& tensor) { return tensor.format().is_plain() && tensor.runs == 1; }

// Where factors may be rounded to halves they may be to TF32, which has no fewer digits than either.
FactorType call_factors(const Task& task) {
  return task.factors == FactorType::f32 ? FactorType::f32 : FactorType::tf32;
}

// Whether cuDNN's documentation says that the algorithm computes such a layer. What it refuses besides, measuring
// shows.
bool may_serve(ConvolutionAlgorithm algorithm, const ConvShape& shape) {
  const bool unit_steps = shape.stride_h == 1 && shape.stride_w == 1 && shape.dilation_h == 1 && shape.dilation_w == 1;
  const auto is_square = [&](int extent) { return shape.kernel_h == extent && shape.kernel_w == extent; };
  const Epilogue& epilogue = shape.epilogue;
  const bool is_fused_identity = (epilogue.bias || epilogue.residual) && !epilogue.function;
  switch (algorithm) {
    case ConvolutionAlgorithm::implicit_precomp_gemm:
      return true;
    case ConvolutionAlgorithm::implicit_gemm:
    case ConvolutionAlgorithm::gemm:
    case ConvolutionAlgorithm::direct:
      return !is_fused_identity;  // fused calls know no other algorithm without an activation
    case ConvolutionAlgorithm::fft:
    case ConvolutionAlgorithm::fft_tiling:
      return unit_steps && !is_fused_identity;
    case ConvolutionAlgorithm::winograd:
      return unit_steps && is_square(3) && !is_fused_identity;
    case ConvolutionAlgorithm::winograd_nonfused:
      return unit_steps && (is_square(3) || is_square(5)) && !is_fused_identity;
  }
  return false;
}

// What --plan chooses of a call.
struct CallChoices {
  std::optional<ConvolutionAlgorithm> algorithm;
  std::optional<std::int64_t> workspace_limit;
};

CallChoices parse_call_choices(const std::string& text) {
  CallChoices choices;
  if (text.empty()) return choices;
  for (const std::string_view item : split(text, ',')) {
    const std::string_view key = item.substr(0, item.find('='));
    const std::string value(item.substr(std::min(item.size(), key.size() + 1)));
    if (key == "algorithm") {
      choices.algorithm = parse_enum<ConvolutionAlgorithm>(value);
      if (!choices.algorithm) {
        fail(ErrorKind::usage, "--plan algorithm={}: known are {}", printable(value),
             known_names<ConvolutionAlgorithm>());
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

class ConvCudnn : public Provider {
 public:
  ConvCudnn() : Provider(kCudnnProvider) {}

  bool needs_measuring() const override { return true; }
  bool is_dense() const override { return true; }

  bool can_do(const Task& task) const override {
    return task.layer != nullptr && task.precision == Precision::fp32 && !task.activity_maps &&
           can_call(task.layer->shape) && is_plain(task.writes) && std::ranges::all_of(task.reads, is_plain) &&
           !own_providers(task).empty();
  }

  void check_choices(const std::string& plan) const override { (void)parse_call_choices(plan); }

  std::vector<Candidate> propose(const Task& task, const ProposeOptions& options) const override {
    const CallChoices choices = parse_call_choices(options.plan);
    if (!can_do(task)) return {};
    const std::optional<Candidate> own = own_candidate(task);
    if (!own) return {};
    std::vector<Candidate> candidates;
    // Where nothing is measured the first is taken: of the general ones the one that is fast most often.
    for (const ConvolutionAlgorithm algorithm :
         {ConvolutionAlgorithm::implicit_precomp_gemm, ConvolutionAlgorithm::implicit_gemm,
          ConvolutionAlgorithm::winograd, ConvolutionAlgorithm::winograd_nonfused, ConvolutionAlgorithm::gemm,
          ConvolutionAlgorithm::fft_tiling, ConvolutionAlgorithm::fft, ConvolutionAlgorithm::direct}) {
      if (choices.algorithm ? algorithm != *choices.algorithm : !may_serve(algorithm, task.layer->shape)) continue;
      LibraryPlan plan{.call = {.algorithm = algorithm, .factors = call_factors(task)},
                       .provider = own->provider,
                       .plan = own->plan};
      if (choices.workspace_limit) plan.call.workspace_limit = *choices.workspace_limit;
      // Nobody has said what it takes.
      candidates.push_back({std::string(name()), print(plan), symbol_for(task), {}});
      if (options.count == 1) break;
    }
    return candidates;
  }

  std::string brief(const std::string& plan) const override {
    return fmt::format("algorithm={}", to_string(parse_library_plan(plan).call.algorithm));
  }

  std::string placed(const std::string& text, const Task& task) const override {
    LibraryPlan plan = parse_library_plan(text);
    plan.plan = own_provider(task.name, plan.provider).placed(plan.plan, task);
    return print(plan);
  }

  SpecialisedModule module_of(const Kernel& kernel, const ConvLayer* layer) const override {
    const LibraryPlan plan = parse_library_plan(kernel.plan);
    Kernel own = kernel;
    own.provider = plan.provider;
    own.plan = plan.plan;
    return own_provider(kernel.op, plan.provider).module_of(own, layer);
  }

  Recipe make(const Task& task, const std::string& text) const override {
    const LibraryPlan plan = parse_library_plan(text);
    const auto refuse = [&](const std::string& why) {
      fail(ErrorKind::unsupported, "layer '{}': this plan cannot be used: {}", task.name, why);
    };
    if (!can_do(task)) refuse(fmt::format("{} cannot compute it", name()));
    if (plan.call.factors != FactorType::f32 && plan.call.factors != call_factors(task)) {
      refuse(fmt::format("its call rounds to {}, which --precision does not ask for", to_string(plan.call.factors)));
    }
    Recipe recipe = own_provider(task.name, plan.provider).make(task, plan.plan);
    if (const auto faults = verify(plan.call, task.layer->shape, recipe.form); !faults.empty()) refuse(faults.front());
    recipe.symbol = symbol_for(task);
    recipe.plan_short = describe(plan.call, recipe.plan_short);
    recipe.call = plan.call;
    return recipe;
  }

 private:
  std::string symbol_for(const Task& task) const { return fmt::format("{}_{}", symbol_of(task.name), name()); }

  // The one that a plan names for its own code.
  static const Provider& own_provider(const std::string& layer, const std::string& provider) {
    const Provider* found = find_provider(provider);
    if (found == nullptr || found->bakes_weights() || found->needs_measuring()) {
      fail(ErrorKind::bad_input, "layer '{}': no kernel of '{}' can stand beside a library's call", layer,
           printable(provider));
    }
    return *found;
  }
};

}  // namespace

const Provider& conv_cudnn_provider() { return the_only<ConvCudnn>(); }

}  // namespace burin
