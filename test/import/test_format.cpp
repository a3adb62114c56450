#include <sys/stat.h>

#include "compiler/import/import.h"
#include "test/import/files.h"

using namespace burin;
using namespace burin_test;

namespace {

void rejects_format(const std::string& name, const std::string& content,
                    std::initializer_list<std::string_view> parts) {
  const ScratchFolder folder;
  const std::string path = folder.write(name, content);
  expect_bad_input({path}, [&] { open_weights_file(path); });
  expect_bad_input(parts, [&] { open_weights_file(path); });
}

}  // namespace

TEST_CASE("format: content decides, whatever the name says") {
  const ScratchFolder folder;
  CHECK(open_weights_file(folder.write("a.bin", npy_ramp({2}))).bare_array);
  CHECK(open_weights_file(folder.write("b.npy", zip({{"x.npy", npy_ramp({2})}}))).tensors[0].name == "x");
  CHECK(open_weights_file(folder.write("c.npz", one_tensor_file("t", {2}))).tensors[0].name == "t");
}

TEST_CASE("format: a bare array is named after its file") {
  const ScratchFolder folder;
  CHECK(open_weights_file(folder.write("conv1.v2.npy", npy_ramp({2}))).tensors[0].name == "conv1.v2");
}

TEST_CASE("format: a missing file") {
  const ScratchFolder folder;
  expect_bad_input({"nothing.npy", "no such file"}, [&] { open_weights_file(folder / "nothing.npy"); });
}
TEST_CASE("format: a directory") {
  const ScratchFolder folder;
  expect_bad_input({"is a directory", "index.json"}, [&] { open_weights_file(folder / ""); });
}
TEST_CASE("format: an empty file") { rejects_format("a.safetensors", "", {"is empty"}); }
TEST_CASE("format: a named pipe") {
  const ScratchFolder folder;
  const std::string path = folder / "pipe.npy";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  expect_bad_input({"pipe.npy", "not a regular file"}, [&] { open_weights_file(path); });
}
TEST_CASE("format: unknown content") {
  rejects_format("a.bin", "hello", {"no weights file that burin knows", ".npz", ".safetensors"});
}
TEST_CASE("format: formats of others are called by their name") {
  rejects_format("a.h5", "\x89HDF\r\n\x1a\n....", {"HDF5"});
  rejects_format("a.gguf", "GGUF....", {"GGUF"});
  rejects_format("a.pkl", "\x80\x02}q", {"pickle"});
  rejects_format("a.tflite", "....TFL3", {"TensorFlow Lite"});
  rejects_format("a.npz.gz", "\x1f\x8b....", {"gzip"});
}
TEST_CASE("format: a file of PyTorch is told how it becomes one that can be read") {
  const std::initializer_list<std::string_view> advice = {"is a PyTorch file", "torch.onnx.export(",
                                                          "safetensors.torch.save_file("};
  std::string archive("PK\x03\x04", 4);  // as torch.save() writes it
  archive += std::string(22, '\0') + std::string("\x10\x00\x00\x00", 4) + "archive/data.pkl";
  rejects_format("a.pt", archive, advice);
  rejects_format("model.bin", archive, advice);
  rejects_format("a.PTH", "\x80\x02}q", advice);
  rejects_format("a.pt", "hello", {"no weights file that burin knows"});
}
TEST_CASE("format: capitals in a name's ending do not matter") {
  rejects_format("A.SAFETENSORS", "short", {"too few for safetensors"});
  rejects_format("A.NPY", "short", {"does not start like"});
}
TEST_CASE("format: broken content is judged by the name") {
  rejects_format("a.safetensors", "short", {"too few for safetensors"});
  rejects_format("a.npy", "short", {"does not start like"});
  rejects_format("a.npz", "short", {"zip archive"});
  rejects_format("a.index.json", "short", {"not valid JSON"});
}
TEST_CASE("format: JSON that is no index") { rejects_format("a.json", R"({"x":1})", {"no weight_map"}); }
