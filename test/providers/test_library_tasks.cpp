// What libraries are told of a kernel, for a comparison, is what the kernel does.
#include <numeric>

#include "compiler/network/reference_network.h"
#include "compiler/providers/provider.h"
#include "ir/library_task.h"
#include "test/catch.h"
#include "test/providers/provider_cases.h"
#include "test/providers/provider_check.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr int kImages = 8;  // that lie side by side in any layout

// An operator and its kernel.
struct ToldOf {
  Network network;
  Task task;
  std::optional<LibraryTask> told;
  explicit ToldOf(const OperatorCase& edge) : network(network_of(edge)) {
    task = task_of(network, network.operators.back(), {});
    for (const Provider* provider : providers()) {
      const std::vector<Candidate> candidates = provider->propose(task, {});
      if (candidates.empty()) continue;
      Kernel kernel;
      kernel.op = task.name;
      kernel.provider = provider->name();
      kernel.plan = candidates.front().plan;
      told = provider->library_task(kernel, kImages);
      return;
    }
    FAIL("no provider can do " << edge.name);
  }
};

std::vector<float> in_layout(const KernelTensor& tensor, const std::vector<float>& nchw) {
  return tensor.is_image() ? from_nchw(tensor.layout, nchw, tensor.channels, tensor.rows, tensor.cols) : nchw;
}

std::vector<float> moved(const MovedTensor& tensor, const std::vector<float>& from, std::size_t values) {
  std::vector<float> to(values, -1);
  std::vector<std::int64_t> at(tensor.axes.size(), 0);
  for (;;) {
    std::int64_t in = 0, out = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      in += at[i] * tensor.axes[i].in_step;
      out += at[i] * tensor.axes[i].out_step;
    }
    to.at(static_cast<std::size_t>(out)) = from.at(static_cast<std::size_t>(in));
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == tensor.axes[axis - 1].extent) at[--axis] = 0;
    if (axis == 0) return to;
  }
}

// How many of the cases libraries can do; each of these moves the numbers of its elements to the same places.
int check_moves(const std::vector<OperatorCase>& cases) {
  int told = 0;
  for (const OperatorCase& edge : cases) {
    INFO(edge.name);
    const ToldOf found(edge);
    if (!found.told) continue;
    ++told;
    const auto* tensor = std::get_if<MovedTensor>(&*found.told);
    REQUIRE(tensor != nullptr);
    const Task& task = found.task;
    std::vector<float> numbers(static_cast<std::size_t>(values_of(task.inputs[0]) * kImages));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const std::vector<double> exact = run_reference(found.network, kImages, {numbers}).front();
    const std::vector<float> expected = in_layout(task.writes, {exact.begin(), exact.end()});
    // A pick may begin further on: what is told begins there as well.
    const std::vector<float> input = in_layout(task.reads[0], numbers);
    const auto first = std::ranges::find(input, expected.front());
    REQUIRE(first != input.end());
    CHECK((moved(*tensor, {first, input.end()}, expected.size()) == expected));
  }
  return told;
}

}  // namespace

TEST_CASE("library tasks: pools are those of the operators") {
  int pools = 0;
  for (const OperatorCase& edge : pool_cases()) {
    INFO(edge.name);
    const ToldOf found(edge);
    if (found.task.get<Pool>() == nullptr && found.task.get<GlobalAveragePool>() == nullptr) continue;
    REQUIRE(found.told);
    const auto* told = std::get_if<PooledImage>(&*found.told);
    REQUIRE(told != nullptr);
    ++pools;
    const std::vector<std::int64_t>&input = found.task.inputs[0], &output = found.task.output;
    CHECK(std::vector<std::int64_t>{told->channels, told->rows, told->cols} == input);
    CHECK(std::vector<std::int64_t>{told->channels, pooled_rows(told->pool, told->rows),
                                    pooled_cols(told->pool, told->cols)} == output);
    const Pool* pool = found.task.get<Pool>();
    if (pool == nullptr || averages_whole(*pool, input[1], input[2])) {
      CHECK(averages_whole(told->pool, told->rows, told->cols));
      continue;
    }
    Pool expected = *pool;
    expected.round_up = told->pool.round_up;  // it says no more than the size of the output
    CHECK(told->pool == expected);
  }
  CHECK(pools >= 10);
}

TEST_CASE("library tasks: transposes, picks and copies move each value to its place, and pads are none") {
  CHECK(check_moves(order_cases()) >= 20);
  CHECK(check_moves(copy_cases()) >= 3);
  OperatorCase pad{"pad", Pad{{1, 1, 2, 2}, 0.5F}, {{3, 4, 5}}};
  CHECK_FALSE(ToldOf(pad).told);
  OperatorCase backwards{"backwards", Pick{{{0, 1, 4}, {6, -1, 7}}}, {{4, 7}}};
  CHECK_FALSE(ToldOf(backwards).told);
}

TEST_CASE("library tasks: conversions to other layouts move each value, those to other types are none") {
  const auto convert = [](const TensorFormat& from, const TensorFormat& to) {
    return OperatorCase{"convert", Convert{}, {{16, 3, 5}}, 0, {}, from, to};
  };
  const TensorFormat plain = {}, fours{ElementType::f32, TensorLayout::nchw4},
                     lines{ElementType::f32, TensorLayout::n4c8hw};
  CHECK(check_moves({convert(plain, fours), convert(fours, plain), convert(plain, lines), convert(lines, plain)}) == 4);
  CHECK_FALSE(ToldOf(convert(plain, {ElementType::f16, TensorLayout::n8c8hw})).told);
  CHECK_FALSE(ToldOf(convert({ElementType::bf16, TensorLayout::n2chw}, plain)).told);
}

TEST_CASE("library tasks: softmax of an image and of channels") {
  const ToldOf flat({"flat", Softmax{}, {{10}}}), channels({"channels", Softmax{}, {{5, 3, 4}}});
  REQUIRE(flat.told);
  REQUIRE(channels.told);
  CHECK(std::get<SoftmaxImage>(*flat.told) == SoftmaxImage{10, 1});
  CHECK(std::get<SoftmaxImage>(*channels.told) == SoftmaxImage{5, 12});
}

TEST_CASE("library tasks: a plan without its constants is refused, and what no library does is nothing") {
  Kernel kernel;
  kernel.op = "pool1";
  kernel.provider = "pool";
  TemplatePlan empty;
  empty.template_name = "pool";
  kernel.plan = print(empty);
  CHECK_THROWS_WITH(find_provider("pool")->library_task(kernel, 1), burin_test::Contains("pool1"));
  CHECK_FALSE(ToldOf({"lrn", Lrn{3}, {{4, 3, 3}}}).told);
}
