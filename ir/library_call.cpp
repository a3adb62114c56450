#include "ir/library_call.h"

#include <algorithm>
#include <array>

#include "ir/call_providers.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/kernel.h"
#include "ir/text_lines.h"

namespace burin {
namespace {

constexpr std::string_view kLibraryKey = "library: ", kOwnKey = "own: ";

// A call that is printed has an algorithm of the library, one that is read gets the first.
void set_library(const LibraryCall&, Library) {}
void set_library(LibraryCall& call, Library library) {
  if (library == Library::cudnn) {
    call.algorithm = ConvolutionAlgorithm();
  } else {
    call.algorithm = ProductAlgorithm();
  }
}

// The list of lines that serves to print and to parse.
template <typename Lines, typename Call>
void lines_of(Lines& lines, Call& call) {
  Library library = call.library();
  lines.line("library", library);
  set_library(call, library);
  std::visit([&](auto& algorithm) { lines.line("algorithm", algorithm); }, call.algorithm);
  lines.line("factors", call.factors);
  lines.line("workspace_limit", call.workspace_limit, "bytes");
  if (library == Library::cublaslt) lines.line("alignment", call.alignment, "bytes");
}

std::int64_t pixels_of(const ConvShape& shape) { return std::int64_t{shape.conv_h()} * shape.conv_w(); }

void check_window(Faults& faults, Library library, const ConvShape& shape, const TensorFormat& format) {
  const Padding& pad = shape.pad;
  if (library == Library::cudnn) {
    if (pad.top != pad.bottom || pad.left != pad.right) {
      faults.add("the layer pads its sides by {}, and the library pads opposite sides alike", padding_text(pad));
    }
    return;
  }
  if (shape.kernel_h != 1 || shape.kernel_w != 1 || shape.stride_h != 1 || shape.stride_w != 1 || pad != Padding() ||
      shape.groups != 1) {
    faults.add("the layer is {}, and a matrix product is 1x1, stride 1, pad 0, without groups", window_text(shape));
  } else if (shape.epilogue.bias && shape.epilogue.residual && pixels_of(shape) > 1 &&
             !has_channels_last(format.layout)) {
    faults.add("the layer has a bias and a residual, and a product of images of several pixels adds one tensor");
  }
}

void check_layer(Faults& faults, Library library, const ConvShape& shape, const TensorFormat& format) {
  check_window(faults, library, shape, format);
  if (const std::optional<Elementwise>& function = shape.epilogue.function; function && !is_relu(function)) {
    faults.add("the layer ends in {}, and the library knows relu alone", describe(*function));
  }
  if (shape.epilogue.residual_last) {
    faults.add("the layer adds its residual behind its function, and the library's call before it");
  }
  if (shape.epilogue.pool) faults.add("the layer ends in a pool, which the library's call has not");
}

// `wanted`: channels, rows and columns of an image.
void check_tensor(Faults& faults, Library library, const KernelTensor& tensor, const TensorFormat& format,
                  const std::vector<std::int64_t>& wanted) {
  const std::string_view role = to_string(tensor.role);
  // A product asks for values, however they are told apart where none fill up channels.
  const bool counts = library == Library::cublaslt && tensor.format().is_plain();
  const bool is_whole = tensor.words() == image_words(tensor.format(), wanted);
  if (!can_call_on(tensor.format()) || !is_whole || !(counts || tensor.is_image())) {
    return faults.add("its {} is not {}", role,
                      counts ? "float images in nchw" : "images of floats in nchw or nhwc4, or of halves in nhwc8");
  }
  if (tensor.format() != format) {
    faults.add("its {} is {} and its output {}: a library's call has one format", role, to_string(tensor.format()),
               to_string(format));
  }
  // Their distance, in words, is one that the library can count: kMaxImageBytes.
  if (tensor.runs != 1) faults.add("images of its {} do not lie in one piece", role);
}

void check_groups(Faults& faults, const ConvShape& shape, const TensorFormat& format) {
  const int together = channels_together(format.layout);
  if (shape.groups == 1 || (shape.channels_per_group() % together == 0 && shape.outputs_per_group() % together == 0)) {
    return;
  }
  faults.add("the layer's {} groups have channels that are no multiples of {}, as {} fills them up", shape.groups,
             together, to_string(format.layout));
}

void check_factors(Faults& faults, const LibraryCall& call, const TensorFormat& format) {
  if (format.element != ElementType::f32) {
    if (call.factors == factors_of(format.element)) return;
    return faults.add("factors is {}; a library's call on {} has {}", to_string(call.factors), to_string(format),
                      to_string(factors_of(format.element)));
  }
  if (call.factors == FactorType::f32 || call.factors == FactorType::tf32) return;
  faults.add("factors is {}; a library's call has fp32 or tf32", to_string(call.factors));
}

void check_form(Faults& faults, Library library, const ConvShape& shape, const KernelForm& form) {
  for (const KernelTensor& tensor : form.tensors) {
    if (tensor.map) faults.add("its own code has activity maps, which the library knows nothing of");
    const bool is_input = tensor.role == TensorRole::input;
    if (!tensor.exists() || !(is_input || tensor.role == TensorRole::residual || tensor.role == TensorRole::output)) {
      continue;
    }
    if (is_input) {
      check_tensor(faults, library, tensor, called_format(form), {shape.in_channels, shape.in_h, shape.in_w});
    } else {
      check_tensor(faults, library, tensor, called_format(form), {shape.out_channels, shape.conv_h(), shape.conv_w()});
    }
  }
  for (const TensorRole role : {TensorRole::input, TensorRole::output}) {
    if (!form.has(role) || !form.the(role).exists()) faults.add("it has no {}", to_string(role));
  }
  const KernelTensor* residual = form.find(TensorRole::residual);
  if ((residual != nullptr && residual->exists()) != shape.epilogue.residual) {
    faults.add("the layer has {} residual, and its own code {}", shape.epilogue.residual ? "a" : "no",
               shape.epilogue.residual ? "none" : "one");
  }
}

void check_alignment(Faults& faults, const LibraryCall& call) {
  const int alignment = call.alignment;
  if (alignment < kWordBytes || alignment > kMaxCallAlignment || (alignment & (alignment - 1)) != 0) {
    faults.add("alignment is {}; a library's call has 4, 8 or 16", alignment);
  }
}

// Whether the bias of a channel is there once. In a product of plain images it is there for each pixel.
bool has_bias_of_channels(const LibraryCall& call, const TensorFormat& format) {
  return call.library() == Library::cudnn || has_channels_last(format.layout);
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

bool may_transform(const CallAlgorithm& algorithm) {
  const auto* convolution = std::get_if<ConvolutionAlgorithm>(&algorithm);
  if (convolution == nullptr) return false;
  using enum ConvolutionAlgorithm;
  constexpr std::array kTransforming = {fft, fft_tiling, winograd, winograd_nonfused};
  return engine_number(*convolution) || std::ranges::find(kTransforming, *convolution) != kTransforming.end();
}

std::string_view to_string(const CallAlgorithm& algorithm) {
  return std::visit([](auto named) { return to_string(named); }, algorithm);
}

std::optional<CallAlgorithm> parse_algorithm(Library library, std::string_view name) {
  if (library == Library::cudnn) return parse_enum<ConvolutionAlgorithm>(name);
  return parse_enum<ProductAlgorithm>(name);
}

std::string known_algorithms(Library library) {
  return library == Library::cudnn ? known_names<ConvolutionAlgorithm>() : known_names<ProductAlgorithm>();
}

bool can_call(Library library, const ConvShape& shape, const TensorFormat& format) {
  Faults faults;
  check_layer(faults, library, shape, format);
  return faults.take().empty();
}

std::vector<std::string> verify(const LibraryCall& call, const ConvShape& shape, const KernelForm& form) {
  Faults faults;
  const TensorFormat format = called_format(form);
  check_factors(faults, call, format);
  if (const auto* which = std::get_if<ConvolutionAlgorithm>(&call.algorithm);
      which != nullptr && engine_number(*which) && call.factors == FactorType::f32) {
    faults.add("{} may round floats to TF32, and factors is fp32", to_string(call.algorithm));
  }
  check_groups(faults, shape, format);
  faults.require_range("workspace_limit", call.workspace_limit, 0, kMaxCallWorkspaceBytes);
  check_alignment(faults, call);
  check_layer(faults, call.library(), shape, format);
  check_form(faults, call.library(), shape, form);
  return faults.take();
}

KernelForm form_with_call(KernelForm form, const LibraryCall& call) {
  for (KernelTensor& tensor : form.tensors) {
    const bool is_called = tensor.is_read() || tensor.role == TensorRole::output;
    if (is_called && tensor.exists()) tensor.alignment = std::max(tensor.alignment, call.alignment);
  }
  return form;
}

bool can_call_on(const TensorFormat& format) { return format.is_plain() || has_channels_last(format.layout); }

TensorFormat called_format(const KernelForm& form) {
  const KernelTensor* output = form.find(TensorRole::output);
  return output == nullptr ? TensorFormat() : output->format();
}

ConvShape filled_shape(const ConvShape& shape, const TensorFormat& format) {
  ConvShape filled = shape;
  if (has_channels_last(format.layout)) {
    filled.in_channels = static_cast<int>(channels_side_by_side(format.layout, shape.in_channels));
    filled.out_channels = static_cast<int>(channels_side_by_side(format.layout, shape.out_channels));
  }
  return filled;
}

std::int64_t bias_elements(const LibraryCall& call, const ConvShape& shape, const TensorFormat& format) {
  // A call of cuDNN that fuses adds one, if of zeros.
  if (call.library() != Library::cudnn && !shape.epilogue.bias) return 0;
  return has_bias_of_channels(call, format) ? filled_shape(shape, format).out_channels : shape.conv_elements();
}

std::int64_t library_bytes(const LibraryCall& call, const ConvShape& shape, const TensorFormat& format) {
  return (filled_shape(shape, format).weight_elements() + bias_elements(call, shape, format)) *
         bytes_of(format.element);
}

LibraryNumbers library_numbers(const LibraryCall& call, const ConvLayer& layer, const TensorFormat& format) {
  const ConvShape &shape = layer.shape, filled = filled_shape(shape, format);
  const auto channels = static_cast<std::size_t>(shape.out_channels);
  const auto each = static_cast<std::size_t>(has_bias_of_channels(call, format) ? 1 : pixels_of(shape));
  LibraryNumbers numbers;
  numbers.biases.resize(static_cast<std::size_t>(bias_elements(call, shape, format)));
  if (!layer.bias.empty()) {
    for (std::size_t i = 0; i < channels * each; ++i) numbers.biases[i] = layer.bias[i / each];
  }
  numbers.weights = layer.weights;
  if (has_channels_last(format.layout)) {
    numbers.weights =
        from_nchw(format.layout, layer.weights, shape.channels_per_group(), shape.kernel_h, shape.kernel_w);
    numbers.weights.resize(static_cast<std::size_t>(filled.weight_elements()));
  }
  return {pack_words(format.element, numbers.weights), pack_words(format.element, numbers.biases)};
}

std::string describe(const LibraryCall& call) {
  return fmt::format("{} {}{}", to_string(call.library()), to_string(call.algorithm),
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

std::optional<Library> library_of(std::string_view provider) {
  if (provider == kCudnnProvider) return Library::cudnn;
  if (provider == kConvCublasProvider || provider == kLinearCublasProvider) return Library::cublaslt;
  return std::nullopt;
}

std::string_view provider_of(const LibraryPlan& plan) {
  if (plan.call.library() == Library::cudnn) return kCudnnProvider;
  return plan.provider.starts_with("linear") ? kLinearCublasProvider : kConvCublasProvider;
}

}  // namespace burin
