#include "compiler/tune/measurer.h"

#include <algorithm>
#include <limits>

#include "compiler/reference.h"
#include "compiler/tune/expected_output.h"
#include "ir/printable.h"

namespace burin {

LaunchTime Measurer::time(const Package& package, int batch, std::span<const float> input) {
  const Package* const one = &package;
  Timing timing = time_in_turns({&one, 1}, batch, input).front();
  if (timing.fault) throw *timing.fault;
  return timing.time;
}

std::string text_of(const std::vector<LibraryVersion>& libraries) {
  std::string text;
  for (const LibraryVersion& one : libraries) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", title_of(one.library), one.version);
  }
  return text;
}

bool TuningDevice::has(const std::optional<Library>& library) const {
  return !library || std::ranges::find(libraries, *library, &LibraryVersion::library) != libraries.end();
}

std::string recorded_fault(const Error& fault) {
  constexpr std::size_t kMostBytes = 400;
  std::string text = fault.what();
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  text = printable(text, kMostBytes);
  return text.empty() ? "failed without a message" : text;
}

double checked_error(Measurer& measurer, const Package& package, int batch, ExpectedOutput& expected) {
  std::vector<float> output(static_cast<std::size_t>(expected.elements()), std::numeric_limits<float>::quiet_NaN());
  measurer.run(package, batch, expected.input(), expected.residual(), output);
  const Arithmetic arithmetic = arithmetic_of(package.manifest.kernels.front());
  const ExpectedOutput::Verdict verdict = expected.judge(output, arithmetic);
  if (!verdict.fault.empty()) throw Error(ErrorKind::verification, verdict.fault);
  return verdict.error;
}

}  // namespace burin
