#include "compiler/network/memory_plan.h"

#include <algorithm>
#include <utility>

#include "ir/arena.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/place_values.h"
#include "ir/saturate.h"
#include "ir/step_order.h"

namespace burin {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// What a step moves of each image, or of the images that share words, in elements. Of most operators, all.
struct Part {
  std::int64_t begin = 0;  // in the tensor that is written
  std::int64_t run = 0, runs = 1, run_stride = 0;
};

struct Draft {
  Step step;
  std::vector<int> reads;  // tensors
  int writes = -1;         // tensor; -1: the buffer of `output` itself
  int output = -1;
  Part part;  // of a copy
};

std::int64_t product(std::vector<std::int64_t>::const_iterator begin, std::vector<std::int64_t>::const_iterator end) {
  std::int64_t result = 1;
  for (; begin != end; ++begin) result *= *begin;
  return result;
}

// One image has so many in its layout, what fills up its channels included.
std::int64_t stored_elements(const Activations& tensor) { return image_elements(tensor.format, tensor.shape); }

bool moves_nothing(const Operator& op) {
  return std::holds_alternative<Reshape>(op.kind) || std::holds_alternative<Identity>(op.kind) ||
         std::holds_alternative<ChannelView>(op.kind);
}

// Which tensors of a graph lie within others, so that Concat, ChannelView, Reshape and Identity move nothing.
//
// A Reshape's output lies where its input does, a ChannelView's where its channels of the input do. An input of a
// Concat lies in the concat's output, at its channels' offset, unless it is an input or output of the network, or lies
// in another concat already (or in this one), or the concat is along an inner axis. Such an input is copied there.
// Nothing here depends on the batch: kernels know offsets and strides as constants.
class Placement {
 public:
  explicit Placement(const Network& network)
      : network_(network),
        in_(network.tensors.size(), -1),
        offset_(network.tensors.size()),
        stays_out_(network.tensors.size()) {
    for (const Operator& op : network.operators) in_place_.emplace_back(op.inputs.size());
    for (const auto* arguments : {&network.inputs, &network.outputs}) {
      for (const int tensor : *arguments) stays_out_[at(tensor)] = true;
    }
    for (const Operator& op : network.operators) {
      if (!moves_nothing(op)) continue;
      const int whole = root(op.inputs[0]);
      std::int64_t begin = offset(op.inputs[0]);
      if (const auto* view = std::get_if<ChannelView>(&op.kind)) begin += view->begin * elements_of_channel(op.output);
      place(op.output, whole, begin);
    }
    for (std::size_t i = 0; i < network.operators.size(); ++i) {
      if (const auto* concat = std::get_if<Concat>(&network.operators[i].kind)) place_inputs(i, *concat);
    }
  }

  // The tensor whose buffer this one lies in: itself for most.
  int root(int tensor) const {
    while (in_[at(tensor)] >= 0) tensor = in_[at(tensor)];
    return tensor;
  }
  // Elements of one image from the root's beginning.
  std::int64_t offset(int tensor) const {
    std::int64_t sum = 0;
    for (; in_[at(tensor)] >= 0; tensor = in_[at(tensor)]) sum += offset_[at(tensor)];
    return sum;
  }
  // Whether others lie beside it in its root's buffer.
  bool is_part(int tensor) const { return elements(root(tensor)) != elements(tensor); }
  // Whether the concat's input, by its position, lies in the output, so that it need not be copied.
  bool is_in_place(int op, std::size_t input) const { return in_place_[at(op)][input]; }

 private:
  std::int64_t elements(int tensor) const { return stored_elements(network_.tensors[at(tensor)]); }
  // As many channels as lie side by side have so many elements, which their number divides.
  std::int64_t elements_of_channel(int tensor) const {
    Activations channels = network_.tensors[at(tensor)];
    channels.shape[0] = channels_together(channels.format.layout);
    return stored_elements(channels) / channels.shape[0];
  }

  void place_inputs(std::size_t index, const Concat& concat) {
    const Operator& op = network_.operators[index];
    const std::vector<std::int64_t>& shape = network_.tensors[at(op.output)].shape;
    if (product(shape.begin(), shape.begin() + concat.axis) != 1) return;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int tensor = op.inputs[i], whole = root(tensor);
      in_place_[index][i] = !is_part(tensor) && !stays_out_[at(whole)] && whole != root(op.output);
      if (in_place_[index][i]) place(whole, op.output, begin);
      begin += elements(tensor);
    }
  }

  void place(int tensor, int in, std::int64_t offset) {
    in_[at(tensor)] = in;
    offset_[at(tensor)] = offset;
    // A network output that is a part of others' memory is copied out of it.
    if (stays_out_[at(tensor)] && !is_part(tensor)) stays_out_[at(root(in))] = true;
  }

  const Network& network_;
  std::vector<int> in_;                      // of each tensor, that it lies in; -1: a root
  std::vector<std::int64_t> offset_;         // there
  std::vector<bool> stays_out_;              // of roots: what lies there may not lie in a concat
  std::vector<std::vector<bool>> in_place_;  // of each operator, its inputs
};

class MemoryPlanner {
 public:
  MemoryPlanner(const Network& network, const std::string& name, int batch)
      : network_(network), placement_(network), writers_(network.tensors.size()), order_(0) {
    program_.name = name;
    program_.batch = batch;
  }

  Program run() {
    draft_steps();
    check_pairs();
    order_steps();
    check_waits();
    make_buffers();
    complete(program_);  // their sizes
    fill_places();
    lay_out();
    complete(program_);
    return std::move(program_);
  }

 private:
  const Activations& tensor(int index) const { return network_.tensors[at(index)]; }

  void draft_steps() {
    for (std::size_t i = 0; i < network_.operators.size(); ++i) {
      const Operator& op = network_.operators[i];
      if (const auto* concat = std::get_if<Concat>(&op.kind)) {
        draft_concat(static_cast<int>(i), *concat);
      } else if (moves_nothing(op)) {
        writers_[at(op.output)] = writers_[at(op.inputs[0])];
      } else {
        Step step{op.name, std::string(kind_name(op.kind)), static_cast<int>(i), tensor(op.output).name, {}, {}, {}};
        add({std::move(step), op.inputs, op.output, -1, {}});
      }
    }
    // Where tensors lie in the same memory, the first output that is all of it is that memory.
    std::vector<int> output_of_root(network_.tensors.size(), -1);
    for (const int input : network_.inputs) output_of_root[at(placement_.root(input))] = -2;
    for (std::size_t i = 0; i < network_.outputs.size(); ++i) {
      const int output = network_.outputs[i];
      int& taken = output_of_root[at(placement_.root(output))];
      if (taken == -1 && !placement_.is_part(output)) {
        taken = static_cast<int>(i);
        continue;
      }
      const std::string& name = tensor(output).name;
      add({{name, std::string(kCopyStep), -1, name, {}, {}, {}},
           {output},
           -1,
           static_cast<int>(i),
           {0, stored_elements(tensor(output)), 1, 0}});
    }
    output_of_root_ = std::move(output_of_root);
  }

  void draft_concat(int index, const Concat& concat) {
    const Operator& op = network_.operators[at(index)];
    const std::vector<std::int64_t>& shape = tensor(op.output).shape;
    const std::int64_t runs = product(shape.begin(), shape.begin() + concat.axis);
    const std::int64_t inner = product(shape.begin() + concat.axis + 1, shape.end());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int input = op.inputs[i];
      const std::int64_t run =
          runs == 1 ? stored_elements(tensor(input)) : tensor(input).shape[at(concat.axis)] * inner;
      if (placement_.is_in_place(index, i)) {
        append(writers_[at(op.output)], writers_[at(input)]);
      } else {
        add({{tensor(input).name, std::string(kCopyStep), -1, tensor(op.output).name, {}, {}, {}},
             {input},
             op.output,
             -1,
             {begin, run, runs, runs > 1 ? shape[at(concat.axis)] * inner : 0}});
      }
      begin += run;
    }
  }

  // Lists of steps grow with the square of the graph where concats hold concats: what they take has a bound.
  void append(std::vector<int>& steps, const std::vector<int>& more) {
    listed_ += std::ssize(more);
    if (listed_ > kMaxPlanPairs) {
      fail(
          ErrorKind::unsupported,
          "{}: the network's concats hold so many parts of others that more than {} pairs of a step that writes a part "
          "and one that uses it are looked at (kMaxPlanPairs)",
          network_.source, kMaxPlanPairs);
    }
    steps.insert(steps.end(), more.begin(), more.end());
  }

  void add(Draft draft) {
    if (drafts_.size() == static_cast<std::size_t>(kMaxPlanSteps)) {
      fail(ErrorKind::unsupported, "{}: the network has more than {} steps, which is all that can be planned",
           network_.source, kMaxPlanSteps);
    }
    for (const int input : draft.reads) append(draft.step.after, writers_[at(input)]);
    const int index = static_cast<int>(drafts_.size());
    if (draft.writes >= 0) writers_[at(draft.writes)].push_back(index);
    drafts_.push_back(std::move(draft));
  }

  // Whoever verifies the program compares each write with all uses of its buffer.
  void check_pairs() const {
    std::vector<std::int64_t> writes(network_.tensors.size()), uses(network_.tensors.size());
    for (const Draft& draft : drafts_) {
      for (const int read : draft.reads) ++uses[at(placement_.root(read))];
      if (draft.writes < 0) continue;
      ++writes[at(placement_.root(draft.writes))];
      ++uses[at(placement_.root(draft.writes))];
    }
    std::int64_t pairs = 0;
    for (std::size_t i = 0; i < writes.size(); ++i) pairs += writes[i] * uses[i];
    if (pairs <= kMaxPlanPairs) return;
    fail(ErrorKind::unsupported,
         "{}: the network has {} pairs of a step that writes a part of a tensor and one that uses the tensor; at most "
         "{} "
         "can be planned (kMaxPlanPairs)",
         network_.source, pairs, kMaxPlanPairs);
  }

  void order_steps() {
    order_ = StepOrder(drafts_.size());
    for (Draft& draft : drafts_) {
      draft.step.after = order_.reduced(std::move(draft.step.after));
      order_.add(draft.step.after);
    }
  }

  void check_waits() const {
    std::int64_t waits = 0;
    for (const Draft& draft : drafts_) waits += std::ssize(draft.step.after);
    if (waits <= kMaxPlanWaits) return;
    fail(ErrorKind::unsupported,
         "{}: steps of the network wait {} times for another; at most {} can be planned (kMaxPlanWaits)",
         network_.source, waits, kMaxPlanWaits);
  }

  // Words of an image, or of as many images as share words.
  std::int64_t words(int index) const { return image_words(tensor(index).format, tensor(index).shape); }

  std::int64_t bytes(int index) const {
    const std::int64_t groups = ceil_div(program_.batch, tensor(index).format.images_together());
    return saturating_product({groups, words(index), tensor(index).format.word_bytes()});
  }

  int add_buffer(int index, BufferHome home, int argument) {
    const std::int64_t size = bytes(index);
    if (size > kMaxArenaBytes) {
      fail(ErrorKind::unsupported, "tensor {}: a batch of {} takes {} bytes; at most {} are allowed",
           tensor(index).name, program_.batch, size, kMaxArenaBytes);
    }
    program_.buffers.push_back({tensor(index).name, tensor(index).shape, home, argument, tensor(index).format});
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  void make_buffers() {
    buffer_of_root_.assign(network_.tensors.size(), -1);
    for (std::size_t i = 0; i < network_.inputs.size(); ++i) {
      buffer_of_root_[at(network_.inputs[i])] = add_buffer(network_.inputs[i], BufferHome::input, static_cast<int>(i));
    }
    for (std::size_t i = 0; i < network_.outputs.size(); ++i) {
      const int output = network_.outputs[i], root = placement_.root(output);
      const int buffer = add_buffer(output, BufferHome::output, static_cast<int>(i));
      if (output_of_root_[at(root)] == static_cast<int>(i)) buffer_of_root_[at(root)] = buffer;
      output_buffers_.push_back(buffer);
    }
    for (const Draft& draft : drafts_) {
      if (draft.writes < 0) continue;
      const int root = placement_.root(draft.writes);
      if (buffer_of_root_[at(root)] < 0) buffer_of_root_[at(root)] = add_buffer(root, BufferHome::arena, -1);
    }
    for (const Operator& op : network_.operators) {
      if (std::ranges::find(network_.outputs, op.output) != network_.outputs.end()) continue;
      if (std::holds_alternative<ChannelView>(op.kind)) continue;  // has no memory of its own in any case
      program_.naive_bytes += aligned_bytes(bytes(op.output));
    }
  }

  Place place(int index, const Part& part) const {
    Place place{.buffer = buffer_of_root_[at(placement_.root(index))]};
    const TensorFormat& format = tensor(index).format;
    const int bytes = element_bytes(format);
    place.offset = (placement_.offset(index) + part.begin) * bytes;
    place.run_bytes = part.run * bytes;
    place.runs = part.runs;
    place.run_stride = part.run_stride * bytes;
    return place;
  }

  void fill_places() {
    buffer_users_.resize(program_.buffers.size());
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      Draft& draft = drafts_[i];
      Step& step = draft.step;
      const auto whole = [&](int index) { return Part{0, stored_elements(tensor(index)), 1, 0}; };
      for (const int input : draft.reads) {
        const Part read = {0, draft.part.run, draft.part.runs, draft.part.runs > 1 ? draft.part.run : 0};
        step.reads.push_back(place(input, step.is_copy() ? read : whole(input)));
      }
      if (draft.writes >= 0) {
        step.writes = place(draft.writes, step.is_copy() ? draft.part : whole(draft.writes));
      } else {
        step.writes = whole_place(program_, program_.buffers[at(output_buffers_[at(draft.output)])]);
      }
      for (const Place& read : step.reads) buffer_users_[at(read.buffer)].push_back(static_cast<int>(i));
      buffer_users_[at(step.writes.buffer)].push_back(static_cast<int>(i));
      program_.steps.push_back(std::move(step));
    }
  }

  void lay_out() {
    std::vector<int> in_arena;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].home != BufferHome::arena) continue;
      in_arena.push_back(static_cast<int>(i));
      sizes.push_back(program_.buffers[i].bytes);
    }
    const ArenaLayout layout = lay_out_arena(
        sizes, kBufferAlignment, [&](int a, int b) { return live_together(in_arena[at(a)], in_arena[at(b)]); });
    for (std::size_t i = 0; i < in_arena.size(); ++i) program_.buffers[at(in_arena[i])].offset = layout.offsets[i];
    if (layout.bytes > kMaxArenaBytes) {
      fail(ErrorKind::unsupported, "{}: an arena of {} bytes for a batch of {}; at most {} are allowed",
           network_.source, layout.bytes, program_.batch, kMaxArenaBytes);
    }
  }

  bool live_together(int a, int b) const {
    const std::vector<int>&first = buffer_users_[at(a)], &second = buffer_users_[at(b)];
    if (first.front() > second.front()) return live_together(b, a);
    return first.back() >= second.front() || !order_.all_before(first, second);
  }

  const Network& network_;
  Placement placement_;
  std::vector<Draft> drafts_;
  std::vector<std::vector<int>> writers_;  // of each tensor, the steps that write its values
  std::int64_t listed_ = 0;                // steps in such lists, all that ever were
  std::vector<int> output_of_root_;        // of each root, the network output that it is; below 0: none
  StepOrder order_;
  std::vector<int> buffer_of_root_, output_buffers_;
  std::vector<std::vector<int>> buffer_users_;
  Program program_;
};

}  // namespace

Program plan_network(const Network& network, const std::string& name, int batch) {
  BURIN_CHECK(batch >= 1 && batch <= kMaxBatch, "batch {}", batch);
  Program program = MemoryPlanner(network, name, batch).run();
  const std::vector<std::string> faults = verify(program);
  BURIN_CHECK(faults.empty(), "the program of a network is not legal: {}", faults.front());
  return program;
}

}  // namespace burin
