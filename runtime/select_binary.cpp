#include "runtime/select_binary.h"

#include <charconv>

#include "ir/error.h"

namespace burin {

ArchName parse_arch_name(std::string_view name) {
  std::string_view rest = name;
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  }
  ArchName arch;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), arch.compute);
  const std::string_view suffix(end, rest.data() + rest.size() - end);
  constexpr int kOldest = 10;
  constexpr int kNewest = 999;
  if (rest.size() == name.size() || error != std::errc{} || arch.compute < kOldest || arch.compute > kNewest ||
      !(suffix.empty() || suffix == "a" || suffix == "f")) {
    fail(ErrorKind::bad_input, "'{}' is not the name of a GPU architecture, like sm_90", name);
  }
  arch.suffix = suffix.empty() ? '\0' : suffix.front();
  return arch;
}

bool cubin_fits(const ArchName& arch, const DeviceInfo& device) {
  if (arch.suffix == 'a') return arch.compute == device.compute();
  return arch.major() == device.compute_major && arch.minor() <= device.compute_minor;
}

bool ptx_fits(const ArchName& arch, const DeviceInfo& device) {
  if (arch.suffix != '\0') return cubin_fits(arch, device);
  return arch.compute <= device.compute();
}

const KernelBinary& select_binary(const KernelRecord& record, const DeviceInfo& device, bool force_jit) {
  const KernelBinary* cubin = nullptr;
  const KernelBinary* ptx = nullptr;
  int cubin_compute = 0;
  std::string available;
  for (const KernelBinary& binary : record.binaries) {
    if (binary.kind == BinaryKind::bitcode) continue;
    const ArchName arch = parse_arch_name(binary.arch);
    available += fmt::format("{}{} for {}", available.empty() ? "" : ", ",
                             binary.kind == BinaryKind::cubin ? "a cubin" : "PTX", binary.arch);
    if (binary.kind == BinaryKind::ptx) {
      if (ptx == nullptr && ptx_fits(arch, device)) ptx = &binary;
    } else if (cubin_fits(arch, device) && arch.compute > cubin_compute) {
      cubin = &binary;
      cubin_compute = arch.compute;
    }
  }
  if (cubin != nullptr && !force_jit) return *cubin;
  if (ptx != nullptr) return *ptx;
  fail(ErrorKind::device,
       "kernel {} of layer {} does not run on cuda:{} ({}), which is {}: the package has {}{}; compile it with --arch "
       "{}",
       record.symbol, record.layer, device.ordinal, device.name, device.arch(),
       available.empty() ? "no code" : available, force_jit ? " and the PTX was asked for" : "", device.arch());
}

}  // namespace burin
