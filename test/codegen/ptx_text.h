// Reads emitted PTX as far as tests want to count what is in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace burin_test {

struct PtxInstruction {
  int line = 0;          // counted from 1
  std::string opcode;    // "fma.rn.f32", without a predicate before it
  std::string operands;  // "%f1, %f2, 0f3F800000, %f1"
  std::string comment;
  std::string loop;  // header of the innermost loop that it is in, as LLVM comments on it: "BB1_5"
};

struct PtxFunction {
  std::string name;
  bool entry = false;
  int group = -1, split = -1;  // of the slice whose note stands in it
  int first_line = 0, last_line = 0;
  std::vector<std::string> directives;  // between the parameters and the body: ".maxntid 224, 1, 1"
  std::vector<PtxInstruction> instructions;

  // Instructions whose opcode starts with `opcode`.
  std::vector<PtxInstruction> find(std::string_view opcode) const;
  int count(std::string_view opcode) const { return static_cast<int>(find(opcode).size()); }
  // Innermost loops of such instructions.
  int count_loops(std::string_view opcode) const;
};

struct PtxText {
  std::vector<std::string> lines;
  std::vector<std::string> directives;  // outside of functions: ".version 7.8", variables
  std::vector<PtxFunction> functions;   // with a body, in the order of the text

  const PtxFunction& entry() const;
  const PtxFunction& slice(int group, int split) const;
};

PtxText read_ptx(const std::string& ptx);

}  // namespace burin_test
