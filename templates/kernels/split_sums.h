// Sums that several warps of a block and several blocks of a cluster have parts of: they are added up in shared memory,
// always in the same order. What a lane has of them are quads: `warp_quads` for each warp, whose parts are those of
// `sum_warps` warps, `split_warps()` times.
#pragma once

#include "templates/kernels/template_kernel.h"

constexpr u32 kMaxSplitWarps = 16, kMaxClusterSplits = 8;
constexpr u32 kQuadsAtOnce = 4;  // of other blocks, whose loads are under way together
constexpr u32 kSumQuadBytes = 16;
constexpr u32 kSumWarpBytes = kWarpThreads * kSumQuadBytes;  // of a quad of each lane

struct SplitSums {
  u32 start;  // in shared memory
  u32 sum_warps, warp_quads;
};
BURIN_DEVICE u32 part_bytes(const SplitSums& sums) { return sums.sum_warps * sums.warp_quads * kSumWarpBytes; }

// Where a lane's quads lie that are its warp's part: kSumWarpBytes apart.
BURIN_DEVICE u32 own_quads(const SplitSums& sums, u32 split, u32 sum_warp, u32 lane) {
  return sums.start + split * part_bytes(sums) + sum_warp * sums.warp_quads * kSumWarpBytes + lane * kSumQuadBytes;
}

// A quad: of which warp with sums, which of its quads, and of which lane.
struct SumPlace {
  u32 sum_warp, quad, lane;
};

// All splits of a quad of the block, in their order.
BURIN_DEVICE f32x4 add_splits(const SplitSums& sums, u32 place) {
  f32x4 parts[kMaxSplitWarps];
#pragma unroll
  for (u32 i = 0; i < kMaxSplitWarps; ++i) {
    if (i < static_cast<u32>(split_warps())) parts[i] = burin_dev_shared_load4(place, i * part_bytes(sums));
  }
  f32x4 sum = parts[0];
#pragma unroll
  for (u32 i = 1; i < kMaxSplitWarps; ++i) {
    if (i < static_cast<u32>(split_warps())) sum += parts[i];
  }
  return sum;
}
// Those of all blocks of the cluster.
BURIN_DEVICE f32x4 add_blocks(u32 place) {
  f32x4 parts[kMaxClusterSplits];
#pragma unroll
  for (u32 rank = 0; rank < kMaxClusterSplits; ++rank) {
    if (rank < static_cast<u32>(cluster_blocks())) parts[rank] = burin_dev_cluster_load4(place, 0, rank);
  }
  f32x4 sum = parts[0];
#pragma unroll
  for (u32 rank = 1; rank < kMaxClusterSplits; ++rank) {
    if (rank < static_cast<u32>(cluster_blocks())) sum += parts[rank];
  }
  return sum;
}

BURIN_DEVICE u32 quads(const SplitSums& sums) { return sums.sum_warps * sums.warp_quads * kWarpThreads; }
BURIN_DEVICE SumPlace place_of_quad(const SplitSums& sums, u32 number) {
  const u32 quad = number / kWarpThreads;
  return {quad / sums.warp_quads, quad % sums.warp_quads, number % kWarpThreads};
}
BURIN_DEVICE u32 address_of_quad(const SplitSums& sums, u32 number) { return sums.start + number * kSumQuadBytes; }

// visit(its SumPlace, where it lies) for the thread's share of the block's.
template <typename Visit>
BURIN_DEVICE void for_each_quad(const SplitSums& sums, u32 thread, Visit visit) {
#pragma nounroll
  for (u32 item = thread; item < quads(sums); item += block_threads()) {
    visit(place_of_quad(sums, item), address_of_quad(sums, item));
  }
}

// store(SumPlace, sums) for the thread's share of the cluster's. Where the last ones at once are too many, the first
// one is loaded again, and not stored. Sums go back to where the thread's own part of them was, which nobody loads: so
// all that was loaded is used, whatever becomes of it, as burin_dev_cluster_leave() wants it.
template <typename Store>
BURIN_DEVICE void add_up_blocks(const SplitSums& sums, u32 first, Store store) {
  const u32 threads = cluster_blocks() * block_threads(), count = quads(sums);
  const u32 at_once = at_most(kQuadsAtOnce, divide_up(count, threads));
#pragma nounroll
  for (u32 item = first; item < count; item += at_once * threads) {
    f32x4 added[kQuadsAtOnce];
#pragma unroll
    for (u32 i = 0; i < kQuadsAtOnce; ++i) {
      const u32 number = item + i * threads;
      if (i < at_once) added[i] = add_blocks(address_of_quad(sums, number < count ? number : item));
    }
#pragma unroll
    for (u32 i = 0; i < kQuadsAtOnce; ++i) {
      const u32 number = item + i * threads;
      if (i >= at_once) continue;
      burin_dev_shared_store4(address_of_quad(sums, number < count ? number : item), 0, added[i]);
      if (number < count) store(place_of_quad(sums, number), added[i]);
    }
  }
}

// All threads of the cluster call it when they have stored their parts; `rank`: the block's in its cluster.
// store(SumPlace, sums) for each quad, by one thread of the cluster.
template <typename Store>
BURIN_DEVICE void add_up(const SplitSums& sums, u32 rank, Store store) {
  const u32 thread = burin_dev_thread();
  if (cluster_blocks() == 1) {
    burin_dev_barrier();
    for_each_quad(sums, thread,
                  [&](const SumPlace& place, u32 at) BURIN_INLINED { store(place, add_splits(sums, at)); });
    return;
  }
  if (split_warps() > 1) {
    burin_dev_barrier();
    for_each_quad(sums, thread,
                  [&](const SumPlace&, u32 at) BURIN_INLINED { burin_dev_shared_store4(at, 0, add_splits(sums, at)); });
  }
  burin_dev_cluster_barrier();
  add_up_blocks(sums, rank * block_threads() + thread, store);
  // A barrier would wait for what was stored.
  burin_dev_cluster_leave();
}
