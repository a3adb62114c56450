// TemplatePlan: the plan of a kernel that is a template with constants filled in: the template of a provider, its
// constants, and the form of the kernel. The batch is an argument of the launch, so that one kernel serves every
// batch size.
//
// Every such kernel has the tensors (input, output, residual, weights); those that it does not have are null. What a
// sum or product takes beside its input is its residual.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/factor_type.h"
#include "ir/kernel.h"

namespace burin {

struct TemplatePlan {
  std::string template_name;
  std::string arch = "sm_90";  // the architecture whose limits it keeps
  // What the template is specialised by: exactly the names that compiler/providers/NAME/NAME.def lists.
  std::map<std::string, int> integers;
  std::map<std::string, float> reals;
  // What stands for functions of a user's in the template ("apply", "combine"), and the symbols of those functions.
  std::map<std::string, std::string> calls = {};
  KernelForm form = {.tensors = {{.role = TensorRole::input},
                                 {.role = TensorRole::output},
                                 {.role = TensorRole::residual, .argument = 1},
                                 {.role = TensorRole::weights}},
                     .launch = {.threads = 256}};

  KernelTensor& input() { return form.tensors[0]; }
  KernelTensor& output() { return form.tensors[1]; }
  KernelTensor& residual() { return form.tensors[2]; }
  KernelTensor& weights() { return form.tensors[3]; }
  const KernelTensor& input() const { return form.tensors[0]; }
  const KernelTensor& output() const { return form.tensors[1]; }
  const KernelTensor& residual() const { return form.tensors[2]; }
  const KernelTensor& weights() const { return form.tensors[3]; }
  LaunchGeometry& launch() { return form.launch; }
  const LaunchGeometry& launch() const { return form.launch; }

  bool operator==(const TemplatePlan&) const = default;
};

// A constant of a template, and what it may be.
struct TemplateConstant {
  std::string_view name;
  bool real = false;
  std::int64_t low = 0, high = 0;  // of integers
};
// All faults, each a sentence; empty when a kernel of the plan can be launched. What its constants may be, the provider
// knows.
std::vector<std::string> verify(const TemplatePlan& plan);

// "key: value" lines; parse() of print() gives the same plan. Throws Error(bad_input) naming the line.
std::string print(const TemplatePlan& plan);
TemplatePlan parse_template_plan(std::string_view text);

// What its weights were rounded to, and what its inputs are before they are multiplied; f32: they are as they were.
FactorType stored_weights(const TemplatePlan& plan);
FactorType multiplied_inputs(const TemplatePlan& plan);

// In short, for tables: "pool, 98 blocks of 256 for an image", "linear_sparse fp16, ...".
std::string describe(const TemplatePlan& plan);

// "burin_<operator>_<template>": names are reduced to [A-Za-z0-9_].
std::string kernel_symbol(const std::string& name, const TemplatePlan& plan);

}  // namespace burin
