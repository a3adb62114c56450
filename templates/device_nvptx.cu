// The device primitives as GPU instructions. Compiled for sm_75 (no asynchronous copies), for sm_80 and for sm_90
// (clusters and bulk copies), and inlined into a specialised module in the last step before PTX.
#include "device.h"

#define BURIN_SHARED __attribute__((address_space(3)))
#define BURIN_GLOBAL __attribute__((address_space(1)))
#define BURIN_INLINE extern "C" __attribute__((device, used, always_inline, nothrow))

// Boxes are copied to multiples of 128 bytes, and swizzled by the number of eight such lines.
#if __CUDA_ARCH__ >= 900
#define BURIN_SHARED_ALIGNMENT 1024
#else
#define BURIN_SHARED_ALIGNMENT 16
#endif
// The block's dynamic shared memory. The first word is the broadcast's, the gates follow; a plan keeps
// kSharedReserveBytes for both.
extern "C" __attribute__((device, shared, aligned(BURIN_SHARED_ALIGNMENT))) char burin_shared[];

BURIN_DEVICE BURIN_SHARED char* shared_address(u32 base, u32 offset) {
  return (BURIN_SHARED char*)burin_shared + (u64)base + (u64)offset;
}
BURIN_DEVICE BURIN_GLOBAL float* global_address(float* base, i64 byte_offset) {
  return (BURIN_GLOBAL float*)((BURIN_GLOBAL char*)(base) + byte_offset);
}
BURIN_DEVICE const BURIN_GLOBAL float* global_address(const float* base, i64 byte_offset) {
  return (const BURIN_GLOBAL float*)((const BURIN_GLOBAL char*)(base) + byte_offset);
}

#define BURIN_SPECIAL_REGISTER(function, name)                 \
  BURIN_INLINE u32 function() {                                \
    u32 value;                                                 \
    __asm__ volatile("mov.u32 %0, %%" name ";" : "=r"(value)); \
    return value;                                              \
  }
BURIN_SPECIAL_REGISTER(burin_dev_thread, "tid.x")
BURIN_SPECIAL_REGISTER(burin_dev_block_x, "ctaid.x")
BURIN_SPECIAL_REGISTER(burin_dev_block_y, "ctaid.y")

BURIN_INLINE float burin_dev_shared_load(u32 base, u32 offset) {
  return *(BURIN_SHARED float*)shared_address(base, offset);
}
BURIN_INLINE float burin_dev_shared_load_if(u32, u32 base, u32 offset) { return burin_dev_shared_load(base, offset); }
BURIN_INLINE f32x4 burin_dev_shared_load4(u32 base, u32 offset) {
  return *(BURIN_SHARED f32x4*)shared_address(base, offset);
}
BURIN_INLINE f32x4 burin_dev_shared_load4_if(u32, u32 base, u32 offset) { return burin_dev_shared_load4(base, offset); }
BURIN_INLINE void burin_dev_shared_store4(u32 base, u32 offset, f32x4 value) {
  *(BURIN_SHARED f32x4*)shared_address(base, offset) = value;
}
BURIN_INLINE void burin_dev_shared_store(u32 base, u32 offset, float value) {
  *(BURIN_SHARED float*)shared_address(base, offset) = value;
}
BURIN_INLINE u32 burin_dev_shared_load_word(u32 base, u32 offset) {
  return *(BURIN_SHARED u32*)shared_address(base, offset);
}
BURIN_INLINE void burin_dev_shared_store_word(u32 base, u32 offset, u32 value) {
  *(BURIN_SHARED u32*)shared_address(base, offset) = value;
}
BURIN_INLINE void burin_dev_shared_store_half(u32 base, u32 offset, u32 half) {
  *(BURIN_SHARED unsigned short*)shared_address(base, offset) = static_cast<unsigned short>(half);
}
BURIN_INLINE void burin_dev_shared_or(u32 base, u32 offset, u32 bits) {
  constexpr u32 kWarpThreads = 32, kAllLanes = 0xFFFFFFFF;
#if __CUDA_ARCH__ >= 800
  __asm__ volatile("redux.sync.or.b32 %0, %0, %1;" : "+r"(bits) : "n"(kAllLanes));
#else
  for (u32 distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    bits |= __nvvm_shfl_sync_bfly_i32(kAllLanes, bits, distance, kWarpThreads - 1);
  }
#endif
  if (burin_dev_thread() % kWarpThreads == 0 && bits != 0) {
    __asm__ volatile("red.shared.or.b32 [%0], %1;" ::"r"((u32)(u64)shared_address(base, offset)), "r"(bits) : "memory");
  }
}
BURIN_INLINE u32 burin_dev_shared_load_word_if(u32, u32 base, u32 offset) {
  return burin_dev_shared_load_word(base, offset);
}
BURIN_INLINE u32 burin_dev_global_load_word(const float* base, i64 byte_offset) {
  return *(const BURIN_GLOBAL u32*)global_address(base, byte_offset);
}
BURIN_INLINE void burin_dev_global_store_word(float* base, i64 byte_offset, u32 value) {
  *(BURIN_GLOBAL u32*)global_address(base, byte_offset) = value;
}
BURIN_INLINE u32 burin_dev_global_load_half(const float* base, i64 byte_offset) {
  return *(const BURIN_GLOBAL unsigned short*)global_address(base, byte_offset);
}
BURIN_INLINE void burin_dev_global_store_half(float* base, i64 byte_offset, u32 value) {
  *(BURIN_GLOBAL unsigned short*)global_address(base, byte_offset) = static_cast<unsigned short>(value);
}
BURIN_INLINE u32 burin_dev_map_load(const u8* base, i64 offset) { return ((const BURIN_GLOBAL u8*)base)[offset]; }
BURIN_INLINE void burin_dev_map_store_if(u32 condition, u8* base, i64 offset, u32 value) {
  if (condition != 0) ((BURIN_GLOBAL u8*)base)[offset] = static_cast<u8>(value);
}
BURIN_INLINE float burin_dev_global_load(const float* base, i64 byte_offset) {
  return *global_address(base, byte_offset);
}
BURIN_INLINE float burin_dev_global_load_if(u32 condition, const float* base, i64 byte_offset) {
  float value;
  __asm__ volatile(
      "{\n\t.reg .pred holds;\n\tsetp.ne.u32 holds, %1, 0;\n\tmov.f32 %0, 0f00000000;\n\t"
      "@holds ld.global.f32 %0, [%2];\n\t}"
      : "=&f"(value)
      : "r"(condition), "l"(global_address(base, byte_offset)));
  return value;
}
BURIN_INLINE f32x4 burin_dev_global_load4(const float* base, i64 byte_offset) {
  return *(const BURIN_GLOBAL f32x4*)global_address(base, byte_offset);
}
BURIN_INLINE void burin_dev_global_store4(float* base, i64 byte_offset, f32x4 value) {
  *(BURIN_GLOBAL f32x4*)global_address(base, byte_offset) = value;
}
BURIN_INLINE void burin_dev_global_store(float* base, i64 byte_offset, float value) {
  *global_address(base, byte_offset) = value;
}
BURIN_INLINE float burin_dev_scratch_load(const float* base, i64 byte_offset) {
  float value;
  __asm__ volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(global_address(base, byte_offset)) : "memory");
  return value;
}
BURIN_INLINE void burin_dev_scratch_store(float* base, i64 byte_offset, float value) {
  __asm__ volatile("st.global.cg.f32 [%0], %1;" ::"l"(global_address(base, byte_offset)), "f"(value) : "memory");
}

#if __CUDA_ARCH__ >= 800
BURIN_INLINE void burin_dev_copy_async(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                       u32 valid) {
  __nvvm_cp_async_ca_shared_global_4((BURIN_SHARED void*)shared_address(shared_base, shared_offset),
                                     (const BURIN_GLOBAL void*)global_address(source, byte_offset), valid * 4);
}
BURIN_INLINE void burin_dev_copy_async4(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                        u32 valid) {
  __nvvm_cp_async_cg_shared_global_16((BURIN_SHARED void*)shared_address(shared_base, shared_offset),
                                      (const BURIN_GLOBAL void*)global_address(source, byte_offset), valid * 16);
}
BURIN_INLINE void burin_dev_copy_commit() { __nvvm_cp_async_commit_group(); }
BURIN_INLINE void burin_dev_copy_wait(u32 pending) {
#define BURIN_WAIT(number) \
  case number:             \
    return __nvvm_cp_async_wait_group(number);
  switch (pending) {
    BURIN_WAIT(0)
    BURIN_WAIT(1)
    BURIN_WAIT(2)
    BURIN_WAIT(3)
    BURIN_WAIT(4)
    BURIN_WAIT(5)
    BURIN_WAIT(6)
    BURIN_WAIT(7)  // kMaxBuffers - 1
  }
#undef BURIN_WAIT
  __nvvm_cp_async_wait_all();
}
#else
BURIN_INLINE void burin_dev_copy_async(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                       u32 valid) {
  const float value = valid ? *global_address(source, byte_offset) : 0.0f;
  *(BURIN_SHARED float*)shared_address(shared_base, shared_offset) = value;
}
BURIN_INLINE void burin_dev_copy_async4(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                        u32 valid) {
  const f32x4 zeros = {0, 0, 0, 0};
  const f32x4 values = valid ? *(const BURIN_GLOBAL f32x4*)global_address(source, byte_offset) : zeros;
  *(BURIN_SHARED f32x4*)shared_address(shared_base, shared_offset) = values;
}
BURIN_INLINE void burin_dev_copy_commit() {}
BURIN_INLINE void burin_dev_copy_wait(u32) {}
#endif

#if __CUDA_ARCH__ >= 900
// ---- bulk copies: a gate is an mbarrier that one thread arrives at in each phase
BURIN_DEVICE u32 gate_address(u32 gate) {
  constexpr u32 kFirstGate = 16, kGateBytes = 8;
  return (u32)(u64)shared_address(kFirstGate, gate * kGateBytes);
}
BURIN_INLINE void burin_dev_gate_init(u32 gate) {
  __asm__ volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\t"
      "fence.mbarrier_init.release.cluster;\n\t"
      "fence.proxy.async.shared::cta;" ::"r"(gate_address(gate))
      : "memory");
}
BURIN_INLINE void burin_dev_gate_init_released(u32 gate, u32 warps) {
  __asm__ volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;\n\t"
      "fence.mbarrier_init.release.cluster;" ::"r"(gate_address(gate)),
      "r"(warps)
      : "memory");
}
// Whoever announces the bytes arrives, too.
BURIN_INLINE void burin_dev_gate_init_filled(u32 gate, u32 warps) {
  __asm__ volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;\n\t"
      "fence.mbarrier_init.release.cluster;\n\t"
      "fence.proxy.async.shared::cta;" ::"r"(gate_address(gate)),
      "r"(warps + 1)
      : "memory");
}
// One thread arrives for its warp.
BURIN_INLINE void burin_dev_gate_release(u32 gate) {
  __asm__ volatile(
      "{\n\t"
      ".reg .pred first;\n\t"
      "bar.warp.sync 0xffffffff;\n\t"
      "setp.eq.u32 first, %1, 0;\n\t"
      "@first mbarrier.arrive.shared::cta.b64 _, [%0];\n\t"
      "}" ::"r"(gate_address(gate)),
      "r"(burin_dev_thread() % 32)
      : "memory");
}
BURIN_INLINE void burin_dev_gate_expect(u32 gate, u32 bytes) {
  __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gate_address(gate)), "r"(bytes)
                   : "memory");
}
// Not try_wait, which would sleep: the assembler moves its loop out of the line of code, then takes what follows for
// another path and moves multiply-adds past it, whose activations spill.
BURIN_INLINE void burin_dev_gate_wait(u32 gate, u32 phase) {
  __asm__ volatile(
      "{\n\t"
      ".reg .pred open;\n"
      "again:\n\t"
      "mbarrier.test_wait.parity.shared::cta.b64 open, [%0], %1;\n\t"
      "@!open bra again;\n\t"
      "}" ::"r"(gate_address(gate)),
      "r"(phase)
      : "memory");
}
BURIN_INLINE void burin_dev_gate_sleep(u32 gate, u32 phase) {
  __asm__ volatile(
      "{\n\t"
      ".reg .pred open;\n"
      "again:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n\t"
      "@!open bra again;\n\t"
      "}" ::"r"(gate_address(gate)),
      "r"(phase)
      : "memory");
}
BURIN_INLINE void burin_dev_bulk_copy(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                      u32 bytes, u32 gate) {
  __asm__ volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       (u32)(u64)shared_address(shared_base, shared_offset)),
                   "l"(global_address(source, byte_offset)), "r"(bytes), "r"(gate_address(gate))
                   : "memory");
}
BURIN_INLINE void burin_dev_box_copy(u32 shared_base, u32 shared_offset, const TensorBox* box, i32 col, i32 row,
                                     i32 octet, i32 images, u32 gate) {
  __asm__ volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"((u32)(u64)shared_address(shared_base, shared_offset)),
      "l"(box), "r"(0), "r"(col), "r"(row), "r"(octet), "r"(images), "r"(gate_address(gate))
      : "memory");
}
BURIN_INLINE void burin_dev_prefetch_box(const TensorBox* box) {
  __asm__ volatile("prefetch.tensormap [%0];" ::"l"(box) : "memory");
}

// ---- warpgroups: how many registers an instruction has depends on its octets, so it is written when those are known
// (compiler/emit/group_products.h). Here are the descriptors of what it multiplies.
BURIN_PRIMITIVE void burin_emit_group_product(float* sums, u32 octets, u32 type, u32 columns, u64 a, u64 b);
BURIN_PRIMITIVE void burin_emit_sparse_group_product(float* sums, u32 octets, u32 type, u64 a, u64 b, u32 places,
                                                     u32 pair);
BURIN_PRIMITIVE void burin_emit_register_group_product(float* sums, u32 octets, u32 a0, u32 a1, u32 a2, u32 a3, u64 b);
BURIN_PRIMITIVE void burin_emit_group_begin(float* sums, u32 octets);
BURIN_PRIMITIVE void burin_emit_group_wait(float* sums, u32 octets, u32 pending);
BURIN_PRIMITIVE void burin_emit_group_release(u32 pending);
// Addresses and distances are in units of 16 bytes. `offset` is added behind the division, where it is a constant.
// `leading`: from eight values of the reduction to the next eight; `stride`: from eight rows, or columns, to the next.
// In a cluster an address also says whose memory it is, in bits that a descriptor does not have.
BURIN_DEVICE u64 matrix_descriptor(u32 base, u32 offset, u32 leading, u32 stride) {
  constexpr u32 kOwnMemory = (1 << 18) - 1;
  const u32 address = (u32)(u64)shared_address(base, 0) & kOwnMemory;
  return (u64)(address / 16 + offset / 16) | (u64)(leading / 16) << 16 | (u64)(stride / 16) << 32;
}
BURIN_INLINE void burin_dev_group_begin(float* sums, u32 octets) { burin_emit_group_begin(sums, octets); }
BURIN_INLINE void burin_dev_group_commit() { __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
BURIN_INLINE void burin_dev_group_wait(float* sums, u32 octets, u32 pending) {
  burin_emit_group_wait(sums, octets, pending);
}
BURIN_INLINE void burin_dev_group_release(u32 pending) { burin_emit_group_release(pending); }
// Registers are written before, since they come from here.
BURIN_INLINE void burin_dev_group_take(u32x4* a, u32x4* b) {
  u32 a0 = (*a)[0], a1 = (*a)[1], a2 = (*a)[2], a3 = (*a)[3];
  u32 b0 = (*b)[0], b1 = (*b)[1], b2 = (*b)[2], b3 = (*b)[3];
  __asm__ volatile("wgmma.fence.sync.aligned;"
                   : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3), "+r"(b0), "+r"(b1), "+r"(b2), "+r"(b3)::"memory");
  *a = u32x4{a0, a1, a2, a3};
  *b = u32x4{b0, b1, b2, b3};
}
BURIN_INLINE void burin_dev_group_multiply_tf32(float* sums, u32 octets, u32x4 a, u32 b_base, u32 b_offset) {
  burin_emit_register_group_product(sums, octets, a[0], a[1], a[2], a[3],
                                    matrix_descriptor(b_base, b_offset, 128, 256));
}
#define BURIN_GROUP_MULTIPLY(name, type)                                                                            \
  BURIN_INLINE void burin_dev_group_multiply_##name(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,  \
                                                    u32 b_offset, u32 next_rows, u32 next_octet) {                  \
    burin_emit_group_product(sums, octets, type, 0, matrix_descriptor(a_base, a_offset, 128, 256),                  \
                             matrix_descriptor(b_base, b_offset, next_rows, next_octet));                           \
  }                                                                                                                 \
  BURIN_INLINE void burin_dev_group_multiply_sparse_##name(float* sums, u32 octets, u32 a_base, u32 a_offset,       \
                                                           u32 b_base, u32 b_offset, u32 next_rows, u32 next_octet, \
                                                           u32 places, u32 pair) {                                  \
    burin_emit_sparse_group_product(sums, octets, type, matrix_descriptor(a_base, a_offset, 128, 256),              \
                                    matrix_descriptor(b_base, b_offset, next_rows, next_octet), places, pair);      \
  }
BURIN_GROUP_MULTIPLY(f16, 1)  // ir/factor_type.h's FactorType
BURIN_GROUP_MULTIPLY(bf16, 2)
#define BURIN_GROUP_MULTIPLY_COLUMNS(name, type)                                                               \
  BURIN_INLINE void burin_dev_group_multiply_columns_##name(float* sums, u32 octets, u32 a_base, u32 a_offset, \
                                                            u32 b_base, u32 b_offset, u32 next_rows) {         \
    burin_emit_group_product(sums, octets, type, 1, matrix_descriptor(a_base, a_offset, 128, 256),             \
                             matrix_descriptor(b_base, b_offset, next_rows, 128));                             \
  }
BURIN_GROUP_MULTIPLY_COLUMNS(f16, 1)
BURIN_GROUP_MULTIPLY_COLUMNS(bf16, 2)
BURIN_GROUP_MULTIPLY_COLUMNS(tf32, 3)
// Products read shared memory as copies do, past the threads' own order.
BURIN_INLINE void burin_dev_group_offer() { __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- clusters
BURIN_INLINE void burin_dev_cluster_barrier() {
  __asm__ volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
BURIN_INLINE void burin_dev_cluster_arrive() { __asm__ volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
BURIN_INLINE void burin_dev_cluster_meet() { __asm__ volatile("barrier.cluster.wait;" ::: "memory"); }
BURIN_DEVICE u32 address_of_rank(u32 address, u32 rank) {
  u32 mapped;
  __asm__("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
BURIN_INLINE void burin_dev_cluster_send(u32 shared_base, u32 source, u32 target, u32 bytes, u32 rank, u32 gate) {
  __asm__ volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       address_of_rank((u32)(u64)shared_address(shared_base, target), rank)),
                   "r"((u32)(u64)shared_address(shared_base, source)), "r"(bytes),
                   "r"(address_of_rank(gate_address(gate), rank))
                   : "memory");
}
BURIN_SPECIAL_REGISTER(burin_dev_cluster_rank, "cluster_ctarank")
BURIN_INLINE float burin_dev_cluster_load(u32 base, u32 offset, u32 rank) {
  // Mapped without the offset: loads from one block share the mapped address, and the offset becomes an immediate.
  const u32 mapped = address_of_rank((u32)(u64)shared_address(base, 0), rank);
  float value;
  __asm__ volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(mapped + offset) : "memory");
  return value;
}
#endif

BURIN_INLINE void burin_dev_prefetch_code(const void* code, u32 bytes, u32 block_threads) {
  constexpr u32 kLineBytes = 128;
  if (bytes <= block_threads * kLineBytes) {
    const u32 offset = burin_dev_thread() * kLineBytes;
    if (offset < bytes) __asm__ volatile("prefetch.global.L2 [%0];" ::"l"((const char*)code + offset));
    return;
  }
  for (u32 offset = burin_dev_thread() * kLineBytes; offset < bytes; offset += block_threads * kLineBytes) {
    __asm__ volatile("prefetch.global.L2 [%0];" ::"l"((const char*)code + offset));
  }
}
#if __CUDA_ARCH__ >= 900
BURIN_INLINE void burin_dev_await_launch() { __asm__ volatile("griddepcontrol.wait;" ::: "memory"); }
#else
BURIN_INLINE void burin_dev_await_launch() {}
#endif
BURIN_INLINE void burin_dev_barrier() { __syncthreads(); }
// A way out that no thread takes: %ctaid.z is always 0, which the assembler does not know. (Of bar.warp.sync it makes
// two copies of the code behind it.)
BURIN_INLINE void burin_dev_keep_order(u32 number) {
  __asm__ volatile(
      "{\n\t"
      ".reg .pred never;\n\t"
      "setp.eq.u32 never, %0, %1;\n\t"
      "@never exit;\n\t"
      "}" ::"r"(__nvvm_read_ptx_sreg_ctaid_z()),
      "r"(number)
      : "memory");
}
BURIN_INLINE void burin_dev_fence() { __nvvm_membar_gl(); }
BURIN_INLINE u32 burin_dev_count_arrival(u32* counter, u32 last) {
  u32 old;
  __asm__ volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                   : "=r"(old)
                   : "l"((BURIN_GLOBAL u32*)counter), "r"(last)
                   : "memory");
  return old;
}
BURIN_INLINE u32 burin_dev_broadcast(u32 value) {
  BURIN_SHARED u32* word = (BURIN_SHARED u32*)burin_shared;
  if (burin_dev_thread() == 0) *word = value;
  __syncthreads();
  value = *word;
  __syncthreads();
  return value;
}
BURIN_INLINE __attribute__((noreturn)) void burin_dev_exit() {
  __asm__ volatile("exit;");
  __builtin_unreachable();
}
BURIN_INLINE float burin_dev_shuffle_xor(float value, u32 distance) {
  constexpr u32 kAllLanes = 0xFFFFFFFF, kLastLane = 31;
  return __nvvm_shfl_sync_bfly_f32(kAllLanes, value, distance, kLastLane);
}
BURIN_INLINE u32 burin_dev_ballot(u32 condition) {
  constexpr u32 kAllLanes = 0xFFFFFFFF;
  return __nvvm_vote_ballot_sync(kAllLanes, condition != 0);
}
BURIN_INLINE void burin_dev_warp_barrier() { __asm__ volatile("bar.warp.sync 0xFFFFFFFF;" ::: "memory"); }

// The assembler makes one predicated instruction of the two.
BURIN_INLINE float burin_dev_fma_if(u32 condition, float a, float b, float sum) {
  const float added = __builtin_fmaf(a, b, sum);
  return condition != 0 ? added : sum;
}
// ---- halves
using f16x2 = _Float16 __attribute__((ext_vector_type(2)));
BURIN_DEVICE f16x2 halves(u32 word) { return __builtin_bit_cast(f16x2, word); }
BURIN_DEVICE u32 word_of(f16x2 values) { return __builtin_bit_cast(u32, values); }
BURIN_INLINE float burin_dev_f16_low(u32 word) { return halves(word)[0]; }
BURIN_INLINE float burin_dev_f16_high(u32 word) { return halves(word)[1]; }
BURIN_INLINE u32 burin_dev_f16x2_mul(u32 word, u32 weights) { return word_of(halves(word) * halves(weights)); }
BURIN_INLINE u32 burin_dev_f16x2_fma(u32 word, u32 weights, u32 sum) {
  return word_of(__builtin_elementwise_fma(halves(word), halves(weights), halves(sum)));
}
#if __CUDA_ARCH__ >= 800
BURIN_INLINE u32 burin_dev_f16_pack(float low, float high) {
  u32 word;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
BURIN_INLINE u32 burin_dev_bf16_pack(float low, float high) {
  u32 word;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
BURIN_INLINE u32 burin_dev_f16x2_max(u32 word, u32 other) {
  u32 larger;
  __asm__("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(word), "r"(other));
  return larger;
}
BURIN_INLINE u32 burin_dev_bf16x2_max(u32 word, u32 other) {
  u32 larger;
  __asm__("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(word), "r"(other));
  return larger;
}
#else
BURIN_INLINE u32 burin_dev_f16_pack(float low, float high) {
  return word_of(f16x2{static_cast<_Float16>(low), static_cast<_Float16>(high)});
}
BURIN_DEVICE u32 rounded_bf16(float value) {
  const u32 bits = __builtin_bit_cast(u32, value);
  constexpr u32 kQuietNaN = 0x7FC0, kBelowHalf = 0x7FFF;
  if (value != value) return kQuietNaN;
  return (bits + kBelowHalf + (bits >> 16 & 1)) >> 16;  // ties to even; the largest become infinity
}
BURIN_INLINE u32 burin_dev_bf16_pack(float low, float high) { return rounded_bf16(high) << 16 | rounded_bf16(low); }
// What is larger of two halves is a half: it is rounded as it is.
BURIN_INLINE u32 burin_dev_f16x2_max(u32 word, u32 other) {
  return burin_dev_f16_pack(__builtin_fmaxf(burin_dev_f16_low(word), burin_dev_f16_low(other)),
                            __builtin_fmaxf(burin_dev_f16_high(word), burin_dev_f16_high(other)));
}
BURIN_DEVICE float bf16_low(u32 word) { return __builtin_bit_cast(float, word << 16); }
BURIN_DEVICE float bf16_high(u32 word) { return __builtin_bit_cast(float, word & 0xFFFF0000u); }
BURIN_INLINE u32 burin_dev_bf16x2_max(u32 word, u32 other) {
  return burin_dev_bf16_pack(__builtin_fmaxf(bf16_low(word), bf16_low(other)),
                             __builtin_fmaxf(bf16_high(word), bf16_high(other)));
}
#endif
#if __CUDA_ARCH__ >= 800
// ---- tensor cores
BURIN_INLINE u32x4 burin_dev_shared_load_rows(u32 base, u32 offset) {
  u32 word[4];
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                   : "r"((u32)(u64)shared_address(base, offset))
                   : "memory");
  return {word[0], word[1], word[2], word[3]};
}
#define BURIN_MULTIPLY(name, shape, type)                                             \
  BURIN_INLINE f32x4 burin_dev_multiply_##name(u32x4 a, u32 b0, u32 b1, f32x4 sums) { \
    float s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];                     \
    __asm__("mma.sync.aligned." shape ".row.col.f32." type "." type                   \
            ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
            : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)                                  \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));          \
    return {s0, s1, s2, s3};                                                          \
  }
BURIN_MULTIPLY(f16, "m16n8k16", "f16")
BURIN_MULTIPLY(bf16, "m16n8k16", "bf16")
BURIN_MULTIPLY(tf32, "m16n8k8", "tf32")
// The instruction takes `pair` as an immediate. (Its newer form, with ordered places, is the same one on sm_90, and
// needs drivers of 2024.)
#define BURIN_MULTIPLY_SPARSE_PAIR(shape, type, pair)                                                     \
  __asm__("mma.sp.sync.aligned." shape ".row.col.f32." type "." type                                      \
          ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, " pair ";" \
          : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)                                                        \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(places))
#define BURIN_MULTIPLY_SPARSE(name, shape, type)                                                            \
  BURIN_INLINE f32x4 burin_dev_multiply_sparse_##name(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair) { \
    float s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];                                           \
    if (pair == 0) {                                                                                        \
      BURIN_MULTIPLY_SPARSE_PAIR(shape, type, "0x0");                                                       \
    } else {                                                                                                \
      BURIN_MULTIPLY_SPARSE_PAIR(shape, type, "0x1");                                                       \
    }                                                                                                       \
    return {s0, s1, s2, s3};                                                                                \
  }
BURIN_MULTIPLY_SPARSE(f16, "m16n8k32", "f16")
BURIN_MULTIPLY_SPARSE(bf16, "m16n8k32", "bf16")
BURIN_MULTIPLY_SPARSE(tf32, "m16n8k16", "tf32")
#endif
#if __CUDA_ARCH__ >= 900
// (Before sm_90 there is a conversion that rounds ties away from zero.)
BURIN_INLINE u32 burin_dev_tf32(float value) {
  u32 word;
  __asm__("cvt.rn.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
  return word;
}
#endif
// A grid has one layer in z, which the assembler does not know.
BURIN_INLINE float burin_dev_zero() { return __builtin_bit_cast(float, __nvvm_read_ptx_sreg_ctaid_z()); }
BURIN_INLINE float burin_dev_exp(float x) {
  constexpr float kLog2E = 1.4426950408889634f;
  return __nvvm_ex2_approx_f(x * kLog2E);
}
// The one that is rounded exactly is a call of a function, beside which products of warpgroups wait for each other.
BURIN_INLINE float burin_dev_reciprocal(float x) { return __nvvm_rcp_approx_ftz_f(x); }
BURIN_INLINE float burin_dev_power(float base, float exponent) {
  return __nvvm_ex2_approx_f(exponent * __nvvm_lg2_approx_f(base));
}
BURIN_INLINE float burin_dev_sqrt(float x) { return __nvvm_sqrt_approx_f(x); }
BURIN_INLINE float burin_dev_log(float x) {
  constexpr float kLog2 = 0.6931471805599453f;
  return __nvvm_lg2_approx_f(x) * kLog2;
}
