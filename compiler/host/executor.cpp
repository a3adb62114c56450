#include "compiler/host/executor.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/host/block_schedule.h"
#include "compiler/host/cluster.h"
#include "compiler/host/compile_for_host.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

// GPU threads at once. Each has a stack and a page that guards it; a process may have some 65 thousand such pieces of
// memory.
constexpr int kMaxFibers = 16 * kMaxThreadsPerBlock;

// The first fault in the order of the blocks, whichever CPU thread meets it.
class FirstFault {
 public:
  bool before(std::uint64_t position) const { return first_.load(std::memory_order_relaxed) < position; }
  void offer(std::uint64_t position, std::string text) {
    const std::lock_guard lock(mutex_);
    if (position >= first_) return;
    first_ = position;
    text_ = std::move(text);
  }
  const std::optional<std::string>& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> first_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::string> text_;
};

void require_words(const KernelForm& form, TensorRole role, std::size_t has, int batch) {
  const KernelTensor* tensor = form.find(role);
  std::int64_t wanted = 0;
  if (tensor != nullptr) wanted = role == TensorRole::weights ? tensor->run_words : tensor->spanned_memory(batch);
  if (static_cast<std::int64_t>(has) == wanted) return;
  const bool is_laid_out = tensor != nullptr && role != TensorRole::weights;
  fail(ErrorKind::bad_input, "tensor '{}' has {} words; batch {} needs {}{}", to_string(role), has, batch, wanted,
       is_laid_out ? fmt::format(" in {}", to_string(tensor->layout)) : "");
}

void require_map(const KernelForm& form, TensorRole role, std::size_t has, int batch) {
  if (has == 0) return;
  const KernelTensor* tensor = form.find(role);
  const std::int64_t wanted =
      tensor == nullptr ? 0 : map_bytes(*tensor->map, {batch, tensor->channels, tensor->rows, tensor->cols});
  if (static_cast<std::int64_t>(has) == wanted) return;
  fail(ErrorKind::bad_input, "the activity map of the {} has {} bytes; batch {} needs {}",
       role == TensorRole::input_map ? "input" : "output", has, batch, wanted);
}

}  // namespace

struct HostKernel::Impl {
  Impl(std::string_view bitcode, const std::string& symbol, const KernelForm& form, int cores,
       const HostFunctions& functions)
      : symbol(symbol), form(form), code(bitcode, symbol, form, functions), cores(cores) {
    const ClusterExtent& cluster = code.cluster();
    const LaunchGeometry& launch = form.launch;
    if (launch.slices % cluster.y != 0) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has slices = {}; they make no clusters of {} blocks", symbol,
           launch.slices, cluster.y);
    }
    if (launch.cluster_tiles != cluster.x) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has cluster_tiles = {}; its clusters have {} blocks in x",
           symbol, launch.cluster_tiles, cluster.x);
    }
  }

  void run(const HostLaunchArguments& arguments);
  void run_pass(const HostLaunchArguments& arguments, const BlockSchedule& schedule, std::int64_t pass);
  // All blocks of one phase of the schedule. The first fault in their order, whichever CPU thread meets it.
  std::optional<std::string> run_phase(const Launch& launch, const BlockSchedule& schedule, std::int64_t pass,
                                       int phase);

  std::string symbol;
  KernelForm form;
  HostCode code;
  int cores;                                      // how many blocks run at the same time; 0: as many as the CPU has
  std::vector<std::unique_ptr<Cluster>> workers;  // kept from run to run: their stacks take time to make
};

void HostKernel::Impl::run(const HostLaunchArguments& arguments) {
  if (arguments.batch < 1 || arguments.batch > kMaxBatch) {
    fail(ErrorKind::bad_input, "batch {} is not between 1 and {}", arguments.batch, kMaxBatch);
  }
  const LaunchGeometry& launch = form.launch;
  require_words(form, TensorRole::input, arguments.input.size(), arguments.batch);
  require_words(form, TensorRole::output, arguments.output.size(), arguments.batch);
  require_words(form, TensorRole::residual, arguments.residual.size(), arguments.batch);
  require_words(form, TensorRole::weights, arguments.weights.size(), arguments.batch);
  require_map(form, TensorRole::input_map, arguments.input_map.size(), arguments.batch);
  require_map(form, TensorRole::output_map, arguments.output_map.size(), arguments.batch);
  const std::int64_t tiles = tile_count(launch, arguments.batch), width = grid_width(launch, arguments.batch);
  if (width > kMaxTiles / launch.slices) {
    fail(ErrorKind::unsupported, "kernel '{}': batch {} makes {} x {} blocks; the host runs at most {}", symbol,
         arguments.batch, width, launch.slices, kMaxTiles);
  }
  if (launch.workspace_bytes_per_tile > kMaxWorkspaceBytes / tiles) {
    fail(ErrorKind::unsupported, "kernel '{}': batch {} needs more than {} bytes for partial sums", symbol,
         arguments.batch, kMaxWorkspaceBytes);
  }
  const BlockSchedule schedule(launch, width, code.cluster());
  run_pass(arguments, schedule, 0);
  if (schedule.passes() == 1) return;
  const std::vector<float> first(arguments.output.begin(), arguments.output.end());
  for (std::int64_t pass = 1; pass < schedule.passes(); ++pass) {
    run_pass(arguments, schedule, pass);
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (std::bit_cast<std::uint32_t>(first[i]) == std::bit_cast<std::uint32_t>(arguments.output[i])) continue;
      fail(ErrorKind::verification,
           "kernel '{}': output element {} depends on which split of its group arrives last: {} or {}", symbol, i,
           first[i], arguments.output[i]);
    }
  }
}

void HostKernel::Impl::run_pass(const HostLaunchArguments& arguments, const BlockSchedule& schedule,
                                std::int64_t pass) {
  LaunchMemory memory(form, arguments);
  Launch launch{.kernel = code.kernel(),
                .addresses = {},
                .memory = &memory,
                .blocks_x = static_cast<std::uint32_t>(grid_width(form.launch, arguments.batch)),
                .batch = arguments.batch,
                .awaits = code.awaits()};
  for (const KernelTensor& tensor : form.tensors) launch.addresses.push_back(memory.base(tensor.role));
  for (std::size_t i = 0; i < form.boxes.size(); ++i) launch.addresses.push_back(LaunchMemory::box_address(i));
  for (int phase = 0; phase < schedule.phases(); ++phase) {
    const auto fault = run_phase(launch, schedule, pass, phase);
    if (fault) fail(ErrorKind::verification, "kernel '{}', {}", symbol, *fault);
  }
  if (const auto missing = memory.incomplete()) fail(ErrorKind::verification, "kernel '{}': {}", symbol, *missing);
}

std::optional<std::string> HostKernel::Impl::run_phase(const Launch& launch, const BlockSchedule& schedule,
                                                       std::int64_t pass, int phase) {
  const auto most = static_cast<std::uint64_t>(kMaxFibers / (form.launch.threads * code.cluster().blocks()));
  const int at_once = cores > 0 ? cores : core_count();
  const std::uint64_t wanted = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(at_once), 1, most);
  const auto count = static_cast<std::size_t>(std::min(wanted, schedule.turns()));
  while (workers.size() < count) {
    workers.push_back(
        std::make_unique<Cluster>(code.cluster(), form.launch.threads, form.launch.shared_bytes, code.stack_bytes()));
  }
  FirstFault fault;
  std::atomic<std::uint64_t> next = 0;
  // Positions are taken in order, so when one has a fault, all before it have been taken and will be finished.
  const auto work = [&](Cluster& worker) {
    for (std::uint64_t position = next++; position < schedule.turns() && !fault.before(position); position = next++) {
      const auto block = schedule.block(pass, phase, position);
      if (!block) continue;
      if (auto text = worker.run(launch, *block)) fault.offer(position, std::move(*text));
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work, std::ref(*workers[i]));
  work(*workers.front());
  threads.clear();  // waits for them
  return fault.text();
}

HostKernel::HostKernel(std::string_view bitcode, const std::string& symbol, const KernelForm& form, int cores,
                       const HostFunctions& functions) {
  if (const auto faults = verify(form); !faults.empty()) {
    fail(ErrorKind::bad_input, "kernel '{}': {}", symbol, faults.front());
  }
  for (const KernelTensor& tensor : form.tensors) {
    const auto count = std::ranges::count(form.tensors, tensor.role, &KernelTensor::role);
    if (count > 1) {
      fail(ErrorKind::unsupported, "kernel '{}' has {} tensors '{}'; the host executor knows kernels with one", symbol,
           count, to_string(tensor.role));
    }
  }
  impl_ = std::make_unique<Impl>(bitcode, symbol, form, cores, functions);
}

HostKernel::~HostKernel() = default;
HostKernel::HostKernel(HostKernel&&) noexcept = default;
HostKernel& HostKernel::operator=(HostKernel&&) noexcept = default;

void HostKernel::release() { impl_->workers.clear(); }

void HostKernel::run(const HostLaunchArguments& arguments) {
  try {
    impl_->run(arguments);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::unsupported, "kernel '{}': there is not enough memory to run batch {} on the host", impl_->symbol,
         arguments.batch);
  }
}

}  // namespace burin
