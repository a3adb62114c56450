// burin_against_tensors MODEL.onnx FOLDER: runs a model in float64 and compares every tensor with those that
// onnxruntime_outputs.py has left in FOLDER. Prints a line for each; exits with 1 where one differs, and names the
// first.
//
// An element may differ by kTolerance of its tensor's largest magnitude: float32 sums of another order, through all the
// layers before. Tensors that only one side has (constants folded, names of its own) are counted, the outputs must
// match.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/import/npy.h"
#include "compiler/network/passes.h"
#include "compiler/network/reference_network.h"
#include "ir/error.h"

namespace {

constexpr double kTolerance = 2e-5;

struct Recorded {
  std::vector<std::int64_t> shape;  // with the batch
  std::vector<float> values;
};

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) burin::fail(burin::ErrorKind::usage, "{}: cannot be read", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

Recorded read_npy(const std::filesystem::path& path) {
  const std::string bytes = read_bytes(path);
  const burin::WeightsTensor tensor = burin::parse_npy(bytes, path.string(), path.stem().string());
  return {tensor.shape, burin::float_values(tensor)};
}

std::map<std::string, std::filesystem::path> files(const nlohmann::json& entries, const std::filesystem::path& folder) {
  std::map<std::string, std::filesystem::path> result;
  for (const auto& entry : entries) result.emplace(entry.at("name"), folder / entry.at("file").get<std::string>());
  return result;
}

struct Comparison {
  std::map<std::string, std::filesystem::path> recorded;
  int batch = 0;
  int same = 0, unknown = 0;
  std::set<std::string> met;
  std::vector<std::string> faults;

  void compare(const burin::Activations& tensor, std::span<const double> values);
};

void Comparison::compare(const burin::Activations& tensor, std::span<const double> values) {
  const auto found = recorded.find(tensor.name);
  if (found == recorded.end()) {
    ++unknown;
    return;
  }
  met.insert(tensor.name);
  const Recorded expected = read_npy(found->second);
  std::vector<std::int64_t> shape = tensor.shape;
  shape.insert(shape.begin(), batch);
  if (shape != expected.shape || values.size() != expected.values.size()) {
    faults.push_back(fmt::format("{}: the shape is {}, expected {}", tensor.name, burin::shape_text(shape),
                                 burin::shape_text(expected.shape)));
    fmt::print("  {}\n", faults.back());
    return;
  }
  double largest = 0;
  for (const float value : expected.values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  double error = 0;
  bool close = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - expected.values[i]);
    close = close && difference <= kTolerance * largest;  // which nothing that is not a number is
    error = std::max(error, difference);
  }
  const std::string line =
      fmt::format("{:32} {:>16}  largest {:9.3g}  error {:8.1e} of it  {}", tensor.name, burin::shape_text(shape),
                  largest, largest > 0 ? error / largest : error, close ? "ok" : "DIFFERS");
  fmt::print("  {}\n", line);
  if (close) {
    ++same;
  } else {
    faults.push_back(line);
  }
}

std::vector<std::span<const float>> spans_of(const std::vector<Recorded>& tensors) {
  std::vector<std::span<const float>> spans;
  for (const Recorded& tensor : tensors) spans.emplace_back(tensor.values);
  return spans;
}

// Simplified networks keep their outputs; what lies between has fewer channels, or is gone.
void compare_simplified(Comparison& comparison, const burin::Network& network,
                        const std::vector<std::span<const float>>& inputs) {
  const burin::Network simple = burin::simplify(network);
  const auto outputs = burin::run_reference(simple, comparison.batch, inputs);
  fmt::print("  simplified from {} operators to {}\n", network.operators.size(), simple.operators.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    comparison.compare(simple.tensors[simple.outputs[i]], outputs[i]);
  }
}

int run(const std::string& model, const std::filesystem::path& folder) {
  const auto index = nlohmann::json::parse(read_bytes(folder / "index.json"));
  const burin::Network network = burin::import_network(model);
  for (const std::string& note : network.notes) fmt::print(stderr, "note: {}\n", note);

  const auto input_files = files(index.at("inputs"), folder);
  std::vector<Recorded> inputs;
  for (const int input : network.inputs) inputs.push_back(read_npy(input_files.at(network.tensors[input].name)));
  Comparison comparison;
  comparison.recorded = files(index.at("tensors"), folder);
  comparison.batch = static_cast<int>(inputs.at(0).shape.at(0));
  burin::run_reference(network, comparison.batch, spans_of(inputs), [&](int tensor, std::span<const double> values) {
    const bool is_input = std::ranges::find(network.inputs, tensor) != network.inputs.end();
    if (!is_input) comparison.compare(network.tensors[tensor], values);
  });
  for (const auto& output : index.at("outputs")) {
    if (!comparison.met.contains(output)) {
      comparison.faults.push_back(fmt::format("{}: not computed", output.get<std::string>()));
    }
  }
  compare_simplified(comparison, network, spans_of(inputs));
  fmt::print("{}: {} tensors agree, {} differ, {} of burin's own, {} that burin does not make\n", model,
             comparison.same, comparison.faults.size(), comparison.unknown,
             comparison.recorded.size() - comparison.met.size());
  if (comparison.faults.empty()) return 0;
  fmt::print(stderr, "{}: the first that differs: {}\n", model, comparison.faults.front());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: burin_against_tensors MODEL.onnx FOLDER\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
