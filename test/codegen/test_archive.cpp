// Every layer of the real pruned networks, where their archive is at hand: cropped to a few pixels, since the code of a
// layer does not grow with its image.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "compiler/import/import.h"
#include "test/catch.h"
#include "test/codegen/host_check.h"
#include "test/scratch_folder.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kExtent = 20;  // rows and columns of the cropped image

std::optional<std::string> find_archive() {
  const char* shared = std::getenv("BURIN_SHARED");
  const std::filesystem::path folder =
      shared != nullptr ? std::filesystem::path(shared) : std::filesystem::path(BURIN_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path archive = folder / "data" / "pruned-weights.tar.xz";
  if (!std::filesystem::exists(archive)) return std::nullopt;
  return archive.string();
}

// The same filter, stride, padding and groups on a smaller image, in which some outputs see no padding.
ConvLayer cropped(ConvLayer layer) {
  ConvShape& shape = layer.shape;
  const auto crop = [](int size, int kernel, int stride, int dilation) {
    return std::min(size, std::max(kExtent, (kernel - 1) * dilation + 1 + 2 * stride));
  };
  shape.in_h = crop(shape.in_h, shape.kernel_h, shape.stride_h, shape.dilation_h);
  shape.in_w = crop(shape.in_w, shape.kernel_w, shape.stride_w, shape.dilation_w);
  return layer;
}

// The layers of a file whose number, modulo `parts`, is `part`.
void check_file(const std::string& name, int part = 0, int parts = 1) {
  const std::optional<std::string> archive = find_archive();
  if (!archive) BURIN_SKIP("no pruned-weights.tar.xz (set BURIN_SHARED)");
  const ScratchFolder folder;
  const std::string file = name + ".safetensors";
  const std::string command = "tar xJf '" + *archive + "' -C '" + folder.path().string() + "' " + file;
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  const Network network = import_network(folder / file);
  for (std::size_t i = static_cast<std::size_t>(part); i < network.layers.size();
       i += static_cast<std::size_t>(parts)) {
    CHECK(check_planned_on_host(cropped(network.layers[i]), 1, {1}) == "");
  }
}

}  // namespace

TEST_CASE("archive: squeezenet, first half") { check_file("squeezenet_v1.0_deep_compression", 0, 2); }
TEST_CASE("archive: squeezenet, second half") { check_file("squeezenet_v1.0_deep_compression", 1, 2); }
TEST_CASE("archive: mobilenet, first half") { check_file("mobilenet_v1_90", 0, 2); }
TEST_CASE("archive: mobilenet, second half") { check_file("mobilenet_v1_90", 1, 2); }
TEST_CASE("archive: resnet50 3x3") { check_file("resnet50_3x3_90"); }
TEST_CASE("archive: alexnet, guided pruning, first half") { check_file("alexnet_skimcaffe_0.56256_l1_9.0e-5", 0, 2); }
TEST_CASE("archive: alexnet, guided pruning, second half") { check_file("alexnet_skimcaffe_0.56256_l1_9.0e-5", 1, 2); }
TEST_CASE("archive: alexnet, group lasso, first half") { check_file("alexnet_skimcaffe_base_20160208", 0, 2); }
TEST_CASE("archive: alexnet, group lasso, second half") { check_file("alexnet_skimcaffe_base_20160208", 1, 2); }
