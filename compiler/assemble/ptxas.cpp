#include "compiler/assemble/ptxas.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/assemble/assembler.h"
#include "compiler/assemble/ptx_directives.h"
#include "compiler/assemble/run_program.h"
#include "ir/error.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInput = "kernel.ptx";
constexpr const char* kObject = "kernel.o";
constexpr const char* kOutput = "kernel.cubin";

// "Cuda compilation tools, release 13.0, V13.0.88" -> "13.0"; empty when the text is something else.
std::string version_in(const std::string& text) {
  constexpr std::string_view kRelease = "release ";
  const std::size_t at = text.find(kRelease);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kRelease.size();
  const std::size_t end = text.find_first_not_of("0123456789.", begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

std::string ending_of(const ProgramResult& result) {
  return result.signal != 0 ? fmt::format("ended by signal {}", result.signal)
                            : fmt::format("exit code {}", result.exit_code);
}

}  // namespace

std::unique_ptr<Ptxas> Ptxas::open(const std::vector<std::string>& candidates, std::string& why) {
  for (const std::string& candidate : candidates) {
    std::string fault;
    try {
      const TemporaryFolder folder;
      const ProgramResult result = run_program(candidate, {"--version"}, folder);
      const std::string version = version_in(result.output);
      if (result.exit_code == 0 && !version.empty()) {
        std::unique_ptr<Ptxas> opened(new Ptxas());
        opened->path_ = candidate;
        opened->version_ = version;
        std::error_code no_matter;  // a path that cannot be followed has no neighbour either
        const std::string linker = fs::canonical(candidate, no_matter).replace_filename("nvlink").string();
        if (::access(linker.c_str(), X_OK) == 0) opened->linker_ = linker;
        return opened;
      }
      fault = fmt::format("{} --version: {}, no release in its output", candidate, ending_of(result));
    } catch (const Error& error) {
      fault = error.what();
    }
    why += fmt::format("{}{}", why.empty() ? "" : "; ", fault);
  }
  return nullptr;
}

AssemblerOutput Ptxas::assemble(const std::string& ptx, const std::string& arch) const {
  require_arch_name(arch);
  require_ptx(ptx);
  const TemporaryFolder folder;
  const fs::path input = fs::path(folder.path()) / kInput;
  {
    std::ofstream file(input, std::ios::binary);
    file.write(ptx.data(), static_cast<std::streamsize>(ptx.size()));
    file.close();
    if (!file) fail(ErrorKind::device, "cannot write {} ({} bytes); is the disk full?", input.string(), ptx.size());
  }

  const auto run = [&](const std::string& program, const std::vector<std::string>& arguments) {
    ProgramResult result = run_program(program, arguments, folder);
    if (result.signal != 0 && result.signal != SIGKILL) {
      throw AssemblerCrash(ErrorKind::device, fmt::format("{} was {} while it assembled {} bytes of PTX for {}",
                                                          program, ending_of(result), ptx.size(), arch));
    }
    if (result.signal != 0) {
      fail(ErrorKind::device, "{} was {} while it assembled {} bytes of PTX for {}; is memory short? Fewer --jobs help",
           program, ending_of(result), ptx.size(), arch);
    }
    const std::string name = fs::path(program).filename().string();
    if (result.exit_code != 0) fail_assembly(name + " " + version_, arch, result.output);
    return std::move(result.output);
  };
  std::vector<std::string> arguments = {"-v", "-O3", "-arch=" + arch, "-o", links() ? kObject : kOutput, kInput};
  if (links()) {
    arguments.push_back("-c");
    if (const int cap = register_cap(ptx); cap > 0) arguments.push_back(fmt::format("-maxrregcount={}", cap));
  }

  AssemblerOutput output;
  output.log = run(path_, arguments);
  if (links()) run(linker_, {"-arch=" + arch, "-o", kOutput, kObject});
  std::ifstream file(fs::path(folder.path()) / kOutput, std::ios::binary);
  output.cubin.assign(std::istreambuf_iterator<char>(file), {});
  if (output.cubin.empty()) fail(ErrorKind::device, "{} ended well but wrote no cubin:\n{}", path_, output.log);
  return output;
}

}  // namespace burin
