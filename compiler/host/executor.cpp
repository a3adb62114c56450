#include "compiler/host/executor.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/host/block_runner.h"
#include "compiler/host/block_schedule.h"
#include "compiler/host/compile_for_host.h"
#include "compiler/host/launch_memory.h"
#include "ir/error.h"
#include "ir/limits.h"

namespace burin {
namespace {

void require_words(const KernelForm& form, TensorRole role, std::size_t has, int batch) {
  const KernelTensor* tensor = form.find(role);
  std::int64_t wanted = 0;
  if (tensor != nullptr) wanted = role == TensorRole::weights ? tensor->run_words : tensor->spanned_words(batch);
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
  Impl(std::string_view bitcode, const std::string& symbol, const KernelForm& form, int cores)
      : symbol(symbol),
        form(form),
        code(bitcode, symbol, form.tensors),
        runner(code, form.launch.threads, form.launch.shared_bytes, cores) {
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

  std::string symbol;
  KernelForm form;
  HostCode code;
  BlockRunner runner;
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
  for (int phase = 0; phase < schedule.phases(); ++phase) {
    const auto fault = runner.run(launch, schedule, pass, phase);
    if (fault) fail(ErrorKind::verification, "kernel '{}', {}", symbol, *fault);
  }
  if (const auto missing = memory.incomplete()) fail(ErrorKind::verification, "kernel '{}': {}", symbol, *missing);
}

HostKernel::HostKernel(std::string_view bitcode, const std::string& symbol, const KernelForm& form, int cores) {
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
  impl_ = std::make_unique<Impl>(bitcode, symbol, form, cores);
}

HostKernel::~HostKernel() = default;
HostKernel::HostKernel(HostKernel&&) noexcept = default;
HostKernel& HostKernel::operator=(HostKernel&&) noexcept = default;

void HostKernel::release() { impl_->runner.release(); }

void HostKernel::run(const HostLaunchArguments& arguments) {
  try {
    impl_->run(arguments);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::unsupported, "kernel '{}': there is not enough memory to run batch {} on the host", impl_->symbol,
         arguments.batch);
  }
}

}  // namespace burin
