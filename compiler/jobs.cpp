#include "compiler/jobs.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <variant>

#include "compiler/choose_convolution.h"
#include "compiler/network/memory_plan.h"
#include "compiler/observer.h"
#include "compiler/packaged_kernel.h"
#include "compiler/parallel_for.h"
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
    std::vector<int> batches = options_.batches;
    if (network_.has_graph()) {
      std::ranges::sort(batches);
      for (const int batch : batches) plans_.push_back(plan_network(network_, batch));
      choose_convolutions();
    }
    for (std::size_t i = 0; i < network_.layers.size(); ++i) add_layer(static_cast<int>(i));
    for (NetworkPlan& plan : plans_) add_program(std::move(plan));
    return std::move(jobs_);
  }

 private:
  struct Key {
    int layer, batch;
    auto operator<=>(const Key&) const = default;
  };

  static std::int64_t nonzeros(const ConvLayer& layer) {
    return std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; });
  }

  // Null of a copy, and of all other operators.
  const Operator* operator_of(const Step& step) const {
    return step.is_copy() ? nullptr : &network_.operators[static_cast<std::size_t>(step.op)];
  }
  const Convolution* convolution_of(const Step& step) const {
    const Operator* op = operator_of(step);
    return op == nullptr ? nullptr : std::get_if<Convolution>(&op->kind);
  }
  const ConvLayer& layer(int index) const { return network_.layers[static_cast<std::size_t>(index)]; }

  OperatorRequest request(int batch, const Step& step) const {
    OperatorRequest request{.batch = batch, .arch = lowest_arch(options_.archs)};
    for (const Place& place : step.reads) request.inputs.push_back(buffer_place(place));
    request.output = buffer_place(step.writes);
    request.linear_storage = options_.linear_storage;
    return request;
  }

  // Of every convolution and batch size, side by side: plans take their time.
  void choose_convolutions() {
    struct Task {
      Key key;
      const Step* step;
    };
    std::vector<Task> tasks;
    for (const NetworkPlan& plan : plans_) {
      for (const Step& step : plan.steps) {
        if (const Convolution* convolution = convolution_of(step)) {
          tasks.push_back({{convolution->layer, plan.batch}, &step});
          choices_[tasks.back().key] = {};
        }
      }
    }
    for_each_parallel(tasks.size(), options_.jobs, [&](std::size_t i) {
      const auto& [key, step] = tasks[i];
      choices_.at(key) =
          choose_convolution(layer(key.layer), nonzeros(layer(key.layer)), request(key.batch, *step), options_);
    });
  }

  // Its baked kernels.
  void add_layer(int index) {
    const ConvLayer& added = layer(index);
    const auto is_baked = [&](int batch) {
      const auto choice = choices_.find({index, batch});
      return choice == choices_.end() || !choice->second.planned;
    };
    if (std::ranges::none_of(options_.batches, is_baked)) return;  // and leaves its name to others
    const std::string suffix = names_.suffix({folder_name(added.name), kernel_symbol(added.name, KernelPlan{})});
    for (const int batch : options_.batches) {
      if (!is_baked(batch)) continue;
      LayerJob& job = jobs_.layers.emplace_back();
      job.layer = &added;
      job.batch = batch;
      job.suffix = suffix;
      job.nonzeros = nonzeros(added);
      const auto choice = choices_.find({index, batch});
      if (choice != choices_.end()) job.plan = std::move(choice->second.baked);
    }
  }

  void add_program(NetworkPlan plan) {
    ProgramJobs program{std::move(plan), {}, {}, {}};
    for (const Step& step : program.plan.steps) {
      const Convolution* const convolution = convolution_of(step);
      ConvolutionChoice* choice = nullptr;
      if (convolution != nullptr) choice = &choices_.at({convolution->layer, program.plan.batch});
      const bool baked = choice != nullptr && !choice->planned;
      program.layers.push_back(baked ? layer_job(convolution->layer, program.plan.batch, step) : -1);
      program.operators.push_back(baked ? -1 : operator_job(program.plan.batch, step, choice));
      program.options.push_back(choice == nullptr ? std::vector<KernelOption>() : choice->options);
    }
    if (std::ranges::all_of(program.options, [](const auto& options) { return options.empty(); })) {
      program.options.clear();
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

  PlannedOperator plan(int batch, const Step& step) const {
    const Operator* const op = operator_of(step);
    if (op == nullptr) {
      return plan_move(copied(step.reads[0]), copied(step.writes),
                       {.batch = batch, .arch = lowest_arch(options_.archs)});
    }
    std::vector<PlannedOperator> kernels = plan_operator(network_, *op, request(batch, step));
    BURIN_CHECK(kernels.size() == 1, "operator {} has {} kernels", step.name, kernels.size());
    return std::move(kernels.front());
  }

  // `choice` of a convolution, whose kernel is planned already.
  int operator_job(int batch, const Step& step, ConvolutionChoice* choice) {
    PlannedOperator planned = choice != nullptr ? *std::move(choice->planned) : plan(batch, step);
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
  std::vector<NetworkPlan> plans_;  // of a graph, one for each batch size
  std::map<Key, ConvolutionChoice> choices_;
  Names names_;
  Jobs jobs_;
};

}  // namespace

Jobs list_jobs(const Network& network, const CompileOptions& options) { return JobList(network, options).run(); }

}  // namespace burin
