#include "compiler/emit/kernel_report.h"

#include <nlohmann/json.hpp>

#include "compiler/emit/kernel_map.h"

namespace burin {

std::string kernel_report(const Kernel& kernel, const std::string& ptx) {
  using Json = nlohmann::ordered_json;
  Json report;
  report["symbol"] = kernel.symbol;
  report["operator"] = kernel.op;
  report["plan"] = kernel.plan_short;
  if (kernel.layer) report["nonzeros"] = kernel.layer->nonzeros;
  report["threads"] = kernel.form.launch.threads;
  report["shared_bytes"] = kernel.form.launch.shared_bytes;
  report["slices"] = kernel.form.launch.slices;
  report["source_hash"] = kernel.source_hash;
  report["cubins"] = Json::array();
  for (const KernelBinary& binary : kernel.binaries) {
    if (binary.kind != BinaryKind::cubin) continue;
    report["cubins"].push_back({{"arch", binary.arch},
                                {"registers", binary.registers},
                                {"spill_bytes", binary.spill_bytes},
                                {"stack_bytes", binary.stack_bytes},
                                {"code_bytes", binary.code_bytes}});
  }
  // One range per line: a person scrolls through them.
  std::string ranges;
  for (const PtxRange& range : map_kernel(ptx)) {
    Json entry = {{"group", range.group}, {"split", range.split}};
    if (range.channel >= 0) entry["channel"] = range.channel;
    entry["lines"] = {range.first_line, range.last_line};
    ranges += (ranges.empty() ? "\n  " : ",\n  ") + entry.dump();
  }
  std::string text = report.dump(1);
  text.erase(text.rfind("\n}"));
  return text + ",\n \"ptx_lines\": [" + ranges + "\n ]\n}\n";
}

}  // namespace burin
