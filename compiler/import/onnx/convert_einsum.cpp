// Einsum: sums of products along axes that have labels, as reductions, transposes and products of matrices.
#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include "compiler/import/onnx/converters.h"
#include "compiler/import/onnx/products.h"
#include "ir/limits.h"
#include "ir/printable.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using Extents = std::vector<std::int64_t>;

// A label for each axis. Axes of an ellipsis have digits, counted from the last one of them.
using Labels = std::string;

constexpr std::string_view kEllipsis = "...";

bool has_label(std::string_view labels, char label) { return labels.find(label) != labels.npos; }

// What an Einsum says of its operands and of what it gives.
struct Equation {
  std::vector<Labels> terms;
  Labels output;
};

// The labels with the ellipsis as so many digits.
Labels without_ellipsis(const Node& node, std::string text, std::size_t axes) {
  const std::size_t at = text.find(kEllipsis);
  if (at != text.npos) {
    constexpr std::size_t kMostAxes = 10;
    if (axes > kMostAxes) node.unsupported("the ellipsis of its equation stands for {} axes", axes);
    Labels digits;
    for (std::size_t i = axes; i-- > 0;) digits += static_cast<char>('0' + i);
    text.replace(at, kEllipsis.size(), digits);
    axes = 0;
  }
  const bool are_labels = std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
  if (!are_labels) node.bad_input("its equation has the term {}; labels are letters", in_quotes(text));
  return text;
}

// `ranks`: how many axes each operand has, the batch included.
Equation read_equation(const Node& node, const std::vector<std::size_t>& ranks) {
  std::string text = node.attributes().text("equation", "");
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  if (text.empty()) node.bad_input("lacks the attribute 'equation'");
  if (std::ranges::any_of(text, [](unsigned char c) { return std::isdigit(c) != 0; })) {
    node.bad_input("its equation {} has digits; labels are letters", in_quotes(text));
  }
  const std::size_t arrow = text.find("->");
  std::string terms = text.substr(0, arrow) + ",";
  Equation equation;
  std::size_t most = 0;  // axes of an ellipsis
  bool any = false;
  for (std::size_t begin = 0, end = 0; (end = terms.find(',', begin)) != terms.npos; begin = end + 1) {
    const std::string term = terms.substr(begin, end - begin);
    if (equation.terms.size() == ranks.size()) break;
    const std::size_t rank = ranks[equation.terms.size()];
    const bool open = term.find(kEllipsis) != term.npos;
    const std::size_t named = term.size() - (open ? kEllipsis.size() : 0);
    if (open ? named > rank : named != rank) {
      node.bad_input("its equation has the term {} for an operand of {} axes", in_quotes(term), rank);
    }
    most = std::max(most, open ? rank - named : 0);
    any = any || open;
    equation.terms.push_back(without_ellipsis(node, term, rank - named));
  }
  if (equation.terms.size() != ranks.size() || std::ranges::count(terms, ',') != std::ssize(ranks)) {
    node.bad_input("its equation {} has not as many terms as it has operands, which are {}", in_quotes(text),
                   ranks.size());
  }
  if (arrow != text.npos) {
    equation.output = without_ellipsis(node, text.substr(arrow + 2), most);
  } else {
    // Labels that appear once, in their order, behind the ellipsis.
    std::map<char, int> counts;
    for (const Labels& term : equation.terms) {
      for (const char label : term) ++counts[label];
    }
    if (any) equation.output = without_ellipsis(node, std::string(kEllipsis), most);
    for (const auto& [label, count] : counts) {
      if (count == 1 && std::isdigit(static_cast<unsigned char>(label)) == 0) equation.output += label;
    }
  }
  return equation;
}

// An operand whose axes have labels, all of them of one image.
struct Labelled {
  Labels labels;
  Operand operand;
  bool is_tensor() const { return std::holds_alternative<int>(operand); }
};

class EinsumConverter {
 public:
  EinsumConverter(const Node& node, GraphBuilder& graph) : node_(node), graph_(graph) {}

  void run() {
    read_operands();
    drop_single_values();
    // Tensors first: then no two constants meet.
    std::ranges::stable_partition(operands_, [](const Labelled& operand) { return operand.is_tensor(); });
    Labelled made = operands_.front();
    for (std::size_t i = 1; i < operands_.size(); ++i) {
      Labels needed = output_;
      for (std::size_t later = i + 1; later < operands_.size(); ++later) needed += operands_[later].labels;
      made = product(std::move(made), operands_[i], needed);
    }
    made = without_unneeded(std::move(made), output_, "");
    graph_.emit(node_, Transpose{order_of(made.labels, output_)}, {std::get<int>(made.operand)});
  }

 private:
  // The batch, which all tensors have as their first axis, and no constant has.
  void read_operands() {
    std::vector<std::size_t> ranks;
    std::vector<ConstantOperand> constants;
    for (int i = 0; i < node_.inputs(); ++i) {
      if (graph_.is_activation(node_, i)) {
        ranks.push_back(graph_.shape(graph_.activation(node_, i)).size() + 1);
        continue;
      }
      const StoredTensor tensor = graph_.constant(node_, i, "operand");
      if (tensor.elements() == 0) {
        node_.unsupported("its constant {} has the shape {} and no values", in_quotes(node_.input(i)),
                          extents_text(tensor.shape()));
      }
      graph_.count_weights(node_, tensor.elements());
      constants.push_back({tensor.shape(), graph_.floats(node_, tensor, "operand")});
      ranks.push_back(tensor.shape().size());
    }
    const Equation equation = read_equation(node_, ranks);
    output_ = equation.output;
    std::optional<char> batch;
    std::size_t constant = 0;
    for (std::size_t i = 0; i < equation.terms.size(); ++i) {
      const Labels& term = equation.terms[i];
      for (const char label : term) {
        if (std::ranges::count(term, label) > 1) {
          node_.unsupported("its equation takes a diagonal, in {}; burin sums products of whole axes", in_quotes(term));
        }
      }
      if (!graph_.is_activation(node_, static_cast<int>(i))) {
        operands_.push_back({term, constants[constant++]});
        continue;
      }
      if (batch && *batch != term[0]) {
        node_.unsupported("the batches of its operands have the labels {} and {}; burin multiplies what is one image's",
                          in_quotes(std::string(1, *batch)), in_quotes(std::string(1, term[0])));
      }
      batch = term[0];
      operands_.push_back({term.substr(1), graph_.activation(node_, static_cast<int>(i))});
    }
    check_output(*batch);
    for (Labelled& operand : operands_) {
      const std::size_t at = operand.labels.find(*batch);
      if (at == operand.labels.npos) continue;
      const Extents& shape = shape_of(graph_, operand.operand);
      if (operand.is_tensor() || shape[at] != 1) node_.unsupported("one of its operands is another one for each image");
      drop_axis(operand, at);
    }
  }

  void check_output(char batch) {
    if (output_.empty() || output_[0] != batch) {
      node_.unsupported("its equation gives {}; burin keeps the batch, {}, as the first axis", in_quotes(output_),
                        in_quotes(std::string(1, batch)));
    }
    output_.erase(0, 1);
    if (output_.empty()) node_.unsupported("it leaves no axis beside the batch");
    for (const char label : output_) {
      const auto has = [&](const Labelled& operand) { return has_label(operand.labels, label); };
      if (std::ranges::none_of(operands_, has) || std::ranges::count(output_, label) > 1 || label == batch) {
        node_.bad_input("its equation gives the label {}, which no operand has, or twice",
                        in_quotes(std::string(1, label)));
      }
    }
  }

  void drop_axis(Labelled& operand, std::size_t axis) {
    Extents shape = shape_of(graph_, operand.operand);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    operand.labels.erase(axis, 1);
    if (shape.empty()) shape = {1};  // of a label that nobody needs
    if (operand.labels.empty()) operand.labels = std::string(1, kNothing);
    operand.operand = reshaped(node_, graph_, std::move(operand.operand), std::move(shape));
  }

  // Where one value stands for several of another operand, the axis says nothing.
  void drop_single_values() {
    std::map<char, std::int64_t> extents;
    for (const Labelled& operand : operands_) {
      const Extents& shape = shape_of(graph_, operand.operand);
      for (std::size_t i = 0; i < shape.size(); ++i) {
        std::int64_t& extent = extents.try_emplace(operand.labels[i], 1).first->second;
        if (extent != 1 && shape[i] != 1 && extent != shape[i]) {
          node_.bad_input("its label {} has {} values and {}", in_quotes(std::string(1, operand.labels[i])), extent,
                          shape[i]);
        }
        extent = std::max(extent, shape[i]);
      }
    }
    for (Labelled& operand : operands_) {
      for (std::size_t i = operand.labels.size(); i-- > 0;) {
        const std::int64_t extent = shape_of(graph_, operand.operand)[i];
        if (extent == 1 && extents[operand.labels[i]] > 1) drop_axis(operand, i);
      }
    }
  }

  // Sums along the labels that neither `needed` nor `other` has.
  Labelled without_unneeded(Labelled operand, const Labels& needed, const Labels& other) {
    std::vector<int> axes;
    Labels left;
    Extents shape = shape_of(graph_, operand.operand), kept;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (has_label(needed, operand.labels[i]) || has_label(other, operand.labels[i])) {
        left += operand.labels[i];
        kept.push_back(shape[i]);
      } else {
        axes.push_back(static_cast<int>(i));
      }
    }
    if (axes.empty()) return operand;
    if (kept.empty()) left = std::string(1, kNothing), kept = {1};
    if (auto* const constant = std::get_if<ConstantOperand>(&operand.operand)) {
      std::vector<int> order;  // what is summed comes last
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int>(i)) == axes.end()) order.push_back(static_cast<int>(i));
      }
      order.insert(order.end(), axes.begin(), axes.end());
      const ConstantOperand apart = std::get<ConstantOperand>(transposed(node_, graph_, std::move(*constant), order));
      const auto sums = static_cast<std::size_t>(saturating_product(kept));
      const std::size_t terms = apart.values.size() / sums;
      ConstantOperand made{kept, {}};
      for (std::size_t i = 0; i < sums; ++i) {
        const auto run = std::span(apart.values).subspan(i * terms, terms);
        made.values.push_back(static_cast<float>(std::accumulate(run.begin(), run.end(), 0.0)));
      }
      return {left, std::move(made)};
    }
    const int sums = graph_.emit_inner(node_, "sums", Reduce{Statistic::sum, axes}, {std::get<int>(operand.operand)});
    return {left, reshaped(node_, graph_, sums, kept)};
  }

  static std::vector<int> order_of(const Labels& labels, const Labels& wanted) {
    std::vector<int> order;
    for (const char label : wanted) order.push_back(static_cast<int>(labels.find(label)));
    return order;
  }
  std::int64_t extent_of(const Labelled& operand, const Labels& labels) const {
    std::int64_t extent = 1;
    for (const char label : labels) {
      extent *= shape_of(graph_, operand.operand)[operand.labels.find(label)];
    }
    return extent;
  }

  // Labels of `a` that `b` has, or has not.
  static Labels filtered(const Labels& a, const Labels& b, bool has) {
    Labels made;
    for (const char label : a) {
      if (has_label(b, label) == has) made += label;
    }
    return made;
  }

  Labelled product(Labelled a, Labelled b, const Labels& needed) {
    a = without_unneeded(std::move(a), needed, b.labels);
    b = without_unneeded(std::move(b), needed, a.labels);
    const Labels both = filtered(a.labels, b.labels, true), batch = filtered(both, needed, true),
                 summed = filtered(both, needed, false);
    Labels left = filtered(a.labels, b.labels, false), right = filtered(b.labels, a.labels, false);
    if (!a.is_tensor()) node_.unsupported("it multiplies constants with each other");
    if (summed.empty() && (right.empty() || (left.empty() && b.is_tensor()))) {
      return right.empty() ? scaled(a, b, batch) : scaled(b, a, batch);
    }
    // Rows are what comes first in the end.
    if (!left.empty() && !right.empty() && output_.find(right[0]) < output_.find(left[0])) {
      std::swap(a, b);
      std::swap(left, right);
    }
    const std::int64_t rows = extent_of(a, left), cols = extent_of(b, right), terms = extent_of(a, summed);
    Extents matrices;
    for (const char label : batch) matrices.push_back(extent_of(a, Labels(1, label)));
    constexpr std::size_t kMatrixRank = 2;
    if (matrices.size() + kMatrixRank > static_cast<std::size_t>(kMaxActivationRank)) {
      matrices = {saturating_product(matrices)};
    }
    const auto shaped = [&](std::int64_t first, std::int64_t second) {
      Extents shape = matrices;
      shape.insert(shape.end(), {first, second});
      return shape;
    };
    Operand of_a = transposed(node_, graph_, a.operand, order_of(a.labels, batch + left + summed));
    of_a = reshaped(node_, graph_, std::move(of_a), shaped(rows, terms));
    Operand of_b = transposed(node_, graph_, b.operand, order_of(b.labels, batch + summed + right));
    of_b = reshaped(node_, graph_, std::move(of_b), shaped(terms, cols));
    Extents made;
    for (const char label : batch + left) made.push_back(extent_of(a, Labels(1, label)));
    for (const char label : right) made.push_back(extent_of(b, Labels(1, label)));
    Labels labels = batch + left + right;
    if (labels.empty()) labels = std::string(1, kNothing), made = {1};
    Pending pending = multiplied(std::move(of_a), std::move(of_b));
    const int result = graph_.emit_inner(node_, "product", std::move(pending.kind), std::move(pending.inputs));
    return {labels, reshaped(node_, graph_, result, std::move(made))};
  }

  // The tensor `whole` times an operand that has some of its labels.
  Labelled scaled(const Labelled& whole, const Labelled& part, const Labels& labels) {
    Operand factor =
        transposed(node_, graph_, part.operand, order_of(part.labels, filtered(whole.labels, labels, true)));
    Extents shape = shape_of(graph_, whole.operand);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!has_label(labels, whole.labels[i])) shape[i] = 1;
    }
    factor = reshaped(node_, graph_, std::move(factor), std::move(shape));
    const int x = std::get<int>(whole.operand);
    Combine op{Combination::multiply};
    std::vector<int> inputs = {x};
    if (auto* const constant = std::get_if<ConstantOperand>(&factor)) {
      op.constant = std::move(*constant);
    } else {
      inputs.push_back(std::get<int>(factor));
    }
    return {whole.labels, graph_.emit_inner(node_, "scaled", std::move(op), std::move(inputs))};
  }

  static constexpr char kNothing = '#';  // of an axis with one value that has no label

  const Node& node_;
  GraphBuilder& graph_;
  Labels output_;
  std::vector<Labelled> operands_;
};

}  // namespace

void convert_einsum(const Node& node, GraphBuilder& graph) { EinsumConverter(node, graph).run(); }

}  // namespace burin
