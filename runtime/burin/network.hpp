// burin's runtime, whole networks: a package's program runs as one CUDA graph.
//
//   burin::LoadedNetwork network(device, "model.burin");
//   burin::NetworkRun run = network.bind({.inputs = {x}, .outputs = {y}, .batch = 8});
//   run.launch(stream);
//
// More: docs/embedding.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "export.h"
#include "runtime.hpp"

namespace burin {

struct NetworkRunState;  // internal
struct NetworkState;     // internal
struct Place;            // package.hpp
struct Program;          // package.hpp
struct Step;             // package.hpp

// An input or output of the network: images one after the other. Those of a model are in NCHW, float32 or halves as it
// was compiled (--io), without a gap even where an image has an odd number of halves; those of a layer are as
// ImageShape says, and may be its activity maps as well (ActivityShape), a byte for each channel of a cell.
struct NetworkTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // of one image
  Element element = Element::f32;
  int channels_together = 1;
  int images_together = 1;       // 1; 2: "n2chw"; 8: "n8c8hw"; of a map, images of a cell
  bool is_map = false;           // the activity map of a tensor of this shape
  std::int64_t piece_bytes = 0;  // of as many images as lie together, filling included
  bool is_nchw() const { return channels_together == 1 && images_together == 1 && !is_map; }
  bool is_plain() const { return element == Element::f32 && is_nchw(); }
  // Counts the values of one image, without filling.
  std::int64_t elements() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
  std::int64_t bytes(int batch) const {
    return (batch + images_together - std::int64_t{1}) / images_together * piece_bytes;
  }
};

// How so many images are run: by programs that were compiled for one batch size each and take that many or fewer; those
// of a layer take any number. All parts are in one graph, one after the other.
struct NetworkPart {
  int images = 0;
  int program_batch = 0;  // of the program that runs them
  bool operator==(const NetworkPart&) const = default;
};
struct NetworkSchedule {
  int batch = 0;
  std::vector<NetworkPart> parts;
  // For people: "batch 5 runs as 5 of 32", "batch 72 runs as 2 x 32 + 8".
  BURIN_API std::string text() const;
};

// Device pointers to tensors, in the order of inputs() and outputs(). Outputs must not overlap each other or inputs.
struct NetworkIo {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  int batch = 1;
};

struct NetworkOptions {
  // A kernel is launched when the blocks of those that it waits for have ended, and waits itself until what they stored
  // is there (programmatic dependent launch): 3 to 5 % less at batch 1. Kernels without code for sm_90 or later, and
  // drivers before CUDA 12.3, launch as usual.
  bool programmatic = true;
};

// A network that is bound to pointers. It owns what it needs beside them: the memory of the tensors in between, scratch
// memory and the graph. A cheap handle; to be used by one thread at a time.
class BURIN_API NetworkRun {
 public:
  // Enqueues the network on `stream` (null: the default stream) and returns. Allocates nothing and waits for nothing.
  // Launches of one NetworkRun run one after the other, on whichever streams; it must live until they have run.
  void launch(CUstream_st* stream) const;

  const NetworkSchedule& schedule() const;
  std::int64_t arena_bytes() const;    // of the tensors in between
  std::int64_t scratch_bytes() const;  // counters and partial sums

  // For tools: the kernels that a launch runs, part after part.
  int steps() const;
  const Step& step(int index) const;
  int part_of(int index) const;                // of the schedule
  const Program& program_of(int index) const;  // that the step is in
  std::string library_call(int index) const;   // "cuDNN 9.19.0 WINOGRAD" of a step that is one; else empty
  // Enqueues one step by itself. What it reads must be there: launch them in their order on one stream.
  void launch_step(int index, CUstream_st* stream) const;
  // Where a place of the step's program lies while its part runs; of a step's output: address(i, step(i).writes).
  void* address(int index, const Place& place) const;

  explicit NetworkRun(std::shared_ptr<const NetworkRunState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const NetworkRunState> state_;
};

// A package's network, or one of its layers, on one device. A cheap handle, safe to use from several threads. Kernels
// are loaded, and weights copied to the device, when a run first needs them; all runs share them.
class BURIN_API LoadedNetwork {
 public:
  LoadedNetwork(const Device& device, const std::string& path, const LoadOptions& options = {});
  // `name`: which program; "": the only one.
  explicit LoadedNetwork(const LoadedPackage& package, std::string_view name = "");
  // For tools: a program of the package's kernels that the package need not hold. verify() must find no fault with it,
  // and its kernels must be for tensors that lie as the steps' do.
  LoadedNetwork(const LoadedPackage& package, std::shared_ptr<const Program> program);

  // In their order. Those of a layer that are activity maps are what they are for `batch` images; the others are the
  // same for any.
  std::vector<NetworkTensor> inputs(int batch = 1) const;
  std::vector<NetworkTensor> outputs(int batch = 1) const;
  std::vector<int> batches() const;  // that it was compiled for, ascending
  NetworkSchedule schedule(int batch) const;
  std::int64_t weight_bytes() const;       // on the device, of all runs so far together
  std::vector<std::string> notes() const;  // LoadedPackage::notes()
  const LoadNotes& kept_notes() const;     // the same where they are kept, for the C API

  // Makes everything that launches need. Takes any batch: schedule() says how it is run.
  NetworkRun bind(const NetworkIo& io, const NetworkOptions& options = {}) const;

 private:
  std::shared_ptr<NetworkState> state_;
};

}  // namespace burin
