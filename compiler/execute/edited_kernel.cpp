#include "compiler/execute/edited_kernel.h"

#include <algorithm>
#include <new>
#include <span>
#include <type_traits>

#include "compiler/host/executor.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::size_t kSharedBytes = std::size_t{2} << 30;  // of a launch's tensors; what is not used takes no memory
constexpr std::size_t kAlignment = 64;

HostKernel compile(const std::string& path, const std::string& text, const Kernel& kernel) {
  const std::string bitcode = to_bitcode(parse_specialised(text, kernel.entry_name(), path));
  HostFunctions functions;
  for (const KernelFunction& called : kernel.functions) {
    if (called.function.value != nullptr) functions[called.function.symbol()] = called.function.value;
  }
  try {
    return {bitcode, kernel.entry_name(), kernel.form, /*cores=*/1, functions};
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.what());
  }
}

}  // namespace

EditedKernel::EditedKernel(const std::string& path, const std::string& text, const Kernel& kernel,
                           const SandboxLimits& limits)
    : subject_(path + ", " + kernel.owner()) {
  std::optional<HostKernel> host;  // in the other process
  sandbox_.emplace(subject_, kSharedBytes, limits, [&](std::span<std::byte> shared) {
    if (!host) host = compile(path, text, kernel);
    host->run(*std::launder(reinterpret_cast<const HostLaunchArguments*>(shared.data())));
  });
}

void EditedKernel::run(const HostLaunchArguments& arguments) {
  static_assert(sizeof(HostLaunchArguments) <= 4 * kAlignment);
  const std::span<std::byte> shared = sandbox_->shared();
  std::span<std::byte> rest = shared.subspan(4 * kAlignment);  // where tensors lie one after the other
  const auto copy = [&]<typename T>(std::span<T> values) -> std::span<std::remove_const_t<T>> {
    const std::size_t bytes = (values.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > rest.size()) {
      fail(ErrorKind::unsupported, "{}: its tensors take more than {} bytes; the host runs no edited module on them",
           subject_, kSharedBytes);
    }
    auto* place = reinterpret_cast<std::remove_const_t<T>*>(rest.data());
    std::ranges::copy(values, place);
    rest = rest.subspan(bytes);
    return {place, values.size()};
  };
  const std::span<float> output = copy(arguments.output);
  const std::span<std::uint8_t> output_map = copy(arguments.output_map);
  new (shared.data()) HostLaunchArguments{.batch = arguments.batch,
                                          .input = copy(arguments.input),
                                          .output = output,
                                          .residual = copy(arguments.residual),
                                          .weights = copy(arguments.weights),
                                          .input_map = copy(arguments.input_map),
                                          .output_map = output_map};
  sandbox_->request();
  std::ranges::copy(output, arguments.output.begin());
  std::ranges::copy(output_map, arguments.output_map.begin());
}

}  // namespace burin
