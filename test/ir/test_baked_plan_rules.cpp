// Every rule of verify(BakedPlan), broken once.
#include <functional>
#include <limits>
#include "test/catch.h"

#include "ir/baked_plan.h"
#include "test/ir/random_layers.h"

using namespace burin;
using burin_test::any_contains;
using burin_test::small_plan;
using burin_test::small_shape;

namespace {

struct BrokenRule {
  const char* name;
  std::function<void(BakedPlan&)> change;
  const char* fault;  // part of the sentence that must be among the faults
};

const BrokenRule kBrokenRules[] = {
    {"template name", [](BakedPlan& p) { p.template_name = "Conv;"; }, "template is 'Conv;'"},
    {"batch", [](BakedPlan& p) { p.batch = 0; }, "batch is 0, allowed is 1 to 1048576"},
    {"barrier_every", [](BakedPlan& p) { p.barrier_every = -1; }, "barrier_every is -1"},
    {"halves of another layout",
     [](BakedPlan& p) { p = burin_test::small_half_plan(Precision::fp16), p.input_layout = TensorLayout::nchw; },
     "input_layout is nchw with fp16, it must be n2chw"},
    {"halves to another layout",
     [](BakedPlan& p) { p = burin_test::small_half_plan(Precision::bf16), p.output_layout = TensorLayout::nchw4; },
     "output_layout is nchw4 with bf16, it must be n2chw"},
    {"an output whose images overlap", [](BakedPlan& p) { p.output_image_words = 1; },
     "output_image_words is 1, allowed"},
    {"a slice in another layout than nchw",
     [](BakedPlan& p) { p.output_layout = TensorLayout::nchw4, p.output_image_words = 1 << 20; },
     "output_image_words is 1048576: a slice of a larger tensor lies in nchw or n2chw, not in nchw4"},
    {"a residual that the layer has not", [](BakedPlan& p) { p.residual_image_words = 1 << 20; },
     "residual_image_words is 1048576, but the layer has no such tensor"},
    {"pairs of images in fp32", [](BakedPlan& p) { p.output_layout = TensorLayout::n2chw; },
     "output_layout is n2chw with fp32, it must be nchw or nchw4"},
    {"factors that are rounded", [](BakedPlan& p) { p.precision = Precision::tf32; },
     "precision is tf32, and baked code rounds no factors: fp32 it can"},
    {"promotion without FP16 sums", [](BakedPlan& p) { p.promote_every = 16; },
     "promote_every is 16, with fp32 it must be 0"},
    {"promotion of too many terms",
     [](BakedPlan& p) { p = burin_test::small_half_plan(Precision::fp16x2), p.promote_every = 1025; },
     "promote_every is 1025, allowed is 0 to 1024 (kMaxPromoteEvery)"},
    {"registers of running sums and their promoted ones",
     [](BakedPlan& p) {
       p = burin_test::small_half_plan(Precision::fp16x2), p.promote_every = 16, p.max_registers = 57;
     },
     "max_registers is 57, the fullest group's 48 accumulators"},
    {"load_ahead", [](BakedPlan& p) { p.load_ahead = 0; }, "load_ahead is 0, allowed is 1 to 64"},
    {"load_together", [](BakedPlan& p) { p.load_together = 2; },
     "load_together is 2, allowed is 1 to 1: direct loads, of those that are ahead, can be kept together where no "
     "channels are skipped"},
    {"predicted_us", [](BakedPlan& p) { p.predicted_us = std::numeric_limits<double>::quiet_NaN(); },
     "predicted_us is nan"},
    {"tile images", [](BakedPlan& p) { p.tile.images = 0; }, "tile images is 0"},
    {"tile rows", [](BakedPlan& p) { p.tile.rows = 15; }, "tile rows is 15, allowed is 1 to 14"},
    {"tile columns", [](BakedPlan& p) { p.tile.cols = 15; }, "tile columns is 15, allowed is 1 to 14"},
    {"too many threads", [](BakedPlan& p) { p.threads = 1056; }, "threads is 1056, allowed is 32 to 1024"},
    {"threads in warps", [](BakedPlan& p) { p.threads = 400; }, "threads is 400, it must be a multiple of 32"},
    {"a thread per pixel", [](BakedPlan& p) { p.threads = 384; }, "the tile has 392 pixels (2x14x14) for 384 threads"},
    {"patch rows", [](BakedPlan& p) { p.shared.patch_rows = 17; }, "patch rows is 17, it must be 16"},
    {"patch columns", [](BakedPlan& p) { p.shared.patch_cols = 15; }, "patch columns is 15, it must be 16"},
    {"channels_per_row", [](BakedPlan& p) { p.shared.channels_per_row = 0; }, "channels_per_row is 0"},
    {"row_pitch", [](BakedPlan& p) { p.shared.row_pitch = 31; },
     "row_pitch is 31, it must be at least 32 (channels_per_row x patch columns): rows would overlap"},
    {"image_pitch", [](BakedPlan& p) { p.shared.image_pitch = 527; }, "image_pitch is 527, it must be at least 528"},
    {"channel_pitch", [](BakedPlan& p) { p.shared.channel_pitch = 1059; },
     "channel_pitch is 1059, it must be at least 1060"},
    {"no group", [](BakedPlan& p) { p.groups.clear(), p.slices.clear(); }, "there is no group"},
    {"empty group", [](BakedPlan& p) { p.groups[1].clear(); }, "group 1 is empty"},
    {"group capacity", [](BakedPlan& p) { p.groups[0].resize(129, 0); },
     "group 0 has 129 channels, allowed are 128 (kMaxGroupChannels)"},
    {"channel out of range", [](BakedPlan& p) { p.groups[0][3] = 32; }, "group 0 names output channel 32"},
    {"negative channel", [](BakedPlan& p) { p.groups[0][3] = -1; }, "group 0 names output channel -1"},
    {"channel twice", [](BakedPlan& p) { p.groups[0][3] = 1; }, "output channel 1 is in group 0 and in group 1"},
    {"channel missing", [](BakedPlan& p) { p.groups[0].pop_back(); },
     "1 output channel is in no group, the first is 30"},
    {"splits", [](BakedPlan& p) { p.splits = 0; }, "splits is 0"},
    {"too many slices", [](BakedPlan& p) { p.splits = 40000; }, "are 80000 slices, allowed are 65535 (kMaxSlices)"},
    {"number of slices", [](BakedPlan& p) { p.slices.pop_back(); }, "there are 3 slices, 2 groups x 2 splits need 4"},
    {"order of slices", [](BakedPlan& p) { std::swap(p.slices[0], p.slices[1]); },
     "slice 0 is (group 0, split 1), it must be (0, 0)"},
    {"input channel out of range", [](BakedPlan& p) { p.slices[2].channels[0] = 16; },
     "slice 1 0 names input channel 16, the layer has 0 to 15"},
    {"input channel in two splits", [](BakedPlan& p) { p.slices[1].channels[0] = 0; },
     "slice 0 1 names input channel 0, which its group already reads"},
    {"reduction missing", [](BakedPlan& p) { p.reduction = Reduction::none; },
     "reduction is none, with 2 splits it must be last_block"},
    {"reduction of one split",
     [](BakedPlan& p) {
       p.splits = 1, p.slices.erase(p.slices.begin() + 1), p.slices.pop_back(), p.slices[1].split = 0;
     },
     "reduction is last_block, with 1 split it must be none"},
    {"cluster of one split",
     [](BakedPlan& p) {
       p.splits = 1, p.slices.erase(p.slices.begin() + 1), p.slices.pop_back(), p.slices[1].split = 0;
       p.reduction = Reduction::cluster;
     },
     "reduction is cluster, with 1 split it must be none"},
    {"cluster of nine blocks",
     [](BakedPlan& p) {
       p.reduction = Reduction::cluster, p.splits = 9, p.slices.clear();
       for (int i = 0; i < 18; ++i) p.slices.push_back({i / 9, i % 9, {}});
     },
     "reduction is cluster with 9 splits, allowed are 8 (kMaxClusterBlocks)"},
    {"cluster where there are none", [](BakedPlan& p) { p.reduction = Reduction::cluster, p.arch = "sm_89"; },
     "reduction is cluster, but sm_89 has no clusters"},
    {"cluster's shared memory",
     [](BakedPlan& p) { p.reduction = Reduction::cluster, p.threads = 1024, p.groups[0].resize(60, 0); },
     "the partial sums of 1024 threads x 60 channels (the fullest group) take 245760 bytes"},
    {"cluster without a block", [](BakedPlan& p) { p.cluster.tiles = 0; },
     "cluster is 0x1, it must be at least 1x1: one block"},
    {"cluster of ten blocks", [](BakedPlan& p) { p.cluster.tiles = 10; },
     "cluster is 10x1, allowed are 8 blocks (kMaxClusterBlocks)"},
    {"cluster without the splits that are added in it", [](BakedPlan& p) { p.reduction = Reduction::cluster; },
     "cluster is 1x1, with reduction cluster and 2 splits it must hold 2 of them"},
    {"cluster with splits that are added elsewhere", [](BakedPlan& p) { p.cluster.splits = 2; },
     "cluster is 1x2, with reduction last_block and 2 splits it must hold 1 of them"},
    {"cluster of tiles where there are none", [](BakedPlan& p) { p.cluster.tiles = 2, p.arch = "sm_80"; },
     "clusters are of 2 blocks (2x1), but sm_80 has none"},
    {"stage_channels", [](BakedPlan& p) { p.stage_channels = 0; }, "stage_channels is 0"},
    {"buffers", [](BakedPlan& p) { p.buffers = 9; }, "buffers is 9, allowed is 1 to 8"},
    {"one buffer, two stages", [](BakedPlan& p) { p.buffers = 1; }, "buffers is 1, but slice 0 0 has 2 stages"},
    {"arch", [](BakedPlan& p) { p.arch = "sm_20"; }, "arch is 'sm_20', known are sm_75"},
    {"shared memory", [](BakedPlan& p) { p.shared.channel_pitch = 15000; },
     "2 buffers of 120000 bytes and 128 bytes of reserve need more shared memory than the 232448 bytes"},
    {"registers per thread", [](BakedPlan& p) { p.max_registers = 256; }, "max_registers is 256, allowed is 1 to 255"},
    {"registers per multiprocessor", [](BakedPlan& p) { p.max_registers = 129; },
     "threads is 416, with max_registers 129 a multiprocessor of sm_90 runs 384"},
    {"accumulators", [](BakedPlan& p) { p.max_registers = 25; }, "max_registers is 25, the fullest group's 16"},
};

// Whole planes of two images, two splits of two stages.
BakedPlan bulk_plan() {
  BakedPlan plan = small_plan();
  plan.staging = Staging::bulk;
  plan.shared = {.patch_rows = 14,
                 .patch_cols = 14,
                 .margin = 32,
                 .row_pitch = 14,
                 .image_pitch = 4 * 196 + 8,
                 .channel_pitch = 196};
  for (Slice& slice : plan.slices) {
    slice.channels.resize(8);
    for (int i = 0; i < 8; ++i) slice.channels[i] = 8 * slice.split + i;
  }
  return plan;
}

const BrokenRule kBrokenBulkRules[] = {
    {"columns", [](BakedPlan& p) { p.tile.cols = 13; }, "the tile has 13 of 14 columns: bulk copies bring whole rows"},
    {"rows of images", [](BakedPlan& p) { p.tile.rows = 13; },
     "the tile has 13 of 14 rows of 2 images: parts of several images lie apart"},
    {"patch rows", [](BakedPlan& p) { p.shared.patch_rows = 16; }, "patch rows is 16, it must be 14: the image's"},
    {"rows of a patch", [](BakedPlan& p) { p.tile = {1, 7, 14}; },
     "patch rows is 14, it must be 9: those that the tile's pixels read"},
    {"patch columns", [](BakedPlan& p) { p.shared.patch_cols = 16; }, "patch columns is 16, it must be 14"},
    {"channels_per_row", [](BakedPlan& p) { p.shared.channels_per_row = 2; }, "channels_per_row is 2, it must be 1"},
    {"row_pitch", [](BakedPlan& p) { p.shared.row_pitch = 16; }, "row_pitch is 16, it must be 14"},
    {"channel_pitch", [](BakedPlan& p) { p.shared.channel_pitch = 200; }, "channel_pitch is 200, it must be 196"},
    {"image_pitch", [](BakedPlan& p) { p.shared.image_pitch = 780; }, "image_pitch is 780, it must be at least 784"},
    {"image_pitch in quads", [](BakedPlan& p) { p.shared.image_pitch = 786; },
     "image_pitch is 786 words, it must be a multiple of 4: bulk copies move 16 bytes"},
    {"margin", [](BakedPlan& p) { p.shared.margin = 12; }, "margin is 12, it must be at least 15"},
    {"margin in quads", [](BakedPlan& p) { p.shared.margin = 33; }, "margin is 33 words, it must be a multiple of 4"},
    {"a row in quads", [](BakedPlan& p) { p.tile = {1, 7, 14}; }, "a row is 14 words, it must be a multiple of 4"},
    {"channels apart", [](BakedPlan& p) { p.slices[1].channels.erase(p.slices[1].channels.begin() + 1); },
     "slice 0 1 reads channel 10 after 8: with bulk staging they must follow each other"},
    {"channels in another order", [](BakedPlan& p) { std::swap(p.slices[1].channels[0], p.slices[1].channels[1]); },
     "slice 0 1 reads channel 8 after 9"},
    {"stages of nchw4", [](BakedPlan& p) { p.input_layout = TensorLayout::nchw4, p.stage_channels = 6; },
     "stage_channels is 6, with nchw4 it must be a multiple of 4"},
    {"slices of nchw4",
     [](BakedPlan& p) {
       p.input_layout = TensorLayout::nchw4, p.slices[1].channels.erase(p.slices[1].channels.begin());
     },
     "slice 0 1 begins with channel 9, with nchw4 it must be a multiple of 4"},
    {"arch", [](BakedPlan& p) { p.arch = "sm_80"; }, "staging is bulk on sm_80: bulk copies begin with sm_90"},
};

void check_named(BakedPlan plan, const ConvShape& shape, const BrokenRule& rule) {
  rule.change(plan);
  const std::vector<std::string> faults = verify(plan, shape);
  INFO(rule.name << ", faults:");
  for (const std::string& fault : faults) UNSCOPED_INFO("  " << fault);
  REQUIRE(!faults.empty());
  CHECK(any_contains(faults, rule.fault));
}

}  // namespace

TEST_CASE("baked_plan rules: the plan that the others break is legal") {
  CHECK(verify(small_plan(), small_shape()).empty());
  BakedPlan largest = small_plan();
  largest.max_registers = 128;  // 13 warps: four on one scheduler, 16384 / (4 x 32)
  CHECK(verify(largest, small_shape()).empty());
}

TEST_CASE("baked_plan rules: each broken rule is named") {
  for (const BrokenRule& rule : kBrokenRules) check_named(small_plan(), small_shape(), rule);
}

TEST_CASE("baked_plan rules: each broken rule of bulk staging is named") {
  CHECK(verify(bulk_plan(), small_shape()).empty());
  for (const BrokenRule& rule : kBrokenBulkRules) check_named(bulk_plan(), small_shape(), rule);
}

TEST_CASE("baked_plan rules: bulk copies of odd planes begin and end at 16 bytes") {
  ConvShape shape = small_shape();
  shape.in_h = shape.in_w = 7;
  BakedPlan plan = bulk_plan();
  plan.tile = {2, 7, 7};
  plan.shared = {
      .patch_rows = 7, .patch_cols = 7, .margin = 8, .row_pitch = 7, .image_pitch = 196, .channel_pitch = 49};
  CHECK(verify(plan, shape).empty());
  check_named(
      plan, shape,
      {"a stage", [](BakedPlan& p) { p.stage_channels = 3; }, "a stage is 147 words, it must be a multiple of 4"});
  check_named(plan, shape, {"a slice", [](BakedPlan& p) { p.slices[0].channels.pop_back(); }, "a slice is 343 words"});
  check_named(plan, shape,
              {"before a slice",
               [](BakedPlan& p) {
                 for (int& c : p.slices[1].channels) --c;
               },
               "what lies before a slice's first channel is 343 words"});
  shape.in_channels = 15;
  CHECK(any_contains(verify(plan, shape), "one image is 735 words"));
}

TEST_CASE("baked_plan rules: patches have no margin and are of nchw") {
  BakedPlan plan = small_plan();
  plan.shared.margin = 4;
  plan.input_layout = TensorLayout::nchw4;
  const std::vector<std::string> faults = verify(plan, small_shape());
  CHECK(any_contains(faults, "margin is 4, with shared staging it must be 0: the halo is copied"));
  CHECK(any_contains(faults, "staging is shared, the input layout is nchw4"));
}

TEST_CASE("baked_plan rules: the grid holds 2^31 - 1 tiles") {
  ConvShape shape = small_shape();
  shape.in_channels = 1;
  shape.out_channels = 1;
  shape.in_h = shape.in_w = 2048;
  BakedPlan plan = small_plan();
  plan.groups = {{0}};
  plan.splits = 1;
  plan.reduction = Reduction::none;
  plan.slices = {{0, 0, {0}}};
  plan.tile = {1, 1, 1};
  plan.shared = {
      .patch_rows = 3, .patch_cols = 3, .channels_per_row = 1, .row_pitch = 3, .image_pitch = 9, .channel_pitch = 9};
  plan.batch = 511;
  CHECK(verify(plan, shape).empty());
  plan.batch = 512;
  CHECK(any_contains(verify(plan, shape), "the number of tiles is 2147483648, allowed is 1 to 2147483647"));
}

TEST_CASE("baked_plan rules: a bad shape is reported first") {
  ConvShape shape = small_shape();
  shape.stride_h = 0;
  CHECK(verify(small_plan(), shape) ==
        std::vector<std::string>{"the layer's shape: stride_h is 0, allowed is 1 to 64 (kMaxStride)"});
}

TEST_CASE("baked_plan rules: all faults are listed") {
  BakedPlan plan = small_plan();
  plan.batch = 0;
  plan.groups[0].pop_back();
  plan.reduction = Reduction::none;
  plan.max_registers = 10;
  CHECK(verify(plan, small_shape()).size() == 4);
}

TEST_CASE("baked_plan rules: absurd values do not overflow") {
  for (const int v : {std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    BakedPlan plan = small_plan();
    plan.batch = plan.threads = plan.stage_channels = plan.buffers = plan.barrier_every = plan.max_registers = v;
    plan.tile = {v, v, v};
    plan.shared = {v, v, v, v, v, v, v};
    CHECK(verify(plan, small_shape()).size() >= 6);
    CHECK(plan.shared_bytes() >= 0);
    plan.tile = small_plan().tile;
    plan.splits = v;
    CHECK(verify(plan, small_shape()).size() >= 6);
    CHECK(parse_baked_plan(print(plan)) == plan);
  }
}

TEST_CASE("baked_plan rules: every nonzero is computed") {
  const ConvLayer layer = burin_test::make_layer("layer", small_shape(), 1);
  const SparsePattern pattern = analyse(layer);
  BakedPlan plan = small_plan();
  CHECK(verify(plan, layer.shape, pattern).empty());

  plan.slices[2].channels.pop_back();  // group 1 (the odd outputs) no longer reads input channel 11
  CHECK(verify(plan, layer.shape).empty());
  CHECK(
      verify(plan, layer.shape, pattern) ==
      std::vector<std::string>{"group 1 loses 144 nonzeros, the first is (c 11, r 0, s 0, k 1): no slice of the group "
                               "reads input channel 11"});
  // A channel without a nonzero need not be read.
  ConvLayer pruned = layer;
  for (int k = 0; k < 32; ++k) {
    std::fill_n(pruned.weights.begin() + (k * 16 + 11) * 9, 9, 0.0F);
  }
  CHECK(verify(plan, layer.shape, analyse(pruned)).empty());
}

TEST_CASE("baked_plan rules: the pattern must be of the layer") {
  ConvShape other = small_shape();
  other.kernel_h = 1;
  const SparsePattern pattern = analyse(burin_test::make_layer("layer", other, 1));
  CHECK(any_contains(verify(small_plan(), small_shape(), pattern),
                     "the pattern is of a 16 -> 32 layer with a 1x3 filter"));
}
