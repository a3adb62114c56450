#include "compiler/host/host_programs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/parallel_for.h"
#include "ir/place_values.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

const float kPoison = std::bit_cast<float>(~std::uint32_t{0});  // a NaN, and of a map no mark

// A file of words, such as a kernel's weights.
std::vector<std::uint32_t> words_of(const std::string& bytes) {
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
  return words;
}

// The memory that a program's buffers are, for so many images.
class Memory {
 public:
  Memory(const Program& program, int batch)
      : program_(program), batch_(batch), arena_(words(program.arena_bytes), kPoison) {
    for (const Buffer& buffer : program.buffers) {
      const bool is_argument = buffer.home != BufferHome::arena;
      arguments_.emplace_back(is_argument ? words(program.bytes(buffer, batch)) : 0, kPoison);
    }
  }

  // The words of the images.
  std::span<float> of(int index) {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(index)];
    if (buffer.home != BufferHome::arena) return arguments_[static_cast<std::size_t>(index)];
    return std::span(arena_).subspan(static_cast<std::size_t>(buffer.offset / kWordBytes),
                                     words(program_.bytes(buffer, batch_)));
  }

  // What a step reads or writes there; a kernel's pointers are where its tensors begin.
  std::span<float> of(const Place& place) {
    const std::int64_t begin = place.offset / kWordBytes;
    return of(place.buffer)
        .subspan(static_cast<std::size_t>(begin),
                 static_cast<std::size_t>(words_until_end(program_, place, batch_) - begin));
  }
  // A map has no parts.
  std::span<std::uint8_t> map(const Place& place) {
    return {reinterpret_cast<std::uint8_t*>(of(place.buffer).data()),
            static_cast<std::size_t>(program_.bytes(program_.buffer(place), batch_))};
  }

  std::string filling(const Place& place) { return filling_fault(program_, place, batch_, of(place.buffer)); }
  std::vector<float> values(const Place& place) { return read_place(program_, place, batch_, of(place.buffer)); }
  void set(const Place& place, std::span<const float> values) {
    write_place(program_, place, batch_, values, of(place.buffer));
  }

 private:
  static std::size_t words(std::int64_t bytes) { return static_cast<std::size_t>(ceil_div(bytes, kWordBytes)); }

  const Program& program_;
  int batch_;
  std::vector<float> arena_;
  std::vector<std::vector<float>> arguments_;  // of each buffer; empty in the arena
};

// But for the weights.
HostLaunchArguments arguments_of(const Step& step, const KernelForm& form, int batch, Memory& memory) {
  HostLaunchArguments arguments{.batch = batch, .input = {}, .output = memory.of(step.writes)};
  for (const KernelTensor& tensor : form.tensors) {
    if (!tensor.exists() || (tensor.role != TensorRole::input && tensor.role != TensorRole::residual)) continue;
    (tensor.role == TensorRole::input ? arguments.input : arguments.residual) =
        memory.of(step.reads[static_cast<std::size_t>(tensor.argument)]);
  }
  if (step.input_map) arguments.input_map = memory.map(*step.input_map);
  if (step.output_map) arguments.output_map = memory.map(*step.output_map);
  return arguments;
}

}  // namespace

HostPrograms::HostPrograms(const Package& package, ModuleSource modules, int jobs, HostLaunchers launchers,
                           HostFunctions functions)
    : package_(package),
      modules_(std::move(modules)),
      jobs_(jobs),
      launchers_(std::move(launchers)),
      functions_(std::move(functions)) {
  for (const Kernel& kernel : package.manifest.kernels) kernels_[kernel.symbol].kernel = &kernel;
}

HostPrograms::StepKernel& HostPrograms::kernel_of(const Step& step) {
  const auto found = kernels_.find(step.kernel);
  BURIN_CHECK(found != kernels_.end(), "a package with a kernel '{}' that is not there was read", step.kernel);
  return found->second;
}

void HostPrograms::make(StepKernel& made) const {
  const std::lock_guard lock(made.mutex);
  if (made.host) return;
  if (!made.kernel->weights.empty()) made.weights = words_of(*package_.files.at(made.kernel->weights).content());
  if (launchers_.contains(made.kernel->symbol)) return;
  for (const KernelFunction& called : made.kernel->functions) {
    if (functions_.contains(called.function.symbol())) continue;
    fail(ErrorKind::unsupported,
         "{}: it calls '{}', an operator that a user gave; no package brings code for the host, so give it again: "
         "--operator {}=FILE",
         made.kernel->owner(), printable(called.function.name), printable(called.function.name));
  }
  made.host.emplace(modules_(*made.kernel), made.kernel->entry_name(), made.kernel->form, 0, functions_);
}

void HostPrograms::make_kernels(const Program& program) {
  std::vector<StepKernel*> wanted;
  for (const Step& step : program.steps) wanted.push_back(&kernel_of(step));
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  for_each_parallel(wanted.size(), jobs_, [&](std::size_t i) { make(*wanted[i]); });
}

void HostPrograms::launch(const Step& step, StepKernel& kernel, HostLaunchArguments arguments) const {
  const std::lock_guard lock(kernel.mutex);
  arguments.weights = kernel.weights;
  if (!kernel.host) return launchers_.at(step.kernel)(arguments);
  kernel.host->run(arguments);
  kernel.host->release();
}

Tensors HostPrograms::run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit) {
  BURIN_CHECK(batch >= 1 && batch <= program.most_images(), "{} images for a program of {}", batch, program.batch);
  BURIN_CHECK(inputs.size() == program.inputs().size(), "{} inputs, not {}", inputs.size(), program.inputs().size());
  make_kernels(program);
  Memory memory(program, batch);
  for (const Buffer* buffer : program.inputs()) {
    memory.set(whole_place(program, *buffer), inputs[static_cast<std::size_t>(buffer->argument)]);
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    StepValues seen;
    seen.step = static_cast<int>(i);
    if (visit) {
      for (const Place& read : step.reads) seen.reads.push_back(memory.values(read));
    }
    StepKernel& kernel = kernel_of(step);
    launch(step, kernel, arguments_of(step, kernel.kernel->form, batch, memory));
    if (!visit) continue;
    seen.output = memory.values(step.writes);
    seen.fault = memory.filling(step.writes);
    visit(seen);
  }
  Tensors outputs;
  for (const Buffer* buffer : program.outputs()) outputs.push_back(memory.values(whole_place(program, *buffer)));
  return outputs;
}

}  // namespace burin
