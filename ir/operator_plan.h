// OperatorPlan: every choice that is made for the kernel of an operator beside the convolutions: a template of
// templates/operators/, the constants that it is specialised by, and its launch.
//
// All values are FP32 and all images NCHW. The batch is an argument of the launch, so that one kernel serves every
// batch size.
//
// Every kernel has the parameters (input, output, second input, weights, batch); those that it does not have are null.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

// The words (floats) of each image of a tensor that an operator reads or writes: `runs` runs of `run_words` words that
// follow one another. A slice of a larger tensor has an offset and a distance between images that is more than its own
// words: so an operator writes its part of a concatenated tensor.
struct OperatorTensor {
  std::int64_t image_words = 0;  // from one image to the next
  std::int64_t offset = 0;       // of the first word within the image
  std::int64_t run_words = 0;    // 0: the operator has no such tensor
  std::int64_t runs = 1;
  std::int64_t run_pitch = 0;  // words from one run to the next; 0 with one run
  int aligned = 1;  // words that the tensor's address must be a multiple of: 4 where four are accessed at once

  std::int64_t words() const { return run_words * runs; }
  std::int64_t end() const { return offset + (runs - 1) * run_pitch + run_words; }
  bool exists() const { return run_words > 0; }
  bool contains(std::int64_t word) const;  // of an image
  bool operator==(const OperatorTensor&) const = default;
};

struct OperatorPlan {
  std::string template_name;
  std::string arch = "sm_90";  // the architecture whose limits it keeps
  // What the template is specialised by: exactly the names that templates/operators/NAME.def lists.
  std::map<std::string, int> integers;
  std::map<std::string, float> reals;

  OperatorTensor input, second, output;
  std::int64_t weight_words = 0;  // 0: it has none

  int threads = 256;     // per block
  int shared_bytes = 0;  // dynamic, kSharedReserveBytes included; 0: none
  // The grid has one dimension: `group_blocks` blocks for each group of `block_images` images.
  int block_images = 1, group_blocks = 1;
  // So many neighbours run together as a cluster and read each other's shared memory; group_blocks is a multiple.
  int cluster_blocks = 1;

  std::int64_t blocks(int batch) const;
  bool operator==(const OperatorPlan&) const = default;
};

// A constant of an operator's template, and what it may be.
struct OperatorConstant {
  std::string_view name;
  bool real = false;
  std::int64_t low = 0, high = 0;  // of integers
};
struct OperatorTemplate {
  std::string_view name, description;
  std::vector<OperatorConstant> constants;
};
const std::vector<OperatorTemplate>& operator_templates();

// All faults, each a sentence; empty when the plan can be specialised.
std::vector<std::string> verify(const OperatorPlan& plan);

// "key: value" lines; parse() of print() gives the same plan. Throws Error(bad_input) naming the line.
std::string print(const OperatorPlan& plan);
OperatorPlan parse_operator_plan(std::string_view text);

// Whether its weights are FP16 numbers (of fully connected layers, where that was asked for).
bool stores_halves(const OperatorPlan& plan);

// In short, for tables: "pool, 98 blocks of 256 for an image", "linear_sparse fp16, ...".
std::string describe(const OperatorPlan& plan);

// "burin_<operator>_<template>": names are reduced to [A-Za-z0-9_].
std::string kernel_symbol(const std::string& name, const OperatorPlan& plan);

}  // namespace burin
