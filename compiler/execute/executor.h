// Where a package's programs run: a GPU through the runtime, or the host executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/host_programs.h"
#include "ir/package/package.h"
#include "runtime/burin/runtime.hpp"

namespace burin {

// What --device accepts.
struct DeviceChoice {
  bool host = true;
  int ordinal = 0;        // of the GPU
  std::string note = {};  // what was taken instead of a GPU that is not there; empty: what was asked for
};

// "auto", "host", "cuda" or "cuda:N". "auto" takes the first GPU, or, saying so, the host executor where there is
// none. Throws Error(usage) for other texts and Error(device) for a GPU that is not there.
DeviceChoice choose_device(const std::string& text);

// 0 where there is no driver, too.
int gpu_count();

// "sm_90" of the first GPU, or nothing where there is none.
std::optional<std::string> native_arch();

class Executor {
 public:
  virtual ~Executor() = default;

  // What it runs on, for people: "host", "cuda:0 (NVIDIA H200, sm_90)".
  virtual std::string name() const = 0;
  // What a person should know of how the package runs there, such as a library that is not there; more may come with
  // each run.
  virtual std::vector<std::string> notes() const { return {}; }
  // Whether several threads may call run() at once.
  virtual bool concurrent() const = 0;

  // The outputs for `batch` images, at most as many as the program takes; what no step wrote is NaN. With a visitor the
  // steps run one after the other, and it sees each; without one they run as in an application. Throws
  // Error(verification) for faults of a kernel that the executor detects, such as writes outside the output.
  virtual Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit = {}) = 0;
};

// `package` must outlive the executor. `jobs`: as of HostPrograms. `launchers`: on the host, of kernels whose modules
// do not follow from their plans. `functions`: on the host, of a user's, that kernels call.
std::unique_ptr<Executor> make_executor(const DeviceChoice& choice, const Package& package, int jobs = 0,
                                        HostLaunchers launchers = {}, HostFunctions functions = {});

// The same on a GPU, through the runtime. What it makes of each tensor is written on memory that was NaN before. A run
// without a visitor launches the program's graph twice, whose outputs must be the same; with one it launches the steps
// one after the other and looks at each.
// The options are those of loading the package.
std::unique_ptr<Executor> make_gpu_executor(const Device& device, const Package& package, const LoadOptions& options);

// How the tool loads packages: it looks for libraries in more places than the runtime, those of CUDA's wheels among
// them.
LoadOptions tool_load_options(LibraryUse libraries = LibraryUse::where_there);
std::vector<std::string> tool_candidates(Library library);

// Any number of images, by those of the programs of one name that the runtime would choose, one after the other.
Tensors run_programs(Executor& executor, const std::vector<const Program*>& programs, int batch, const Tensors& inputs);

// Chosen images of tensors, none of which is a map.
std::vector<float> pick_images(const std::vector<float>& tensor, int batch, const std::vector<int>& images);
Tensors pick_images(const Tensors& tensors, int batch, const std::vector<int>& images);

// Unlike ==, also of NaN.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace burin
