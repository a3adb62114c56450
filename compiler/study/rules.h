// The rules that can be read off a study: along each axis, from where to where which algorithm wins, and by how much.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/study/study.h"
#include "ir/named_enum.h"

namespace burin {

// What wins: an algorithm; kernels that skip zeros, or dense ones; burin's own, or calls of a library.
enum class RuleSubject { algorithm, zeros, library };
constexpr EnumNames<3> names_of(RuleSubject) { return {"a subject", {"algorithm", "zeros", "library"}}; }

// The winner is within this of the fastest: where two are closer, the one that wins beside it keeps winning, so that
// noise makes no rule.
inline constexpr double kAsFast = 1.02;

// A stretch of an axis on which one wins.
struct StudyRule {
  RuleSubject subject = RuleSubject::algorithm;
  StudyAxis axis = StudyAxis::batch;
  std::size_t from = 0, to = 0;          // indices of the curve's values
  bool is_first = true, is_last = true;  // no compared value lies before it, behind it
  std::string winner;                    // "conv_baked", "kernels that skip zeros"
  // The time of the next, over the winner's: the least and the most of the stretch. Nothing: there is no other.
  std::optional<double> least_ratio, most_ratio;
};

// Reads off each curve which algorithms win; then, where both kinds were compared, whether zeros pay, and who is
// faster, burin or a library. Points that are not done are no part of it.
std::vector<StudyRule> read_off(const Study& study);

// "up to 8 images conv_baked is the fastest, 1.10 to 1.90 times as fast as the next". Where times are predicted it says
// so.
std::string rule_text(const Study& study, const StudyRule& rule);

}  // namespace burin
