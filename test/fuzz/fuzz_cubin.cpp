// Any bytes as machine code of a package.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "ir/check_cubin.h"
#include "ir/error.h"

namespace {

using namespace burin;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Kernel kernel;
  kernel.symbol = "burin_k";
  kernel.form.tensors.resize(2);
  const KernelBinary binary{.kind = BinaryKind::cubin, .arch = "sm_90", .path = "fuzz.cubin"};
  try {
    const CubinInfo info = read_cubin(bytes);
    require(info.code_bytes <= static_cast<std::int64_t>(size));
    require(info.functions.size() <= 1000);
    std::set<std::string_view> names;
    for (const CubinFunction& function : info.functions) {
      require(names.insert(function.name).second);
      require(function.parameters.size() <= 64);
    }
    check_cubin(kernel, binary, bytes);
    const CubinFunction* entry = info.find(kernel.symbol);
    require(entry != nullptr && entry->entry && are_parameters_of(entry->parameters, kernel.form));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input);
  }
  return 0;
}
