// NetworkPlan: how a network runs for one batch size: where every tensor lies and which step waits for which. It is
// plain data; what the steps launch is in plans of their own (BakedPlan for convolutions).
//
// Tensors lie in buffers. Those of the network's inputs and outputs are the caller's memory, plain NCHW; all others are
// parts of one arena, where buffers that never live at the same time share bytes. Several tensors can lie in one
// buffer: the inputs of a concat, each at its offset; a tensor in another shape; what an element-wise step writes over
// its input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_type.h"
#include "ir/tensor_layout.h"

namespace burin {

inline constexpr std::int64_t kBufferAlignment = 256;  // bytes, as allocations of the device have it
constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

enum class BufferHome { arena, input, output };
std::string_view to_string(BufferHome home);

struct Buffer {
  std::string tensor;               // the one that fills it
  std::vector<std::int64_t> shape;  // of one image
  BufferHome home = BufferHome::arena;
  int argument = -1;  // which of the network's inputs or outputs; -1 in the arena
  ElementType element = ElementType::f32;
  TensorLayout layout = TensorLayout::nchw;
  std::int64_t bytes = 0;     // of the whole batch, filling of the layout included
  std::int64_t offset = 0;    // in the arena, a multiple of kBufferAlignment; else 0
  int first = -1, last = -1;  // steps that use it; -1: none does
  bool operator==(const Buffer&) const = default;
};

// The bytes of one tensor. Of each image (with n2chw: pair of images) `runs` runs of `run_bytes`, `run_stride` apart.
struct Place {
  int buffer = 0;
  std::int64_t offset = 0;        // from the beginning of the buffer
  std::int64_t image_stride = 0;  // from one image to the next: that of the buffer
  std::int64_t run_bytes = 0;
  std::int64_t runs = 1;
  std::int64_t run_stride = 0;                                                       // 0 with one run
  std::int64_t end() const { return offset + (runs - 1) * run_stride + run_bytes; }  // of the first image
  bool is_slice() const { return runs > 1 || run_bytes != image_stride; }            // not the whole buffer
  bool operator==(const Place&) const = default;
};

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
  bool is_copy() const { return op < 0; }
  bool operator==(const Step&) const = default;
};
inline constexpr std::string_view kCopyStep = "copy";

struct NetworkPlan {
  int batch = 1;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;  // in an order in which they can run one after the other
  std::int64_t arena_bytes = 0;
  std::int64_t naive_bytes = 0;  // without any sharing: a buffer for each operator's output but the network's

  // Pieces of a buffer that are image_stride apart.
  std::int64_t images(const Buffer& buffer) const;
  bool operator==(const NetworkPlan&) const = default;
};

// All faults, each a sentence; empty when the plan can be run: places lie inside their buffers, arguments are complete,
// steps wait for earlier ones alone, what a step reads has been written by steps that it waits for, and no two steps
// that may run at the same time touch the same bytes, of which one writes them.
std::vector<std::string> verify(const NetworkPlan& plan);

// A table for people: step, operator, kind, what it reads and writes, what it waits for; then the arena.
std::string print(const NetworkPlan& plan);

// "key: value" lines; parse gives the same plan. Throws Error(bad_input) naming the line.
std::string to_text(const NetworkPlan& plan);
NetworkPlan parse_network_plan(std::string_view text);

}  // namespace burin
