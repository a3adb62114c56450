#include "ir/library_call.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/faults.h"
#include "ir/kernel.h"
#include "ir/text_lines.h"

namespace burin {
namespace {

constexpr std::string_view kLibraryKey = "library: ", kOwnKey = "own: ";

// The list of lines that serves to print and to parse.
template <typename Lines, typename Call>
void lines_of(Lines& lines, Call& call) {
  lines.line("library", call.library);
  lines.line("algorithm", call.algorithm);
  lines.line("factors", call.factors);
  lines.line("workspace_limit", call.workspace_limit, "bytes");
}

void check_layer(Faults& faults, const ConvShape& shape) {
  const Padding& pad = shape.pad;
  if (pad.top != pad.bottom || pad.left != pad.right) {
    faults.add("the layer pads its sides by {}, and the library pads opposite sides alike", padding_text(pad));
  }
  if (const std::optional<Elementwise>& function = shape.epilogue.function; function && !is_relu(function)) {
    faults.add("the layer ends in {}, and the library knows relu alone", describe(*function));
  }
  if (shape.epilogue.residual_last) {
    faults.add("the layer adds its residual behind its function, and the library's call before it");
  }
  if (shape.epilogue.pool) faults.add("the layer ends in a pool, which the library's call has not");
}

void check_tensor(Faults& faults, const KernelTensor& tensor) {
  const std::string_view role = to_string(tensor.role);
  if (tensor.format() != TensorFormat{ElementType::f32, TensorLayout::nchw} || !tensor.is_image()) {
    return faults.add("its {} is not float images in nchw", role);
  }
  // Their distance, in words, is one that the library can count: kMaxImageBytes.
  if (tensor.runs != 1) faults.add("images of its {} do not lie in one piece", role);
}

void check_form(Faults& faults, const KernelForm& form) {
  for (const KernelTensor& tensor : form.tensors) {
    if (tensor.map) faults.add("its own code has activity maps, which the library knows nothing of");
    if (tensor.exists() && (tensor.is_read() || tensor.role == TensorRole::output)) check_tensor(faults, tensor);
  }
}

// Behind the end of the line that begins with `key`, and where that begins; nothing where there is none.
struct Line {
  std::size_t begin = 0, end = 0;
};
std::optional<Line> find_line(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (text.substr(begin).starts_with(key)) return Line{begin, std::min(end + 1, text.size())};
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

bool is_relu(const std::optional<Elementwise>& function) {
  return function && function->function == ElementFunction::relu;
}

bool can_call(const ConvShape& shape) {
  Faults faults;
  check_layer(faults, shape);
  return faults.take().empty();
}

std::vector<std::string> verify(const LibraryCall& call, const ConvShape& shape, const KernelForm& form) {
  Faults faults;
  if (call.factors != FactorType::f32 && call.factors != FactorType::tf32) {
    faults.add("factors is {}; a library's call has fp32 or tf32", to_string(call.factors));
  }
  faults.require_range("workspace_limit", call.workspace_limit, 0, kMaxCallWorkspaceBytes);
  check_layer(faults, shape);
  check_form(faults, form);
  return faults.take();
}

std::string describe(const LibraryCall& call) {
  return fmt::format("{} {}{}", to_string(call.library), to_string(call.algorithm),
                     call.factors == FactorType::f32 ? "" : fmt::format(" {}", to_string(call.factors)));
}

std::string describe(const LibraryCall& call, const std::string& own) {
  return fmt::format("{}; own: {}", describe(call), own);
}

std::string print(const LibraryPlan& plan) {
  LinePrinter lines;
  lines.text = fmt::format("# {}, or {} where it cannot be called\n", describe(plan.call), plan.provider);
  lines_of(lines, plan.call);
  lines.line("own", plan.provider);
  return lines.text + plan.plan;
}

LibraryPlan parse_library_plan(std::string_view source) {
  const std::optional<Line> own = find_line(source, kOwnKey);
  if (!own) fail(ErrorKind::bad_input, "the plan of a library's call: the line 'own: PROVIDER' is missing");
  LineReader text(source.substr(0, own->end), "plan");
  LibraryPlan plan;
  lines_of(text, plan.call);
  text.line("own", plan.provider);
  text.finish();
  plan.plan = source.substr(own->end);
  return plan;
}

bool is_library_plan(std::string_view text) {
  const std::optional<Line> library = find_line(text, kLibraryKey);
  const std::optional<Line> own = find_line(text, kOwnKey);
  return library && own && library->begin < own->begin;
}

}  // namespace burin
