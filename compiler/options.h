// What a compilation is asked for.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/providers/provider.h"
#include "ir/activation_zeros.h"
#include "ir/element_type.h"
#include "ir/kernel.h"
#include "ir/network.h"
#include "ir/objective.h"
#include "ir/precision.h"
#include "ir/program.h"
#include "ir/tensor_layout.h"

namespace burin {

class KernelCache;  // compiler/kernel_cache.h

// The stages of a kernel, in order; also what --stop-after takes.
inline constexpr const char* kStageNames[] = {"layer", "pattern", "plan", "template", "specialised", "ptx", "cubin"};

inline constexpr std::string_view kAutoKind = "auto";  // whatever is predicted to be fastest

// What holds for all convolutions, but for those that have a choice of their own.
template <typename Choice>
struct LayerChoices {
  Choice all = {};
  std::map<std::string, Choice> of_layers = {};  // by name

  const Choice& of(const std::string& layer) const {
    const auto found = of_layers.find(layer);
    return found == of_layers.end() ? all : found->second;
  }
  // Whether one that is made for all, or for some layer, is such a one.
  template <typename Is>
  bool any(Is is) const {
    return is(all) || std::ranges::any_of(of_layers, [&](const auto& entry) { return is(entry.second); });
  }
  bool operator==(const LayerChoices&) const = default;
};

// Which providers may make the kernels of which convolutions: those whose names begin with conv_
// (compiler/providers/providers.def). kAutoKind, or the name of a provider. What it cannot compute is baked all the
// same; of a layer with a choice of its own that is an error.
struct KernelKinds : LayerChoices<std::string> {
  KernelKinds() : LayerChoices{std::string(kAutoKind)} {}
};
// What convolutions compute with.
using LayerPrecisions = LayerChoices<Precision>;

// Names of providers without "conv_": "baked", then those with the weights as data.
std::vector<std::string> kernel_kind_names();
// The same of fully connected layers, which are their providers' names: each layer is chosen for by its own.
std::vector<std::string> linear_kind_names();

// "baked,cudnn": the names of the providers that --providers asks for, which are of the kinds `known`; "": of none.
// Throws Error(usage).
std::vector<std::string> parse_providers(const std::string& text, const std::vector<std::string>& known);

// "baked", "auto,conv1=dense": a kind for all, kinds for layers. Throws Error(usage).
KernelKinds parse_kernel_kinds(const std::string& text);

// What --precision says. Nothing: `auto`, FP16 unless calibration (compiler/calibrate) finds reason for FP32.
using AskedPrecisions = LayerChoices<std::optional<Precision>>;
inline constexpr std::string_view kAutoPrecision = "auto";

// "fp16", "auto", "fp16,conv1=fp32". Throws Error(unsupported) for a precision that is not known.
AskedPrecisions parse_precisions(const std::string& text);
// Whether the precision of some convolution is left open.
bool leaves_open(const AskedPrecisions& asked);
// What convolutions compute with before anything was measured.
LayerPrecisions unmeasured(const AskedPrecisions& asked);

// A candidate that could take the place of the chosen one.
struct Rival {
  Candidate candidate;  // its estimate is what was measured
  int index = 0;        // of the evidence
};

// A candidate that was chosen by measurement (compiler/tune/), and what was measured.
struct TunedKernel {
  std::string layer;
  int batch = 1;
  OperatorFormats formats = {};  // of the tensors on which it was measured
  Candidate candidate;
  TuningRecord evidence;
  // Those that may be faster in a network, where others run before them: what takes little more than the fastest, and
  // the models' choice, the fastest first. All of them are right.
  std::vector<Rival> rivals = {};

  bool is_of(const std::string& op, int images, const OperatorFormats& tensors) const {
    return layer == op && batch == images && formats == tensors;
  }
};

// Batch sizes of which each is to be fast, on a program of its own or on another's (compiler/choose/batch_choice.h).
struct BatchRange {
  int first = 1, last = 1;
};

// How the formats of a network's tensors are found where options leave them open.
enum class FormatRule {
  usual,      // they follow from the batch size and the precision
  careful,    // estimates decide, and of many images other formats than the usual ones must gain what models may be off
              // by
  estimated,  // estimates decide, and of many images others must gain a twentieth
  libraries,  // convolutions that a library can be called for have their channels last, and are called; others have the
              // usual ones
};

// What may become one kernel, where the models find that faster.
struct Joins {
  bool siblings = true;   // convolutions with the same input
  bool depthwise = true;  // a convolution and the depthwise one behind it
  bool operator==(const Joins&) const = default;
};

struct CompileOptions {
  std::vector<std::string> archs = {"sm_90"};  // cubins for each; PTX for the lowest
  std::vector<std::string> cubin_archs;        // cubins for these alone; empty: for all
  std::vector<int> batches = {1};
  // choose_batches() makes `batches` and `curve` of these, before anything is tuned or compiled.
  std::vector<BatchRange> batch_ranges;
  std::vector<int> asked_batches;           // those that were named, and the ends of ranges; empty: there are no ranges
  std::vector<BatchEstimate> curve;         // recorded in the package
  LayerPrecisions precisions;               // a plan in from_file has its own
  std::map<std::string, std::string> kept;  // convolutions that calibration keeps in FP32: why
  // All layers' inputs, outputs and residuals have it. Nothing: what the plan in from_file says, else nchw; with the
  // half precisions it is n2chw, or can be n8c8hw, nchw8 or nhwc8, with tf32 n4c8hw or nhwc4.
  std::optional<TensorLayout> layout;
  std::optional<TensorLayout> output_layout;  // of outputs and residuals, where it is another
  bool skip_dead_tiles = false;               // plans with activity maps; a plan in from_file has its own
  float zero_threshold = 0;                   // recorded in the package; the importer has applied it
  std::optional<std::string> dump_dir;    // numbered stage files in DIR/<layer>/ (DIR/<layer>/b<batch>/ for several)
  std::optional<std::string> stop_after;  // one of kStageNames; the package then has no kernels
  // --plan: what is not left to the provider of `kernels` for all convolutions; where that is kAutoKind, they are
  // baked.
  std::string plan;
  std::optional<std::string> from_file;           // an edited plan (.txt), module (.ll) or PTX (.ptx)
  std::string from_op;                            // the operator whose kernel it is of; empty: of the only one
  std::vector<TunedKernel> tuned;                 // what was measured
  bool rivals = false;                            // a network's package has the kernels of all their rivals as well
  KernelKinds kernels;                            // which providers may make the kernels of which convolutions
  ElementType linear_storage = ElementType::f32;  // of fully connected layers' weights, f32 or f16
  // The inputs of convolutions, by their names, have zeros that were counted, or made up.
  std::map<std::string, ActivationZeros> activation_zeros = {};
  // The share of zero weights from which on they pay is sought for each convolution and fully connected layer.
  bool seeks_weight_zeros = false;
  Joins joins = {};
  std::map<int, Joins> measured_joins = {};     // of batch sizes' graphs, by measurement
  std::map<int, FormatRule> format_rules = {};  // of batch sizes, by measurement; others have usual_rule()
  // The formats of all operators, by their names, for batch sizes for which measured times of convolutions in several
  // formats say so: they go before the rules.
  std::map<int, std::map<std::string, OperatorFormats>> formats = {};
  bool libraries = true;                     // kernels may have calls of libraries
  ElementType io = ElementType::f32;         // of a network's inputs and outputs, which are in nchw
  Objective objective = Objective::time;     // of a network's kernels
  std::optional<std::int64_t> memory_limit;  // bytes of device memory that a network may take
  const KernelCache* cache = nullptr;        // where kernels that were compiled before are; null: there is none
  int jobs = 0;                              // threads; 0: as many as there are processors
  bool keep_ptx = true;                      // also of kernels with machine code for all architectures

  const std::vector<std::string>& archs_of_cubins() const { return cubin_archs.empty() ? archs : cubin_archs; }
  // Those that the graph is simplified for.
  const std::vector<int>& graph_batches() const { return asked_batches.empty() ? batches : asked_batches; }
  // Whether the kernels of a network are chosen together (compiler/choose/network_choice.h).
  bool chooses_together() const { return memory_limit || objective == Objective::memory; }
  bool makes_package() const { return !stop_after || *stop_after == *std::rbegin(kStageNames); }
};

// Throws Error(usage) where no layer's tensors can lie in the layout that is asked for.
void check_layout(const CompileOptions& options);

// Throws Error(usage) or Error(unsupported) for options that contradict each other or the network, before any work has
// begun.
void check_options(const Network& network, const CompileOptions& options);

// What was measured in the formats of the task's tensors. Null when the task's kernel was not chosen by measurement.
const TunedKernel* find_tuned(const CompileOptions& options, const Task& task);

struct CompileProgress {
  int done = 0, total = 0;
  double work_done = 0;  // of all work that is not found in the cache, by an estimate from the nonzeros
  std::string what;      // the kernel that was just finished
};

}  // namespace burin
