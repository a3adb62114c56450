// burin bench of a package that holds a whole network, and what it says of layers as well.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/package/package.h"
#include "runtime/bench/measure_network.h"

namespace burin {

nlohmann::ordered_json measurement_json(const Measurement& m);
// How a document begins: the package and the device.
nlohmann::ordered_json bench_document(const std::string& package, const DeviceInfo& device);
// Writes a document to a file, or to stdout for "-". Whether it went to stdout, where no table may follow.
bool write_document(const std::string& file, const std::string& document);

struct NetworkBenchArguments {
  std::string package;
  int ordinal = 0;
  std::vector<int> batches;  // empty: those that the network was compiled for
  int samples = 100;
  bool programmatic = true;                   // NetworkOptions::programmatic
  std::optional<std::string> json;            // a file, or "-": standard output instead of the tables
  std::vector<std::string> activations = {};  // [NAME=]FILE for each input; empty: random values
};

int bench_network_package(const NetworkBenchArguments& arguments, const Package& package);

// One batch size, measured.
struct NetworkBench {
  int batch = 1;
  std::string schedule;  // "batch 5 runs as 5 of 32"
  std::int64_t arena_bytes = 0, scratch_bytes = 0;
  NetworkTimes times;
  struct StepRow {
    std::string op, kind, symbol, kernel;  // the last in short
    int part = 0;
    std::optional<double> predicted_us;  // of convolutions, for the batch they were planned for
    std::vector<KernelOption> options;   // Program::options
  };
  std::vector<StepRow> steps;  // as many as times.steps
};

// Measures a batch size. `images`: of each input of the network, in their order, again and again where a batch has
// more; empty: random values.
NetworkBench bench_network(const Device& device, const Stream& stream, const LoadedNetwork& network,
                           const Manifest& manifest, int batch, const NetworkOptions& options,
                           const NetworkMeasureOptions& measure_options,
                           const std::vector<std::vector<float>>& images = {});

// A summary, then the steps of each; and all figures as JSON.
std::string print_benches(const NetworkBenchArguments& arguments, const DeviceInfo& device,
                          const std::vector<NetworkBench>& benches);
std::string benches_json(const NetworkBenchArguments& arguments, const DeviceInfo& device,
                         const std::vector<NetworkBench>& benches);

}  // namespace burin
