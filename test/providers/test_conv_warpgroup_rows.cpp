// Convolutions of few images on the tensor cores of warpgroups: what comes out, on the edge list and on random shapes:
// on the host executor, against the float64 reference.

#include <array>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/assemble/assembler.h"
#include "compiler/emit/ptx.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "compiler/providers/conv_warpgroup_rows/tiles.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/arch.h"
#include "ir/factor_type.h"
#include "test/assemble/kernels.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"
#include "test/skip.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kRowsProvider = "conv_warpgroup_rows";

// The layouts of both sides; what is in nchw is FP32.
struct Ends {
  TensorLayout input = TensorLayout::nchw, output = TensorLayout::nchw;
};
using enum TensorLayout;
constexpr Ends kPlaceEnds[] = {{nchw8, nchw}, {nchw, nchw8}, {nchw8, nchw8}};
constexpr Ends kLastEnds[] = {{nhwc8, nhwc8}, {nhwc8, nchw8}, {nchw8, nhwc8}, {nchw, nhwc8}, {nhwc8, nchw}};
constexpr Ends kFloatEnds[] = {{nhwc4, nhwc4}, {nhwc4, nchw}, {nchw, nhwc4}};

TensorFormat format_in(TensorLayout layout, FactorType factors) {
  if (layout == nchw || layout == nhwc4) return {ElementType::f32, layout};
  return {factors == FactorType::bf16 ? ElementType::bf16 : ElementType::f16, layout};
}
RowFormats formats_of(const Ends& ends, FactorType factors) {
  const auto in_halves = [&](TensorLayout layout) { return format_in(layout, factors).element != ElementType::f32; };
  return {.factors = factors,
          .reads_halves = in_halves(ends.input),
          .writes_places = ends.output != nchw,
          .writes_halves = in_halves(ends.output)};
}

struct GroupRowsCase {
  OperatorCase edge;
  Network network;
  ProviderCheck check;

  GroupRowsCase(const ConvLayer& source, FactorType factors, int batch, const Ends& ends = {})
      : edge{source.name,
             Convolution{},
             {},
             sum_tolerance(source),
             with_weights_of(factors, source),
             format_in(ends.input, factors),
             format_in(ends.output, factors)},
        network(network_of(edge)) {
    check.tolerance = edge.tolerance;
    check.tuned_batch = batch;
    check.batches = {batch};
    check.factors = factors;
  }
  const Operator& op() const { return network.operators.back(); }
  std::vector<Candidate> propose(const ProposeOptions& options) const {
    return find_provider(kRowsProvider)->propose(burin_test::task_of(network, op(), check), options);
  }
  std::string run(const Candidate& candidate) const {
    INFO(candidate.plan);
    return check_candidate(network, op(), candidate, check);
  }
  // Takes its best candidate.
  std::string run() const {
    const std::vector<Candidate> found = propose({.count = 1});
    return found.empty() ? "no candidate" : run(found.front());
  }
};

ConvLayer group_rows_layer(int in, int out, int size, int filter, int groups, double density, int stride = 1,
                           bool residual = false) {
  return *convolution_case("rows", in, out, size, filter, stride, filter / 2, density, residual, groups).layer;
}

void check_group_rows_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  // These have the range of all weights there are.
  for (const FactorType factors : {FactorType::bf16, FactorType::tf32}) {
    INFO("in " << to_string(factors));
    const GroupRowsCase of(layer, factors, edge.batch);
    const bool expected = has_row_tiles(gathered_shape(layer.shape), {.factors = factors}, arch_by_name("sm_90"));
    CHECK((expected || layer.shape.epilogue.pool.has_value()));
    CHECK(of.propose({.count = 1}).size() == (expected ? 1 : 0));
    if (expected) CHECK(of.run() == "");
  }
}

// With tensors in places, in one of the ways that there are.
void check_places_edge(const char* name, int number, std::span<const Ends> all_ends, FactorType factors) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  const ConvShape& shape = layer.shape;
  for (const Ends& ends : all_ends) {
    if (!is_taken(number++, std::ssize(all_ends))) continue;
    const auto is_whole = [&](TensorLayout layout, int channels) {
      return shape.groups == 1 || channels % channels_together(layout) == 0;
    };
    const bool whole =
        is_whole(ends.input, shape.channels_per_group()) && is_whole(ends.output, shape.outputs_per_group());
    GroupRowsCase of(layer, factors, edge.batch, ends);
    const bool expected =
        whole && has_row_tiles(gathered_shape(shape), formats_of(ends, factors), arch_by_name("sm_90"));
    INFO("from " << to_string(ends.input) << " to " << to_string(ends.output));
    CHECK(of.propose({.count = 1}).size() == (expected ? 1 : 0));
    if (!expected) continue;
    CHECK(of.run() == "");
    if (!can_be_slices(ends.input) || !can_be_slices(ends.output)) continue;
    of.check.before = of.check.behind = 1;
    CHECK(of.run() == "");
  }
}

constexpr FactorType kFactorsOfGroups[] = {FactorType::f16, FactorType::bf16, FactorType::tf32};

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution of few images on warpgroups: " #name) { check_group_rows_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

#define EDGE_CASE(name, batch, layer)                                           \
  TEST_CASE("convolution of few images on warpgroups, in nchw8: " #name) {      \
    check_places_edge(#name, __LINE__, kPlaceEnds, FactorType::bf16);           \
  }                                                                             \
  TEST_CASE("convolution of few images on warpgroups, channels last: " #name) { \
    check_places_edge(#name, __LINE__, kLastEnds, FactorType::bf16);            \
    check_places_edge(#name, __LINE__, kFloatEnds, FactorType::tf32);           \
  }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution of few images on warpgroups: nchw8, in FP16, more images, and chunks that are copied ahead") {
  int runs = 0, number = 0;
  for (const Ends& ends : kPlaceEnds) {
    for (const int batch : {1, 3}) {
      for (const int channels : {8, 13, 40, 200}) {
        if (!is_taken(number++ + batch / 2, 2)) continue;  // the other batch has this size
        INFO(to_string(ends.input) << " to " << to_string(ends.output) << ", batch " << batch << ", " << channels
                                   << " channels");
        const GroupRowsCase of(group_rows_layer(channels, channels + 3, 9, 3, 1, 0.4, 1, true), FactorType::f16, batch,
                               ends);
        for (const Candidate& candidate : of.propose({.count = channels == 200 ? 3 : 1})) {
          CHECK(of.run(candidate) == "");
          ++runs;
        }
      }
    }
  }
  CHECK(runs >= 12);
}

TEST_CASE("convolution of few images on warpgroups: nchw8 is of the halves that are multiplied, of whole places") {
  const auto is_proposed = [](const ConvLayer& layer, FactorType factors, const TensorFormat& input) {
    GroupRowsCase of(layer, factors, 1, {nchw8, nchw8});
    of.edge.from = input;
    of.network = network_of(of.edge);
    return !of.propose({.count = 1}).empty();
  };
  const TensorFormat halves = format_in(nchw8, FactorType::f16);
  const ConvLayer layer = group_rows_layer(16, 16, 9, 3, 1, 0.5), grouped = group_rows_layer(24, 24, 9, 3, 2, 0.5);
  CHECK(is_proposed(layer, FactorType::f16, halves));
  CHECK_FALSE(is_proposed(layer, FactorType::f16, {ElementType::f16, TensorLayout::n8c8hw}));
  CHECK_FALSE(is_proposed(layer, FactorType::tf32, halves));
  CHECK_FALSE(is_proposed(grouped, FactorType::f16, halves));
}

TEST_CASE("convolution of few images on warpgroups: FP16, and more images") {
  for (const char* name : {"3x3", "1x1", "bias_residual_silu", "stride_2", "one_pixel", "all_zero"}) {
    for (const int batch : {1, 3}) {
      INFO(name << ", batch " << batch);
      CHECK(GroupRowsCase(edge_case(name).make_layer(), FactorType::f16, batch).run() == "");
    }
  }
}

TEST_CASE("convolution of few images on warpgroups: slices of other tensors") {
  for (const int before : {0, 3}) {
    for (const int behind : {0, 5}) {
      for (const char* name : {"bias_residual_silu", "1x1"}) {
        GroupRowsCase of(edge_case(name).make_layer(), FactorType::f16, 2);
        of.check.before = before;
        of.check.behind = behind;
        CHECK(of.run() == "");
      }
    }
  }
}

TEST_CASE("convolution of few images on warpgroups: who says that it can has a plan") {
  int able = 0, pooled = 0;
  for (const int size : {1, 2, 3, 5, 65}) {
    for (const int dilation : {1, 16}) {
      for (const int window : {0, 2, 3, 5}) {
        ConvLayer layer = group_rows_layer(32, 40, size, 3, 1, 0.3);
        layer.shape.dilation_h = layer.shape.dilation_w = dilation;
        layer.shape.pad = {dilation, dilation, dilation, dilation};
        const int pad = window / 2;
        if (window > 0)
          add_filters(layer, {.kernel_h = window, .kernel_w = window, .pad = {pad, pad, pad, pad}}, 1, {});
        REQUIRE(verify(layer).empty());
        INFO(describe(layer.shape));
        const GroupRowsCase of(layer, FactorType::f16, 1);
        const bool can = find_provider(kRowsProvider)->can_do(burin_test::task_of(of.network, of.op(), of.check));
        CHECK(can == !of.propose({.count = 1}).empty());
        able += can ? 1 : 0;
        pooled += can && window > 0 ? 1 : 0;
        if (can && window > size) CHECK(of.run() == "");
      }
    }
  }
  CHECK(able >= 30);
  CHECK(pooled >= 20);
}

TEST_CASE("convolution of few images on warpgroups: all parts that a filter may be multiplied in") {
  std::set<int> clusters;
  int checked = 0;
  for (const FactorType factors : {FactorType::f16, FactorType::tf32}) {
    for (const ConvLayer& layer : far_reaching_layers()) {
      const GroupRowsCase of(layer, factors, 2);
      for (const std::string& parts : choices_of_parts(layer)) {
        INFO(describe(layer.shape) << ": " << parts);
        std::vector<Candidate> candidates;
        try {
          candidates = of.propose({.plan = parts});
        } catch (const Error& error) {
          REQUIRE_THAT(error.what(), Contains("do not fit"));
          continue;
        }
        REQUIRE(candidates.size() == 1);
        CHECK(of.run(candidates[0]) == "");
        clusters.insert(parse_template_plan(candidates[0].plan).launch().cluster_tiles);
        ++checked;
      }
    }
  }
  CHECK(clusters.size() > 1);
  CHECK(checked >= 30);
}

TEST_CASE("convolution of few images on warpgroups: every kind of tiles") {
  std::set<int> clusters, rows, pixels, chunks, items;
  int checked = 0;
  for (const FactorType factors : {FactorType::f16, FactorType::tf32}) {
    for (const ConvLayer& layer : {group_rows_layer(75, 70, 12, 3, 1, 0.15), group_rows_layer(130, 140, 6, 1, 1, 0.3),
                                   group_rows_layer(40, 70, 13, 3, 1, 0.3, 2, true)}) {
      const GroupRowsCase of(layer, factors, 1);
      std::set<std::array<int, 3>> seen;
      for (const Candidate& candidate : of.propose({.count = 1000})) {
        const TemplatePlan plan = parse_template_plan(candidate.plan);
        const auto choice = [&](const char* name) { return plan.integers.at(name); };
        const int cluster = plan.launch().cluster_tiles;
        if (!seen.insert({cluster, choice("row_groups") * 8 + choice("pixel_groups"), choice("chunk_channels")})
                 .second) {
          continue;
        }
        CHECK(stored_weights(plan) == factors);
        CHECK(multiplied_inputs(plan) == factors);
        const bool is_new = clusters.insert(cluster).second | rows.insert(choice("row_groups")).second |
                            pixels.insert(choice("pixel_groups")).second |
                            chunks.insert(choice("chunk_channels")).second | items.insert(choice("items")).second;
        if (is_new || is_taken(checked, 8)) CHECK(of.run(candidate) == "");
        ++checked;
      }
    }
  }
  CHECK(checked >= 30);
  CHECK(clusters.size() >= 3);
  CHECK(rows.size() >= 2);
  CHECK(pixels.size() >= 2);
  CHECK(chunks.size() >= 3);
  CHECK(items.size() >= 3);
}

TEST_CASE("convolution of few images on warpgroups: few buffers and many, with chunks that are not whole") {
  const GroupRowsCase of(group_rows_layer(117, 70, 9, 3, 1, 0.3), FactorType::f16, 2);
  for (const int buffers : {2, 3, 7}) {
    for (const int cluster : {1, 2}) {
      const auto plan = fmt::format("chunk_channels=16,buffers={},cluster={}", buffers, cluster);
      const std::vector<Candidate> candidates = of.propose({.plan = plan});
      REQUIRE(candidates.size() == 1);
      CHECK(of.run(candidates[0]) == "");
    }
  }
  // A buffer that is waited for would never be filled.
  CHECK_THROWS_WITH(of.propose({.plan = "chunk_channels=16,buffers=1,cluster=1"}), Contains("do not fit"));
}

TEST_CASE("convolution of few images on warpgroups: warps that do nothing but stage") {
  int tried = 0;
  const auto try_plans = [&](const ConvLayer& layer, int batch, const Ends& ends, const std::vector<std::string>& plans,
                             FactorType factors = FactorType::f16) {
    const GroupRowsCase of(layer, factors, batch, ends);
    for (const std::string& plan : plans) {
      INFO(layer.name << ", " << plan);
      const std::vector<Candidate> found = of.propose({.plan = plan});
      REQUIRE(found.size() == 1);
      CHECK(find_provider(kRowsProvider)->brief(found[0].plan).find("staging_warps=") != std::string::npos);
      CHECK(of.run(found[0]) == "");
      ++tried;
    }
  };
  const Ends places = {nchw8, nchw8};
  // Buffers that are filled again and such as are not, blocks of a cluster, warpgroups that share pixels or channels.
  const std::vector<std::string> all = {"staging_warps=1,chunk_channels=16,buffers=2,cluster=1",
                                        "staging_warps=4,chunk_channels=16,buffers=3,cluster=1",
                                        "staging_warps=2,chunk_channels=16,buffers=4,cluster=1,row_groups=2",
                                        "staging_warps=4,chunk_channels=32,buffers=2,cluster=1,pixel_groups=2",
                                        "staging_warps=4,chunk_channels=16,buffers=2,cluster=2",
                                        "staging_warps=4,chunk_channels=16,buffers=1,cluster=4"};
  const std::vector<std::string> few = {all[1]};
  try_plans(group_rows_layer(64, 72, 9, 3, 1, 0.3), 2, places, all);
  try_plans(group_rows_layer(64, 72, 7, 1, 1, 0.3, 1, true), 3, places, all);
  try_plans(group_rows_layer(64, 64, 11, 5, 1, 0.5), 1, {nchw8, nchw}, {all[0], all[4]}, FactorType::bf16);
  try_plans(group_rows_layer(64, 64, 12, 3, 2, 0.4), 1, {nchw8, nhwc8}, few);
  try_plans(group_rows_layer(56, 64, 9, 3, 1, 0.3, 2), 2, {nhwc8, nhwc8}, few);
  ConvLayer pooled = group_rows_layer(64, 72, 12, 3, 1, 0.3);
  pooled.shape.epilogue.pool = Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  try_plans(pooled, 2, places, all);
  CHECK(tried == 22);
  // Floats, some of which are staged in several batches.
  const std::vector<std::string> floats = {"staging_warps=1,items=2,chunk_channels=16,buffers=2,cluster=1",
                                           "staging_warps=4,items=8,chunk_channels=16,buffers=3,cluster=1",
                                           "staging_warps=2,items=4,chunk_channels=16,buffers=2,cluster=2"};
  for (const FactorType factors : {FactorType::f16, FactorType::tf32}) {
    try_plans(group_rows_layer(60, 72, 9, 3, 1, 0.3), 2, {}, floats, factors);
    try_plans(group_rows_layer(64, 64, 12, 3, 2, 0.4), 1, {}, {floats[1]}, factors);
    try_plans(group_rows_layer(64, 64, 7, 1, 1, 0.3, 1, true), 3, {nchw, nchw}, {floats[1]}, factors);
  }
  try_plans(group_rows_layer(64, 64, 9, 3, 1, 0.3), 1, {nhwc4, nhwc4}, floats, FactorType::tf32);
  CHECK(tried == 35);
}

TEST_CASE("convolution of few images on warpgroups: of several plans all have the choices that are asked for") {
  const GroupRowsCase of(group_rows_layer(64, 64, 14, 3, 1, 0.3), FactorType::f16, 1, {nchw8, nchw8});
  for (const std::string choice : {"staging_warps=4", "chunk_channels=16"}) {
    const std::vector<Candidate> found = of.propose({.count = 12, .plan = choice});
    CHECK(found.size() == 12);
    std::set<std::string> plans;
    for (const Candidate& candidate : found) {
      CHECK(find_provider(kRowsProvider)->brief(candidate.plan).find(choice) != std::string::npos);
      plans.insert(candidate.plan);
    }
    CHECK(plans.size() == found.size());
    CHECK(of.propose({.count = 1, .plan = choice}).at(0) == found[0]);
    CHECK(of.run(found.back()) == "");
  }
}

// The assembler makes each product wait for the one before where it does not see that sums are left alone.
TEST_CASE("convolution of few images on warpgroups: products do not wait for each other") {
  const auto nvjitlink = open_nvjitlink();
  const auto ptxas = open_ptxas();
  if (!nvjitlink && !ptxas) BURIN_SKIP("no assembler: neither nvJitLink nor ptxas");
  const std::string arch = "sm_90a";
  const auto check = [&](FactorType factors, const Ends& ends, const std::string& plan) {
    const GroupRowsCase of(group_rows_layer(64, 128, 14, 3, 1, 0.3), factors, 1, ends);
    INFO(to_string(factors) << " from " << to_string(ends.input) << ", " << plan);
    const std::vector<Candidate> found = of.propose({.plan = plan});
    REQUIRE(found.size() == 1);
    const Task task = burin_test::task_of(of.network, of.op(), of.check);
    const Recipe recipe = find_provider(kRowsProvider)->make(task, found[0].plan);
    const std::string ptx = emit_ptx(recipe.specialise(recipe.symbol), arch);
    CHECK(ptx.find("wgmma.mma_async") != std::string::npos);
    const auto is_free = [&](const AssemblerOutput& output) {
      CHECK_FALSE(output.cubin.empty());
      return output.log.find("serialized") == std::string::npos;
    };
    if (nvjitlink) CHECK(is_free(nvjitlink->assemble(ptx, arch)));
    if (ptxas) CHECK(is_free(ptxas->assemble(ptx, arch)));
  };
  for (const std::string staging : {"0", "4"}) {
    const std::string plan = "staging_warps=" + staging + ",chunk_channels=16,buffers=3,cluster=1";
    check(FactorType::f16, {nchw8, nchw8}, plan);
    check(FactorType::bf16, {}, plan + ",items=4");
    check(FactorType::tf32, {}, plan + ",items=4");
  }
}

TEST_CASE("convolution of few images on warpgroups: pools, whose windows tiles have whole") {
  const auto pooled = [](int size, const Pool& pool, bool residual) {
    ConvLayer layer = group_rows_layer(24, 40, size, 3, 1, 0.3, 1, residual);
    layer.shape.epilogue.pool = pool;
    REQUIRE(verify(layer).empty());
    return layer;
  };
  Pool largest;
  largest.kind = PoolKind::max;
  largest.kernel_h = largest.kernel_w = 2;
  largest.stride_h = largest.stride_w = 2;
  Pool overlapping = largest;
  overlapping.kernel_h = overlapping.kernel_w = 3;
  Pool padded = overlapping;
  padded.pad = {1, 1, 1, 1};
  Pool mean = padded;
  mean.kind = PoolKind::average;
  for (const Pool& pool : {largest, overlapping, padded, mean}) {
    for (const int size : {9, 12, 33}) {
      INFO("pool of " << pool.kernel_h << ", padded by " << pool.pad.top << ", size " << size);
      const GroupRowsCase of(pooled(size, pool, false), FactorType::f16, 2);
      int checked = 0;
      for (const Candidate& candidate : of.propose({.count = size > 12 ? 2 : 4})) {
        CHECK(of.run(candidate) == "");
        ++checked;
      }
      CHECK(checked > 0);
    }
  }
  CHECK(GroupRowsCase(pooled(12, overlapping, true), FactorType::bf16, 1).run() == "");
}

TEST_CASE("convolution of few images on warpgroups: pools that filter, as depthwise convolutions do") {
  const Pool plain{.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}};
  const Pool strided{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad = {0, 1, 0, 1}};
  const Pool large{.kernel_h = 5, .kernel_w = 5, .pad = {2, 2, 2, 2}};
  const Pool flat{.kernel_h = 1, .kernel_w = 4, .stride_w = 3, .pad = {0, 0, 1, 2}};
  const std::optional<Elementwise> functions[] = {std::nullopt, function_of(Activation::relu),
                                                  Elementwise{ElementFunction::clip, -1, 1}};
  std::uint64_t drawn = 0;
  for (const Pool& window : {plain, strided, large, flat}) {
    for (const int size : {7, 14, 33}) {
      INFO("filter of " << describe(window) << ", size " << size);
      ConvLayer layer = group_rows_layer(40, 70, size, size == 7 ? 3 : 1, 1, 0.3, 1, size == 14);
      layer.shape.epilogue.function = Elementwise{ElementFunction::hard_swish};
      ++drawn;
      add_filters(layer, window, drawn, functions[drawn % 3]);
      REQUIRE(verify(layer).empty());
      const GroupRowsCase of(layer, kFactorsOfGroups[drawn % 3], 2);
      // And in places, which eight rows make together, or four.
      constexpr Ends kFiltered[] = {{nchw8, nchw8}, {nhwc8, nhwc8}, {nhwc4, nhwc4}};
      const Ends ends = size == 33 ? Ends{nchw, nchw8} : kFiltered[drawn % 3];
      const GroupRowsCase places(layer, ends.output == nhwc4 ? FactorType::tf32 : FactorType::f16, 1, ends);
      int number = static_cast<int>(drawn);  // each takes one of the two
      for (const GroupRowsCase& each : {of, places}) {
        if (!is_taken(number++, 2)) continue;
        int checked = 0;
        for (const Candidate& candidate : each.propose({.count = size > 14 ? 1 : 2})) {
          CHECK(each.run(candidate) == "");
          ++checked;
        }
        CHECK(checked > 0);
      }
    }
  }
}

TEST_CASE("convolution of few images on warpgroups: filters that are too large, and who else cannot filter") {
  ConvLayer layer = group_rows_layer(40, 70, 14, 1, 1, 0.3);
  add_filters(layer, {.kernel_h = 5, .kernel_w = 6, .pad = {2, 2, 2, 3}});
  REQUIRE(verify(layer).empty());
  CHECK(GroupRowsCase(layer, FactorType::f16, 1).propose({.count = 1}).empty());
  add_filters(layer, {.kernel_h = 3, .kernel_w = 3, .pad = {1, 1, 1, 1}});
  const GroupRowsCase of(layer, FactorType::f16, 1);
  const Task task = burin_test::task_of(of.network, of.op(), of.check);
  int able = 0;
  for (const Provider* provider : providers()) {
    if (!provider->can_do(task)) continue;
    CHECK(provider->name() == kRowsProvider);
    ++able;
  }
  CHECK(able == 1);
}

TEST_CASE("convolution of few images on warpgroups: wide images, groups, dense weights and none") {
  CHECK(GroupRowsCase(group_rows_layer(8, 70, 60, 3, 1, 0.3), FactorType::f16, 1).run() == "");
  CHECK(GroupRowsCase(group_rows_layer(48, 80, 6, 3, 2, 0.3), FactorType::tf32, 2).run() == "");
  CHECK(GroupRowsCase(group_rows_layer(15, 21, 6, 3, 3, 0.5), FactorType::bf16, 2).run() == "");
  CHECK(GroupRowsCase(group_rows_layer(32, 64, 6, 3, 1, 1), FactorType::f16, 2).run() == "");
  CHECK(GroupRowsCase(group_rows_layer(32, 64, 6, 3, 1, 0), FactorType::f16, 2).run() == "");
}

TEST_CASE("convolution of few images on warpgroups: random layers") {
  std::mt19937 random(20261126);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int checked = 0;
  for (int i = 0; i < 40; ++i) {
    const int filter = std::array{1, 1, 3, 3, 5}[static_cast<std::size_t>(number(0, 4))];
    const ConvLayer layer = group_rows_layer(number(1, 90), number(1, 140), number(filter, 16), filter, 1,
                                             0.1 * number(1, 10), number(1, 3), number(0, 1) == 1);
    const GroupRowsCase of(layer, kFactorsOfGroups[number(0, 2)], number(1, 3));
    INFO(describe(layer.shape));
    const std::vector<Candidate> found = of.propose({.count = 8});
    REQUIRE_FALSE(found.empty());
    CHECK(of.run(found[static_cast<std::size_t>(number(0, static_cast<int>(found.size()) - 1))]) == "");
    ++checked;
  }
  CHECK(checked == 40);
}

TEST_CASE("convolution of few images on warpgroups: only where its instructions are") {
  GroupRowsCase of(group_rows_layer(32, 64, 6, 3, 1, 0.3), FactorType::f16, 1);
  Task task = burin_test::task_of(of.network, of.op(), of.check);
  const Provider& provider = *find_provider(kRowsProvider);
  CHECK(provider.can_do(task));
  task.archs = {"sm_80", "sm_90"};
  CHECK_FALSE(provider.can_do(task));
  task.archs = {"sm_80"};
  CHECK_FALSE(provider.can_do(task));
  task.archs = {"sm_90"};
  task.factors = FactorType::f32;
  CHECK_FALSE(provider.can_do(task));
}
