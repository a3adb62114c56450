// One random case through the whole pipeline: compiled, run, compared with the float64 reference.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/execute/executor.h"
#include "ir/baked_plan.h"
#include "ir/network.h"
#include "test/codegen/random_case.h"
#include "test/scratch_folder.h"

namespace burin_test {

struct CaseOutcome {
  enum class Kind { right, unsupported, wrong } kind = Kind::wrong;
  std::string text;                      // why it is not right
  std::string provider;                  // where there is code
  std::optional<burin::BakedPlan> plan;  // of baked code
  double worst_ratio = 0;                // largest error / tolerance
  bool device_lost = false;              // the driver refuses all work after such an error
};

class CaseRunner {
 public:
  explicit CaseRunner(const burin::DeviceChoice& device) : device_(device) {}

  // May be called by several threads: they compile at once and take turns on the GPU. Throws nothing that a case can
  // cause.
  CaseOutcome run(const RandomCase& drawn);

  // The case that the GPU has been at for longer than `limit`.
  std::optional<std::string> stuck(std::chrono::seconds limit) const;

 private:
  class TakesTurns;
  struct Running {
    std::string what;
    std::chrono::steady_clock::time_point since;
  };

  static burin::Network network_of(const RandomCase& drawn);
  burin::Package compile(const RandomCase& drawn) const;
  CaseOutcome verify(const RandomCase& drawn);

  const burin::DeviceChoice device_;
  const ScratchFolder folder_;  // plans made by hand go in as files
  std::mutex gpu_;              // whoever holds it runs its kernel
  mutable std::mutex running_mutex_;
  std::optional<Running> running_;
};

}  // namespace burin_test
