// Sums that several warps of a block and several blocks of a cluster (cluster_sums.h) have parts of: they are added up
// in shared memory, always in the same order. What a lane has of them are quads: `warp_quads` for each warp, whose
// parts are those of `sum_warps` warps, `split_warps()` times.
#pragma once

#include "templates/kernels/cluster_sums.h"

constexpr u32 kMaxSplitWarps = 16;
constexpr u32 kSumWarpBytes = kWarpThreads * kSumQuadBytes;  // of a quad of each lane

struct SplitSums {
  u32 start;     // in shared memory
  u32 room_end;  // of what else lies there before the sums do
  u32 sum_warps, warp_quads;
};
BURIN_DEVICE u32 part_bytes(const SplitSums& sums) { return sums.sum_warps * sums.warp_quads * kSumWarpBytes; }
// Behind both: what the other blocks of the cluster send.
BURIN_DEVICE u32 received_start(const SplitSums& sums) {
  const u32 end = sums.start + split_warps() * part_bytes(sums);
  return end > sums.room_end ? end : sums.room_end;
}

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

// All threads of the cluster call it when they have stored their parts, and have called begin_cluster_sums(); `rank`:
// the block's in its cluster. store(SumPlace, sums) for each quad, by one thread of the cluster.
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
  const ClusterSums all = {sums.start, received_start(sums), quads(sums), rank};
  exchange_sums(all, thread);
#pragma unroll 2
  for (u32 quad = thread; quad < share_quads(all); quad += block_threads()) {
    store(place_of_quad(sums, rank * share_quads(all) + quad), sum_of_blocks(all, quad));
  }
  burin_dev_cluster_meet();
}
