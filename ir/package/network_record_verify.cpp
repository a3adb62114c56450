// The rules of a network in a package: what lets the runtime bind pointers and launch without looking further.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/manifest.h"
#include "ir/package/manifest_checks.h"
#include "ir/package/names.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class NetworkVerifier {
 public:
  NetworkVerifier(const Manifest& manifest, const NetworkRecord& network, std::vector<std::string>& faults)
      : network_(network), faults_(faults) {
    for (const Kernel& kernel : manifest.kernels) kernels_.emplace(kernel.symbol, &kernel);
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
      if (const auto kernel = kernels_.find(symbol); kernel != kernels_.end()) {
        check_kernel(at, plan, plan.steps[i], kernel->second->form);
      } else {
        fault(at, fmt::format("'{}' is no kernel of the package", printable(symbol)));
      }
    }
  }

  void check_option(const std::string& path, const KernelOption& option) {
    const std::string& name = option.provider;
    if (name.empty() || name.size() > kMaxShortTextBytes || !is_plain_text(name)) {
      fault(path, fmt::format("'{}' is not printable text", printable(name)));
    }
    if (!std::isfinite(option.us)) fault(path, fmt::format("the time of {} is not finite", printable(name)));
  }

  void check_buffers(const std::string& path, const NetworkPlan& plan) {
    std::size_t inputs = 0, outputs = 0;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      const std::string at = fmt::format("{}.plan: buffer {}", path, i);
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

  // What a kernel reads or writes there is what lies there.
  void check_place(const std::string& path, const NetworkPlan& plan, const Place& place, const KernelTensor& tensor) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(place.buffer)];
    const std::string_view name = to_string(tensor.role);
    if (buffer.layout != tensor.layout || buffer.element != tensor.element) {
      fault(path, fmt::format("its {} lies in {} as {}, and the kernel takes {} as {}", name, to_string(buffer.layout),
                              to_string(buffer.element), to_string(tensor.layout), to_string(tensor.element)));
    }
    const Place wanted = {place.buffer,
                          place.offset,
                          tensor.image_words * kWordBytes,
                          tensor.run_words * kWordBytes,
                          tensor.runs,
                          tensor.run_pitch * kWordBytes};
    if (place != wanted) {
      fault(path, fmt::format("its {} has images of {} x {} bytes, {} apart, and the kernel takes {} x {}, {} apart",
                              name, place.runs, place.run_bytes, place.image_stride, wanted.runs, wanted.run_bytes,
                              wanted.image_stride));
    }
    if (place.offset % tensor.alignment != 0) {
      fault(path, fmt::format("its {} begins at byte {}, and the kernel takes multiples of {}", name, place.offset,
                              tensor.alignment));
    }
  }

  void check_kernel(const std::string& path, const NetworkPlan& plan, const Step& step, const KernelForm& form) {
    std::set<int> read;
    for (const KernelTensor& tensor : form.tensors) {
      if (!tensor.exists()) continue;
      if (tensor.role == TensorRole::output) check_place(path, plan, step.writes, tensor);
      if (tensor.role != TensorRole::input && tensor.role != TensorRole::residual) continue;
      if (static_cast<std::size_t>(tensor.argument) < step.reads.size()) {
        check_place(path, plan, step.reads[static_cast<std::size_t>(tensor.argument)], tensor);
      }
      read.insert(tensor.argument);
    }
    if (read.size() != step.reads.size() || *read.rbegin() + 1 != static_cast<int>(read.size())) {
      fault(path, fmt::format("its step reads {} tensors, and the kernel takes others", step.reads.size()));
    }
    if (form.has_maps()) fault(path, "is a kernel with activity maps, which networks have none of");
  }

  const NetworkRecord& network_;
  std::vector<std::string>& faults_;
  std::map<std::string, const Kernel*> kernels_;
};

}  // namespace

std::string describe(const std::vector<KernelOption>& options) {
  std::string text;
  for (const KernelOption& option : options) {
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", option.provider, option.us);
  }
  return text;
}

void check_network(const Manifest& manifest, std::vector<std::string>& faults) {
  if (manifest.network) {
    NetworkVerifier(manifest, *manifest.network, faults).run();
  }
}

}  // namespace burin
