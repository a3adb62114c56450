// Products of matrices of which at most one is a constant: MatMul and Einsum.
#include "test/import/files.h"
#include "test/import/onnx_faults.h"
#include "test/import/onnx_model.h"

using namespace burin;
using namespace burin_test;

namespace {

using Dims = std::vector<std::int64_t>;

// Two tensors, x and z.
OnnxModel with_both(const Dims& first, const Dims& second) {
  OnnxModel model = OnnxModel::of_image(first, 17);
  Dims dims = {kSymbolic};
  dims.insert(dims.end(), second.begin(), second.end());
  model.input("z", dims);
  return model;
}

OnnxModel multiplied(const Dims& first, const Dims& second) {
  OnnxModel model = with_both(first, second);
  model.add_node("MatMul", {"x", "z"});
  return model;
}

}  // namespace

TEST_CASE("onnx products: of two tensors") {
  CHECK(kinds(multiplied({3, 4}, {4, 5}).import()) == "matmul");
  CHECK(last_shape(multiplied({3, 4}, {4, 5}).import()) == Dims{3, 5});
  CHECK(last_shape(multiplied({2, 1, 3, 4}, {1, 7, 4, 5}).import()) == Dims{2, 7, 3, 5});
  refuses(multiplied({4}, {4}), {"4 by 4", "two or more"});
  refuses(multiplied({3, 4}, {3, 4}), {"3x4 by 3x4"});
  refuses(multiplied({2, 3, 4}, {4, 5}), {"2x3x4 and 4x5", "Unsqueeze"});
  refuses(multiplied({2, 3, 4}, {3, 4, 5}), {"2 and 3 matrices along axis 0"});
}

TEST_CASE("onnx products: of a tensor and matrices of the model") {
  const auto by = [](const Dims& image, const Dims& constant, bool first) {
    OnnxModel model = OnnxModel::of_image(image, 17);
    model.floats("c", constant);
    model.add_node("MatMul", first ? std::vector<std::string>{"c", "x"} : std::vector<std::string>{"x", "c"});
    return model;
  };
  const Network of = by({4, 5}, {3, 4}, true).import();
  CHECK(last<MatMul>(of).constant_first);
  CHECK(last<MatMul>(of).constant->shape == Dims{3, 4});
  CHECK(last_shape(of) == Dims{3, 5});
  const Network several = by({2, 3, 4}, {1, 2, 4, 6}, false).import();
  CHECK_FALSE(last<MatMul>(several).constant_first);
  CHECK(last<MatMul>(several).constant->shape == Dims{2, 4, 6});
  // One matrix behind is a layer, whose zeros cost nothing.
  CHECK(kinds(by({2, 3, 4}, {4, 6}, false).import()) == "transpose convolution transpose");
  refuses(by({4, 5}, {7, 3, 4}, true), {"'c' has the shape [7,3,4]", "has 2 axes"});
  refuses(by({4, 5}, {4}, true), {"'c' has the shape [4]"});
  refuses(by({4}, {3, 4}, true), {"'c' has the shape [3,4]", "has 1 axes"});
}
