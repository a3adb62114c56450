#include "ir/package/device_memory.h"

#include <algorithm>
#include <set>

#include "ir/arena.h"
#include "ir/derive_form.h"
#include "ir/limits.h"
#include "ir/package/manifest_index.h"
#include "ir/template_plan.h"

namespace burin {
namespace {

constexpr int kFloatBytes = 4, kHalfBytes = 2;

// Code keeps the digits of weights that are instructions; the network's precision says what they would be as data.
int value_bytes(const Kernel& kernel) {
  const std::optional<Precision> precision = parse_enum<Precision>(kernel.precision);
  if (precision && is_half(*precision)) return kHalfBytes;
  if (kernel.own_provider() == kBakedProvider) return kFloatBytes;
  const FactorType stored = stored_weights(parse_template_plan(kernel.own_plan()));
  return stored == FactorType::f16 || stored == FactorType::bf16 ? kHalfBytes : kFloatBytes;
}

// Adds what kernels bring along: each of them, code that they share, and each file of weights once.
class LoadedSum {
 public:
  explicit LoadedSum(MemorySum& sum) : sum_(sum) {}

  // `of_network`: whether the step is one of the first program of its network or layer. Programs may have joined
  // other layers, of which each has all weights.
  void add(const StepMemory& step, bool of_network) {
    const Kernel& kernel = *step.kernel;
    if (of_network && step.forms && layers_.insert(kernel.op).second) sum_.forms += *step.forms;
    if (!symbols_.insert(kernel.symbol).second) return;
    if (step.loaded.code_bytes < 0) ++sum_.kernels_without_code;
    const std::optional<std::string> shared = kernel.shared_code();
    if (!shared || codes_.insert(*shared).second) sum_.code_bytes += std::max<std::int64_t>(0, step.loaded.code_bytes);
    sum_.weight_bytes += step.loaded.library_bytes;
    if (files_.insert(kernel.weights).second) sum_.weight_bytes += step.loaded.weight_bytes;
  }

 private:
  MemorySum& sum_;
  std::set<std::string> symbols_, codes_, files_, layers_;
};

// A launch that needs more is refused, and counts as much.
std::int64_t most_scratch(std::int64_t bytes) { return std::min(bytes, kMaxWorkspaceBytes); }

std::int64_t program_scratch(const Program& program, const std::vector<StepMemory>& steps) {
  std::int64_t counters = 0;
  std::vector<std::int64_t> partials;
  for (const StepMemory& step : steps) {
    const std::int64_t own = most_scratch(counter_bytes(step.kernel->form.launch, program.batch));
    counters += own;
    partials.push_back(step.scratch_bytes - own);
  }
  return counters + lay_out_partials(program, partials).bytes;
}

}  // namespace

WeightForms& WeightForms::operator+=(const WeightForms& other) {
  dense_bytes += other.dense_bytes;
  csr_bytes += other.csr_bytes;
  return *this;
}

std::optional<WeightForms> weight_forms(const Kernel& kernel) {
  const std::optional<WeightMatrix> matrix = kernel.matrix();
  if (!matrix) return std::nullopt;
  const int bytes = value_bytes(kernel);
  return WeightForms{matrix->dense_bytes(bytes), matrix->csr_bytes(bytes)};
}

KernelMemory memory_of(const Kernel& kernel, const std::optional<std::string>& arch) {
  KernelMemory memory{.code_bytes = described_code(kernel, arch).code_bytes};
  if (const KernelTensor* weights = kernel.form.find(TensorRole::weights)) {
    memory.weight_bytes = weights->run_words * kWordBytes;
  }
  if (kernel.call) {
    memory.library_bytes = library_bytes(*kernel.call, kernel.called_shape(), called_format(kernel.form));
  }
  return memory;
}

std::int64_t scratch_bytes(const Kernel& kernel, std::int64_t batch) {
  const LaunchGeometry& launch = kernel.form.launch;
  const std::int64_t own = most_scratch(counter_bytes(launch, batch)) + most_scratch(partial_bytes(launch, batch));
  if (!kernel.call || !kernel.tuning) return own;
  return std::max(own, kernel.tuning->candidates.at(static_cast<std::size_t>(kernel.tuning->chosen)).workspace_bytes);
}

DeviceMemory device_memory(const Manifest& manifest, const std::optional<std::string>& arch) {
  const ManifestIndex index(manifest);
  DeviceMemory memory;
  LoadedSum all(memory.sum);
  std::set<std::string> names;
  for (const Program& program : manifest.programs) {
    ProgramMemory& made = memory.programs.emplace_back(ProgramMemory{.program = &program, .steps = {}, .sum = {}});
    LoadedSum loaded(made.sum);
    const bool is_first = names.insert(program.name).second;
    for (const Step& step : program.steps) {
      const Kernel& kernel = index.kernel(step.kernel);
      made.steps.push_back(
          {&kernel, memory_of(kernel, arch), scratch_bytes(kernel, program.batch), weight_forms(kernel)});
      loaded.add(made.steps.back(), true);
      all.add(made.steps.back(), is_first);
    }
    made.sum.arena_bytes = program.arena_bytes;
    made.sum.scratch_bytes = program_scratch(program, made.steps);
    const auto works_in = [](const MemorySum& sum) { return sum.arena_bytes + sum.scratch_bytes; };
    if (works_in(made.sum) > works_in(memory.sum)) {
      memory.sum.arena_bytes = made.sum.arena_bytes;
      memory.sum.scratch_bytes = made.sum.scratch_bytes;
    }
  }
  return memory;
}

}  // namespace burin
