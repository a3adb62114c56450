#include "compiler/jobs.h"

#include <algorithm>
#include <set>
#include <variant>

#include "compiler/network/memory_plan.h"
#include "compiler/observer.h"
#include "compiler/packaged_kernel.h"
#include "ir/error.h"
#include "ir/kernel_plan.h"

namespace burin {
namespace {

constexpr std::int64_t kWordBytes = 4;

// Gives out names, each once.
class Names {
 public:
  // What must be added to all of `names` so that none was given out before.
  std::string suffix(const std::vector<std::string>& names) {
    std::string suffix;
    const auto is_taken = [&](const std::string& name) { return taken_.contains(name + suffix); };
    for (int i = 2; std::ranges::any_of(names, is_taken); ++i) suffix = fmt::format("_{}", i);
    for (const std::string& name : names) taken_.insert(name + suffix);
    return suffix;
  }

 private:
  std::set<std::string> taken_;
};

BufferPlace buffer_place(const Place& place) { return {place.image_stride / kWordBytes, place.offset / kWordBytes}; }

// Of a copy: the words that it reads or writes.
OperatorTensor copied(const Place& place) {
  return {.image_words = place.image_stride / kWordBytes,
          .offset = place.offset / kWordBytes,
          .run_words = place.run_bytes / kWordBytes,
          .runs = place.runs,
          .run_pitch = place.run_stride / kWordBytes};
}

class JobList {
 public:
  JobList(const Network& network, const CompileOptions& options) : network_(network), options_(options) {}

  Jobs run() {
    for (const ConvLayer& layer : network_.layers) {
      const std::string suffix = names_.suffix({folder_name(layer.name), kernel_symbol(layer.name, KernelPlan{})});
      const auto nonzeros =
          static_cast<std::int64_t>(std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; }));
      for (const int batch : options_.batches) {
        jobs_.layers.push_back({.layer = &layer, .batch = batch, .suffix = suffix, .nonzeros = nonzeros});
      }
    }
    if (network_.has_graph()) {
      std::vector<int> batches = options_.batches;
      std::ranges::sort(batches);
      for (const int batch : batches) add_program(batch);
    }
    return std::move(jobs_);
  }

 private:
  void add_program(int batch) {
    ProgramJobs program{plan_network(network_, batch), {}, {}};
    for (const Step& step : program.plan.steps) {
      const Operator* op = step.is_copy() ? nullptr : &network_.operators[static_cast<std::size_t>(step.op)];
      const auto* convolution = op == nullptr ? nullptr : std::get_if<Convolution>(&op->kind);
      program.layers.push_back(convolution == nullptr ? -1 : layer_job(convolution->layer, batch, step));
      program.operators.push_back(convolution == nullptr ? operator_job(op, batch, step) : -1);
    }
    jobs_.programs.push_back(std::move(program));
  }

  int layer_job(int layer, int batch, const Step& step) {
    const ConvLayer* wanted = &network_.layers[static_cast<std::size_t>(layer)];
    const auto found = std::ranges::find_if(
        jobs_.layers, [&](const LayerJob& job) { return job.layer == wanted && job.batch == batch; });
    BURIN_CHECK(found != jobs_.layers.end(), "layer {} for batch {} is not compiled", layer, batch);
    const auto slice_words = [](const Place& place) {
      return place.is_slice() ? place.image_stride / kWordBytes : std::int64_t{0};
    };
    found->in_network = true;
    found->output_image_words = slice_words(step.writes);
    if (step.reads.size() > 1) found->residual_image_words = slice_words(step.reads[1]);
    return static_cast<int>(found - jobs_.layers.begin());
  }

  PlannedOperator plan(const Operator* op, int batch, const Step& step) const {
    OperatorRequest request{.batch = batch, .arch = lowest_arch(options_.archs)};
    if (op == nullptr) return plan_move(copied(step.reads[0]), copied(step.writes), request);
    for (const Place& place : step.reads) request.inputs.push_back(buffer_place(place));
    request.output = buffer_place(step.writes);
    std::vector<PlannedOperator> kernels = plan_operator(network_, *op, request);
    BURIN_CHECK(kernels.size() == 1, "operator {} has {} kernels", step.name, kernels.size());
    return std::move(kernels.front());
  }

  int operator_job(const Operator* op, int batch, const Step& step) {
    PlannedOperator planned = plan(op, batch, step);
    for (std::size_t i = 0; i < jobs_.operators.size(); ++i) {
      const OperatorJob& job = jobs_.operators[i];
      if (job.op == step.name && job.kind == step.kind && job.planned.plan == planned.plan &&
          job.planned.input == planned.input && job.planned.second == planned.second &&
          job.planned.weights == planned.weights) {
        return static_cast<int>(i);
      }
    }
    const std::string symbol = kernel_symbol(step.name, planned.plan), folder = folder_name(step.name);
    const std::string suffix = names_.suffix({symbol, folder});
    jobs_.operators.push_back({step.name, step.kind, std::move(planned), symbol + suffix, folder + suffix});
    return static_cast<int>(jobs_.operators.size()) - 1;
  }

  const Network& network_;
  const CompileOptions& options_;
  Names names_;
  Jobs jobs_;
};

}  // namespace

Jobs list_jobs(const Network& network, const CompileOptions& options) { return JobList(network, options).run(); }

}  // namespace burin
