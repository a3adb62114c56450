#include "compiler/execute/executor.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "compiler/assemble/locate.h"
#include "compiler/make_kernel.h"
#include "ir/error.h"
#include "ir/text.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/launch_plan.h"
#include "runtime/library/library_handle.h"

namespace burin {
namespace {

class HostExecutor : public Executor {
 public:
  HostExecutor(const Package& package, int jobs, HostLaunchers launchers, HostFunctions functions)
      : programs_(
            package, [&](const Kernel& kernel) { return rebuild_module(package, kernel); }, jobs, std::move(launchers),
            std::move(functions)) {
    const auto calls =
        std::ranges::count_if(package.manifest.kernels, [](const Kernel& k) { return k.call.has_value(); });
    if (calls == 0) return;
    notes_.push_back(fmt::format("{} kernel{} a library on a GPU: the host runs burin's own code in place of the call",
                                 calls, calls == 1 ? " calls" : "s call"));
  }

  std::string name() const override { return "host"; }
  std::vector<std::string> notes() const override { return notes_; }
  bool concurrent() const override { return true; }
  Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit) override {
    return programs_.run(program, batch, inputs, visit);
  }

 private:
  HostPrograms programs_;
  std::vector<std::string> notes_;
};

}  // namespace

LoadOptions tool_load_options(LibraryUse libraries) {
  return {
      .libraries = libraries, .cudnn = tool_candidates(Library::cudnn), .cublaslt = tool_candidates(Library::cublaslt)};
}

std::vector<std::string> tool_candidates(Library library) {
  const LibraryFiles files = files_of(library);
  return library_candidates(files.variable, files.names);
}

int gpu_count() {
  try {
    return device_count();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    return 0;
  }
}

DeviceChoice choose_device(const std::string& text) {
  if (text == "host") return {};
  if (text == "auto") {
    if (gpu_count() > 0) return {.host = false, .ordinal = 0, .note = {}};
    return {.note = "no GPU found: using the host executor (burin doctor says what is missing)"};
  }
  int ordinal = 0;
  if (text != "cuda") {
    constexpr std::string_view kPrefix = "cuda:";
    ordinal = text.starts_with(kPrefix) ? parse_number<int>(text.substr(kPrefix.size())).value_or(-1) : -1;
    if (ordinal < 0) fail(ErrorKind::usage, "--device '{}' is not one of auto, host, cuda, cuda:N", text);
  }
  const int devices = device_count();
  if (ordinal >= devices) {
    fail(ErrorKind::device, "--device {}: the driver finds {} device{}; --device host needs none", text, devices,
         devices == 1 ? "" : "s");
  }
  return {.host = false, .ordinal = ordinal, .note = {}};
}

std::optional<std::string> native_arch() {
  if (gpu_count() == 0) return std::nullopt;
  return Device::open(0).info().arch();
}

std::unique_ptr<Executor> make_executor(const DeviceChoice& choice, const Package& package, int jobs,
                                        HostLaunchers launchers, HostFunctions functions) {
  if (!choice.host) return make_gpu_executor(Device::open(choice.ordinal), package, tool_load_options());
  return std::make_unique<HostExecutor>(package, jobs, std::move(launchers), std::move(functions));
}

std::vector<float> pick_images(const std::vector<float>& tensor, int batch, const std::vector<int>& images) {
  const auto size = static_cast<std::ptrdiff_t>(tensor.size()) / batch;
  std::vector<float> picked;
  picked.reserve(static_cast<std::size_t>(size) * images.size());
  for (const int image : images) {
    picked.insert(picked.end(), tensor.begin() + image * size, tensor.begin() + (image + 1) * size);
  }
  return picked;
}

Tensors pick_images(const Tensors& tensors, int batch, const std::vector<int>& images) {
  Tensors picked;
  for (const std::vector<float>& tensor : tensors) picked.push_back(pick_images(tensor, batch, images));
  return picked;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

Tensors run_programs(Executor& executor, const std::vector<const Program*>& programs, int batch,
                     const Tensors& inputs) {
  const std::vector<NetworkPart> parts = make_schedule(programs, batch).parts;
  if (parts.size() == 1) return executor.run(program_for(programs, batch), batch, inputs);
  Tensors outputs(programs.front()->outputs().size());
  int first = 0;
  for (const NetworkPart& part : parts) {
    std::vector<int> images(static_cast<std::size_t>(part.images));
    std::iota(images.begin(), images.end(), first);
    const Tensors made =
        executor.run(program_for(programs, part.images), part.images, pick_images(inputs, batch, images));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].insert(outputs[i].end(), made[i].begin(), made[i].end());
    }
    first += part.images;
  }
  return outputs;
}

}  // namespace burin
