// The rules of a Program, each broken once, and its two text forms.
#include "ir/program.h"

#include "test/catch.h"
#include "test/ir/small_program.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

// The only fault of the plan after the change.
template <typename Change>
std::string fault(Change change) {
  Program plan = small_program();
  change(plan);
  const std::vector<std::string> faults = verify(plan);
  return faults.size() == 1 ? faults[0] : std::to_string(faults.size()) + " faults" + (faults.empty() ? "" : faults[0]);
}

}  // namespace

TEST_CASE("network_plan: a legal plan has no faults") { CHECK(verify(small_program()).empty()); }

TEST_CASE("network_plan: buffers") {
  CHECK_THAT(fault([](Program& plan) { plan.batch = 0; }), Contains("the batch is 0; allowed are 1 to"));
  CHECK_THAT(fault([](Program& plan) { plan.arena_bytes = -1; }), Contains("the arena has -1 bytes"));
  CHECK_THAT(fault([](Program& plan) { plan.arena_bytes = 1000; }),
             Contains("buffer 3 (concat) takes 512 bytes from byte 512 on, beyond the 1000 of the arena"));
  CHECK_THAT(fault([](Program& plan) {
               plan.buffers[3].offset = 516;
               plan.arena_bytes = 2048;
             }),
             Contains("begins at byte 516 of the arena; buffers begin at multiples of 256"));
  CHECK_THAT(fault([](Program& plan) { plan.buffers[2].shape = {4, 4, 5}; }),
             Contains("buffer 2 (a) has 512 bytes, which are not the 160 elements of its shape"));
  CHECK_THAT(fault([](Program& plan) { plan.buffers[0].argument = 1; }),
             Contains("the buffers of the network's inputs are not one for each of 0 to 1"));
  CHECK_THAT(fault([](Program& plan) { plan.buffers[1].layout = TensorLayout::nchw4; }),
             Contains("buffer 1 (out) is the caller's memory, which is f32 in nchw"));
  CHECK_THAT(fault([](Program& plan) { plan.naive_bytes = 1000; }), Contains("arena's buffers alone are 1536"));
  CHECK_THAT(fault([](Program& plan) { plan.buffers[2].last = 3; }),
             Contains("buffer 2 (a) lives from step 0 to 3, but is used from 0 to 2"));
}

TEST_CASE("network_plan: places") {
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.buffer = 7; }),
             Contains("step 1 (left) writes buffer 7; there are 5"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.image_stride = 128; }),
             Contains("step 1 (left) writes images 128 bytes apart, but those of buffer 3 (concat) are 256"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.offset = 224; }),
             Contains("which do not lie within an image of buffer 3 (concat)"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes = {3, 0, 256, 32, 1 << 30, 1 << 30}; }),
             Contains("which do not lie within an image of buffer 3 (concat)"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.run_bytes = 63; }), Contains("parts of words"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[4].writes.buffer = 0; }),
             Contains("step 4 (last) writes to an input of the network"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[4].reads[0].run_bytes = 128; }),
             Contains("step 4 (last) copies 1 runs of 128 bytes to 1 of 256"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[0].reads.clear(); }),
             Contains("step 0 (a) reads 0 tensors; one or two are allowed"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[4].op = 3; }), Contains("copies alone have none"));
}

TEST_CASE("network_plan: order") {
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].after = {1}; }),
             Contains("step 1 (left) waits for step 1; steps wait for earlier ones"));
  CHECK_THAT(fault([](Program& plan) { plan.steps[3].after = {2, 1}; }), Contains("in ascending order"));
  // The step no longer waits for what it reads; nor may what it reads have been written over by then.
  Program plan = small_program();
  plan.steps[3].after = {2};
  std::vector<std::string> faults = verify(plan);
  REQUIRE(faults.size() == 3);
  CHECK_THAT(faults[0], Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 3 (last) reads; neither"));
  CHECK_THAT(faults[1], Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for has"));
  CHECK_THAT(faults[2], Contains("buffer 2 (a) and buffer 4 (last) share bytes of the arena"));
}

TEST_CASE("network_plan: what is read and what is an output has been written") {
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.run_bytes = 60; }),
             Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for has written"));
  CHECK_THAT(fault([](Program& plan) {
               plan.steps[4].writes.run_bytes = 128;
               plan.steps[4].reads[0].run_bytes = 128;
             }),
             Contains("buffer 1 (out) is an output of the network that is not wholly written"));
}

TEST_CASE("network_plan: two steps that may run together write different bytes") {
  CHECK_THAT(fault([](Program& plan) { plan.steps[1].writes.run_bytes = 68; }),
             Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 2 (right) writes as well"));
}

TEST_CASE("network_plan: buffers that live at the same time share nothing") {
  CHECK_THAT(fault([](Program& plan) {
               plan.buffers[3].offset = 256;
               plan.buffers[4].offset = 1024;
               plan.arena_bytes = 2048;
             }),
             Contains("buffer 2 (a) and buffer 3 (concat) share bytes of the arena"));
}

TEST_CASE("network_plan: runs that fill each other's gaps") {
  Program plan = small_program();
  plan.steps[1].writes = {3, 0, 256, 16, 4, 64};
  plan.steps[2].writes = {3, 16, 256, 48, 4, 64};
  CHECK(verify(plan).empty());
  plan.steps[2].writes.run_bytes = 44;
  REQUIRE(verify(plan).size() == 1);
  CHECK_THAT(verify(plan)[0], Contains("step 3 (last) reads bytes of buffer 3 (concat) that no step it waits for"));
  plan.steps[2].writes = {3, 12, 256, 52, 4, 64};
  CHECK_THAT(verify(plan).at(0),
             Contains("step 1 (left) writes bytes of buffer 3 (concat) that step 2 (right) writes"));
}

TEST_CASE("network_plan: text that is parsed gives the same plan") {
  Program plan = small_program();
  plan.steps[1].name = "a name, with blanks: 100 % # \xc3\xa4\n";
  plan.steps[1].tensor = "";
  plan.steps[1].writes = {3, 0, 256, 16, 4, 64};
  plan.steps[2].reads.push_back(plan.steps[2].reads[0]);
  CHECK(parse_program(to_text(plan)) == plan);
}

TEST_CASE("network_plan: text with a fault is refused, and the line is named") {
  const std::string text = to_text(small_program());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return error_of([&] { parse_program(changed); });
  };
  CHECK(with("batch: 2", "batch: two").starts_with("network plan, line 1:"));
  CHECK_THAT(with("arena_bytes", "arena"), Contains("there is no line 'arena_bytes: ...'"));
  CHECK_THAT(with("in arena", "in cellar"), Contains("line 6: expected arena, input or output, got 'cellar'"));
  CHECK_THAT(with("layout nchw", "layout chw"), Contains("'chw' is not known here"));
  CHECK_THAT(with("buffer 1", "buffer 2"), Contains("'buffer 2': number 1 is expected here"));
  CHECK_THAT(with("tensor in", "tensor i%6"), Contains("a % is followed by two digits"));
  CHECK_THAT(with("reads 0+0,256", "reads 0,256"), Contains("expected BUFFER+OFFSET,IMAGE_STRIDE"));
  CHECK_THAT(with("kind pool", "kin pool"), Contains("expected 'kind', got 'kin'"));
  CHECK_THAT(with("after none ", ""), Contains("expected 'kind VALUE operator VALUE"));
}

TEST_CASE("network_plan: the table names steps, places and the arena") {
  const std::string text = print(small_program());
  CHECK_THAT(text, Contains("step  operator  kind         reads    writes") && Contains("b3[64..256 of 256]"));
  CHECK_THAT(text, Contains("input 0") && Contains("the caller's") && Contains("4x4x4"));
  CHECK_THAT(text, Contains("batch 2: an arena of 1024 bytes; a buffer for each tensor would take 2048 (50 %)"));
  Program damaged = small_program();
  damaged.steps[0].reads[0].buffer = 99;
  CHECK_THAT(print(damaged), Contains("?99"));
}
