#include "test/gpu/tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/sparse_pattern.h"

using namespace burin;

namespace burin_test {
namespace {

// "layer 'random_17': 3 rows" -> "layer 'random_#': # rows": what differs from case to case is gone.
std::string without_numbers(const std::string& text) {
  std::string result;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) result += c;
    if (digit && !in_number) result += '#';
    in_number = digit;
  }
  return result;
}

std::string at_most(int value, int most) {
  return value < most ? std::to_string(value) : fmt::format("{} or more", most);
}

}  // namespace

void Tally::add(const RandomCase& drawn, const CaseOutcome& outcome) {
  switch (outcome.kind) {
    case CaseOutcome::Kind::right:
      ++right_;
      count_features(drawn, outcome);
      if (Worst& worst = worst_[drawn.precision]; worst.of.empty() || outcome.worst_ratio > worst.ratio) {
        worst = {outcome.worst_ratio, drawn.arguments()};
      }
      return;
    case CaseOutcome::Kind::unsupported: {
      ++unsupported_;
      Reason& reason = reasons_[without_numbers(outcome.text)];
      if (reason.cases++ == 0) reason.example = drawn.arguments() + ": " + outcome.text;
      return;
    }
    case CaseOutcome::Kind::wrong:
      ++wrong_;
      return;
  }
}

void Tally::count_features(const RandomCase& drawn, const CaseOutcome& outcome) {
  const ConvShape& s = drawn.layer.shape;
  const PatternStatistics statistics = analyse(drawn.layer).statistics;
  const auto count = [&](const char* heading, const std::string& feature, bool has = true) {
    if (has) ++features_[heading][feature];
  };
  const bool some = statistics.nonzeros > 0;
  count("layers", "depthwise", s.groups > 1 && s.groups == s.in_channels);
  count("layers", "grouped", s.groups > 1 && s.groups < s.in_channels);
  count("layers", "1x1", s.kernel_h == 1 && s.kernel_w == 1);
  count("layers", "oblong filter", s.kernel_h != s.kernel_w);
  count("layers", "strided", s.stride_h > 1 || s.stride_w > 1);
  count("layers", "dilated", (s.dilation_h > 1 && s.kernel_h > 1) || (s.dilation_w > 1 && s.kernel_w > 1));
  count("layers", "asymmetric padding", s.pad.top != s.pad.bottom || s.pad.left != s.pad.right);
  count("layers", "no padding", s.pad == Padding{});
  count("layers", "bias", s.epilogue.bias);
  count("layers", "residual", s.epilogue.residual);
  count("layers", "pooled", s.epilogue.pool.has_value());
  count("patterns", "no nonzero", !some);
  count("patterns", "no zero", statistics.nonzeros == statistics.weights);
  count("patterns", "empty filters", some && statistics.dead_outputs > 0);
  count("patterns", "empty channels", some && statistics.dead_inputs > 0);
  count("patterns", "over 1500 nonzeros", statistics.nonzeros > 1500);
  count("function", s.epilogue.function ? std::string(burin::to_string(s.epilogue.function->function)) : "none");
  count("batch", drawn.batch == drawn.planned_batch  ? "as tuned"
                 : drawn.batch > drawn.planned_batch ? "larger"
                                                     : "smaller");
  count("precision", std::string(burin::to_string(drawn.precision)));
  count("provider", outcome.provider);
  count("plan made by", std::string(to_string(drawn.source)));
  count("compiled for", fmt::format("{}", fmt::join(drawn.archs, "+")));
  if (!outcome.plan) return;
  const BakedPlan& plan = *outcome.plan;
  count("staging", std::string(burin::to_string(plan.staging)));
  count("reduction", std::string(burin::to_string(plan.reduction)));
  count("splits", at_most(plan.splits, 6));
  count("groups", at_most(static_cast<int>(plan.groups.size()), 10));
  count("buffers", at_most(plan.buffers, 5));
  count("images in a tile", at_most(plan.tile_images(), 5));
}

std::string Tally::print() const {
  std::string text =
      fmt::format("{} layers: {} right, {} not supported, {} FAILED\n", cases(), right_, unsupported_, wrong_);
  for (const auto& [precision, worst] : worst_) {
    text +=
        fmt::format("worst error/tolerance {:.3f} in {} ({})\n", worst.ratio, burin::to_string(precision), worst.of);
  }
  for (const auto& [heading, features] : features_) {
    std::vector<std::string> items;
    for (const auto& [feature, cases] : features) items.push_back(fmt::format("{}: {}", feature, cases));
    text += fmt::format("  {:<16} {}\n", heading, fmt::join(items, ", "));
  }
  for (const auto& [unused, reason] : reasons_) {
    text += fmt::format("not supported, {} such: {}\n", reason.cases, reason.example);
  }
  return text;
}

}  // namespace burin_test
