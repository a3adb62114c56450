#include "compiler/import/onnx/fold_network.h"

#include <limits>

#include "compiler/import/onnx/graph_builder.h"
#include "compiler/network/reference_network.h"
#include "ir/limits.h"
#include "ir/printable.h"

namespace burin {

ConstantTensor fold_as_network(const FoldInputs& in, const Converter& converter, bool boolean,
                               const ImportOptions& options) {
  const Node& node = in.node();
  const ConstantTensor& x = in[0];
  const Numbers<double>& numbers = in.reals(0, "input");
  if (numbers.depend()) {
    node.unsupported("its input {} is computed from the number of images", in_quotes(node.input(0)));
  }
  // What has fewer axes than a batch and features gets more in front: that changes nothing but the numbers of axes.
  Extents shape = x.shape;
  constexpr std::size_t kFewestAxes = 2;
  const std::size_t added = shape.size() < kFewestAxes ? kFewestAxes - shape.size() : 0;
  if (added > 0 && (node.attributes().has("axis") || node.attributes().has("axes"))) {
    node.unsupported("its input is a constant of the shape {}, along an axis of which it computes",
                     extents_text(shape));
  }
  shape.insert(shape.begin(), added, 1);
  const std::int64_t images = shape[0];
  if (x.elements() == 0 || images > std::numeric_limits<int>::max() ||
      shape.size() > static_cast<std::size_t>(kMaxActivationRank) + 1) {
    node.unsupported("its input is a constant of the shape {}; burin computes this of constants with 1 to {} axes",
                     extents_text(x.shape), kMaxActivationRank + 1);
  }
  const ::onnx::GraphProto nothing;
  GraphBuilder graph(nothing, node.at(), options);
  graph.add_input(node.input(0), {shape.begin() + 1, shape.end()});
  for (int i = 1; i < in.count(); ++i) {
    if (in.has(i) && !graph.is_defined(node.input(i))) graph.define(node, node.input(i), Value(in.shared(i)));
  }
  converter.convert(node, graph);
  graph.add_output(node.output());
  const Network& network = graph.network();
  for (const Activations& tensor : network.tensors) {
    Extents whole = tensor.shape;
    whole.insert(whole.begin(), images);
    in.checked(std::move(whole));
  }
  const auto batch = static_cast<int>(images);
  const auto outputs = run_graph(network, {numbers.values}, [&](const Operator& op, const auto& read) {
    return run_reference_operator(network, op, batch, read);
  });
  Extents made = network.tensors[static_cast<std::size_t>(network.outputs[0])].shape;
  made.insert(made.begin(), images);
  for (std::size_t i = 0; i < added && !made.empty() && made[0] == 1; ++i) made.erase(made.begin());
  if (!boolean) return {x.type, std::move(made), Numbers<double>(outputs[0])};
  return {StoredType::boolean, std::move(made),
          Numbers<std::int64_t>(std::vector<std::int64_t>(outputs[0].begin(), outputs[0].end()))};
}

}  // namespace burin
