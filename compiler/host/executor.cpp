#include "compiler/host/executor.h"

#include <bit>
#include <new>
#include <optional>
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

constexpr int kSharedWordBytes = 4;

void verify_launch(const LaunchGeometry& launch, const std::string& symbol) {
  const auto require = [&](bool fine, std::string_view what, std::int64_t value, std::string_view allowed) {
    if (!fine) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has {} = {}; {}", symbol, what, value, allowed);
    }
  };
  require(launch.threads >= 1 && launch.threads <= kMaxThreadsPerBlock, "threads", launch.threads,
          "a block has 1 to 1024");
  require(
      launch.shared_bytes >= 0 && launch.shared_bytes <= kMaxSharedBytes && launch.shared_bytes % kSharedWordBytes == 0,
      "shared_bytes", launch.shared_bytes, "a block has whole words, at most 227 KiB");
  require(launch.slices >= 1 && launch.slices <= kMaxSlices, "slices", launch.slices, "a grid has 1 to 65535 in y");
  require(launch.tile_images >= 1, "tile_images", launch.tile_images, "at least 1 is needed");
  require(launch.tiles_per_image >= 1, "tiles_per_image", launch.tiles_per_image, "at least 1 is needed");
  require(launch.cluster_tiles >= 1 && launch.cluster_tiles <= kMaxClusterBlocks, "cluster_tiles", launch.cluster_tiles,
          "a cluster has 1 to 8 blocks");
  require(launch.workspace_bytes_per_tile >= 0 && launch.workspace_bytes_per_tile <= kMaxWorkspaceBytes &&
              launch.workspace_bytes_per_tile % kSharedWordBytes == 0,
          "workspace_bytes_per_tile", launch.workspace_bytes_per_tile, "whole words are needed, at most 1 TiB");
  require(launch.counters_per_tile >= 0 && launch.counters_per_tile <= kMaxSlices, "counters_per_tile",
          launch.counters_per_tile, "at most one per slice can be used");
}

void require_size(std::string_view tensor, std::size_t has, TensorLayout layout, std::int64_t wanted,
                  const HostLaunchArguments& arguments, const ConvShape& shape) {
  if (static_cast<std::int64_t>(has) == wanted) return;
  fail(ErrorKind::bad_input, "the {} has {} {}; batch {} of {} needs {} in {}", tensor, has,
       images_together(layout) == 1 ? "values" : "words", arguments.batch, describe(shape), wanted, to_string(layout));
}

void require_map(std::string_view tensor, std::size_t has, const std::optional<ActivityMap>& map,
                 const ActivityExtent& extent) {
  if (has == 0) return;
  const std::int64_t wanted = map ? map_bytes(*map, extent) : 0;
  if (static_cast<std::int64_t>(has) == wanted) return;
  fail(ErrorKind::bad_input, "the activity map of the {} has {} bytes; batch {} needs {}", tensor, has, extent.images,
       wanted);
}

}  // namespace

struct HostKernel::Impl {
  Impl(std::string_view bitcode, const std::string& symbol, const LaunchGeometry& launch, const ConvShape& shape)
      : symbol(symbol),
        launch(launch),
        shape(shape),
        code(bitcode, symbol),
        runner(code, launch.threads, launch.shared_bytes) {
    const ClusterExtent& cluster = code.cluster();
    if (launch.slices % cluster.y != 0) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has slices = {}; they make no clusters of {} blocks", symbol,
           launch.slices, cluster.y);
    }
    if (launch.cluster_tiles % cluster.x != 0) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has cluster_tiles = {}; its clusters have {} blocks in x",
           symbol, launch.cluster_tiles, cluster.x);
    }
    if (launch.has_activity() != (code.activity_kernel() != nullptr)) {
      fail(ErrorKind::bad_input, "kernel '{}': its launch has {}activity maps, its code has {}parameters for them",
           symbol, launch.has_activity() ? "" : "no ", code.activity_kernel() != nullptr ? "" : "no ");
    }
  }

  void run(const HostLaunchArguments& arguments);
  void run_pass(const HostLaunchArguments& arguments, const BlockSchedule& schedule, std::int64_t pass,
                std::int64_t tiles);

  std::string symbol;
  LaunchGeometry launch;
  ConvShape shape;
  HostCode code;
  BlockRunner runner;
};

void HostKernel::Impl::run(const HostLaunchArguments& arguments) {
  if (arguments.batch < 1 || arguments.batch > kMaxBatch) {
    fail(ErrorKind::bad_input, "batch {} is not between 1 and {}", arguments.batch, kMaxBatch);
  }
  const std::int64_t inputs =
      tensor_words(launch.input_layout, arguments.batch, shape.in_channels, shape.in_h, shape.in_w);
  const std::int64_t outputs = output_words(launch, shape, arguments.batch);
  require_size("input", arguments.input.size(), launch.input_layout, inputs, arguments, shape);
  require_size("output", arguments.output.size(), launch.output_layout, outputs, arguments, shape);
  if (shape.epilogue.residual || !arguments.residual.empty()) {
    require_size("residual", arguments.residual.size(), launch.output_layout,
                 shape.epilogue.residual ? residual_words(launch, shape, arguments.batch) : 0, arguments, shape);
  }
  require_map("input", arguments.input_activity.size(), launch.input_activity,
              {arguments.batch, shape.in_channels, shape.in_h, shape.in_w});
  require_map("output", arguments.output_activity.size(), launch.output_activity,
              {arguments.batch, shape.out_channels, shape.out_h(), shape.out_w()});
  const std::int64_t tiles = tile_count(launch, arguments.batch), width = grid_width(launch, arguments.batch);
  const std::int64_t blocks = width * launch.slices;
  if (width > kMaxTiles || blocks > kMaxTiles) {
    fail(ErrorKind::unsupported, "kernel '{}': batch {} makes {} x {} blocks; the host runs at most {}", symbol,
         arguments.batch, width, launch.slices, kMaxTiles);
  }
  if (launch.workspace_bytes_per_tile > kMaxWorkspaceBytes / tiles) {
    fail(ErrorKind::unsupported, "kernel '{}': batch {} needs more than {} bytes for partial sums", symbol,
         arguments.batch, kMaxWorkspaceBytes);
  }
  const BlockSchedule schedule(launch, width, code.cluster());
  run_pass(arguments, schedule, 0, tiles);
  if (schedule.passes() == 1) return;
  const std::vector<float> first(arguments.output.begin(), arguments.output.end());
  for (std::int64_t pass = 1; pass < schedule.passes(); ++pass) {
    run_pass(arguments, schedule, pass, tiles);
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (std::bit_cast<std::uint32_t>(first[i]) == std::bit_cast<std::uint32_t>(arguments.output[i])) continue;
      fail(ErrorKind::verification,
           "kernel '{}': output element {} depends on which split of its group arrives last: {} or {}", symbol, i,
           first[i], arguments.output[i]);
    }
  }
}

void HostKernel::Impl::run_pass(const HostLaunchArguments& arguments, const BlockSchedule& schedule, std::int64_t pass,
                                std::int64_t tiles) {
  LaunchMemory memory(shape, launch, tiles, arguments.input, arguments.output, arguments.residual,
                      arguments.input_activity, arguments.output_activity);
  const auto width = static_cast<std::uint32_t>(grid_width(launch, arguments.batch));
  const Launch job = {code.kernel(), code.activity_kernel(), nullptr, &memory, width, arguments.batch, code.awaits()};
  for (int phase = 0; phase < schedule.phases(); ++phase) {
    const auto fault = runner.run(job, schedule, pass, phase);
    if (fault) fail(ErrorKind::verification, "kernel '{}', {}", symbol, *fault);
  }
  if (const auto missing = memory.incomplete()) fail(ErrorKind::verification, "kernel '{}': {}", symbol, *missing);
}

HostKernel::HostKernel(std::string_view bitcode, const std::string& symbol, const LaunchGeometry& launch,
                       const ConvShape& shape) {
  verify_launch(launch, symbol);
  if (const auto faults = verify(shape); !faults.empty()) {
    fail(ErrorKind::bad_input, "kernel '{}': {}", symbol, faults.front());
  }
  const auto require_cells = [&](const std::optional<ActivityMap>& map, const ActivityExtent& extent,
                                 TensorLayout layout, std::string_view what) {
    if (!map) return;
    if (const auto faults = verify(*map, extent, images_together(layout), what); !faults.empty()) {
      fail(ErrorKind::bad_input, "kernel '{}': {}", symbol, faults.front());
    }
  };
  require_cells(launch.input_activity, {1, shape.in_channels, shape.in_h, shape.in_w}, launch.input_layout,
                "input_activity");
  require_cells(launch.output_activity, {1, shape.out_channels, shape.out_h(), shape.out_w()}, launch.output_layout,
                "output_activity");
  impl_ = std::make_unique<Impl>(bitcode, symbol, launch, shape);
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
