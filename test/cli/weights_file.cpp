#include "test/cli/weights_file.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "test/cli/program.h"

namespace burin_test {

std::vector<float> sparse_weights(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> weights(count);
  for (float& weight : weights) {
    const bool zero = random() % 3 != 0;
    const float value = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
    weight = zero ? 0.0F : value == 0.0F ? 0.5F : value;
  }
  return weights;
}

void write_safetensors(const std::string& path, const std::vector<TestLayer>& layers, unsigned seed) {
  nlohmann::ordered_json header, geometry;
  std::string data;
  for (const TestLayer& layer : layers) {
    std::size_t count = 1;
    for (const int extent : layer.shape) count *= static_cast<std::size_t>(extent);
    const std::vector<float> weights = layer.weights.empty() ? sparse_weights(count, seed++) : layer.weights;
    const std::size_t start = data.size();
    data.append(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float));
    header[layer.name + ".weight"] = {{"dtype", "F32"}, {"shape", layer.shape}, {"data_offsets", {start, data.size()}}};
    nlohmann::ordered_json attributes = {
        {"weight", layer.name + ".weight"}, {"stride", layer.stride}, {"pad", layer.pad},
        {"groups", layer.groups},           {"H", layer.extent},      {"W", layer.extent}};
    if (!layer.more_geometry.empty()) attributes.update(nlohmann::ordered_json::parse(layer.more_geometry));
    geometry[layer.name] = attributes;
  }
  header["__metadata__"] = {{"geometry", geometry.dump()}};
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  write_file(path, content + text + data);
}

}  // namespace burin_test
