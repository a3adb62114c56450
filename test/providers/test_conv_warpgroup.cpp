// Convolutions on the tensor cores of warpgroups: how weights are split and packed, and what comes out, on the edge
// list and on random shapes: on the host executor, against the float64 reference.

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "compiler/providers/conv_warpgroup/packing.h"
#include "compiler/providers/conv_warpgroup/tiles.h"
#include "ir/arch.h"
#include "ir/element_type.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
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

// Edges have few channels: here they have so many times more, and a part of the pattern in each.
ConvLayer with_more_channels(const ConvLayer& source, int factor) {
  ConvLayer layer = source;
  layer.shape.in_channels *= factor;
  layer.shape.out_channels *= factor;
  layer.bias.clear();
  const ConvShape& before = source.shape;
  layer.weights.clear();
  for (int k = 0; k < layer.shape.out_channels; ++k) {
    for (int c = 0; c < layer.shape.channels_per_group(); ++c) {
      for (int r = 0; r < before.kernel_h; ++r) {
        for (int s = 0; s < before.kernel_w; ++s) {
          const float weight = source.weight(k / factor, c / factor, r, s);
          layer.weights.push_back((k + c) % 3 == 0 ? weight : 0);
        }
      }
    }
    if (before.epilogue.bias) layer.bias.push_back(source.bias[static_cast<std::size_t>(k / factor)]);
  }
  return layer;
}

ConvLayer warpgroup_layer(int in, int out, int size, int filter, int groups, double density, bool residual = false,
                          int stride = 1) {
  return *convolution_case("warpgroup", in, out, size, filter, stride, filter / 2, density, residual, groups).layer;
}

bool is_expected(const ConvShape& shape) {
  if (shape.epilogue.pool) return false;
  return shape.groups == 1 || (shape.channels_per_group() % 8 == 0 && shape.outputs_per_group() % 8 == 0);
}

// Two buffers of their weights do not fit a multiprocessor.
const std::set<std::string>& edges_of_large_filters() {
  static const std::set<std::string> names = names_of_edges("7x7 11x11_stride_4 dilation_larger_than_image");
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
  CHECK((checked > 0) == (is_expected(layer.shape) && !edges_of_large_filters().contains(name)));
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
    for (const Candidate& candidate : find_provider(kWarpgroupProvider)->propose(task, {.count = 8})) {
      INFO(candidate.plan);
      CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
      const TemplatePlan plan = parse_template_plan(candidate.plan);
      sparse.insert(plan.integers.at("sparse"));
      rest.insert(plan.integers.at("rest_limit") > 0);
      rows.insert(plan.integers.at("group_rows") > 1);
      ++checked;
    }
  }
  CHECK(checked > 20);
  CHECK(sparse == std::set<int>{0, 1});
  CHECK(rest == std::set<int>{0, 1});
  CHECK(rows == std::set<int>{0, 1});
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
  constexpr int kShapes = 40;
  Random random(29);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.groups = 1;
    shape.in_channels = random.integer(16, 70);
    shape.out_channels = random.integer(16, 140);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.bias = random.chance(0.5);
    shape.epilogue.residual = random.chance(0.3);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    INFO("shape " << i << ": " << describe(shape));
    const ElementType element = i % 2 == 0 ? ElementType::f16 : ElementType::bf16;
    const ConvLayer layer =
        make_layer("random", shape, random.chance(0.5) ? 0.1 : 0.6, static_cast<std::uint64_t>(i) + 1);
    checked += check_warpgroup(layer, element, random.integer(1, 20), 1);
  }
  CHECK(checked >= 20);
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
    const auto weights = panel_weights(layer, layer.shape, 0, 0, 0, kChannels);
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
