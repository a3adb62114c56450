// Kernel: one compiled kernel, whichever provider made it. What runs, checks, measures or shows kernels knows this noun
// and nothing of what kinds there are.
//
// A kernel's parameters are the addresses of its tensors, in their order, then its boxes (ir/tensor_box.h), by value,
// and then the number of images as an int32_t.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/activity_map.h"
#include "ir/conv_layer.h"
#include "ir/element_type.h"
#include "ir/kernel_binary.h"
#include "ir/library_call.h"
#include "ir/named_enum.h"
#include "ir/tensor_box.h"
#include "ir/tensor_layout.h"
#include "ir/user_function.h"
#include "ir/weight_matrix.h"

namespace burin {

class LineReader;

// What an access to several values at once needs: a bulk copy, or four words that lie side by side.
inline constexpr int kWideAccessBytes = 16;
// Dynamic shared memory begins with so many bytes, which hold a word to broadcast one value and the gates of bulk
// copies.
inline constexpr int kSharedReserveBytes = 128;
inline constexpr int kMaxKernelTensors = 16;
inline constexpr std::int64_t kWorkspaceAlignment = 256;  // bytes; partial sums start on such a boundary

enum class TensorRole {
  input,       // a tensor that the launch reads
  residual,    // another one, which is added to what the kernel computes
  output,      // the tensor that the launch writes
  weights,     // the kernel's own data, the same for every launch
  partials,    // scratch memory: partial sums
  counters,    // scratch memory: 32-bit arrival counters, zero before the first launch; every launch leaves them zero
  input_map,   // the activity map of the input; may be absent at a launch
  output_map,  // that of the output, which the kernel writes; may be absent at a launch
};
constexpr EnumNames<8> names_of(TensorRole) {
  return {"a role of a tensor",
          {"input", "residual", "output", "weights", "partials", "counters", "input_map", "output_map"}};
}

// One of a kernel's tensors, from the address on that the kernel is given. It is counted in words of word_bytes(), 4
// but for loose halves, which are words of 2; of other halves a word holds two. Of each image (of each pair of images
// in n2chw, of eight in n8c8hw, of four in n4c8hw) it has `runs` runs of `run_words` words: a slice of a larger tensor
// has images that are further apart than its own words. In lines and places (has_lines(), has_places()) it begins at a
// multiple of eight channels, and has as many unless it is the last part.
struct KernelTensor {
  TensorRole role = TensorRole::input;
  int argument = 0;  // of an input or residual: which of the tensors that the launch reads
  ElementType element = ElementType::f32;
  TensorLayout layout = TensorLayout::nchw;
  int channels = 0, rows = 0, cols = 0;  // of one image; all 0: what the words are is not said
  std::int64_t image_words = 0;          // from one image to the next
  std::int64_t run_words = 0;            // 0: the kernel has no such tensor, and is given a null pointer
  std::int64_t runs = 1;
  std::int64_t run_pitch = 0;           // words from one run to the next; 0 with one run
  int alignment = kWordBytes;           // bytes that the address is a multiple of
  std::optional<ActivityMap> map = {};  // of a map: its cells; channels, rows and cols are those of its tensor

  bool exists() const { return run_words > 0 || map.has_value(); }
  bool is_image() const { return channels > 0; }
  bool is_read() const { return role == TensorRole::input || role == TensorRole::residual; }
  TensorFormat format() const { return {element, layout}; }
  int word_bytes() const { return burin::word_bytes(element, layout); }
  int elements_per_word() const { return burin::elements_per_word(element, layout); }
  std::int64_t words() const { return run_words * runs; }  // of one image
  std::int64_t end() const { return (runs - 1) * run_pitch + run_words; }
  bool contains(std::int64_t word) const;  // of an image
  std::int64_t spanned_words(
      std::int64_t batch) const;  // from the first word of the first image to the last; saturated
  // The same in memory that is counted in words of 4 bytes, the last of which loose halves may fill in part.
  std::int64_t spanned_memory(std::int64_t batch) const;
  bool operator==(const KernelTensor&) const = default;
};

// Grid: ceil(batch / tile_images) * tiles_per_image blocks in x, rounded up to a multiple of cluster_tiles; `slices` in
// y. Blocks that lie side by side in y compute the same tile of the output for other channels or other inputs.
struct LaunchGeometry {
  int threads = 0;
  int shared_bytes = 0;  // dynamic
  int slices = 1;
  int tile_images = 1;
  std::int64_t tiles_per_image = 1;
  int cluster_tiles = 1;  // blocks in x that make a cluster
  // Scratch that a launch needs for partial sums: per tile (block in x), all slices together. 0: none.
  std::int64_t workspace_bytes_per_tile = 0;
  int counters_per_tile = 0;
  bool operator==(const LaunchGeometry&) const = default;
};

// The tiles of a batch of up to kMaxBatch images, saturated.
std::int64_t tile_count(const LaunchGeometry& launch, std::int64_t batch);
// Blocks in x: those beyond the tiles end at once.
std::int64_t grid_width(const LaunchGeometry& launch, std::int64_t batch);
// The scratch memory of a launch: counters up to the next multiple of kWorkspaceAlignment, and partial sums, saturated.
std::int64_t counter_bytes(const LaunchGeometry& launch, std::int64_t batch);
std::int64_t partial_bytes(const LaunchGeometry& launch, std::int64_t batch);

// "burin_<operator>": the operator's name is reduced to [A-Za-z0-9_].
std::string symbol_of(const std::string& op);

// How a kernel is launched: all that a program must know to call it. It follows from the plan.
struct KernelForm {
  std::vector<KernelTensor> tensors;  // in the order of the parameters
  LaunchGeometry launch;
  std::vector<TensorBox> boxes = {};  // the same

  const KernelTensor* find(TensorRole role) const;  // null: the kernel has no such tensor
  bool has(TensorRole role) const { return find(role) != nullptr; }
  // The kernel must have one.
  const KernelTensor& the(TensorRole role) const;
  const KernelTensor& input() const { return the(TensorRole::input); }
  const KernelTensor& output() const { return the(TensorRole::output); }
  bool has_maps() const { return has(TensorRole::input_map) || has(TensorRole::output_map); }
  bool operator==(const KernelForm&) const = default;
};

// All faults, each a sentence; empty when a kernel of this form can be launched.
std::vector<std::string> verify(const KernelForm& form);

// "key: value" lines, a part of the plans that hold a form: the launch, then "tensor 0: input, f32 nchw 64x56x56,
// 200704 words" and so on, then "box 0: of tensor 0, 56x56, 4x8x10". Parsing takes those lines, and throws
// Error(bad_input) naming the line.
std::string print(const KernelForm& form);
KernelForm parse_kernel_form(LineReader& text);

// A plan that was tried for a kernel on a GPU.
struct TuningCandidate {
  std::string provider;
  std::string plan;  // in short: of baked code, what --plan takes
  double predicted_us = 0;
  std::string fault;                 // why there are no figures, such as a wrong result; empty: measured, and right
  double us = 0;                     // of a launch in a graph, as the median
  int samples = 0;                   // behind it
  std::optional<double> error = {};  // of the worst element, as a share of its tolerance; nothing: nobody compared it
  std::int64_t workspace_bytes = 0;  // scratch memory of the launch; of a call, what the library asked for
  double network_us = 0;             // of a launch of the whole network that has it for this step; 0: nobody tried
  bool operator==(const TuningCandidate&) const = default;
};

// How a kernel was chosen by measurement. The first candidate is the models' choice.
struct TuningRecord {
  std::string device, arch;    // "NVIDIA H200", "sm_90"
  int driver_version = 0;      // 13000: the driver supports CUDA 13.0
  int code_copies = 1;         // loaded copies of the code that took turns
  std::string libraries = {};  // that candidates could call: "cuDNN 9.19.0"; empty: none
  std::vector<TuningCandidate> candidates;
  int chosen = 0;  // index
  bool operator==(const TuningRecord&) const = default;
};

// What a kernel of tensor cores multiplies of the matrix of weights, whose rows it takes by groups: of each group all
// columns, or gathered ones alone, in which one of its rows has a nonzero. Sums over all groups that have a row.
struct MultipliedColumns {
  std::int64_t columns = 0;  // that the matrix has for each of them
  std::int64_t live = 0;     // that are multiplied
  std::int64_t slots = 0;    // weights that are multiplied: nonzeros, zeros among them, and what fills up steps
  double live_share() const { return columns == 0 ? 0 : static_cast<double>(live) / static_cast<double>(columns); }
  bool operator==(const MultipliedColumns&) const = default;
};

// Zeros that the input of a convolution was taken to have when its kernel was chosen.
struct InputZeros {
  double share = 0;
  // Whether kernels that skip zeros were compared, by models, with some that do not.
  bool compared = false;
  // Then the share from which on one that skips them is estimated to take less time than all that do not. Nothing: none
  // does, whatever the share.
  std::optional<double> pays_from = {};
  bool operator==(const InputZeros&) const = default;
};

// From which share of zero weights on kernels that gain by them are estimated to take less time than every dense one.
struct WeightZeros {
  int batch = 1;                         // for so many images
  std::optional<double> pays_from = {};  // nothing: they do at no share
  bool operator==(const WeightZeros&) const = default;
};

// What a convolution's kernel computes, beside its weights.
struct KernelLayer {
  ConvShape shape;
  std::int64_t nonzeros = 0;
  int dead_inputs = 0, dead_outputs = 0;
  // Path in the package of the weights and biases (ir/layer_data.h) where they are in the code, or a library reads
  // them; else empty.
  std::string data = {};
  std::optional<MultipliedColumns> multiplied = {};  // nothing: nobody has counted
  std::optional<InputZeros> zeros = {};              // nothing: nobody has said
  // Nonzeros among the weights that are multiplied; nothing where that is not known, or none are.
  std::optional<double> fill() const;
  bool operator==(const KernelLayer&) const = default;
};

// What a library's call computes of a fully connected layer, beside its weights.
struct CalledLinear {
  bool bias = false, relu = false;
  std::string data = {};  // path in the package of the weights and biases (ir/layer_data.h)
  bool operator==(const CalledLinear&) const = default;
};

// "43.1 % of the columns live, 71.0 % of what is multiplied is not zero"; empty where nobody has counted.
std::string multiplied_text(const KernelLayer& layer);

// A user's function that a kernel's code has in it.
struct KernelFunction {
  UserFunction function;
  std::string path;  // in the package, of its PTX
  bool operator==(const KernelFunction& other) const {
    return function.symbol() == other.function.symbol() && function.attributes == other.function.attributes &&
           function.inputs == other.function.inputs && path == other.path;
  }
};

struct Kernel {
  std::string symbol;    // unique in its package
  std::string entry;     // the function in its code; empty: it is called like the kernel
  std::string op;        // the operator that it computes; of a copy, its tensor
  std::string kind;      // kind_name() of the operator, or kCopyKind
  std::string provider;  // who made it
  std::string precision = "fp32";
  // Why a convolution or fully connected layer stayed in FP32 where half precision was to be had (compiler/calibrate).
  // Empty: it did not.
  std::string kept_in_fp32;
  std::optional<KernelLayer> layer;    // of a convolution
  std::optional<WeightMatrix> linear;  // of a fully connected layer: its weights before any rounding
  std::optional<CalledLinear> called;  // of a fully connected layer whose plan has a library's call
  // A convolution or fully connected layer has one for each batch of the steps that launch it, ascending, or none where
  // nobody asked.
  std::vector<WeightZeros> weight_zeros;
  std::string plan;                       // its text form
  int planned_batch = 0;                  // the batch that the plan was made for; 0: it is the same for all
  double predicted_us = 0;                // of one launch with that batch; 0: nobody has said
  std::optional<TuningRecord> tuning;     // nothing: the plan is the cost model's choice, or a person's
  std::string weights;                    // path in the package of the weights' words, little-endian; empty: none
  std::vector<KernelFunction> functions;  // of a user's, that the code has in it
  bool edited = false;                    // a person changed its code: it does not follow from the plan any more
  std::string source_hash;                // of everything the code was made from: tool version, weights, plan
  std::vector<KernelBinary> binaries;

  // What the plan implies (ir/derive_form.h); no file says it a second time.
  std::string plan_short;  // for tables
  KernelForm form;
  // What is launched in place of the code where the library is there; nothing: the code alone. Code that a person
  // edited is what that person wants to see run.
  std::optional<LibraryCall> call;

  const std::string& entry_name() const { return entry.empty() ? symbol : entry; }
  // The provider that made its code, and the plan of that: of a kernel with a call, the part that is burin's own.
  std::string own_provider() const;
  std::string own_plan() const;
  // The convolution that a library's call computes in its place (ir/library_call.h); it must be one, or have `called`.
  ConvShape called_shape() const;
  // Path in the package of its layer's weights and biases; empty: they are not there.
  std::string layer_data() const;
  // Names its code: kernels of one package with the same name have the same, which is on a device once. Nothing: the
  // code is the kernel's own, since weights are in it, or a person edited it.
  std::optional<std::string> shared_code() const;
  // For messages: "layer conv1" of a convolution, "operator pool1".
  std::string owner() const;
  bool is_convolution() const { return layer.has_value(); }
  // What is known for a batch; null: nothing.
  const WeightZeros* weight_zeros_of(int batch) const;
  // The weights of its convolution or fully connected layer; nothing: it is another operator's.
  std::optional<WeightMatrix> matrix() const;
  bool operator==(const Kernel&) const = default;
};
inline constexpr std::string_view kCopyKind = "copy";

// The machine code of a kernel that is described: that for `arch`, or the first. Where there is none, its name is empty
// and its figures are not known.
KernelBinary described_code(const Kernel& kernel, const std::optional<std::string>& arch);

}  // namespace burin
