// A study: which algorithm is the fastest for which layer. Around a base layer one axis after the other is varied, and
// at each point the candidates of all providers are compared: by their models, or measured on a GPU.
//
// plan_study() says which points there are, propose() finds their candidates, measure() times them. What is not done
// when the time is over stays as it is, and says so.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/options.h"
#include "compiler/study/study_layer.h"
#include "compiler/tune/measurer.h"
#include "compiler/tune/time_budget.h"
#include "compiler/tune/tune.h"

namespace burin {

// What a candidate takes of a device's memory, beside the tensors; measured, or by estimate.
struct CandidateMemory {
  std::int64_t code_bytes = 0, weight_bytes = 0, library_bytes = 0, workspace_bytes = 0;
  std::int64_t total() const { return code_bytes + weight_bytes + library_bytes + workspace_bytes; }
};

struct StudyCandidate {
  Candidate candidate;
  std::string algorithm;                  // whose curve it is on: algorithm_of()
  std::string plan;                       // in short: what tells it from others of its provider
  std::optional<double> predicted_us;     // nothing: no model speaks of it
  std::optional<double> us;               // measured, of a launch in a graph
  int samples = 0;                        // behind it
  std::optional<double> error;            // of the worst element, as a share of its tolerance
  std::optional<CandidateMemory> memory;  // nothing: nobody knows
  std::string fault;                      // why it has no time; empty: it has one, or has not been measured yet
};

struct StudyPoint {
  StudyLayer layer;
  bool done = false;   // its candidates were compared
  bool known = false;  // in an earlier run
  std::string fault;   // why there are none
  std::vector<StudyCandidate> candidates = {};
};

// The points of one axis, values ascending; the base is among them.
struct StudyCurve {
  StudyAxis axis = StudyAxis::batch;
  std::vector<double> values;
  std::vector<std::size_t> points;  // of each value
};

// The points of two axes together.
struct StudyMap {
  StudyAxis rows = StudyAxis::batch, columns = StudyAxis::batch;
  std::vector<double> row_values, column_values;
  std::vector<std::vector<std::size_t>> points;  // of each row, of each column
};

struct Study {
  StudyLayer base;
  Estimate::Source source = Estimate::Source::model;  // of the times that are compared
  TuningDevice device;                                // that was measured on; else the architecture alone
  Precision precision = Precision::fp32;
  std::uint64_t seed = 1;  // of the weights
  int plans = 1;           // of each provider
  std::vector<StudyPoint> points;
  std::vector<StudyCurve> curves;
  std::vector<StudyMap> maps;
  std::string stopped;  // why some points are not done; empty: all are

  int done() const;
  int known() const;
};

// The values of an axis, in any order.
using AxisValues = std::map<StudyAxis, std::vector<double>>;
// "zeros,batch": the two axes of a map.
using MapAxes = std::pair<StudyAxis, StudyAxis>;

// The points of a study, none of them done: the base, then the curves, then the maps. A layer is a point once, however
// many curves and maps it is part of. Throws Error(usage) for a layer that cannot be, for a map of an axis without
// values, and for too many points.
Study plan_study(const StudyLayer& base, const AxisValues& axes, const std::vector<MapAxes>& maps);

// The provider's name; of one whose candidates no model compares, each is an algorithm of its own: "conv_cudnn
// winograd".
std::string algorithm_of(const Candidate& candidate);

struct StudyOptions {
  CompileOptions compile = {};              // architectures, precision, layout
  std::vector<std::string> providers = {};  // that are asked; empty: all
  int jobs = 0;                             // threads; 0: as many as there are processors
  double budget_s = 0;                      // after so much time nothing new is begun; 0: there is time for all
  std::function<double()> seconds = {};     // a clock; empty: the system's
  bool anew = false;                        // what compile.cache has of points is measured again
};

struct StudyProgress {
  int done = 0, total = 0;
  std::string what;
};

// The candidates of each point, up to study.plans of each provider, by several threads. Where study.source is the
// models, that is all: points are done, and what candidates take of memory is estimated. Else calls of libraries are
// among them where study.device has some. `progress` may be empty; it is called by one thread at a time.
void propose(Study& study, const StudyOptions& options, const TimeBudget& budget,
             const std::function<void(const StudyProgress&)>& progress);

// Points of which compile.cache has all are not measured again. Compiles what was proposed of the others, by several
// threads; checks each candidate against the float64 reference, and times those of a point in turns. What is predicted
// to be far behind (kFarBehind) is left out, but for the best of each provider whose kernels are soon compiled. A
// device that a candidate leaves unusable ends it, as the end of the budget does.
void measure(Study& study, const StudyOptions& options, const TimeBudget& budget, const CandidateCompiler& compile,
             Measurer& measurer, const std::function<void(const StudyProgress&)>& progress);

// The fastest candidate of an algorithm at a point.
struct Ranked {
  std::size_t candidate = 0;
  double us = 0;
};
// The algorithms of a point by their times, which are of `source`; the fastest first. Of equal ones that of the earlier
// candidate.
std::vector<Ranked> ranking(const StudyPoint& point, Estimate::Source source);

}  // namespace burin
