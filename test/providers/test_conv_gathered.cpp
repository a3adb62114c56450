// Convolutions on tensor cores: how columns are packed, and what comes out, on the edge list and on random shapes: on
// the host executor, against the float64 reference.

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <string>

#include "compiler/providers/conv_gathered/packing.h"
#include "compiler/providers/conv_gathered/tiles.h"
#include "ir/arch.h"
#include "ir/element_type.h"
#include "ir/factor_type.h"
#include "ir/saturate.h"
#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/every_case.h"
#include "test/ir/random_layers.h"
#include "test/providers/provider_check.h"
#include "test/providers/tensor_cores.h"

using namespace burin;
using namespace burin_test;

namespace {

std::string check_gathered(const ConvLayer& layer, ElementType element, int batch) {
  const OperatorCase edge = in_octets(layer, element);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  check.tuned_batch = batch;
  check.batches = {batch};
  return check_operator(network_of(edge), check);
}

std::set<std::string> expected_providers(const std::string& edge, const ConvLayer& layer) {
  // Those behind the first have windows that no tile holds.
  static const std::set<std::string> kLargePatches = {"dilation_larger_than_image", "max_of_all", "average_of_all",
                                                      "averaged_residual_relu"};
  if (edges_of_small_groups().contains(edge) || kLargePatches.contains(edge)) return {};
  return {edges_of_depthwise().contains(edge) ? "conv_depthwise" : "conv_gathered"};
}

void check_gathered_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const ConvLayer layer = edge.make_layer();
  // BF16 has the range of all weights there are.
  const OperatorCase as_case = in_octets(layer, ElementType::bf16);
  ProviderCheck check;
  check.tuned_batch = edge.batch;
  std::set<std::string> found = providers_of(network_of(as_case), check);
  found.erase("conv_warpgroup");  // which has its own tests
  CHECK(found == expected_providers(name, layer));
  if (!found.empty()) CHECK(check_gathered(layer, ElementType::bf16, edge.batch) == "");
}

ConvLayer layer_of(int in, int out, int size, int filter, int groups, double density, bool residual = false) {
  return *convolution_case("gathered", in, out, size, filter, 1, filter / 2, density, residual, groups).layer;
}

struct Packed {
  ConvShape shape;
  Packing packing;
  std::vector<int> rows;
  std::vector<ColumnMasks> masks;
  std::vector<GatheredSteps> groups;
};

Packed pack(const ConvLayer& layer, const Packing& packing) {
  const SparsePattern pattern = analyse(layer);
  Packed packed{layer.shape, packing, order_outputs(layer.shape, pattern, packing), {}, {}};
  packed.masks = column_masks(layer.shape, pattern, packed.rows, packing.group_rows);
  for (const ColumnMasks& masks : packed.masks) packed.groups.push_back(gather(layer.shape, masks, packing));
  return packed;
}

// Calls visit(what is packed) for layers and packings of all kinds.
template <typename Visit>
void for_each_packing(Visit visit) {
  struct Case {
    ConvLayer layer;
    const char* name;
  };
  const Case cases[] = {
      {layer_of(40, 50, 8, 3, 1, 0.1), "3x3 at 90 %"},  {layer_of(64, 64, 8, 1, 1, 0.1), "1x1 at 90 %"},
      {layer_of(40, 50, 8, 3, 1, 0.02), "3x3 at 98 %"}, {layer_of(40, 50, 8, 3, 1, 0.5), "3x3, half"},
      {layer_of(32, 96, 8, 3, 2, 0.2), "two groups"},   {layer_of(24, 40, 8, 3, 1, 1), "dense"},
      {layer_of(24, 40, 8, 3, 1, 0), "all zero"}};
  for (const auto& [layer, name] : cases) {
    for (const int group_rows : {16, 32, 64}) {
      for (const bool sparse : {false, true}) {
        for (const bool carries : {false, true}) {
          for (const int value_bytes : {2, 4}) {
            const bool in_octets = value_bytes == 2 && sparse != carries;
            const Packing packing{.group_rows = group_rows,
                                  .set_rows = group_rows == 16 ? 32 : group_rows,
                                  .chunk_channels = in_octets ? 8 : 7,
                                  .sparse = sparse,
                                  .carries = carries,
                                  .channels_together = in_octets ? 8 : 1,
                                  .channel_pitch = 101,
                                  .row_pitch = 10,
                                  .value_bytes = value_bytes};
            INFO(name << ", " << group_rows << " rows" << (sparse ? ", sparse" : "") << (carries ? ", carries" : "")
                      << ", values of " << value_bytes << " bytes");
            visit(pack(layer, packing));
          }
        }
      }
    }
  }
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("convolution on tensor cores: " #name) { check_gathered_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("convolution on tensor cores: what is said of edges is said of edges that there are") {
  for (const auto* names : {&edges_of_small_groups(), &edges_of_depthwise()}) {
    for (const std::string& name : *names) CHECK(edge_case(name).name == name);
  }
}

TEST_CASE("convolution on tensor cores: FP16, and batches that fill no octet") {
  for (const char* name : {"3x3", "1x1", "bias_residual_silu", "stride_2", "one_pixel", "all_zero"}) {
    for (const int batch : {1, 7, 8, 9, 17}) {
      INFO(name << ", batch " << batch);
      CHECK(check_gathered(edge_case(name).make_layer(), ElementType::f16, batch) == "");
    }
  }
}

TEST_CASE("convolution on tensor cores: slices of other tensors") {
  for (const int before : {0, 4}) {
    for (const int behind : {0, 8}) {
      const OperatorCase edge = in_octets(edge_case("bias_residual_silu").make_layer(), ElementType::f16);
      ProviderCheck check;
      check.tolerance = edge.tolerance;
      check.before = before;
      check.behind = behind;
      check.batches = {9};
      CHECK(check_operator(network_of(edge), check) == "");
    }
  }
}

TEST_CASE("convolution on tensor cores: every kind of tiles") {
  const ConvLayer layer = with_weights_of(FactorType::f16, layer_of(37, 70, 9, 3, 1, 0.15));
  const ConvLayer pointwise = with_weights_of(FactorType::f16, layer_of(37, 70, 9, 1, 1, 0.15));
  const ConvLayer residual = with_weights_of(FactorType::f16, layer_of(37, 70, 9, 1, 1, 0.15, true));
  ConvLayer pooled = with_weights_of(FactorType::f16, layer_of(37, 70, 9, 3, 1, 0.15, true));
  pooled.shape.epilogue.pool = window_of(PoolKind::average, 3, 2, 1);
  int checked = 0, layers = 0;
  std::set<int> exchanges;  // of the layer with a residual
  for (const ConvLayer& of : {layer, pointwise, residual, pooled}) {
    ++layers;
    const OperatorCase edge = in_octets(of, ElementType::f16);
    const Network network = network_of(edge);
    ProviderCheck check;
    check.tolerance = edge.tolerance;
    check.batches = {9};
    check.tuned_batch = 32;
    const Task task = task_of(network, network.operators.back(), check);
    for (const Candidate& candidate : find_provider("conv_gathered")->propose(task, {.count = 24})) {
      INFO(candidate.plan);
      const bool is_new = of.shape.epilogue.residual &&
                          exchanges.insert(parse_template_plan(candidate.plan).integers.at("exchanges")).second;
      if (is_taken(checked++ + layers, 3) || is_new) {  // not the same ones of each layer
        CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
      }
    }
  }
  CHECK(checked > 50);
  CHECK(exchanges == std::set<int>{1, 2});
}

TEST_CASE("convolution on tensor cores: sums of splits that take more than the buffers leave the residual alone") {
  const OperatorCase edge =
      in_octets(with_weights_of(FactorType::f16, layer_of(64, 64, 4, 1, 1, 0.3, true)), ElementType::f16);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tolerance = edge.tolerance;
  check.batches = {8};
  check.tuned_batch = 8;
  const Task task = task_of(network, network.operators.back(), check);
  int checked = 0;
  for (const Candidate& candidate : find_provider("conv_gathered")->propose(task, {.count = 100})) {
    if (parse_template_plan(candidate.plan).integers.at("split_warps") < 4) continue;
    INFO(candidate.plan);
    CHECK(check_candidate(network, network.operators.back(), candidate, check) == "");
    ++checked;
  }
  CHECK(checked > 0);
  // A block whose splits' sums take more than its buffers.
  GatheredTiles tiles{.warp_tiles = 4, .warp_pixels = 4, .pixel_warps = 4, .split_warps = 4, .tile_cols = 16};
  tiles.chunk_channels = 8;
  const ConvShape shape = gathered_shape(network.layers.front().shape);
  REQUIRE(tiles.tiles(shape) == tiles.set_blocks);
  constexpr int kSumBytes = kOctetImages * 4;
  const std::int64_t sums = std::int64_t{tiles.block_rows()} * tiles.pixels() * (tiles.split_warps - 1) * kSumBytes;
  CHECK(tiles.shared_bytes(shape, 1) >= sums + tiles.exchange_bytes());
}

TEST_CASE("convolution on tensor cores: what it cannot do is refused before tensors are laid out for it") {
  const auto can_do = [](const ConvLayer& layer) {
    const Network network = network_of(in_octets(layer, ElementType::f16));
    return find_provider("conv_gathered")->can_do(task_of(network, network.operators.back(), {}));
  };
  CHECK(can_do(layer_of(48, 32, 8, 3, 2, 0.5)));
  CHECK_FALSE(can_do(layer_of(44, 32, 8, 3, 2, 0.5)));  // groups of 22 channels begin within an octet
  ConvLayer layer = layer_of(16, 16, 40, 3, 1, 1);
  for (const auto& [dilation, can] : {std::pair{8, true}, {14, true}, {15, false}, {36, false}}) {
    layer.shape.dilation_h = layer.shape.dilation_w = dilation;
    layer.shape.pad = {dilation, dilation, dilation, dilation};
    INFO("dilation " << dilation);
    CHECK(can_do(layer) == can);
    // What it says that it can do, it has tiles for.
    if (can) CHECK(check_gathered(layer, ElementType::f16, 2) == "");
  }
}

TEST_CASE("convolution on tensor cores: 1 to 12 channels and 1 to 9 images, and what fills up is zero") {
  int number = 0;
  for (const int in : {1, 3, 8, 9, 12}) {
    for (const int out : {1, 7, 8, 9, 12}) {
      ConvLayer layer = layer_of(in, out, 7, 3, 1, 0.6, out % 2 == 1);
      layer.shape.epilogue.function = function_of(Activation::sigmoid);  // of zero it is none
      for (const int batch : {1, 7, 8, 9}) {
        if (!is_taken(number++, 3)) continue;
        INFO(in << " to " << out << " channels, batch " << batch);
        CHECK(check_gathered(layer, ElementType::f16, batch) == "");
      }
    }
  }
  // Groups whose rows without a channel are spread over all groups.
  ConvLayer grouped = layer_of(32, 62, 5, 3, 2, 0.5);
  grouped.shape.epilogue.function = function_of(Activation::sigmoid);
  CHECK(check_gathered(grouped, ElementType::f16, 9) == "");
}

TEST_CASE("convolution on tensor cores: dense weights, of which no two of four columns go together") {
  ConvLayer layer = layer_of(100, 100, 9, 3, 1, 1);
  layer.shape.stride_h = 3;
  CHECK(check_gathered(layer, ElementType::f16, 3) == "");
}

TEST_CASE("convolution on tensor cores: plans for large batches are legal") {
  const OperatorCase edge = in_octets(layer_of(32, 32, 5, 3, 1, 0.2), ElementType::f16);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tuned_batch = 4000;
  const Task task = task_of(network, network.operators.back(), check);
  int made = 0;
  for (const Candidate& candidate : find_provider("conv_gathered")->propose(task, {.count = 20})) {
    CHECK(!find_provider("conv_gathered")->make(task, candidate.plan).weights.empty());
    ++made;
  }
  CHECK(made == 20);
}

TEST_CASE("convolution on tensor cores: random shapes") {
  constexpr int kShapes = 40;
  Random random(23);
  int checked = 0;
  for (int i = 0; i < kShapes; ++i) {
    ConvShape shape = random_shape(random);
    shape.in_h = std::min(shape.in_h, 20);
    shape.in_w = std::min(shape.in_w, 20);
    shape.epilogue.bias = random.chance(0.5);
    add_residual(shape, random);
    if (!verify(shape).empty()) continue;  // the filter is larger than what was left of the image
    if (shape.groups > 1 && std::min(shape.channels_per_group(), shape.outputs_per_group()) < kTileRows) continue;
    if (!has_whole_octets(shape)) continue;
    INFO("shape " << i << ": " << describe(shape));
    const ElementType element = i % 2 == 0 ? ElementType::f16 : ElementType::bf16;
    const ConvLayer layer =
        make_layer("random", shape, random.chance(0.5) ? 0.1 : 0.6, static_cast<std::uint64_t>(i) + 1);
    CHECK(check_gathered(layer, element, random.integer(1, 20)) == "");
    ++checked;
  }
  CHECK(checked >= 20);
}

TEST_CASE("packing: each output channel is one row") {
  for_each_packing([](const Packed& packed) {
    std::vector<int> found = packed.rows;
    std::erase(found, kNoRow);
    std::ranges::sort(found);
    REQUIRE(std::ssize(found) == packed.shape.out_channels);
    for (int k = 0; k < packed.shape.out_channels; ++k) CHECK(found[static_cast<std::size_t>(k)] == k);
    CHECK(packed.rows.size() % static_cast<std::size_t>(packed.packing.set_rows) == 0);
    const int padded = static_cast<int>(packed.rows.size()) / packed.shape.groups;
    for (std::size_t i = 0; i < packed.rows.size(); ++i) {
      if (packed.rows[i] == kNoRow) continue;
      CHECK(packed.rows[i] / packed.shape.outputs_per_group() == static_cast<int>(i) / padded);
    }
  });
}

TEST_CASE("packing: each column with a nonzero is in one slot, of its chunk or the next one") {
  for_each_packing([](const Packed& packed) {
    const int positions = filter_positions(packed.shape);
    for (std::size_t g = 0; g < packed.groups.size(); ++g) {
      std::vector<int> slots(packed.masks[g].size());
      for (std::size_t chunk = 0; chunk < packed.groups[g].size(); ++chunk) {
        for (const GatheredStep& step : packed.groups[g][chunk]) {
          for (const int column : step) {
            if (column == kNoColumn) continue;
            ++slots[static_cast<std::size_t>(column)];
            const int own = column / positions / packed.packing.chunk_channels;
            CHECK((own == static_cast<int>(chunk) || (packed.packing.carries && own + 1 == static_cast<int>(chunk))));
          }
        }
      }
      for (std::size_t column = 0; column < slots.size(); ++column) {
        CHECK(slots[column] == (packed.masks[g][column] != 0 ? 1 : 0));
      }
    }
  });
}

TEST_CASE("packing: columns of channels side by side lie side by side, each in the bank of its channel") {
  const ConvShape shape = layer_of(20, 16, 8, 3, 1, 1).shape;
  const Packing packing{.chunk_channels = 16, .channels_together = 8, .channel_pitch = 100, .row_pitch = 10};
  const auto place = [&](int channel, int row, int col) {
    return column_place(shape, packing, (channel * 3 + row) * 3 + col);
  };
  CHECK(place(0, 0, 0) == 0);
  CHECK(place(7, 0, 0) == 7);
  CHECK(place(8, 0, 0) == 800);
  CHECK(place(13, 2, 1) == 800 + 21 * 8 + 5);
  CHECK(place(16, 0, 1) == 8);  // of the next chunk
}

TEST_CASE("packing: columns that live and weights that are multiplied are counted") {
  for_each_packing([](const Packed& packed) {
    Gathered gathered{.rows = packed.rows, .groups = packed.groups};
    std::int64_t columns = 0, live = 0, steps = 0;
    for (std::size_t g = 0; g < packed.masks.size(); ++g) {
      const auto rows = std::span(packed.rows).subspan(g * packed.packing.group_rows, packed.packing.group_rows);
      if (std::ranges::count(rows, kNoRow) == std::ssize(rows)) continue;
      columns += std::ssize(packed.masks[g]);
      live += std::ranges::count_if(packed.masks[g], [](std::uint64_t mask) { return mask != 0; });
      for (const auto& chunk : packed.groups[g]) steps += std::ssize(chunk);
    }
    const MultipliedColumns count = count_columns(packed.shape, packed.packing, gathered);
    CHECK(count.columns == columns);
    CHECK(count.live == live);
    const int step = packed.packing.value_bytes == 2 ? 32 : 16;  // columns, of which a sparse row stores half
    CHECK(count.slots == steps * packed.packing.group_rows * (packed.packing.sparse ? step / 2 : step));
    CHECK(count.columns <= packed.shape.weight_elements());
  });
}

TEST_CASE("packing: half of the columns live, and every weight that is multiplied is a nonzero") {
  ConvLayer layer = layer_of(64, 16, 4, 1, 1, 1);
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = i % 64 < 32 ? 1.0F : 0.0F;
  const OperatorCase edge = in_octets(layer, ElementType::f16);
  const Network network = network_of(edge);
  ProviderCheck check;
  check.tuned_batch = 8;
  const Task task = task_of(network, network.operators.back(), check);
  int dense = 0;
  for (const Candidate& candidate : find_provider("conv_gathered")->propose(task, {.count = 100})) {
    const TemplatePlan plan = parse_template_plan(candidate.plan);
    INFO(candidate.plan);
    const Recipe recipe = find_provider("conv_gathered")->make(task, candidate.plan);
    REQUIRE(recipe.multiplied);
    CHECK(recipe.multiplied->columns == 64);  // rows without a channel count for nothing
    CHECK(recipe.multiplied->live == 32);
    CHECK(recipe.multiplied->live_share() == 0.5);
    if (plan.integers.at("sparse") != 0 || plan.integers.at("warp_tiles") != 1) continue;
    if (plan.integers.at("chunk_channels") % 32 != 0 && plan.integers.at("carries") == 0) continue;
    ++dense;
    KernelLayer said{.shape = layer.shape, .nonzeros = 16 * 32, .multiplied = recipe.multiplied};
    CHECK(recipe.multiplied->slots == 16 * 32);
    CHECK(said.fill() == 1.0);
    CHECK(multiplied_text(said) == "50.0 % of the columns live, 100.0 % of what is multiplied is not zero");
  }
  CHECK(dense > 0);
}

TEST_CASE("packing: of four columns of a sparse matrix no row has three, and of two that are words none has both") {
  for_each_packing([](const Packed& packed) {
    if (!packed.packing.sparse) return;
    for (std::size_t g = 0; g < packed.groups.size(); ++g) {
      for (const auto& steps : packed.groups[g]) {
        for (const GatheredStep& step : steps) {
          const auto together = static_cast<std::size_t>(packed.packing.sparse_columns());
          for (std::size_t first = 0; first < step.size(); first += together) {
            for (int row = 0; row < packed.packing.group_rows; ++row) {
              std::size_t count = 0;
              for (std::size_t i = first; i < first + together; ++i) {
                if (step[i] == kNoColumn) continue;
                count += packed.masks[g][static_cast<std::size_t>(step[i])] >> row & 1U;
              }
              CHECK(count <= together / 2);
            }
          }
        }
      }
    }
  });
}

TEST_CASE("packing: a step has 32 columns, and 16 of words") {
  for_each_packing([](const Packed& packed) {
    for (const GatheredSteps& group : packed.groups) {
      for (const auto& steps : group) {
        for (const GatheredStep& step : steps) CHECK(step.size() == (packed.packing.value_bytes == 2 ? 32 : 16));
      }
    }
  });
}

TEST_CASE("packing: eight columns side by side, or four, lie in as many banks as the columns that are left allow") {
  int conflicts = 0, picked = 0;
  for_each_packing([&](const Packed& packed) {
    const auto all_banks = static_cast<std::size_t>(packed.packing.octet_banks());
    CHECK(all_banks == (packed.packing.value_bytes == 2 ? 8 : 4));
    for (std::size_t g = 0; g < packed.groups.size(); ++g) {
      for (const auto& steps : packed.groups[g]) {
        for (const GatheredStep& step : steps) {
          for (std::size_t first = 0; first < step.size(); first += all_banks) {
            std::set<int> banks;
            int columns = 0;
            for (std::size_t i = first; i < first + all_banks; ++i) {
              if (step[i] == kNoColumn) continue;
              ++columns;
              banks.insert(column_place(packed.shape, packed.packing, step[i]) % packed.packing.octet_banks());
            }
            conflicts += columns - static_cast<int>(banks.size());
            ++picked;
          }
        }
      }
    }
  });
  REQUIRE(picked > 1000);
  CHECK(conflicts < picked / 2);
}

TEST_CASE("packing: what is carried fills the steps of a row group but for its last") {
  int checked = 0;
  for_each_packing([&](const Packed& packed) {
    if (!packed.packing.carries || packed.packing.sparse) return;
    const auto of_chunk = static_cast<std::size_t>(packed.packing.chunk_channels * filter_positions(packed.shape));
    for (std::size_t g = 0; g < packed.groups.size(); ++g) {
      const auto is_live = [](std::uint64_t mask) { return mask != 0; };
      const std::int64_t live = std::ranges::count_if(packed.masks[g], is_live);
      // A column waits for one chunk alone, so each must have enough of its own.
      bool all_fill_steps = true;
      for (std::size_t first = 0; first < packed.masks[g].size(); first += of_chunk) {
        const auto chunk =
            std::span(packed.masks[g]).subspan(first, std::min(packed.masks[g].size() - first, of_chunk));
        if (std::ranges::count_if(chunk, is_live) < packed.packing.step_columns()) all_fill_steps = false;
      }
      if (!all_fill_steps) continue;
      std::int64_t steps = 0;
      for (const auto& in_chunk : packed.groups[g]) steps += std::ssize(in_chunk);
      CHECK(steps == ceil_div(live, packed.packing.step_columns()));
      ++checked;
    }
  });
  CHECK(checked > 5);
}

TEST_CASE("packing: the fullest row group has fewer columns than in the order of the layer") {
  // Every other block of 16 rows has few nonzeros.
  ConvLayer layer = layer_of(64, 128, 8, 3, 1, 0.12);
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    if (i / (64 * 9) / 16 % 2 == 1 && i % 4 != 0) layer.weights[i] = 0;
  }
  const auto fullest = [](const std::vector<ColumnMasks>& all) {
    std::ptrdiff_t most = 0;
    for (const ColumnMasks& masks : all) {
      most = std::max(most, std::ranges::count_if(masks, [](std::uint64_t mask) { return mask != 0; }));
    }
    return most;
  };
  const Packing packing{.group_rows = 16, .set_rows = 16, .chunk_channels = 64, .channel_pitch = 101, .row_pitch = 10};
  std::vector<int> in_order(128);
  for (int k = 0; k < 128; ++k) in_order[static_cast<std::size_t>(k)] = k;
  const std::ptrdiff_t before = fullest(column_masks(layer.shape, analyse(layer), in_order, 16));
  CHECK(fullest(pack(layer, packing).masks) < before - before / 20);
}
