#include "ir/baked_plan_precision.h"

#include <fmt/format.h>

namespace burin {

std::vector<std::string> precision_faults(const BakedPlan& plan) {
  std::vector<std::string> faults;
  const auto check_layout = [&](std::string_view tensor, TensorLayout layout) {
    const bool pairs = images_together(layout) == 2;
    if (pairs == is_half(plan.precision)) return;
    faults.push_back(pairs ? fmt::format("{} is {} with fp32, it must be nchw or nchw4: a word of it holds two halves",
                                         tensor, to_string(layout))
                           : fmt::format("{} is {} with {}, it must be n2chw: a thread computes the two images that "
                                         "share a word",
                                         tensor, to_string(layout), to_string(plan.precision)));
  };
  check_layout("input_layout", plan.input_layout);
  check_layout("output_layout", plan.output_layout);
  const bool promotes = plan.precision == Precision::fp16x2;
  if (plan.promote_every < 0 || plan.promote_every > (promotes ? kMaxPromoteEvery : 0)) {
    faults.push_back(
        promotes ? fmt::format("promote_every is {}, allowed is 0 to {} (kMaxPromoteEvery): it counts terms that FP16 "
                               "can add up",
                               plan.promote_every, kMaxPromoteEvery)
                 : fmt::format("promote_every is {}, with {} it must be 0: its sums are FP32 from the start",
                               plan.promote_every, to_string(plan.precision)));
  }
  return faults;
}

}  // namespace burin
