// Programs for tests.
#pragma once

#include "ir/program.h"

namespace burin_test {

// Two images of 64 elements. A step fans out to two that may run together, each of which writes one half of what the
// last one reads; its buffer may not take the first one's place, but the output's copy may.
inline burin::Program small_program() {
  using namespace burin;
  Program program;
  program.name = "small";
  program.batch = 2;
  const auto buffer = [&](const char* tensor, BufferHome home, std::int64_t offset = 0) {
    program.buffers.push_back({.tensor = tensor,
                               .shape = {4, 4, 4},
                               .home = home,
                               .argument = home == BufferHome::arena ? -1 : 0,
                               .offset = offset});
  };
  buffer("in", BufferHome::input);
  buffer("out", BufferHome::output);
  buffer("a", BufferHome::arena);
  buffer("concat", BufferHome::arena, 512);
  buffer("last", BufferHome::arena);
  const auto whole = [](int index) { return Place{index, 0, 256, 256, 1, 0}; };
  program.steps = {{"a", "convolution", 0, "a", {whole(0)}, whole(2), {}},
                   {"left", "pool", 1, "left", {whole(2)}, {3, 0, 256, 64, 1, 0}, {0}},
                   {"right", "convolution", 2, "right", {whole(2)}, {3, 64, 256, 192, 1, 0}, {0}},
                   {"last", "lrn", 4, "last", {whole(3)}, whole(4), {1, 2}},
                   {"last", "copy", -1, "out", {whole(4)}, whole(1), {3}}};
  program.steps[0].kernel = "conv_a";
  program.steps[0].options = {{"conv_baked", 2.25}, {"conv_dense", 4, true}};
  program.naive_bytes = 2048;
  complete(program);
  return program;
}

// One layer for three images, two of which share words: with the activity maps of what it reads and of what it writes,
// and nothing in between.
inline burin::Program mapped_program() {
  using namespace burin;
  Program program;
  program.name = "layer";
  program.batch = 3;
  const auto buffer = [&](const char* tensor, BufferHome home, int argument) -> Buffer& {
    return program.buffers.emplace_back(
        Buffer{.tensor = tensor, .shape = {4, 4, 4}, .home = home, .argument = argument});
  };
  const TensorFormat halves = {ElementType::f16, TensorLayout::n2chw};
  buffer("x", BufferHome::input, 0).format = halves;
  buffer("y", BufferHome::output, 0).format = halves;
  buffer("x.activity", BufferHome::input, 1).map = ActivityMap{2, 2, 4};   // two cells for each two images
  buffer("y.activity", BufferHome::output, 1).map = ActivityMap{4, 4, 4};  // one cell, beyond the batch
  const Place x = {0, 0, 256, 256, 1, 0}, y = {1, 0, 256, 256, 1, 0};
  program.steps = {{"layer", "convolution", 0, "y", {x}, y, {}}};
  program.steps[0].input_map = Place{2, 0, 8, 8, 1, 0};
  program.steps[0].output_map = Place{3, 0, 4, 4, 1, 0};
  program.steps[0].kernel = "conv_layer";
  complete(program);
  return program;
}

}  // namespace burin_test
