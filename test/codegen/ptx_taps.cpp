#include "test/codegen/ptx_taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <tuple>

#include "ir/element_type.h"

using namespace burin;

namespace burin_test {
namespace {

std::string hexadecimal(float weight) { return fmt::format("0f{:08X}", std::bit_cast<std::uint32_t>(weight)); }

// Registers that hold a constant, which the assembler makes an immediate of.
std::map<std::string, std::uint32_t> constants_of(const PtxFunction& function) {
  std::map<std::string, std::uint32_t> constants;
  for (const PtxInstruction& move : function.find("mov.b32")) {
    const std::size_t comma = move.operands.find(", ");
    long long value = 0;
    if (std::sscanf(move.operands.c_str() + comma, ", %lld", &value) != 1) continue;
    constants[move.operands.substr(0, comma)] = static_cast<std::uint32_t>(value);
  }
  return constants;
}

// The weight of a multiply-add of two halves, which has it twice.
std::string pair_weight(const PtxInstruction& instruction, const std::map<std::string, std::uint32_t>& constants) {
  for (std::string operands = instruction.operands; !operands.empty();) {
    const std::size_t comma = std::min(operands.find(", "), operands.size());
    const auto found = constants.find(operands.substr(0, comma));
    if (found != constants.end() && found->second >> 16 == (found->second & 0xFFFF)) {
      return hexadecimal(from_half(ElementType::f16, static_cast<std::uint16_t>(found->second)));
    }
    operands.erase(0, comma + 2);
  }
  return "no immediate";
}

// Whether `found` are `expected`. Of the few multiply-adds in a small block that threads may jump over, LLVM likes to
// bring some before the jump, without their comment: they are known by their weight.
bool agree_by_weight(std::multiset<std::string> found, std::multiset<std::string> expected) {
  constexpr std::size_t kWeight = 10;
  std::multiset<std::string> found_weights, expected_weights;
  for (const std::string& tap : found) {
    if (tap.find("output -1") != std::string::npos) {
      found_weights.insert(tap.substr(0, kWeight));
      continue;
    }
    const auto same = expected.find(tap);
    if (same == expected.end()) return false;
    expected.erase(same);
  }
  for (const std::string& tap : expected) expected_weights.insert(tap.substr(0, kWeight));
  return found_weights == expected_weights;
}

}  // namespace

bool has_pairs(const Emitted& made) { return made.plan.precision == Precision::fp16x2; }

std::string tap_name(const Tap& tap) {
  return fmt::format("{} output {} channel {} ({}, {})", hexadecimal(tap.value), tap.k, tap.c, tap.r, tap.s);
}

std::vector<Tap> taps_of(const Emitted& made, const Slice& slice) {
  const std::vector<int>& outputs = made.plan.groups[static_cast<std::size_t>(slice.group)];
  std::vector<Tap> taps;
  for (const Tap& tap : made.pattern.taps) {
    const bool reads = std::find(slice.channels.begin(), slice.channels.end(), tap.c) != slice.channels.end();
    const bool writes = std::find(outputs.begin(), outputs.end(), tap.k) != outputs.end();
    if (reads && writes) taps.push_back(tap);
    if (reads && writes && has_pairs(made)) taps.back().value = rounded(ElementType::f16, tap.value);
  }
  return taps;
}

std::multiset<std::string> expected_taps(const Emitted& made, const Slice& slice) {
  std::map<int, std::vector<std::tuple<int, int, int, float>>> weights;
  std::map<int, std::vector<std::string>> names;
  for (const Tap& tap : taps_of(made, slice)) {
    weights[tap.k].emplace_back(tap.c, tap.r, tap.s, tap.value);
    names[tap.k].push_back(tap_name(tap));
  }
  std::set<std::vector<std::tuple<int, int, int, float>>> seen;
  std::multiset<std::string> taps;
  for (const int k : made.plan.groups[static_cast<std::size_t>(slice.group)]) {
    if (!seen.insert(weights[k]).second) continue;
    const int instructions = has_pairs(made) ? 1 : made.plan.word_images();
    for (int i = 0; i < instructions; ++i) taps.insert(names[k].begin(), names[k].end());
  }
  return taps;
}

std::vector<PtxInstruction> multiply_adds(const Emitted& made, const PtxFunction& function) {
  std::vector<PtxInstruction> found = function.find(has_pairs(made) ? "fma.rn.f16x2" : "fma.");
  if (!has_pairs(made)) return found;
  const std::vector<PtxInstruction> first = function.find("mul.rn.f16x2");
  found.insert(found.end(), first.begin(), first.end());
  return found;
}

std::multiset<std::string> found_taps(const Emitted& made, const PtxFunction& function) {
  std::multiset<std::string> taps;
  const std::map<std::string, std::uint32_t> constants = constants_of(function);
  for (const PtxInstruction& fma : multiply_adds(made, function)) {
    int k = -1, c = -1, r = -1, s = -1;
    std::sscanf(fma.comment.c_str(), "output %d += w * channel %d tap (%d, %d)", &k, &c, &r, &s);
    const std::size_t immediate = fma.operands.find("0f");
    const std::string weight = has_pairs(made)                  ? pair_weight(fma, constants)
                               : immediate == std::string::npos ? "no immediate"
                                                                : fma.operands.substr(immediate, 10);
    taps.insert(fmt::format("{} output {} channel {} ({}, {})", weight, k, c, r, s));
  }
  return taps;
}

bool agree(const Emitted& made, const std::multiset<std::string>& found, const std::multiset<std::string>& expected) {
  return has_pairs(made) ? agree_by_weight(found, expected) : found == expected;
}

}  // namespace burin_test
