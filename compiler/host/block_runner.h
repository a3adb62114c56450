// Runs the blocks of a launch, several at a time on the CPU's threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/block_schedule.h"
#include "compiler/host/cluster.h"
#include "compiler/host/compile_for_host.h"

namespace burin {

class BlockRunner {
 public:
  // `code` must outlive this. `cores`: how many blocks run at the same time; 0: as many as the CPU has cores.
  BlockRunner(const HostCode& code, int threads, int shared_bytes, int cores)
      : code_(code), threads_(threads), shared_bytes_(shared_bytes), cores_(cores) {}

  // All blocks of one phase of the schedule. The first fault in their order, whichever CPU thread meets it.
  std::optional<std::string> run(const Launch& launch, const BlockSchedule& schedule, std::int64_t pass, int phase);

  // Gives back the stacks that are kept from run to run. A process may have so many alone as a few kernels take.
  void release() { workers_.clear(); }

 private:
  const HostCode& code_;
  int threads_, shared_bytes_, cores_;
  std::vector<std::unique_ptr<Cluster>> workers_;  // kept from run to run: their stacks take time to make
};

}  // namespace burin
