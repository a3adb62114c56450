#include "runtime/library/cudnn_engine.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "ir/error.h"
#include "ir/library_call.h"

namespace burin {

namespace {

// What tensors are told apart by. Those from first_sum on are what one operation hands to the next.
enum TensorId : std::int64_t { kInput = 1, kWeights, kBias, kResidual, kOutput, kFirstSum };

using Extents = std::vector<std::int64_t>;

// Steps of images, channels, rows and columns. `pitch`: from one image to the next, 0 where they follow each other.
Extents steps_of(CudnnLayout layout, const Extents& extents, std::int64_t pitch = 0) {
  const std::int64_t channels = extents[1], rows = extents[2], cols = extents[3];
  const std::int64_t image = pitch > 0 ? pitch : channels * rows * cols;
  if (layout == CudnnLayout::nhwc) return {image, 1, cols * channels, channels};
  return {image, rows * cols, cols, 1};
}

class FusedGraphBuilder {
 public:
  FusedGraphBuilder(const CudnnTable& table, const CudnnProblem& problem, std::vector<CudnnNode>& nodes)
      : table_(table), problem_(problem), nodes_(nodes) {
    // Nodes are told of each other by their addresses.
    constexpr std::size_t kMostNodes = 32;
    nodes_.reserve(kMostNodes);
  }

  // The graph of the convolution and what follows it: bias, then residual, then relu.
  CudnnObject build(CudnnObject opened, bool bias, bool residual, bool relu) {
    const ConvShape& shape = problem_.shape;
    const Extents output = {problem_.batch, shape.out_channels, shape.conv_h(), shape.conv_w()};
    int left = (bias ? 1 : 0) + (residual ? 1 : 0) + (relu ? 1 : 0);
    const CudnnNode* sums = &made(output, left == 0);
    convolve(*sums);
    const auto then = [&](CudnnPointwise what, const CudnnNode* other) {
      const CudnnNode& next = made(output, --left == 0);
      apply(what, *sums, other, next);
      sums = &next;
    };
    if (bias) then(CudnnPointwise::add, &tensor(kBias, {1, shape.out_channels, 1, 1}, 0));
    if (residual) then(CudnnPointwise::add, &tensor(kResidual, output, problem_.residual_pitch));
    if (relu) then(CudnnPointwise::relu, nullptr);
    const CudnnNode& graph = add(CudnnNodeKind::graph);
    graph.set(CudnnAttribute::graph_handle, CudnnAttributeType::handle, 1, &opened);
    graph.set(CudnnAttribute::graph_operations, CudnnAttributeType::node, static_cast<std::int64_t>(operations_.size()),
              operations_.data());
    graph.finalize();
    return graph.object();
  }

 private:
  const CudnnNode& add(CudnnNodeKind kind) {
    BURIN_CHECK(nodes_.size() < nodes_.capacity(), "too many nodes for a graph of cuDNN");
    return nodes_.emplace_back(table_, kind);
  }

  const CudnnNode& tensor(std::int64_t id, const Extents& extents, std::int64_t pitch) {
    const bool is_sum = id >= kFirstSum;
    const CudnnNode& node = add(CudnnNodeKind::tensor);
    const auto type = static_cast<int>(is_sum ? CudnnType::float32 : problem_.type);
    node.set(CudnnAttribute::tensor_type, CudnnAttributeType::data_type, 1, &type);
    node.set(CudnnAttribute::tensor_extents, extents);
    node.set(CudnnAttribute::tensor_steps, steps_of(problem_.layout, extents, pitch));
    node.set(CudnnAttribute::tensor_id, id);
    node.set(CudnnAttribute::tensor_alignment, static_cast<std::int64_t>(problem_.alignment));
    if (is_sum) node.set(CudnnAttribute::tensor_is_virtual, CudnnAttributeType::boolean, 1, &is_sum);
    node.finalize();
    return node;
  }
  // What an operation makes: the output, or sums that the next one reads.
  const CudnnNode& made(const Extents& extents, bool is_last) {
    return is_last ? tensor(kOutput, extents, problem_.output_pitch) : tensor(kFirstSum + next_sum_++, extents, 0);
  }

  void convolve(const CudnnNode& sums) {
    const ConvShape& shape = problem_.shape;
    const CudnnNode& input =
        tensor(kInput, {problem_.batch, shape.in_channels, shape.in_h, shape.in_w}, problem_.input_pitch);
    const CudnnNode& weights =
        tensor(kWeights, {shape.out_channels, shape.channels_per_group(), shape.kernel_h, shape.kernel_w}, 0);
    const CudnnNode& window = add(CudnnNodeKind::convolution);
    const auto sum_type = static_cast<int>(CudnnType::float32);
    window.set(CudnnAttribute::convolution_sum_type, CudnnAttributeType::data_type, 1, &sum_type);
    window.set(CudnnAttribute::convolution_mode, CudnnAttributeType::convolution_mode, 1, &kCudnnCrossCorrelation);
    window.set(CudnnAttribute::convolution_axes, std::int64_t{2});
    window.set(CudnnAttribute::convolution_dilations, Extents{shape.dilation_h, shape.dilation_w});
    window.set(CudnnAttribute::convolution_strides, Extents{shape.stride_h, shape.stride_w});
    window.set(CudnnAttribute::convolution_pads_before, Extents{shape.pad.top, shape.pad.left});
    window.set(CudnnAttribute::convolution_pads_behind, Extents{shape.pad.bottom, shape.pad.right});
    window.finalize();
    const CudnnNode& operation = add(CudnnNodeKind::convolution_forward);
    operation.set(CudnnAttribute::forward_window, window);
    operation.set(CudnnAttribute::forward_weights, weights);
    operation.set(CudnnAttribute::forward_input, input);
    operation.set(CudnnAttribute::forward_output, sums);
    operation.set(CudnnAttribute::forward_alpha, 1.0F);
    operation.set(CudnnAttribute::forward_beta, 0.0F);
    finish(operation);
  }

  void apply(CudnnPointwise what, const CudnnNode& sums, const CudnnNode* other, const CudnnNode& result) {
    const CudnnNode& function = add(CudnnNodeKind::pointwise);
    const auto type = static_cast<int>(CudnnType::float32);
    function.set(CudnnAttribute::pointwise_mode, CudnnAttributeType::pointwise_mode, 1, &what);
    function.set(CudnnAttribute::pointwise_type, CudnnAttributeType::data_type, 1, &type);
    function.finalize();
    const CudnnNode& operation = add(CudnnNodeKind::pointwise_operation);
    operation.set(CudnnAttribute::apply_function, function);
    operation.set(CudnnAttribute::apply_first, sums);
    if (other != nullptr) operation.set(CudnnAttribute::apply_second, *other);
    operation.set(CudnnAttribute::apply_output, result);
    finish(operation);
  }

  void finish(const CudnnNode& operation) {
    operation.finalize();
    operations_.push_back(operation.object());
  }

  const CudnnTable& table_;
  const CudnnProblem& problem_;
  std::vector<CudnnNode>& nodes_;
  std::vector<CudnnObject> operations_;
  std::int64_t next_sum_ = 0;
};

}  // namespace

// ---- nodes

CudnnNode::CudnnNode(const CudnnTable& table, CudnnNodeKind kind) : table_(&table) {
  check_cudnn(table, table.backend_create(static_cast<int>(kind), &object_), "cudnnBackendCreateDescriptor");
}

CudnnNode::CudnnNode(CudnnNode&& other) noexcept
    : table_(other.table_), object_(std::exchange(other.object_, nullptr)) {}

void CudnnNode::set(CudnnAttribute attribute, CudnnAttributeType type, std::int64_t count, const void* values) const {
  check_cudnn(*table_, table_->backend_set(object_, static_cast<int>(attribute), static_cast<int>(type), count, values),
              "cudnnBackendSetAttribute", fmt::format("of attribute {}", static_cast<int>(attribute)));
}
void CudnnNode::set(CudnnAttribute attribute, std::int64_t value) const {
  set(attribute, CudnnAttributeType::int64, 1, &value);
}
void CudnnNode::set(CudnnAttribute attribute, const std::vector<std::int64_t>& values) const {
  set(attribute, CudnnAttributeType::int64, static_cast<std::int64_t>(values.size()), values.data());
}
void CudnnNode::set(CudnnAttribute attribute, float value) const {
  set(attribute, CudnnAttributeType::float32, 1, &value);
}
void CudnnNode::set(CudnnAttribute attribute, const CudnnNode& node) const {
  const CudnnObject object = node.object();
  set(attribute, CudnnAttributeType::node, 1, &object);
}

void CudnnNode::finalize() const { check_cudnn(*table_, table_->backend_finalize(object_), "cudnnBackendFinalize"); }

bool CudnnNode::can_finalize() const { return table_->backend_finalize(object_) == kCudnnSuccess; }

// ---- engines

CudnnEngine::CudnnEngine(std::shared_ptr<const CudnnHandle> handle, const CudnnProblem& problem, int number)
    : handle_(std::move(handle)) {
  const Epilogue& epilogue = problem.shape.epilogue;
  has_bias_ = problem.with_epilogue && epilogue.bias;
  has_residual_ = problem.with_epilogue && epilogue.residual;
  const bool relu = problem.with_epilogue && is_relu(epilogue.function);
  // Others may use the handle, whose turn is another time.
  handle_->with_handle([&](CudnnObject opened) {
    graph_ = FusedGraphBuilder(handle_->table(), problem, nodes_).build(opened, has_bias_, has_residual_, relu);
    choose(opened, number);
    return kCudnnSuccess;
  });
}

CudnnEngine::~CudnnEngine() {
  release_in_context(handle_->device(), [&](const DriverTable&) {
    plan_.reset();
    nodes_.clear();
  });
}

void CudnnEngine::choose(CudnnObject opened, int number) {
  const CudnnTable& table = handle_->table();
  CudnnNode proposals(table, CudnnNodeKind::heuristics);
  proposals.set(CudnnAttribute::heuristics_graph, CudnnAttributeType::node, 1, &graph_);
  proposals.set(CudnnAttribute::heuristics_mode, CudnnAttributeType::heuristics_mode, 1, &kCudnnHeuristicsByModel);
  proposals.finalize();
  constexpr std::size_t kMostProposals = 16;
  std::vector<CudnnNode> choices;
  std::array<CudnnObject, kMostProposals> objects{};
  choices.reserve(objects.size());
  for (CudnnObject& object : objects) object = choices.emplace_back(table, CudnnNodeKind::engine_choice).object();
  std::int64_t count = 0;
  check_cudnn(table,
              table.backend_get(proposals.object(), static_cast<int>(CudnnAttribute::heuristics_results),
                                static_cast<int>(CudnnAttributeType::node), kMostProposals, &count, objects.data()),
              "cudnnBackendGetAttribute", "of the proposed engines");
  count = std::min<std::int64_t>(count, kMostProposals);  // it may count those for which there was no place
  int usable = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    CudnnNode& choice = choices.at(static_cast<std::size_t>(i));
    auto plan = std::make_unique<CudnnNode>(table, CudnnNodeKind::plan);
    plan->set(CudnnAttribute::plan_handle, CudnnAttributeType::handle, 1, &opened);
    plan->set(CudnnAttribute::plan_engine, choice);
    if (!plan->can_finalize() || usable++ < number) continue;
    std::int64_t bytes = 0, got = 0;
    check_cudnn(table,
                table.backend_get(plan->object(), static_cast<int>(CudnnAttribute::plan_workspace),
                                  static_cast<int>(CudnnAttributeType::int64), 1, &got, &bytes),
                "cudnnBackendGetAttribute", "of the plan's scratch memory");
    workspace_bytes_ = static_cast<std::size_t>(bytes);
    nodes_.push_back(std::move(proposals));
    nodes_.push_back(std::move(choice));
    plan_ = std::move(plan);
    return;
  }
  fail(ErrorKind::device, "its graph API has {} engines for the convolution", usable);
}

void CudnnEngine::enqueue(CUstream_st* stream, const CudnnPointers& pointers) const {
  const CudnnTable& table = handle_->table();
  std::vector<std::int64_t> ids = {kInput, kWeights, kOutput};
  std::vector<const void*> places = {pointers.input, pointers.weights, pointers.output};
  const auto add = [&](std::int64_t id, const void* place) {
    ids.push_back(id);
    places.push_back(place);
  };
  if (has_bias_) add(kBias, pointers.bias);
  if (has_residual_) add(kResidual, pointers.residual);
  const CudnnStatus status = handle_->with_stream(stream, [&](CudnnObject handle) {
    const CudnnNode pack(table, CudnnNodeKind::pointers);
    pack.set(CudnnAttribute::pointers_ids, ids);
    pack.set(CudnnAttribute::pointers_places, CudnnAttributeType::pointer, static_cast<std::int64_t>(places.size()),
             places.data());
    pack.set(CudnnAttribute::pointers_workspace, CudnnAttributeType::pointer, 1, &pointers.workspace);
    pack.finalize();
    return table.backend_execute(handle, plan_->object(), pack.object());
  });
  check_cudnn(table, status, "cudnnBackendExecute");
}

}  // namespace burin
