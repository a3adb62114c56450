#include "ir/padding.h"

#include <fmt/format.h>

namespace burin {

std::string pair_text(int h, int w) { return h == w ? fmt::format("{}", h) : fmt::format("{}x{}", h, w); }

std::string padding_text(const Padding& pad) {
  if (pad.top == pad.bottom && pad.left == pad.right) return pair_text(pad.top, pad.left);
  return fmt::format("{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right);
}

}  // namespace burin
