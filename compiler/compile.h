// The whole pipeline: a network in, a package out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernel_kinds.h"
#include "compiler/network/passes.h"
#include "compiler/plan/constraints.h"
#include "compiler/plan/planner.h"
#include "ir/element_type.h"
#include "ir/kernel_plan.h"
#include "ir/network.h"
#include "ir/package/package.h"
#include "ir/tensor_layout.h"

namespace burin {

class KernelCache;  // compiler/kernel_cache.h

// The stages, in order; also what --stop-after takes.
inline constexpr const char* kStageNames[] = {"layer", "pattern", "plan", "template", "specialised", "ptx", "cubin"};

// A plan that was chosen by measurement (compiler/tune/), and what was measured.
struct TunedPlan {
  std::string layer;
  int batch = 1;
  KernelPlan plan;
  TuningRecord evidence;
};

struct CompileOptions {
  std::vector<std::string> archs = {"sm_90"};  // cubins for each; PTX for the lowest
  std::vector<int> batches = {1};
  std::string precision = "fp32";  // one of precision_names(); a plan in from_file has its own
  // Of the inputs, outputs and residuals of all layers. Nothing: what the plan in from_file says, else nchw; with the
  // half precisions it can only be n2chw.
  std::optional<TensorLayout> layout;
  bool skip_dead_tiles = false;           // plans with activity maps; a plan in from_file has its own
  float zero_threshold = 0;               // recorded in the package; the importer has applied it
  std::optional<std::string> dump_dir;    // numbered stage files in DIR/<layer>/ (DIR/<layer>/b<batch>/ for several)
  std::optional<std::string> stop_after;  // one of kStageNames; the package then has no kernels
  PlanConstraints plan_constraints;       // --plan: what is not left to the planner
  std::optional<std::string> from_file;   // an edited plan (.txt), module (.ll) or PTX (.ptx) of the only layer
  std::vector<TunedPlan> tuned;           // taken instead of the planner's own
  KernelKinds kernels;                    // of a network: which convolutions have their weights as data
  ElementType linear_storage = ElementType::f32;  // of a network: its fully connected layers' weights, f32 or f16
  const KernelCache* cache = nullptr;             // where kernels that were compiled before are; null: there is none
  int jobs = 0;                                   // threads; 0: as many as there are processors
  bool keep_bitcode = true;
};

// Null when the layer's plan was not chosen by measurement.
const TunedPlan* find_tuned(const std::vector<TunedPlan>& plans, const std::string& layer, int batch);

// What compile_network() asks the planner for.
PlanRequest plan_request(const CompileOptions& options, int batch);

struct CompileProgress {
  int done = 0, total = 0;
  int cached = 0;        // of those done, found in the cache
  double work_done = 0;  // of all work that is not found in the cache, by an estimate from the nonzeros
  std::string what;      // the kernel that was just finished
};

struct CompileResult {
  Package package;
  std::vector<std::string> notes;
  bool stopped_early = false;
  int cached = 0;  // kernels that the cache had
};

// A graph as it is compiled: simplify(), each pass dumped to `dump_dir`/network, if there is one. A network without a
// graph is returned as it is. `stays_apart`: which pools stay kernels of their own (compiler/network/passes.h).
Network prepare_graph(Network network, const std::optional<std::string>& dump_dir, const StaysApart& stays_apart = {});

// Of a network with a graph, which has gone through prepare_graph(), all operators are compiled, and how they run
// (Manifest::network). `progress` may be empty; it is called from worker threads, one call at a time.
CompileResult compile_network(const Network& network, const CompileOptions& options,
                              const std::function<void(const CompileProgress&)>& progress);

}  // namespace burin
