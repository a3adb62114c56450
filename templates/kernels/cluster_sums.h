// Sums of which the blocks of a cluster have parts: quads in shared memory. Each block adds up a share of them, of
// which the others send it theirs, to where nothing else ever lies. Loading them behind a barrier would take longer:
// the barrier waits for all that was stored, and each quad then makes its way to the other block and back.
#pragma once

#include "templates/kernels/template_kernel.h"

constexpr u32 kSumsGate = kGates - 1;
constexpr u32 kSumQuadBytes = 16;

struct ClusterSums {
  u32 start, received;  // in shared memory
  u32 quads;            // of the block; each share has as many
  u32 rank;             // of the block in its cluster
};
BURIN_DEVICE u32 share_quads(const ClusterSums& sums) { return sums.quads / cluster_blocks(); }
BURIN_DEVICE u32 share_bytes(const ClusterSums& sums) { return share_quads(sums) * kSumQuadBytes; }

// First of all, by all threads; a barrier follows before sums are exchanged.
BURIN_DEVICE void begin_cluster_sums(u32 thread) {
  if (cluster_blocks() == 1) return;
  if (thread == 0) burin_dev_gate_init(kSumsGate);
  burin_dev_cluster_arrive();
}

// By all threads of the cluster, when they have stored their parts. Afterwards the block has all parts of its share,
// and others have what it has sent as soon as they arrive: before it ends, or stores to other shares, it meets them.
BURIN_DEVICE void exchange_sums(const ClusterSums& sums, u32 thread) {
  const u32 others = cluster_blocks() - 1, bytes = share_bytes(sums);
  burin_dev_cluster_meet();
  burin_dev_group_offer();
  burin_dev_barrier();
  if (thread == 0) burin_dev_gate_expect(kSumsGate, others * bytes);
  if (thread < others) {
    const u32 to = (sums.rank + 1 + thread) % cluster_blocks();
    const u32 place = to > sums.rank ? sums.rank : sums.rank - 1;  // of its others
    burin_dev_cluster_send(0, sums.start + to * bytes, sums.received + place * bytes, bytes, to, kSumsGate);
  }
  burin_dev_gate_sleep(kSumsGate, 0);
  burin_dev_cluster_arrive();
}

BURIN_DEVICE u32 own_sums(const ClusterSums& sums) { return sums.start + sums.rank * share_bytes(sums); }
// A quad of the share.
BURIN_DEVICE f32x4 sum_of_blocks(const ClusterSums& sums, u32 quad) {
  f32x4 sum = burin_dev_shared_load4(own_sums(sums) + quad * kSumQuadBytes, 0);
#pragma unroll
  for (u32 i = 0; i + 1 < static_cast<u32>(cluster_blocks()); ++i) {
    sum += burin_dev_shared_load4(sums.received + quad * kSumQuadBytes, i * share_bytes(sums));
  }
  return sum;
}
