// From a network and pointers to launches and a graph.
#include <algorithm>
#include <set>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "runtime/launch_plan.h"
#include "runtime/network_state.h"

namespace burin {
namespace {

std::uintptr_t as_number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// ---- the caller's pointers

// One of the caller's tensors, as a range of bytes.
struct Argument {
  std::string name;  // "input 'image'"
  const void* pointer = nullptr;
  std::int64_t bytes = 0;
};

void add_arguments(std::vector<Argument>& arguments, const char* which, const std::vector<NetworkTensor>& tensors,
                   const auto& pointers, int batch) {
  if (pointers.size() != tensors.size()) {
    std::string names;
    for (const NetworkTensor& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
    fail(ErrorKind::usage, "the network has {} {}{} ({}), and {} pointer{} given", tensors.size(), which,
         tensors.size() == 1 ? "" : "s", names, pointers.size(), pointers.size() == 1 ? " was" : "s were");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    arguments.push_back({fmt::format("{} '{}'", which, tensors[i].name), pointers[i], tensors[i].bytes(batch)});
    if (pointers[i] == nullptr) fail(ErrorKind::usage, "{} is a null pointer", arguments.back().name);
  }
}

void check_arguments(const NetworkState& network, const NetworkIo& io) {
  std::vector<Argument> arguments;
  add_arguments(arguments, "input", network.tensors(BufferHome::input, io.batch), io.inputs, io.batch);
  const std::size_t inputs = arguments.size();
  add_arguments(arguments, "output", network.tensors(BufferHome::output, io.batch), io.outputs, io.batch);
  // Steps that run at the same time would write what others read.
  for (std::size_t i = inputs; i < arguments.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Argument &a = arguments[i], &b = arguments[j];
      const auto bytes = [](const Argument& argument) { return static_cast<std::uintptr_t>(argument.bytes); };
      if (as_number(a.pointer) >= as_number(b.pointer) + bytes(b) ||
          as_number(b.pointer) >= as_number(a.pointer) + bytes(a)) {
        continue;
      }
      fail(ErrorKind::usage, "{} and {} overlap at batch {}: {} bytes at {} and {} bytes at {}", a.name, b.name,
           io.batch, a.bytes, fmt::ptr(a.pointer), b.bytes, fmt::ptr(b.pointer));
    }
  }
}

// ---- launches

class Binder {
 public:
  Binder(NetworkState& network, NetworkRunState& run, const NetworkOptions& options)
      : network_(network), run_(run), options_(options) {}

  void bind() {
    lay_out_parts();
    allocate();
    for (std::size_t part = 0; part < run_.schedule.parts.size(); ++part) add_part(static_cast<int>(part));
    run_.graph = std::make_unique<KernelGraph>(network_.package->device.state(), run_.launches, edges_);
  }

 private:
  // A program that runs parts of the batch, and where the scratch memory of its steps lies.
  struct BoundProgram {
    const Program* program = nullptr;
    std::set<int> images;              // of its parts
    std::vector<WorkspaceSize> sizes;  // of each step, for any of them
    ScratchLayout scratch;
    std::int64_t first_counter = 0;  // bytes of counters of other programs before its own
  };

  BoundProgram& program_of(int part) {
    return programs_.at(run_.schedule.parts[static_cast<std::size_t>(part)].program_batch);
  }

  void lay_out_parts() {
    std::int64_t launches = 0;
    int image = 0;
    for (const NetworkPart& part : run_.schedule.parts) {
      run_.first_images.push_back(image);
      image += part.images;
      BoundProgram& added = programs_[part.program_batch];
      if (added.program == nullptr) added.program = &program_for(network_.programs, part.program_batch);
      if (added.images.insert(part.images).second) add_scratch_sizes(added, part.images);
      launches += static_cast<std::int64_t>(added.program->steps.size());
    }
    for (auto& [batch, program] : programs_) program.scratch = lay_out_scratch(*program.program, program.sizes);
    if (launches > kMaxGraphLaunches) {
      fail(ErrorKind::unsupported,
           "{}: {} launches are over {}, the most of one graph; run fewer images at a time, or compile a larger batch",
           run_.schedule.text(), launches, kMaxGraphLaunches);
    }
  }

  // Of fewer images a library's call may want more.
  void add_scratch_sizes(BoundProgram& bound, int images) const {
    bound.sizes.resize(bound.program->steps.size());
    for (std::size_t i = 0; i < bound.sizes.size(); ++i) {
      KernelSlot& slot = network_.package->slots.at(bound.program->steps[i].kernel);
      // What a call needs, the library says, which is asked when the kernel is loaded.
      const WorkspaceSize size = slot.kernel->call ? workspace_of(*network_.package->load(slot), images)
                                                   : launch_workspace(*slot.kernel, images);
      bound.sizes[i] = merge(bound.sizes[i], size);
    }
  }

  // Parts run one after the other, and share all memory but the counters.
  void allocate() {
    std::int64_t arena = 0;
    WorkspaceSize scratch;
    for (auto& [batch, program] : programs_) {
      arena = std::max(arena, program.program->arena_bytes);
      program.first_counter = scratch.counter_bytes;
      scratch.counter_bytes += program.scratch.total.counter_bytes;
      scratch.partial_bytes = std::max(scratch.partial_bytes, program.scratch.total.partial_bytes);
    }
    run_.arena = DeviceBuffer(network_.package->device, static_cast<std::size_t>(arena));
    run_.scratch = Workspace(network_.package->device, scratch);
  }

  void add_part(int part) {
    const Program& program = *program_of(part).program;
    const int first = static_cast<int>(run_.steps.size());
    std::vector<bool> is_last(program.steps.size(), true);  // no step of this part waits for it
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const BoundStep bound{&program, part, static_cast<int>(i)};
      run_.steps.push_back(bound);
      run_.launches.push_back(launch_of(bound, network_.package->slots.at(bound.step().kernel)));
      const int index = first + bound.index;
      const std::vector<int>& after = bound.step().after;
      for (const int before : after) {
        add_edge(first + before, index);
        is_last[static_cast<std::size_t>(before)] = false;
      }
      if (after.empty()) {
        for (const int before : last_of_part_before_) add_edge(before, index);
      }
    }
    last_of_part_before_.clear();
    for (std::size_t i = 0; i < is_last.size(); ++i) {
      if (is_last[i]) last_of_part_before_.push_back(first + static_cast<int>(i));
    }
  }

  void add_edge(int from, int to) { edges_.push_back(edge_between(run_.launches, from, to, options_.programmatic)); }

  KernelLaunch launch_of(const BoundStep& step, KernelSlot& slot) {
    const Kernel& kernel = *slot.kernel;
    LaunchPointers pointers;
    for (const KernelTensor& tensor : kernel.form.tensors) {
      if (!tensor.exists()) continue;
      if (tensor.is_read()) {
        const auto argument = static_cast<std::size_t>(tensor.argument);
        pointers.reads[argument] = address_of(step, step.step().reads[argument], tensor, kernel);
      } else if (tensor.role == TensorRole::output) {
        pointers.output = address_of(step, step.step().writes, tensor, kernel);
      }
    }
    const auto map = [&](const std::optional<Place>& place) {
      return place ? run_.buffer_address(step.part, *step.program, place->buffer) + place->offset : nullptr;
    };
    pointers.input_map = map(step.step().input_map);
    pointers.output_map = map(step.step().output_map);
    pointers.scratch = scratch_of(step);
    KernelLaunch launch = make_launch(network_.package->load(slot), pointers,
                                      run_.schedule.parts[static_cast<std::size_t>(step.part)].images);
    launch.step = step.index;
    return launch;
  }

  WorkspaceView scratch_of(const BoundStep& step) {
    const BoundProgram& program = program_of(step.part);
    const ScratchPlace& place = program.scratch.steps[static_cast<std::size_t>(step.index)];
    const WorkspaceView memory = run_.scratch.view();
    const auto at = [](auto* start, std::int64_t offset) {
      return reinterpret_cast<decltype(start)>(reinterpret_cast<unsigned char*>(start) + offset);
    };
    WorkspaceView view;
    if (place.size.partial_bytes > 0) view.partials = at(memory.partials, place.partials);
    if (place.size.counter_bytes > 0) view.counters = at(memory.counters, program.first_counter + place.counters);
    return view;
  }

  // Where the place begins, which the kernel needs to be a multiple of the tensor's alignment. In the arena it is.
  unsigned char* address_of(const BoundStep& step, const Place& place, const KernelTensor& tensor,
                            const Kernel& kernel) const {
    const Program& program = *step.program;
    const int alignment = tensor.alignment;
    unsigned char* const address = run_.buffer_address(step.part, program, place.buffer) + place.offset;
    const auto beyond = [&](const void* pointer) { return as_number(pointer) % static_cast<unsigned>(alignment) != 0; };
    if (!beyond(address)) return address;
    const Buffer& buffer = program.buffer(place);
    const auto index = static_cast<std::size_t>(buffer.argument);
    const bool input = buffer.home == BufferHome::input;
    const std::string name = fmt::format("{} '{}'", to_string(buffer.home), buffer.tensor);
    const void* const given = input ? run_.io.inputs[index] : run_.io.outputs[index];
    if (beyond(given)) {
      fail(ErrorKind::usage,
           "{} is not aligned to {} bytes, which kernel {} relies on: its address is {}; memory from cuMemAlloc or "
           "cudaMalloc is aligned",
           name, alignment, kernel.symbol, fmt::ptr(given));
    }
    fail(ErrorKind::unsupported,
         "{}, and image {} of {} does not begin at a multiple of {} bytes, which kernel {} relies on; run as many "
         "images "
         "as one program takes, or compile a larger batch",
         run_.schedule.text(), run_.first_images[static_cast<std::size_t>(step.part)], name, alignment, kernel.symbol);
  }

  NetworkState& network_;
  NetworkRunState& run_;
  const NetworkOptions& options_;
  std::map<int, BoundProgram> programs_;  // by batch
  std::vector<int> last_of_part_before_;
  std::vector<GraphEdge> edges_;
};

}  // namespace

unsigned char* NetworkRunState::buffer_address(int part, const Program& program, int index) const {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(index)];
  if (buffer.home == BufferHome::arena) return arena.data<unsigned char>() + buffer.offset;
  // Programs with several parts are those of models, whose arguments are plain images, one after the other.
  const int image = first_images[static_cast<std::size_t>(part)];
  if (image % buffer.images_together() != 0) {
    fail(ErrorKind::unsupported, "{}, and image {} of '{}' lies in the middle of {} images that lie together",
         schedule.text(), image, buffer.tensor, buffer.images_together());
  }
  const std::int64_t first = buffer.bytes / program.pieces(buffer) * (image / buffer.images_together());
  const auto argument = static_cast<std::size_t>(buffer.argument);
  const void* const given = buffer.home == BufferHome::input ? io.inputs[argument] : io.outputs[argument];
  return static_cast<unsigned char*>(const_cast<void*>(given)) + first;
}

std::shared_ptr<const NetworkRunState> bind_network(const std::shared_ptr<NetworkState>& network, const NetworkIo& io,
                                                    const NetworkOptions& options) {
  auto run = std::make_shared<NetworkRunState>();
  run->network = network;
  run->io = io;
  run->schedule = make_schedule(network->programs, io.batch);
  check_arguments(*network, io);
  Binder(*network, *run, options).bind();
  return run;
}

}  // namespace burin
