// The rules of a Program, each broken once, and its two text forms.
#include "ir/program.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "ir/faults.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/ir/small_program.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

// The only fault of the program after the change, from which the rest follows.
template <typename Change>
std::string fault_of(Program program, Change change) {
  change(program);
  complete(program);
  const std::vector<std::string> faults = verify(program);
  return faults.size() == 1 ? faults[0]
                            : std::to_string(faults.size()) + " faults" + (faults.empty() ? "" : ": " + faults[0]);
}
template <typename Change>
std::string fault(Change change) {
  return fault_of(small_program(), change);
}
template <typename Change>
std::string mapped_fault(Change change) {
  return fault_of(mapped_program(), change);
}

constexpr TensorFormat kHalves = {ElementType::f16, TensorLayout::n2chw};

// With the activity map of "a", in the arena, which step 0 writes and step 1 reads.
Program program_with_inner_map() {
  Program program = small_program();
  program.buffers.push_back({.tensor = "a.activity", .shape = {4, 4, 4}, .map = ActivityMap{2, 4, 4}, .offset = 1024});
  program.steps[0].output_map = program.steps[1].input_map = Place{5, 0, 4, 4, 1, 0};
  complete(program);
  return program;
}

// The text of a program, with one part of it replaced, as the error that it ends with.
std::string replaced_error(const Program& program, const std::string& from, const std::string& to) {
  std::string changed = to_text(program);
  const std::size_t at = changed.find(from);
  REQUIRE(at != std::string::npos);
  changed.replace(at, from.size(), to);
  return error_of([&] { parse_program(changed); });
}

}  // namespace

TEST_CASE("program: legal ones have no faults") {
  CHECK(verify(small_program()).empty());
  CHECK(verify(mapped_program()).empty());
  CHECK(verify(program_with_inner_map()).empty());
}

TEST_CASE("program: its name, and how much there is of it") {
  const std::string name = "the program's name is not printable text";
  CHECK(fault([](Program& program) { program.name = ""; }) == name);
  CHECK(fault([](Program& program) { program.name = "a\nb"; }) == name);
  CHECK(fault([](Program& program) { program.name.assign(4097, 'a'); }) == name);
  CHECK(fault([](Program& program) { program.name.assign(4096, 'a'); }) == "0 faults");
  CHECK(fault([](Program& program) { program.steps.clear(); }) == "there are no steps");
  CHECK(fault([](Program& program) { program.steps.resize(kMaxPlanSteps + 1); }) ==
        "there are 20001 steps; at most 20000 are allowed");
}

TEST_CASE("program: buffers") {
  CHECK_THAT(fault([](Program& program) { program.batch = 0; }), Contains("the batch is 0; allowed are 1 to"));
  CHECK_THAT(fault([](Program& program) { program.buffers[3].offset = -256; }),
             Contains("buffer 3 (concat) takes 512 bytes from byte -256 on, beyond the 512 of the arena"));
  CHECK_THAT(fault([](Program& program) { program.buffers[3].offset = kMaxArenaBytes + kBufferAlignment; }),
             Contains("beyond the 512 of the arena"));
  CHECK(fault([](Program& program) { program.buffers[3].offset = kMaxArenaBytes; }) ==
        fmt::format("the arena has {} bytes; allowed are 0 to {}", kMaxArenaBytes + 512, kMaxArenaBytes));
  CHECK_THAT(fault([](Program& program) { program.buffers[3].offset = 516; }),
             Contains("begins at byte 516 of the arena; buffers begin at multiples of 256"));
  CHECK(fault([](Program& program) { program.buffers[3].offset = std::int64_t{1} << 30; }) ==
        "the arena has 1073742336 bytes, and its buffers together 1536");
  CHECK_THAT(fault([](Program& program) { program.buffers[2].shape = {4, 4, 5}; }),
             Contains("buffer 2 (a) and buffer 3 (concat) share bytes of the arena"));
  CHECK_THAT(fault([](Program& program) { program.naive_bytes = 1000; }), Contains("arena's buffers alone are 1536"));
  CHECK(fault([](Program& program) {
          program.buffers.push_back(program.buffers[2]);
          program.naive_bytes += 512;
        }) == "buffer 5 (a) is used by no step");
  CHECK_THAT(fault([](Program& program) { program.buffers[0].offset = 256; }),
             Contains("buffer 0 (in) is the caller's memory and has no offset in the arena"));
  CHECK_THAT(fault([](Program& program) { program.buffers[2].argument = 0; }),
             Contains("buffer 2 (a) is an argument, but lies in the arena"));
}

TEST_CASE("program: a buffer holds what its layout is for") {
  CHECK_THAT(fault([](Program& program) { program.buffers[2].format.element = ElementType::f16; }),
             Contains("buffer 2 (a) holds f16 nchw in the arena: only inputs and outputs do"));
  CHECK_THAT(
      fault([](Program& program) { program.buffers[1].format.layout = TensorLayout::n2chw; }),
      Contains("buffer 1 (out) holds f32 in n2chw: n2chw, n8c8hw, nchw8 and nhwc8 hold halves, nchw4, n4c8hw and nhwc4 "
               "float32, nchw either"));
  CHECK_THAT(fault([](Program& program) { program.buffers[1].format.layout = TensorLayout::n8c8hw; }),
             Contains(fmt::format("buffer 1 (out) holds f32 in n8c8hw: {}", burin::kWhatLiesWhere)));
  CHECK_THAT(fault([](Program& program) {
               program.buffers[2].shape = {64};
               program.buffers[2].format.layout = TensorLayout::nchw4;
             }),
             Contains("buffer 2 (a) lies in nchw4, which only images do"));
}

TEST_CASE("program: what follows from the rest is held to it") {
  const std::string text = "its sizes and lives are not those that follow from its buffers and steps";
  const auto first_fault = [](const std::function<void(Program&)>& change) {
    Program program = small_program();
    change(program);
    const std::vector<std::string> faults = verify(program);
    return faults.empty() ? std::string("no faults") : faults[0];
  };
  CHECK(first_fault([](Program& program) { program.arena_bytes += kBufferAlignment; }) == text);
  CHECK(first_fault([](Program& program) { program.buffers[2].bytes = 256; }) == text);
  CHECK(first_fault([](Program& program) { program.buffers[2].first = 1; }) == text);
  CHECK(first_fault([](Program& program) { program.buffers[2].last = 3; }) == text);
  CHECK(first_fault([](Program& program) { program.steps[0].reads[0].image_stride = 128; }) == text);
}

TEST_CASE("program: the bytes of a buffer are those of its format, filling included") {
  Program program;
  program.batch = 3;
  program.buffers = {{.tensor = "plain", .shape = {5, 2, 3}},
                     {.tensor = "fours", .shape = {5, 2, 3}, .format = {ElementType::f32, TensorLayout::nchw4}},
                     {.tensor = "pairs", .shape = {5, 2, 3}, .format = kHalves},
                     {.tensor = "flat", .shape = {7}},
                     {.tensor = "map", .shape = {5, 3, 3}, .map = ActivityMap{2, 2, 2}}};
  complete(program);
  const auto bytes = [&](std::size_t index) { return program.buffers[index].bytes; };
  CHECK(bytes(0) == 3 * 5 * 6 * 4);
  CHECK(bytes(1) == 3 * 8 * 6 * 4);  // eight channels
  CHECK(bytes(2) == 4 * 5 * 6 * 2);  // four images
  CHECK(bytes(3) == 3 * 7 * 4);
  CHECK(bytes(4) == 2 * 2 * 2 * 5);  // cells of two images, rows and columns
}

TEST_CASE("program: there is an end to what is said of faults, and to steps that are waited for") {
  // All write the same bytes, and none waits for another.
  Program program = small_program();
  const Step writer = program.steps[0];
  program.steps.assign(3000, writer);
  program.buffers.resize(3);
  complete(program);
  const std::vector<std::string> faults = verify(program);
  CHECK(faults.size() == Faults::kMost);
  CHECK(faults.back() == "there are more faults, which are not told");

  CHECK_THAT(replaced_error(small_program(), "after 1,2", "after 0-1048575"),
             Contains("'step 3' lists more than 3 values"));
  // A step may wait for all before it, but not all for all.
  std::string text = "name: many\nbatch: 1\nnaive_bytes: 0\n";
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format(
        "step {}: kind copy operator -1 reads 0+0,4,1,0 writes 0+0,4,1,0 input_map - output_map - after {} "
        "tensor t name n kernel k options -\n",
        i, i == 0 ? "none" : fmt::format("0-{}", i - 1));
  }
  CHECK_THAT(error_of([&] { parse_program(text); }),
             Contains("'step 1448': steps wait for others more than 1048576 times (kMaxPlanWaits)"));
  // What one program has taken the next one of the package lacks.
  std::int64_t waits = 5;
  CHECK(parse_program(to_text(small_program()), waits) == small_program());
  CHECK(waits < 5);
  CHECK_THAT(error_of([&] { parse_program(to_text(small_program()), waits); }), Contains("kMaxPlanWaits"));
}

TEST_CASE("program: so many axes") {
  const auto with_shape = [](std::vector<std::int64_t> shape) {
    return fault([&](Program& program) { program.buffers[2].shape = shape; });
  };
  CHECK(with_shape({64}) == "0 faults");
  CHECK(with_shape({4, 4, 4, 1, 1, 1}) == "0 faults");
  CHECK(with_shape({4, 4, 4, 1, 1, 1, 1}) == "buffer 2 (a) has 7 axes; allowed are 1 to 6");
  CHECK(with_shape(std::vector<std::int64_t>(1000, std::int64_t{1} << 62)) ==
        "buffer 2 (a) has 1000 axes; allowed are 1 to 6");
  CHECK(with_shape({}) == "buffer 2 (a) has 0 axes; allowed are 1 to 6");
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{-4}, kMaxImageBytes + 1}) {
    INFO(extent);
    Program program = small_program();
    program.buffers[2].shape = {4, extent, 4};
    complete(program);
    const std::vector<std::string> faults = verify(program);
    REQUIRE_FALSE(faults.empty());
    CHECK(faults[0] == fmt::format("buffer 2 (a) is 4x{}x4; extents are 1 to {}", extent, kMaxImageBytes));
  }
  Program large = small_program();
  large.buffers[2].shape = std::vector<std::int64_t>(6, kMaxImageBytes);
  complete(large);
  CHECK(large.buffers[2].bytes == std::numeric_limits<std::int64_t>::max());
  CHECK_THAT(verify(large).at(0), Contains("buffer 2 (a) has 9223372036854775807 bytes; at most"));
}

TEST_CASE("program: arguments may be in any format") {
  CHECK(fault([](Program& program) { program.buffers[1].format.layout = TensorLayout::nchw4; }) == "0 faults");
  // Two images in one piece: of as many bytes as one of floats.
  CHECK(fault([](Program& program) {
          for (const int argument : {0, 1}) {
            program.buffers[static_cast<std::size_t>(argument)].format = kHalves;
          }
        }) == "0 faults");
}

TEST_CASE("program: arguments are complete, and each has a name of its own") {
  CHECK_THAT(fault([](Program& program) { program.buffers[0].argument = 1; }),
             Contains("the buffers of the program's inputs are not one for each of 0 to 1"));
  CHECK_THAT(mapped_fault([](Program& program) { program.buffers[2].argument = 0; }),
             Contains("the buffers of the program's inputs are not one for each of 0 to 2"));
  CHECK_THAT(fault([](Program& program) {
               program.buffers[1].home = BufferHome::arena;
               program.buffers[1].argument = -1;
             }),
             Contains("the buffers of the program's outputs are not one for each of 0 to 0"));
  CHECK(fault([](Program& program) { program.buffers[0].tensor = ""; }) ==
        "buffer 0 () is an argument whose name is not printable text");
  CHECK(fault([](Program& program) { program.buffers[1].tensor = "\x7f"; }) ==
        "buffer 1 (\\x7f) is an argument whose name is not printable text");
  CHECK(fault([](Program& program) { program.buffers[2].tensor = "\x7f"; }) == "0 faults");  // in the arena
  CHECK(mapped_fault([](Program& program) { program.buffers[2].tensor = "x"; }) == "two inputs are named x");
  CHECK(mapped_fault([](Program& program) { program.buffers[3].tensor = "y"; }) == "two outputs are named y");
  CHECK(mapped_fault([](Program& program) { program.buffers[1].tensor = "x"; }) == "0 faults");  // one of each
}

TEST_CASE("program: inputs and outputs in their order, and how many bytes of them so many images are") {
  Program program = mapped_program();
  std::swap(program.buffers[0], program.buffers[2]);
  CHECK(program.inputs() == std::vector<const Buffer*>{&program.buffers[2], &program.buffers[0]});
  CHECK(program.outputs() == std::vector<const Buffer*>{&program.buffers[1], &program.buffers[3]});
  const Buffer &x = program.buffers[2], &x_map = program.buffers[0], &y_map = program.buffers[3];
  CHECK(program.pieces(x) == 2);
  CHECK(program.pieces(x, 2) == 1);
  CHECK(program.pieces(x_map) == 2);
  CHECK(program.pieces(y_map) == 1);
  CHECK(program.pieces(y_map, 9) == 3);
  CHECK(program.bytes(x, 1) == 256);
  CHECK(program.bytes(x, 5) == 768);
  CHECK(program.bytes(x_map, 5) == 24);
  CHECK(program.bytes(y_map, 5) == 8);
  CHECK(x.elements() == 64);
  CHECK(x.format_text() == "f16 n2chw");
  CHECK(x_map.format_text() == "map 2x2x4");
  const Program plain = small_program();
  CHECK(plain.pieces(plain.buffers[0]) == 2);
  CHECK(plain.bytes(plain.buffers[0], 3) == 768);
}

TEST_CASE("program: which of several runs so many images") {
  std::vector<Program> programs(3, small_program());
  const std::vector<const Program*> all = {&programs[0], &programs[1], &programs[2]};
  for (std::size_t i = 0; i < programs.size(); ++i) programs[i].batch = 2 << (2 * i);  // 2, 8, 32
  const auto batch_for = [&](int images) { return program_for(all, images).batch; };
  CHECK(programs[1].most_images() == 8);
  CHECK(batch_for(1) == 2);
  CHECK(batch_for(2) == 2);
  CHECK(batch_for(3) == 8);
  CHECK(batch_for(33) == 32);
  // Without an arena each takes any number.
  for (Program& program : programs) program.arena_bytes = 0;
  CHECK(programs[1].most_images() == kMaxBatch);
  CHECK(batch_for(1) == 2);
  CHECK(batch_for(7) == 2);
  CHECK(batch_for(8) == 8);
  CHECK(batch_for(31) == 8);
  CHECK(batch_for(1000) == 32);
}

TEST_CASE("program: activity maps") {
  const std::string no_image = "buffer 2 (x.activity) is the activity map of no image";
  CHECK(mapped_fault([](Program& program) { program.buffers[2].shape = {64}; }) == no_image);
  CHECK(mapped_fault([](Program& program) { program.buffers[2].shape = {4, 0, 4}; }) == no_image);
  CHECK(mapped_fault([](Program& program) { program.buffers[2].shape = {4, 4, std::int64_t{1} << 32}; }) == no_image);
  CHECK_THAT(mapped_fault([](Program& program) { program.buffers[2].map->rows = 5; }),
             Contains("buffer 2 (x.activity): the map: cell rows is 5, allowed is 1 to 4"));
  CHECK_THAT(mapped_fault([](Program& program) { program.buffers[2].map->cols = 0; }),
             Contains("buffer 2 (x.activity): the map: cell columns is 0, allowed is 1 to 4"));
  CHECK(mapped_fault([](Program& program) { program.buffers[2].format = kHalves; }) ==
        "buffer 2 (x.activity) is a map, which has no format");
  CHECK(mapped_fault([](Program& program) { program.steps[0].input_map = Place{2, 4, 8, 4, 1, 0}; }) ==
        "step 0 (layer) reads part of a map, buffer 2 (x.activity)");
  CHECK_THAT(mapped_fault([](Program& program) { program.steps[0].output_map->buffer = 9; }),
             Contains("step 0 (layer) writes buffer 9; there are 4"));
}

TEST_CASE("program: cells of no images") {
  for (const int images : {0, -1, std::numeric_limits<int>::min()}) {
    INFO(images);
    Program program = mapped_program();
    program.buffers[2].map->images = images;
    complete(program);
    CHECK(program.pieces(program.buffers[2]) == program.batch);
    CHECK(parse_program(to_text(program)) == program);
    CHECK_FALSE(print(program).empty());
    const std::vector<std::string> faults = verify(program);
    REQUIRE_FALSE(faults.empty());
    CHECK_THAT(faults[0], Contains("buffer 2 (x.activity): the map: cell images is " + std::to_string(images)));
  }
}

TEST_CASE("program: a map is written before it is read, and lies where nothing else does") {
  CHECK(mapped_fault([](Program& program) { program.steps[0].output_map.reset(); }) ==
        "buffer 3 (y.activity) is an output of the program that is not wholly written");
  CHECK(fault_of(program_with_inner_map(), [](Program& program) { program.steps[0].output_map.reset(); }) ==
        "step 1 (left) reads bytes of buffer 5 (a.activity) that no step it waits for has written");
  CHECK(fault_of(program_with_inner_map(),
                 [](Program& program) { program.steps[2].output_map = program.steps[0].output_map; }) ==
        "step 2 (right) writes bytes of buffer 5 (a.activity) that step 1 (left) reads; neither waits for the "
        "other");
  CHECK_THAT(fault_of(program_with_inner_map(), [](Program& program) { program.buffers[5].offset = 768; }),
             Contains("buffer 3 (concat) and buffer 5 (a.activity) share bytes of the arena"));
}

TEST_CASE("program: parts of tensors in n8c8hw are whole octets of channels") {
  const auto fault_with = [](const Place& left) {
    Program program = small_program();
    for (Buffer& buffer : program.buffers) {
      buffer.shape = {12, 4, 4};  // sixteen channels of 256 bytes, filling included
      buffer.format = {ElementType::f16, TensorLayout::n8c8hw};
      buffer.offset *= 8;
    }
    for (Step& step : program.steps) {
      for (Place& place : step.reads) place.run_bytes = 4096;
      step.writes.run_bytes = 4096;
    }
    program.steps[1].writes = left;
    program.steps[2].writes = {3, 2048, 0, 2048, 1, 0};
    program.naive_bytes = 3 * 4096;
    complete(program);
    const std::vector<std::string> faults = verify(program);
    return faults.size() == 1 ? faults[0] : std::to_string(faults.size()) + " faults";
  };
  CHECK(fault_with({3, 0, 0, 2048, 1, 0}) == "0 faults");
  for (const Place& left : {Place{3, 0, 0, 1024, 1, 0}, {3, 256, 0, 2048, 1, 0}, {3, 0, 0, 1024, 2, 2048}}) {
    CHECK(
        fault_with(left) ==
        "step 1 (left) writes part of buffer 3 (concat) that does not begin and end at multiples of 8 channels, which "
        "lie side by side in n8c8hw");
  }
}

TEST_CASE("program: places") {
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes.buffer = 7; }),
             Contains("step 1 (left) writes buffer 7; there are 5"));
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes.offset = 224; }),
             Contains("which do not lie within an image of buffer 3 (concat)"));
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes = {3, 0, 256, 32, 1 << 30, 1 << 30}; }),
             Contains("which do not lie within an image of buffer 3 (concat)"));
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes.run_bytes = 63; }), Contains("parts of words"));
  CHECK_THAT(fault([](Program& program) { program.steps[4].writes.buffer = 0; }),
             Contains("step 4 (last) writes to an input of the program"));
  CHECK_THAT(fault([](Program& program) { program.steps[4].reads[0].run_bytes = 128; }),
             Contains("step 4 (last) copies 1 runs of 128 bytes to 1 of 256"));
  CHECK_THAT(fault([](Program& program) { program.steps[0].reads.clear(); }),
             Contains("step 0 (a) reads 0 tensors; one or two are allowed"));
  CHECK_THAT(fault([](Program& program) { program.steps[4].op = 3; }), Contains("copies alone have none"));
}

TEST_CASE("program: what is said of the kernels that were compared") {
  const std::string name = "step 0 (a): a provider's name is not printable text";
  CHECK(fault([](Program& program) { program.steps[0].options[1].provider = ""; }) == name);
  CHECK(fault([](Program& program) { program.steps[0].options[0].provider = "\x01"; }) == name);
  CHECK(fault([](Program& program) { program.steps[0].options[0].provider.assign(257, 'a'); }) == name);
  for (const double us : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(fault([&](Program& program) { program.steps[0].options[0].us = us; }) ==
          "step 0 (a): the time of conv_baked is not finite");
  }
  CHECK(describe(small_program().steps[0].options) == "conv_baked 2.2 us, conv_dense 4.0 us");
}

TEST_CASE("program: order") {
  CHECK_THAT(fault([](Program& program) { program.steps[1].after = {1}; }),
             Contains("step 1 (left) waits for step 1; steps wait for earlier ones"));
  CHECK_THAT(fault([](Program& program) { program.steps[3].after = {2, 1}; }), Contains("in ascending order"));
  // The step no longer waits for what it reads; nor may what it reads have been written over by then.
  Program program = small_program();
  program.steps[3].after = {2};
  std::vector<std::string> faults = verify(program);
  REQUIRE(faults.size() == 3);
  CHECK_THAT(faults[0], Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 3 (last) reads; neither"));
  CHECK_THAT(faults[1], Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for has"));
  CHECK_THAT(faults[2], Contains("buffer 2 (a) and buffer 4 (last) share bytes of the arena"));
}

TEST_CASE("program: what is read and what is an output has been written") {
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes.run_bytes = 60; }),
             Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for has written"));
  CHECK_THAT(fault([](Program& program) {
               program.steps[4].writes.run_bytes = 128;
               program.steps[4].reads[0].run_bytes = 128;
             }),
             Contains("buffer 1 (out) is an output of the program that is not wholly written"));
}

TEST_CASE("program: two steps that may run together write different bytes") {
  CHECK_THAT(fault([](Program& program) { program.steps[1].writes.run_bytes = 68; }),
             Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 2 (right) writes as well"));
}

TEST_CASE("program: buffers that live at the same time share nothing") {
  CHECK_THAT(fault([](Program& program) {
               program.buffers[3].offset = 256;
               program.buffers[4].offset = 1024;
             }),
             Contains("buffer 2 (a) and buffer 3 (concat) share bytes of the arena"));
}

TEST_CASE("program: runs that fill each other's gaps") {
  Program program = small_program();
  program.steps[1].writes = {3, 0, 256, 16, 4, 64};
  program.steps[2].writes = {3, 16, 256, 48, 4, 64};
  CHECK(verify(program).empty());
  program.steps[2].writes.run_bytes = 44;
  REQUIRE(verify(program).size() == 1);
  CHECK_THAT(verify(program)[0], Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for"));
  program.steps[2].writes = {3, 12, 256, 52, 4, 64};
  CHECK_THAT(verify(program).at(0),
             Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 2 (right) writes"));
}

TEST_CASE("program: text that is parsed gives the same program") {
  Program program = small_program();
  const std::string anything = "a name, with blanks; 100 % # : \xc3\xa4\n-";
  program.name = program.steps[1].name = program.steps[1].kernel = program.buffers[0].tensor = anything;
  program.steps[1].tensor = "";
  program.steps[1].writes = {3, 0, 256, 16, 4, 64};
  program.steps[2].reads.push_back(program.steps[2].reads[0]);
  program.steps[2].options = {{anything, 0.1}, {"", 1e-300, true}, {"-", -std::numeric_limits<double>::max()}};
  program.steps[2].kernel = "-";
  CHECK(parse_program(to_text(program)) == program);
  CHECK(parse_program(to_text(program_with_inner_map())) == program_with_inner_map());
  CHECK(parse_program(to_text(mapped_program())) == mapped_program());
  program.name = "";
  CHECK(parse_program(to_text(program)) == program);
}

TEST_CASE("program: its text says what a person would ask for") {
  const std::string text = to_text(mapped_program());
  CHECK_THAT(text, Contains("name: layer\nbatch: 3\nnaive_bytes: 0\n"));
  CHECK_THAT(text,
             Contains("buffer 0: in input argument 0 shape 4x4x4 element f16 layout n2chw map - offset 0 tensor x\n"));
  CHECK_THAT(text, Contains("element f32 layout nchw map 2x2x4 offset 0 tensor x.activity\n"));
  CHECK_THAT(text, Contains("reads 0+0,256,1,0 writes 1+0,256,1,0 input_map 2+0,8,1,0 output_map "
                            "3+0,4,1,0 after none tensor y name layer kernel conv_layer options -\n"));
  CHECK_THAT(to_text(small_program()), Contains("input_map - output_map - after none tensor a name a kernel conv_a "
                                                "options conv_baked,2.25,model;conv_dense,4,measured\n"));
}

TEST_CASE("program: text with a fault is refused, and the line is named") {
  const auto with = [](const std::string& from, const std::string& to) {
    return replaced_error(small_program(), from, to);
  };
  CHECK_THAT(with("name: small\n", ""), Contains("program: there is no line 'name: ...'"));
  CHECK(with("name: small", "name: small%6").starts_with("program, line 1: 'small%6': a % is followed by two digits"));
  CHECK(with("batch: 2", "batch: two").starts_with("program, line 2:"));
  CHECK_THAT(with("naive_bytes", "naive"), Contains("there is no line 'naive_bytes: ...'"));
  CHECK_THAT(with("in arena", "in cellar"),
             Contains("line 6: 'cellar' is not a home of buffers; known are arena, input, output"));
  CHECK_THAT(with("element f32", "element f33"), Contains("'f33' is not an element type"));
  CHECK_THAT(with("layout nchw", "layout chw"), Contains("'chw' is not a tensor layout"));
  CHECK_THAT(with("buffer 1", "buffer 2"), Contains("'buffer 2': number 1 is expected here"));
  CHECK_THAT(with("step 1", "step 2"), Contains("'step 2': number 1 is expected here"));
  CHECK_THAT(with("tensor in", "tensor i%6"), Contains("a % is followed by two digits"));
  CHECK_THAT(with("reads 0+0,256", "reads 0,256"), Contains("expected BUFFER+OFFSET,RUN_BYTES"));
  CHECK_THAT(with("kind pool", "kin pool"), Contains("expected 'kind', got 'kin'"));
  CHECK_THAT(with("after none ", ""), Contains("expected 'kind VALUE operator VALUE"));
  CHECK_THAT(with("naive_bytes", "more: 1\nnaive_bytes"), Contains("line 3: unknown key 'more'"));
}

TEST_CASE("program: text with a fault in a map or in what was compared") {
  const auto map = [](const std::string& to) { return replaced_error(mapped_program(), "map 2x2x4", "map " + to); };
  CHECK_THAT(map("2x2"), Contains("program, line 6: expected IMAGESxROWSxCOLS of a map's cell, got '2x2'"));
  CHECK_THAT(map("2x2xtwo"), Contains("'two' of 'buffer 2' is not an integer"));
  CHECK_THAT(map("2x2x4294967296"), Contains("does not fit 32 bits"));
  CHECK_THAT(replaced_error(mapped_program(), "input_map 2+0", "input_map 2"), Contains("expected BUFFER+OFFSET"));
  const auto options = [](const std::string& to) {
    return replaced_error(small_program(), "conv_baked,2.25,model", to);
  };
  CHECK_THAT(options("conv_baked,2.25"), Contains("expected PROVIDER,MICROSECONDS,SOURCE, got 'conv_baked,2.25'"));
  CHECK_THAT(options("conv_baked,fast,model"), Contains("'fast' of 'step 0' is not a number"));
  CHECK_THAT(options("conv_baked,2.25,guessed"), Contains("expected model or measured, got 'guessed'"));
}

TEST_CASE("program: the table names steps, places and the arena") {
  const std::string text = print(small_program());
  CHECK_THAT(text, Contains("step  operator  kind         reads    writes") && Contains("b3[64..256 of 256]"));
  CHECK_THAT(text, Contains("input 0") && Contains("the caller's") && Contains("4x4x4"));
  CHECK_THAT(text, Contains("batch 2: an arena of 1024 bytes; a buffer for each tensor would take 2048 (50 %)"));
  CHECK_THAT(print(mapped_program()), Contains("f16 n2chw") && Contains("map 2x2x4") && Contains("input 1"));
  Program damaged = small_program();
  damaged.steps[0].reads[0].buffer = 99;
  CHECK_THAT(print(damaged), Contains("?99"));
}

namespace {

// Loose halves in, float32 in between, loose halves out: 27 of an image.
Program loose_program() {
  constexpr TensorFormat kLoose = {ElementType::f16, TensorLayout::nchw};
  Program program;
  program.name = "loose";
  program.batch = 3;
  const auto buffer = [&](const char* tensor, BufferHome home, const TensorFormat& format) {
    const int argument = home == BufferHome::arena ? -1 : 0;
    program.buffers.push_back(
        {.tensor = tensor, .shape = {3, 3, 3}, .home = home, .argument = argument, .format = format});
  };
  buffer("in", BufferHome::input, kLoose);
  buffer("out", BufferHome::output, kLoose);
  buffer("in.f32", BufferHome::arena, {});
  program.steps = {{"first", "convert", 0, "in.f32", {Place{0, 0, 54, 54, 1, 0}}, Place{2, 0, 108, 108, 1, 0}, {}},
                   {"last", "convert", 1, "out", {Place{2, 0, 108, 108, 1, 0}}, Place{1, 0, 54, 54, 1, 0}, {0}}};
  program.naive_bytes = 1024;
  complete(program);
  return program;
}
template <typename Change>
std::string loose_fault(Change change) {
  return fault_of(loose_program(), change);
}

}  // namespace

TEST_CASE("program: loose halves are arguments, which conversions read and write as a whole") {
  const Program program = loose_program();
  CHECK(verify(program) == std::vector<std::string>{});
  CHECK(program.buffers[0].bytes == 3 * 27 * 2);
  CHECK(program.bytes(program.buffers[0], 1) == 54);
  CHECK(program.buffers[0].format_text() == "f16 nchw");
  CHECK(parse_program(to_text(program)) == program);
  CHECK_THAT(to_text(program), Contains("element f16 layout nchw"));
  CHECK(loose_fault([](Program& p) { p.steps[0].kind = "relu"; }) ==
        "step 0 (first) reads buffer 0 (in), which holds f16 nchw: a convert of all of it may");
  CHECK(loose_fault([](Program& p) { p.steps[1].writes.run_bytes = 52; }) ==
        "step 1 (last) writes buffer 1 (out), which holds f16 nchw: a convert of all of it may");
  CHECK(loose_fault([](Program& p) { p.steps[1].writes.run_bytes = 53; }) ==
        "step 1 (last) writes parts of words of buffer 1 (out)");
  CHECK_THAT(loose_fault([](Program& p) {
               p.buffers[2].format = {ElementType::f16, TensorLayout::nchw};
               p.steps[0].writes = p.steps[1].reads[0] = Place{2, 0, 54, 54, 1, 0};
             }),
             Contains("buffer 2 (in.f32) holds f16 nchw in the arena: only inputs and outputs do"));
  CHECK_THAT(loose_fault([](Program& p) { p.buffers[0].format.layout = TensorLayout::nchw4; }),
             Contains(fmt::format("holds f16 in nchw4: {}", burin::kWhatLiesWhere)));
}
