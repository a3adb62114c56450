#include "compiler/emit/kernel_map.h"

#include <cstdio>
#include <string_view>

#include "compiler/emit/notes.h"

namespace burin {

std::vector<PtxRange> map_kernel(const std::string& ptx) {
  std::vector<PtxRange> ranges;
  bool in_slice = false;
  int line_number = 0;
  const auto close = [&](int last_line) {
    if (in_slice) ranges.back().last_line = last_line;
  };
  for (std::size_t begin = 0; begin < ptx.size();) {
    std::size_t end = ptx.find('\n', begin);
    if (end == std::string::npos) end = ptx.size();
    const std::string_view line(ptx.data() + begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line == "}") {  // the end of a function
      close(line_number);
      in_slice = false;
      continue;
    }
    const std::size_t comment = line.find("// ");
    if (comment == std::string_view::npos) continue;
    const std::string text(line.substr(comment + 3));
    int a = 0, b = 0, c = 0;
    if (std::sscanf(text.c_str(), kSliceNoteScan, &a, &b) == 2) {
      close(line_number - 1);
      ranges.push_back({a, b, -1, line_number, line_number});
      in_slice = true;
    } else if (in_slice && std::sscanf(text.c_str(), kLoadNoteScan, &a, &b, &c) == 3 && ranges.back().channel != a) {
      close(line_number - 1);
      ranges.push_back({ranges.back().group, ranges.back().split, a, line_number, line_number});
    }
  }
  return ranges;
}

}  // namespace burin
