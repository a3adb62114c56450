// A Program for tests.
#pragma once

#include "ir/program.h"

namespace burin_test {

// Two images of 64 elements. A step fans out to two that may run together, each of which writes one half of what the
// last one reads; its buffer may not take the first one's place, but the output's copy may.
inline burin::Program small_program() {
  using namespace burin;
  Program plan;
  plan.batch = 2;
  const auto buffer = [&](const char* tensor, BufferHome home, std::int64_t offset, int first, int last) {
    plan.buffers.push_back({tensor,
                            {4, 4, 4},
                            home,
                            home == BufferHome::arena ? -1 : 0,
                            ElementType::f32,
                            TensorLayout::nchw,
                            512,
                            offset,
                            first,
                            last});
  };
  buffer("in", BufferHome::input, 0, 0, 0);
  buffer("out", BufferHome::output, 0, 4, 4);
  buffer("a", BufferHome::arena, 0, 0, 2);
  buffer("concat", BufferHome::arena, 512, 1, 3);
  buffer("last", BufferHome::arena, 0, 3, 4);
  const auto whole = [](int index) { return Place{index, 0, 256, 256, 1, 0}; };
  plan.steps = {{"a", "convolution", 0, "a", {whole(0)}, whole(2), {}},
                {"left", "pool", 1, "left", {whole(2)}, {3, 0, 256, 64, 1, 0}, {0}},
                {"right", "convolution", 2, "right", {whole(2)}, {3, 64, 256, 192, 1, 0}, {0}},
                {"last", "lrn", 4, "last", {whole(3)}, whole(4), {1, 2}},
                {"last", "copy", -1, "out", {whole(4)}, whole(1), {3}}};
  plan.arena_bytes = 1024;
  plan.naive_bytes = 2048;
  return plan;
}

}  // namespace burin_test
