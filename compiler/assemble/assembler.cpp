#include "compiler/assemble/assembler.h"

#include <cctype>

#include "ir/arch.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::size_t kMaxLogInError = 4000;  // characters; what matters is said first

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string shortened(std::string_view log) {
  while (!log.empty() && std::isspace(static_cast<unsigned char>(log.back()))) log.remove_suffix(1);
  if (log.empty()) return "(no log)";
  if (log.size() <= kMaxLogInError) return std::string(log);
  return fmt::format("{}\n... ({} more characters)", log.substr(0, kMaxLogInError), log.size() - kMaxLogInError);
}

}  // namespace

void fail_unknown_arch(std::string_view assembler, std::string_view arch, std::string_view log) {
  fail(ErrorKind::unsupported,
       "{} does not know the architecture {}; choose another --arch, or another version of the assembler:\n{}",
       assembler, arch, shortened(log));
}

void fail_assembly(std::string_view assembler, std::string_view arch, std::string_view log) {
  // The wording differs between nvJitLink and ptxas, and between their versions.
  const bool unknown_arch = contains(log, "UNRECOGNIZED_ARCH") || contains(log, "UNSUPPORTED_ARCH") ||
                            contains(log, "unrecognized architecture") || contains(log, "unsupported architecture") ||
                            contains(log, "option 'gpu-name'");
  if (unknown_arch) fail_unknown_arch(assembler, arch, log);
  if (contains(log, "Unsupported .version")) {
    fail(ErrorKind::unsupported, "{} is older than the PTX it was given; a later version of the assembler helps:\n{}",
         assembler, shortened(log));
  }
  if (contains(log, ".target is higher")) {
    fail(ErrorKind::unsupported,
         "this PTX is for a later architecture than {}; compile with --arch {} among the list:\n{}", arch, arch,
         shortened(log));
  }
  fail(ErrorKind::bad_input, "{} rejected the PTX for {}:\n{}", assembler, arch, shortened(log));
}

void require_arch_name(std::string_view arch) {
  if (!arch.starts_with("sm_") || !parse_arch_name(arch)) {
    fail(ErrorKind::unsupported, "'{}' is not the name of a GPU architecture; one looks like sm_90", arch);
  }
}

void require_ptx(std::string_view ptx) {
  BURIN_CHECK(!ptx.empty(), "there is no PTX to assemble");
  BURIN_CHECK(ptx.find('\0') == std::string_view::npos, "the PTX holds a zero byte at offset {}", ptx.find('\0'));
}

}  // namespace burin
