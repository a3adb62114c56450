// example_relu: what is below zero becomes zero. A thread has `words` words, a block's width apart.
#define BURIN_TEMPLATE_DEF "test/providers/example/example_relu/example_relu.def"
#include "templates/kernels/template_kernel.h"

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32) {
  burin_dev_await_launch();
  const u32 first = block_of_image() * words() * block_threads() + burin_dev_thread();
  const float* from = input_of(input, first_image());
  float* to = output_of(output, first_image());
  for (i32 i = 0; i < words(); ++i) {
    const u32 word = first + i * block_threads();
    if (word >= static_cast<u32>(elements())) return;
    const float value = burin_dev_global_load(from, bytes_of(word));
    burin_dev_global_store(to, bytes_of(word), value < 0 ? 0 : value);
  }
}
