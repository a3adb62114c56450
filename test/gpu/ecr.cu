// The published kernels for planes whose values are mostly zeros, as ecr.py measures them: one thread for each output
// extends its window to a row and compresses it, values beside weights, into a list in shared memory (ECR), and
// multiplies what is in the list; with a pool behind the convolution a thread does so for each window that the pool
// reads, and keeps the largest (PECR). Nothing of the lists, and nothing that a pool throws away, is written to global
// memory.
//
// EXTENT, KERNEL, PAD, STRIDE, CONV and OUT are given when it is compiled: rows and columns of the plane, of the
// filter, its padding and step, of the convolution's result and of the output; THREADS of a block; and where there is a
// pool POOL and POOL_STRIDE.

__shared__ float2
    pairs[KERNEL * KERNEL][THREADS];  // a thread's list is a column, so that no two threads meet in a bank

// The sum of one window.
__device__ float convolved(const float* plane, const float* weights, int row, int col) {
  int count = 0;
#pragma unroll
  for (int r = 0; r < KERNEL; ++r) {
#pragma unroll
    for (int s = 0; s < KERNEL; ++s) {
      const int y = row * STRIDE - PAD + r, x = col * STRIDE - PAD + s;
      if (y < 0 || y >= EXTENT || x < 0 || x >= EXTENT) continue;
      const float value = plane[y * EXTENT + x];
      if (value == 0.0f) continue;
      pairs[count][threadIdx.x] = make_float2(value, weights[r * KERNEL + s]);
      ++count;
    }
  }
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) {
    const float2 pair = pairs[i][threadIdx.x];
    sum = fmaf(pair.x, pair.y, sum);
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ecr(const float* __restrict__ planes, const float* __restrict__ weights, float bias, float* __restrict__ outputs) {
  const int output = blockIdx.x * THREADS + threadIdx.x;
  if (output >= OUT * OUT) return;
  const float* plane = planes + blockIdx.y * EXTENT * EXTENT;
  const int row = output / OUT, col = output % OUT;
#ifdef POOL
  float largest = 0.0f;  // of what a ReLU leaves
  for (int r = 0; r < POOL; ++r) {
    for (int s = 0; s < POOL; ++s) {
      const int y = row * POOL_STRIDE + r, x = col * POOL_STRIDE + s;
      if (y < CONV && x < CONV) largest = fmaxf(largest, convolved(plane, weights, y, x) + bias);
    }
  }
#else
  const float largest = fmaxf(0.0f, convolved(plane, weights, row, col) + bias);
#endif
  outputs[blockIdx.y * OUT * OUT + output] = largest;
}
