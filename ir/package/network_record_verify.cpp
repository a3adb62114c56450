// The rules of a network in a package: what lets the runtime bind pointers and launch without looking further.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/manifest.h"
#include "ir/package/manifest_checks.h"
#include "ir/package/names.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::int64_t kWordBytes = 4;

class NetworkVerifier {
 public:
  NetworkVerifier(const Manifest& manifest, const NetworkRecord& network, std::vector<std::string>& faults)
      : network_(network), faults_(faults) {
    for (const KernelRecord& kernel : manifest.kernels) layers_.emplace(kernel.symbol, &kernel);
    for (const OperatorRecord& record : manifest.operators) operators_.emplace(record.symbol, &record);
  }

  void run() {
    check_arguments("inputs", network_.inputs);
    check_arguments("outputs", network_.outputs);
    if (network_.programs.empty()) fault("network.programs", "is empty: there would be nothing to run");
    int batch = 0;
    for (std::size_t i = 0; i < network_.programs.size(); ++i) {
      const NetworkProgram& program = network_.programs[i];
      const std::string path = fmt::format("network.programs[{}]", i);
      if (program.plan.batch <= batch) fault(path, fmt::format("batch {} follows {}", program.plan.batch, batch));
      batch = program.plan.batch;
      check_program(path, program);
    }
  }

 private:
  void fault(const std::string& path, const std::string& text) { faults_.push_back(path + ": " + text); }

  void check_arguments(const char* which, const std::vector<NetworkArgument>& arguments) {
    if (arguments.empty()) fault(fmt::format("network.{}", which), "is empty");
    std::set<std::string> names;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const NetworkArgument& argument = arguments[i];
      const std::string path = fmt::format("network.{}[{}]", which, i);
      if (argument.name.empty() || argument.name.size() > kMaxNameBytes || !is_plain_text(argument.name)) {
        fault(path + ".name", fmt::format("'{}' is not printable text", printable(argument.name)));
      }
      if (!names.insert(argument.name).second) fault(path + ".name", "is the name of two");
      const auto positive = [](std::int64_t extent) { return extent >= 1 && extent <= kMaxImageBytes; };
      if (argument.shape.empty() || argument.shape.size() > static_cast<std::size_t>(kMaxActivationRank) ||
          !std::ranges::all_of(argument.shape, positive)) {
        fault(path + ".shape", fmt::format("[{}] is not 1 to {} extents from 1 up", fmt::join(argument.shape, ", "),
                                           kMaxActivationRank));
      }
    }
  }

  void check_program(const std::string& path, const NetworkProgram& program) {
    const NetworkPlan& plan = program.plan;
    const std::vector<std::string> plan_faults = verify(plan);
    for (const std::string& text : plan_faults) fault(path + ".plan", text);
    if (program.kernels.size() != plan.steps.size()) {
      fault(path + ".kernels", fmt::format("{} for {} steps", program.kernels.size(), plan.steps.size()));
      return;
    }
    if (!program.options.empty() && program.options.size() != plan.steps.size()) {
      fault(path + ".options", fmt::format("{} for {} steps", program.options.size(), plan.steps.size()));
    }
    for (const std::vector<KernelOption>& options : program.options) {
      for (const KernelOption& option : options) check_option(path + ".options", option);
    }
    if (!plan_faults.empty()) return;
    check_buffers(path, plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const std::string& symbol = program.kernels[i];
      const std::string at = fmt::format("{}.kernels[{}]", path, i);
      if (const auto layer = layers_.find(symbol); layer != layers_.end()) {
        check_layer(at, plan, plan.steps[i], *layer->second);
      } else if (const auto record = operators_.find(symbol); record != operators_.end()) {
        check_operator(at, plan.steps[i], *record->second);
      } else {
        fault(at, fmt::format("'{}' is no kernel of the package", printable(symbol)));
      }
    }
  }

  void check_option(const std::string& path, const KernelOption& option) {
    const std::string& name = option.template_name;
    if (name.empty() || name.size() > kMaxShortTextBytes || !is_plain_text(name)) {
      fault(path, fmt::format("'{}' is not printable text", printable(name)));
    }
    if (!std::isfinite(option.predicted_us)) fault(path, fmt::format("the time of {} is not finite", printable(name)));
  }

  void check_buffers(const std::string& path, const NetworkPlan& plan) {
    std::size_t inputs = 0, outputs = 0;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      const std::string at = fmt::format("{}.plan: buffer {}", path, i);
      if (buffer.element != ElementType::f32) fault(at, "holds no float32 values");
      if (buffer.home == BufferHome::arena) continue;
      const bool input = buffer.home == BufferHome::input;
      ++(input ? inputs : outputs);
      const std::vector<NetworkArgument>& arguments = input ? network_.inputs : network_.outputs;
      const auto index = static_cast<std::size_t>(buffer.argument);  // verify(plan) has seen that it is not negative
      if (index >= arguments.size() || arguments[index].shape != buffer.shape) {
        fault(at, fmt::format("is not the network's {} {}", input ? "input" : "output", buffer.argument));
      }
      if (buffer.layout != TensorLayout::nchw) fault(at, "is an argument, which lies in nchw");
    }
    if (inputs != network_.inputs.size() || outputs != network_.outputs.size()) {
      fault(path + ".plan", fmt::format("has {} inputs and {} outputs, the network {} and {}", inputs, outputs,
                                        network_.inputs.size(), network_.outputs.size()));
    }
  }

  // Whole images of `words` words, `pitch` words apart, in the layout that the kernel has.
  void check_place(const std::string& path, const char* name, const NetworkPlan& plan, const Place& place,
                   TensorLayout layout, int alignment, std::int64_t words, std::int64_t pitch) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(place.buffer)];
    if (buffer.layout != layout) {
      fault(path, fmt::format("its {} lies in {}, and the kernel takes {}", name, to_string(buffer.layout),
                              to_string(layout)));
    }
    if (place.runs != 1 || place.run_bytes != words * kWordBytes || place.image_stride != pitch * kWordBytes) {
      fault(path,
            fmt::format("its {} has images of {} x {} bytes, {} apart, and the kernel takes 1 x {}, {} apart", name,
                        place.runs, place.run_bytes, place.image_stride, words * kWordBytes, pitch * kWordBytes));
    }
    if (place.offset % alignment != 0) {
      fault(path, fmt::format("its {} begins at byte {}, and the kernel takes multiples of {}", name, place.offset,
                              alignment));
    }
  }

  void check_layer(const std::string& path, const NetworkPlan& plan, const Step& step, const KernelRecord& kernel) {
    const ConvShape& shape = kernel.shape;
    const LaunchGeometry& launch = kernel.launch;
    if (!verify(shape).empty()) return;  // said already
    if (launch.input_element != ElementType::f32 || launch.has_activity()) {
      fault(path, "is a kernel of half precision or with activity maps, which networks have none of");
    }
    if (step.reads.size() != (shape.epilogue.residual ? 2U : 1U)) {
      fault(path, fmt::format("its step reads {} tensors", step.reads.size()));
      return;
    }
    const std::int64_t in = image_elements(launch.input_layout, shape.in_channels, shape.in_h, shape.in_w);
    const std::int64_t out = image_elements(launch.output_layout, shape.out_channels, shape.out_h(), shape.out_w());
    const auto pitch = [](std::int64_t words, std::int64_t own) { return words != 0 ? words : own; };
    check_place(path, "input", plan, step.reads[0], launch.input_layout, launch.input_alignment, in, in);
    check_place(path, "output", plan, step.writes, launch.output_layout, launch.output_alignment, out,
                pitch(launch.output_image_words, out));
    if (!shape.epilogue.residual) return;
    const std::int64_t added = image_elements(launch.output_layout, shape.out_channels, shape.conv_h(), shape.conv_w());
    check_place(path, "residual", plan, step.reads[1], launch.output_layout, launch.output_alignment, added,
                pitch(launch.residual_image_words, added));
  }

  void check_words(const std::string& path, const char* name, const Place& place, const OperatorTensor& tensor) {
    const std::int64_t inner = tensor.runs == 1 ? 0 : tensor.run_pitch;
    if (place.image_stride == tensor.image_words * kWordBytes && place.offset == tensor.offset * kWordBytes &&
        place.run_bytes == tensor.run_words * kWordBytes && place.runs == tensor.runs &&
        place.run_stride == inner * kWordBytes) {
      return;
    }
    fault(path, fmt::format("its {} lies elsewhere than where the kernel takes it", name));
  }

  void check_operator(const std::string& path, const Step& step, const OperatorRecord& record) {
    const auto reads = [&](int index) { return index >= 0 && static_cast<std::size_t>(index) < step.reads.size(); };
    if (!reads(record.input) || (record.plan.second.exists() && !reads(record.second))) {
      fault(path, fmt::format("its step reads {} tensors, and the kernel takes others", step.reads.size()));
      return;
    }
    check_words(path, "input", step.reads[static_cast<std::size_t>(record.input)], record.plan.input);
    if (record.plan.second.exists()) {
      check_words(path, "second input", step.reads[static_cast<std::size_t>(record.second)], record.plan.second);
    }
    check_words(path, "output", step.writes, record.plan.output);
  }

  const NetworkRecord& network_;
  std::vector<std::string>& faults_;
  std::map<std::string, const KernelRecord*> layers_;
  std::map<std::string, const OperatorRecord*> operators_;
};

}  // namespace

std::string describe(const std::vector<KernelOption>& options) {
  std::string text;
  for (const KernelOption& option : options) {
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", option.template_name, option.predicted_us);
  }
  return text;
}

void check_network(const Manifest& manifest, std::vector<std::string>& faults) {
  if (manifest.network) {
    NetworkVerifier(manifest, *manifest.network, faults).run();
  } else if (!manifest.operators.empty()) {
    faults.push_back("operators: a package of layers has none");
  }
}

}  // namespace burin
