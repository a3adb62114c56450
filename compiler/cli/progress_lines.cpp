#include "compiler/cli/progress_lines.h"

#include <fmt/format.h>

#include <cmath>

namespace burin {
namespace {

constexpr double kMinute = 60;

// "50 s", "2 min 10 s"
std::string duration_text(double seconds) {
  if (seconds < kMinute) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min {:.0f} s", std::floor(seconds / kMinute), std::fmod(seconds, kMinute));
}

}  // namespace

std::string remaining_text(double elapsed_seconds, double share) {
  constexpr double kTooEarly = 2, kTooLittle = 0.02, kStep = 5;
  if (elapsed_seconds < kTooEarly || share < kTooLittle || share >= 1) return "";
  return fmt::format("about {} left", duration_text(std::ceil(elapsed_seconds * (1 - share) / share / kStep) * kStep));
}

void ProgressLines::update(int done, int total, std::string_view what, std::optional<double> share) {
  done_ = done;
  total_ = total;
  what_ = what;
  share_ = share;
}

std::optional<std::string> ProgressLines::due(Time now) {
  if (now < next()) return std::nullopt;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string text = title_ + ":";
  if (total_ > 0) text += fmt::format(" {} of {}", done_, total_);
  text += fmt::format(" after {}", duration_text(std::floor(elapsed)));
  const std::string left = share_ ? remaining_text(elapsed, *share_) : "";
  if (!left.empty()) text += ", " + left;
  if (!what_.empty()) text += ": " + what_;
  return text;
}

}  // namespace burin
