#include "compiler/providers/conv_baked/plan/planner.h"

#include "compiler/providers/conv_baked/plan/constraints.h"
#include "compiler/providers/conv_baked/plan/search.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/providers/conv_baked/plan_work.h"
#include "test/thrown.h"

using namespace burin;

namespace {

struct Geometry {
  int in, out, kernel_h, kernel_w, height, width;
  int stride = 1, pad = 0, dilation = 1, groups = 1;
};

ConvShape shape_of(const Geometry& g) {
  ConvShape shape;
  shape.in_channels = g.in;
  shape.out_channels = g.out;
  shape.kernel_h = g.kernel_h;
  shape.kernel_w = g.kernel_w;
  shape.in_h = g.height;
  shape.in_w = g.width;
  shape.stride_h = shape.stride_w = g.stride;
  shape.dilation_h = shape.dilation_w = g.dilation;
  shape.pad = {g.pad, g.pad, g.pad, g.pad};
  shape.groups = g.groups;
  return shape;
}

using ArchLists = std::vector<std::vector<std::string>>;

// make_plan() verifies on every architecture asked for; here the result is looked at from outside.
void check_plans(const ConvLayer& layer, const std::vector<int>& batches = {1, 3, 32},
                 const ArchLists& arch_lists = {{"sm_75"}, {"sm_90"}, {"sm_90", "sm_75"}}) {
  const SparsePattern pattern = analyse(layer);
  for (const int batch : batches) {
    for (const std::vector<std::string>& archs : arch_lists) {
      INFO(layer.name << ": " << describe(layer.shape) << ", " << pattern.taps.size() << " nonzeros, batch " << batch
                      << ", " << archs.front());
      const BakedPlan plan = make_plan(layer, pattern, {batch, archs});
      INFO(print(plan));
      CHECK(verify(plan, layer.shape, pattern).empty());
      CHECK(plan.arch == archs.front());
      CHECK(plan.batch == batch);
      CHECK(plan.predicted_us > 0);
      for (const std::string& name : archs) {
        CHECK(plan.shared_bytes() <= arch_by_name(name).max_shared_per_block);
      }
      CHECK(parse_baked_plan(print(plan)) == plan);
    }
  }
}

ConvLayer layer_of(const std::string& name, const Geometry& g, double density = 0.2) {
  return burin_test::make_layer(name, shape_of(g), density);
}

std::string error_of(const ConvLayer& layer, const SparsePattern& pattern, const PlanRequest& request, ErrorKind kind) {
  return burin_test::error_of([&] { make_plan(layer, pattern, request); }, kind);
}

}  // namespace

TEST_CASE("plan: all_zero") { check_plans(layer_of("all_zero", {64, 64, 3, 3, 14, 14, 1, 1}, 0)); }

TEST_CASE("plan: one_nonzero") {
  ConvLayer layer = layer_of("one_nonzero", {64, 64, 3, 3, 14, 14, 1, 1}, 0);
  layer.weights[777] = 1;
  check_plans(layer);
}

TEST_CASE("plan: full_dense") { check_plans(layer_of("full_dense", {64, 64, 3, 3, 14, 14, 1, 1}, 1)); }

TEST_CASE("plan: row_empty and column_empty") {
  ConvLayer layer = layer_of("row_empty", {32, 48, 3, 3, 14, 14, 1, 1});
  std::fill_n(layer.weights.begin() + 5 * 32 * 9, 32 * 9, 0.0F);
  check_plans(layer);
  layer = layer_of("column_empty", {32, 48, 3, 3, 14, 14, 1, 1});
  for (int k = 0; k < 48; ++k) std::fill_n(layer.weights.begin() + (k * 32 + 7) * 9, 4 * 9, 0.0F);
  check_plans(layer);
  const SparsePattern pattern = analyse(layer);
  PlanRequest request;
  request.constraints.staging = Staging::shared;  // bulk copies leave no channel out
  for (const Slice& slice : make_plan(layer, pattern, request).slices) {
    for (const int c : slice.channels) CHECK((c < 7 || c > 10));
  }
}

TEST_CASE("plan: one_pixel") {
  check_plans(layer_of("one_pixel", {64, 100, 1, 1, 1, 1}));
  check_plans(layer_of("one_pixel 3x3", {64, 100, 3, 3, 3, 3}));
}

TEST_CASE("plan: odd_width") { check_plans(layer_of("odd_width", {16, 24, 3, 3, 14, 37, 1, 1})); }
TEST_CASE("plan: prime_shape") { check_plans(layer_of("prime_shape", {17, 31, 3, 3, 23, 29, 1, 1})); }
TEST_CASE("plan: kernel_1x1") { check_plans(layer_of("kernel_1x1", {128, 256, 1, 1, 28, 28})); }
TEST_CASE("plan: kernel_3x3") { check_plans(layer_of("kernel_3x3", {128, 128, 3, 3, 28, 28, 1, 1}, 0.09)); }
TEST_CASE("plan: kernel_5x5") { check_plans(layer_of("kernel_5x5", {48, 64, 5, 5, 27, 27, 1, 2})); }
TEST_CASE("plan: kernel_7x7") { check_plans(layer_of("kernel_7x7", {3, 64, 7, 7, 224, 224, 2, 3}, 0.7)); }
TEST_CASE("plan: kernel_11x11 stride_4") { check_plans(layer_of("kernel_11x11", {3, 96, 11, 11, 227, 227, 4}, 0.8)); }
TEST_CASE("plan: kernel_1x7") { check_plans(layer_of("kernel_1x7", {32, 32, 1, 7, 17, 17, 1, 3})); }
TEST_CASE("plan: stride_2") { check_plans(layer_of("stride_2", {32, 64, 3, 3, 56, 56, 2, 1})); }
TEST_CASE("plan: dilation_2") { check_plans(layer_of("dilation_2", {32, 32, 3, 3, 28, 28, 1, 2, 2})); }
TEST_CASE("plan: pad_larger_than_kernel") { check_plans(layer_of("large_pad", {32, 32, 1, 1, 13, 13, 1, 5})); }
TEST_CASE("plan: groups_2") { check_plans(layer_of("groups_2", {96, 256, 5, 5, 27, 27, 1, 2, 1, 2}, 0.3)); }
TEST_CASE("plan: depthwise") {
  check_plans(layer_of("depthwise", {512, 512, 3, 3, 14, 14, 1, 1, 1, 512}, 1));
  check_plans(layer_of("depthwise stride 2", {64, 64, 3, 3, 112, 112, 2, 1, 1, 64}, 1));
}

TEST_CASE("plan: asymmetric_pad") {
  ConvShape shape = shape_of({16, 24, 3, 3, 14, 14});
  shape.pad = {0, 1, 2, 0};
  check_plans(burin_test::make_layer("asymmetric_pad", shape, 0.3));
}

TEST_CASE("plan: one input channel, one output channel") {
  check_plans(layer_of("one_each", {1, 1, 3, 3, 14, 14, 1, 1}, 1));
  check_plans(layer_of("one_in", {1, 64, 3, 3, 14, 14, 1, 1}, 1));
  check_plans(layer_of("one_out", {64, 1, 3, 3, 14, 14, 1, 1}, 1));
}

TEST_CASE("plan: the largest extents") {
  check_plans(layer_of("wide", {1, 1, 3, 3, 2, 32768, 1, 1}, 1), {1, 3});
  check_plans(layer_of("tall", {1, 1, 3, 3, 32768, 2, 1, 1}, 1), {1, 3});
  check_plans(layer_of("many_outputs", {1, 65536, 1, 1, 1, 1}, 1), {1});
  check_plans(layer_of("many_inputs", {65536, 1, 1, 1, 1, 1}, 1), {1});
  check_plans(layer_of("large_stride", {2, 2, 3, 3, 999, 999, 64}, 1), {1, 3});
  check_plans(layer_of("many_groups", {65536, 65536, 1, 1, 1, 1, 1, 0, 1, 65536}, 1), {1});
}

TEST_CASE("plan: a large batch") {
  check_plans(layer_of("pixels", {64, 64, 1, 1, 1, 1}), {kMaxBatch});
  check_plans(layer_of("images", {16, 16, 3, 3, 7, 7, 1, 1}), {1000, 99991});
}

TEST_CASE("plan: a large dense layer keeps its slices small enough to assemble") {
  const ConvLayer layer = layer_of("dense", {512, 1000, 1, 1, 7, 7}, 1);
  const SparsePattern pattern = analyse(layer);
  for (const int batch : {1, 32}) {
    const BakedPlan plan = make_plan(layer, pattern, {batch, {"sm_90"}});
    for (const SliceWork& slice : burin_test::work_of_slices(plan, pattern))
      CHECK(slice.multiply_adds <= 1.1 * kMaxSliceMultiplyAdds);
  }
}

TEST_CASE("plan: batch 1 spreads a large layer over the multiprocessors") {
  const ConvLayer layer = layer_of("b1", {256, 256, 3, 3, 14, 14, 1, 1}, 0.09);
  const BakedPlan plan = make_plan(layer, analyse(layer), {1, {"sm_90"}});
  const auto blocks = static_cast<int>(plan.slices.size()) * plan.tiles_per_image(layer.shape);
  CHECK(blocks >= 64);
  CHECK(blocks <= 132);
}

TEST_CASE("plan: a batch of 32 gives blocks many warps that run the same code") {
  const ConvLayer layer = layer_of("b32", {256, 256, 3, 3, 14, 14, 1, 1}, 0.09);
  const BakedPlan plan = make_plan(layer, analyse(layer), {32, {"sm_90"}});
  CHECK(plan.tile.images > 1);
  CHECK(plan.threads >= 384);
  CHECK(plan.group_capacity() >= 16);
}

TEST_CASE("plan: direct loads are kept together where a multiprocessor has several blocks") {
  const ConvLayer layer = layer_of("kernel_1x1", {256, 256, 1, 1, 28, 28}, 0.1);
  const SparsePattern pattern = analyse(layer);
  const auto plan = [&](int batch, bool skip) {
    PlanRequest request{batch, {"sm_90"}, parse_plan_constraints("staging=direct")};
    request.skip_dead_tiles = skip;
    return make_plan(layer, pattern, request);
  };
  CHECK(plan(1, false).load_together == 1);
  CHECK(plan(32, false).load_together == plan(32, false).load_ahead / 2);
  CHECK(plan(32, true).load_together == 1);  // each channel's loads lie behind a branch of their own
}

TEST_CASE("plan: the slices of a plan have nearly the same work") {
  const ConvLayer layer = layer_of("balance", {256, 256, 3, 3, 14, 14, 1, 1}, 0.09);
  const SparsePattern pattern = analyse(layer);
  const BakedPlan plan = make_plan(layer, pattern, {1, {"sm_90"}});
  double total = 0, most = 0;
  for (const SliceWork& slice : burin_test::work_of_slices(plan, pattern)) {
    const double work = slice.multiply_adds + 2 * slice.loads;
    total += work;
    most = std::max(most, work);
  }
  // The last group may be smaller, which raises the others' share of the mean.
  const double fullest_share =
      static_cast<double>(plan.group_capacity()) * static_cast<double>(plan.groups.size()) / 256;
  CHECK(most <= 1.1 * fullest_share * total / static_cast<double>(plan.slices.size()));
}

TEST_CASE("plan: pools of halves, whose maxima are kept as halves and whose means in FP32") {
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp16x2}) {
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      for (const int kernel : {3, 31}) {  // of the whole image
        ConvLayer layer = layer_of("pooled", {64, 256, 3, 3, 31, 31, 1, 1}, 0.1);
        layer.shape.epilogue.pool =
            Pool{.kind = kind, .kernel_h = kernel, .kernel_w = kernel, .stride_h = 2, .stride_w = 2};
        const SparsePattern pattern = analyse(layer);
        for (const char* arch : {"sm_75", "sm_90"}) {
          INFO(to_string(precision) << ", windows of " << kernel << ", " << arch);
          const BakedPlan plan =
              make_plan(layer, pattern, {.batch = 7, .archs = {arch}, .constraints = {}, .precision = precision});
          CHECK(plan.output_layout == TensorLayout::n2chw);
          CHECK(plan.keeps_halves == (kind == PoolKind::max));
          CHECK(plan.shared_bytes() <= arch_by_name(arch).max_shared_per_block);
          CHECK(verify(plan, layer.shape, pattern) == std::vector<std::string>{});
        }
      }
    }
  }
}

TEST_CASE("plan: random layers") {
  burin_test::Random random(71);
  for (int i = 0; i < 60; ++i) {
    const ConvShape shape = burin_test::random_shape(random);
    const double density = random.chance(0.1) ? 0.0 : random.chance(0.1) ? 1.0 : random.real() * random.real();
    check_plans(burin_test::make_layer("random, seed 71, case " + std::to_string(i), shape, density, 7000 + i),
                {1, 3, 32}, {{"sm_75"}, {"sm_90"}});
  }
}

TEST_CASE("plan: the same request gives the same plan") {
  burin_test::Random random(72);
  for (int i = 0; i < 20; ++i) {
    const ConvLayer layer = burin_test::make_layer("layer", burin_test::random_shape(random), 0.3, 7200 + i);
    const PlanRequest request{random.integer(1, 40), {"sm_90", "sm_80"}};
    CHECK(print(make_plan(layer, analyse(layer), request)) == print(make_plan(layer, analyse(layer), request)));
  }
}

TEST_CASE("plan: errors name layer, attribute, value and what helps") {
  const ConvLayer layer = layer_of("conv7", {16, 16, 3, 3, 14, 14, 1, 1});
  const SparsePattern pattern = analyse(layer);
  SparsePattern huge = pattern;
  huge.statistics.nonzeros = kMaxLayerNonzeros + 1;
  CHECK_THAT(error_of(layer, huge, {}, ErrorKind::unsupported),
             burin_test::StartsWith("layer 'conv7': the weights have 4000001 nonzeros, allowed are 4000000 "
                                    "(kMaxLayerNonzeros)") &&
                 burin_test::Contains("pruning further"));
  CHECK_THAT(error_of(layer, pattern, {0, {"sm_90"}}, ErrorKind::unsupported),
             burin_test::StartsWith("layer 'conv7': batch is 0, allowed is 1 to 1048576 (kMaxBatch)"));
  CHECK_THAT(error_of(layer, pattern, {1, {"sm_20"}}, ErrorKind::unsupported),
             burin_test::Contains("'sm_20' is not known"));
  CHECK_THAT(error_of(layer, pattern, {1, {}}, ErrorKind::usage), burin_test::Contains("no architecture"));

  ConvLayer impossible = layer;
  impossible.shape.in_h = 0;
  CHECK_THAT(error_of(impossible, pattern, {}, ErrorKind::bad_input),
             burin_test::StartsWith("layer 'conv7': in_h is 0, allowed is 1 to 32768"));
}

TEST_CASE("plan: a receptive field larger than shared memory is refused") {
  const ConvLayer layer = layer_of("far", {4, 4, 11, 11, 641, 641, 1, 0, 64}, 0.5);
  CHECK_THAT(
      error_of(layer, analyse(layer), {1, {"sm_90", "sm_75"}}, ErrorKind::unsupported),
      burin_test::StartsWith("layer 'far': one output pixel reads 641x641 inputs of a channel (kernel 11x11, dilation "
                             "64x64)") &&
          burin_test::Contains("a block has 65408 on sm_90, sm_75; a smaller dilation or kernel helps"));
}
