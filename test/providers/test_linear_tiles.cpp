// Fully connected layers of many images, in tiles: what comes out, on the edge list and for every kind of tiles, on the
// host executor, against the float64 reference; and what a person may choose.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "compiler/providers/linear/layer_tiles.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/every_case.h"
#include "test/providers/provider_check.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

bool has_tiles(const TemplatePlan& plan) { return plan.integers.at("block_rows") == 0; }

struct TileCase {
  Network network;
  ProviderCheck check;

  TileCase(const OperatorCase& edge, int batch, ElementType storage = ElementType::f32) : network(network_of(edge)) {
    check.tolerance = edge.tolerance;
    check.tuned_batch = batch;
    check.batches = {batch};
    check.linear_storage = storage;
  }
  const Operator& op() const { return network.operators.back(); }
  Task task() const { return burin_test::task_of(network, op(), check); }
  std::vector<Candidate> candidates(int count = 1000) const {
    return find_provider("linear")->propose(task(), {.count = count});
  }
  // Those with tiles, the best first.
  std::vector<Candidate> tiles() const {
    std::vector<Candidate> found = candidates();
    std::erase_if(found, [](const Candidate& one) { return !has_tiles(parse_template_plan(one.plan)); });
    return found;
  }
  std::string run(const Candidate& candidate) const { return check_candidate(network, op(), candidate, check); }
  // The error of a plan in which the integers or the cluster were changed.
  std::string refusal(TemplatePlan plan) const {
    return BURIN_THROWN(unsupported, find_provider("linear")->make(task(), print(plan))).text;
  }
};

OperatorCase layer_case(int in, int out, bool bias = true) {
  Linear op;
  op.in_features = in;
  op.out_features = out;
  op.weights = rounded(ElementType::f16, random_tensor(std::int64_t{in} * out, 21));
  if (bias) op.bias = random_tensor(out, 22);
  op.function = Elementwise{ElementFunction::silu};
  return {"layer", op, {{in}}, 2e-6 * std::sqrt(1.0 + in / 64.0)};
}

}  // namespace

TEST_CASE("fully connected in tiles: the edge list") {
  int number = 0, checked = 0;
  for (const OperatorCase& edge : linear_cases()) {
    for (const ElementType storage : {ElementType::f32, ElementType::f16}) {
      const TileCase of(edge, number++ % 3 == 0 ? 33 : 8, storage);
      const std::vector<Candidate> tiles = of.tiles();
      REQUIRE(!tiles.empty());
      INFO(edge.name << ", " << to_string(storage));
      CHECK(of.run(tiles.front()) == "");
      ++checked;
      constexpr int kManyFeatures = 2000;
      if (edge.inputs[0][0] > kManyFeatures) continue;
      CHECK(of.run(tiles[tiles.size() / 2]) == "");  // one that is unlike it
      ++checked;
    }
  }
  CHECK(checked > 60);
}

TEST_CASE("fully connected in tiles: every kind of tiles") {
  std::set<int> clusters, splits, features, images, feature_quads, image_quads;
  int number = 0, checked = 0;
  for (const ElementType storage : {ElementType::f32, ElementType::f16}) {
    for (const int batch : {8, 70}) {
      const TileCase of(layer_case(517, 150), batch, storage);
      for (const Candidate& candidate : of.tiles()) {
        if (!is_taken(number++, 9)) continue;
        INFO(candidate.plan);
        CHECK(of.run(candidate) == "");
        const TemplatePlan plan = parse_template_plan(candidate.plan);
        clusters.insert(plan.launch().cluster_tiles);
        splits.insert(plan.integers.at("split_warps"));
        features.insert(plan.integers.at("feature_threads"));
        images.insert(plan.integers.at("image_threads"));
        feature_quads.insert(plan.integers.at("feature_quads"));
        image_quads.insert(plan.integers.at("image_quads"));
        ++checked;
      }
    }
  }
  CHECK(checked > 30);
  CHECK(clusters == std::set<int>{1, 2, 4, 8});
  CHECK(splits.size() >= 3);
  CHECK(features.size() >= 4);
  CHECK(images.size() >= 4);
  CHECK(feature_quads == std::set<int>{1, 2});
  CHECK(image_quads == std::set<int>{1, 2});
}

TEST_CASE("fully connected in tiles: odd sizes, slices of other tensors, other numbers of images than planned for") {
  struct Sizes {
    int in, out;
  };
  for (const auto& [in, out] : {Sizes{1, 1}, Sizes{7, 3}, Sizes{129, 65}, Sizes{1000, 33}}) {
    for (const int before : {0, 3, 4}) {
      TileCase of(layer_case(in, out, before != 3), 16);
      of.check.before = before;
      of.check.behind = before + 1;
      of.check.batches = {1, 7, 16, 17, 40};
      INFO(in << " to " << out << ", " << before << " before");
      const std::vector<Candidate> tiles = of.tiles();
      REQUIRE(!tiles.empty());
      CHECK(of.run(tiles.front()) == "");
    }
  }
}

TEST_CASE("fully connected in tiles: without clusters, on older architectures") {
  for (const char* arch : {"sm_75", "sm_80"}) {
    TileCase of(layer_case(300, 70), 32);
    of.check.arch = arch;
    const std::vector<Candidate> tiles = of.tiles();
    REQUIRE(!tiles.empty());
    for (const Candidate& candidate : tiles) {
      CHECK(parse_template_plan(candidate.plan).launch().cluster_tiles == 1);
    }
    CHECK(of.run(tiles.front()) == "");
  }
}

TEST_CASE("fully connected in tiles: for few images weights are streamed, for many there are tiles") {
  const OperatorCase edge = layer_case(2048, 1024);
  for (const int batch : {1, 2, 4}) CHECK(TileCase(edge, batch).tiles().empty());
  for (const int batch : {32, 128}) {
    const TileCase of(edge, batch);
    CHECK(has_tiles(parse_template_plan(of.candidates(1).front().plan)));
    CHECK(of.candidates().size() == of.tiles().size() + 1);
  }
  // Ordered by what they are predicted to take.
  const std::vector<Candidate> all = TileCase(edge, 32).candidates();
  CHECK(std::ranges::is_sorted(all, {}, [](const Candidate& one) { return one.estimate.us; }));
  CHECK(TileCase(edge, 32).candidates(3) == std::vector(all.begin(), all.begin() + 3));
}

TEST_CASE("fully connected in tiles: a plan is chosen by what brief() says of it") {
  const TileCase of(layer_case(300, 70), 32);
  const Provider& linear = *find_provider("linear");
  for (const Candidate& candidate : of.candidates()) {
    CHECK(linear.propose(of.task(), {.plan = linear.brief(candidate.plan)}) == std::vector{candidate});
  }
  const auto chosen = [&](const std::string& text) { return linear.propose(of.task(), {.plan = text}).front(); };
  const TemplatePlan streamed = parse_template_plan(chosen("block_rows=2,images=4,threads=64").plan);
  CHECK(streamed.integers.at("block_rows") == 2);
  CHECK(streamed.integers.at("feature_threads") == 1);
  const Candidate four = chosen(
      "block_rows=0,feature_threads=16,feature_quads=2,image_threads=2,image_quads=1,split_warps=4,split_terms=6,"
      "buffers=4,cluster=2");
  CHECK(parse_template_plan(four.plan).launch().threads == 128);
  CHECK(of.run(four) == "");
  // What is streamed has images and threads of its own.
  CHECK(of.run(chosen("block_rows=2")) == "");
  // 24 threads are no whole warp; what is streamed has no tiles, and at most eight images.
  for (const char* text : {"feature_threads=4,image_threads=2,split_warps=3",
                           "block_rows=4,images=8,threads=128,buffers=3", "block_rows=4,images=16,threads=128"}) {
    CHECK_THAT(BURIN_THROWN(usage, chosen(text)).text,
               burin_test::Contains("together with the best of its other choices they do not fit; choose these, too"));
  }
}

TEST_CASE("fully connected in tiles: plans that were edited are one clear error each") {
  const TileCase of(layer_case(300, 70), 32);
  const TemplatePlan good = parse_template_plan(of.tiles().front().plan);
  const auto with = [&](const char* name, int value) {
    TemplatePlan plan = good;
    plan.integers[name] = value;
    return of.refusal(plan);
  };
  using burin_test::Contains;
  CHECK_THAT(with("feature_threads", 3), Contains("this plan cannot be used: its choices do not fit together"));
  CHECK_THAT(with("split_terms", 0), Contains("integer split_terms is 0, allowed is 1 to 32"));
  CHECK_THAT(with("buffers", 1), Contains("its choices do not fit together"));
  CHECK_THAT(with("buffers", 5), Contains("integer buffers is 5, allowed is 1 to 4"));
  CHECK_THAT(with("row_words", 7), Contains("'integer row_words: 7' does not follow from the operator and the other"));
  // A tile has more images than what is streamed may have.
  REQUIRE(good.launch().tile_images > 8);
  CHECK_THAT(with("block_rows", 1), Contains("its choices do not fit together"));
  TemplatePlan plan = good;
  plan.integers.erase("image_quads");
  CHECK_THAT(of.refusal(plan), Contains("the template linear needs an integer 'image_quads'"));
  plan = good;
  plan.launch().cluster_tiles = 3;
  plan.launch().tiles_per_image = 9;
  CHECK_THAT(of.refusal(plan), Contains("its choices do not fit together"));
  plan = good;
  plan.launch().tile_images += 8;
  CHECK_THAT(of.refusal(plan), Contains(" does not follow from the operator and the other choices"));
}

TEST_CASE("fully connected in tiles: numbers that were edited are never an internal fault") {
  const TileCase of(layer_case(300, 70), 32);
  const TemplatePlan good = parse_template_plan(of.tiles().front().plan);
  int refused = 0, taken = 0;
  for (const auto& [name, now] : good.integers) {
    for (const int value : {0, 1, 2, 3, 8, 16, 64, 65536, 2147483647}) {
      TemplatePlan plan = good;
      plan.integers[name] = value;
      const auto thrown = thrown_by([&] { (void)find_provider("linear")->make(of.task(), print(plan)); });
      INFO(name << " " << value << (thrown ? thrown->text : ""));
      CHECK((!thrown || thrown->kind == ErrorKind::unsupported));
      CHECK((thrown || value == now));  // the launch follows from the tile
      ++(thrown ? refused : taken);
    }
  }
  CHECK(refused > 100);
  CHECK(taken > 5);
}

TEST_CASE("fully connected in tiles: halves lie as threads read them, biases behind whole tiles") {
  const OperatorCase edge = layer_case(24, 20);
  const Linear& op = std::get<Linear>(edge.kind);
  const LayerTiles tiles{.feature_threads = 4,
                         .feature_quads = 2,
                         .image_threads = 8,
                         .image_quads = 1,
                         .split_warps = 2,
                         .split_terms = 8,
                         .buffers = 2,
                         .cluster = 1};
  const auto weight = [&](int feature, int term) { return op.weights[static_cast<std::size_t>(feature * 24 + term)]; };
  const auto half = [](float value) { return std::uint32_t{to_half(ElementType::f16, value)}; };
  REQUIRE(fits(tiles, ElementType::f16, arch_by_name("sm_90")));
  const std::vector<std::uint32_t> words = pack_tiles(tiles, op, ElementType::f32);
  // One tile of 32 outputs, two chunks of 16 inputs.
  REQUIRE(words.size() == 32 * 32 + 32);
  CHECK(words[5 * 32 + 19] == std::bit_cast<std::uint32_t>(weight(19, 5)));
  CHECK(words[5 * 32 + 20] == 0);
  CHECK(words[24 * 32] == 0);
  CHECK(words[32 * 32 + 19] == std::bit_cast<std::uint32_t>(op.bias[19]));
  const std::vector<std::uint32_t> halves = pack_tiles(tiles, op, ElementType::f16);
  REQUIRE(halves.size() == 32 * 16 + 32);
  CHECK(halves[5 * 16] == (half(weight(0, 5)) | half(weight(1, 5)) << 16));
  CHECK(halves[5 * 16 + 2] == (half(weight(16, 5)) | half(weight(17, 5)) << 16));  // the thread's second quad
  CHECK(halves[5 * 16 + 4] == (half(weight(4, 5)) | half(weight(5, 5)) << 16));
}
