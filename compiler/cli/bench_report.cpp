#include "compiler/cli/bench_report.h"

#include <filesystem>

#include "compiler/cli/console.h"
#include "compiler/cli/table.h"
#include "ir/package/atomic_file.h"

namespace burin {

std::string times_text(std::initializer_list<double> microseconds) {
  std::string text;
  for (const double us : microseconds) text += (text.empty() ? "" : "/") + microseconds_text(us);
  return text;
}

nlohmann::ordered_json measurement_json(const Measurement& m) {
  return {{"median_us", m.median_us},
          {"p10_us", m.p10_us},
          {"p90_us", m.p90_us},
          {"p99_us", m.p99_us},
          {"min_us", m.min_us},
          {"launches_per_graph", m.launches_per_graph},
          {"samples", m.samples_us.size()}};
}

nlohmann::ordered_json bench_document(const std::string& package, const DeviceInfo& device) {
  return {{"package", package},
          {"package_bytes", std::filesystem::file_size(package)},
          {"device", device.name},
          {"arch", device.arch()},
          {"driver", device.driver_version}};
}

bool write_document(const std::string& file, const std::string& document) {
  const bool to_stdout = file == "-";
  if (to_stdout) {
    print_data(document);
  } else {
    write_file_atomically(file, document);
  }
  return to_stdout;
}

}  // namespace burin
