#include "compiler/assemble/assemble.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "compiler/assemble/locate.h"
#include "compiler/assemble/nvjitlink.h"
#include "compiler/assemble/ptxas.h"
#include "compiler/assemble/ptxas_log.h"
#include "ir/cubin_info.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr const char* kHelp =
    "install the CUDA toolkit, or the Python wheels nvidia-nvjitlink-cu12 or nvidia-cuda-nvcc-cu12 into a virtual "
    "environment that BURIN_CUDA_WHEELS names";

struct Found {
  AssemblerInfo info;
  std::unique_ptr<NvJitLink> nvjitlink;
  std::unique_ptr<Ptxas> ptxas;
};

bool find_nvjitlink(Found& found, std::string& why) {
  found.nvjitlink =
      NvJitLink::open(library_candidates("BURIN_NVJITLINK", {"libnvJitLink.so.13", "libnvJitLink.so.12"}), why);
  if (!found.nvjitlink) return false;
  found.info = {AssemblerInfo::Kind::nvjitlink, found.nvjitlink->path(), found.nvjitlink->version(), ""};
  return true;
}

bool find_ptxas(Found& found, std::string& why) {
  const std::vector<std::string> candidates = program_candidates("BURIN_PTXAS", "ptxas");
  if (candidates.empty()) why += fmt::format("{}no ptxas on PATH", why.empty() ? "" : "; ");
  found.ptxas = Ptxas::open(candidates, why);
  if (!found.ptxas) return false;
  found.info = {AssemblerInfo::Kind::ptxas, found.ptxas->path(), found.ptxas->version(), ""};
  return true;
}

Found find() {
  const char* variable = std::getenv("BURIN_ASSEMBLER");
  const std::string choice = variable == nullptr ? "" : variable;
  Found found;
  std::string why;
  if (choice == "none") {
    found.info.note = "BURIN_ASSEMBLER=none";
  } else if (!choice.empty() && choice != "nvjitlink" && choice != "ptxas") {
    found.info.note = fmt::format("BURIN_ASSEMBLER={} is not one of nvjitlink, ptxas, none", choice);
  } else if (!((choice != "ptxas" && find_nvjitlink(found, why)) ||
               (choice != "nvjitlink" && find_ptxas(found, why)))) {
    found.info.note = fmt::format("{} ({})", kHelp, why);
  }
  return found;
}

const Found& found() {
  // Never destroyed: the library may still be at work in another thread when the process ends.
  static const Found* const instance = new Found(find());
  return *instance;
}

// Leaves out the lines that differ from run to run.
std::string lasting_part(const std::string& log) {
  std::string kept;
  for (std::size_t start = 0; start < log.size();) {
    const std::size_t end = std::min(log.find('\n', start), log.size());
    const std::string_view line = std::string_view(log).substr(start, end - start);
    if (line.find("Compile time") == std::string_view::npos) kept.append(line).append("\n");
    start = end + 1;
  }
  return kept;
}

}  // namespace

const AssemblerInfo& find_assembler() { return found().info; }

AssembledKernel describe_assembled(AssemblerOutput output, const std::string& symbol) {
  const CubinInfo info = read_cubin(output.cubin);
  const AssemblerUsage usage = parse_ptxas_log(output.log);
  const CubinFunction* entry = info.find(symbol);
  if (entry == nullptr) {
    std::string names;
    for (const CubinFunction& function : info.functions) {
      if (function.entry) names += fmt::format("{}{}", names.empty() ? "" : ", ", function.name);
    }
    BURIN_CHECK(false, "the assembled code has no entry '{}'; its entries: {}", symbol, names.empty() ? "none" : names);
  }
  AssembledKernel kernel;
  kernel.registers = entry->registers >= 0 ? entry->registers : usage.registers(symbol);
  kernel.spill_bytes = usage.spill_bytes();
  kernel.stack_bytes = std::max(info.frame_bytes, usage.stack_bytes());
  kernel.code_bytes = info.code_bytes;
  kernel.cubin = std::move(output.cubin);
  kernel.log = lasting_part(output.log);
  return kernel;
}

AssemblerOutput run_assembler(const std::string& ptx, const std::string& arch) {
  const Found& assembler = found();
  if (assembler.nvjitlink) return assembler.nvjitlink->assemble(ptx, arch);
  if (assembler.ptxas) return assembler.ptxas->assemble(ptx, arch);
  fail(ErrorKind::unsupported, "there is no assembler for {}: {}", arch, assembler.info.note);
}

AssembledKernel assemble(const std::string& ptx, const std::string& arch, const std::string& symbol) {
  return describe_assembled(run_assembler(ptx, arch), symbol);
}

}  // namespace burin
