#include "test/models/model_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/program_tasks.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/error.h"

using namespace burin;

namespace burin_test {
namespace {

ModelCase conv(bool fitted, const char* network, int in, int out, int size, int filter, int stride, double density,
               bool residual = false) {
  const std::string name =
      fmt::format("{} {}x{} {}->{}@{}{} {:g} %{}", network, filter, filter, in, out, size,
                  stride == 1 ? "" : fmt::format("/{}", stride), 100 * (1 - density), residual ? " residual" : "");
  return {convolution_case(name, in, out, size, filter, stride, filter / 2, density, residual), fitted};
}

ModelCase depthwise(bool fitted, const char* network, int channels, int size, int filter, int stride) {
  const std::string name = fmt::format("{} depthwise {}x{} {}@{}{}", network, filter, filter, channels, size,
                                       stride == 1 ? "" : fmt::format("/{}", stride));
  return {convolution_case(name, channels, channels, size, filter, stride, filter / 2, 1, false, channels), fitted};
}

ModelCase window(bool fitted, const char* name, PoolKind kind, int kernel, int stride, int pad, int channels,
                 int size) {
  Pool op;
  op.kind = kind;
  op.kernel_h = op.kernel_w = kernel;
  op.stride_h = op.stride_w = stride;
  op.pad = {pad, pad, pad, pad};
  return {{name, op, {{channels, size, size}}}, fitted};
}

ModelCase linear(bool fitted, const char* name, int in, int out, double density) {
  Linear op;
  op.in_features = in;
  op.out_features = out;
  op.weights = random_tensor(std::int64_t{in} * out, 5);
  const std::vector<float> chosen = random_tensor(std::int64_t{in} * out, 6);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if ((chosen[i] + 1) / 2 >= density) op.weights[i] = 0;
  }
  op.bias = random_tensor(out, 7);
  return {{name, op, {{in}}}, fitted};
}

ModelCase plain(bool fitted, const char* name, OperatorKind kind, std::vector<std::vector<std::int64_t>> inputs) {
  return {{name, std::move(kind), std::move(inputs)}, fitted};
}

// A matrix of the model times one of each image.
MatMul by_constant(std::vector<std::int64_t> shape) {
  MatMul op;
  op.constant = ConstantOperand{shape, random_tensor(shape[0] * shape[1], 8)};
  op.constant_first = true;
  return op;
}

ChannelAffine affine(int channels) {
  ChannelAffine op;
  op.scale = random_tensor(channels, 3);
  op.shift = random_tensor(channels, 4);
  return op;
}

}  // namespace

std::vector<ModelCase> model_cases() {
  constexpr bool kFitted = true, kHeld = false;
  return {
      conv(kFitted, "resnet", 64, 256, 56, 1, 1, 0.1, true),
      conv(kFitted, "resnet", 256, 64, 56, 1, 1, 0.1),
      conv(kFitted, "resnet", 128, 512, 28, 1, 1, 0.1, true),
      conv(kFitted, "resnet", 512, 128, 28, 1, 1, 0.1),
      conv(kFitted, "resnet", 256, 1024, 14, 1, 1, 0.1, true),
      conv(kFitted, "resnet", 1024, 256, 14, 1, 1, 0.1),
      conv(kFitted, "resnet", 512, 2048, 7, 1, 1, 0.1, true),
      conv(kFitted, "resnet", 2048, 512, 7, 1, 1, 0.1),
      conv(kFitted, "resnet", 256, 512, 56, 1, 2, 0.1),
      conv(kFitted, "resnet", 1024, 2048, 14, 1, 2, 0.1),
      conv(kFitted, "resnet", 64, 64, 56, 3, 1, 0.1),
      conv(kFitted, "resnet", 128, 128, 28, 3, 1, 0.1),
      conv(kFitted, "resnet", 256, 256, 14, 3, 1, 0.1),
      conv(kFitted, "resnet", 512, 512, 7, 3, 1, 0.1),
      conv(kFitted, "resnet", 256, 256, 28, 3, 2, 0.1),
      conv(kFitted, "resnet", 128, 128, 28, 3, 1, 0.03),
      conv(kFitted, "resnet", 512, 512, 7, 3, 1, 0.03),
      conv(kFitted, "resnet", 128, 128, 28, 3, 1, 0.4),
      conv(kFitted, "resnet", 3, 64, 224, 7, 2, 1),
      conv(kFitted, "mobilenet", 512, 512, 14, 1, 1, 0.1),
      conv(kFitted, "mobilenet", 512, 1024, 7, 1, 1, 0.33),
      conv(kFitted, "squeezenet", 3, 96, 227, 7, 2, 0.9),
      depthwise(kFitted, "mobilenet", 32, 112, 3, 1),
      depthwise(kFitted, "mobilenet", 128, 56, 3, 2),
      depthwise(kFitted, "mobilenet", 512, 14, 3, 1),
      depthwise(kFitted, "mobilenet", 1024, 7, 3, 1),
      conv(kHeld, "googlenet", 192, 64, 28, 1, 1, 0.1),
      conv(kHeld, "googlenet", 96, 128, 28, 3, 1, 0.1),
      conv(kHeld, "googlenet", 16, 32, 28, 5, 1, 0.1),
      conv(kHeld, "googlenet", 480, 192, 14, 1, 1, 0.1),
      conv(kHeld, "googlenet", 112, 224, 14, 3, 1, 0.1),
      conv(kHeld, "googlenet", 832, 384, 7, 1, 1, 0.1),
      conv(kHeld, "googlenet", 192, 384, 7, 3, 1, 0.1),
      conv(kHeld, "googlenet", 48, 128, 7, 5, 1, 0.1),
      conv(kHeld, "densenet", 256, 128, 28, 1, 1, 0.1),
      conv(kHeld, "densenet", 128, 32, 14, 3, 1, 0.1),
      conv(kHeld, "densenet", 128, 32, 7, 3, 1, 0.05),
      conv(kHeld, "densenet", 512, 256, 28, 1, 1, 0.05),
      conv(kHeld, "mobilenetv2", 24, 144, 56, 1, 1, 0.2),
      conv(kHeld, "mobilenetv2", 144, 32, 28, 1, 1, 0.2),
      conv(kHeld, "mobilenetv2", 160, 960, 7, 1, 1, 0.1),
      conv(kHeld, "vgg", 128, 256, 56, 3, 1, 0.05),
      conv(kHeld, "vgg", 512, 512, 14, 3, 1, 0.05),
      conv(kHeld, "vgg", 3, 64, 224, 3, 1, 1),
      conv(kHeld, "inception", 448, 384, 8, 3, 1, 0.2),
      depthwise(kHeld, "mobilenetv2", 144, 56, 3, 1),
      depthwise(kHeld, "mobilenetv2", 960, 7, 3, 1),
      depthwise(kHeld, "mnasnet", 240, 14, 5, 1),
      depthwise(kHeld, "mobilenetv2", 192, 28, 3, 2),
      window(kFitted, "resnet pool", PoolKind::max, 3, 2, 1, 64, 112),
      window(kFitted, "squeezenet pool", PoolKind::max, 3, 2, 0, 256, 27),
      window(kHeld, "googlenet pool", PoolKind::max, 3, 1, 1, 480, 14),
      window(kHeld, "vgg pool", PoolKind::max, 2, 2, 0, 128, 112),
      window(kHeld, "inception average", PoolKind::average, 3, 1, 1, 288, 35),
      plain(kFitted, "resnet average", GlobalAveragePool{}, {{2048, 7, 7}}),
      plain(kHeld, "mobilenet average", GlobalAveragePool{}, {{1024, 14, 14}}),
      plain(kFitted, "densenet affine", affine(256), {{256, 56, 56}}),
      plain(kHeld, "densenet affine late", affine(640), {{640, 14, 14}}),
      plain(kFitted, "relu", Elementwise{ElementFunction::relu}, {{256, 56, 56}}),
      plain(kHeld, "silu", Elementwise{ElementFunction::silu}, {{192, 28, 28}}),
      plain(kFitted, "residual", Combine{}, {{256, 56, 56}, {256, 56, 56}}),
      plain(kHeld, "squeeze", Combine{Combination::multiply}, {{672, 14, 14}, {672, 1, 1}}),
      plain(kFitted, "alexnet lrn", Lrn{5, 1e-4F, 0.75F, 1}, {{96, 55, 55}}),
      plain(kHeld, "googlenet lrn", Lrn{5, 1e-4F, 0.75F, 1}, {{192, 56, 56}}),
      plain(kFitted, "softmax", Softmax{}, {{1000}}),
      plain(kHeld, "segmentation softmax", Softmax{}, {{21, 65, 65}}),
      plain(kFitted, "transpose", Transpose{{1, 2, 0}}, {{256, 56, 56}}),
      plain(kHeld, "pad", Pad{{1, 1, 1, 1}, 0}, {{128, 28, 28}}),
      plain(kFitted, "matmul vit scores", MatMul{{1, 0, 2}, {1, 2, 0}}, {{197, 6, 64}, {197, 6, 64}}),
      plain(kFitted, "matmul vit values", MatMul{{}, {1, 0, 2}}, {{6, 197, 197}, {197, 6, 64}}),
      plain(kFitted, "matmul windows scores", MatMul{{}, {0, 1, 3, 2}}, {{64, 2, 49, 32}, {64, 2, 49, 32}}),
      plain(kFitted, "matmul square product", MatMul{}, {{1, 512, 512}, {1, 512, 512}}),
      plain(kFitted, "matmul few rows product", MatMul{}, {{8, 4, 256}, {8, 256, 1024}}),
      plain(kHeld, "matmul yolo scores", MatMul{{0, 2, 1}, {}}, {{4, 32, 400}, {4, 32, 400}}),
      plain(kHeld, "matmul yolo values", MatMul{{}, {0, 2, 1}}, {{4, 64, 400}, {4, 400, 400}}),
      plain(kHeld, "matmul mixer tokens", by_constant({384, 196}), {{196, 512}}),
      plain(kHeld, "matmul small product", MatMul{}, {{2, 16, 16}, {2, 16, 16}}),
      linear(kFitted, "resnet linear", 2048, 1000, 1),
      linear(kFitted, "alexnet linear", 9216, 4096, 0.09),
      linear(kHeld, "vgg linear", 4096, 4096, 0.1),
      linear(kHeld, "googlenet linear", 1024, 1000, 1),
      linear(kHeld, "lenet linear", 500, 10, 0.1),
  };
}

std::string to_string(const ModelForm& form) {
  return fmt::format("{}:{}", to_string(form.precision), to_string(form.layout));
}

std::vector<ModelForm> model_forms() {
  return {{},
          {Precision::tf32, TensorLayout::nchw},
          {Precision::tf32, TensorLayout::n4c8hw},
          {Precision::tf32, TensorLayout::nhwc4},
          {Precision::fp16, TensorLayout::nchw},
          {Precision::fp16, TensorLayout::nchw8},
          {Precision::fp16, TensorLayout::n8c8hw},
          {Precision::fp16, TensorLayout::nhwc8}};
}

ModelForm parse_form(std::string_view text) {
  const std::vector<ModelForm> forms = model_forms();
  const auto found = std::ranges::find(forms, text, [](const ModelForm& form) { return to_string(form); });
  if (found == forms.end()) fail(ErrorKind::usage, "'{}' is no form of a convolution, such as fp16:nchw8", text);
  return *found;
}

bool suits(const ModelForm& form, int batch) { return batch % images_together(form.layout) == 0; }

Task task_in_form(const Network& network, const ModelForm& form, int batch, const std::string& arch) {
  if (form.is_plain()) return whole_task(network, batch, arch);
  CompileOptions options;
  options.archs = {arch};
  options.precisions.all = form.precision;
  options.layout = form.layout;
  const Operator& op = network.operators.back();
  const auto& layer = network.layers.at(static_cast<std::size_t>(std::get<Convolution>(op.kind).layer));
  return task_of(op, layer, batch, options);
}

std::string print(const MeasuredTime& time) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{:.3f}\n", time.op, to_string(time.form), time.batch, time.provider,
                     time.plan, time.us);
}

std::vector<MeasuredTime> parse_times(std::string_view text) {
  std::vector<MeasuredTime> times;
  bool header = false;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    if (whole.empty() || whole.front() == '#') continue;
    if (!header) {
      if (whole != kTimesHeader) fail(ErrorKind::bad_input, "line {}: expected the header '{}'", line, kTimesHeader);
      header = true;
      continue;
    }
    std::vector<std::string_view> fields;
    for (std::string_view rest = whole;;) {
      fields.push_back(rest.substr(0, rest.find('\t')));
      if (fields.back().size() == rest.size()) break;
      rest.remove_prefix(fields.back().size() + 1);
    }
    MeasuredTime time;
    const auto number = [&](std::string_view field, auto& value) {
      const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
      return error == std::errc{} && end == field.data() + field.size() && value > 0;
    };
    if (fields.size() != 6 || !number(fields[2], time.batch) || !number(fields[5], time.us)) {
      fail(ErrorKind::bad_input, "line {}: expected six fields, with a batch and a time", line);
    }
    time.op = fields[0];
    try {
      time.form = parse_form(fields[1]);
    } catch (const Error& error) {
      fail(ErrorKind::bad_input, "line {}: {}", line, error.what());
    }
    time.provider = fields[3];
    time.plan = fields[4];
    times.push_back(std::move(time));
  }
  return times;
}

}  // namespace burin_test
