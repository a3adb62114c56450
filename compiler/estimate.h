// Estimate: what one launch of a kernel takes inside a network's graph. Whatever is compared is compared by this.
#pragma once

#include <string_view>

namespace burin {

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

}  // namespace burin
