// Which kernel a task gets: the best of what all providers propose.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/network/passes.h"
#include "compiler/options.h"
#include "compiler/providers/provider.h"
#include "compiler/task.h"
#include "ir/program.h"

namespace burin {

struct Choice {
  Candidate candidate;
  std::vector<KernelOption> options;  // what was compared, the chosen one first; one where there was no choice
};

// What is predicted to take more than so many times the best estimate is not worth a measurement. Models are not that
// wrong.
inline constexpr double kFarBehind = 4;

// CompileOptions::plan where it is for this provider, else nothing.
std::string choices_for(const Provider& provider, const CompileOptions& options);

// Whom choose_by_models() asks. Without a measurement that is nobody who needs one, unless an option names that
// provider.
std::vector<const Provider*> compared_by_models(const Task& task, const CompileOptions& options);

// What the best kernel of these providers is estimated to take; infinite where none of them has one.
double least_estimate_us(const Task& task, const CompileOptions& options,
                         const std::vector<const Provider*>& providers);

// Up to `count` candidates of each that may make the task's kernel, those with the least estimates first. Throws
// Error(unsupported) where there is none.
std::vector<Candidate> all_candidates(const Task& task, const CompileOptions& options, int count);

// Those of providers that have no model, which are compared by measurement alone; none where the options allow none, or
// name a provider (all_candidates() then has its).
std::vector<Candidate> unmodelled_candidates(const Task& task, const CompileOptions& options);

// Whether the rule of its batch size laid the task's tensors as a library's call reads them best (FormatRule): then
// choose() takes that call where nothing was measured.
bool is_laid_for_call(const Task& task, const CompileOptions& options);

// The chosen candidate first, and what each provider's best would take.
Choice choice_of(const std::vector<Candidate>& candidates);

// What choose() takes, then others, up to `count` of each provider, those with the least estimates first: of a task
// that was measured, those alone that were measured as well.
std::vector<Candidate> alternatives(const Task& task, const CompileOptions& options, int count);

// Goes by measurements where there are any, takes a call where is_laid_for_call() says so, and else goes by the
// estimates. Throws Error(unsupported) where no provider can do the task, or where CompileOptions::kernels names one
// for it that cannot.
Choice choose(const Task& task, const CompileOptions& options);

// The rivals of a task's kernel that was chosen by measurement, in their order, as they are for the task's tensors.
std::vector<Candidate> rivals_for(const Task& task, const CompileOptions& options);

// As choose() by the estimates, whatever was measured.
Choice choose_by_models(const Task& task, const CompileOptions& options);

// What the passes over a graph ask: which pools behind a convolution are to be kernels of their own, which convolutions
// with the same input one kernel, and which squeeze-and-excitations. A convolution that an option names stays what it
// is. `options` must outlive it.
GraphChoices graph_choices(const CompileOptions& options);

// Tensors in which four or eight images lie side by side have as many: else most of eight would be filling, and for few
// images kernels of one are as fast.
inline constexpr int kLeastImages = 5;

// The rule of batch sizes for which CompileOptions::format_rules has none: estimates decide for few images alone.
FormatRule usual_rule(int batch);

// This makes tasks of a graph's convolutions in the formats that they may have and do not have where it is `formatted`
// (in_formats()), where someone has a kernel that is worth a measurement: calls that nobody has a model for are, of
// providers that are measured (`measures`). The graph must outlive the tasks.
std::vector<Task> in_other_formats(const Network& graph, const Network& formatted, const CompileOptions& options,
                                   int batch, const std::function<bool(const Provider& provider)>& measures);

// The formats of all operators, by their names, with which the graph takes the least time by what was measured of its
// convolutions in several formats (CompileOptions::tuned), and by estimates of all else. Empty: there is no choice.
std::map<std::string, OperatorFormats> formats_by_measurement(const Network& graph, const CompileOptions& options,
                                                              int batch);

// The graph as programs of a batch size have it, each tensor in its format: the inputs and outputs of a network as
// CompileOptions::io says. Where CompileOptions::formats has the batch size, they are those. What CompileOptions leave
// open follows from the batch, or is what the models expect to be fastest, conversions counted
// (compiler/choose/format_choice.h), or is what libraries can be called on, as the rule of the batch size says.
Network in_formats(Network network, const CompileOptions& options, int batch);
// The same where what is left open follows from the batch alone: in halves, eight images side by side where there are
// as many and a provider computes so; for few images FP32, whose factors convolutions may round.
Network in_usual_formats(Network network, const CompileOptions& options, int batch);

}  // namespace burin
