// Kernels that are right: the executor computes what they say.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <set>

#include "compiler/host/block_schedule.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using namespace burin_test;

namespace {

constexpr const char* kStagedKernel = R"(
  call void @burin_dev_copy_async(i32 %t4, i32 16, ptr %in, i64 %off, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 0)
  call void @burin_dev_barrier()
  %neighbour = xor i32 %t4, 4
  %x = call float @burin_dev_shared_load(i32 %neighbour, i32 16)
  %v = call float @llvm.fma.f32(float %x, float 2.0, float 1.0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void
)";

// Two slices; slice y contributes (y + 1) * input. The last to arrive adds both in their order.
constexpr const char* kReducingKernel = R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %factor = uitofp i32 %y to float
  %factor1 = fadd float %factor, 1.0
  %mine = fmul float %x, %factor1
  %row = shl i32 %b, 1
  %slice = add i32 %row, %y
  %bytes = shl i32 %slice, 4
  %word = add i32 %bytes, %t4
  %word64 = zext i32 %word to i64
  call void @burin_dev_scratch_store(ptr %par, i64 %word64, float %mine)
  call void @burin_dev_fence()
  call void @burin_dev_barrier()
  %counter = getelementptr i32, ptr %cnt, i32 %b
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %count, label %share
count:
  %old = call i32 @burin_dev_count_arrival(ptr %counter, i32 1)
  br label %share
share:
  %order = phi i32 [ 0, %entry ], [ %old, %count ]
  %place = call i32 @burin_dev_broadcast(i32 %order)
  %last = icmp eq i32 %place, 1
  br i1 %last, label %add, label %leave
leave:
  call void @burin_dev_exit()
  unreachable
add:
  %base = shl i32 %row, 4
  %first0 = add i32 %base, %t4
  %second0 = add i32 %first0, 16
  %first64 = zext i32 %first0 to i64
  %second64 = zext i32 %second0 to i64
  %p0 = call float @burin_dev_scratch_load(ptr %par, i64 %first64)
  %p1 = call float @burin_dev_scratch_load(ptr %par, i64 %second64)
  %sum = fadd float %p0, %p1
  call void @burin_dev_global_store(ptr %out, i64 %off, float %sum)
  call void @burin_dev_exit()
  unreachable
)";

burin::LaunchGeometry reducing_launch() {
  burin::LaunchGeometry launch = row_launch();
  launch.slices = 2;
  launch.workspace_bytes_per_tile = 2 * kThreads * 4;
  launch.counters_per_tile = 1;
  return launch;
}

}  // namespace

TEST_CASE("staged kernel exchanges values through shared memory") {
  const Run run = run_kernel(kStagedKernel);
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i)
    CHECK(run.output[static_cast<std::size_t>(i)] == 2 * static_cast<float>((i ^ 1) + 1) + 1);
}

TEST_CASE("a batch of odd size runs every image") {
  const Run run = run_kernel(kStagedKernel, {.batch = 37});
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols * 37; ++i) {
    CHECK(run.output[static_cast<std::size_t>(i)] == 2 * static_cast<float>((i ^ 1) + 1) + 1);
  }
}

TEST_CASE("a kernel runs many times") {
  burin::HostKernel kernel(assemble_kernel(kStagedKernel), "k", form_of_row_kernel());
  const std::vector<float> input = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> first(kCols), second(kCols);
  kernel.run({1, input, first, {}});
  burin::HostKernel moved = std::move(kernel);
  moved.run({1, input, second, {}});
  CHECK(first == second);
  CHECK(first[0] == 5);
}

TEST_CASE("a copy that is not valid stages zero and reads nothing") {
  const Run run = run_kernel(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr null, i64 -4, i32 0)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 0)
  %x = call float @burin_dev_shared_load(i32 %t4, i32 0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %x)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, 0.0F));
}

TEST_CASE("waiting for all but one batch makes the older batch readable") {
  const Run run = run_kernel(R"(
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 %off, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_async(i32 %t4, i32 16, ptr %in, i64 0, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_copy_wait(i32 1)
  %old = call float @burin_dev_shared_load(i32 %t4, i32 0)
  call void @burin_dev_copy_wait(i32 0)
  %new = call float @burin_dev_shared_load(i32 %t4, i32 16)
  %sum = fadd float %old, %new
  call void @burin_dev_global_store(ptr %out, i64 %off, float %sum)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("a shared word is used again after a barrier") {
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %x)
  call void @burin_dev_barrier()
  %neighbour = xor i32 %t4, 12
  %a = call float @burin_dev_shared_load(i32 %neighbour, i32 0)
  call void @burin_dev_barrier()
  %twice = fadd float %a, %a
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %twice)
  call void @burin_dev_barrier()
  %c = call float @burin_dev_shared_load(i32 %neighbour, i32 0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %c)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
}

TEST_CASE("the last block to arrive adds the partial sums") {
  for (const int batch : {1, 64}) {
    const Run run = run_kernel(kReducingKernel, {.launch = reducing_launch(), .batch = batch});
    REQUIRE(run.fault.empty());
    for (std::size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == 3 * static_cast<float>(i + 1));
  }
}

TEST_CASE("results do not depend on how blocks are interleaved") {
  const Run first = run_kernel(kReducingKernel, {.launch = reducing_launch(), .batch = 50});
  for (int repeat = 0; repeat < 10; ++repeat) {
    CHECK(run_kernel(kReducingKernel, {.launch = reducing_launch(), .batch = 50}).output == first.output);
  }
}

TEST_CASE("every split runs the code of the one that is last") {
  // One tile and two splits: in one launch only one of them would add the sums.
  RunOptions options{.launch = reducing_launch()};
  options.shape.in_w = kThreads;
  options.launch.tiles_per_image = 1;
  const std::string right = kReducingKernel;
  const std::size_t add = right.find("add:\n") + 5;
  for (const char* split : {"0", "1"}) {
    const std::string branch =
        std::string("  %wrong = icmp eq i32 %y, ") + split + "\n  br i1 %wrong, label %fault, label %fine\n";
    const Run run =
        run_kernel(right.substr(0, add) + branch + "fault:\n  unreachable\nfine:\n" + right.substr(add), options);
    CHECK_THAT(run.fault, burin_test::Contains(std::string("block (0, ") + split + "), thread 0: reached code"));
  }
  CHECK(run_kernel(right, options).fault.empty());
}

TEST_CASE("a result that depends on which split is last is a fault") {
  RunOptions options{.launch = reducing_launch()};
  options.shape.in_w = kThreads;
  options.launch.tiles_per_image = 1;
  std::string wrong = kReducingKernel;
  const std::string sum = "%sum = fadd float %p0, %p1";
  wrong.replace(wrong.find(sum), sum.size(), "%sum = fadd float %p0, %factor");
  CHECK_THAT(run_kernel(wrong, options).fault,
             burin_test::Contains("output element 0 depends on which split of its group arrives last"));
}

TEST_CASE("the schedule runs every block once in each pass, and lets every split be last") {
  for (const int tiles : {1, 2, 3, 7, 12}) {
    for (const int splits : {1, 2, 5}) {
      constexpr int kGroups = 3;
      burin::LaunchGeometry launch;
      launch.slices = kGroups * splits;
      launch.counters_per_tile = splits > 1 ? kGroups : 0;
      const burin::BlockSchedule schedule(launch, tiles);
      std::set<std::uint32_t> been_last;  // slices
      for (std::int64_t pass = 0; pass < schedule.passes(); ++pass) {
        std::set<std::uint32_t> blocks;
        for (int phase = 0; phase < schedule.phases(); ++phase) {
          for (std::uint64_t position = 0; position < schedule.turns(); ++position) {
            const auto block = schedule.block(pass, phase, position);
            if (!block) continue;
            CHECK(blocks.insert(*block).second);
            if (phase == 1) been_last.insert(*block / static_cast<std::uint32_t>(tiles));
          }
        }
        CHECK(blocks.size() == static_cast<std::size_t>(tiles * launch.slices));
      }
      if (splits > 1) CHECK(been_last.size() == static_cast<std::size_t>(launch.slices));
    }
  }
}

TEST_CASE("a broadcast gives every thread the value of thread 0") {
  const Run run = run_kernel(R"(
  %mine = add i32 %t, 7
  %a = call i32 @burin_dev_broadcast(i32 %mine)
  %next = add i32 %mine, 1
  %c = call i32 @burin_dev_broadcast(i32 %next)
  %sum = add i32 %a, %c
  %v = uitofp i32 %sum to float
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, 15.0F));
}

TEST_CASE("the kernel gets its parameters in their order") {
  RunOptions options{.batch = 3};
  options.shape.epilogue.residual = true;
  options.launch.workspace_bytes_per_tile = kThreads * 4;
  options.launch.counters_per_tile = 1;
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %r = call float @burin_dev_global_load(ptr %res, i64 %off)
  %n = sitofp i32 %batch to float
  call void @burin_dev_scratch_store(ptr %par, i64 %off, float %n)
  %p = call float @burin_dev_scratch_load(ptr %par, i64 %off)
  call void @burin_dev_fence()
  call void @burin_dev_barrier()
  %leader = icmp eq i32 %t, 0
  br i1 %leader, label %count, label %finish
count:
  %counter = getelementptr i32, ptr %cnt, i32 %b
  %old = call i32 @burin_dev_count_arrival(ptr %counter, i32 0)
  br label %finish
finish:
  %a = fadd float %x, %r
  %c = fadd float %a, %p
  call void @burin_dev_global_store(ptr %out, i64 %off, float %c)
  ret void)",
                             options);
  REQUIRE(run.fault.empty());
  for (std::size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == 101 * static_cast<float>(i + 1) + 3);
}

TEST_CASE("multiply-adds are fused") {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24; a product that is rounded on its own gives 0. The factor is computed, so that
  // nothing is folded.
  const Run run = run_kernel(R"(
  %small = uitofp i64 %off to float
  %zero = fmul float %small, 0.0
  %x = fadd float %zero, 0x3FF0010000000000
  %v = call float @llvm.fma.f32(float %x, float %x, float 0xBFF0020000000000)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)");
  REQUIRE(run.fault.empty());
  CHECK(run.output == std::vector<float>(kCols, std::ldexp(1.0F, -24)));
}

TEST_CASE("exponential and reciprocal") {
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %e = call float @burin_dev_exp(float %x)
  %r = call float @burin_dev_reciprocal(float %e)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %r)
  ret void)");
  REQUIRE(run.fault.empty());
  for (std::size_t i = 0; i < run.output.size(); ++i) {
    CHECK(run.output[i] == 1.0F / std::exp(static_cast<float>(i + 1)));
  }
}

TEST_CASE("notes, helpers, local variables and loops are understood") {
  const Run run = run_bitcode(assemble_kernel(R"(
  call void @burin_dev_note_slice(i32 0, i32 0)
  %pair = alloca [2 x float]
  %second = getelementptr [2 x float], ptr %pair, i64 0, i64 1
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @fill(ptr %pair, float %x)
  %a = load float, ptr %pair
  %c = load float, ptr %second
  %start = fadd float %a, %c
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ %start, %entry ], [ %more, %loop ]
  call void @burin_dev_note_stage(i32 %i)
  call void @burin_dev_barrier()
  %more = fadd float %sum, 1.0
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, 10
  br i1 %again, label %loop, label %done
done:
  call void @burin_dev_global_store(ptr %out, i64 %off, float %more)
  ret void)",
                                              R"(
define internal void @fill(ptr %pair, float %x) noinline {
  %second = getelementptr float, ptr %pair, i64 1
  store float %x, ptr %pair
  store float 5.0, ptr %second
  ret void
})"));
  REQUIRE(run.fault.empty());
  for (std::size_t i = 0; i < run.output.size(); ++i) CHECK(run.output[i] == static_cast<float>(i + 1) + 15);
}

TEST_CASE("long straight-line code gives the sums of its multiply-adds, bit for bit") {
  constexpr int kSums = 40, kTaps = 20000, kLoadEvery = 4, kBarrierEvery = 1000;
  std::mt19937 random(7);
  std::array<std::string, kSums> names;
  std::array<std::array<float, kCols>, kSums> expected{};
  for (int k = 0; k < kSums; ++k) names[static_cast<std::size_t>(k)] = "0.0";
  std::string body = R"(
  %x0 = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %x0)
  call void @burin_dev_barrier()
)";
  std::string activation;
  unsigned lane = 0;
  for (int i = 0; i < kTaps; ++i) {
    if (i % kBarrierEvery == 0) body += "  call void @burin_dev_barrier()\n";
    if (i % kLoadEvery == 0) {
      lane = random() % kThreads;
      activation = fmt::format("%a{}", i);
      body += fmt::format("  {} = call float @burin_dev_shared_load(i32 0, i32 {})\n", activation, lane * 4);
    }
    const auto k = static_cast<std::size_t>(random() % kSums);
    const auto weight = static_cast<float>(static_cast<int>(random() % 2000) - 1000) / 1024;
    body += fmt::format("  %f{} = call float @llvm.fma.f32(float {}, float {:.12e}, float {})\n", i, activation,
                        static_cast<double>(weight), names[k]);
    names[k] = fmt::format("%f{}", i);
    for (unsigned pixel = 0; pixel < kCols; ++pixel) {
      const auto x = static_cast<float>(pixel / kThreads * kThreads + lane + 1);
      expected[k][pixel] = std::fma(x, weight, expected[k][pixel]);
    }
  }
  RunOptions options;
  options.shape.out_channels = kSums;
  for (int k = 0; k < kSums; ++k) {
    body += fmt::format(
        "  %o{0} = add i64 %off, {1}\n  call void @burin_dev_global_store(ptr %out, i64 %o{0}, float {2})\n", k,
        k * kCols * 4, names[static_cast<std::size_t>(k)]);
  }
  const Run run = run_kernel(body + "  ret void", options);
  REQUIRE(run.fault.empty());
  for (std::size_t k = 0; k < kSums; ++k) {
    for (std::size_t pixel = 0; pixel < kCols; ++pixel) {
      INFO("sum " << k << ", pixel " << pixel);
      REQUIRE(run.output[k * kCols + pixel] == expected[k][pixel]);
    }
  }
}

TEST_CASE("a block of 1024 threads") {
  RunOptions options;
  options.shape.in_w = 1024;
  options.launch.threads = 1024;
  options.launch.tiles_per_image = 1;
  options.launch.shared_bytes = 4096;
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %x)
  call void @burin_dev_barrier()
  %mirror = sub i32 4092, %t4
  %v = call float @burin_dev_shared_load(i32 %mirror, i32 0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  ret void)",
                             options);
  REQUIRE(run.fault.empty());
  for (std::size_t i = 0; i < 1024; ++i) REQUIRE(run.output[i] == static_cast<float>(1024 - i));
}

TEST_CASE("tensors of the wrong size are refused") {
  burin::HostKernel kernel(assemble_kernel(kStagedKernel), "k", form_of_row_kernel());
  std::vector<float> input(kCols), output(kCols), few(kCols - 1);
  CHECK_THROWS_WITH(kernel.run({1, few, output, {}}),
                    burin_test::Contains("tensor 'input' has 7 words; batch 1 needs 8 in nchw"));
  CHECK_THROWS_WITH(kernel.run({1, input, few, {}}),
                    burin_test::Contains("tensor 'output' has 7 words; batch 1 needs 8 in nchw"));
  CHECK_THROWS_WITH(kernel.run({1, input, output, input}),
                    burin_test::Contains("tensor 'residual' has 8 words; batch 1 needs 0"));
  CHECK_THROWS_WITH(kernel.run({0, input, output, {}}), burin_test::Contains("batch 0"));
}
