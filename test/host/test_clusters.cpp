// Blocks that run together: what they may load from each other, and in which ways a kernel gets it wrong.
#include <fmt/format.h>

#include <array>
#include <set>

#include "compiler/host/block_schedule.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/host/kernel_text.h"

using burin_test::Contains;
using namespace burin_test;

namespace {

std::string annotations(int x, int y, int z) {
  return fmt::format(R"(
!nvvm.annotations = !{{!0, !1, !2}}
!0 = !{{ptr @k, !"cluster_dim_x", i32 {}}}
!1 = !{{ptr @k, !"cluster_dim_y", i32 {}}}
!2 = !{{ptr @k, !"cluster_dim_z", i32 {}}}
)",
                     x, y, z);
}

RunOptions cluster_options(int blocks) {
  RunOptions options;
  options.launch.slices = blocks;
  return options;
}

Run run_clusters(const std::string& body, int blocks = 2) {
  return run_bitcode(assemble_kernel(body, annotations(1, blocks, 1)), cluster_options(blocks));
}

std::string cluster_fault(const std::string& body, int blocks = 2) {
  const std::string fault = run_clusters(body, blocks).fault;
  CHECK_THAT(fault, burin_test::StartsWith("kernel 'k', block ("));
  return fault;
}

// Ends with a branch on the block's rank to `leading` or `others`.
const std::string kByRank = "  %is_first = icmp eq i32 %y, 0\n  br i1 %is_first, label %leading, label %others\n";

// Every thread stores (y + 1) * input at %t4.
const std::string kStoreOwn = R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  %rank = uitofp i32 %y to float
  %factor = fadd float %rank, 1.0
  %own = fmul float %x, %factor
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %own)
)";

}  // namespace

TEST_CASE("clusters: the blocks of a cluster add up what each has") {
  // Of four blocks, each makes the output of one thread: the sum over the cluster, 1 + 2 + 3 + 4 times the input.
  const Run run = run_clusters(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %mine = icmp eq i32 %t, %y
  br i1 %mine, label %sum, label %leave
sum:
  %a = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 0)
  %b1 = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 1)
  %c = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 2)
  %d = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 3)
  %ab = fadd float %a, %b1
  %cd = fadd float %c, %d
  %all = fadd float %ab, %cd
  call void @burin_dev_global_store(ptr %out, i64 %off, float %all)
  br label %leave
leave:
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)",
                               4);
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == 10 * static_cast<float>(i + 1));
}

TEST_CASE("clusters: shared memory is used again after the next cluster barrier") {
  const Run run = run_clusters(kStoreOwn + R"(
  %other = xor i32 %y, 1
  call void @burin_dev_cluster_barrier()
  %first_load = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  call void @burin_dev_cluster_barrier()
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %first_load)
  call void @burin_dev_cluster_barrier()
  %back = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  %is_first = icmp eq i32 %y, 0
  br i1 %is_first, label %store, label %leave
store:
  call void @burin_dev_global_store(ptr %out, i64 %off, float %back)
  br label %leave
leave:
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)");
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>(i + 1));
}

TEST_CASE("clusters: a cluster load from the own block sees what a block barrier orders") {
  const Run run = run_kernel(R"(
  %x = call float @burin_dev_global_load(ptr %in, i64 %off)
  call void @burin_dev_shared_store(i32 %t4, i32 0, float %x)
  call void @burin_dev_cluster_barrier()
  %next = xor i32 %t4, 4
  %v = call float @burin_dev_cluster_load(i32 %next, i32 0, i32 0)
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)");
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == static_cast<float>((i ^ 1) + 1));
}

TEST_CASE("clusters: a block that skips the cluster barrier") {
  const std::string fault = cluster_fault(kByRank + R"(
leading:
  call void @burin_dev_cluster_barrier()
  ret void
others:
  call void @burin_dev_barrier()
  ret void)");
  CHECK_THAT(fault, Contains("divergence: waits at a cluster barrier that block ("));
  CHECK_THAT(fault, Contains(", 1), which has ended, never reaches"));
  CHECK_THAT(cluster_fault(kByRank + R"(
leading:
  call void @burin_dev_barrier()
  ret void
others:
  call void @burin_dev_cluster_barrier()
  ret void)"),
             Contains(", 1), thread 0: divergence: waits at a cluster barrier that block ("));
}

TEST_CASE("clusters: a block that ends before its first barrier is not waited for") {
  const Run run = run_clusters(R"(
  %absent = icmp eq i32 %y, 2
  br i1 %absent, label %end, label %rest
rest:
)" + kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  %is_first = icmp eq i32 %y, 0
  br i1 %is_first, label %store, label %leave
store:
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  br label %leave
leave:
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void
end:
  ret void)",
                               3);
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == 2 * static_cast<float>(i + 1));
}

TEST_CASE("clusters: several blocks in x, ranks count them first") {
  // Of two blocks in x and two in y, each takes what the block with its x and the other y has.
  RunOptions options = cluster_options(2);
  options.launch.cluster_tiles = 2;
  const Run run = run_bitcode(assemble_kernel(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %rank_of_block = call i32 @burin_dev_cluster_rank()
  %other = xor i32 %rank_of_block, 2
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  %is_first = icmp eq i32 %y, 0
  br i1 %is_first, label %store, label %leave
store:
  call void @burin_dev_global_store(ptr %out, i64 %off, float %v)
  br label %leave
leave:
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)",
                                              annotations(2, 2, 1)),
                              options);
  REQUIRE(run.fault.empty());
  for (int i = 0; i < kCols; ++i) CHECK(run.output[static_cast<std::size_t>(i)] == 2 * static_cast<float>(i + 1));
}

TEST_CASE("clusters: a thread that skips the cluster barrier") {
  CHECK_THAT(
      cluster_fault(R"(
  %is = icmp eq i32 %t, 2
  br i1 %is, label %end, label %meet
meet:
  call void @burin_dev_cluster_barrier()
  br label %end
end:
  ret void)"),
      Contains("thread 0: divergence: waits at a cluster barrier that thread 2, which has ended, never reaches"));
  CHECK_THAT(cluster_fault(R"(
  %is = icmp eq i32 %t, 3
  br i1 %is, label %other, label %meet
meet:
  call void @burin_dev_cluster_barrier()
  ret void
other:
  call void @burin_dev_barrier()
  ret void)"),
             Contains("thread 3: divergence: waits at a barrier while thread 0 waits at a cluster barrier"));
}

TEST_CASE("clusters: a cluster load out of range") {
  CHECK_THAT(
      cluster_fault(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 60, i32 4, i32 %other)
  ret void)"),
      Contains(
          "cluster load from block (0, 0): load from shared memory at byte 64, outside the 64 bytes of the block"));
  CHECK_THAT(cluster_fault(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %v = call float @burin_dev_cluster_load(i32 2, i32 0, i32 1)
  ret void)"),
             Contains("misaligned load from shared memory at byte 2"));
  CHECK_THAT(cluster_fault(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %v = call float @burin_dev_cluster_load(i32 0, i32 0, i32 2)
  ret void)"),
             Contains("cluster load from the block of rank 2, the cluster has 2"));
}

TEST_CASE("clusters: a load of a word that the other block never wrote") {
  CHECK_THAT(cluster_fault(R"(
  call void @burin_dev_cluster_barrier()
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  ret void)"),
             Contains("which no thread of the block has written"));
}

TEST_CASE("clusters: a load of what the other block wrote since the last cluster barrier") {
  // A barrier of the block orders nothing for others. Whichever block runs first, one of the two is late.
  for (const char* early : {"0", "1"}) {
    const std::string fault = cluster_fault(kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  call void @burin_dev_shared_store(i32 %t4, i32 16, float %own)
  call void @burin_dev_barrier()
  %is = icmp eq i32 %y, )" + early + R"(
  br i1 %is, label %load, label %leave
load:
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 16, i32 %other)
  br label %leave
leave:
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)");
    CHECK_THAT(fault, Contains("cluster load from block ("));
  }
  CHECK_THAT(cluster_fault(kByRank + R"(
leading:
  call void @burin_dev_copy_async(i32 %t4, i32 0, ptr %in, i64 %off, i32 1)
  call void @burin_dev_copy_commit()
  call void @burin_dev_cluster_barrier()
  call void @burin_dev_copy_wait(i32 0)
  call void @burin_dev_cluster_barrier()
  ret void
others:
  call void @burin_dev_cluster_barrier()
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 0)
  call void @burin_dev_cluster_barrier()
  ret void)"),
             Contains("of that block is copying, without a cluster barrier in between"));
}

TEST_CASE("clusters: a store to what the other block has loaded since the last cluster barrier") {
  // In both orders of the two: the load finds the store, or the store the load.
  const auto body = [](const char* writer) {
    return kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %is = icmp eq i32 %y, )" +
           writer + R"(
  br i1 %is, label %write, label %read
write:
  call void @burin_dev_barrier()
  call void @burin_dev_shared_store(i32 %t4, i32 0, float 2.0)
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void
read:
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  call void @burin_dev_barrier()
  call void @burin_dev_cluster_arrive()
  call void @burin_dev_cluster_meet()
  ret void)";
  };
  std::string faults;
  for (const char* writer : {"0", "1"}) {
    const std::string fault = cluster_fault(body(writer));
    CHECK_THAT(fault, Contains("race on shared memory at byte"));
    CHECK_THAT(fault, Contains("without a cluster barrier"));
    faults += fault;
  }
  CHECK_THAT(faults, Contains("after a load by another block of the cluster"));
  CHECK_THAT(faults, Contains("of that block wrote"));
}

TEST_CASE("clusters: a block that ends while another may still load from it") {
  const auto body = [](const char* reader) {
    return kStoreOwn + R"(
  call void @burin_dev_cluster_barrier()
  %is = icmp eq i32 %y, )" +
           reader + R"(
  br i1 %is, label %read, label %end
read:
  %other = xor i32 %y, 1
  %v = call float @burin_dev_cluster_load(i32 %t4, i32 0, i32 %other)
  br label %end
end:
  ret void)";
  };
  std::string faults;
  for (const char* reader : {"0", "1"}) faults += cluster_fault(body(reader));
  CHECK_THAT(faults, Contains("ends while its shared memory may still be on its way to another block of its cluster"));
  CHECK_THAT(faults, Contains("load from shared memory that ended with its block"));
}

TEST_CASE("clusters: sizes that no launch has") {
  for (const auto& [x, y, z] : {std::array{9, 1, 1}, {1, 9, 1}, {3, 3, 1}, {1, 2, 2}, {1, 0, 1}, {0, 2, 1}}) {
    CHECK_THAT(
        refusal_of(assemble_kernel("  ret void", annotations(x, y, z)), cluster_options(18)),
        Contains(fmt::format("kernel 'k' has clusters of {}x{}x{} blocks; allowed are up to 8 in x and y", x, y, z)));
  }
  CHECK_THAT(refusal_of(assemble_kernel("  ret void", annotations(2, 1, 1)), cluster_options(6)),
             Contains("kernel 'k': its launch has cluster_tiles = 1; its clusters have 2 blocks in x"));
  CHECK_THAT(refusal_of(assemble_kernel("  ret void", annotations(1, 4, 1)), cluster_options(6)),
             Contains("kernel 'k': its launch has slices = 6; they make no clusters of 4 blocks"));
}

TEST_CASE("clusters: the schedule names the first block of each cluster once") {
  for (const std::int64_t tiles : {1, 3, 8}) {
    for (const int groups : {1, 5}) {
      for (const auto& [x, y] : {std::array{1, 2}, {1, 8}, {2, 1}, {2, 3}}) {
        burin::LaunchGeometry launch = row_launch();
        launch.slices = groups * y;
        const std::int64_t width = tiles * x;
        const burin::BlockSchedule schedule(launch, width, {x, y});
        std::set<std::uint32_t> seen, expected;
        for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) seen.insert(schedule.block(0, 0, turn).value());
        for (int group = 0; group < groups; ++group) {
          for (std::int64_t tile = 0; tile < width; tile += x) {
            expected.insert(static_cast<std::uint32_t>(tile + group * y * width));
          }
        }
        CHECK((seen == expected));
        CHECK(schedule.turns() == expected.size());
        CHECK(schedule.phases() == 1);
        CHECK(schedule.passes() == 1);
      }
    }
  }
}
