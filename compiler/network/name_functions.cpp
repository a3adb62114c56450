#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/element_functions.h"
#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {
namespace {

using Samples = std::vector<double>;

// Functions that exporters write as several operators. Of those that are alike, the first counts.
const Elementwise kNamed[] = {
    {ElementFunction::gelu}, {ElementFunction::gelu_tanh},  {ElementFunction::mish},     {ElementFunction::silu},
    {ElementFunction::tanh}, {ElementFunction::hard_swish}, {ElementFunction::softplus}, {ElementFunction::softsign},
};

constexpr std::size_t kMostOperators = 12;  // of one function: ten are the most that are known

// Where functions are compared: dense where they bend, and so far that those are apart which are alike near zero.
Samples points() {
  Samples samples;
  constexpr int kSteps = 64;
  for (int i = -kSteps; i <= kSteps; ++i) {
    samples.push_back(6.0 * i / kSteps + 0.01);
    samples.push_back(0.5 * i / kSteps);
  }
  return samples;
}

class FunctionNamer {
 public:
  explicit FunctionNamer(Network network) : graph_(std::move(network)), points_(points()) {}

  Rewritten run() {
    // The last operator of a function is found first, so that it is named as a whole.
    for (int op = graph_.operators() - 1; op >= 0; --op) {
      if (!graph_.removed(op) && name(op)) ++changes_;
    }
    return {graph_.finish(), changes_};
  }

 private:
  // Operators that compute a function of one tensor, from its reader to the last, which alone is read elsewhere.
  struct Function {
    int input = -1;
    std::set<int> operators;
  };

  static bool is_element_by_element(const OperatorKind& kind) {
    if (const auto* affine = std::get_if<ChannelAffine>(&kind)) {
      return is_uniform(affine->scale) && is_uniform(affine->shift);
    }
    if (has_user_function(kind)) return false;
    const auto* combine = std::get_if<Combine>(&kind);
    return std::holds_alternative<Elementwise>(kind) ||
           (combine != nullptr && (!combine->constant || is_uniform(combine->constant->values)));
  }
  bool is_part(int op) const {
    if (op < 0 || graph_.removed(op) || !is_element_by_element(graph_.op(op).kind)) return false;
    const Operator& part = graph_.op(op);
    return std::ranges::all_of(
        part.inputs, [&](int input) { return graph_.tensor(input).shape == graph_.tensor(part.output).shape; });
  }

  // The function that ends with the operator, of the tensor `input`; nothing when it depends on others.
  std::optional<Function> function_of(int last, int input) const {
    Function function{input, {last}};
    std::vector<int> waiting = {last};
    while (!waiting.empty()) {
      const int op = waiting.back();
      waiting.pop_back();
      for (const int read : graph_.op(op).inputs) {
        if (read == input) continue;
        const int producer = graph_.producer(read);
        if (!is_part(producer) || graph_.is_output(read)) return std::nullopt;
        if (function.operators.insert(producer).second) waiting.push_back(producer);
        if (function.operators.size() > kMostOperators) return std::nullopt;
      }
    }
    for (const int op : function.operators) {
      const auto inside = [&](int reader) { return function.operators.contains(reader); };
      if (op != last && !std::ranges::all_of(graph_.readers(graph_.op(op).output), inside)) return std::nullopt;
    }
    return function;
  }

  // Tensors on the ways to the operator that it may be a function of, the farthest last.
  std::vector<int> sources(int last) const {
    std::vector<int> found;
    std::vector<int> waiting = {last};
    std::set<int> seen = {last};
    while (!waiting.empty() && seen.size() <= kMostOperators) {
      const int op = waiting.back();
      waiting.pop_back();
      for (const int read : graph_.op(op).inputs) {
        if (std::ranges::find(found, read) == found.end()) found.push_back(read);
        const int producer = graph_.producer(read);
        if (is_part(producer) && seen.insert(producer).second) waiting.push_back(producer);
      }
    }
    return found;
  }

  // Its values at all points.
  Samples values_of(const Function& function) const {
    std::map<int, Samples> values = {{function.input, points_}};
    for (const int index : function.operators) {  // ascending: each runs behind those that it reads
      const Operator& op = graph_.op(index);
      const Samples& a = values.at(op.inputs[0]);
      Samples made(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (const auto* element = std::get_if<Elementwise>(&op.kind)) {
          made[i] = reference_element(*element, a[i]);
        } else if (const auto* affine = std::get_if<ChannelAffine>(&op.kind)) {
          made[i] = a[i] * affine->scale.front() + affine->shift.front();
        } else {
          const auto& combine = std::get<Combine>(op.kind);
          const double b = combine.constant ? combine.constant->values.front() : values.at(op.inputs[1])[i];
          made[i] = combine.swapped ? reference_combination(combine, b, a[i]) : reference_combination(combine, a[i], b);
        }
        if (const Elementwise* then = then_of(op.kind)) made[i] = reference_element(*then, made[i]);
      }
      values[op.output] = std::move(made);
    }
    return values.at(graph_.op(*function.operators.rbegin()).output);
  }

  std::optional<Elementwise> named(const Samples& values) const {
    constexpr double kTolerance = 2e-6;  // files write constants with more or fewer digits
    for (const Elementwise& function : kNamed) {
      bool same = true;
      for (std::size_t i = 0; same && i < points_.size(); ++i) {
        const double wanted = reference_element(function, points_[i]);
        same = std::abs(values[i] - wanted) <= kTolerance * (1 + std::abs(points_[i]));
      }
      if (same) return function;
    }
    return std::nullopt;
  }

  bool name(int last) {
    if (!is_part(last)) return false;
    const std::vector<int> all = sources(last);
    // The one of which most of it is a function.
    for (auto source = all.rbegin(); source != all.rend(); ++source) {
      const std::optional<Function> function = function_of(last, *source);
      if (!function || function->operators.size() < 2) continue;
      const std::optional<Elementwise> known = named(values_of(*function));
      if (!known) continue;
      const Operator& op = graph_.op(last);
      Operator by{op.name, *known, {*source}, op.output};
      for (const int part : function->operators) {
        if (part != last) graph_.remove(part);
      }
      graph_.replace(last, std::move(by));
      return true;
    }
    return false;
  }

  GraphEdit graph_;
  Samples points_;
  int changes_ = 0;
};

}  // namespace

Rewritten name_functions(Network network) { return FunctionNamer(std::move(network)).run(); }

}  // namespace burin
