#include "test/codegen/ptx_text.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include "compiler/emit/notes.h"
#include "ir/error.h"
#include "ir/text.h"

namespace burin_test {
namespace {

constexpr std::string_view kLabelPrefix = "$L__";
constexpr std::string_view kLoopNote = "in Loop: Header=";

// The name between the blank before it and the parenthesis or end behind it.
std::string name_after(std::string_view code, std::string_view keyword) {
  const std::size_t begin = code.find(keyword) + keyword.size();
  return std::string(burin::trim(code.substr(begin, code.find('(', begin) - begin)));
}

PtxInstruction read_instruction(std::string_view code, std::string_view comment, int line) {
  if (code.starts_with('@')) code = burin::trim(code.substr(code.find(' ')));
  const std::size_t blank = std::min(code.find_first_of(" \t"), code.size());
  std::string_view operands = burin::trim(code.substr(blank));
  PtxInstruction instruction;
  instruction.line = line;
  instruction.opcode = code.substr(0, blank);
  while (instruction.opcode.ends_with(';')) instruction.opcode.pop_back();
  while (operands.ends_with(';')) operands.remove_suffix(1);
  instruction.operands = operands;
  instruction.comment = comment;
  return instruction;
}

}  // namespace

std::vector<PtxInstruction> PtxFunction::find(std::string_view opcode) const {
  std::vector<PtxInstruction> found;
  std::copy_if(instructions.begin(), instructions.end(), std::back_inserter(found),
               [&](const PtxInstruction& i) { return i.opcode.starts_with(opcode); });
  return found;
}

int PtxFunction::count_loops(std::string_view opcode) const {
  std::set<std::string> loops;
  for (const PtxInstruction& i : find(opcode)) {
    if (!i.loop.empty()) loops.insert(i.loop);
  }
  return static_cast<int>(loops.size());
}

const PtxFunction& PtxText::entry() const {
  const auto found = std::find_if(functions.begin(), functions.end(), [](const PtxFunction& f) { return f.entry; });
  BURIN_CHECK(found != functions.end(), "the PTX has no entry");
  return *found;
}

const PtxFunction& PtxText::slice(int group, int split) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const PtxFunction& f) { return f.group == group && f.split == split; });
  BURIN_CHECK(found != functions.end(), "the PTX has no slice of group {}, split {}", group, split);
  return *found;
}

PtxText read_ptx(const std::string& ptx) {
  PtxText text;
  std::istringstream stream(ptx);
  PtxFunction head;  // that is being declared
  bool in_head = false, in_body = false;
  std::string label, loop;  // of the current basic block
  for (std::string line; std::getline(stream, line);) {
    text.lines.push_back(line);
    const int number = static_cast<int>(text.lines.size());
    const std::size_t slashes = line.find("//");
    const std::string_view code = burin::trim(std::string_view(line).substr(0, slashes));
    const std::string_view comment =
        slashes == std::string::npos ? std::string_view() : burin::trim(std::string_view(line).substr(slashes + 2));
    if (in_body && code.empty()) {
      PtxFunction& function = text.functions.back();
      std::sscanf(std::string(comment).c_str(), burin::kSliceNoteScan, &function.group, &function.split);
    }
    if (in_body && (code.ends_with(':') || comment.starts_with("%bb."))) loop.clear();  // another block
    if (in_body && comment.find("Loop Header") != std::string_view::npos) loop = label.substr(kLabelPrefix.size());
    const std::size_t header = comment.find(kLoopNote);
    if (in_body && header != std::string_view::npos) {
      const std::string_view name = comment.substr(header + kLoopNote.size());
      loop = name.substr(0, name.find(' '));
    }
    if (code.empty()) continue;
    if (in_body) {
      if (line == "}") {
        text.functions.back().last_line = number;
        in_body = false;
      } else if (code.ends_with(':')) {
        label = code.substr(0, code.size() - 1);
      } else {
        text.functions.back().instructions.push_back(read_instruction(code, comment, number));
        text.functions.back().instructions.back().loop = loop;
      }
    } else if (code.find(".entry ") != std::string_view::npos || code.starts_with(".func ")) {
      head = {};
      head.entry = !code.starts_with(".func ");
      head.name = name_after(code, head.entry ? ".entry " : ".func ");
      head.first_line = number;
      in_head = true;
    } else if (in_head && line == "{") {
      text.functions.push_back(head);
      loop.clear();
      in_head = false;
      in_body = true;
    } else if (in_head && code.ends_with(';')) {
      in_head = false;  // a declaration
    } else if (in_head && code.starts_with('.') && !code.starts_with(".param")) {
      head.directives.emplace_back(code);
    } else if (!in_head) {
      text.directives.emplace_back(code);
    }
  }
  return text;
}

}  // namespace burin_test
