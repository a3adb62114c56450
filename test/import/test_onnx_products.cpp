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

OnnxModel einsum(const std::string& equation, const Dims& first, const Dims& second) {
  OnnxModel model = with_both(first, second);
  model.add_node("Einsum", {"x", "z"}).set("equation", equation.c_str());
  return model;
}

OnnxModel einsum_by(const std::string& equation, const Dims& image, const Dims& constant) {
  OnnxModel model = OnnxModel::of_image(image, 17);
  model.floats("c", constant);
  model.add_node("Einsum", {"x", "c"}).set("equation", equation.c_str());
  return model;
}

}  // namespace

TEST_CASE("onnx einsum: products, sums and transposes by their labels") {
  const auto check = [](const OnnxModel& model, const std::string& operators, const Dims& shape) {
    const Network network = model.import();
    CHECK(kinds(network) == operators);
    CHECK(last_shape(network) == shape);
  };
  check(einsum("bij,bjk->bik", {3, 4}, {4, 5}), "matmul transpose", {3, 5});
  check(einsum("bhqd,bhkd->bhqk", {2, 3, 4}, {2, 5, 4}), "transpose matmul transpose", {2, 3, 5});
  check(einsum("...ij,...jk->...ik", {2, 3, 4}, {2, 4, 5}), "matmul transpose", {2, 3, 5});
  check(einsum("...ij,...jk", {2, 3, 4}, {1, 4, 5}), "reshape reshape matmul reshape transpose", {2, 3, 5});
  check(einsum("bchw,bc->bchw", {4, 3, 5}, {4}), "reshape combine transpose", {4, 3, 5});
  check(einsum("bcn,bdn->bcd", {4, 6}, {5, 6}), "transpose matmul transpose", {4, 5});
  check(einsum("bi,bj->bij", {4}, {5}), "reshape reshape matmul transpose", {4, 5});
  check(einsum_by("bchw,kc->bkhw", {4, 3, 5}, {7, 4}), "reshape matmul reshape transpose", {7, 3, 5});
  check(einsum_by("bhwc,hkc->bhwk", {3, 5, 4}, {3, 6, 4}), "matmul transpose", {3, 5, 6});
  OnnxModel alone = OnnxModel::of_image({4, 3, 5}, 17);
  alone.add_node("Einsum", {"x"}).set("equation", "bchw -> bwc");
  check(alone, "reduce reshape transpose", {5, 4});
}

TEST_CASE("onnx einsum: what is no product of images is refused, and what is no equation rejected") {
  refuses(einsum("bij,bjk->ikb", {3, 4}, {4, 5}), {"gives 'ikb'", "keeps the batch, 'b'"});
  refuses(einsum("bij,cjk->bik", {3, 4}, {4, 5}), {"labels 'b' and 'c'"});
  refuses(einsum("bii,bij->bij", {4, 4}, {4, 5}), {"a diagonal"});
  refuses(einsum("bij,bij->b", {3, 4}, {3, 4}), {"no axis beside the batch"});
  refuses(einsum_by("bij,bjk->bik", {3, 4}, {2, 4, 5}), {"another one for each image"});
  rejects(einsum("bij,bjk->bix", {3, 4}, {4, 5}), {"label 'x'"});
  rejects(einsum("bij,bjk->bik", {3, 4}, {3, 5}), {"label 'j' has 4 values and 3"});
  rejects(einsum("bij->bij", {3, 4}, {3, 5}), {"not as many terms"});
  rejects(einsum("bij,bjk,bkl->bil", {3, 4}, {4, 5}), {"not as many terms"});
  rejects(einsum("bij,bjkl->bik", {3, 4}, {4, 5}), {"term 'bjkl'", "3 axes"});
  rejects(einsum("bi1,bjk->bik", {3, 4}, {4, 5}), {"digits"});
  rejects(einsum("", {3, 4}, {4, 5}), {"'equation'"});
}

TEST_CASE("onnx products: constants with more axes than a batch of images has are refused") {
  OnnxModel model = OnnxModel::of_image({3, 3, 4}, 17);
  model.floats("m", {1, 1, 3, 4, 5});
  model.add_node("MatMul", {"x", "m"});
  expect_error(ErrorKind::unsupported, {"its matrix 'm' has the shape [1,1,3,4,5]"}, [&] { model.import(); });
  for (const char* op : {"Pow", "Max", "Greater", "Mod"}) {
    OnnxModel numbers = OnnxModel::of_image({3, 4}, 17);
    numbers.floats("k", {1, 1, 1, 1}, {0.25F});
    NodeMaker node = numbers.add_node(op, {"x", "k"}, std::string_view(op) == "Greater" ? "made" : "y");
    if (std::string_view(op) == "Mod") node.set("fmod", 1);
    if (std::string_view(op) == "Greater") numbers.add_node("Cast", {"made"}).set("to", onnx::TensorProto::FLOAT);
    expect_error(ErrorKind::unsupported, {"its constant 'k' has the shape [1,1,1,1]"}, [&] { numbers.import(); });
  }
}

TEST_CASE("onnx einsum: constants without values are refused before anything is made of them") {
  for (const auto& [equation, dims] :
       {std::pair<const char*, Dims>{"kji,bk->bj", {0, std::int64_t{1} << 36, 1}}, {"k,bk->bk", {0}}}) {
    OnnxModel model = OnnxModel::of_image({5}, 17);
    model.floats("c", dims, std::vector<float>{});
    model.add_node("Einsum", {"c", "x"}).set("equation", equation);
    expect_error(ErrorKind::unsupported, {"has the shape", "and no values"}, [&] { model.import(); });
  }
}

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
