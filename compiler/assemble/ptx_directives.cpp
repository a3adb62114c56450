#include "compiler/assemble/ptx_directives.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "ir/arch.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

// Every architecture since sm_50 has these; the PTX does not say for which one it is assembled.
constexpr int kRegistersPerMultiprocessor = 65536;
constexpr std::int64_t kMaxRegistersPerThread = 255;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

// The text with comments replaced by spaces.
std::string without_comments(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
      plain += ' ';
    } else {
      plain += text[i++];
    }
  }
  return plain;
}

// The product of the comma-separated numbers after `directive`; 0 when it is absent or malformed (the assembler says
// so).
std::int64_t product_after(std::string_view header, std::string_view directive) {
  const std::size_t at = header.find(directive);
  if (at == std::string_view::npos) return 0;
  std::size_t i = at + directive.size();
  if (i < header.size() && is_word(header[i])) return 0;  // the beginning of a longer name
  std::int64_t product = 1;
  while (true) {
    while (i < header.size() && is_space(header[i])) ++i;
    if (i >= header.size() || !is_digit(header[i])) return 0;
    std::int64_t value = 0;
    for (; i < header.size() && is_digit(header[i]); ++i)
      value = std::min<std::int64_t>(value * 10 + (header[i] - '0'), 1 << 20);
    product = std::min<std::int64_t>(product * value, 1 << 20);
    while (i < header.size() && is_space(header[i])) ++i;
    if (i >= header.size() || header[i] != ',') return product;
    ++i;
  }
}

// 0: no promise.
std::int64_t cap_of_entry(std::string_view header) {
  if (const std::int64_t registers = product_after(header, ".maxnreg"); registers > 0) {
    return std::min(registers, kMaxRegistersPerThread);
  }
  std::int64_t threads = product_after(header, ".maxntid");
  if (threads == 0) threads = product_after(header, ".reqntid");
  if (threads == 0) return 0;
  const std::int64_t blocks = std::max<std::int64_t>(product_after(header, ".minnctapersm"), 1);
  const std::int64_t warps = ceil_div(std::min<std::int64_t>(threads, kMaxThreadsPerBlock), kWarpSize) * blocks;
  return std::clamp<std::int64_t>(most_registers(kRegistersPerMultiprocessor, warps), kRegisterGranularity,
                                  kMaxRegistersPerThread);
}

}  // namespace

int register_cap(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry";
  std::int64_t cap = 0;
  const std::string plain = without_comments(ptx);
  const std::string_view text = plain;
  for (std::size_t at = text.find(kEntry); at != std::string_view::npos;) {
    // A header ends where its body begins, at the latest at the next one.
    const std::size_t next = std::min(text.find(kEntry, at + kEntry.size()), text.size());
    const std::string_view header = text.substr(at, next - at);
    const std::int64_t own = cap_of_entry(header.substr(0, header.find_first_of("{;")));
    if (own > 0) cap = cap == 0 ? own : std::min(cap, own);
    at = next == text.size() ? std::string_view::npos : next;
  }
  return static_cast<int>(cap);
}

std::string target_of(std::string_view ptx) {
  constexpr std::string_view kDirective = "\n.target ";
  const std::size_t at = ptx.find(kDirective);
  if (at == std::string_view::npos) return {};
  const std::size_t start = at + kDirective.size();
  std::size_t end = start;
  while (end < ptx.size() && is_word(ptx[end])) ++end;
  return std::string(ptx.substr(start, end - start));
}

}  // namespace burin
