
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/cli/npy_tensor.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/npy.h"
#include "ir/error.h"
#include "test/catch.h"

using namespace burin;

namespace {

std::string scratch_name(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("burin-npy-writer-" + name)).string();
}

}  // namespace

TEST_CASE("npy_writer_and_reader_agree") {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {5}, {2, 3}, {1, 2, 3, 4}};
  for (const auto& shape : shapes) {
    std::size_t elements = 1;
    for (const std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = 0.5F * static_cast<float>(i) - 1.0F;
    const std::string path = scratch_name("agree.npy");
    write_npy(path, shape, values);
    const MappedFile file(path);
    const NpyHeader header = parse_npy_header(file.bytes(), path);
    CHECK(header.data_offset % 64 == 0);
    const WeightsTensor tensor = parse_npy(file.bytes(), path, "x");
    CHECK(tensor.shape == shape);
    CHECK_FALSE(tensor.fortran);
    CHECK(float_values(tensor) == values);
    std::filesystem::remove(path);
  }
}

TEST_CASE("npy_writer_writes_halves_as_numpy_has_them") {
  const std::string path = scratch_name("halves.npy");
  const std::vector<float> values = {1, -2.5F, 65504, 0.1F, 1e6F};
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    write_npy(path, {5}, values, element);
    const MappedFile file(path);
    const WeightsTensor tensor = parse_npy(file.bytes(), path, "x");
    CHECK(tensor.type_name == (element == ElementType::f16 ? "<f2" : "<u2"));
    CHECK(tensor.bytes.size() == 10);
    CHECK(read_npy(path, element).values == rounded(element, values));
    if (element == ElementType::bf16) {
      // Bits are no numbers where nobody knows of what they are.
      CHECK_THROWS_WITH(read_npy(path), burin_test::Contains("holds uint16, and floating-point numbers are wanted"));
      CHECK_THROWS_WITH(read_npy(path, ElementType::f16), burin_test::Contains("holds uint16"));
    }
    std::filesystem::remove(path);
  }
}

TEST_CASE("npy_writer_names_a_file_it_cannot_write") {
  const std::vector<float> values = {1.0F};
  CHECK_THROWS_WITH(write_npy("/nonexistent-folder/y.npy", {1}, values),
                    burin_test::Contains("/nonexistent-folder/y.npy") && burin_test::Contains("there is no folder"));
}

TEST_CASE("npy_writer_refuses_a_shape_of_another_size") {
  const std::vector<float> values = {1.0F, 2.0F};
  CHECK_THROWS_AS(write_npy(scratch_name("wrong.npy"), {3}, values), Error);
  CHECK_FALSE(std::filesystem::exists(scratch_name("wrong.npy")));
}
