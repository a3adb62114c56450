#include "compiler/operators/plan_operator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/operators/plan_parts.h"
#include "ir/error.h"
#include "ir/kernel_plan.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(const Shape& shape, std::size_t begin = 0) {
  std::int64_t result = 1;
  for (std::size_t axis = begin; axis < shape.size(); ++axis) result *= shape[axis];
  return result;
}

// One function for each kind of operator.
class Planner {
 public:
  Planner(const Network& network, const Operator& op, const OperatorRequest& request)
      : network_(network),
        op_(op),
        request_(request),
        target_{arch_by_name(request.arch), request.batch},
        output_(tensor(op.output).shape) {}

  std::vector<PlannedOperator> operator()(const Convolution&) const { return unsupported(); }

  std::vector<PlannedOperator> operator()(const Linear& op) const {
    const ElementType storage = request_.linear_storage;
    if (storage == ElementType::f32) return {plan_linear(op, input_place(0), request_.output, target_, storage)};
    return {plan_linear(rounded_weights(op, storage), input_place(0), request_.output, target_, storage)};
  }

  std::vector<PlannedOperator> operator()(const Elementwise& op) const {
    PlannedOperator result = flat("elementwise");
    set_function(result.plan, op);
    result.plan.integers["affine"] = 0;
    result.plan.integers["plane"] = 1;
    set_pieces(result.plan, product(output_), by_fours(result.plan), target_);
    return {result};
  }

  std::vector<PlannedOperator> operator()(const ChannelAffine& op) const {
    PlannedOperator result = flat("elementwise");
    set_no_function(result.plan);
    result.plan.integers["affine"] = 1;
    result.plan.integers["plane"] = static_cast<int>(plane());
    set_pieces(result.plan, product(output_), by_fours(result.plan) && channels_by_fours(), target_);
    for (const auto* values : {&op.scale, &op.shift}) {
      for (const float value : *values) result.weights.push_back(std::bit_cast<std::uint32_t>(value));
    }
    result.plan.weight_words = static_cast<std::int64_t>(result.weights.size());
    return {result};
  }

  std::vector<PlannedOperator> operator()(const Combine& op) const {
    PlannedOperator result = flat("combine");
    const std::int64_t words = product(input_shape(1));
    const bool per_channel = words != product(output_);
    OperatorPlan& plan = result.plan;
    result.second = 1;
    plan.second = tensor_at(input_place(1), words);
    plan.integers["multiply"] = op.combination == Combination::multiply;
    plan.integers["per_channel"] = per_channel;
    plan.integers["plane"] = static_cast<int>(per_channel ? plane() : 1);
    set_no_function(plan);
    // Where a channel has one value, four of them are one load as well.
    const bool second_by_fours = per_channel && plane() > 1 ? plane() % kVectorWords == 0 : plan.second.aligned > 1;
    if (per_channel && plane() > 1) plan.second.aligned = 1;
    set_pieces(plan, product(output_), by_fours(plan) && second_by_fours, target_);
    return {result};
  }

  std::vector<PlannedOperator> operator()(const Pool& op) const {
    const Shape& in = input_shape(0);
    const bool whole = op.kernel_h == in[1] && op.kernel_w == in[2] && op.dilation_h == 1 && op.dilation_w == 1 &&
                       op.pad == Padding{} && product(output_, 1) == 1;
    if (op.kind == PoolKind::average && whole) return (*this)(GlobalAveragePool{});
    PlannedOperator result = flat("pool");
    result.plan.input.aligned = result.plan.output.aligned = 1;
    const int thread_rows = pool_thread_rows(op);
    const std::pair<const char*, std::int64_t> constants[] = {
        {"channels", in[0]},
        {"in_rows", in[1]},
        {"in_cols", in[2]},
        {"out_rows", output_[1]},
        {"out_cols", output_[2]},
        {"kernel_rows", op.kernel_h},
        {"kernel_cols", op.kernel_w},
        {"stride_rows", op.stride_h},
        {"stride_cols", op.stride_w},
        {"dilation_rows", op.dilation_h},
        {"dilation_cols", op.dilation_w},
        {"pad_top", op.pad.top},
        {"pad_bottom", op.pad.bottom},
        {"pad_left", op.pad.left},
        {"pad_right", op.pad.right},
        {"thread_rows", thread_rows},
        {"average", op.kind == PoolKind::average},
        {"count_padding", op.count_padding},
    };
    for (const auto& [name, value] : constants) result.plan.integers[name] = static_cast<int>(value);
    set_items(result.plan, output_[0] * ceil_div(output_[1], thread_rows) * output_[2]);
    return {result};
  }

  std::vector<PlannedOperator> operator()(const GlobalAveragePool&) const {
    PlannedOperator result = flat("global_average");
    OperatorPlan& plan = result.plan;
    const std::int64_t channels = input_shape(0)[0], words = product(input_shape(0), 1);
    const bool vectors = words % kVectorWords == 0 && plan.input.aligned > 1;
    if (!vectors) plan.input.aligned = 1;
    plan.output.aligned = 1;
    plan.integers["channels"] = static_cast<int>(channels);
    plan.integers["plane"] = static_cast<int>(words);
    plan.integers["vector"] = vectors ? kVectorWords : 1;
    constexpr int kWarpsOfBlock = 4;  // few, so that the channels of one image reach many multiprocessors
    plan.threads = kWarpsOfBlock * kWarpSize;
    plan.group_blocks = static_cast<int>(ceil_div(channels, kWarpsOfBlock));
    return {result};
  }

  std::vector<PlannedOperator> operator()(const Lrn& op) const {
    PlannedOperator result = flat("lrn");
    OperatorPlan& plan = result.plan;
    plan.input.aligned = plan.output.aligned = 1;
    constexpr int kThreadChannels = 8, kMaxHeld = 40;  // templates/operators/lrn.cu
    const std::int64_t channels = output_[0];
    const int held = op.size <= kMaxHeld - kThreadChannels ? kThreadChannels : 1;
    const int thread_channels = static_cast<int>(std::min<std::int64_t>(held, channels));
    plan.integers["channels"] = static_cast<int>(channels);
    plan.integers["plane"] = static_cast<int>(plane());
    plan.integers["size"] = op.size;
    plan.integers["thread_channels"] = thread_channels;
    plan.reals["scale"] = op.alpha / static_cast<float>(op.size);
    plan.reals["exponent"] = -op.beta;
    plan.reals["bias"] = op.bias;
    set_items(plan, ceil_div(channels, thread_channels) * plane());
    return {result};
  }

  std::vector<PlannedOperator> operator()(const Softmax&) const {
    const bool whole = plane() == 1;
    PlannedOperator result = flat(whole ? "softmax" : "softmax_channels");
    OperatorPlan& plan = result.plan;
    plan.input.aligned = plan.output.aligned = 1;
    if (!whole) {
      plan.integers["channels"] = static_cast<int>(output_[0]);
      plan.integers["plane"] = static_cast<int>(plane());
      set_items(plan, plane());
      return {result};
    }
    plan.integers["elements"] = static_cast<int>(output_[0]);
    plan.threads = static_cast<int>(std::min<std::int64_t>(kMaxThreadsPerBlock, round_up(output_[0], kWarpSize)));
    constexpr int kExchangedBytes = 2 * 32 * 4;  // a value of each warp, twice
    plan.shared_bytes = plan.threads == kWarpSize ? 0 : kSharedReserveBytes + kExchangedBytes;
    return {result};
  }

  std::vector<PlannedOperator> operator()(const Concat& op) const {
    return plan_concat(inputs(), places(), output_, op.axis, request_.output, target_);
  }
  std::vector<PlannedOperator> operator()(const Pad& op) const {
    return {plan_pad(op, input_shape(0), output_, input_place(0), request_.output, target_)};
  }
  std::vector<PlannedOperator> operator()(const Transpose& op) const {
    return {plan_transpose(op, input_shape(0), output_, input_place(0), request_.output, target_)};
  }
  std::vector<PlannedOperator> operator()(const Reshape&) const { return same_values(); }
  std::vector<PlannedOperator> operator()(const Identity&) const { return same_values(); }

 private:
  const Activations& tensor(int index) const { return network_.tensors[static_cast<std::size_t>(index)]; }
  const Shape& input_shape(std::size_t i) const { return tensor(op_.inputs[i]).shape; }
  BufferPlace input_place(std::size_t i) const { return request_.inputs.empty() ? BufferPlace{} : request_.inputs[i]; }
  std::int64_t plane() const { return product(output_, 1); }
  bool channels_by_fours() const { return plane() == 1 ? output_[0] % kVectorWords == 0 : plane() % kVectorWords == 0; }

  [[noreturn]] std::vector<PlannedOperator> unsupported() const {
    fail(ErrorKind::unsupported, "operator '{}': there is no operator template for a {}", op_.name,
         kind_name(op_.kind));
  }

  // Small weights may become zeros, which then need not be stored.
  Linear rounded_weights(const Linear& op, ElementType storage) const {
    Linear rounded_op = op;
    for (float& weight : rounded_op.weights) {
      const float value = rounded(storage, weight);
      if (std::isinf(value)) {
        fail(ErrorKind::unsupported,
             "linear layer '{}': its weight {} is too large for FP16, whose largest number is {}: compile it with "
             "--linear-storage fp32",
             op_.name, weight, largest_of(storage));
      }
      weight = value;
    }
    return rounded_op;
  }

  // Of one input and the output, each in one run.
  PlannedOperator flat(const char* name) const {
    PlannedOperator result;
    result.plan.template_name = name;
    result.plan.input = tensor_at(input_place(0), product(input_shape(0)));
    result.plan.output = tensor_at(request_.output, product(output_));
    return result;
  }

  // Several where windows overlap and the GPU is full all the same.
  int pool_thread_rows(const Pool& op) const {
    constexpr int kMaxWindow = 25;  // positions of a window without a loop: templates/operators/pool.cu
    if (op.stride_h >= op.kernel_h || op.dilation_h > 1 || op.kernel_h * op.kernel_w > kMaxWindow) return 1;
    const std::int64_t full = std::int64_t{target_.arch.multiprocessors} * target_.arch.max_threads_per_multiprocessor;
    const std::int64_t rows = product(output_) * target_.batch / full;
    return rows >= 8 && output_[1] >= 4 ? 4 : rows >= 2 && output_[1] >= 2 ? 2 : 1;
  }

  std::vector<Shape> inputs() const {
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) shapes.push_back(input_shape(i));
    return shapes;
  }
  std::vector<BufferPlace> places() const {
    std::vector<BufferPlace> all;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) all.push_back(input_place(i));
    return all;
  }

  std::vector<PlannedOperator> same_values() const {
    return {plan_copy(product(output_), input_place(0), request_.output, target_)};
  }

  bool by_fours(const OperatorPlan& plan) const {
    return product(output_) % kVectorWords == 0 && plan.input.aligned > 1 && plan.output.aligned > 1;
  }

  const Network& network_;
  const Operator& op_;
  const OperatorRequest& request_;
  Target target_;
  const Shape& output_;
};

}  // namespace

std::vector<PlannedOperator> plan_operator(const Network& network, const Operator& op, const OperatorRequest& request) {
  BURIN_CHECK(request.inputs.empty() || request.inputs.size() == op.inputs.size(),
              "operator {}: {} places for {} inputs", op.name, request.inputs.size(), op.inputs.size());
  std::vector<PlannedOperator> kernels = std::visit(Planner(network, op, request), op.kind);
  for (PlannedOperator& kernel : kernels) kernel.plan.arch = request.arch;
  return kernels;
}

bool may_overwrite_input(const OperatorPlan& plan) {
  return plan.template_name == "elementwise" || plan.template_name == "combine";
}

bool fuse_function(OperatorPlan& plan, const Elementwise& function) {
  const auto found = plan.integers.find("function");
  if (found == plan.integers.end() || found->second != 0) return false;
  set_function(plan, function);
  return true;
}

}  // namespace burin
