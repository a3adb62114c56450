// What `bench --json` has written, read back for a package: times of its steps, and of its layers beside cuDNN.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/package/package.h"

namespace burin {

struct CudnnFigure {
  std::string mode;  // "fp32", "tf32", "fp16", "bf16"
  double us = 0;
  std::string algorithm;
};

// A layer by itself.
struct LayerFigures {
  double us = 0;  // with cold code and inputs
  std::vector<CudnnFigure> cudnn;
};

struct NetworkFigures {
  std::vector<double> steps_us;  // of each step of the program
  double latency_us = 0;
};

class BenchFigures {
 public:
  // Adds a file. Throws Error(bad_input) that names it where it is no output of `bench --json`, or one of another
  // package: of another operator, kernel or batch size. What was measured of batch sizes that no program is for is left
  // out; `notes` then says so.
  void add(const std::string& path, const Manifest& manifest, std::vector<std::string>& notes);

  // Null: not measured.
  const NetworkFigures* network(int batch) const;
  const LayerFigures* layer(const std::string& symbol, int batch) const;
  const std::vector<std::string>& devices() const { return devices_; }  // each once: "NVIDIA H200 (sm_90)"

 private:
  friend class BenchReader;
  std::map<int, NetworkFigures> networks_;
  std::map<std::pair<std::string, int>, LayerFigures> layers_;
  std::vector<std::string> devices_;
};

}  // namespace burin
