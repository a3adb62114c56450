// Program: what is launched for so many images: which kernels, in which order, where every tensor lies and which launch
// waits for which. A model has one for each batch size, all of one name; of a weights file each layer has its own.
//
// Tensors lie in buffers. Those of the program's inputs and outputs are the caller's memory; all others are parts of
// one arena, where buffers that never live at the same time share bytes. Several tensors can lie in one buffer: the
// inputs of a concat, each at its offset; a tensor in another shape; what an element-wise step writes over its input.
//
// Some fields follow from the others: complete() fills them in, no text says them, and verify() holds them to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/activity_map.h"
#include "ir/named_enum.h"
#include "ir/tensor_layout.h"

namespace burin {

inline constexpr std::int64_t kBufferAlignment = 256;  // bytes, as allocations of the device have it
constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

enum class BufferHome { arena, input, output };
constexpr EnumNames<3> names_of(BufferHome) { return {"a home of buffers", {"arena", "input", "output"}}; }

struct Buffer {
  std::string tensor;               // the one that fills it: the name of an input or output
  std::vector<std::int64_t> shape;  // of one image
  BufferHome home = BufferHome::arena;
  int argument = -1;  // which of the program's inputs or outputs; -1 in the arena
  TensorFormat format = {};
  // It holds the activity map of a tensor of that shape, in bytes, and the format is the plain one.
  std::optional<ActivityMap> map = {};
  std::int64_t offset = 0;  // in the arena, a multiple of kBufferAlignment; else 0
  // These follow from the others.
  std::int64_t bytes = 0;     // of the whole batch, filling of the layout included
  int first = -1, last = -1;  // steps that use it; -1: none does

  std::int64_t elements() const;  // of one image of the tensor
  // Images that share words, or cells of a map.
  int images_together() const { return map ? std::max(1, map->images) : format.images_together(); }
  // "f32 nchw", "map 1x14x14"
  std::string format_text() const;
  bool operator==(const Buffer&) const = default;
};

// The bytes of one tensor. Of each image (of as many as lie together) `runs` runs of `run_bytes`, `run_stride` apart.
struct Place {
  int buffer = 0;
  std::int64_t offset = 0;        // from the beginning of the buffer
  std::int64_t image_stride = 0;  // from one image to the next: that of the buffer, which it follows from
  std::int64_t run_bytes = 0;
  std::int64_t runs = 1;
  std::int64_t run_stride = 0;                                                       // 0 with one run
  std::int64_t end() const { return offset + (runs - 1) * run_stride + run_bytes; }  // of the first image
  bool is_slice() const { return runs > 1 || run_bytes != image_stride; }            // not the whole buffer
  bool operator==(const Place&) const = default;
};

// A kernel that a step could have: who would make it, and the time of one launch inside the program, by that provider's
// own model or as it was measured.
struct KernelOption {
  std::string provider;
  double us = 0;
  bool measured = false;
  bool operator==(const KernelOption&) const = default;
};
// "conv_dense 4.2 us, conv_baked 6.5 us"
std::string describe(const std::vector<KernelOption>& options);

// One launch: an operator of the network, or a copy from one place to another: of a concat's input that could not be
// written at its offset, of an output whose tensor lies elsewhere.
struct Step {
  std::string name;          // the operator's; of a copy, that of the tensor that is copied
  std::string kind;          // kind_name() of the operator; kCopyStep
  int op = -1;               // index into Network::operators; -1 of a copy
  std::string tensor;        // that it writes
  std::vector<Place> reads;  // one or two: input, second input
  Place writes;
  std::vector<int> after;  // steps that must have finished, ascending; what they waited for themselves is left out
  // The activity maps of what it reads first and of what it writes; nothing: it is launched without.
  std::optional<Place> input_map = {}, output_map = {};
  std::string kernel = {};  // the symbol of the kernel that it launches; empty until there is one
  // The kernels that were compared, the chosen one first. Empty: nobody has said. Nothing depends on it.
  std::vector<KernelOption> options = {};

  bool is_copy() const { return op < 0; }
  bool operator==(const Step&) const = default;
};
inline constexpr std::string_view kCopyStep = "copy";

struct Program {
  std::string name;  // of what it computes: the layer's, or kNetworkName
  int batch = 1;     // that it was planned for
  std::vector<Buffer> buffers;
  std::vector<Step> steps;       // in an order in which they can run one after the other
  std::int64_t arena_bytes = 0;  // follows from the buffers
  std::int64_t naive_bytes = 0;  // without any sharing: a buffer for each operator's output but the program's

  // Pieces of a buffer that lie an image stride apart, of so many images and of the whole batch.
  std::int64_t pieces(const Buffer& buffer, std::int64_t images) const;
  std::int64_t pieces(const Buffer& buffer) const { return pieces(buffer, batch); }
  // The bytes of so many images.
  std::int64_t bytes(const Buffer& buffer, std::int64_t images) const {
    return buffer.bytes / pieces(buffer) * pieces(buffer, images);
  }
  const Buffer& buffer(const Place& place) const { return buffers[static_cast<std::size_t>(place.buffer)]; }
  // The buffers of the inputs, or of the outputs, in their order.
  std::vector<const Buffer*> arguments(BufferHome home) const;
  std::vector<const Buffer*> inputs() const { return arguments(BufferHome::input); }
  std::vector<const Buffer*> outputs() const { return arguments(BufferHome::output); }
  // How many images can be run at once: kernels take any number, and the arena is for the batch.
  int most_images() const;
  bool operator==(const Program&) const = default;
};
inline constexpr std::string_view kNetworkName = "network";  // of the programs of a model

// Which of the programs of one name runs so many images, or as many of them as it can: the smallest that is for so
// many, else the largest; of programs that take any number, the largest that is for no more, else the smallest.
// `programs`: at least one, batch sizes ascending.
const Program& program_for(const std::vector<const Program*>& programs, int images);

// What so many images were predicted to take, when the batch sizes of a package were chosen.
struct BatchEstimate {
  int images = 1;
  int program = 1;    // the batch of the program that runs them
  double us = 0;      // by its steps, one after the other
  double own_us = 0;  // on a program of their own
  bool operator==(const BatchEstimate&) const = default;
};

// Fills in what follows from the rest: bytes and lives of buffers, image strides of places, the size of the arena.
// Where the rest is not sound, they are 0 or none.
void complete(Program& program);

// The faults, each a sentence (ir/faults.h); empty when the program can be run: places lie inside their buffers,
// arguments are complete, steps wait for earlier ones alone, what a step reads has been written by steps that it waits
// for, and no two steps that may run at the same time touch the same bytes, of which one writes them.
std::vector<std::string> verify(const Program& program);

// What looking at a program costs: pairs of a write and a use of the same buffer, and waits of a step for another. The
// programs of a package together have at most kMaxPlanPairs and kMaxPlanWaits.
struct PlanCost {
  std::int64_t pairs = 0, waits = 0;
  PlanCost& operator+=(const PlanCost& other);
  bool is_allowed() const;
};
PlanCost cost_of(const Program& program);

// A table for people: step, operator, kind, what it reads and writes, what it waits for; then the arena.
std::string print(const Program& program);

// "key: value" lines; parse gives the same program. Throws Error(bad_input) naming the line.
std::string to_text(const Program& program);
Program parse_program(std::string_view text);
// The same where its steps may wait for others `waits` times, which are then taken off.
Program parse_program(std::string_view text, std::int64_t& waits);

}  // namespace burin
