// Rows and columns of nothing around an image.
#pragma once

#include <string>

namespace burin {

struct Padding {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding&) const = default;
};

// "3" when both are the same, else "3x5".
std::string pair_text(int h, int w);
// "1" when all sides are the same, "1x2" when opposite ones are, else "top,bottom,left,right".
std::string padding_text(const Padding& pad);

}  // namespace burin
