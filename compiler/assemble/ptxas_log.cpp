#include "compiler/assemble/ptxas_log.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

namespace burin {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

// The number that stands right before `unit`: number_before("16 bytes stack frame, ...", " bytes stack frame") is 16.
std::optional<int> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  if (begin == end) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = begin; i < end; ++i) value = std::min(value * 10 + (line[i] - '0'), kMaxInt);
  return static_cast<int>(value);
}

// The name after `marker`, with or without quotes: "Compiling entry function 'k' for 'sm_90'", "... properties for k".
std::optional<std::string_view> name_after(std::string_view line, std::string_view marker) {
  const std::size_t at = line.find(marker);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + marker.size());
  if (rest.starts_with('\'')) {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('\''));
  }
  return rest.substr(0, rest.find_first_of(" \t\r:"));
}

// Functions by their names, in the order in which they are first named.
class FunctionTable {
 public:
  explicit FunctionTable(std::vector<FunctionUsage>& functions) : functions_(functions) {}
  FunctionUsage& of(const std::string& name) {
    const auto [entry, is_new] = places_.try_emplace(name, functions_.size());
    if (is_new) functions_.push_back({.name = name});
    return functions_[entry->second];
  }

 private:
  std::vector<FunctionUsage>& functions_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

AssemblerUsage parse_ptxas_log(std::string_view log) {
  AssemblerUsage usage;
  FunctionTable functions(usage.functions);
  std::string entry;     // of "Compiling entry function": what "Used N registers" speaks of
  std::string function;  // of "Function properties for": what the frame speaks of
  bool linked = false;   // nvJitLink's linker repeats an entry with the registers of all that it calls
  for (std::size_t start = 0; start < log.size();) {
    const std::size_t end = std::min(log.find('\n', start), log.size());
    const std::string_view line = log.substr(start, end - start);
    start = end + 1;
    if (const auto name = name_after(line, "Compiling entry function ")) {
      entry = *name;
      linked = false;
    } else if (const auto subject = name_after(line, "Function properties for ")) {
      function = *subject;
      linked = line.starts_with("info");
    } else if (const auto stack = number_before(line, " bytes stack frame")) {
      FunctionUsage& of = functions.of(function);
      of.stack_bytes = std::max(of.stack_bytes, *stack);
      of.spill_store_bytes = number_before(line, " bytes spill stores").value_or(-1);
      of.spill_load_bytes = number_before(line, " bytes spill loads").value_or(-1);
    } else if (const auto registers = number_before(line, " registers")) {
      FunctionUsage& of = functions.of(linked ? function : entry);
      of.registers = std::max(of.registers, *registers);
    }
  }
  return usage;
}

int AssemblerUsage::spill_bytes() const {
  std::int64_t sum = 0;
  bool said = false;
  for (const FunctionUsage& function : functions) {
    if (function.spill_store_bytes < 0 || function.spill_load_bytes < 0) continue;
    said = true;
    sum = std::min(sum + function.spill_store_bytes + function.spill_load_bytes, kMaxInt);
  }
  return said ? static_cast<int>(sum) : -1;
}

int AssemblerUsage::stack_bytes() const {
  int largest = -1;
  for (const FunctionUsage& function : functions) largest = std::max(largest, function.stack_bytes);
  return largest;
}

int AssemblerUsage::registers(std::string_view symbol) const {
  for (const FunctionUsage& function : functions) {
    if (function.name == symbol) return function.registers;
  }
  return -1;
}

}  // namespace burin
