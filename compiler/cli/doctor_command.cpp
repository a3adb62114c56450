// burin doctor: what this machine has, and what a missing piece is needed for.
#include "compiler/cli/doctor.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <llvm-c/Core.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "compiler/assemble/assemble.h"
#include "compiler/assemble/locate.h"
#include "compiler/assemble/nvjitlink.h"
#include "compiler/assemble/nvrtc.h"
#include "compiler/assemble/ptxas.h"
#include "compiler/cli/arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/execute/executor.h"
#include "ir/error.h"
#include "runtime/burin/runtime.hpp"
#include "runtime/driver/driver_table.h"
#include "runtime/library/cublaslt_library.h"
#include "runtime/library/cudnn_library.h"

namespace burin {
namespace {

// Fills in a piece; whatever it throws is the piece's problem.
DoctorPiece examine_piece(const std::string& name, const std::string& purpose,
                          const std::function<void(DoctorPiece&)>& look) {
  DoctorPiece piece;
  piece.name = name;
  piece.purpose = purpose;
  try {
    look(piece);
    piece.found = piece.problem.empty();
  } catch (const std::exception& error) {
    piece.problem = error.what();
  }
  return piece;
}

void look_for_driver(DoctorPiece& piece) {
  const DriverTable& driver = driver_table();
  int version = 0;
  check(driver, driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  piece.version = cuda_version_text(version);
  piece.path = "libcuda.so.1";
}

void look_for_nvjitlink(DoctorPiece& piece) {
  const auto library = NvJitLink::open(
      library_candidates("BURIN_NVJITLINK", {"libnvJitLink.so.13", "libnvJitLink.so.12"}), piece.problem);
  if (!library) return;
  piece.problem.clear();  // of candidates before the one that opened
  piece.version = library->version();
  piece.path = library->path();
}

void look_for_ptxas(DoctorPiece& piece) {
  const std::vector<std::string> candidates = program_candidates("BURIN_PTXAS", "ptxas");
  if (candidates.empty()) piece.problem = "no ptxas on PATH, in a CUDA toolkit or among Python wheels";
  const auto program = Ptxas::open(candidates, piece.problem);
  if (!program) return;
  piece.problem.clear();
  piece.version = program->version();
  piece.path = program->path();
}

void look_for_nvrtc(DoctorPiece& piece) {
  const auto library = Nvrtc::open(Nvrtc::candidates(), piece.problem);
  if (!library) return;
  piece.problem.clear();
  piece.version = library->version();
  piece.path = library->path();
}

template <typename Opened>
void look_for_library(DoctorPiece& piece, Library which) {
  const Opened library(tool_candidates(which));
  piece.version = library.version();
  piece.path = library.path();
}
void look_for_cudnn(DoctorPiece& piece) { look_for_library<CudnnLibrary>(piece, Library::cudnn); }
void look_for_cublaslt(DoctorPiece& piece) { look_for_library<CublasltLibrary>(piece, Library::cublaslt); }

void look_for_llvm(DoctorPiece& piece) {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  piece.version = fmt::format("{}.{}.{}", major, minor, patch);
}

std::vector<DoctorDevice> examine_devices(const std::vector<std::string>& known, DoctorPiece& driver) {
  std::vector<DoctorDevice> devices;
  if (!driver.found) return devices;
  int count = 0;
  try {
    count = device_count();
    if (count == 0) driver.problem = "the driver finds no GPU";
  } catch (const std::exception& error) {
    driver.problem = error.what();
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DoctorDevice device;
    device.ordinal = ordinal;
    try {
      const DeviceInfo info = Device::open(ordinal).info();
      device.name = info.name;
      device.arch = info.arch();
      device.known = std::find(known.begin(), known.end(), device.arch) != known.end();
      device.multiprocessors = info.multiprocessors;
      device.memory_bytes = info.memory_bytes;
    } catch (const std::exception& error) {
      device.problem = error.what();
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string name_of(const AssemblerInfo& info) {
  if (info.kind == AssemblerInfo::Kind::none) return {};
  return (info.kind == AssemblerInfo::Kind::nvjitlink ? "nvJitLink " : "ptxas ") + info.version;
}

}  // namespace

DoctorReport examine() {
  DoctorReport report;
  report.tool_version = BURIN_VERSION;
  report.known_archs = known_arch_names();
  report.pieces.push_back(
      examine_piece("CUDA driver", "run, bench and verify on a GPU; --arch native", look_for_driver));
  report.devices = examine_devices(report.known_archs, report.pieces.back());
  report.pieces.push_back(examine_piece("nvJitLink", "cubins (this or ptxas)", look_for_nvjitlink));
  report.pieces.push_back(examine_piece("ptxas", "cubins (this or nvJitLink)", look_for_ptxas));
  report.pieces.push_back(examine_piece("NVRTC", "compile --operator", look_for_nvrtc));
  report.pieces.push_back(examine_piece("cuDNN", "bench --baseline cudnn; calls of kernels", look_for_cudnn));
  report.pieces.push_back(examine_piece("cuBLASLt", "calls of kernels", look_for_cublaslt));
  report.pieces.push_back(examine_piece("LLVM", "compile; verify on the host", look_for_llvm));
  report.assembler = name_of(find_assembler());
  report.assembler_note = find_assembler().note;
  report.default_archs.push_back(kArchWithoutGpu);
  if (!report.devices.empty()) {
    const ArchSpec* runs = arch_for_gpu(report.devices.front().arch);
    if (runs != nullptr) report.default_archs = {std::string(runs->name)};
  }
  return report;
}

std::string to_text(const DoctorReport& report) {
  Table pieces({"piece", "found", "version", "needed for", "where"});
  for (const DoctorPiece& piece : report.pieces) {
    pieces.add({piece.name, piece.found ? "yes" : "no", piece.version, piece.purpose, piece.path});
  }
  std::string text = fmt::format("burin {}\n\n{}", report.tool_version, pieces.print());

  if (!report.devices.empty()) {
    Table devices({"device", "name", "architecture", ">multiprocessors", ">memory, GiB", "usable"});
    for (const DoctorDevice& device : report.devices) {
      constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
      const bool opened = device.problem.empty();
      devices.add({fmt::format("cuda:{}", device.ordinal), device.name, device.arch,
                   opened ? std::to_string(device.multiprocessors) : "",
                   opened ? fmt::format("{:.0f}", static_cast<double>(device.memory_bytes) / kGib) : "",
                   !opened        ? "no"
                   : device.known ? "yes"
                                  : "through PTX only"});
    }
    text += "\n" + devices.print();
  }

  text += fmt::format("\nassembles with:         {}\n",
                      report.assembler.empty() ? "nothing: packages hold PTX only" : report.assembler);
  text += fmt::format("default architectures:  {}\n", fmt::join(report.default_archs, ", "));
  text += fmt::format("known architectures:    {}\n", fmt::join(report.known_archs, ", "));

  std::string problems;
  for (const DoctorPiece& piece : report.pieces) {
    if (!piece.problem.empty()) problems += fmt::format("  {}: {}\n", piece.name, piece.problem);
  }
  for (const DoctorDevice& device : report.devices) {
    if (!device.problem.empty()) problems += fmt::format("  cuda:{}: {}\n", device.ordinal, device.problem);
  }
  if (!report.assembler_note.empty()) problems += fmt::format("  assembler: {}\n", report.assembler_note);
  if (!problems.empty()) text += "\nmissing\n" + problems;
  return text;
}

std::string to_json(const DoctorReport& report) {
  using Json = nlohmann::ordered_json;
  Json pieces = Json::array();
  for (const DoctorPiece& piece : report.pieces) {
    pieces.push_back({{"name", piece.name},
                      {"found", piece.found},
                      {"version", piece.version},
                      {"path", piece.path},
                      {"needed_for", piece.purpose},
                      {"problem", piece.problem}});
  }
  Json devices = Json::array();
  for (const DoctorDevice& device : report.devices) {
    devices.push_back({{"ordinal", device.ordinal},
                       {"name", device.name},
                       {"arch", device.arch},
                       {"known", device.known},
                       {"multiprocessors", device.multiprocessors},
                       {"memory_bytes", device.memory_bytes},
                       {"problem", device.problem}});
  }
  const Json json = {{"version", report.tool_version},
                     {"pieces", pieces},
                     {"devices", devices},
                     {"assembler", report.assembler},
                     {"assembler_note", report.assembler_note},
                     {"default_archs", report.default_archs},
                     {"known_archs", report.known_archs}};
  return json_output(json);
}

void add_doctor_command(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "Show what was found (driver, assemblers, cuDNN...) and what is missing");
  command->add_flag("--json", *json, "For machines");
  command->callback([json, &action] {
    action = [json] {
      const DoctorReport report = examine();
      print_data(*json ? to_json(report) : to_text(report));
      return 0;
    };
  });
}

}  // namespace burin
