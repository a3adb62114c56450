// The multiply-adds, in FP32 and in half precision, and the stages that they come in.
//
// For conv_baked.cu, which defines the plan's constants, the holes and what a thread keeps before.
#pragma once

#include "templates/device.h"

BURIN_PIECE float burin_piece_activation(u32 lane, u32 offset) { return burin_dev_shared_load(lane, offset); }

// With nchw4, these load four channels at once.
BURIN_PIECE f32x4 burin_piece_activation4(u32 lane, u32 offset) { return burin_dev_shared_load4(lane, offset); }
BURIN_PIECE f32x4 burin_piece_activation4_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load4_if(inside, lane, offset);
}

// Without staging, this loads the thread's own pixel from global memory.
BURIN_PIECE f32x4 burin_piece_direct4(const float* source, i64 byte_offset) {
  return burin_dev_global_load4(source, byte_offset);
}
BURIN_PIECE float burin_piece_direct(const float* source, i64 byte_offset) {
  return burin_dev_global_load(source, byte_offset);
}

BURIN_PIECE float burin_piece_tap(float sum, float activation, float weight) {
  return __builtin_fmaf(activation, weight, sum);
}

// ---- the same in half precision
BURIN_PIECE u32 burin_piece_activations(u32 lane, u32 offset) { return burin_dev_shared_load_word(lane, offset); }
BURIN_PIECE u32 burin_piece_activations_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load_word_if(inside, lane, offset);
}
BURIN_PIECE u32 burin_piece_direct_pair(const float* source, i64 byte_offset) {
  return burin_dev_global_load_word(source, byte_offset);
}

BURIN_DEVICE float low_half(u32 word) {
  return bf16() ? __builtin_bit_cast(float, word << 16) : burin_dev_f16_low(word);
}
BURIN_DEVICE float high_half(u32 word) {
  return bf16() ? __builtin_bit_cast(float, word & 0xFFFF0000u) : burin_dev_f16_high(word);
}
BURIN_DEVICE u32 pack_halves(float low, float high) {
  return bf16() ? burin_dev_bf16_pack(low, high) : burin_dev_f16_pack(low, high);
}
BURIN_PIECE float burin_piece_low(u32 word) { return low_half(word); }
BURIN_PIECE float burin_piece_high(u32 word) { return high_half(word); }

// Two sums in FP16; they have no predicated multiply-adds, of which the assembler would make two instructions, but code
// that threads jump over. When they have gone over to FP32 ones they start anew, with their first term.
BURIN_PIECE u32 burin_piece_pair_start() { return __builtin_bit_cast(u32, burin_dev_zero()); }
BURIN_PIECE u32 burin_piece_pair_first(u32 activations, u32 weights) {
  return burin_dev_f16x2_mul(activations, weights);
}
BURIN_PIECE u32 burin_piece_pair_tap(u32 sums, u32 activations, u32 weights) {
  return burin_dev_f16x2_fma(activations, weights, sums);
}

// The bits of `outside` that are set when a filter position lies beyond the image; one of them may be enough.
BURIN_PIECE u32 burin_piece_inside(u32 outside, u32 bits) { return (outside & bits) == 0; }
BURIN_PIECE float burin_piece_activation_if(u32 inside, u32 lane, u32 offset) {
  return burin_dev_shared_load_if(inside, lane, offset);
}
BURIN_PIECE float burin_piece_tap_if(u32 inside, float sum, float activation, float weight) {
  return burin_dev_fma_if(inside, activation, weight, sum);
}

BURIN_PIECE float burin_piece_start() { return burin_dev_zero(); }

// One stage: its channels have arrived; the buffer that the last stage has left takes a later one.
BURIN_PIECE void burin_piece_stage(const Tile* tile, float* sums) {
  burin_dev_copy_wait(copies_in_flight());
  burin_dev_barrier();
  burin_hole_fill_ahead(tile);
  burin_dev_copy_commit();
  burin_hole_taps(sums, tile->lane, 0);
}

// The same with bulk copies. A stage after which no buffer is filled needs no barrier for it, but many warps use
// the same fetches of code only as long as they keep together.
BURIN_PIECE void burin_piece_bulk_stage(const Tile* tile, float* sums, u32 gate, u32 phase) {
  burin_dev_gate_wait(gate, phase);
  burin_dev_barrier();
  burin_hole_fill_ahead(tile);
  burin_hole_taps(sums, tile->lane, tile->outside);
}
// After the last stage: waits for what has long arrived. Of the barrier that comes next the assembler would make use to
// load the last activations before it and to unpack and multiply them behind it; a loop ends that.
BURIN_PIECE void burin_piece_bulk_end(u32 gate, u32 phase) { burin_dev_gate_wait(gate, phase); }
BURIN_PIECE void burin_piece_bulk_free_stage(const Tile* tile, float* sums, u32 gate, u32 phase) {
  burin_dev_gate_wait(gate, phase);
  burin_hole_taps(sums, tile->lane, tile->outside);
}
