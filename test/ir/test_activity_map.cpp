
#include "ir/activity_map.h"
#include "ir/baked_plan_activity.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::small_plan;
using burin_test::small_shape;

TEST_CASE("activity_map: cells count like tiles, and the last reach beyond the tensor") {
  const ActivityMap map{2, 4, 5};
  const ActivityExtent extent{3, 7, 9, 10};
  CHECK(cells_per_images(map, extent) == 3 * 2);
  CHECK(cells(map, extent) == 2 * 3 * 2);
  CHECK(map_bytes(map, extent) == 2 * 3 * 2 * 7);
  CHECK(cell_at(map, extent, 0, 0, 0) == 0);
  CHECK(cell_at(map, extent, 1, 3, 4) == 0);
  CHECK(cell_at(map, extent, 0, 0, 5) == 1);
  CHECK(cell_at(map, extent, 0, 4, 0) == 2);
  CHECK(cell_at(map, extent, 2, 8, 9) == 11);
  CHECK(print(map) == "2x4x5");
}

TEST_CASE("activity_map: the largest counts do not wrap around") {
  const ActivityExtent extent{kMaxBatch, kMaxChannels, kMaxSpatialExtent, kMaxSpatialExtent};
  CHECK(map_bytes({1, 1, 1}, extent) == kSaturated);
  CHECK(cells({1, 1, 1}, extent) == std::int64_t{1} << 50);
}

TEST_CASE("activity_map: what is zero is dead, whatever its sign") {
  const ActivityMap map{1, 1, 2};
  const ActivityExtent extent{2, 2, 1, 3};
  const std::vector<float> nchw = {0, -0.0F, 5, 0, 1e-45F, 0, std::nanf(""), 0, 0, 0, 0, 0};
  CHECK(activity_of(map, extent, nchw) == std::vector<std::uint8_t>{0, 1, 1, 0, 1, 0, 0, 0});
}

TEST_CASE("activity_map: cells that a window reaches") {
  CHECK(most_cells_reached(14, 14, -1, 14, 1, 16) == 1);  // halo beyond the tensor counts as the nearest cell
  CHECK(most_cells_reached(56, 5, -1, 5, 12, 7) == 3);
  CHECK(most_cells_reached(56, 5, 0, 5, 12, 5) == 1);
  CHECK(most_cells_reached(10, 3, -4, 2, 9, 2) == 2);
  CHECK(most_cells_reached(1, 1, -7, 1, 15, 3) == 1);
}

TEST_CASE("activity_map: cells that cannot be") {
  const ActivityExtent extent{4, 8, 9, 10};
  CHECK(verify({4, 9, 10}, extent, 2, "map").empty());
  CHECK(verify({0, 1, 1}, extent, 1, "map") ==
        std::vector<std::string>{"map: cell images is 0, allowed is 1 to 1048576: kMaxBatch images fit one launch"});
  CHECK(verify({1, 10, 1}, extent, 1, "map") ==
        std::vector<std::string>{"map: cell rows is 10, allowed is 1 to 9: the tensor has no more rows"});
  CHECK(verify({1, 1, -3}, extent, 1, "map").size() == 1);
  CHECK(
      verify({3, 1, 1}, extent, 2, "map") ==
      std::vector<std::string>{"map: cell images is 3, it must be a multiple of 2: that many images lie side by side"});
}

TEST_CASE("activity_map: what a plan makes of it") {
  BakedPlan plan = small_plan();
  const ConvShape shape = small_shape();
  const int before = plan.shared_bytes(), start = plan.shared_start();
  CHECK_FALSE(plan.uses_activity());
  CHECK(plan.activity_bytes() == 0);
  plan.skips = default_cell(plan, shape);
  plan.marks = true;
  CHECK(verify(plan, shape).empty());
  CHECK(plan.output_map() == ActivityMap{plan.tile.images, plan.tile.rows, plan.tile.cols});
  CHECK(plan.mark_words() == 1);
  CHECK(plan.activity_bytes() == 128);
  CHECK(plan.shared_bytes() == before + 128);
  CHECK(plan.shared_start() == start + 128);
  CHECK(plan.activity_bytes() <= most_activity_bytes(shape));

  const std::string text = print(plan);
  CHECK(parse_baked_plan(text) == plan);
  CHECK(text.find("\nskips: " + print(*plan.skips) + "  #") != text.npos);
  CHECK(text.find("\nmarks: yes") != text.npos);
  CHECK(print(small_plan()).find("skips") == std::string::npos);

  plan.skips = ActivityMap{1, shape.in_h + 1, 1};
  const std::vector<std::string> faults = verify(plan, shape);
  REQUIRE(faults.size() == 1);
  CHECK(faults.front().starts_with("skips: cell rows is"));
}

TEST_CASE("activity_map: bits begin with the slice's lowest channel, whatever the order") {
  BakedPlan plan = small_plan();
  plan.skips = ActivityMap{};
  Slice slice{0, 0, {70, 100, 65}};
  CHECK(plan.first_live_word(slice) == 2);
  CHECK(plan.live_words(slice) == 2);
  slice.channels.clear();
  CHECK(plan.first_live_word(slice) == 0);
  CHECK(plan.live_words(slice) == 0);
  plan.skips.reset();
  slice.channels = {1};
  CHECK(plan.live_words(slice) == 0);
}

TEST_CASE("activity_map: a plan's text with a bad cell") {
  BakedPlan plan = small_plan();
  plan.skips = ActivityMap{1, 2, 3};
  std::string text = print(plan);
  text.replace(text.find("1x2x3"), 5, "1x2");
  CHECK(BURIN_THROWN(bad_input, parse_baked_plan(text)).has("skips"));
  text = print(small_plan()) + "marks: perhaps\n";
  CHECK(BURIN_THROWN(bad_input, parse_baked_plan(text)).has("neither 'yes' nor 'no'"));
}
