#include "compiler/execute/executor.h"

#include <cstring>
#include <numeric>

#include "compiler/rebuild_module.h"
#include "runtime/launch_plan.h"

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
