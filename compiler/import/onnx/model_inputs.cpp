#include "compiler/import/onnx/model_inputs.h"

#include <algorithm>

#include "compiler/import/faults.h"
#include "compiler/import/geometry.h"
#include "compiler/import/names.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::size_t kImageRank = 4;  // NCHW

struct Input {
  const ::onnx::ValueInfoProto* info;
  std::string at;  // "net.onnx: input 'data'"
};

// Spells the shape as the file does: "[N,3,224,224]".
std::string dims_text(const ::onnx::TensorShapeProto& shape) {
  std::vector<std::string> dims;
  for (const auto& dim : shape.dim()) {
    dims.push_back(dim.has_dim_value()       ? fmt::format("{}", dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : printable(dim.dim_param()));
  }
  return fmt::format("[{}]", numbers_text(dims));
}

void check_type(const Input& input, GraphBuilder& graph) {
  const auto& type = input.info->type();
  if (type.value_case() != ::onnx::TypeProto::VALUE_NOT_SET && !type.has_tensor_type()) {
    unsupported(input.at, "is no tensor");
  }
  using ::onnx::TensorProto;
  switch (type.tensor_type().elem_type()) {
    case TensorProto::FLOAT:
      return;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::DOUBLE:
      graph.network().notes.push_back(fmt::format(
          "{}: is of another floating-point type than float32; burin takes the same numbers as float32", input.at));
      return;
    default:
      unsupported(input.at, "has elements of ONNX's type {}; burin compiles networks of real numbers",
                  type.tensor_type().elem_type());
  }
}

void take_batch(const Input& input, const ::onnx::TensorShapeProto::Dimension& dim, GraphBuilder& graph) {
  if (!dim.has_dim_value()) return;
  const std::int64_t batch = dim.dim_value();
  if (batch < 1) bad_input(input.at, "has a batch of {} images, it must be at least 1", batch);
  if (graph.fixed_batch && *graph.fixed_batch != batch) {
    unsupported(input.at, "has a batch of {} images, another input has {}", batch, *graph.fixed_batch);
  }
  graph.fixed_batch = batch;
}

// Sizes of one image; 0 where the file does not fix them.
std::vector<std::int64_t> image_extents(const Input& input, GraphBuilder& graph) {
  if (!input.info->type().tensor_type().has_shape()) return std::vector<std::int64_t>(kImageRank - 1, 0);
  const auto& shape = input.info->type().tensor_type().shape();
  if (shape.dim_size() < 2 || shape.dim_size() > kMaxActivationRank + 1) {
    unsupported(input.at, "has the shape {}; burin needs a batch and 1 to {} more axes", dims_text(shape),
                kMaxActivationRank);
  }
  take_batch(input, shape.dim(0), graph);
  std::vector<std::int64_t> extents;
  for (int i = 1; i < shape.dim_size(); ++i) {
    extents.push_back(shape.dim(i).has_dim_value() ? shape.dim(i).dim_value() : 0);
    if (shape.dim(i).has_dim_value() && extents.back() < 1) {
      bad_input(input.at, "has the shape {}; each extent must be at least 1", dims_text(shape));
    }
  }
  return extents;
}

void apply_shape_flag(const Input& input, const GeometryFlags& flags, std::vector<std::int64_t>& extents) {
  LayerGeometry flag;
  apply_flags(flags, flag);
  if (extents.size() != kImageRank - 1) usage(input.at, "is no image, --input-shape gives the size of one");
  if (flag.in_channels && extents[0] != 0 && extents[0] != *flag.in_channels) {
    usage(input.at, "has {} channels, --input-shape {}", extents[0], *flag.in_channels);
  }
  if (flag.in_channels) extents[0] = *flag.in_channels;
  extents[1] = *flag.in_h, extents[2] = *flag.in_w;
}

}  // namespace

void add_inputs(const ::onnx::GraphProto& model, const std::unordered_set<std::string>& read, GraphBuilder& graph) {
  std::vector<Input> inputs;
  std::vector<std::string> unread;
  for (const auto& info : model.input()) {
    // Old files list their initializers as inputs too.
    if (graph.is_defined(info.name())) continue;
    if (info.name().empty() || !is_plain_text(info.name()) ||
        info.name().size() > static_cast<std::size_t>(kMaxLayerNameBytes)) {
      bad_input(graph.path(),
                "an input is named {}; a name must have 1 to {} bytes of UTF-8 without control "
                "characters",
                in_quotes(info.name()), kMaxLayerNameBytes);
    }
    if (read.count(info.name()) == 0) {
      unread.push_back(info.name());
    } else {
      inputs.push_back({&info, fmt::format("{}: input {}", graph.path(), in_quotes(info.name()))});
    }
  }
  if (inputs.empty()) bad_input(graph.path(), "has no input that its outputs depend on");
  if (!unread.empty()) {
    graph.network().notes.push_back(
        fmt::format("{}: inputs that no output depends on are left out: {}", graph.path(), listed(unread)));
  }
  const GeometryFlags& flags = graph.options().flags;
  if (flags.input_shape && inputs.size() > 1) {
    usage(graph.path(), "has {} inputs, --input-shape gives the size of one", inputs.size());
  }
  for (const Input& input : inputs) {
    check_type(input, graph);
    std::vector<std::int64_t> extents = image_extents(input, graph);
    if (flags.input_shape) apply_shape_flag(input, flags, extents);
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
      usage(input.at, "the file leaves its size open ({}); give --input-shape CxHxW",
            dims_text(input.info->type().tensor_type().shape()));
    }
    graph.add_input(input.info->name(), std::move(extents));
  }
}

}  // namespace burin
