#include "ir/check_cubin.h"

#include <fmt/ranges.h>

#include "ir/arch.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/printable.h"

namespace burin {
namespace {

// From sm_90 on machine code sets so much of each block's shared memory apart for the driver.
constexpr int kReservedSharedBytes = 1024;
constexpr int kFirstThatReserves = 90;
constexpr int kPointerBytes = 8, kBatchBytes = 4;

std::vector<std::string> verify(const Kernel& kernel, const KernelBinary& binary, const CubinInfo& info) {
  Faults faults;
  const std::optional<ArchName> arch = parse_arch_name(binary.arch);
  if (!arch || arch->compute != info.compute) {
    faults.add("it is for sm_{}, and said to be for {}", info.compute, printable(binary.arch));
  }
  const CubinFunction* entry = info.find(kernel.symbol);
  if (entry == nullptr || !entry->entry) {
    faults.add("it has no kernel '{}'; its kernels: {}", printable(kernel.symbol), info.entries());
    return faults.take();
  }
  const std::vector<CubinParameter> parameters = parameters_of(kernel.form);
  const int bytes = parameters.back().offset + kBatchBytes;
  if (entry->parameters != parameters || entry->parameter_bytes != bytes) {
    faults.add("the kernel takes {} as parameters, {} in all; its plan's takes {}", text_of(entry->parameters),
               entry->parameter_bytes, text_of(parameters));
  }
  if (binary.registers >= 0 && entry->registers >= 0 && binary.registers != entry->registers) {
    faults.add("the kernel takes {} registers, and is said to take {}", entry->registers, binary.registers);
  }
  if (binary.code_bytes >= 0 && binary.code_bytes != info.code_bytes) {
    faults.add("it has {} bytes of code, and is said to have {}", info.code_bytes, binary.code_bytes);
  }
  const int reserved = info.compute >= kFirstThatReserves ? kReservedSharedBytes : 0;
  if (entry->shared_bytes > reserved) {
    faults.add("the kernel takes {} bytes of static shared memory, its plan's takes none",
               entry->shared_bytes - reserved);
  }
  return faults.take();
}

}  // namespace

std::vector<CubinParameter> parameters_of(const KernelForm& form) {
  std::vector<CubinParameter> parameters;
  for (std::size_t i = 0; i <= form.tensors.size(); ++i) {
    parameters.push_back({.offset = static_cast<int>(i) * kPointerBytes,
                          .bytes = i < form.tensors.size() ? kPointerBytes : kBatchBytes});
  }
  return parameters;
}

std::string text_of(const std::vector<CubinParameter>& parameters) {
  std::string text;
  for (const CubinParameter& parameter : parameters) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", parameter.bytes);
  }
  return text.empty() ? "no bytes" : text + " bytes";
}

void check_cubin(const Kernel& kernel, const KernelBinary& binary, std::string_view cubin) {
  const std::string of = fmt::format("{}, a cubin of {}", printable(binary.path), kernel.owner());
  std::vector<std::string> faults;
  try {
    faults = verify(kernel, binary, read_cubin(cubin));
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", of, error.what());
  }
  if (!faults.empty()) fail(ErrorKind::bad_input, "{}: {}", of, fmt::join(faults, "; "));
}

}  // namespace burin
