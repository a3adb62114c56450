// The constants of ONNX models: types, sparse ones, and those in files of their own.
#include <filesystem>
#include <limits>

#include "test/import/files.h"
#include "test/import/onnx_model.h"
#include "test/scratch_folder.h"

using namespace burin;
using namespace burin_test;
using onnx::TensorProto;

namespace {

using Dims = std::vector<std::int64_t>;

// A 1x1 convolution of 2 channels to 1, whose weights `w` are still to be set.
struct WeightModel {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  TensorProto& w;
  WeightModel() : w(*model.proto.mutable_graph()->add_initializer()) {
    w.set_name("w");
    for (const int extent : {1, 2, 1, 1}) w.add_dims(extent);
    model.add_node("Conv", {"x", "w"});
  }
  std::vector<float> weights() const { return model.import().layers.at(0).weights; }
  void rejects(std::initializer_list<std::string_view> parts) const {
    expect_bad_input({"net.onnx: tensor 'w'"}, [&] { model.import(); });
    expect_bad_input(parts, [&] { model.import(); });
  }
};

struct SparseModel {
  OnnxModel model = OnnxModel::of_image({2, 3, 3});
  onnx::SparseTensorProto& w;
  explicit SparseModel(const Dims& dims, const std::vector<float>& values)
      : w(*model.proto.mutable_graph()->add_sparse_initializer()) {
    w.mutable_values()->set_name("w");
    set_floats(*w.mutable_values(), {static_cast<std::int64_t>(values.size())}, values);
    for (const std::int64_t extent : dims) w.add_dims(extent);
    model.add_node("Conv", {"x", "w"});
  }
  void indices(const Dims& dims, const std::vector<std::int64_t>& values) {
    w.clear_indices();
    set_integers(*w.mutable_indices(), dims, values);
  }
  std::vector<float> weights() const { return model.import().layers.at(0).weights; }
  void rejects(std::initializer_list<std::string_view> parts) const {
    expect_bad_input({"net.onnx: tensor 'w'"}, [&] { model.import(); });
    expect_bad_input(parts, [&] { model.import(); });
  }
};

// The model of WeightModel in a folder, its weights in a file beside it.
struct ExternalModel {
  ScratchFolder folder;
  WeightModel made;
  ExternalModel() {
    made.w.set_data_type(TensorProto::FLOAT);
    made.w.set_data_location(TensorProto::EXTERNAL);
    std::filesystem::create_directory(folder.path() / "model");
    folder.write("model/weights.bin", raw<float>({1, 2, 3, 4}));
    folder.write("secret.bin", raw<float>({1, 2}));
  }
  void set(const std::string& key, const std::string& value) {
    for (auto& entry : *made.w.mutable_external_data()) {
      if (entry.key() == key) return entry.set_value(value);
    }
    auto& entry = *made.w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  Network import() const { return import_network(folder.write("model/net.onnx", made.model.bytes())); }
  void rejects(std::initializer_list<std::string_view> parts) const {
    expect_bad_input({"net.onnx: tensor 'w'"}, [&] { import(); });
    expect_bad_input(parts, [&] { import(); });
  }
};

}  // namespace

TEST_CASE("onnx tensor: every floating-point type, as numbers and as bytes") {
  WeightModel model;
  const auto check = [&] { CHECK(model.weights() == std::vector<float>{1, -2}); };
  SECTION("float") {
    model.w.set_data_type(TensorProto::FLOAT);
    SECTION("numbers") { model.w.add_float_data(1), model.w.add_float_data(-2), check(); }
    SECTION("bytes") { model.w.set_raw_data(raw<float>({1, -2})), check(); }
  }
  SECTION("double") {
    model.w.set_data_type(TensorProto::DOUBLE);
    SECTION("numbers") { model.w.add_double_data(1), model.w.add_double_data(-2), check(); }
    SECTION("bytes") { model.w.set_raw_data(raw<double>({1, -2})), check(); }
  }
  SECTION("float16") {
    model.w.set_data_type(TensorProto::FLOAT16);
    SECTION("numbers") { model.w.add_int32_data(0x3c00), model.w.add_int32_data(0xc000), check(); }
    SECTION("bytes") { model.w.set_raw_data(raw<std::uint16_t>({0x3c00, 0xc000})), check(); }
  }
  SECTION("bfloat16") {
    model.w.set_data_type(TensorProto::BFLOAT16);
    SECTION("numbers") { model.w.add_int32_data(0x3f80), model.w.add_int32_data(0xc000), check(); }
    SECTION("bytes") { model.w.set_raw_data(raw<std::uint16_t>({0x3f80, 0xc000})), check(); }
  }
}

TEST_CASE("onnx tensor: types that burin does not read") {
  WeightModel model;
  model.w.set_data_type(17);
  model.rejects({"its type is float8e4m3fn"});
  model.w.set_data_type(TensorProto::STRING);
  model.rejects({"its type is string"});
  model.w.set_data_type(99);
  model.rejects({"type has the number 99"});
  model.w.set_data_type(0);
  model.rejects({"type has the number 0"});
}

TEST_CASE("onnx tensor: float64 beyond float32") {
  WeightModel model;
  model.w.set_data_type(TensorProto::DOUBLE);
  model.w.set_raw_data(raw<double>({1, 1e300}));
  model.rejects({"element 1 is 1e+300"});
}

TEST_CASE("onnx tensor: data that do not fit the shape") {
  WeightModel model;
  model.w.set_data_type(TensorProto::FLOAT);
  SECTION("none") { model.rejects({"holds 0 bytes of float, its shape [1,2,1,1] needs 8"}); }
  SECTION("too few bytes") {
    model.w.set_raw_data(raw<float>({1}));
    model.rejects({"holds 4 bytes"});
  }
  SECTION("too many numbers") {
    for (int i = 0; i < 3; ++i) model.w.add_float_data(1);
    model.rejects({"holds 12 bytes"});
  }
  SECTION("both forms") {
    model.w.set_raw_data(raw<float>({1, 2}));
    model.w.add_float_data(1);
    model.rejects({"twice"});
  }
  SECTION("numbers of another type") {
    model.w.add_double_data(1), model.w.add_double_data(2);
    model.rejects({"holds 0 bytes"});
  }
  SECTION("a negative extent") {
    model.w.set_dims(1, -2);
    model.rejects({"[1,-2,1,1] is none"});
  }
  SECTION("huge extents") {
    model.w.set_dims(0, std::int64_t{1} << 40);
    model.w.set_dims(1, std::int64_t{1} << 40);
    model.rejects({"is none that a tensor can have"});
  }
  SECTION("a huge extent that fits 64 bits") {
    model.w.set_dims(0, std::int64_t{1} << 50);
    model.rejects({"needs 9007199254740992"});
  }
  SECTION("a thousand dimensions") {
    for (int i = 0; i < 1000; ++i) model.w.add_dims(1);
    model.rejects({"1004 dimensions"});
  }
}

TEST_CASE("onnx tensor: segments") {
  WeightModel model;
  model.w.set_data_type(TensorProto::FLOAT);
  model.w.mutable_segment()->set_begin(0);
  expect_error(ErrorKind::unsupported, {"tensor 'w'", "segments"}, [&] { model.model.import(); });
}

TEST_CASE("onnx sparse initializer: both forms of indices") {
  SparseModel model({1, 2, 1, 2}, {5, 7});
  model.indices({2}, {1, 2});
  CHECK(model.weights() == std::vector<float>{0, 5, 7, 0});
  model.indices({2, 4}, {0, 0, 0, 1, 0, 1, 0, 0});
  CHECK(model.weights() == std::vector<float>{0, 5, 7, 0});
}

TEST_CASE("onnx sparse initializer: without a value") {
  SparseModel model({1, 2, 1, 1}, {});
  model.indices({0}, {});
  CHECK(model.weights() == std::vector<float>{0, 0});
}

TEST_CASE("onnx sparse initializer: faults") {
  SparseModel model({1, 2, 1, 2}, {5, 7});
  SECTION("index beyond") {
    model.indices({2}, {1, 4});
    model.rejects({"index 1 is 4, beyond its 4 elements"});
  }
  SECTION("negative index") {
    model.indices({2}, {-1, 0});
    model.rejects({"index 0 is -1"});
  }
  SECTION("coordinate beyond") {
    model.indices({2, 4}, {0, 0, 0, 1, 0, 2, 0, 0});
    model.rejects({"index 1 is 2 on axis 1"});
  }
  SECTION("not ascending") {
    model.indices({2}, {2, 2});
    model.rejects({"they must ascend"});
  }
  SECTION("too few indices") {
    model.indices({1}, {1});
    model.rejects({"holds 2 values, but its indices have the shape [1]"});
  }
  SECTION("indices of another type") {
    model.w.clear_indices();
    set_floats(*model.w.mutable_indices(), {2}, {0, 1});
    model.rejects({"indices are of type float"});
  }
  SECTION("values that are no list") {
    model.w.mutable_values()->add_dims(1);
    model.indices({2}, {0, 1});
    model.rejects({"must be a list"});
  }
  SECTION("more values than elements") {
    model.w.set_dims(3, 0);
    model.indices({2}, {0, 1});
    model.rejects({"holds 2 values, but its shape [1,2,1,0] has 0"});
  }
}

TEST_CASE("onnx sparse initializer: some bytes cannot ask for any amount of memory") {
  SparseModel model({1 << 14, 1 << 14, 1, 1}, {5});
  model.indices({1}, {0});
  expect_error(ErrorKind::unsupported, {"tensor 'w'", "kSparseFloor", "kSparseExpansion"},
               [&] { model.model.import(); });
}

TEST_CASE("onnx external data: beside the model and below it") {
  ExternalModel model;
  model.set("location", "weights.bin");
  model.set("offset", "8");
  CHECK(model.import().layers.at(0).weights == std::vector<float>{3, 4});
  model.set("offset", "4");
  model.set("length", "8");
  model.set("checksum", "not needed");
  CHECK(model.import().layers.at(0).weights == std::vector<float>{2, 3});
  model.folder.write("model/deep/down/weights.bin", raw<float>({8, 9}));
  model.set("location", "deep/down/weights.bin");
  model.set("offset", "0");
  CHECK(model.import().layers.at(0).weights == std::vector<float>{8, 9});
}

TEST_CASE("onnx external data: nothing outside the model's folder") {
  ExternalModel model;
  SECTION("..") {
    model.set("location", "../secret.bin");
    model.rejects({"'../secret.bin'", "leaves the model's folder"});
  }
  SECTION(".. in the middle") {
    model.set("location", "deep/../../secret.bin");
    model.rejects({"leaves the model's folder"});
  }
  SECTION("absolute") {
    model.set("location", model.folder / "secret.bin");
    model.rejects({"is an absolute path"});
  }
  SECTION("a link") {
    std::filesystem::create_symlink(model.folder / "secret.bin", model.folder.path() / "model" / "link.bin");
    model.set("location", "link.bin");
    model.rejects({"'link.bin' is a link out of the model's folder"});
  }
  SECTION("a link to a folder") {
    std::filesystem::create_directory_symlink(model.folder.path(), model.folder.path() / "model" / "up");
    model.set("location", "up/secret.bin");
    model.rejects({"'up/secret.bin' is a link out of the model's folder"});
  }
  SECTION("a link that stays inside") {
    std::filesystem::create_symlink("weights.bin", model.folder.path() / "model" / "link.bin");
    model.set("location", "link.bin");
    model.set("length", "8");
    CHECK(model.import().layers.at(0).weights == std::vector<float>{1, 2});
  }
}

TEST_CASE("onnx external data: places that are none") {
  ExternalModel model;
  SECTION("no location") { model.rejects({"does not say in which file"}); }
  SECTION("no file") {
    model.set("location", "none.bin");
    model.rejects({"'none.bin' cannot be opened", "No such file"});
  }
  SECTION("a folder") {
    std::filesystem::create_directory(model.folder.path() / "model" / "sub");
    model.set("location", "sub");
    expect_bad_input({"directory"}, [&] { model.import(); });
  }
  SECTION("a name that is no text") {
    model.set("location", std::string("weights.bin\0", 12));
    model.rejects({"is no file's name"});
  }
  SECTION("offset beyond the end") {
    model.set("location", "weights.bin");
    model.set("offset", "17");
    model.rejects({"start at byte 17", "has 16 bytes"});
  }
  SECTION("offset of 2^64 - 4") {
    model.set("location", "weights.bin");
    model.set("offset", "18446744073709551612");
    model.set("length", "8");
    model.rejects({"start at byte 18446744073709551612"});
  }
  SECTION("negative offset") {
    model.set("location", "weights.bin");
    model.set("offset", "-4");
    model.rejects({"offset of its external data is '-4', no number"});
  }
  SECTION("length beyond the end") {
    model.set("location", "weights.bin");
    model.set("offset", "12");
    model.set("length", "8");
    model.rejects({"bytes 12 to 20", "has 16 bytes"});
  }
  SECTION("length that does not fit the shape") {
    model.set("location", "weights.bin");
    model.set("length", "12");
    model.rejects({"are 12 bytes, its shape needs 8"});
  }
}
