// From which share of zeros on it pays to skip them: zeros of a convolution's input, or of a layer's weights.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/options.h"
#include "compiler/task.h"
#include "ir/kernel.h"
#include "ir/program.h"

namespace burin {

// How close to the true share least_paying_share() comes.
inline constexpr double kShareStep = 0.01;

// The least share from 0 to 1 at which it pays; nothing: it does at none. What pays at one share should pay at every
// larger one; where estimates do not keep to that, what they say of `own` counts, so that a layer for which it pays is
// not said to have too few zeros. Shares near 0, for which an estimate takes its time, are asked for only where those
// above them pay.
std::optional<double> least_paying_share(const std::function<bool(double share)>& pays,
                                         std::optional<double> own = std::nullopt);

// What is known of the zeros that the task's convolution reads, and the share from which on the models estimate that
// the best kernel which skips them takes less than every one of `compared` that skips none. Where those were measured
// nothing is said, since models are off by more than what is to be told apart.
InputZeros skipping_pays_from(const Task& task, const std::vector<KernelOption>& compared);

// The weights with round(share * weights) zeros, drawn with the seed: nonzeros are left out, or zeros become nonzeros
// of the largest magnitude that there is. Those that are zero with one share are zero with every larger one.
std::vector<float> with_zero_share(std::vector<float> weights, double share, std::uint64_t seed);

// The share of zero weights from which on the best kernel that gains by them is estimated to take less than the best
// dense one, by the models alone, for the task's batch and formats and of the providers that the options allow. The
// layer's own pattern is thinned or filled up. Nothing: the task has no weights, or there is no kernel of one of the
// two kinds.
std::optional<WeightZeros> zero_weights_pay_from(const Task& task, const CompileOptions& options);

}  // namespace burin
