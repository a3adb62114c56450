// The real pruned networks, where their archive is at hand.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "compiler/import/import.h"
#include "test/import/files.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

std::optional<std::string> find_archive() {
  const char* shared = std::getenv("BURIN_SHARED");
  const std::filesystem::path folder =
      shared != nullptr ? std::filesystem::path(shared) : std::filesystem::path(BURIN_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path archive = folder / "data" / "pruned-weights.tar.xz";
  if (!std::filesystem::exists(archive)) return std::nullopt;
  return archive.string();
}

struct Expected {
  std::string file;
  std::size_t layers, biases, leftover;
  std::string first;  // describe() of the first layer
};

std::int64_t nonzeros(const ConvLayer& layer) {
  return std::count_if(layer.weights.begin(), layer.weights.end(), [](float weight) { return weight != 0; });
}

}  // namespace

TEST_CASE("archive: all real networks import") {
  const auto archive = find_archive();
  if (!archive) BURIN_SKIP("no pruned-weights.tar.xz (set BURIN_SHARED)");
  const ScratchFolder folder;
  const std::string command = "tar xJf '" + *archive + "' -C '" + (folder / "") + "'";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);

  const std::vector<Expected> all = {
      {"squeezenet_v1.0_deep_compression", 26, 26, 0, "3x227x227 -> 96x111x111, 7x7, stride 2, pad 0"},
      {"mobilenet_v1_90", 26, 26, 3, "3x224x224 -> 32x112x112, 3x3, stride 2, pad 1"},
      {"resnet50_3x3_90", 3, 0, 0, "64x56x56 -> 64x56x56, 3x3, stride 1, pad 1"},
      {"alexnet_skimcaffe_0.56256_l1_9.0e-5", 5, 0, 0, "3x227x227 -> 96x55x55, 11x11, stride 4, pad 0"},
      {"alexnet_skimcaffe_base_20160208", 5, 0, 0, "3x227x227 -> 96x55x55, 11x11, stride 4, pad 0"},
  };
  for (const Expected& expected : all) {
    INFO(expected.file);
    const Network network = import_network(folder / expected.file + ".safetensors");
    CHECK(network.layers.size() == expected.layers);
    CHECK(network.leftover.size() == expected.leftover);
    const auto with_bias = [](const ConvLayer& layer) {
      return layer.shape.epilogue.bias && layer.bias.size() == static_cast<std::size_t>(layer.shape.out_channels);
    };
    CHECK(static_cast<std::size_t>(std::count_if(network.layers.begin(), network.layers.end(), with_bias)) ==
          expected.biases);
    REQUIRE(!network.layers.empty());
    CHECK(describe(network.layers[0].shape).starts_with(expected.first));
    for (const ConvLayer& layer : network.layers) {
      INFO(layer.name);
      CHECK(verify(layer).empty());
      CHECK(nonzeros(layer) > 0);
    }
  }

  // Pruned to 91 %, as its source says.
  const Network resnet = import_network(folder / "resnet50_3x3_90.safetensors");
  for (const ConvLayer& layer : resnet.layers) {
    const double density = static_cast<double>(nonzeros(layer)) / static_cast<double>(layer.weights.size());
    CHECK(density > 0.05);
    CHECK(density < 0.12);
  }
  // Group-lasso pruning leaves dust; the threshold removes it.
  const std::string dusty = folder / "alexnet_skimcaffe_base_20160208.safetensors";
  const Network with_dust = import_network(dusty);
  REQUIRE(with_dust.notes.size() == 1);
  CHECK(with_dust.notes[0].find("--zero-threshold") != std::string::npos);
  ImportOptions options;
  options.zero_threshold = 6e-4F;
  options.layer_glob = "*conv[23]";
  const Network without = import_network(dusty, options);
  REQUIRE(without.layers.size() == 2);
  CHECK(without.notes.empty());
  CHECK(nonzeros(without.layers[0]) < nonzeros(with_dust.layers[1]));
}
