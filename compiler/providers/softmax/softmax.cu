// softmax: of a whole image, a block for each. What a thread has read once it keeps, up to kHeld values.
#define BURIN_TEMPLATE_DEF "compiler/providers/softmax/softmax.def"
#include "templates/kernels/template_kernel.h"

constexpr u32 kHeld = 8;  // values of a thread that stay in registers
constexpr u32 kMaxWarps = 32;

// Over the threads of the block; in every thread.
BURIN_DEVICE float over_block(float mine, u32 place, bool sum) {
  const u32 thread = burin_dev_thread(), warps = block_threads() / kWarpThreads;
  const float value = sum ? warp_sum(mine) : warp_largest(mine);
  if (warps == 1) return value;
  if (thread % kWarpThreads == 0) burin_dev_shared_store(place + thread / kWarpThreads * kWordBytes, 0, value);
  burin_dev_barrier();
  float result = burin_dev_shared_load(place, 0);
#pragma unroll
  for (u32 warp = 1; warp < kMaxWarps; ++warp) {
    if (warp >= warps) continue;
    const float other = burin_dev_shared_load(place, warp * kWordBytes);
    result = sum ? result + other : larger(result, other);
  }
  return result;
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 thread = burin_dev_thread();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  float held[kHeld];
  float largest = -kInfinity;
#pragma unroll
  for (u32 i = 0; i < kHeld; ++i) {
    const u32 word = i * block_threads() + thread;
    held[i] = -kInfinity;
    if (i * block_threads() >= static_cast<u32>(elements())) continue;
    const float value = burin_dev_global_load(from, bytes_of(at_most(word, elements() - 1)));
    held[i] = word < static_cast<u32>(elements()) ? value : -kInfinity;
    largest = larger(largest, held[i]);
  }
  const u32 rest = kHeld * block_threads() + thread;
#pragma nounroll
  for (u32 word = rest; word < static_cast<u32>(elements()); word += block_threads()) {
    largest = larger(largest, burin_dev_global_load(from, bytes_of(word)));
  }
  largest = over_block(largest, kSharedStart, false);

  float sum = 0;
#pragma unroll
  for (u32 i = 0; i < kHeld; ++i) {
    if (i * block_threads() >= static_cast<u32>(elements())) continue;
    held[i] = burin_dev_exp(held[i] - largest);
    sum += held[i];
  }
#pragma nounroll
  for (u32 word = rest; word < static_cast<u32>(elements()); word += block_threads()) {
    sum += burin_dev_exp(burin_dev_global_load(from, bytes_of(word)) - largest);
  }
  const float factor = burin_dev_reciprocal(over_block(sum, kSharedStart + kMaxWarps * kWordBytes, true));

#pragma unroll
  for (u32 i = 0; i < kHeld; ++i) {
    const u32 word = i * block_threads() + thread;
    if (word < static_cast<u32>(elements())) burin_dev_global_store(to, bytes_of(word), held[i] * factor);
  }
#pragma nounroll
  for (u32 word = rest; word < static_cast<u32>(elements()); word += block_threads()) {
    const float value = burin_dev_exp(burin_dev_global_load(from, bytes_of(word)) - largest);
    burin_dev_global_store(to, bytes_of(word), value * factor);
  }
}
