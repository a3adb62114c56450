// Kernels that skip dead channels and mark those of their output, on the host executor.

#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/hand_plan.h"
#include "test/codegen/host_check.h"
#include "test/codegen/ptx_checks.h"

using namespace burin;
using namespace burin_test;

namespace {

ConvLayer layer_of(const char* edge) { return edge_case(edge).make_layer(); }

void check_edge(std::string_view name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  const std::string fault = check_skipping_on_host(layer, edge.batch, {edge.batch, edge.batch + 1});
  if (layer.shape.epilogue.pool) {  // refused, with the reason
    CHECK_THAT(fault,
               burin_test::Contains("it pools its outputs") && burin_test::Contains("is for layers that do not"));
  } else {
    CHECK(fault == "");
  }
}

// Cells are the tiles, unless the plan has others.
void check(const ConvLayer& layer, HandPlan hand, const std::vector<int>& batches = {1, 2}) {
  hand.marks = true;
  if (!hand.skips) hand.skips = hand.tile;
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), batches) == "");
}

constexpr Precision kHalves[] = {Precision::fp16, Precision::bf16, Precision::fp16x2};

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("dead channels edge: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("dead channels by hand: one split, of several stages") {
  const ConvLayer layer = layer_of("bias_relu");
  check(layer, {.tile = {1, 4, 5}, .stage_channels = 3, .buffers = 3});
  check(layer, {.tile = {2, 9, 10}, .stage_channels = 16, .buffers = 1}, {1, 2, 5});
  check(layer, {.tile = {2, 4, 5}, .stage_channels = 1}, {3});
}

TEST_CASE("dead channels by hand: the order of loads, and barriers between them") {
  const ConvLayer layer = layer_of("bias_relu");
  for (const int load_ahead : {1, 3, 64}) check(layer, {.load_ahead = load_ahead});
  for (const int barrier_every : {1, 7, 40}) check(layer, {.barrier_every = barrier_every});
  check(layer, {.all_channels = true, .backwards = true});
}

TEST_CASE("dead channels by hand: splits are added by the last block") {
  for (const int splits : {2, 5}) check(layer_of("bias_residual_relu6"), {.splits = splits}, {1, 3});
}

TEST_CASE("dead channels by hand: splits are the blocks of a cluster") {
  for (const int splits : {2, 5}) check(layer_of("bias_residual_relu6"), {.splits = splits, .cluster = true}, {1, 3});
}

TEST_CASE("dead channels by hand: bulk copies") {
  const ConvLayer layer = layer_of("bias_relu");
  for (const int stage_channels : {2, 4, 16}) {
    check(layer, {.tile = {2, 9, 10}, .stage_channels = stage_channels, .buffers = 3, .staging = Staging::bulk},
          {1, 5});
  }
  check(layer_of("stride_2"), {.tile = {3, 5, 5}, .splits = 2, .cluster = true, .staging = Staging::bulk}, {1, 5});
  check(layer_of("rows_of_48_bytes"), {.tile = {1, 2, 12}, .staging = Staging::bulk}, {1, 2});
}

TEST_CASE("dead channels by hand: direct loads") {
  check(layer_of("1x1"), {.tile = {2, 9, 10}, .staging = Staging::direct}, {1, 5});
  check(layer_of("stride_2_1x1"), {.splits = 2, .load_ahead = 3, .staging = Staging::direct}, {1, 5});
  check(layer_of("many_inputs"), {.tile = {1, 5, 5}, .load_ahead = 32, .staging = Staging::direct});
}

TEST_CASE("dead channels by hand: cells that are no tiles") {
  for (const char* name : {"bias_relu", "stride_2", "dilation_2", "asymmetric_pad", "pad_larger_than_image"}) {
    const ConvLayer layer = layer_of(name);
    for (const PixelTile cell : {PixelTile{1, 1, 1}, PixelTile{3, 2, 7}, PixelTile{1, 99, 99}, PixelTile{99, 5, 1}}) {
      check(layer, {.tile = {2, 3, 4}, .skips = cell}, {1, 5});
    }
  }
}

TEST_CASE("dead channels by hand: four channels side by side") {
  for (const char* name : {"bias_relu", "prime_shape"}) {
    const ConvLayer layer = layer_of(name);
    const int cols = layer.shape.out_w();
    check(layer, {.tile = {1, 3, cols},
                  .staging = Staging::bulk,
                  .input_layout = TensorLayout::nchw4,
                  .output_layout = TensorLayout::nchw4});
  }
  check(layer_of("1x1"), {.tile = {2, 9, 10},
                          .staging = Staging::direct,
                          .input_layout = TensorLayout::nchw4,
                          .output_layout = TensorLayout::nchw4});
}

TEST_CASE("dead channels by hand: more channels than fit a word") {
  check(layer_of("many_inputs"), {.tile = {1, 5, 5}, .splits = 3});
  check(layer_of("many_outputs"), {.tile = {1, 5, 5}, .group_channels = 100});
  check(layer_of("many_outputs"), {.tile = {1, 5, 5}, .group_channels = 128, .splits = 2, .cluster = true});
  check(layer_of("groups_2"), {.group_channels = 3});
  check(layer_of("depthwise"), {.group_channels = 33});
}

TEST_CASE("dead channels by hand: half precision, of odd batches too") {
  for (const Precision precision : kHalves) {
    INFO(to_string(precision));
    for (const int promote_every : {0, 1, 5, 32}) {
      if (precision != Precision::fp16x2 && promote_every > 0) continue;
      INFO("promoted every " << promote_every);
      const ConvLayer layer = layer_of("bias_relu");
      check(layer, {.tile = {1, 4, 5}, .precision = precision, .promote_every = promote_every}, {1, 2, 5});
      check(layer,
            {.tile = {2, 9, 10},
             .stage_channels = 8,
             .staging = Staging::bulk,
             .precision = precision,
             .promote_every = promote_every},
            {1, 4});
      check(layer, {.splits = 3, .cluster = true, .precision = precision, .promote_every = promote_every}, {3});
      check(layer_of("1x1"),
            {.tile = {2, 9, 10}, .staging = Staging::direct, .precision = precision, .promote_every = promote_every},
            {3});
    }
  }
}

TEST_CASE("dead channels: either half of it") {
  const ConvLayer layer = layer_of("bias_relu");
  HandPlan hand;
  hand.marks = true;
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), {1, 2}) == "");
  hand.splits = 2;
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), {1, 2}) == "");
  hand = {.skips = PixelTile{1, 4, 5}};
  CHECK(check_on_host(layer, plan_by_hand(layer, hand), {1, 2}) == "");
}

TEST_CASE("dead channels: the planner's plans for other layouts, precisions and batches") {
  for (const char* name : {"stride_2", "1x1", "bias_residual_relu6", "full_dense"}) {
    const ConvLayer layer = layer_of(name);
    CHECK(check_skipping_on_host(layer, 32, {33, 1}) == "");
    CHECK(check_skipping_on_host(layer, 1, {1, 3}, Precision::fp32, TensorLayout::nchw4) == "");
    for (const Precision precision : kHalves) {
      INFO(to_string(precision));
      CHECK(check_skipping_on_host(layer, 2, {2, 3}, precision) == "");
    }
  }
}

TEST_CASE("dead channels by hand: clusters of tiles") {
  const ConvLayer rows = layer_of("rows_of_48_bytes");
  check(rows, {.tile = {1, 2, 12}, .cluster_tiles = 2, .staging = Staging::bulk}, {1, 3});
  check(rows, {.tile = {1, 2, 12}, .cluster_tiles = 2, .staging = Staging::bulk, .precision = Precision::fp16}, {3});
}

namespace {

BakedPlan skipping_plan(const ConvLayer& layer, HandPlan hand) {
  hand.skips = hand.tile;
  hand.marks = true;
  return plan_by_hand(layer, hand);
}

int parameters_of(const std::string& ptx) {
  const std::size_t entry = ptx.find(".entry "), body = ptx.find("\n{", entry);
  int count = 0;
  for (std::size_t at = ptx.find(".param", entry); at < body; at = ptx.find(".param", at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("dead channels in the PTX: every nonzero once, a branch for each channel, a word for each stage") {
  const ConvLayer layer = layer_of("bias_relu");
  const Emitted made = emit(layer, skipping_plan(layer, {.tile = {1, 9, 10}, .staging = Staging::bulk}));
  CHECK(parameters_of(made.ptx) == 8);
  CHECK(made.ptx.find(".local") == std::string::npos);
  CHECK(made.ptx.find("vote") == std::string::npos);
  int multiply_adds = 0;
  for (const PtxFunction& function : made.text.functions) {
    if (function.entry) continue;
    INFO(function.name);
    multiply_adds += function.count("fma.rn.f32");
    const Slice& slice = made.plan.slices[static_cast<std::size_t>(function.group)];
    const int stages = made.plan.slice_stages(slice), channels = static_cast<int>(slice.channels.size());
    CHECK(function.count("ld.shared.u32") == stages + made.plan.mark_words());
    // Of 16 channels, each has a nonzero in every group.
    CHECK(function.count("and.b32") >= channels + stages);
    CHECK(function.count("st.global.u8") == static_cast<int>(made.plan.groups[function.group].size()));
    CHECK(function.count("redux.sync.or.b32") == made.plan.mark_words());
  }
  CHECK(multiply_adds == made.pattern.statistics.nonzeros);
}

TEST_CASE("dead channels in the PTX: a kernel without maps has nothing of them") {
  const ConvLayer layer = layer_of("bias_relu");
  const Emitted made = emit(layer, plan_by_hand(layer, {.tile = {1, 9, 10}, .staging = Staging::bulk}));
  CHECK(parameters_of(made.ptx) == 6);
  for (const char* word : {"redux", "ld.shared.u32", "st.global.u8", "ld.global.u8", ".local"}) {
    INFO(word);
    CHECK(made.ptx.find(word) == std::string::npos);
  }
}

TEST_CASE("dead channels in the PTX: older GPUs combine a warp's bits by shuffles") {
  const ConvLayer layer = layer_of("bias_relu");
  HandPlan hand{.tile = {1, 4, 5}, .splits = 2};
  hand.skips = hand.tile;
  hand.marks = true;
  const Emitted made = emit(layer, plan_by_hand(layer, hand, "sm_75"), "sm_75");
  CHECK(made.ptx.find("shfl.sync.bfly") != std::string::npos);
  CHECK(made.ptx.find("redux") == std::string::npos);
  CHECK(made.ptx.find(".local") == std::string::npos);
}
