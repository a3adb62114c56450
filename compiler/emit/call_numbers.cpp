#include "compiler/emit/call_numbers.h"

#include <algorithm>
#include <map>

namespace burin {

std::string renumber_calls(std::string_view ptx) {
  constexpr std::string_view kMark = "// callseq ";
  std::map<std::string_view, std::size_t> numbers;  // LLVM's number to ours
  std::string text;
  text.reserve(ptx.size());
  while (true) {
    const std::size_t mark = ptx.find(kMark);
    if (mark == std::string_view::npos) break;
    const std::size_t start = mark + kMark.size();
    const std::size_t end = std::min(ptx.find_first_not_of("0123456789", start), ptx.size());
    const auto number = numbers.emplace(ptx.substr(start, end - start), numbers.size()).first;
    text += ptx.substr(0, start);
    text += std::to_string(number->second);
    ptx.remove_prefix(end);
  }
  return text += ptx;
}

}  // namespace burin
