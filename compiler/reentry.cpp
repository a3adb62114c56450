#include "compiler/reentry.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/assemble/assembler.h"
#include "compiler/emit/ptx.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) fail(ErrorKind::bad_input, "cannot read '{}', or it is empty", path.string());
  if (text.str().find('\0') != std::string::npos) fail(ErrorKind::bad_input, "'{}' is not a text", path.string());
  return text.str();
}

// The template that a plan's text names.
std::string template_of(const std::string& plan) {
  if (is_library_plan(plan)) return std::string(provider_of(parse_library_plan(plan)));
  KeyValueText text(plan, "plan");
  return std::string(text.required("template").value);
}

// Does `work`, whose faults are of the plan's file.
template <typename Work>
auto in_file(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    fail(error.kind(), "{}: {}", path, error.what());
  }
}

constexpr std::size_t kMaxPtxBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxAssembledBytes = std::size_t{1} << 30;  // code and log
constexpr std::size_t kMaxLogBytes = std::size_t{16} << 20;

// Without this LLVM would print errors of its code generator, and exit.
void end_at_errors(llvm::LLVMContext& context) {
  context.setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo* info, void*) {
    if (info->getSeverity() != llvm::DS_Error) return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    llvm::report_fatal_error(llvm::Twine(text), /*gen_crash_diag=*/false);
  });
}

AssemblerOutput assemble_in_sandbox(const std::string& subject, const std::string& ptx, const std::string& arch,
                                    const SandboxLimits& limits) {
  struct Sizes {
    std::size_t cubin = 0, log = 0;
  };
  SandboxLimits without_files = limits;
  without_files.finds_no_files = true;  // the library looks for a driver, and does without
  Sandbox sandbox(subject, sizeof(Sizes) + kMaxAssembledBytes, without_files, [&](std::span<std::byte> shared) {
    const AssemblerOutput output = run_assembler(ptx, arch);
    const Sizes sizes{output.cubin.size(), output.log.size()};
    if (sizes.cubin + sizes.log > kMaxAssembledBytes || sizes.log > kMaxLogBytes) {
      fail(ErrorKind::unsupported, "{}: its machine code is too long", subject);
    }
    std::byte* place = shared.data() + sizeof(Sizes);
    std::memcpy(shared.data(), &sizes, sizeof(Sizes));
    std::memcpy(place, output.cubin.data(), sizes.cubin);
    std::memcpy(place + sizes.cubin, output.log.data(), sizes.log);
  });
  sandbox.request();
  const auto* bytes = reinterpret_cast<const char*>(sandbox.shared().data());
  Sizes sizes;
  std::memcpy(&sizes, bytes, sizeof(Sizes));
  if (sizes.cubin > kMaxAssembledBytes || sizes.log > std::min(kMaxLogBytes, kMaxAssembledBytes - sizes.cubin)) {
    fail(ErrorKind::bad_input, "{}: what its sandbox says is not so", subject);
  }
  bytes += sizeof(Sizes);
  return {std::string(bytes, sizes.cubin), std::string(bytes + sizes.cubin, sizes.log)};
}

}  // namespace

Reentry read_reentry(const std::string& path) {
  const std::filesystem::path file = path;
  Reentry reentry;
  reentry.path = path;
  if (file.extension() == ".txt") {
    reentry.plan = read_text(file);
    reentry.plan_path = path;
    return reentry;
  }
  if (file.extension() == ".ll") {
    reentry.module_text = read_text(file);
  } else if (file.extension() == ".ptx") {
    reentry.ptx = read_text(file);
  } else {
    fail(ErrorKind::usage, "--from '{}': its name ends in neither .txt (a plan), .ll nor .ptx", path);
  }
  const std::filesystem::path plan = file.parent_path() / "30-plan.txt";
  if (std::filesystem::exists(plan)) {
    reentry.plan = read_text(plan);
    reentry.plan_path = plan.string();
  }
  return reentry;
}

CompileOptions with_reentry(CompileOptions options, const Reentry& reentry) {
  if (reentry.plan.empty() || !reentry.op.empty()) return options;
  const std::string brings = fmt::format("--from {}", reentry.path) +
                             (reentry.plan_path == reentry.path ? " is a plan" : " has its plan beside it");
  if (!options.plan.empty()) {
    fail(ErrorKind::usage, "--plan has no effect here: {}, which makes all choices; edit {}", brings,
         reentry.plan_path);
  }
  const std::string name = in_file(reentry.plan_path, [&] { return template_of(reentry.plan); });
  const auto is_another = [&](const std::string& kind) { return kind != kAutoKind && kind != name; };
  if (options.kernels.any(is_another)) {
    fail(ErrorKind::usage, "--kernels has no effect here: {}, and is for {}", brings, printable(name));
  }
  if (name != kBakedProvider) {
    // The plans of templates say nothing of these, and are of FP32 tensors in nchw.
    if (options.precisions.any(is_half) || options.layout.value_or(TensorLayout::nchw) != TensorLayout::nchw ||
        options.skip_dead_tiles) {
      fail(ErrorKind::usage, "--from {}: a plan of {} is of FP32 tensors in nchw, without activity maps", reentry.path,
           printable(name));
    }
    return options;
  }
  const BakedPlan plan = in_file(reentry.plan_path, [&] { return parse_baked_plan(reentry.plan); });
  for (const Precision precision : kPrecisions) {
    if (!is_half(precision) || precision == plan.precision) continue;
    if (!options.precisions.any([&](Precision asked) { return asked == precision; })) continue;
    fail(ErrorKind::usage,
         "--precision {}: the plan for '{}' computes in {}; leave --precision out, or make a new plan",
         to_string(precision), reentry.path, to_string(plan.precision));
  }
  if (options.layout && (plan.input_layout != *options.layout || plan.output_layout != *options.layout)) {
    fail(ErrorKind::usage,
         "--layout {}: the plan for '{}' reads {} and writes {}; leave --layout out, or edit input_layout and "
         "output_layout of the plan",
         to_string(*options.layout), reentry.path, to_string(plan.input_layout), to_string(plan.output_layout));
  }
  if (options.skip_dead_tiles && !plan.uses_activity()) {
    fail(ErrorKind::usage,
         "--skip-dead-tiles asks for activity maps, and the plan of --from {} has none; lines 'skips: 1x{}x{}' and "
         "'marks: yes' give it some",
         reentry.path, plan.tile.rows, plan.tile.cols);
  }
  options.precisions = {plan.precision};
  options.layout = plan.input_layout;
  options.output_layout = plan.output_layout;
  options.skip_dead_tiles = plan.uses_activity();
  return options;
}

Choice reentry_choice(const Reentry& reentry, const Task& task) {
  return in_file(reentry.plan_path, [&] {
    const std::string name = template_of(reentry.plan);
    const Provider* provider = find_provider(name);
    if (provider == nullptr) fail(ErrorKind::bad_input, "there is no template '{}'", printable(name));
    Choice choice;
    choice.candidate = {name, reentry.plan, provider->make(task, reentry.plan).symbol, {}};
    return choice;
  });
}

std::string edited_ptx(const Reentry& reentry, const std::string& symbol) {
  const std::size_t entry = reentry.ptx.find(".entry " + symbol + "(");
  if (!reentry.ptx.empty() && entry == std::string::npos) {
    fail(ErrorKind::bad_input, "{}: there is no entry '{}' in it; its name says which plan it was made for",
         reentry.path, symbol);
  }
  return reentry.ptx;
}

std::string ptx_of_edited(const Reentry& reentry, const std::string& symbol, const std::string& arch,
                          const std::string& owner, const SandboxLimits& limits) {
  Sandbox sandbox(reentry.path + ", " + owner, kMaxPtxBytes, limits, [&](std::span<std::byte> shared) {
    SpecialisedModule module = parse_specialised(reentry.module_text, symbol, reentry.path);
    end_at_errors(*module.context);
    const std::string ptx = in_file(reentry.path, [&] { return emit_ptx(module, arch); });
    if (ptx.size() >= shared.size()) fail(ErrorKind::unsupported, "{}: its PTX is too long", reentry.path);
    std::memcpy(shared.data(), ptx.c_str(), ptx.size() + 1);
  });
  sandbox.request();
  const auto* ptx = reinterpret_cast<const char*>(sandbox.shared().data());
  return {ptx, strnlen(ptx, kMaxPtxBytes)};
}

AssembledKernel assemble_edited(const Reentry& reentry, const std::string& ptx, const std::string& arch,
                                const std::string& symbol, const std::string& owner, const SandboxLimits& limits) {
  try {
    // A program is a process of its own already.
    if (find_assembler().kind != AssemblerInfo::Kind::nvjitlink) return assemble(ptx, arch, symbol);
    return describe_assembled(assemble_in_sandbox(reentry.path + ", " + owner, ptx, arch, limits), symbol);
  } catch (const AssemblerCrash& error) {
    fail(ErrorKind::bad_input, "{}: {}", reentry.path, error.what());
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (text.starts_with(reentry.path)) throw;
    fail(error.kind() == ErrorKind::internal ? ErrorKind::bad_input : error.kind(), "{}: {}", reentry.path, text);
  }
}

}  // namespace burin
