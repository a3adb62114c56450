#include "compiler/cli/bench_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/import/json_text.h"
#include "compiler/import/mapped_file.h"
#include "ir/limits.h"
#include "ir/package/manifest_index.h"
#include "ir/printable.h"

namespace burin {

// One file.
class BenchReader {
 public:
  BenchReader(BenchFigures& figures, const std::string& path, const Manifest& manifest, std::vector<std::string>& notes)
      : figures_(figures), path_(path), index_(manifest), notes_(notes) {}

  void read() {
    const MappedFile file(path_);
    const nlohmann::json root = parse_json_object(file.bytes(), path_).root;
    const bool of_network = root.contains("network");
    if (!of_network && !root.contains("rows")) foreign("it has neither 'network' nor 'rows'");
    const nlohmann::json& measured = list(root, of_network ? "network" : "rows");
    for (const nlohmann::json& entry : measured) of_network ? add_network(entry) : add_layer(entry);
    const std::string left_out = numbers_text(std::vector<int>(left_out_.begin(), left_out_.end()), ", ");
    if (used_ == 0 && left_out_.empty()) foreign("nothing in it was measured");
    if (used_ == 0) of_another(fmt::format("it has times for batch {}, and no program here is for that", left_out));
    if (!left_out_.empty()) {
      notes_.push_back(fmt::format("{}: the times for batch {} are left out, no program of the package is for that",
                                   printable(path_), left_out));
    }
    add_device(fmt::format("{} ({})", text(root, "device"), text(root, "arch")));
  }

 private:
  [[noreturn]] void foreign(const std::string& why) const {
    bad_input(printable(path_), "is no output of burin bench --json: {}", why);
  }
  [[noreturn]] void of_another(const std::string& why) const {
    bad_input(printable(path_), "was measured with another package: {}", why);
  }

  const nlohmann::json& value(const nlohmann::json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) foreign(fmt::format("there is no '{}'", key));
    return object.at(key);
  }
  const nlohmann::json& list(const nlohmann::json& object, const char* key) const {
    const nlohmann::json& found = value(object, key);
    if (!found.is_array()) foreign(fmt::format("'{}' is no list", key));
    return found;
  }
  std::string text(const nlohmann::json& object, const char* key) const {
    const nlohmann::json& found = value(object, key);
    if (!found.is_string()) foreign(fmt::format("'{}' is no text", key));
    return printable(found.get<std::string>());
  }
  // A name is compared as it is.
  bool is_named(const nlohmann::json& object, const char* key, const std::string& name) const {
    return value(object, key) == name;
  }
  double us(const nlohmann::json& object, const char* key) const {
    constexpr double kMostUs = 1e12;
    const nlohmann::json& found = value(object, key);
    if (!found.is_number() || !(found.get<double>() >= 0) || found.get<double>() > kMostUs) {
      foreign(fmt::format("'{}' is no time", key));
    }
    return found.get<double>();
  }
  int batch_of(const nlohmann::json& object) const {
    const nlohmann::json& found = value(object, "batch");
    if (!found.is_number_integer() || found.get<std::int64_t>() < 1 || found.get<std::int64_t>() > kMaxBatch) {
      foreign("'batch' is no batch size");
    }
    return found.get<int>();
  }

  const Program* program_for_batch(int batch) const {
    for (const Program* program : index_.programs(kNetworkName)) {
      if (program->batch == batch) return program;
    }
    return nullptr;
  }

  void add_network(const nlohmann::json& entry) {
    if (index_.programs(kNetworkName).empty()) of_another("a network was measured, and this package holds layers");
    const int batch = batch_of(entry);
    const nlohmann::json& steps = list(entry, "steps");
    const Program* program = program_for_batch(batch);
    if (program == nullptr) {
      left_out_.insert(batch);
      return;
    }
    if (steps.size() != program->steps.size()) {
      of_another(
          fmt::format("for batch {} it has {} steps, and the package {}", batch, steps.size(), program->steps.size()));
    }
    NetworkFigures figures;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      check_step(steps[i], program->steps[i], static_cast<int>(i));
      figures.steps_us.push_back(us(value(steps[i], "time"), "median_us"));
    }
    figures.latency_us = us(value(entry, "latency"), "median_us");
    figures_.networks_[batch] = std::move(figures);
    ++used_;
  }

  void check_step(const nlohmann::json& entry, const Step& step, int index) const {
    if (!is_named(entry, "operator", step.name)) {
      of_another(fmt::format("step {} is {} there, and {} in the package", index, in_quotes(text(entry, "operator")),
                             in_quotes(step.name)));
    }
    if (!is_named(entry, "symbol", step.kernel)) {
      of_another(fmt::format("step {}, {}, launches {} there, and {} in the package", index, in_quotes(step.name),
                             in_quotes(text(entry, "symbol")), in_quotes(step.kernel)));
    }
  }

  void add_layer(const nlohmann::json& entry) {
    const nlohmann::json& symbol = value(entry, "symbol");
    const Kernel* kernel = symbol.is_string() ? index_.find_kernel(symbol.get<std::string>()) : nullptr;
    if (kernel == nullptr || !is_named(entry, "layer", kernel->op)) {
      of_another(fmt::format("it has kernel {} of layer {}, and the package does not", in_quotes(text(entry, "symbol")),
                             in_quotes(text(entry, "layer"))));
    }
    if (entry.contains("dead") && !entry.at("dead").is_null()) return;  // with activity maps: another time
    const int batch = batch_of(entry);
    if (kernel->planned_batch != batch && kernel->planned_batch != 0) {
      left_out_.insert(batch);
      return;
    }
    LayerFigures figures{.us = us(value(entry, "cold"), "median_us"), .cudnn = {}};
    for (const char* mode : {"fp32", "tf32", "fp16", "bf16"}) {
      const std::string key = fmt::format("cudnn_{}", mode);
      if (!entry.contains(key) || entry.at(key).is_null()) continue;
      const nlohmann::json& time = entry.at(key);
      figures.cudnn.push_back({mode, us(time, "median_us"), text(time, "algorithm")});
    }
    figures_.layers_[{kernel->symbol, batch}] = std::move(figures);
    ++used_;
  }

  void add_device(const std::string& device) {
    std::vector<std::string>& devices = figures_.devices_;
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }

  BenchFigures& figures_;
  const std::string& path_;
  const ManifestIndex index_;
  std::vector<std::string>& notes_;
  std::set<int> left_out_;  // batch sizes
  int used_ = 0;
};

void BenchFigures::add(const std::string& path, const Manifest& manifest, std::vector<std::string>& notes) {
  BenchReader(*this, path, manifest, notes).read();
}

const NetworkFigures* BenchFigures::network(int batch) const {
  const auto found = networks_.find(batch);
  return found == networks_.end() ? nullptr : &found->second;
}

const LayerFigures* BenchFigures::layer(const std::string& symbol, int batch) const {
  const auto found = layers_.find({symbol, batch});
  return found == layers_.end() ? nullptr : &found->second;
}

}  // namespace burin
