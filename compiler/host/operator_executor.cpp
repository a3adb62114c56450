#include "compiler/host/operator_executor.h"

#include <new>

#include "compiler/host/block_runner.h"
#include "compiler/host/launch_memory.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {

struct HostOperator::Impl {
  Impl(std::string_view bitcode, const std::string& symbol, const OperatorPlan& plan)
      : symbol(symbol), plan(plan), code(bitcode, symbol, true), runner(code, plan.threads, plan.shared_bytes) {
    if (code.cluster().x != plan.cluster_blocks || code.cluster().y != 1) {
      fail(ErrorKind::bad_input, "operator kernel '{}': its code is for clusters of {} x {} blocks, its plan for {}",
           symbol, code.cluster().x, code.cluster().y, plan.cluster_blocks);
    }
  }

  void require_words(std::string_view tensor, std::size_t has, std::int64_t wanted, int batch) const {
    if (static_cast<std::int64_t>(has) == wanted) return;
    fail(ErrorKind::bad_input, "operator kernel '{}': the {} has {} values; batch {} needs {}", symbol, tensor, has,
         batch, wanted);
  }

  void run(const HostOperatorArguments& arguments) {
    const int batch = arguments.batch;
    if (batch < 1 || batch > kMaxBatch)
      fail(ErrorKind::bad_input, "batch {} is not between 1 and {}", batch, kMaxBatch);
    require_words("input", arguments.input.size(), batch * plan.input.image_words, batch);
    require_words("output", arguments.output.size(), batch * plan.output.image_words, batch);
    require_words("second input", arguments.second.size(), batch * plan.second.image_words, batch);
    require_words("weights", arguments.weights.size(), plan.weight_words, batch);
    const std::int64_t blocks = plan.blocks(batch);
    if (blocks > kMaxTiles) {
      fail(ErrorKind::unsupported, "operator kernel '{}': batch {} makes {} blocks; at most {} can be launched", symbol,
           batch, blocks, kMaxTiles);
    }
    LaunchMemory memory(plan.output, blocks, arguments.input, arguments.output, arguments.second, arguments.weights);
    const Launch launch = {nullptr, nullptr,      code.operator_kernel(), &memory, static_cast<std::uint32_t>(blocks),
                           batch,   code.awaits()};
    LaunchGeometry geometry;
    geometry.threads = plan.threads;
    const auto fault = runner.run(launch, BlockSchedule(geometry, blocks, code.cluster()), 0, 0);
    if (fault) fail(ErrorKind::verification, "kernel '{}', {}", symbol, *fault);
    if (const auto missing = memory.incomplete()) fail(ErrorKind::verification, "kernel '{}': {}", symbol, *missing);
  }

  std::string symbol;
  OperatorPlan plan;
  HostCode code;
  BlockRunner runner;
};

HostOperator::HostOperator(std::string_view bitcode, const std::string& symbol, const OperatorPlan& plan) {
  if (const auto faults = verify(plan); !faults.empty()) {
    fail(ErrorKind::bad_input, "operator kernel '{}': {}", symbol, faults.front());
  }
  impl_ = std::make_unique<Impl>(bitcode, symbol, plan);
}

HostOperator::~HostOperator() = default;
HostOperator::HostOperator(HostOperator&&) noexcept = default;
HostOperator& HostOperator::operator=(HostOperator&&) noexcept = default;

void HostOperator::release() { impl_->runner.release(); }

void HostOperator::run(const HostOperatorArguments& arguments) {
  try {
    impl_->run(arguments);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::unsupported, "operator kernel '{}': there is not enough memory to run batch {} on the host",
         impl_->symbol, arguments.batch);
  }
}

}  // namespace burin
