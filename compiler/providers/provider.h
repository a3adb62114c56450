// Provider: one way to make kernels, with its template, its constants, its plan, its cost and its packing. To add one
// is a folder beside this file and a line in providers.def (docs/hacking.md).
//
// A provider has two verbs: it proposes candidates for a task, and makes the kernel of a candidate that was chosen.
// Between them a candidate is plain text, which a person can read, edit and feed back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/task.h"
#include "ir/kernel.h"
#include "ir/library_task.h"
#include "ir/non_finite_reach.h"

namespace burin {

struct SpecialisedModule;  // compiler/specialise/specialised_module.h

// What one launch of a kernel takes inside a network's graph. Whatever is compared is compared by this.
struct Estimate {
  enum class Source {
    model,     // a provider's cost model says so
    measured,  // it was timed on a GPU
  };
  double us = 0;
  Source source = Source::model;
};

constexpr std::string_view to_string(Estimate::Source source) {
  return source == Estimate::Source::model ? "model" : "measured";
}

// A provider's way to do a task.
struct Candidate {
  std::string provider;
  std::string plan;    // its text
  std::string symbol;  // of the kernel: "burin_NAME_..."
  Estimate estimate;
  bool operator==(const Candidate& other) const { return provider == other.provider && plan == other.plan; }
};

struct ProposeOptions {
  int count = 1;          // at most; several for a tuner, unlike each other, the best first
  std::string plan = {};  // what is not left to the provider: "NAME=VALUE,...", some of what brief() says
};

// All that is needed to compile a kernel of a plan that was found legal. Functions may be called once each, in any
// order; they hold references to the task.
struct Recipe {
  std::string symbol;  // the candidate's
  KernelForm form;
  std::string plan_short;
  Precision precision = Precision::fp32;
  std::vector<std::uint32_t> weights;  // as words
  std::optional<MultipliedColumns> multiplied;
  std::optional<LibraryCall> call = {};  // that is made in place of the code where it can be
  std::function<std::string()> template_text;
  std::function<SpecialisedModule(const std::string& symbol)> specialise;
};

class Provider {
 public:
  explicit Provider(std::string_view name) : name_(name) {}
  virtual ~Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  std::string_view name() const { return name_; }

  // Whether it has a kernel for the task, if not for want of memory or registers.
  virtual bool can_do(const Task& task) const = 0;

  // The library that its kernels call; nothing: they have code alone.
  virtual std::optional<Library> library() const { return std::nullopt; }

  // Whether it has no model: what its candidates take nobody says, so they are chosen by measurement, or where a person
  // names the provider, or where FormatRule::libraries has laid tensors for them.
  virtual bool needs_measuring() const { return false; }

  // Whether what its kernels take hangs on the zeros of the input: where Task::zeros does not say them, it is left out
  // unless a person names the provider.
  virtual bool needs_zeros() const { return false; }
  // Whether it has kernels beside others whose time hangs on them, and proposes these where they are known.
  virtual bool uses_zeros() const { return false; }

  // Whether it searches plans of the very weights, so that its proposals take much longer than all others' together.
  virtual bool searches_plans() const { return false; }

  // Whether a kernel for the task takes seconds to compile.
  virtual bool takes_long_to_make(const Task&) const { return false; }

  // Throws Error(usage) where ProposeOptions::plan cannot be such a text, whatever the task.
  virtual void check_choices(const std::string& plan) const = 0;

  // None where it cannot do the task. Throws Error(unsupported) or Error(usage) where nobody else
  // could do better: a weight that its storage cannot hold, choices that no plan keeps.
  virtual std::vector<Candidate> propose(const Task& task, const ProposeOptions& options) const = 0;

  // Plans one step away from one that was measured, what promises most first, as many as are asked for at most. None
  // where all that is worth a try was proposed.
  virtual std::vector<Candidate> neighbours(const Task&, const std::string& /*plan*/, const ProposeOptions&) const {
    return {};
  }
  // What tells a plan from others of the same task, as ProposeOptions::plan takes it; without choices to make, a few
  // words.
  virtual std::string brief(const std::string& plan) const = 0;

  // A plan that was measured on tensors with memory of their own, for the places of the task's tensors.
  virtual std::string placed(const std::string& plan, const Task&) const { return plan; }

  // What a launch of the plan takes with each of these batches, by the model, in microseconds; the plan may have been
  // made for another batch. None: there is no model.
  virtual std::vector<double> launch_us(const Task&, const std::string& /*plan*/, const std::vector<int>&) const {
    return {};
  }

  // What the machine code of a plan takes, by a model: it is measured when there is some. By default that of a loop
  // over weights or elements.
  virtual std::int64_t code_bytes(const Task&, const std::string& /*plan*/) const {
    constexpr std::int64_t kUsualBytes = 5 * 1024;
    return kUsualBytes;
  }

  // Whether a kernel's code holds the weights of its convolution.
  virtual bool bakes_weights() const { return false; }

  // Whether its kernels take the same time whatever the zeros of the weights are: what others are compared with to see
  // what the zeros are worth.
  virtual bool is_dense() const { return false; }

  // How far an input of a convolution or fully connected layer reaches in its kernels.
  virtual NonFiniteReach non_finite_reach() const { return NonFiniteReach::window; }

  // What a kernel of its that is no convolution computes with so many images, where libraries of dense kernels have a
  // call for the same. Nothing: they have none. Throws Error(bad_input) for a plan that is none of this provider's.
  virtual std::optional<LibraryTask> library_task(const Kernel&, int /*batch*/) const { return std::nullopt; }

  // The module of a kernel that make() once gave, from what a package says of it. `layer` is its convolution where
  // weights are baked, else null. Throws Error(bad_input) for a plan that is none of this provider's.
  virtual SpecialisedModule module_of(const Kernel& kernel, const ConvLayer* layer) const = 0;

  // Throws Error(bad_input) where `plan` cannot be read, Error(unsupported) where it is not legal, or not for this
  // task.
  virtual Recipe make(const Task& task, const std::string& plan) const = 0;

 private:
  std::string_view name_;
};

// What a provider's function gives: there is one object of each class.
template <typename Kind>
const Provider& the_only() {
  static const Kind provider;
  return provider;
}

// All of them, in the order of providers.def.
const std::vector<const Provider*>& providers();
// Null: there is none of this name.
const Provider* find_provider(std::string_view name);

}  // namespace burin
