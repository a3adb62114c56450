// One number of many: reductions over axes of an image, and pools of whole images.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/operands.h"
#include "compiler/import/onnx/window.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

struct ReduceForm {
  std::string_view op;
  Statistic statistic;
  std::optional<ElementFunction> then = {};
  int axes_are_an_input = 18;  // the opset from which on they are
};
constexpr int kSumAxesAreAnInput = 13;
constexpr ReduceForm kForms[] = {
    {"ReduceMean", Statistic::mean},
    {"ReduceSum", Statistic::sum, {}, kSumAxesAreAnInput},
    {"ReduceMax", Statistic::largest},
    {"ReduceMin", Statistic::smallest},
    {"ReduceProd", Statistic::product},
    {"ReduceL1", Statistic::sum_of_magnitudes},
    {"ReduceL2", Statistic::sum_of_squares, ElementFunction::sqrt},
    {"ReduceSumSquare", Statistic::sum_of_squares},
    {"ReduceLogSum", Statistic::sum, ElementFunction::log},
    {"ReduceLogSumExp", Statistic::log_sum_exp},
};

// Means of whole channels are an operator of their own, which convolutions and other formats know.
OperatorKind kind_of(const ReduceForm& form, const std::vector<int>& axes, const std::vector<std::int64_t>& shape) {
  const bool whole_image = shape.size() == 3 && axes == std::vector<int>{1, 2};
  if (form.statistic == Statistic::mean && whole_image) return GlobalAveragePool{};
  Reduce op{form.statistic, axes};
  if (form.then) op.then = Elementwise{*form.then};
  return op;
}

// LpPool and GlobalLpPool have it. A float knows whole powers as far as it knows numbers.
int checked_power(const Node& node) {
  constexpr std::int64_t kMostPower = 64;
  const std::int64_t p = node.attributes().integer("p", 2);
  if (p < 1 || p > kMostPower) node.unsupported("attribute 'p' is {}; burin knows 1 to {}", p, kMostPower);
  return static_cast<int>(p);
}
int powers_of_magnitudes(const Node& node, GraphBuilder& graph, int x, int power) {
  if (power % 2 == 1) x = graph.emit_inner(node, "magnitudes", Elementwise{ElementFunction::absolute}, {x});
  if (power == 1) return x;
  return graph.emit_inner(node, "powers", Elementwise{ElementFunction::power, static_cast<float>(power), 0}, {x});
}
std::optional<Elementwise> root_of_sum(int power) {
  if (power == 1) return std::nullopt;
  if (power == 2) return Elementwise{ElementFunction::sqrt};
  return Elementwise{ElementFunction::power, 1.0F / static_cast<float>(power), 0};
}

}  // namespace

void convert_reduce(const Node& node, GraphBuilder& graph) {
  const auto* const form = std::ranges::find(kForms, node.op(), &ReduceForm::op);
  BURIN_CHECK(form != std::end(kForms), "{} is no reduction", node.op());
  const Attributes& attributes = node.attributes();
  const int x = graph.activation(node, 0);
  const std::vector<std::int64_t> shape = graph.shape(x);
  std::optional<std::vector<std::int64_t>> given = graph.list(node, "axes", 1, form->axes_are_an_input);
  const bool noop = node.opset() >= form->axes_are_an_input && attributes.boolean("noop_with_empty_axes", false);
  const bool keeps_axes = attributes.boolean("keepdims", true);
  if (!given || given->empty()) {
    if (noop) return graph.emit(node, Identity{}, {x});
    given.emplace(shape.size() + 1);
    std::iota(given->begin(), given->end(), 0);
  }
  const std::vector<int> axes = image_axes(node, graph, *given, shape, "reductions");
  if (!keeps_axes && axes.size() < given->size()) {
    node.unsupported("it takes the batch away (axis 0, keepdims is 0); burin keeps it: export it with keepdims");
  }
  OperatorKind kind = kind_of(*form, axes, shape);
  if (keeps_axes) return graph.emit(node, std::move(kind), {x});
  std::vector<std::int64_t> left;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (std::ranges::find(axes, static_cast<int>(axis)) == axes.end()) left.push_back(shape[axis]);
  }
  if (left.empty()) {
    node.unsupported(
        "it leaves no axis of {} for each image (keepdims is 0); burin needs one beside the batch: export "
        "it with keepdims",
        shape_text(shape));
  }
  const int kept = graph.emit_inner(node, "kept", std::move(kind), {x});
  graph.emit(node, Reshape{left}, {kept});
}

void convert_global_lp_pool(const Node& node, GraphBuilder& graph) {
  AsImage x = image_of(node, graph, graph.activation(node, 0));
  const int power = checked_power(node);
  Reduce op{power == 1 ? Statistic::sum_of_magnitudes : Statistic::sum_of_squares, {1, 2}, root_of_sum(power)};
  if (power > 2) {
    x.tensor = powers_of_magnitudes(node, graph, x.tensor, power);
    op.statistic = Statistic::sum;
  }
  emit_of_image(node, graph, x, std::move(op));
}

// The mean of powers, times how many they are, and its root.
void convert_lp_pool(const Node& node, GraphBuilder& graph) {
  const AsImage x = image_of(node, graph, graph.activation(node, 0));
  const int power = checked_power(node);
  Pool pool = read_pool(node, x, PoolKind::average);
  if (pool.round_up) node.unsupported("attribute 'ceil_mode' is 1; burin rounds the size of an LpPool down");
  pool.count_padding = true;
  const int powers = powers_of_magnitudes(node, graph, x.tensor, power);
  const int means = graph.emit_inner(node, "means", pool, {powers});
  const std::vector<std::int64_t>& shape = graph.shape(means);
  const auto channels = static_cast<std::size_t>(shape[0]);
  graph.count_weights(node, shape[0]);
  ChannelAffine sums{std::vector<float>(channels, static_cast<float>(pool.kernel_h * pool.kernel_w)),
                     std::vector<float>(channels, 0.0F), root_of_sum(power)};
  emit_of_image(node, graph, {means, graph.shape(means), x.row}, std::move(sums));
}

}  // namespace burin
