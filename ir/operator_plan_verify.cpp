// The rules of an operator's plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/arch.h"
#include "ir/faults.h"
#include "ir/kernel_plan.h"
#include "ir/limits.h"
#include "ir/operator_plan.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::int64_t kMaxImageWords = kMaxImageBytes / 4;
constexpr int kQuadWords = 4;
constexpr int kMaxBlockImages = 1024;

void check_tensor(Faults& faults, std::string_view name, const OperatorTensor& tensor) {
  if (!tensor.exists()) {
    if (tensor != OperatorTensor()) faults.add(fmt::format("the {} has no words, but a place", name));
    return;
  }
  const std::size_t before = faults.list().size();
  const auto require = [&](std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high) {
    faults.require_range(fmt::format("the {}'s {}", name, what), value, low, high, "kMaxImageBytes");
  };
  require("distance between images", tensor.image_words, 1, kMaxImageWords);
  require("offset", tensor.offset, 0, kMaxImageWords);
  require("length of a run", tensor.run_words, 1, kMaxImageWords);
  require("number of runs", tensor.runs, 1, kMaxImageWords);
  require("distance between runs", tensor.run_pitch, 0, kMaxImageWords);
  if (faults.list().size() != before) return;
  if (tensor.runs == 1 && tensor.run_pitch != 0) {
    faults.add(fmt::format("the {}'s distance between runs is {}, with one run it must be 0", name, tensor.run_pitch));
  }
  if (tensor.runs > 1 && tensor.run_pitch < tensor.run_words) {
    faults.add(fmt::format("the {}'s runs of {} words are {} apart: they would overlap", name, tensor.run_words,
                           tensor.run_pitch));
  }
  if (tensor.end() > tensor.image_words) {
    faults.add(fmt::format("the {} reaches word {} of images that are {} words apart", name, tensor.end(),
                           tensor.image_words));
  }
  if (tensor.aligned != 1 && tensor.aligned != kQuadWords) {
    faults.add(fmt::format("the {} is aligned to {} words, allowed are 1 and 4", name, tensor.aligned));
  } else if (tensor.image_words % tensor.aligned != 0 || tensor.offset % tensor.aligned != 0 ||
             tensor.run_pitch % tensor.aligned != 0) {
    faults.add(
        fmt::format("the {} is aligned to {} words: its offset {}, and the distances {} between images and {} "
                    "between runs must be multiples of that",
                    name, tensor.aligned, tensor.offset, tensor.image_words, tensor.run_pitch));
  }
}

void check_constants(Faults& faults, const OperatorTemplate& known, const OperatorPlan& plan) {
  for (const OperatorConstant& constant : known.constants) {
    const std::string name(constant.name);
    if (constant.real) {
      const auto found = plan.reals.find(name);
      if (found == plan.reals.end()) {
        faults.add(fmt::format("the template {} needs a real '{}'", known.name, name));
      } else if (std::isnan(found->second)) {
        faults.add(fmt::format("real {} is not a number", name));
      }
      continue;
    }
    const auto found = plan.integers.find(name);
    if (found == plan.integers.end()) {
      faults.add(fmt::format("the template {} needs an integer '{}'", known.name, name));
    } else {
      faults.require_range("integer " + name, found->second, constant.low, constant.high);
    }
  }
  const auto check_known = [&](const auto& values, bool real) {
    for (const auto& [name, value] : values) {
      const bool found = std::any_of(known.constants.begin(), known.constants.end(),
                                     [&](const OperatorConstant& c) { return c.real == real && c.name == name; });
      if (!found) {
        faults.add(fmt::format("the template {} has no {} {}", known.name, real ? "real" : "integer", in_quotes(name)));
      }
    }
  };
  check_known(plan.integers, false);
  check_known(plan.reals, true);
  const auto vector = plan.integers.find("vector");
  if (vector == plan.integers.end()) return;
  if (vector->second != 1 && vector->second != kQuadWords) {
    faults.add(fmt::format("integer vector is {}, allowed are 1 and 4", vector->second));
  } else if (vector->second == kQuadWords && plan.input.aligned != kQuadWords) {
    faults.add("integer vector is 4, but the input is not aligned to 4 words, which are loaded at once");
  }
}

// The second input: of a sum or product, or what a convolution adds before its activation.
bool takes_second(const OperatorPlan& plan) {
  const auto residual = plan.integers.find("residual");
  return plan.template_name == "combine" || (residual != plan.integers.end() && residual->second == 1);
}

void check_cluster(Faults& faults, const OperatorPlan& plan, const ArchSpec& arch) {
  const std::size_t before = faults.list().size();
  faults.require_range("cluster_blocks", plan.cluster_blocks, 1, kMaxClusterBlocks, "kMaxClusterBlocks");
  if (faults.list().size() != before || plan.cluster_blocks == 1) return;
  if (!arch.clusters)
    faults.add(fmt::format("cluster_blocks is {}, but {} has no clusters", plan.cluster_blocks, plan.arch));
  if (plan.group_blocks % plan.cluster_blocks != 0) {
    faults.add(fmt::format("group_blocks is {}, which clusters of {} blocks do not divide", plan.group_blocks,
                           plan.cluster_blocks));
  }
}

void check_arch(Faults& faults, const OperatorPlan& plan) {
  const auto archs = known_archs();
  const auto arch = std::find_if(archs.begin(), archs.end(), [&](const ArchSpec& a) { return a.name == plan.arch; });
  if (arch == archs.end()) {
    faults.add(fmt::format("arch is {}, which is not known", in_quotes(plan.arch)));
    return;
  }
  faults.require_range("shared_bytes", plan.shared_bytes, 0, arch->max_shared_per_block, "of a block of " + plan.arch);
  check_cluster(faults, plan, *arch);
}

}  // namespace

std::vector<std::string> verify(const OperatorPlan& plan) {
  Faults faults;
  const auto& templates = operator_templates();
  const auto known = std::find_if(templates.begin(), templates.end(),
                                  [&](const OperatorTemplate& t) { return t.name == plan.template_name; });
  if (known == templates.end()) {
    std::string names;
    for (const OperatorTemplate& t : templates) names += (names.empty() ? "" : ", ") + std::string(t.name);
    faults.add(fmt::format("there is no operator template {}; known are {}", in_quotes(plan.template_name), names));
    return faults.take();
  }
  check_tensor(faults, "input", plan.input);
  check_tensor(faults, "second input", plan.second);
  check_tensor(faults, "output", plan.output);
  if (!plan.input.exists()) faults.add("it has no input");
  if (!plan.output.exists()) faults.add("it has no output");
  if (const bool wanted = takes_second(plan); plan.second.exists() != wanted) {
    faults.add(fmt::format("the template {} takes {} second input", plan.template_name, wanted ? "a" : "no"));
  }
  faults.require_range("weight_words", plan.weight_words, 0, 2 * kMaxLayerWeights, "2 * kMaxLayerWeights");
  faults.require_range("threads", plan.threads, kWarpSize, kMaxThreadsPerBlock, "kMaxThreadsPerBlock");
  if (plan.threads % kWarpSize != 0) {
    faults.add(fmt::format("threads is {}, whole warps of {} are needed", plan.threads, kWarpSize));
  }
  check_arch(faults, plan);
  if (plan.shared_bytes % 16 != 0 || (plan.shared_bytes != 0 && plan.shared_bytes <= kSharedReserveBytes)) {
    faults.add(fmt::format("shared_bytes is {}: 0, or a multiple of 16 above the {} that are reserved",
                           plan.shared_bytes, kSharedReserveBytes));
  }
  faults.require_range("block_images", plan.block_images, 1, kMaxBlockImages);
  faults.require_range("group_blocks", plan.group_blocks, 1, kMaxTiles, "kMaxTiles");
  check_constants(faults, *known, plan);
  return faults.take();
}

}  // namespace burin
