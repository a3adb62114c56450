#include "compiler/import/onnx/cut_outputs.h"

#include <algorithm>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "ir/printable.h"

namespace burin {
namespace {

std::vector<std::string> names_of_tensors(const ::onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  names.erase("");
  return {names.begin(), names.end()};
}

}  // namespace

void cut_outputs(::onnx::GraphProto& graph, const std::vector<std::string>& outputs, const std::string& path) {
  if (outputs.empty()) return;
  const std::vector<std::string> known = names_of_tensors(graph);
  std::set<std::string> given;
  for (const std::string& name : outputs) {
    if (!given.insert(name).second) usage(path, "--outputs names {} twice", in_quotes(name));
    if (!std::ranges::binary_search(known, name)) {
      usage(path, "--outputs: no tensor of the model is called {}{}", in_quotes(name), did_you_mean(name, known));
    }
  }
  graph.clear_output();
  for (const std::string& name : outputs) graph.add_output()->set_name(name);
}

}  // namespace burin
