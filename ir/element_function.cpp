#include "ir/element_function.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/error.h"
#include "ir/faults.h"
#include "ir/printable.h"

namespace burin {

std::string describe(const Elementwise& op) {
  if (op.is_user() && op.user != nullptr) return op.user->name;
  std::string text(to_string(op.function));
  using enum ElementFunction;
  const bool has_number =
      op.function == leaky_relu || op.function == celu || op.function == thresholded_relu || op.function == power;
  if (has_number) text += fmt::format(" {}", op.alpha);
  if (op.function == elu) text += fmt::format(" {} and {}", op.alpha, op.beta);
  if (op.function == hard_sigmoid) text += fmt::format(" {} x + {}", op.alpha, op.beta);
  if (op.function == quantize) text += fmt::format(" by {}, {} to {}", op.alpha, op.beta, op.beta + kQuantizedSteps);
  if (op.function == within) text += fmt::format(" {} to {}", op.alpha, op.beta);
  if (op.function == shrink) text += fmt::format(" beyond {} by {}", op.alpha, op.beta);
  if (op.function == clip) text += fmt::format(" {} to {}", op.alpha, op.beta);
  return text;
}

std::vector<std::string> verify_function(const std::optional<Elementwise>& function) {
  Faults faults;
  if (!function) return {};
  if (!is_named(function->function)) {
    faults.add("function is {}, allowed is one of {}", static_cast<int>(function->function),
               known_names<ElementFunction>());
  }
  if (function->is_user() != (function->user != nullptr)) faults.add("it is a user's function, or names one, alone");
  if (function->user != nullptr && function->user->inputs != 1) {
    faults.add("operator {} has {} inputs, a function has one", in_quotes(function->user->name),
               function->user->inputs);
  }
  if (!std::isfinite(function->alpha)) faults.add("alpha is {}, it must be finite", function->alpha);
  if (!std::isfinite(function->beta)) faults.add("beta is {}, it must be finite", function->beta);
  if (function->function == ElementFunction::quantize && !(std::isnormal(function->alpha) && function->alpha > 0)) {
    faults.add("it quantizes by a scale of {}, which must be above zero and a normal number", function->alpha);
  }
  return faults.take();
}

std::optional<Elementwise> function_of(Activation activation, float leaky_slope) {
  constexpr float kSix = 6;
  switch (activation) {
    case Activation::none:
      return std::nullopt;
    case Activation::relu:
      return Elementwise{ElementFunction::relu};
    case Activation::relu6:
      return Elementwise{ElementFunction::clip, 0, kSix};
    case Activation::leaky_relu:
      return Elementwise{ElementFunction::leaky_relu, leaky_slope};
    case Activation::sigmoid:
      return Elementwise{ElementFunction::sigmoid};
    case Activation::silu:
      return Elementwise{ElementFunction::silu};
  }
  fail_internal(__FILE__, __LINE__, "an activation without a function");
}

}  // namespace burin
