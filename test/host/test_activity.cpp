// Activity maps on the host executor: kernels that misuse them, or the bits of shared memory that are made of them.

#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin;
using namespace burin_test;

namespace {

constexpr int kCells = kCols / kThreads;

// The row's launch with maps whose cells are the tiles.
RunOptions with_maps() {
  RunOptions options;
  options.input_map = options.output_map = ActivityMap{1, 1, kThreads};
  return options;
}

// A kernel that stores its pixels, then runs `body`, in which %t, %b and %cell (of the block, i64) are known.
std::string kernel_with_maps(const std::string& body) {
  return assemble_module(R"(
define void @k(ptr %in, ptr %out, ptr %res, ptr %par, ptr %cnt, ptr %live, ptr %marks, i32 %batch) {
entry:
  %t = call i32 @burin_dev_thread()
  %b = call i32 @burin_dev_block_x()
  %first = shl i32 %b, 2
  %pixel = add i32 %first, %t
  %pixel4 = shl i32 %pixel, 2
  %off = zext i32 %pixel4 to i64
  %cell = zext i32 %b to i64
  %zero = icmp eq i32 %t, 0
  %leads = zext i1 %zero to i32
)" + kStoreOne + body + "\n  ret void\n}\n");
}

struct MapRun {
  std::vector<std::uint8_t> marks;
  std::string fault;
};

MapRun run_with_maps(const std::string& body, const std::vector<std::uint8_t>& live = {1, 0}) {
  HostKernel kernel(kernel_with_maps(body), "k", form_of_row_kernel(with_maps()));
  const std::vector<float> input(kCols, 1.0F);
  std::vector<float> output(kCols);
  MapRun run{.marks = std::vector<std::uint8_t>(kCells, 0xA5), .fault = {}};
  try {
    kernel.run({.batch = 1, .input = input, .output = output, .input_map = live, .output_map = run.marks});
  } catch (const Error& error) {
    run.fault = error.what();
  }
  return run;
}

const std::string kMark = "  call void @burin_dev_map_store_if(i32 %leads, ptr %marks, i64 %cell, i32 1)\n";

}  // namespace

TEST_CASE("activity: maps are read and written byte by byte") {
  const MapRun run = run_with_maps(
      "  %x = call i32 @burin_dev_map_load(ptr %live, i64 %cell)\n"
      "  call void @burin_dev_map_store_if(i32 %leads, ptr %marks, i64 %cell, i32 %x)\n",
      {1, 0});
  CHECK(run.fault.empty());
  CHECK(run.marks == std::vector<std::uint8_t>{1, 0});
}

TEST_CASE("activity: a byte that nobody writes") {
  CHECK_THAT(run_with_maps("  %no = icmp eq i32 %b, 0\n  %only = select i1 %no, i32 %leads, i32 0\n"
                           "  call void @burin_dev_map_store_if(i32 %only, ptr %marks, i64 %cell, i32 1)\n")
                 .fault,
             Contains("byte 1 (cell 1, channel 0) of the activity map of the output was not written by any thread"));
}

TEST_CASE("activity: a byte that two threads write") {
  CHECK_THAT(run_with_maps("  call void @burin_dev_map_store_if(i32 1, ptr %marks, i64 %cell, i32 1)\n").fault,
             Contains("(cell 0, channel 0) of the activity map of the output a second time, after block (0, 0)") ||
                 Contains("(cell 1, channel 0) of the activity map of the output a second time, after block (1, 0)"));
}

TEST_CASE("activity: outside of the maps, or in the other one") {
  CHECK_THAT(run_with_maps(kMark + "  %x = call i32 @burin_dev_map_load(ptr %live, i64 2)\n").fault,
             Contains("load from activity map of the input out of bounds: element 2, past the 2 of the launch"));
  CHECK_THAT(run_with_maps(kMark + "  %x = call i32 @burin_dev_map_load(ptr %live, i64 -1)\n").fault,
             Contains("element -1, before the 2 of the launch"));
  CHECK_THAT(run_with_maps(kMark + "  %x = call i32 @burin_dev_map_load(ptr %marks, i64 0)\n").fault,
             Contains("at byte 0 of the activity map of the output, which is not for this access"));
  CHECK_THAT(run_with_maps("  call void @burin_dev_map_store_if(i32 %leads, ptr %out, i64 %cell, i32 1)\n").fault,
             Contains("of the output, which is not for this access"));
}

TEST_CASE("activity: a launch without maps has null for them") {
  HostKernel kernel(kernel_with_maps("  %none = icmp eq ptr %live, null\n  br i1 %none, label %end, label %look\n"
                                     "look:\n  %x = call i32 @burin_dev_map_load(ptr %live, i64 0)\n  br label %end\n"
                                     "end:\n"),
                    "k", form_of_row_kernel(with_maps()));
  const std::vector<float> input(kCols, 1.0F);
  std::vector<float> output(kCols);
  CHECK_NOTHROW(kernel.run({.batch = 1, .input = input, .output = output}));
}

TEST_CASE("activity: maps of another size") {
  HostKernel kernel(kernel_with_maps(""), "k", form_of_row_kernel(with_maps()));
  const std::vector<float> input(kCols, 1.0F);
  std::vector<float> output(kCols);
  const std::vector<std::uint8_t> map(3);
  CHECK_THROWS_WITH(kernel.run({.batch = 1, .input = input, .output = output, .input_map = map}),
                    Contains("the activity map of the input has 3 bytes; batch 1 needs 2"));
  HostKernel plain(assemble_kernel(kStoreOne + "  ret void"), "k", form_of_row_kernel());
  CHECK_THROWS_WITH(plain.run({.batch = 1, .input = input, .output = output, .input_map = map}),
                    Contains("the activity map of the input has 3 bytes; batch 1 needs 0"));
}

TEST_CASE("activity: a kernel that has one of the maps gets null for the other") {
  const std::vector<float> input(kCols, 1.0F);
  std::vector<float> output(kCols);
  const std::vector<std::uint8_t> live = {1, 0};
  std::vector<std::uint8_t> marks(kCells, 0xA5);
  RunOptions options = with_maps();
  options.output_map.reset();
  const std::string looks =
      "  %x = call i32 @burin_dev_map_load(ptr %live, i64 %cell)\n  %none = icmp eq ptr %marks, null\n"
      "  br i1 %none, label %end, label %fault\nfault:\n  unreachable\nend:\n";
  HostKernel reader(kernel_with_maps(looks), "k", form_of_row_kernel(options));
  CHECK_NOTHROW(reader.run({.batch = 1, .input = input, .output = output, .input_map = live}));
  CHECK_THROWS_WITH(reader.run({.batch = 1, .input = input, .output = output, .input_map = live, .output_map = marks}),
                    Contains("the activity map of the output has 2 bytes; batch 1 needs 0"));
  options = with_maps();
  options.input_map.reset();
  HostKernel marker(kernel_with_maps(kMark), "k", form_of_row_kernel(options));
  CHECK_NOTHROW(marker.run({.batch = 1, .input = input, .output = output, .output_map = marks}));
  CHECK(marks == std::vector<std::uint8_t>{1, 1});
}

TEST_CASE("activity: code and form must agree on the parameters") {
  CHECK_THAT(refusal_of(kernel_with_maps("")),
             Contains("does not have the parameters (input, output, residual, partials, counters, batch)"));
  CHECK_THAT(refusal_of(assemble_kernel("  ret void"), with_maps()),
             Contains("(input, output, residual, partials, counters, input_map, output_map, batch)"));
  const std::string behind = assemble_module(
      "define void @k(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, i32 %f, ptr %g, ptr %h) {\n  ret void\n}\n");
  CHECK_THAT(refusal_of(behind, with_maps()),
             Contains("(input, output, residual, partials, counters, input_map, output_map, batch)"));
  RunOptions options = with_maps();
  options.input_map->cols = 0;
  CHECK_THAT(refusal_of(kernel_with_maps(""), options),
             Contains("the tensor 'input_map'") && Contains("cell columns is 0"));
  options = with_maps();
  options.output_map->cols = kCols;
  CHECK_THAT(refusal_of(kernel_with_maps(""), options),
             Contains("the tensor 'output_map' has cells of 1x1x8, which are not the kernel's tiles"));
}

// ---- bits of shared memory
namespace {

const std::string kClear = R"(
  call void @burin_dev_shared_store_word(i32 0, i32 0, i32 0)
  call void @burin_dev_barrier()
)";
// Thread 0 alone clears: several may not.
const std::string kClearByOne = R"(
  br i1 %zero, label %clear, label %cleared
clear:
  call void @burin_dev_shared_store_word(i32 0, i32 0, i32 0)
  br label %cleared
cleared:
)";
const std::string kBarrier = "  call void @burin_dev_barrier()\n";
const std::string kSetOwn = "  %bit = shl i32 1, %t\n  call void @burin_dev_shared_or(i32 0, i32 0, i32 %bit)\n";
const std::string kMarkWord =
    "  %w = call i32 @burin_dev_shared_load_word(i32 0, i32 0)\n"
    "  call void @burin_dev_map_store_if(i32 %leads, ptr %marks, i64 %cell, i32 %w)\n";

}  // namespace

TEST_CASE("activity: threads set bits of a word together") {
  const MapRun run = run_with_maps(kClearByOne + kBarrier + kSetOwn + kBarrier + kMarkWord);
  CHECK(run.fault.empty());
  CHECK(run.marks == std::vector<std::uint8_t>{15, 15});
}

TEST_CASE("activity: bits of a word without a barrier before or behind") {
  CHECK_THAT(run_with_maps(kSetOwn + kMark).fault,
             Contains("sets bits of shared memory at byte 0, which no thread of the block has written"));
  CHECK_THAT(run_with_maps(kClearByOne + kSetOwn + kMark).fault,
             Contains("race on shared memory at byte 0: set bits of it"));
  CHECK_THAT(
      run_with_maps(kClearByOne + kBarrier + kSetOwn + kMarkWord).fault,
      Contains("race on shared memory at byte 0: load by thread") && Contains("of what a thread that set bits wrote"));
  CHECK_THAT(run_with_maps(kClearByOne + kBarrier + "  %w0 = call i32 @burin_dev_shared_load_word(i32 0, i32 0)\n" +
                           kSetOwn + kMark)
                 .fault,
             Contains("race on shared memory at byte 0"));
  CHECK_THAT(run_with_maps(kClear + kMark).fault, Contains("race on shared memory at byte 0: store to it"));
}

TEST_CASE("activity: a warp sets bits as one") {
  const std::string body = kClearByOne + kBarrier + R"(
  br i1 %zero, label %alone, label %others
alone:
  call void @burin_dev_shared_or(i32 0, i32 0, i32 1)
  br label %others
others:
)" + kBarrier + kMark;
  CHECK_THAT(run_with_maps(body).fault,
             Contains("divergence: does not set the same words' bits as thread 0 of its warp"));
}
