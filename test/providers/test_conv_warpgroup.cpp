// Convolutions on the tensor cores of warpgroups: how weights are split and packed, and what comes out, on the edge
// list and on random shapes: on the host executor, against the float64 reference.

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "compiler/host/executor.h"
#include "compiler/providers/conv_warpgroup/packing.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "compiler/providers/template_provider.h"
#include "ir/arch.h"
#include "ir/element_type.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr const char* kWarpgroupProvider = "conv_warpgroup";

OperatorCase in_lines(const ConvLayer& source, ElementType element) {
  const ConvLayer layer = with_weights_of(factors_of(element), source);
  const TensorFormat format = {element, TensorLayout::n8c8hw};
  return {layer.name, Convolution{}, {}, sum_tolerance(layer), layer, format, format};
}

// Up to `count` candidates; how many there were.
int check_warpgroup(const ConvLayer& layer, ElementType element, int batch, int count = 1, int tuned_batch = 0) {
  const OperatorCase edge = in_lines(layer, element);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  check.tuned_batch = tuned_batch == 0 ? batch : tuned_batch;
  check.batches = {batch};
  const Task task = task_of(network, network.operators.back(), check);
  int checked = 0;
  for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = count})) {
    INFO(candidate.plan);
    CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
    ++checked;
  }
  return checked;
}

ConvLayer warpgroup_layer(int in, int out, int size, int filter, int groups, double density, bool residual = false,
                          int stride = 1) {
  return *convolution_case("warpgroup", in, out, size, filter, stride, filter / 2, density, residual, groups).layer;
}

ConvLayer pooled_layer(ConvLayer layer, const Pool& pool) {
  layer.shape.epilogue.pool = pool;
  return layer;
}

bool is_expected(const ConvShape& shape) {
  return shape.groups == 1 || (shape.channels_per_group() % 8 == 0 && shape.outputs_per_group() % 8 == 0);
}

// A warpgroup cannot have all pixels of a window.
const std::set<std::string>& edges_of_large_windows() {
  static const std::set<std::string> names = names_of_edges(
      "max_6x6 max_of_all average_6x6 average_of_all average_of_all_1x1 average_of_all_batch_5 averaged_residual_relu");
  return names;
}

void check_warpgroup_edge(const char* name) {
  constexpr int kLeastChannels = 16;
  const EdgeCase& edge = edge_case(name);
  const ConvLayer source = edge.make_layer();
  const int fewest = std::min(source.shape.channels_per_group(), source.shape.outputs_per_group());
  const ConvLayer layer = with_more_channels(source, (kLeastChannels + fewest - 1) / fewest);
  REQUIRE(verify(layer).empty());
  const int checked = check_warpgroup(layer, ElementType::bf16, edge.batch);
  CHECK((checked > 0) == (is_expected(layer.shape) && !edges_of_large_windows().contains(name)));
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution of warpgroups: " #name) { check_warpgroup_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution of warpgroups: every kind of tiles") {
  int checked = 0;
  std::set<int> sparse, rest, rows;
  for (const ConvLayer& layer :
       {warpgroup_layer(40, 150, 9, 3, 1, 0.15), warpgroup_layer(70, 70, 9, 1, 1, 0.15, true),
        warpgroup_layer(40, 70, 9, 3, 1, 0.4, true), warpgroup_layer(40, 70, 13, 3, 1, 0.3, false, 2)}) {
    const OperatorCase edge = in_lines(layer, ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.batches = {3};
    check.tuned_batch = 32;
    const Task task = task_of(network, network.operators.back(), check);
    std::map<std::pair<int, bool>, int> of_kind;
    for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 1000})) {
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      if (++of_kind[{plan.integers.at("sparse"), plan.integers.at("group_rows") > 1}] > 2) continue;
      INFO(candidate.plan);
      CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
      sparse.insert(plan.integers.at("sparse"));
      rest.insert(plan.integers.at("rest_limit") > 0);
      rows.insert(plan.integers.at("group_rows") > 1);
      ++checked;
    }
  }
  CHECK(checked >= 14);  // a 1x1 filter has no rows
  CHECK(sparse == std::set<int>{0, 1});
  CHECK(rest == std::set<int>{0, 1});
  CHECK(rows == std::set<int>{0, 1});
}

TEST_CASE("convolution of warpgroups: chunks that begin before the last one has ended") {
  for (const ConvLayer& layer : {warpgroup_layer(70, 70, 9, 3, 1, 0.3, true), warpgroup_layer(100, 40, 9, 1, 1, 0.3)}) {
    const OperatorCase edge = in_lines(layer, ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.tuned_batch = 32;
    check.batches = {3, 17};
    const Task task = task_of(network, network.operators.back(), check);
    for (const int buffers : {3, 4}) {
      for (const int chunk : {16, 32}) {
        const auto plan = fmt::format("sparse=0,overlap=1,chunk_channels={},buffers={},set_blocks=1", chunk, buffers);
        const std::vector<Candidate> candidates = find_provider(kWarpgroupProvider)->propose(task, {.plan = plan});
        REQUIRE(candidates.size() == 1);
        INFO(candidates[0].plan);
        CHECK(check_candidate(network, network.operators.back(), candidates[0], check) == "");
      }
    }
    for (const char* plan : {"sparse=0,overlap=1,buffers=2", "sparse=1,overlap=1,buffers=3,chunk_channels=32"}) {
      INFO(plan);
      CHECK_THROWS_WITH(find_provider(kWarpgroupProvider)->propose(task, {.plan = plan}),
                        Contains("together with the best of its other choices they do not fit"));
    }
  }
}

TEST_CASE("convolution of warpgroups: the first three candidates have sparse products and whole ones") {
  for (const double density : {0.1, 0.5}) {
    INFO("density " << density);
    const OperatorCase edge = in_lines(warpgroup_layer(64, 64, 56, 3, 1, density), ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tuned_batch = 32;
    const Task task = task_of(network, network.operators.back(), check);
    const std::vector<Candidate> all = find_provider(kWarpgroupProvider)->propose(task, {.count = 100});
    std::set<std::int64_t> products;
    for (std::size_t i = 0; i < 3; ++i) products.insert(parse_template_plan(all.at(i).plan).integers.at("sparse"));
    CHECK(products.size() == 2);
    // The one that the models choose stays the first.
    for (const Candidate& candidate : all) CHECK(all.front().estimate.us <= candidate.estimate.us);
  }
}

TEST_CASE("convolution of warpgroups: FP16, and batches that fill no octet") {
  for (const int batch : {1, 7, 8, 9, 17}) {
    INFO("batch " << batch);
    CHECK(check_warpgroup(warpgroup_layer(24, 40, 7, 3, 1, 0.2, true), ElementType::f16, batch, 2) == 2);
  }
}

TEST_CASE("convolution of warpgroups: channels that fill no octet, and groups") {
  for (const int channels : {17, 24, 31, 65}) {
    INFO(channels << " channels");
    CHECK(check_warpgroup(warpgroup_layer(channels, channels, 6, 3, 1, 0.3), ElementType::f16, 8, 4) > 0);
  }
  CHECK(check_warpgroup(warpgroup_layer(48, 80, 6, 3, 2, 0.3, true), ElementType::bf16, 9, 4) > 0);
}

TEST_CASE("convolution of warpgroups: every kind of pool, behind every kind of tiles") {
  std::set<int> sparse, several;  // whether a warpgroup has several rows of outputs
  int checked = 0;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
    Pool up = window_of(kind, 3, 2), counting = window_of(kind, 3, 2, 1), uneven = window_of(kind, 2, 3);
    up.round_up = counting.round_up = counting.count_padding = true;
    uneven.kernel_w = 3;
    uneven.pad = {1, 0, 0, 2};
    for (const Pool& pool : {window_of(kind, 2, 2), window_of(kind, 3, 2), window_of(kind, 3, 2, 1),
                             window_of(kind, 3, 1, 1), up, counting, uneven}) {
      const int filter = checked % 2 == 0 ? 1 : 3;
      const ConvLayer layer = pooled_layer(warpgroup_layer(24, 40, 11, filter, 1, 0.4, filter == 1), pool);
      const OperatorCase edge = in_lines(layer, filter == 1 ? ElementType::f16 : ElementType::bf16);
      const Network network = network_of(edge);
      ProviderCheck check;
      check.tolerance = edge.tolerance;
      check.batches = {3};
      check.tuned_batch = 32;
      INFO(describe(layer.shape));
      const Task task = task_of(network, network.operators.back(), check);
      for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 3})) {
        INFO(candidate.plan);
        CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
        const TemplatePlan plan = parse_template_plan(candidate.plan);
        sparse.insert(plan.integers.at("sparse"));
        several.insert(plan.integers.at("group_rows") > 1);
        ++checked;
      }
    }
  }
  CHECK(checked == 42);
  CHECK(sparse == std::set<int>{0, 1});
  CHECK(several == std::set<int>{0, 1});
}

TEST_CASE("convolution of warpgroups: pools of images smaller than a tile, groups, strides, and batches") {
  const Pool two = window_of(PoolKind::max, 2, 2), three = window_of(PoolKind::average, 3, 2, 1);
  for (const int batch : {1, 9}) {
    INFO("batch " << batch);
    for (const int size : {2, 5}) {
      INFO("size " << size);
      CHECK(check_warpgroup(pooled_layer(warpgroup_layer(24, 40, size, 3, 1, 0.3), two), ElementType::f16, batch, 2) >
            0);
      CHECK(check_warpgroup(pooled_layer(warpgroup_layer(24, 40, size, 1, 1, 0.3, true), three), ElementType::bf16,
                            batch, 2) > 0);
    }
    CHECK(check_warpgroup(pooled_layer(warpgroup_layer(48, 80, 7, 3, 2, 0.3, true), two), ElementType::f16, batch, 2) >
          0);
    CHECK(check_warpgroup(pooled_layer(warpgroup_layer(32, 70, 15, 3, 1, 0.3, false, 2), two), ElementType::f16, batch,
                          2) > 0);
  }
}

TEST_CASE("convolution of warpgroups: a window of more pixels than a warpgroup has is refused") {
  const auto can = [](const ConvLayer& layer) {
    const OperatorCase edge = in_lines(layer, ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tuned_batch = 8;
    return find_provider(kWarpgroupProvider)->can_do(task_of(network, network.operators.back(), check));
  };
  const Pool five = window_of(PoolKind::max, 5, 1), six = window_of(PoolKind::max, 6, 1);
  CHECK(can(pooled_layer(warpgroup_layer(32, 32, 9, 1, 1, 0.3), five)));
  CHECK(!can(pooled_layer(warpgroup_layer(32, 32, 9, 1, 1, 0.3), six)));
  // Pixels between its rows count, too: 4 x 7 + 5, but for a position of the filter at once.
  const ConvLayer filtered = pooled_layer(warpgroup_layer(32, 32, 9, 3, 1, 0.3), five);
  CHECK(can(filtered));
  CHECK(check_warpgroup(filtered, ElementType::f16, 8, 2) > 0);
  CHECK(!can(pooled_layer(warpgroup_layer(32, 32, 9, 3, 1, 0.3), six)));
}

TEST_CASE("convolution of warpgroups: filters that reach further than there is room for are multiplied in parts") {
  std::set<bool> in_parts;
  for (const int dilation : {1, 2, 4, 6, 12, 24, 36}) {
    for (const int batch : {8, 32}) {
      ConvLayer layer = warpgroup_layer(64, 64, 65, 3, 1, 0.1);
      layer.shape.dilation_h = layer.shape.dilation_w = dilation;
      layer.shape.pad = {dilation, dilation, dilation, dilation};
      REQUIRE(verify(layer).empty());
      const OperatorCase edge = in_lines(layer, ElementType::f16);
      const Network network = network_of(edge);
      ProviderCheck check;
      check.tuned_batch = batch;
      const Task task = task_of(network, network.operators.back(), check);
      const Provider& provider = *find_provider(kWarpgroupProvider);
      INFO("dilation " << dilation << ", batch " << batch);
      CHECK(provider.can_do(task));
      const std::vector<Candidate> candidates = provider.propose(task, {.count = 1});
      REQUIRE(candidates.size() == 1);
      const bool is_whole = parse_template_plan(candidates[0].plan).integers.at("part_rows") == 3;
      if (dilation == 1) CHECK(is_whole);
      if (dilation >= 24) CHECK(!is_whole);
      in_parts.insert(!is_whole);
    }
  }
  CHECK(in_parts.size() == 2);
}

TEST_CASE("convolution of warpgroups: all parts that a filter may be multiplied in") {
  int checked = 0;
  for (const ConvLayer& layer : far_reaching_layers()) {
    const OperatorCase edge = in_lines(layer, ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.tuned_batch = 32;
    check.batches = {3};
    const Task task = task_of(network, network.operators.back(), check);
    for (const std::string& parts : choices_of_parts(layer)) {
      for (const char* sparse : {",sparse=0", ",sparse=1,chunk_channels=32"}) {
        INFO(describe(layer.shape) << ": " << parts << sparse);
        std::vector<Candidate> candidates;
        try {
          candidates = find_provider(kWarpgroupProvider)->propose(task, {.plan = parts + sparse});
        } catch (const Error& error) {
          REQUIRE_THAT(error.what(), Contains("do not fit"));
          continue;
        }
        REQUIRE(candidates.size() == 1);
        INFO(candidates[0].plan);
        CHECK(check_candidate(network, network.operators.back(), candidates[0], check) == "");
        ++checked;
      }
    }
  }
  CHECK(checked >= 25);
}

TEST_CASE("convolution of warpgroups: what a pool makes of all images is in slices of other tensors") {
  // In words of an image: four octets of channels, of 25 pixels and of 4.
  const ConvLayer layer = pooled_layer(warpgroup_layer(32, 32, 5, 3, 1, 0.3, true), window_of(PoolKind::max, 2, 2));
  const OperatorCase edge = in_lines(layer, ElementType::f16);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  check.before = check.behind = 8 * 25 * 4;
  check.batches = {9};
  CHECK(check_operator(network_of(edge), check) == "");
}

TEST_CASE("convolution of warpgroups: dense weights, and none") {
  CHECK(check_warpgroup(warpgroup_layer(32, 64, 6, 3, 1, 1), ElementType::f16, 8, 4) > 0);
  CHECK(check_warpgroup(warpgroup_layer(32, 64, 6, 3, 1, 0), ElementType::f16, 8, 4) > 0);
}

TEST_CASE("convolution of warpgroups: slices of other tensors") {
  // In words of an image: four octets of channels.
  const OperatorCase edge = in_lines(warpgroup_layer(32, 32, 5, 3, 1, 0.3, true), ElementType::f16);
  for (const int before : {0, 8 * 25 * 4}) {
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.before = before;
    check.behind = 8 * 25 * 4;
    check.batches = {9};
    CHECK(check_operator(network_of(edge), check) == "");
  }
}

TEST_CASE("convolution of warpgroups: what lies behind a slice is not multiplied") {
  // Three octets and a half, in chunks of two octets and more; octets behind the slice hold NaN.
  const OperatorCase edge = in_lines(warpgroup_layer(28, 40, 5, 3, 1, 0.3), ElementType::f16);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  check.batches = {9};
  check.before = check.behind = 1;
  const Task task = task_of(network, network.operators.back(), check);
  int beyond = 0;
  for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 6})) {
    INFO(candidate.plan);
    CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
    beyond += parse_template_plan(candidate.plan).integers.at("chunk_channels") > 16 ? 1 : 0;
  }
  CHECK(beyond > 0);
}

namespace {

// The output's words of a grouped convolution whose octets of channels from `first_octet` on are `word`.
std::vector<float> run_with_octets(const Recipe& recipe, int first_octet, std::uint32_t word) {
  const KernelTensor& read = recipe.form.input();
  const std::int64_t octet_words = std::int64_t{read.rows} * read.cols * kLineBytes / kWordBytes;
  std::vector<float> input(static_cast<std::size_t>(read.spanned_words(8)));
  for (std::size_t i = 0; i < input.size(); ++i) {
    const bool is_given = static_cast<std::int64_t>(i) / octet_words >= first_octet;
    const auto small = static_cast<float>(i % 7) / 4;
    input[i] = std::bit_cast<float>(is_given ? word : half_word(ElementType::f16, small, 1 - small));
  }
  std::vector<float> output(static_cast<std::size_t>(recipe.form.output().spanned_words(8)));
  HostKernel(to_bitcode(recipe.specialise(recipe.symbol)), recipe.symbol, recipe.form)
      .run({.batch = 8, .input = input, .output = output, .weights = recipe.weights});
  return output;
}

}  // namespace

TEST_CASE("convolution of warpgroups: no numbers in a group's channels leave the others alone") {
  constexpr int kGroups = 2, kGroupOctets = 3;
  constexpr std::uint32_t kNaNs = 0x7e007e00, kInfinities = 0x7c007c00;
  const OperatorCase edge =
      in_lines(warpgroup_layer(8 * kGroups * kGroupOctets, 32, 5, 3, kGroups, 0.3), ElementType::f16);
  const Network network = network_of(edge);
  const Task task = task_of(network, network.operators.back(), {.tuned_batch = 8});
  std::set<int> chunks;
  for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 1000})) {
    const int chunk = parse_template_plan(candidate.plan).integers.at("chunk_channels");
    if (!chunks.insert(chunk).second) continue;
    INFO(candidate.plan);
    const Recipe recipe = find_provider(kWarpgroupProvider)->make(task, candidate.plan);
    const std::vector<float> zeros = run_with_octets(recipe, kGroupOctets, 0);
    for (const std::uint32_t word : {kNaNs, kInfinities}) {
      const std::vector<float> words = run_with_octets(recipe, kGroupOctets, word);
      const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
      const std::size_t group_words = words.size() / kGroups;
      int others = 0;
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (i < group_words) {
          REQUIRE(bits(words[i]) == bits(zeros[i]));
        } else {
          others += bits(words[i]) != bits(zeros[i]) ? 1 : 0;
        }
      }
      CHECK(others > 0);
    }
  }
  CHECK(chunks.size() >= 2);
}

TEST_CASE("convolution of warpgroups: pixels that no filter reads are not copied") {
  struct Steps {
    int filter, stride, dilation, step, pad;
  };
  // What stride and dilation have in common; 11 is a prime beyond what can be stepped over.
  for (const Steps& steps : {Steps{1, 2, 1, 2, 0}, Steps{1, 3, 1, 3, 1}, Steps{1, 11, 1, 1, 0}, Steps{1, 16, 1, 8, 1},
                             Steps{3, 2, 1, 1, 1}, Steps{3, 2, 2, 2, 2}, Steps{3, 2, 4, 2, 3}, Steps{3, 1, 2, 1, 2}}) {
    INFO("filter " << steps.filter << ", stride " << steps.stride << ", dilation " << steps.dilation);
    ConvLayer layer = warpgroup_layer(24, 40, 19, steps.filter, 1, 0.3, true, steps.stride);
    layer.shape.dilation_h = layer.shape.dilation_w = steps.dilation;
    layer.shape.pad = {steps.pad, steps.pad, steps.pad, steps.pad};
    REQUIRE(verify(layer).empty());
    const WarpgroupTiles tiles{.part_rows = steps.filter, .part_cols = steps.filter};
    CHECK(tiles.step_rows(layer.shape) == steps.step);
    CHECK(tiles.step_cols(layer.shape) == steps.step);
    CHECK(check_warpgroup(layer, ElementType::f16, 9, 3) > 0);
  }
  ConvLayer layer = warpgroup_layer(24, 40, 19, 3, 1, 0.3);
  layer.shape.stride_h = 2;
  layer.shape.stride_w = 4;
  layer.shape.dilation_h = 3;
  layer.shape.dilation_w = 2;
  layer.shape.pad = {3, 2, 1, 4};
  const WarpgroupTiles whole{.part_rows = 3, .part_cols = 3}, position;
  CHECK(whole.step_rows(layer.shape) == 1);
  CHECK(whole.step_cols(layer.shape) == 2);
  CHECK(position.step_rows(layer.shape) == 2);
  CHECK(position.step_cols(layer.shape) == 4);
  CHECK(check_warpgroup(layer, ElementType::bf16, 8, 4) > 0);
}

TEST_CASE("convolution of warpgroups: boxes have as many places as the driver takes") {
  ConvShape shape = warpgroup_layer(16, 64, 300, 1, 1, 1, false, 8).shape;
  shape.kernel_w = 2;  // every pixel of a row is copied
  const ArchSpec& arch = arch_by_name("sm_90");
  WarpgroupTiles tiles{.tile_cols = 32, .part_cols = 2};
  CHECK(tiles.box(shape).cols == 250);
  CHECK(fits(tiles, shape, 0, arch));
  shape.dilation_w = 7;
  CHECK(tiles.box(shape).cols == 256);
  CHECK(fits(tiles, shape, 0, arch));
  shape.dilation_w = 9;
  CHECK(tiles.box(shape).cols == 258);
  CHECK(!fits(tiles, shape, 0, arch));
  // Those that it steps over count, too.
  shape.kernel_w = shape.dilation_w = tiles.part_cols = 1;
  tiles.tile_cols = 32;
  CHECK(tiles.box(shape).cols == 32);
  CHECK(fits(tiles, shape, 0, arch));
  tiles.tile_cols = 33;
  CHECK(!fits(tiles, shape, 0, arch));
}

TEST_CASE("convolution of warpgroups: other architectures have no such instructions") {
  const OperatorCase edge = in_lines(warpgroup_layer(32, 32, 5, 3, 1, 0.3), ElementType::f16);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tuned_batch = 8;
  Task task = task_of(network, network.operators.back(), check);
  CHECK(find_provider(kWarpgroupProvider)->can_do(task));
  task.archs = {"sm_80"};
  CHECK(!find_provider(kWarpgroupProvider)->can_do(task));
  task.archs = {"sm_89", "sm_90"};
  CHECK(!find_provider(kWarpgroupProvider)->can_do(task));
}

TEST_CASE("convolution of warpgroups: random shapes") {
  constexpr int kShapes = 60;
  Random random(29);
  int checked = 0, pooled = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.groups = 1;
    shape.in_channels = random.integer(16, 70);
    shape.out_channels = random.integer(16, 140);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.bias = random.chance(0.5);
    if (random.chance(0.5)) shape.epilogue.pool = random_pool(random);
    add_residual(shape, random);
    // The filter is larger than what was left of the image, or the window is, or one lies in padding.
    if (!verify(shape).empty()) continue;
    if (!is_taken(i, 5)) continue;
    INFO("shape " << i << ": " << describe(shape));
    const ElementType element = i % 2 == 0 ? ElementType::f16 : ElementType::bf16;
    const ConvLayer layer =
        make_layer("random", shape, random.chance(0.5) ? 0.1 : 0.6, static_cast<std::uint64_t>(i) + 1);
    const int found = check_warpgroup(layer, element, random.integer(1, 20), 1);
    checked += found;
    if (shape.epilogue.pool) pooled += found;
  }
  CHECK(checked >= 8);
  CHECK(pooled >= 2);
}

TEST_CASE("convolution of warpgroups: of dense weights all columns live, and the fill is the density") {
  // Full groups of rows and chunks of channels; then 70 rows and 40 channels, which fill up to 128 and 48.
  for (const auto& [channels, outputs, slots] : {std::tuple(64, 128, 128 * 64 * 9), std::tuple(40, 70, 128 * 48 * 9)}) {
    const ConvLayer layer = warpgroup_layer(channels, outputs, 6, 3, 1, 0.25);
    const MultipliedColumns count = count_columns(layer, layer.shape, {.row_groups = 2, .chunk_channels = 16});
    CHECK(count.columns == 2 * channels * 9);
    CHECK(count.live == count.columns);
    CHECK(count.slots == slots);
  }
  // A set of four groups of rows, of which two have none.
  const ConvLayer grouped = warpgroup_layer(32, 160, 6, 3, 2, 0.25);
  const MultipliedColumns count = count_columns(grouped, grouped.shape, {.row_groups = 4, .chunk_channels = 16});
  CHECK(count.columns == 2 * 2 * 16 * 9);
  CHECK(count.slots == 2 * 128 * 16 * 9);
}

TEST_CASE("convolution of warpgroups: of sparse weights, what is stored is multiplied: two of four, and the rest") {
  for (const double density : {0.0, 0.1, 0.3}) {
    INFO(density);
    const OperatorCase edge = in_lines(warpgroup_layer(64, 128, 9, 3, 1, density), ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tuned_batch = 32;
    const Task task = task_of(network, network.operators.back(), check);
    int sparse = 0;
    for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 100})) {
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      if (plan.integers.at("sparse") == 0) continue;
      ++sparse;
      INFO(candidate.plan);
      const Recipe recipe = find_provider(kWarpgroupProvider)->make(task, candidate.plan);
      REQUIRE(recipe.multiplied);
      CHECK(recipe.multiplied->live_share() == 1);
      // Each panel says how many steps of the rest its warps have.
      const std::int64_t chunk = plan.integers.at("chunk_channels"), steps = chunk / 32 * 9;
      const std::size_t counts = static_cast<std::size_t>(steps * kStepBytes + (steps + 1) / 2 * kGroupRows * 8) / 4;
      const std::size_t rest = static_cast<std::size_t>(4 * plan.integers.at("rest_limit") * kRestStepBytes) / 4;
      const auto panels = static_cast<std::size_t>(2 * ((64 + chunk - 1) / chunk));
      std::int64_t stored = 0;
      for (std::size_t panel = 0; panel < panels; ++panel) {
        stored += steps * kGroupRows * kStoredColumns;
        for (std::size_t warp = 0; warp < 4; ++warp) {
          stored += recipe.weights.at(panel * (counts + 4 + rest) + counts + warp) * kWarpRows * kRestColumns;
        }
      }
      CHECK(recipe.multiplied->slots == stored);
    }
    CHECK(sparse > 0);
  }
}

TEST_CASE("two of four: every nonzero is stored once or one of the rest, and no row stores three") {
  constexpr int kChannels = 32, kPositions = 9;
  for (const double density : {0.0, 0.1, 0.5, 1.0}) {
    INFO(density);
    const ConvLayer layer = warpgroup_layer(kChannels, kGroupRows, 6, 3, 1, density);
    const WarpgroupTiles tiles{.chunk_channels = kChannels, .part_rows = 3, .part_cols = 3};
    const auto weights = panel_weights(layer, layer.shape, tiles, 0, 0, 0);
    const SplitPanel split = split_two_of_four(weights, kChannels, kPositions);
    std::set<std::pair<int, std::pair<int, int>>> found;  // row, channel, position
    REQUIRE(split.fours.size() == std::size_t{kPositions} * (kChannels / 4) * kGroupRows);
    std::size_t at = 0;
    for (int position = 0; position < kPositions; ++position) {
      for (int four = 0; four < kChannels / 4; ++four) {
        for (int row = 0; row < kGroupRows; ++row) {
          const SplitPanel::Four& stored = split.fours[at++];
          CHECK(stored.places[0] < stored.places[1]);
          for (std::size_t i = 0; i < 2; ++i) {
            if (stored.values[i] == 0) continue;
            const int channel = four * 4 + stored.places[i];
            CHECK(stored.values[i] == layer.weight(row, channel, position / 3, position % 3));
            CHECK(found.insert({row, {channel, position}}).second);
          }
        }
      }
    }
    for (std::size_t warp = 0; warp < split.rest.size(); ++warp) {
      for (const PanelWeight& weight : split.rest[warp].weights) {
        CHECK(weight.row / kWarpRows == static_cast<int>(warp));
        CHECK(std::ranges::count(split.rest[warp].columns, weight.channel * kPositions + weight.position) == 1);
        CHECK(weight.value == layer.weight(weight.row, weight.channel, weight.position / 3, weight.position % 3));
        CHECK(found.insert({weight.row, {weight.channel, weight.position}}).second);
      }
    }
    CHECK(found.size() == weights.size());
  }
}
