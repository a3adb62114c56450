#include "ir/check_cubin.h"

#include <fmt/ranges.h>

#include "ir/arch.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/printable.h"
#include "ir/saturate.h"

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
  const CubinFunction* entry = info.find(kernel.entry_name());
  if (entry == nullptr || !entry->entry) {
    faults.add("it has no kernel '{}'; its kernels: {}", printable(kernel.entry_name()), info.entries());
    return faults.take();
  }
  const std::vector<CubinParameter>& parameters = entry->parameters;
  const int bytes = parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes;
  if (!are_parameters_of(parameters, kernel.form) || entry->parameter_bytes != bytes) {
    faults.add("the kernel takes {} as parameters, {} in all; its plan's takes {}", text_of(parameters),
               entry->parameter_bytes, text_of(parameters_of(kernel.form)));
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
  const auto add = [&](int bytes, int alignment) {
    const int end = parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes;
    parameters.push_back({.offset = static_cast<int>(ceil_div(end, alignment)) * alignment, .bytes = bytes});
  };
  for (std::size_t i = 0; i < form.tensors.size(); ++i) add(kPointerBytes, kPointerBytes);
  for (std::size_t i = 0; i < form.boxes.size(); ++i) add(kBoxBytes, kBoxAlignment);
  add(kBatchBytes, kBatchBytes);
  return parameters;
}

bool are_parameters_of(const std::vector<CubinParameter>& found, const KernelForm& form) {
  const std::vector<CubinParameter> wanted = parameters_of(form);
  if (form.boxes.empty()) return found == wanted;
  if (found.size() != wanted.size()) return false;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_box = wanted[i].bytes == kBoxBytes;
    const int alignment = is_box ? kBoxAlignment : wanted[i].bytes;
    const std::int64_t gap = found[i].offset - end;
    if (found[i].bytes != wanted[i].bytes || gap < 0 || gap >= alignment) return false;
    if (!is_box && found[i].offset % alignment != 0) return false;
    end = std::int64_t{found[i].offset} + found[i].bytes;
  }
  return true;
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
