#include "compiler/emit/kernel_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>
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

std::string kernel_report(const Kernel& kernel, const std::string& ptx) {
  using Json = nlohmann::ordered_json;
  Json report;
  report["symbol"] = kernel.symbol;
  report["operator"] = kernel.op;
  report["plan"] = kernel.plan_short;
  if (kernel.layer) report["nonzeros"] = kernel.layer->nonzeros;
  if (kernel.layer && kernel.layer->multiplied) {
    report["live_columns"] = kernel.layer->multiplied->live_share();
    const std::optional<double> fill = kernel.layer->fill();
    report["fill"] = fill ? Json(*fill) : Json();
  }
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
