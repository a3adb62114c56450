// burin's compiler, C++: a model or pruned weights in, a package out, in one process.
//
//   const burin::Model model = burin::Model::read("model.onnx");
//   const burin::Compiled made = burin::compile(model, {.archs = {"sm_90"}, .batches = {1, 32}});
//   burin::LoadedPackage loaded(device, made.package, "model.onnx");  // runtime.hpp; or burin::save(*made.package,
//   path)
//
// Every function throws a std::runtime_error whose text stands on its own when it cannot do what it says; where it
// speaks of an option, that is the tool's, which has the setting's name. Functions may be called from several threads.
// What the settings mean is in docs/cli.md. More: docs/embedding.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#if defined(__GNUC__)
#define BURIN_COMPILER_API __attribute__((visibility("default")))
#else
#define BURIN_COMPILER_API
#endif

namespace burin {

struct Network;  // internal
struct Package;  // package.hpp

// ---- what is compiled

// A convolution in memory. Pairs are rows, columns.
struct PrunedLayer {
  std::string name;
  std::vector<float> weights;  // [out_channels][in_channels / groups][kernel rows][kernel columns]
  std::vector<float> bias;     // out_channels values; empty: none
  int in_channels = 0, out_channels = 0, groups = 1;
  int in_height = 0, in_width = 0;
  int kernel_height = 1, kernel_width = 1;
  int stride_height = 1, stride_width = 1;
  int pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  int dilation_height = 1, dilation_width = 1;
  bool residual = false;            // a tensor like the output is added before the activation
  std::string activation = "none";  // as --activation
};

struct ReadSettings {
  std::optional<std::string> input_shape;    // CxHxW, of a model that leaves it open
  std::optional<std::string> geometry_file;  // of weights that do not say their layers' stride, pad and so on
  std::optional<std::string> layer;          // only layers whose name matches (*, ?, [..]), each by itself
  float zero_threshold = 0;                  // weights up to this count as zero
  std::string quantized = "simulate";        // as --quantized
};

// A model, or layers. A cheap handle; it does not change.
class BURIN_COMPILER_API Model {
 public:
  static Model read(const std::string& path, const ReadSettings& settings = {});
  // `name` stands for the model in messages.
  static Model from_onnx(std::string_view bytes, const std::string& name, const ReadSettings& settings = {});
  static Model from_layers(const std::vector<PrunedLayer>& layers, const std::string& name = "layers");

  std::vector<std::string> layers() const;        // its convolutions
  const std::vector<std::string>& notes() const;  // what a person should know, one sentence each

  const std::shared_ptr<const Network>& network() const { return network_; }

 private:
  explicit Model(std::shared_ptr<const Network> network) : network_(std::move(network)) {}
  std::shared_ptr<const Network> network_;
};

// ---- compiling

// Images of one input of the model, in NCHW, one behind the other.
struct CalibrationInput {
  std::string input;  // its name; of single layers "conv1.input" and "conv1.residual"
  std::vector<float> values;
};

// The batch sizes from `first` to `last`.
struct BatchSpan {
  int first = 1, last = 1;
};

struct CompileSettings {
  std::vector<std::string> archs = {"sm_90"};
  std::vector<int> batches = {1};
  std::vector<BatchSpan> batch_spans = {};         // as ranges of --batch; `batches` may then be empty
  std::string precision = "fp32";                  // as --precision
  std::vector<CalibrationInput> calibration = {};  // as --calibrate; empty: random ones, if any are needed
  std::optional<double> max_error = {};            // as --max-error
  std::vector<CalibrationInput> activations = {};  // as --activations, for every input; empty: none
  std::string activation_sparsity = {};            // as --activation-sparsity; "": not said
  std::optional<std::string> layout = {};          // nothing: what the precision has by default
  std::string kernels = "auto";                    // as --kernels
  std::string plan = {};                           // as --plan
  std::string linear_storage = "fp32";             // as --linear-storage
  std::string io = "fp32";                         // as --io
  std::string objective = "time";                  // as --objective
  std::int64_t memory_limit = 0;                   // as --memory-limit, in bytes; 0: there is none
  bool skip_dead_tiles = false;
  bool flip = false;          // as --flip
  bool siblings = true;       // convolutions with the same input become one where that is faster
  bool libraries = true;      // where a library's call was measured to be faster, a kernel makes it beside its own code
  bool ptx = true;            // false: machine code alone, where there is an assembler
  int tune = 0;               // candidates to measure for each convolution on a GPU of this machine; 0: none
  double tune_seconds = 300;  // in all; after three quarters no other kernel is measured
  std::string tune_providers = {};  // as burin tune --providers; "": all
  bool tune_anew = false;           // what `cache` has of measurements is measured again
  int jobs = 0;                     // threads; 0: one for each processor
  std::string cache = {};           // a folder where kernels are kept for the next compilation; "": nowhere
  std::int64_t cache_bytes = std::int64_t{4} << 30;
};

struct CompileState {
  std::string what;         // that was done last: "conv1 b1"
  int done = 0, total = 0;  // kernels
  double share = 0;         // of the work
};
// Called now and then, from any thread, one call at a time. False: the work ends soon, with Cancelled.
using CompileWatch = std::function<bool(const CompileState&)>;

class BURIN_COMPILER_API Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

struct Compiled {
  std::shared_ptr<const Package> package;
  std::vector<std::string> notes;
  int cached = 0;  // kernels that the cache had
};
BURIN_COMPILER_API Compiled compile(const Model& model, const CompileSettings& settings = {},
                                    const CompileWatch& watch = {});

// Writes the package to a file, whole or not at all.
BURIN_COMPILER_API void save(const Package& package, const std::string& path);

// ---- verifying

struct VerifySettings {
  std::string device = "auto";  // "host", "cuda", "cuda:N"; auto: the first GPU, else the host
  std::optional<int> batch;     // nothing: what each program was compiled for
  std::uint64_t seed = 1;
  std::optional<int> images;  // of a batch, that are compared; nothing: of a network four, of layers all
  bool layers = false;        // of a network, each step as well
  bool code = true;           // PTX, made anew of plan and weights, must be the package's byte for byte
};
// An output of a program.
struct VerifiedOutput {
  std::string program, output;
  int batch = 1;
  bool passed = false;
  double error_over_tolerance = 0;  // of the worst element
  double relative_error = 0;        // |output - expected| / |expected|
  std::string fault;                // what is wrong beside values; empty: the figures speak
};
struct Verified {
  bool passed = false;
  std::string device;  // that it ran on
  std::vector<VerifiedOutput> outputs;
};
// Random inputs, and the float64 reference of the model that the package was compiled from.
BURIN_COMPILER_API Verified verify(const Package& package, const Model& model, const VerifySettings& settings = {});

}  // namespace burin
