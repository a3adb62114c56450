// The device primitives: everything a template does that plain C++ cannot say.
//
// A template calls these functions and nothing else of the device. They stay calls in the specialised IR. The last
// step before PTX resolves them to instructions (device_nvptx.cu); the host executor resolves them to C++ functions of
// the same names that also check each access. So what is verified on the host is what the PTX is made from.
//
// Memory is accessed in words of four bytes: a float, or two halves of which the first is in the lower bits. Loose
// halves may be accessed one by one.
//
// Shared memory is addressed in bytes from the start of the block's dynamic shared memory. An address is given as
// `base + offset`: `base` varies by thread, `offset` is a constant that becomes part of the instruction.
#pragma once

#define BURIN_DEVICE __attribute__((device, always_inline)) static inline
#define BURIN_INLINED __attribute__((device, always_inline))  // behind the parameters of a lambda
#define BURIN_KERNEL extern "C" __attribute__((global))
#define BURIN_PRIMITIVE extern "C" __attribute__((device)) __attribute__((nothrow))

using u8 = unsigned char;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using f32x4 = float __attribute__((ext_vector_type(4)));

// ---- where am I: read anew by each call, so that nothing derived from it must stay in a register in between
BURIN_PRIMITIVE u32 burin_dev_thread();  // within the block
BURIN_PRIMITIVE u32 burin_dev_block_x();
BURIN_PRIMITIVE u32 burin_dev_block_y();

// ---- memory
BURIN_PRIMITIVE float burin_dev_shared_load(u32 base, u32 offset);
// Where `condition` does not hold, the value is never used and need not be one that was written.
BURIN_PRIMITIVE float burin_dev_shared_load_if(u32 condition, u32 base, u32 offset);
BURIN_PRIMITIVE void burin_dev_shared_store(u32 base, u32 offset, float value);
// The same of words that are two halves.
BURIN_PRIMITIVE u32 burin_dev_shared_load_word(u32 base, u32 offset);
BURIN_PRIMITIVE u32 burin_dev_shared_load_word_if(u32 condition, u32 base, u32 offset);
BURIN_PRIMITIVE void burin_dev_shared_store_word(u32 base, u32 offset, u32 value);
// The low half of `half`, at an address that is a multiple of two, in a word that was written before. Another thread
// may store the word's other half at the same time.
BURIN_PRIMITIVE void burin_dev_shared_store_half(u32 base, u32 offset, u32 half);
// Sets bits of a word. All threads of a warp must do it, with the same address; others may at the same time.
BURIN_PRIMITIVE void burin_dev_shared_or(u32 base, u32 offset, u32 bits);
// Four words at an address that is a multiple of 16.
BURIN_PRIMITIVE f32x4 burin_dev_shared_load4(u32 base, u32 offset);
BURIN_PRIMITIVE f32x4 burin_dev_shared_load4_if(u32 condition, u32 base, u32 offset);
BURIN_PRIMITIVE void burin_dev_shared_store4(u32 base, u32 offset, f32x4 value);
BURIN_PRIMITIVE float burin_dev_global_load(const float* base, i64 byte_offset);  // read-only for the whole launch
// Where `condition` does not hold, zero; then nothing is read. One predicated instruction.
BURIN_PRIMITIVE float burin_dev_global_load_if(u32 condition, const float* base, i64 byte_offset);
BURIN_PRIMITIVE f32x4 burin_dev_global_load4(const float* base, i64 byte_offset);
BURIN_PRIMITIVE void burin_dev_global_store4(float* base, i64 byte_offset, f32x4 value);
BURIN_PRIMITIVE void burin_dev_global_store(float* base, i64 byte_offset, float value);
BURIN_PRIMITIVE u32 burin_dev_global_load_word(const float* base, i64 byte_offset);
BURIN_PRIMITIVE void burin_dev_global_store_word(float* base, i64 byte_offset, u32 value);
// A loose half, in the low bits: the address is a multiple of 2.
BURIN_PRIMITIVE u32 burin_dev_global_load_half(const float* base, i64 byte_offset);
BURIN_PRIMITIVE void burin_dev_global_store_half(float* base, i64 byte_offset, u32 value);
// One byte of an activity map; `value` is 0 or 1.
BURIN_PRIMITIVE u32 burin_dev_map_load(const u8* base, i64 offset);
BURIN_PRIMITIVE void burin_dev_map_store_if(u32 condition, u8* base, i64 offset, u32 value);
// Partial sums that another block wrote in this launch: not through the incoherent cache.
BURIN_PRIMITIVE float burin_dev_scratch_load(const float* base, i64 byte_offset);
BURIN_PRIMITIVE void burin_dev_scratch_store(float* base, i64 byte_offset, float value);

// Starts copying one word to shared memory; writes zero when `valid` is 0 (then the source is not read). The word may
// be read after this thread has waited for the copy's batch and, by other threads, after a barrier that follows, or a
// wait for the gate that its warp has released since.
BURIN_PRIMITIVE void burin_dev_copy_async(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                          u32 valid);
// The same of four words, at addresses that are multiples of 16.
BURIN_PRIMITIVE void burin_dev_copy_async4(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                           u32 valid);
BURIN_PRIMITIVE void burin_dev_copy_commit();           // closes this thread's current batch of copies (may be empty)
BURIN_PRIMITIVE void burin_dev_copy_wait(u32 pending);  // until at most `pending` (a constant) batches are in flight

// ---- bulk copies (sm_90): a run of global memory goes to shared memory without passing through threads
// A gate is a counter of arriving bytes, numbered from 0 to kGates - 1. It opens in phases 0, 1, 0, 1, ...: once for
// each burin_dev_gate_expect(), when that many bytes have arrived.
constexpr u32 kGates = 14;
BURIN_PRIMITIVE void burin_dev_gate_init(u32 gate);  // by one thread, before a barrier and any other use
// One thread announces the bytes of the phase that begins. The phase before must have been waited for by it, or before
// a barrier by another one, or by those whose release it has waited for, and no thread may still wait for it.
BURIN_PRIMITIVE void burin_dev_gate_expect(u32 gate, u32 bytes);
// Waits until the gate's phase `phase` (0 or 1) is complete. What its copies brought may then be read by this thread.
BURIN_PRIMITIVE void burin_dev_gate_wait(u32 gate, u32 phase);
// The same; the warp sleeps meanwhile, so that others have its turns.
BURIN_PRIMITIVE void burin_dev_gate_sleep(u32 gate, u32 phase);
// Starts a copy of `bytes` whose arrival counts at `gate`. Source, target and bytes are multiples of 16. All threads
// must have passed a barrier since the target was last read or copied to, or whoever did has released a gate since for
// which this thread has waited; and none may have stored to it (that would take a costly fence). This thread, or
// another one before a barrier, must have waited for the gate's phase before, or for the release by those who did.
BURIN_PRIMITIVE void burin_dev_bulk_copy(u32 shared_base, u32 shared_offset, const float* source, i64 byte_offset,
                                         u32 bytes, u32 gate);

// A box of a tensor (ir/tensor_box.h): a parameter of the kernel, by value, of which the address is passed on.
struct alignas(64) TensorBox {
  u64 words[16];
};
// Starts a copy of the box that begins at a column and row of the image, at an octet of channels and one of images;
// what lies outside is zeros. All of its bytes count at `gate`. The target is a multiple of 128 and is otherwise what
// burin_dev_bulk_copy() says of it.
BURIN_PRIMITIVE void burin_dev_box_copy(u32 shared_base, u32 shared_offset, const TensorBox* box, i32 col, i32 row,
                                        i32 octet, i32 images, u32 gate);
// Asks for the box's description to be brought near; no effect but on time.
BURIN_PRIMITIVE void burin_dev_prefetch_box(const TensorBox* box);

// A gate that warps release, in place of bytes: it opens in phases as well, once for each `warps` releases.
BURIN_PRIMITIVE void burin_dev_gate_init_released(u32 gate, u32 warps);  // as burin_dev_gate_init()
// The warp, whose 32 threads call it alike, has done with what it waited for: who waits for the gate may copy there,
// and may read what the warp has stored, or copied and waited for.
BURIN_PRIMITIVE void burin_dev_gate_release(u32 gate);
// A gate that opens when its bytes have arrived and so many warps have released it, in each phase.
BURIN_PRIMITIVE void burin_dev_gate_init_filled(u32 gate, u32 warps);  // as burin_dev_gate_init()

// ---- clusters (sm_90): blocks that run at the same time, read each other's shared memory and send to it
BURIN_PRIMITIVE u32 burin_dev_cluster_rank();  // of this block: x first
// All threads of the cluster but those of blocks that have ended; orders their shared memory accesses. A block may end
// before its first barrier; later only where nobody waits for it.
BURIN_PRIMITIVE void burin_dev_cluster_barrier();
// The two halves of a barrier that orders nothing: whoever has met the others, once for each arrival, knows that all
// threads of the cluster have arrived. Before it arrives, a thread must have used what it has loaded from other blocks,
// and have waited for what they send to its block: so a block may end that has met the others since they last accessed
// its shared memory. Gates that a thread initialises before it arrives may be named by others that have met it.
BURIN_PRIMITIVE void burin_dev_cluster_arrive();
BURIN_PRIMITIVE void burin_dev_cluster_meet();
// Starts a copy of `bytes` from this block's shared memory to that of another block of the cluster, where it counts at
// the first phase of that block's gate. Both places are addresses as this block has them, and multiples of 16, as the
// bytes are. What is sent is as burin_dev_group_offer() and a barrier left it, and may not be stored to until this
// thread has met the others again. Of the target's block no thread may have stored to where it goes, nor loaded from
// there since it last arrived.
BURIN_PRIMITIVE void burin_dev_cluster_send(u32 shared_base, u32 source, u32 target, u32 bytes, u32 rank, u32 gate);
// Shared memory of the block with this rank in the cluster, at the place of this block's address.
BURIN_PRIMITIVE float burin_dev_cluster_load(u32 base, u32 offset, u32 rank);

// Asks for `bytes` of the program from `code` on to be brought near; no effect but on time. Every thread of the block
// asks for its share.
BURIN_PRIMITIVE void burin_dev_prefetch_code(const void* code, u32 bytes, u32 block_threads);

// ---- order
// A kernel may be launched when all blocks of the one before it have ended, but before their stores are known to be
// everywhere. Until this returns, nothing may be loaded but weights, and nothing stored. Every thread calls it first of
// all, once.
BURIN_PRIMITIVE void burin_dev_await_launch();
BURIN_PRIMITIVE void burin_dev_barrier();  // all threads of the block
// The assembler moves no memory access across it. Each needs a number of its own within a function, from 1 on; one that
// is made of loaded words (and odd) keeps their loads before it.
BURIN_PRIMITIVE void burin_dev_keep_order(u32 number);
BURIN_PRIMITIVE void burin_dev_fence();  // this thread's writes before it are seen by the device before those after it
// Adds one, wrapping to 0 after `last`; returns the old value. Atomic across the device.
BURIN_PRIMITIVE u32 burin_dev_count_arrival(u32* counter, u32 last);
// The value that thread 0 passed, in every thread; all threads of the block must call it (it contains barriers).
BURIN_PRIMITIVE u32 burin_dev_broadcast(u32 value);
BURIN_PRIMITIVE void burin_dev_exit() __attribute__((noreturn));  // ends this thread

// The value that the thread whose number differs in the bits of `distance` (below 32) passed. All threads of the block
// must call it, with the same distance; orders nothing.
BURIN_PRIMITIVE float burin_dev_shuffle_xor(float value, u32 distance);
// What all 32 threads of a warp call alike: a bit for each lane whose condition holds, which orders nothing; and a
// barrier of the warp, which orders what its threads do with shared memory.
BURIN_PRIMITIVE u32 burin_dev_ballot(u32 condition);
BURIN_PRIMITIVE void burin_dev_warp_barrier();

// ---- tensor cores (sm_80): what the threads of a warp do together, each with its part of the matrices
// All 32 must call these alike; they order nothing. Lane l has g = l / 4 and t = l % 4, and a word holds two halves,
// the first of which is the low one.
using u32x4 = u32 __attribute__((ext_vector_type(4)));
// Loads 32 rows of eight halves: lane l gives the address of row l, a multiple of 16. Word i of the result holds the
// values of column g in rows 8 i + 2 t and 8 i + 2 t + 1.
BURIN_PRIMITIVE u32x4 burin_dev_shared_load_rows(u32 base, u32 offset);
// Adds the product of a matrix of 16 x 16 halves and one of 16 x 8 to `sums`, 16 x 8 floats. Words of `a` hold columns
// 2 t and 2 t + 1 of rows g and g + 8, then columns 8 + 2 t and 9 + 2 t of the same; b0 and b1 hold rows as words of
// burin_dev_shared_load_rows() do; sums are columns 2 t and 2 t + 1 of row g, then of row g + 8.
BURIN_PRIMITIVE f32x4 burin_dev_multiply_f16(u32x4 a, u32 b0, u32 b1, f32x4 sums);
BURIN_PRIMITIVE f32x4 burin_dev_multiply_bf16(u32x4 a, u32 b0, u32 b1, f32x4 sums);
// The same with 16 x 32 halves, of which two of each four columns are stored, and 32 x 8. Words of `a` hold what is
// stored of the columns from 4 t on, of rows g and g + 8, then of the columns from 16 + 4 t on. `places` of lane
// 4 g + 2 `pair` + h has, for row g in its low half and row g + 8 in its high one, for each four of columns 16 h to
// 16 h + 15 four bits: the column of the first value that is stored, which is the smaller, and of the second.
BURIN_PRIMITIVE f32x4 burin_dev_multiply_sparse_f16(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair);
BURIN_PRIMITIVE f32x4 burin_dev_multiply_sparse_bf16(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair);

// The same in TF32: a word holds one value, a float whose last 13 bits are zero (burin_dev_tf32). Matrices have half as
// many columns: 16 x 8 times 8 x 8. Words of `a` hold column t of rows g and g + 8, then column 4 + t of the same; b0
// and b1 hold column g of rows t and 4 + t; sums are as above.
BURIN_PRIMITIVE f32x4 burin_dev_multiply_tf32(u32x4 a, u32 b0, u32 b1, f32x4 sums);
// With 16 x 16 values, of which one of each two columns is stored, and 16 x 8. Words of `a` hold what is stored of
// columns 2 t and 2 t + 1, of rows g and g + 8, then of columns 8 + 2 t and 9 + 2 t; words of `b` hold column g of rows
// t, 4 + t, 8 + t and 12 + t. `places` are as above, of each two of columns 8 h to 8 h + 7: 4 where the first one is
// stored, 14 where the second one is, which are the places of the halves of a word.
BURIN_PRIMITIVE f32x4 burin_dev_multiply_sparse_tf32(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair);
BURIN_PRIMITIVE u32 burin_dev_tf32(float value);  // rounds to nearest even (sm_90)

// ---- warpgroups (sm_90a): products of 64 x 16 halves and 16 x 8 `octets`, both in shared memory
// The 128 threads of a warpgroup, whose first is a multiple of 128, call these alike. Warp w of the group holds the
// sums of rows 16 w to 16 w + 15; a thread's are sums[4 o + i] for octet o, as burin_dev_multiply_f16() has them, 4
// `octets` floats in all. `octets` is a constant, at most 32.
//
// Products run behind the threads' backs: between a multiplication and the wait that ends it, sums cannot be read or
// written but by further multiplications, and what is multiplied must stay in shared memory.
// Before the first product since sums were read or written.
BURIN_PRIMITIVE void burin_dev_group_begin(float* sums, u32 octets);
// Adds to the sums. The first matrix has its halves at byte 256 (r / 8) + 128 (k / 8) + 16 (r % 8) + 2 (k % 8) from
// a_base + a_offset on, for row r and column k. The second one has row k of octet o at byte
// (k / 8) next_rows + o next_octet + 16 (k % 8) from b_base + b_offset on: eight halves. All are multiples of 16.
BURIN_PRIMITIVE void burin_dev_group_multiply_f16(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,
                                                  u32 b_offset, u32 next_rows, u32 next_octet);
BURIN_PRIMITIVE void burin_dev_group_multiply_bf16(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,
                                                   u32 b_offset, u32 next_rows, u32 next_octet);
// The same where a column of the second matrix has its rows side by side: row k of column c lies at byte (k / 8)
// next_rows + 16 c + 2 (k % 8). In TF32 the matrices are 64 x 8 and 8 x 8 `octets` values of a word, and both are cut
// into fours: the first has row r and column k at byte 256 (r / 8) + 128 (k / 4) + 16 (r % 8) + 4 (k % 4), the second
// row k of column c at byte (k / 4) next_rows + 16 c + 4 (k % 4).
BURIN_PRIMITIVE void burin_dev_group_multiply_columns_f16(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,
                                                          u32 b_offset, u32 next_rows);
BURIN_PRIMITIVE void burin_dev_group_multiply_columns_bf16(float* sums, u32 octets, u32 a_base, u32 a_offset,
                                                           u32 b_base, u32 b_offset, u32 next_rows);
BURIN_PRIMITIVE void burin_dev_group_multiply_columns_tf32(float* sums, u32 octets, u32 a_base, u32 a_offset,
                                                           u32 b_base, u32 b_offset, u32 next_rows);
// Before a barrier, or a release of a gate, behind which warpgroups multiply what threads have stored to shared memory:
// each of those threads.
BURIN_PRIMITIVE void burin_dev_group_offer();
// The same with 64 x 32 halves, of which two of each four columns are stored, and 32 rows. `places` are those of
// burin_dev_multiply_sparse_f16(), of the warp's 16 rows.
BURIN_PRIMITIVE void burin_dev_group_multiply_sparse_f16(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,
                                                         u32 b_offset, u32 next_rows, u32 next_octet, u32 places,
                                                         u32 pair);
BURIN_PRIMITIVE void burin_dev_group_multiply_sparse_bf16(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base,
                                                          u32 b_offset, u32 next_rows, u32 next_octet, u32 places,
                                                          u32 pair);
// The same in TF32, with a first matrix of 64 x 8 values in registers: `a` has those of the warp's 16 rows as
// burin_dev_multiply_tf32() has them, and comes from burin_dev_group_take(). The second matrix has row k of column c at
// byte 256 (c / 8) + 128 (k / 4) + 16 (c % 8) + 4 (k % 4) from b_base + b_offset on. Several sums may be under way.
BURIN_PRIMITIVE void burin_dev_group_take(u32x4* a, u32x4* b);  // what two products have in registers
BURIN_PRIMITIVE void burin_dev_group_multiply_tf32(float* sums, u32 octets, u32x4 a, u32 b_base, u32 b_offset);
BURIN_PRIMITIVE void burin_dev_group_commit();  // closes the group's current batch of products
// Until at most `pending` (a constant) batches are under way; with 0, the sums are there.
BURIN_PRIMITIVE void burin_dev_group_wait(float* sums, u32 octets, u32 pending);
// The same where no sums are read: what ended batches have multiplied may be overwritten.
BURIN_PRIMITIVE void burin_dev_group_release(u32 pending);

// ---- arithmetic that differs by device
// a * b + sum where `condition` holds, else `sum`: one predicated instruction.
BURIN_PRIMITIVE float burin_dev_fma_if(u32 condition, float a, float b, float sum);
// Words of two halves. BF16 needs no functions to be read: it is the upper half of a float.
BURIN_PRIMITIVE float burin_dev_f16_low(u32 word);
BURIN_PRIMITIVE float burin_dev_f16_high(u32 word);
BURIN_PRIMITIVE u32 burin_dev_f16_pack(float low, float high);  // rounds to nearest even
BURIN_PRIMITIVE u32 burin_dev_bf16_pack(float low, float high);
// Both halves at once, in FP16, each result rounded once: word * weights, and word * weights + sum.
BURIN_PRIMITIVE u32 burin_dev_f16x2_mul(u32 word, u32 weights);
BURIN_PRIMITIVE u32 burin_dev_f16x2_fma(u32 word, u32 weights, u32 sum);
// The larger of each half; where one of them is NaN, the other.
BURIN_PRIMITIVE u32 burin_dev_f16x2_max(u32 word, u32 other);
BURIN_PRIMITIVE u32 burin_dev_bf16x2_max(u32 word, u32 other);
// Zero that the assembler takes for a value like any other: a sum that starts with it owns a register from the start.
// (Known zeros cost no register, so ptxas loads far ahead at the beginning of a slice and then spills.)
BURIN_PRIMITIVE float burin_dev_zero();
BURIN_PRIMITIVE float burin_dev_exp(float x);
BURIN_PRIMITIVE float burin_dev_reciprocal(float x);                // may be off by one in the last place
BURIN_PRIMITIVE float burin_dev_power(float base, float exponent);  // of a base that is not negative
BURIN_PRIMITIVE float burin_dev_sqrt(float x);                      // may be off by one in the last place
BURIN_PRIMITIVE float burin_dev_log(float x);

// ---- for the reader of the generated code: no effect; becomes a comment in the PTX
BURIN_PRIMITIVE void burin_dev_note_slice(u32 group, u32 split);
BURIN_PRIMITIVE void burin_dev_note_stage(u32 stage);
