#include "ir/precision.h"

namespace burin {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16x2:
      return "fp16x2";
  }
  return "?";
}

std::optional<Precision> parse_precision(std::string_view text) {
  for (const Precision precision : kPrecisions) {
    if (text == to_string(precision)) return precision;
  }
  return std::nullopt;
}

std::string precision_names() {
  std::string names;
  for (const Precision precision : kPrecisions) {
    names += names.empty() ? "" : ", ";
    names += to_string(precision);
  }
  return names;
}

}  // namespace burin
