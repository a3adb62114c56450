#include "compiler/execute/executor.h"

#include "compiler/execute/gpu_executor.h"
#include "compiler/rebuild_module.h"
#include "runtime/network_schedule.h"

namespace burin {
namespace {

class HostExecutor : public Executor {
 public:
  HostExecutor(const Package& package, int jobs, HostLaunchers launchers)
      : programs_(
            package, [&](const Kernel& kernel) { return rebuild_module(package, kernel); }, jobs,
            std::move(launchers)) {}

  std::string name() const override { return "host"; }
  bool concurrent() const override { return true; }
  Tensors run(const Program& program, int batch, const Tensors& inputs, const StepVisitor& visit) override {
    return programs_.run(program, batch, inputs, visit);
  }

 private:
  HostPrograms programs_;
};

}  // namespace

std::unique_ptr<Executor> make_executor(const DeviceChoice& choice, const Package& package, int jobs,
                                        HostLaunchers launchers) {
  if (!choice.host) return make_gpu_executor(choice.ordinal, package);
  return std::make_unique<HostExecutor>(package, jobs, std::move(launchers));
}

std::vector<float> pick_images(std::span<const float> tensor, int batch, const std::vector<int>& images) {
  const std::size_t size = tensor.size() / static_cast<std::size_t>(batch);
  std::vector<float> picked;
  picked.reserve(size * images.size());
  for (const int image : images) {
    const auto values = tensor.subspan(static_cast<std::size_t>(image) * size, size);
    picked.insert(picked.end(), values.begin(), values.end());
  }
  return picked;
}

Tensors slice_images(const Tensors& tensors, int batch, int first, int count) {
  Tensors slices;
  for (const std::vector<float>& tensor : tensors) {
    const auto size = static_cast<std::ptrdiff_t>(tensor.size()) / batch;
    slices.emplace_back(tensor.begin() + first * size, tensor.begin() + (first + count) * size);
  }
  return slices;
}

Tensors run_programs(Executor& executor, const std::vector<const Program*>& programs, int batch,
                     const Tensors& inputs) {
  const std::vector<NetworkPart> parts = make_schedule(programs, batch).parts;
  if (parts.size() == 1) return executor.run(program_for(programs, batch), batch, inputs);
  Tensors outputs(programs.front()->outputs().size());
  int first = 0;
  for (const NetworkPart& part : parts) {
    const Tensors made =
        executor.run(program_for(programs, part.images), part.images, slice_images(inputs, batch, first, part.images));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].insert(outputs[i].end(), made[i].begin(), made[i].end());
    }
    first += part.images;
  }
  return outputs;
}

}  // namespace burin
