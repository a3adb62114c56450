#include "runtime/select_binary.h"

#include "ir/arch.h"
#include "ir/error.h"

namespace burin {

bool cubin_fits(const ArchName& arch, const DeviceInfo& device) {
  if (arch.suffix == 'a') return arch.compute == device.compute();
  return arch.major() == device.compute_major && arch.minor() <= device.compute_minor;
}

bool ptx_fits(const ArchName& arch, const DeviceInfo& device) {
  if (arch.suffix != '\0') return cubin_fits(arch, device);
  return arch.compute <= device.compute();
}

const KernelBinary& select_binary(const Kernel& kernel, const DeviceInfo& device, bool force_jit) {
  const KernelBinary* cubin = nullptr;
  const KernelBinary* ptx = nullptr;
  int cubin_compute = 0;
  std::string available;
  for (const KernelBinary& binary : kernel.binaries) {
    const std::optional<ArchName> arch = parse_arch_name(binary.arch);
    if (!arch) {
      fail(ErrorKind::bad_input, "kernel {}: '{}' is not the name of a GPU architecture, like sm_90", kernel.symbol,
           binary.arch);
    }
    available += fmt::format("{}{} for {}", available.empty() ? "" : ", ",
                             binary.kind == BinaryKind::cubin ? "a cubin" : "PTX", binary.arch);
    if (binary.kind == BinaryKind::ptx) {
      if (ptx == nullptr && ptx_fits(*arch, device)) ptx = &binary;
    } else if (cubin_fits(*arch, device) && arch->compute > cubin_compute) {
      cubin = &binary;
      cubin_compute = arch->compute;
    }
  }
  if (cubin != nullptr && !force_jit) return *cubin;
  if (ptx != nullptr) return *ptx;
  fail(ErrorKind::device, "kernel {} of {} does not run on cuda:{} ({}), which is {}: the package has {}{}; {}",
       kernel.symbol, kernel.owner(), device.ordinal, device.name, device.arch(),
       available.empty() ? "no code" : available, force_jit ? " and the PTX was asked for" : "",
       how_to_compile_for(device));
}

std::string how_to_compile_for(const DeviceInfo& device) {
  const ArchSpec* arch = arch_for_device(device.compute());
  return arch == nullptr ? fmt::format("burin compiles for {} and later", known_archs().front().name)
                         : fmt::format("compile it with --arch {}", arch->name);
}

}  // namespace burin
