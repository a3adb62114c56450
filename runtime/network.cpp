#include "runtime/burin/network.hpp"

#include "ir/error.h"
#include "runtime/elements.h"
#include "runtime/launch_plan.h"
#include "runtime/network_state.h"

namespace burin {
namespace {

const BoundStep& step_at(const NetworkRunState& run, int index) {
  if (index < 0 || index >= static_cast<int>(run.steps.size())) {
    fail(ErrorKind::usage, "step {} is none of the {} of this run", index, run.steps.size());
  }
  return run.steps[static_cast<std::size_t>(index)];
}

}  // namespace

// ---- NetworkState

std::vector<NetworkTensor> NetworkState::tensors(BufferHome home, int batch) const {
  const Program& program = program_for(programs, batch);
  std::vector<NetworkTensor> tensors;
  for (const Buffer* buffer : program.arguments(home)) {
    const std::int64_t channels = buffer->shape.size() == 3 ? buffer->shape[0] : 1;
    tensors.push_back({.name = buffer->tensor,
                       .shape = buffer->shape,
                       .element = public_element(buffer->format.element),
                       .channels_together = static_cast<int>(channels_side_by_side(buffer->format.layout, channels)),
                       .images_together = buffer->images_together(),
                       .is_map = buffer->map.has_value(),
                       .piece_bytes = buffer->bytes / program.pieces(*buffer)});
  }
  return tensors;
}

// ---- LoadedNetwork

LoadedNetwork::LoadedNetwork(const Device& device, const std::string& path, const LoadOptions& options)
    : LoadedNetwork(LoadedPackage(device, path, options)) {}

LoadedNetwork::LoadedNetwork(const LoadedPackage& package, std::string_view name)
    : state_(std::make_shared<NetworkState>()) {
  state_->package = package.state();
  const Manifest& manifest = package.manifest();
  const std::vector<std::string> names = program_names(manifest);
  if (names.empty())
    fail(ErrorKind::usage, "{} holds no programs; launch its kernels one by one", state_->package->name);
  if (name.empty() && names.size() != 1) {
    fail(ErrorKind::usage, "{} holds {} layers and no network: say which of them, or launch its kernels one by one",
         state_->package->name, names.size());
  }
  state_->programs = state_->package->index.programs(name.empty() ? names.front() : name);
  if (state_->programs.empty()) {
    fail(ErrorKind::usage, "{} has no program '{}'; it has {}", state_->package->name, name, list_names(names));
  }
}

LoadedNetwork::LoadedNetwork(const LoadedPackage& package, std::shared_ptr<const Program> program)
    : state_(std::make_shared<NetworkState>()) {
  state_->package = package.state();
  for (const Step& step : program->steps) {
    if (state_->package->slots.contains(step.kernel)) continue;
    fail(ErrorKind::usage, "{} has no kernel '{}'", state_->package->name, step.kernel);
  }
  state_->given = std::move(program);
  state_->programs = {state_->given.get()};
}

std::vector<NetworkTensor> LoadedNetwork::inputs(int batch) const { return state_->tensors(BufferHome::input, batch); }
std::vector<NetworkTensor> LoadedNetwork::outputs(int batch) const {
  return state_->tensors(BufferHome::output, batch);
}
std::vector<int> LoadedNetwork::batches() const {
  std::vector<int> batches;
  for (const Program* program : state_->programs) batches.push_back(program->batch);
  return batches;
}
NetworkSchedule LoadedNetwork::schedule(int batch) const { return make_schedule(state_->programs, batch); }

std::int64_t LoadedNetwork::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [symbol, slot] : state_->package->slots) {
    const std::lock_guard lock(slot.mutex);
    if (slot.loaded != nullptr) bytes += slot.loaded->weight_bytes();
  }
  return bytes;
}

std::vector<std::string> LoadedNetwork::notes() const { return kept_notes().all(); }
const LoadNotes& LoadedNetwork::kept_notes() const { return *state_->package->notes; }

NetworkRun LoadedNetwork::bind(const NetworkIo& io, const NetworkOptions& options) const {
  return NetworkRun(bind_network(state_, io, options));
}

// ---- NetworkRun

void NetworkRun::launch(CUstream_st* stream) const { state_->graph->launch(stream); }
const NetworkSchedule& NetworkRun::schedule() const { return state_->schedule; }
std::int64_t NetworkRun::arena_bytes() const { return static_cast<std::int64_t>(state_->arena.bytes()); }
std::int64_t NetworkRun::scratch_bytes() const { return state_->scratch.size().total(); }

int NetworkRun::steps() const { return static_cast<int>(state_->steps.size()); }
const Step& NetworkRun::step(int index) const { return step_at(*state_, index).step(); }
int NetworkRun::part_of(int index) const { return step_at(*state_, index).part; }
const Program& NetworkRun::program_of(int index) const { return *step_at(*state_, index).program; }

std::string NetworkRun::library_call(int index) const {
  step_at(*state_, index);
  const KernelLaunch& launch = state_->launches[static_cast<std::size_t>(index)];
  return launch.call == nullptr ? "" : launch.call->what();
}

void NetworkRun::launch_step(int index, CUstream_st* stream) const {
  step_at(*state_, index);
  state_->launches[static_cast<std::size_t>(index)].enqueue(stream);
}

void* NetworkRun::address(int index, const Place& place) const {
  const BoundStep& step = step_at(*state_, index);
  const Program& program = *step.program;
  if (place.buffer < 0 || place.buffer >= static_cast<int>(program.buffers.size())) {
    fail(ErrorKind::usage, "buffer {} is none of the {} of the program of step {}", place.buffer,
         program.buffers.size(), index);
  }
  return state_->buffer_address(step.part, program, place.buffer) + place.offset;
}

}  // namespace burin
