#include "compiler/cli/inspect_coverage.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/functions/user_operators.h"
#include "compiler/import/coverage.h"
#include "compiler/import/names.h"
#include "ir/error.h"

namespace burin {
namespace {

using Counts = std::map<NodeState, int>;

// Nodes of one operator that are refused for one reason, in the order of the first.
struct Refusal {
  std::string op, reason, help;
  std::vector<std::string> nodes;
};

std::vector<Refusal> refusals_of(const Coverage& coverage) {
  std::vector<Refusal> refusals;
  for (const NodeCoverage& node : coverage.nodes) {
    if (node.state != NodeState::refused) continue;
    auto found = std::ranges::find_if(
        refusals, [&](const Refusal& refusal) { return refusal.op == node.op && refusal.reason == node.reason; });
    if (found == refusals.end()) {
      refusals.push_back({node.op, node.reason, node.help, {}});
      found = refusals.end() - 1;
    }
    found->nodes.push_back(node.node);
  }
  return refusals;
}

std::map<std::string, Counts> counts_of(const Coverage& coverage) {
  std::map<std::string, Counts> counts;
  for (const NodeCoverage& node : coverage.nodes) ++counts[node.op][node.state];
  return counts;
}

Counts sums_of(const Coverage& coverage) {
  Counts sums;
  for (const NodeCoverage& node : coverage.nodes) ++sums[node.state];
  return sums;
}

int count_in(const Counts& counts, NodeState state) {
  const auto found = counts.find(state);
  return found == counts.end() ? 0 : found->second;
}

std::vector<std::string> cells(const std::string& op, const Counts& counts) {
  const auto cell = [&](NodeState state) {
    const int count = count_in(counts, state);
    return count == 0 ? std::string() : with_separators(count);
  };
  int nodes = 0;
  for (const auto& [state, count] : counts) nodes += count;
  return {op, with_separators(nodes), cell(NodeState::read), cell(NodeState::refused), cell(NodeState::not_reached)};
}

std::string print_coverage(const std::string& path, const Coverage& coverage) {
  const Counts sums = sums_of(coverage);
  const int read = count_in(sums, NodeState::read);
  std::string text = fmt::format("{}: burin reads {} of {} nodes\n", path, with_separators(read),
                                 with_separators(static_cast<long long>(coverage.nodes.size())));
  Table table({"operator", ">nodes", ">read", ">refused", ">not reached"});
  for (const auto& [op, counts] : counts_of(coverage)) table.add(cells(op, counts));
  table.add_footer(cells("all", sums));
  text += table.print();
  for (const Refusal& refusal : refusals_of(coverage)) {
    text += fmt::format("\n{} (node{} {}): {}\n", refusal.op, refusal.nodes.size() > 1 ? "s" : "",
                        listed(refusal.nodes), refusal.reason);
    if (!refusal.help.empty()) text += fmt::format("  what would help: {}\n", refusal.help);
  }
  if (!coverage.cut.empty()) {
    text += fmt::format("\nto compile the {} nodes that are read: --outputs {}\n", with_separators(read),
                        fmt::join(coverage.cut, ","));
  }
  if (!coverage.fault.empty()) text += fmt::format("\nthe network as a whole: {}\n", coverage.fault);
  return text;
}

nlohmann::ordered_json coverage_json(const std::string& path, const Coverage& coverage) {
  nlohmann::ordered_json document = {{"input", path},
                                     {"complete", coverage.is_complete()},
                                     {"operators", nlohmann::ordered_json::array()},
                                     {"refusals", nlohmann::ordered_json::array()}};
  for (const auto& [op, counts] : counts_of(coverage)) {
    document["operators"].push_back({{"operator", op},
                                     {"read", count_in(counts, NodeState::read)},
                                     {"refused", count_in(counts, NodeState::refused)},
                                     {"not_reached", count_in(counts, NodeState::not_reached)}});
  }
  for (const Refusal& refusal : refusals_of(coverage)) {
    document["refusals"].push_back(
        {{"operator", refusal.op}, {"reason", refusal.reason}, {"help", refusal.help}, {"nodes", refusal.nodes}});
  }
  document["cut"] = coverage.cut;
  document["fault"] = coverage.fault.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(coverage.fault);
  return document;
}

}  // namespace

int inspect_coverage(const std::string& path, const ImportOptions& options, bool json) {
  const Coverage coverage = cover_model(path, options);
  if (const auto* own = dynamic_cast<const UserOperators*>(options.operators.get())) {
    std::vector<std::string> operators;
    for (const NodeCoverage& node : coverage.nodes) operators.push_back(node.op);
    own->check_used(path, operators);
  }
  for (const std::string& note : coverage.notes) print_note(note);
  print_data(json ? json_output(coverage_json(path, coverage)) : print_coverage(path, coverage));
  return coverage.is_complete() ? 0 : exit_code(ErrorKind::unsupported);
}

}  // namespace burin
